r"""How a model without a tool API calls a tool in plain text, and how it is told.

One call a reply: the first one counts, and the reply is cut behind it, since models go on to invent
what the tool would have said. A tool's *body* is its last required parameter; the others are
written beside its name. Everything up to the last ``</think>`` is thought, not said.

``fenced``: a block whose first word is the tool's name, closed by a line of at least as many of the
same marks (CommonMark)::

    ```create_file path=notes.txt          ```submit
    two lines                              42
    ```                                    ```

``tags``: an element named as the tool; a body of several lines ends at a closing tag that begins a
line, where there is one, so a tag inside a string of the code ends nothing. A fence around the
whole body is taken off::

    <create_file path="notes.txt">         <submit>42</submit>
    two lines
    </create_file>

A block that is never closed reaches to the end: a stop string may have eaten the close. Whether it
was cut at the token limit is for the solver to see.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from harness.core.types import Message, Tool, ToolCall, text_of

Protocol = Literal["tools", "fenced", "tags"]

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"""([A-Za-z_]\w*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
# What models write for a tool's name in a fence.
_ALIASES = {"py": "python", "python3": "python", "sh": "bash", "shell": "bash", "console": "bash"}


class Found(Struct, frozen=True):
    """A call in a reply.

    Attributes
    ----------
    call : ToolCall
    end : int
        Where the call ends in the reply: what stands behind is not said.
    closed : bool
        Its end was written.
    """

    call: ToolCall
    end: int
    closed: bool


def body_of(tool: Tool) -> str | None:
    """Name the parameter that a tool's body stands for; None for a tool without any."""
    names = tool.parameters.get("required") or list(tool.parameters.get("properties", {}))
    return str(names[-1]) if names else None


def find_call(text: str, tools: Sequence[Tool], protocol: Protocol, turn: int) -> Found | None:
    r"""Find the first call in a reply.

    Parameters
    ----------
    text : str
        What the model said.
    tools : sequence of Tool
    protocol : {"fenced", "tags"}
    turn : int
        Numbers the call.

    Examples
    --------
    >>> tools = (Tool("submit", "", {"required": ["answer"]}),)
    >>> find_call("So:\n```submit\n42\n```", tools, "fenced", 0).call.arguments
    {'answer': '42'}
    >>> find_call("So <submit>42", tools, "tags", 0).closed
    False
    """
    begin = text.rfind("</think>")
    begin = 0 if begin < 0 else begin + len("</think>")
    said = text[begin:]
    by_name = {tool.name: tool for tool in tools}
    find = _find_fenced if protocol == "fenced" else _find_tagged
    block = find(said, by_name)
    if block is None:
        return None
    tool, written, body, end, closed = block
    arguments: dict[str, Any] = _attributes(written)
    name = body_of(tool)
    if name is not None and (body or name not in arguments):
        arguments[name] = body
    return Found(ToolCall(f"turn-{turn}", tool.name, arguments), begin + end, closed)


_Block = tuple[Tool, str, str, int, bool]  # tool, attributes, body, end, closed


def _find_fenced(text: str, tools: dict[str, Tool]) -> _Block | None:
    at = 0
    while opening := _FENCE.search(text, at):
        marks, info = opening.groups()
        close = re.compile(rf"^[ \t]*{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$", re.MULTILINE)
        closing = close.search(text, opening.end())
        word, _, rest = info.strip().partition(" ")
        tool = tools.get(word) or tools.get(_ALIASES.get(word.lower(), ""))
        if tool is not None:
            end = closing.start() if closing else len(text)
            body = text[min(opening.end() + 1, end) : end].removesuffix("\n")
            return tool, rest, body, closing.end() if closing else end, closing is not None
        if closing is None:
            return None
        at = closing.end()
    return None


def _find_tagged(text: str, tools: dict[str, Tool]) -> _Block | None:
    names = "|".join(map(re.escape, sorted(tools, key=len, reverse=True)))
    opening = re.compile(rf"<({names})((?:\s[^<>]*)?)>").search(text) if names else None
    if opening is None:
        return None
    name, written = opening.groups()
    if written.endswith("/"):
        return tools[name], written[:-1], "", opening.end(), True
    close = rf"</{re.escape(name)}\s*>"
    one_line = re.compile(rf"[ \t]*\S[^\n]*{close}").match(text, opening.end())
    closing = (
        None
        if one_line
        else re.compile(rf"^[ \t]*{close}", re.MULTILINE).search(text, opening.end())
    )
    closing = closing or re.compile(close).search(text, opening.end())
    end = closing.start() if closing else len(text)
    body = _unfenced(text[opening.end() : end].removeprefix("\n").removesuffix("\n"))
    return tools[name], written, body, closing.end() if closing else end, closing is not None


def _unfenced(body: str) -> str:
    """Take a fence off that stands around a whole body."""
    lines = body.strip().splitlines()
    opening = _FENCE.fullmatch(lines[0]) if lines else None
    if opening is None:
        return body
    if len(lines) > 1 and lines[-1].strip() == opening[1]:
        lines.pop()
    return "\n".join(lines[1:])


def _attributes(written: str) -> dict[str, Any]:
    return {name: "".join(forms) for name, *forms in _ATTRIBUTE.findall(written)}


def written_call(turn: str | Message, tools: Sequence[Tool], protocol: Protocol) -> str | Message:
    """Write a turn of a baseline in a protocol: what `find_call` reads back as the same call.

    A text, and a message for a service with tools, stay as they are.
    """
    if isinstance(turn, str) or protocol == "tools" or not turn.tool_calls:
        return turn
    call = turn.tool_calls[0]
    arguments = dict(call.arguments) if isinstance(call.arguments, dict) else {}
    name = next((body_of(tool) for tool in tools if tool.name == call.name), None)
    body = _text(arguments.pop(name, "")) if name else ""
    beside = "".join(f' {key}="{_text(value)}"' for key, value in arguments.items())
    said = f"{text}\n" if (text := text_of(turn)) else ""
    if protocol == "tags":
        return f"{said}<{call.name}{beside}>\n{body}\n</{call.name}>"
    longest = max(map(len, re.findall(r"`{3,}", body)), default=2)
    fence = "`" * (longest + 1)
    return f"{said}{fence}{call.name}{beside}\n{body}\n{fence}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def instructions(tools: Sequence[Tool], protocol: Protocol) -> str:
    """Say how the tools are called; empty where the service says it itself."""
    if protocol == "tools":
        return ""
    lines = [
        "You work step by step with tools. Call one tool in a reply, at the end of it, and wait:",
        "the next message brings what it gave back. Whatever you write behind the call is not read.",
        "",
        "The tools, each with the form of its call:",
    ]
    for tool in tools:
        lines += ["", f"{tool.name}: {tool.description}", _form(tool, protocol)]
    return "\n".join(lines)


def _form(tool: Tool, protocol: Protocol) -> str:
    body = body_of(tool)
    properties = tool.parameters.get("properties", {})
    beside = {name: f"…{name}…" for name in properties if name != body}
    call = ToolCall("", tool.name, {**beside, **({body: f"…{body}…"} if body else {})})
    form = written_call(Message("assistant", "", tool_calls=(call,)), (tool,), protocol)
    return form if isinstance(form, str) else ""


def told(name: str, text: str, protocol: Protocol) -> str:
    """Say in plain text what a tool gave back."""
    if protocol == "tags":
        return f"<information>\n{text}\n</information>"
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"Output of {name}:\n{fence}\n{text}\n{fence}"
