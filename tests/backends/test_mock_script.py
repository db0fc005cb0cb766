"""`mock:script` in turns: texts and tool calls, for one item or for all."""

import json

import pytest

from harness.backends.base import load
from harness.core.errors import UsageError
from harness.core.types import GenerateRequest, Generation, Message, Oracle, Tool

TOOLS = (Tool("add", "Adds."),)
CALLS = [{"name": "add", "arguments": {"a": 2}}, {"name": "now", "arguments": "no json"}]


def request(item_id="a", turn=0, tools=TOOLS, oracle=None):
    return GenerateRequest(
        item_id=item_id, messages=(Message("user", "2 + 2?"),), generation=Generation(), turn=turn,
        tools=tools, oracle=oracle,
    )  # fmt: skip


@pytest.fixture
def scripted(tmp_path):
    def make(*rows):
        path = tmp_path / "s.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return load(f"mock:script?file={path}")

    return make


def test_turns_are_texts_or_calls(scripted):
    model = scripted({"item_id": "a", "turns": ["one", {"text": "two", "tool_calls": CALLS}]})
    first, second, third = model.generate([request(turn=t) for t in range(3)])
    assert (first.text, first.tool_calls, first.finish_reason) == ("one", (), "stop")
    assert (second.text, second.finish_reason) == ("two", "tool_calls")
    assert [(c.name, c.arguments) for c in second.tool_calls] == [
        ("add", {"a": 2}),
        ("now", "no json"),
    ]
    assert second.tool_calls[1].fault is not None
    assert (third.text, third.tool_calls) == ("", ())


def test_no_id_of_a_call_stands_twice_in_a_conversation(scripted):
    model = scripted({"item_id": "a", "turns": [{"tool_calls": CALLS}] * 3})
    ids = [c.id for o in model.generate([request(turn=t) for t in range(3)]) for c in o.tool_calls]
    assert len(ids) == len(set(ids)) == 6


def test_a_star_stands_for_all_items_without_a_line(scripted):
    model = scripted({"item_id": "*", "turns": ["all"]}, {"item_id": "b", "turns": ["b"]})
    assert [o.text for o in model.generate([request("a"), request("b")])] == ["all", "b"]


def test_calls_without_tools_on_offer_are_refused(scripted):
    model = scripted({"item_id": "a", "turns": [{"tool_calls": CALLS}]})
    with pytest.raises(UsageError, match="offers none to a service"):
        model.generate([request(tools=())])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"item_id": "a"}, "give `turns`"),
        ({"item_id": "a", "turns": ["x"], "output": "x"}, "give `turns`"),
        ({"item_id": "a", "turns": [{"tool_calls": [{}]}]}, "name"),
        ({"item_id": "a", "turns": [{"call": 1}]}, "unknown field `call`"),
        ({"item": "a", "turns": []}, "item"),
    ],
)
def test_a_broken_line_is_named(scripted, row, message):
    with pytest.raises(UsageError, match=f"s\\.jsonl:1: .*{message}"):
        scripted(row)


def test_gold_that_is_a_call_is_called(scripted):
    call = load("mock:gold").generate
    from harness.solvers.tools import gold_call

    oracle = Oracle((gold_call("add", "So.", a=2),), (), lambda rng: "")
    (output,) = call([request(oracle=oracle)])
    assert (output.text, output.tool_calls[0].arguments) == ("So.", {"a": 2})
