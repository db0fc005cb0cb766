"""Gold in turns, and what a turn hands over as a text."""

import pytest

from harness.core.task import Task
from harness.core.types import Message, Sample, ToolCall

SAMPLE = Sample(item_id="a", input="?")


def task(gold) -> Task:
    return Task(
        name="t", version="1", samples=[SAMPLE], prompt="{{ input }}", gold=lambda sample: gold,
        guess=lambda sample, rng: "", scorer="exact",
    )  # fmt: skip


def call(*calls, text=""):
    return Message("assistant", text, tool_calls=tuple(ToolCall("c", *c) for c in calls))


@pytest.mark.parametrize(
    ("gold", "texts"),
    [
        ("42", ("42",)),
        (["a", "b"], ("a", "b")),
        ([call(("submit", {"answer": "42"}))], ("42",)),
        ([call(("write", {"path": "p", "content": "c"}))], ("c",)),
        ([call(("a", {"x": "1"}), ("b", {"y": 2}))], ("2",)),
        ([call(("look", {}))], ("",)),
        ([call(text="I think.")], ("I think.",)),
    ],
)
def test_a_turn_hands_over_what_it_submits(gold, texts):
    made = task(gold)
    assert made.gold_texts(SAMPLE) == texts
    assert len(made.gold_turns(SAMPLE)) == len(texts)
