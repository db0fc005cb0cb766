"""The solver `clarify`: who is asked what, and what becomes of a reply that cannot be read."""

from __future__ import annotations

import json

import pytest

from harness.core.errors import UsageError
from harness.core.types import Generation, Message, Output, Sample, text_of
from harness.solvers.base import Item
from harness.solvers.clarify import Clarify

ASKS = json.dumps({"is_misleading": True, "questions": ["How wide?", "How high?", "Why?"]})
CLEAR = json.dumps({"is_misleading": False, "standardized_prompt": "A box of 1 by 2 by 3."})


class User:
    tools = ()

    def __init__(self):
        self.asked = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def answer(self, question):
        self.asked.append(question)
        return f"{question[4:-1]} is 2 mm."


def solve(replies, **options):
    """Drive the solver; give what it hands in, the user, and the messages of each turn."""
    user, sent = User(), []
    item = Item(
        sample=Sample(item_id="x", input="A box."), messages=(Message("user", "A box."),), generation=Generation(),
        seed=0, environment=lambda: user,
    )  # fmt: skip
    going = Clarify(**options)(item)
    try:
        request = next(going)
        while True:
            sent.append([text_of(message) for message in request.messages])
            reply = replies[request.turn]
            request = going.send(reply if isinstance(reply, Output) else Output(text=reply))
    except StopIteration as stop:
        return stop.value, user, sent


def test_questions_are_answered_and_the_new_description_is_built():
    output, user, sent = solve([ASKS, CLEAR, "r = 1"])
    handed = json.loads(output.text)
    assert user.asked == ["How wide?", "How high?", "Why?"] == handed["questions"]
    assert "wide is 2 mm." in sent[1][-1]
    assert sent[2][-1] == handed["prompt"] == "A box of 1 by 2 by 3."
    assert handed["code"] == "r = 1"
    assert output.work.summary == {"questions": 3, "bad_replies": 0}


def test_where_nothing_is_asked_the_program_is_written_all_the_same():
    output, user, sent = solve([CLEAR, "r = 1"])
    assert (user.asked, len(sent)) == ([], 2)
    assert json.loads(output.text)["questions"] == []


def test_a_reply_that_cannot_be_read_asks_nothing_and_is_counted():
    output, _, sent = solve(["Looks fine to me.", "r = 1"])
    assert sent[1][-1] == "A box."
    assert output.work.summary == {"questions": 0, "bad_replies": 1}
    output, _, sent = solve([ASKS, "no JSON", "r = 1"])
    assert "wide is 2 mm." in sent[2][-1]
    assert output.work.summary["bad_replies"] == 1


def test_only_so_many_questions_are_answered_and_all_are_counted():
    output, user, _ = solve([ASKS, CLEAR, "r = 1"], max_questions="1")
    assert user.asked == ["How wide?"]
    assert len(json.loads(output.text)["questions"]) == 3


def test_a_fault_of_the_service_ends_it_as_one():
    fault = Output(text="", finish_reason="error", error="502", error_kind="backend")
    output, _, _ = solve([ASKS, fault])
    assert (output.finish_reason, output.error, output.error_kind) == ("error", "502", "backend")


def test_it_needs_a_user():
    item = Item(
        sample=Sample(item_id="x", input=""),
        messages=(Message("user", ""),),
        generation=Generation(),
        seed=0,
    )
    with pytest.raises(UsageError, match="needs a task with a user"):
        next(Clarify()(item))
    with pytest.raises(ValueError, match="max_questions"):
        Clarify(max_questions="-1")
