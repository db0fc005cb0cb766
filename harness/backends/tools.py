"""Tool calls between our form and the services': what no two services do alike is in their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.core.errors import HarnessError
from harness.core.types import Message, ToolCall

_MADE_UP = "call-made-up-"


def read_calls(found: Iterable[tuple[object, object, object]], turn: int) -> tuple[ToolCall, ...]:
    """Make our calls of those found in a reply.

    Parameters
    ----------
    found : iterable of (id, name, arguments)
        As the service gave them. A call without an id gets one of ours.
    turn : int
        The model call within the attempt, so that no id of ours stands twice in a conversation.

    Examples
    --------
    >>> read_calls([("c1", "add", '{"a": 2}'), (None, "now", None)], turn=3)[1].id
    'call-made-up-3-1'
    """
    return tuple(
        ToolCall.read(str(call_id or f"{_MADE_UP}{turn}-{k}"), str(name or ""), arguments)
        for k, (call_id, name, arguments) in enumerate(found)
    )


def given_id(call_id: str) -> str | None:
    """Give an id back to the service that it came from; None for one that is ours."""
    return None if call_id.startswith(_MADE_UP) else call_id


def sent_arguments(call: ToolCall) -> dict[str, Any]:
    """Give a call's arguments as services take them back: always an object.

    Raw text sent back as it is meets a 400 of vLLM, SGLang and others at every further turn, which
    would let one model's slip end the run.

    Examples
    --------
    >>> sent_arguments(ToolCall.read("c", "add", "a=2"))
    {'invalid_json': 'a=2'}
    """
    if isinstance(call.arguments, dict):
        return call.arguments
    return {"invalid_json": call.arguments}


def answered_call(messages: Sequence[Message], at: int) -> ToolCall:
    """Give the call that the ``tool`` turn at a position answers: the latest one of its id.

    Raises
    ------
    HarnessError
        No earlier turn holds it.
    """
    wanted = messages[at].tool_call_id
    for message in reversed(messages[:at]):
        for call in message.tool_calls:
            if call.id == wanted:
                return call
    raise HarnessError(f"a tool's result answers the call {wanted!r}, which no earlier turn holds")
