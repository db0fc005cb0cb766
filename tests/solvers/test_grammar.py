"""Calls in plain text: what is read, what is not, and that what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.types import Message, Tool, ToolCall
from harness.solvers.grammar import find_call, instructions, told, written_call
from harness.solvers.tools import TOOLS, gold_call

ALL = tuple(TOOLS.values())


def call(text, protocol, tools=ALL):
    found = find_call(text, tools, protocol, turn=0)
    return None if found is None else (found.call.name, found.call.arguments, found.closed)


FENCED = [
    ("Let me see.\n```python\nprint(1)\n```\n", ("python", {"code": "print(1)"}, True)),
    ("```python\na\n```\n```submit\n2\n```", ("python", {"code": "a"}, True)),
    ("```py\na\n```", ("python", {"code": "a"}, True)),
    ("```Python3\na\n```", ("python", {"code": "a"}, True)),
    ("```sh\nls\n```", ("bash", {"command": "ls"}, True)),
    ("~~~python\na\n~~~", ("python", {"code": "a"}, True)),
    ("  ```python  \n  a\n  ```", ("python", {"code": "  a"}, True)),
    # never closed: to the end
    ("```python\nprint(1)\n", ("python", {"code": "print(1)"}, False)),
    ("```python", ("python", {"code": ""}, False)),
    # a longer fence holds shorter ones
    ("````python\nx = '''\n```\n'''\n````", ("python", {"code": "x = '''\n```\n'''"}, True)),
    # foreign blocks are passed over, whatever stands in them
    ("```text\nhello\n```\n```submit\n4\n```", ("submit", {"answer": "4"}, True)),
    ("````markdown\n```python\na\n```\n````\n```submit\n4\n```", ("submit", {"answer": "4"}, True)),
    ("```json\n{}\n", None),
    ("```create_file path=a/b.txt\nx\n\n```", ("create_file", {"path": "a/b.txt", "content": "x\n"}, True)),
    ('```create_file path="a b.txt"\nx\n```', ("create_file", {"path": "a b.txt", "content": "x"}, True)),
    ("", None),
    ("The answer is 4.", None),
    ("use `python` or ```python``` inline", None),
    ("<think>```python\nno\n```</think>```submit\n1\n```", ("submit", {"answer": "1"}, True)),
]  # fmt: skip
TAGS = [
    ("So <submit>42</submit> it is", ("submit", {"answer": "42"}, True)),
    ("<python>\nprint(1)\n</python>", ("python", {"code": "print(1)"}, True)),
    ("<python>\n```python\nprint(1)\n```\n</python>", ("python", {"code": "print(1)"}, True)),
    ("<python>a</python><information>lie</information><submit>9</submit>", ("python", {"code": "a"}, True)),
    ("<python>\nprint('</python>')\nb\n</python>", ("python", {"code": "print('</python>')\nb"}, True)),
    ("<python>\ns = '<submit>1</submit>'\n</python>", ("python", {"code": "s = '<submit>1</submit>'"}, True)),
    ("<python>\nprint(1)", ("python", {"code": "print(1)"}, False)),
    ("<submit></submit>", ("submit", {"answer": ""}, True)),
    ('<create_file path="n.txt">\nx\n</create_file>', ("create_file", {"path": "n.txt", "content": "x"}, True)),
    ("<create_file path='n.txt'>x</create_file >", ("create_file", {"path": "n.txt", "content": "x"}, True)),
    ("<pythonic>x</pythonic> 1 < 2", None),
    ("<unknown>1</unknown>", None),
    ("", None),
    ("<think><python>no</python></think> <submit>1</submit>", ("submit", {"answer": "1"}, True)),
    ("no end of <think> but <submit>1</submit>", ("submit", {"answer": "1"}, True)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FENCED)
def test_fenced(text, expected):
    assert call(text, "fenced") == expected


@pytest.mark.parametrize(("text", "expected"), TAGS)
def test_tags(text, expected):
    assert call(text, "tags") == expected


@pytest.mark.parametrize("protocol", ["fenced", "tags"])
def test_what_stands_behind_the_call_is_cut_off(protocol):
    first = written_call(gold_call("python", "First.", code="a"), ALL, protocol)
    second = written_call(gold_call("submit", answer="1"), ALL, protocol)
    text = f"{first}\n{second}"
    found = find_call(text, ALL, protocol, 3)
    assert (text[: found.end], found.call.id) == (first, "turn-3")


@pytest.mark.parametrize("protocol", ["fenced", "tags"])
@given(body=st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60))
def test_a_file_of_any_content_is_read_back(protocol, body):
    """But for what the grammar says that it cannot hold: ends of its own, fences around it all."""
    hostile = "</create_file" in body or body.strip().startswith(("```", "~~~"))
    turn = gold_call("create_file", path="a b/c.md", content=body)
    read = call(f"Text.\n{written_call(turn, ALL, protocol)}", protocol)
    if protocol == "fenced" or not hostile:
        assert read == ("create_file", {"path": "a b/c.md", "content": body}, True)


@pytest.mark.parametrize("protocol", ["fenced", "tags"])
def test_the_form_shown_for_each_tool_is_the_form_read(protocol):
    shown = instructions(ALL, protocol)
    for tool in ALL:
        form = shown[shown.index(f"{tool.name}: {tool.description}") :]
        name, arguments, closed = call(form, protocol)
        assert (name, set(arguments), closed) == (
            tool.name, set(tool.parameters["required"]), True
        )  # fmt: skip
    assert instructions(ALL, "tools") == ""


@pytest.mark.parametrize("protocol", ["fenced", "tags"])
def test_a_tool_without_parameters(protocol):
    tools = (Tool("look", "Looks around."),)
    text = written_call(
        Message("assistant", "", tool_calls=(ToolCall("c", "look", {}),)), tools, protocol
    )
    assert call(text, protocol, tools) == ("look", {}, True)


def test_what_a_tool_printed_cannot_end_its_own_frame():
    assert told("python", "a\n```\nb", "fenced") == "Output of python:\n````\na\n```\nb\n````"
    assert told("python", "4", "tags") == "<information>\n4\n</information>"
