"""A model as judge: not in the key, in the verdict; an unreadable reply is no number."""

from __future__ import annotations

import pytest

from harness.backends.base import load
from harness.core import registry
from harness.core.errors import UsageError
from harness.core.keys import seed_of, sha256_of
from harness.core.records import EventRecord
from harness.core.types import Message, Output, Score, Usage
from harness.runner.lifecycle import resume
from harness.runner.limits import Limits
from harness.runner.scoring import score_predictions
from harness.store.journal import read_records


def grader(judge):
    """A scorer that asks its judge: 1 for "yes", 0 for "no", unscored for anything else."""

    def score(sample, output):
        question = f"Is {output.text} the answer to {sample.input}?"
        reply = judge([Message("user", question)], seed_of(sha256_of(question)))
        word = reply.text.strip().lower()
        if word not in ("yes", "no"):
            return Score(value=None, status="unscored", reason="judge_unreadable", explanation=word)
        return Score(value=float(word == "yes"), passed=word == "yes", answer=output.text)

    return score


@pytest.fixture
def judged(house):
    registry.scorer("grader")(grader)
    house.scorer = "grader"
    return house


def test_without_a_judge_nothing_is_scored_and_the_reason_is_told(judged):
    summary = judged.run()
    assert (summary.counts["unscored"], summary.n_counted) == (12, 0)
    assert {s.reason for s in judged.scores(summary.run_id)} == {"no_judge"}
    assert "--judge SPEC" in judged.scores(summary.run_id)[0].explanation


@pytest.mark.parametrize(("reply", "value"), [("yes", 1.0), ("no", 0.0)])
def test_the_judge_decides_and_stands_in_the_verdict(judged, reply, value):
    judge = f"mock:constant?text={reply}"
    summary = judged.run(judge=judge)
    assert (summary.status, summary.metrics["accuracy"].value) == ("done", value)
    assert {s.judge_variant for s in judged.scores(summary.run_id)} == {
        load(judge).identity.variant_id
    }


def test_an_unreadable_reply_is_unscored_and_no_number(judged):
    summary = judged.run(judge="mock:constant?text=perhaps")
    assert (summary.counts["unscored"], summary.n_counted) == (12, 0)
    assert summary.metrics["accuracy"].value is None
    assert {s.value for s in judged.scores(summary.run_id)} == {None}


def test_another_judge_judges_stored_answers_and_no_model_is_called(judged):
    plain = judged.planned_keys()
    assert judged.planned_keys(judge="mock:constant?text=yes") == plain
    judged.run()
    calls = len(judged.calls)
    yes = judged.run(judge="mock:constant?text=yes")
    no = judged.run(judge="mock:constant?text=no")
    assert len(judged.calls) == calls
    assert (yes.metrics["accuracy"].value, no.metrics["accuracy"].value) == (1.0, 0.0)
    assert (yes.cached, no.cached) == (12, 12)


class Model:
    """A judge that answers, fails, and can be looked at."""

    def __init__(self) -> None:
        self.requests = []
        self.outputs = []
        self.closed = 0

    def backend(self, spec, options):
        made = load("mock:constant?text=yes")
        made.generate = self.generate
        made.close = self.close
        return made

    def close(self):
        self.closed += 1

    def generate(self, requests):
        self.requests += requests
        fixed = Output(text="yes", usage=Usage(7, 1))
        return [self.outputs.pop(0) if self.outputs else fixed for _ in requests]


@pytest.fixture
def model():
    made = Model()
    registry.backend("arbiter")(made.backend)
    return made


def broken():
    return Output(text="", finish_reason="error", error="no line", error_kind="network")


def test_a_judge_that_fails_is_asked_again(judged, model):
    model.outputs = [broken(), broken()]
    summary = judged.run(judge="arbiter:one", first=2)
    assert (summary.status, summary.n_scored, len(model.requests)) == ("done", 2, 4)


def test_a_judge_that_goes_on_failing_leaves_the_item_open_for_resume(judged, model):
    model.outputs = [broken() for _ in range(3)]
    summary = judged.run(judge="arbiter:one", first=2)
    assert (summary.status, summary.counts["error_harness"], summary.n_counted) == ("partial", 1, 1)
    calls = len(judged.calls)
    ended = resume(judged.store, summary.run_id)
    assert (ended.status, ended.n_scored, len(judged.calls)) == ("done", 2, calls)


def test_the_judges_calls_are_events_and_count_for_the_limits(judged, model):
    summary = judged.run(judge="arbiter:one", batch_size=1, max_total_tokens=20)
    # 6 tokens of the model and 8 of the judge an item: the second item reaches 28 of 20.
    assert (summary.status, summary.n_scored) == ("partial", 2)
    used = [r for r in read_records(judged.store.journal(summary.run_id))
            if isinstance(r, EventRecord) and r.kind == "judge_call"]  # fmt: skip
    assert [(e.item_id, e.data["tokens_in"], e.data["tokens_out"]) for e in used] == [
        ("i000", 7, 1), ("i001", 7, 1),
    ]  # fmt: skip


def test_a_limit_holds_for_judging_stored_answers_too(judged, model):
    judged.run()
    calls = len(judged.calls)
    summary = judged.run(judge="arbiter:one", max_total_tokens=20)  # 8 of the judge an item
    assert (summary.status, summary.n_scored, len(model.requests)) == ("partial", 3, 3)
    assert summary.cached == 12
    again = resume(judged.store, summary.run_id)
    assert (again.status, again.n_scored, len(model.requests)) == ("partial", 6, 6)
    ended = resume(judged.store, summary.run_id, limits=Limits(max_total_tokens=1000))
    assert (ended.status, ended.n_scored, len(model.requests)) == ("done", 12, 12)
    assert len(judged.calls) == calls


def test_the_same_question_is_asked_in_the_same_way(judged, model):
    judged.run(judge="arbiter:one")
    first = list(model.requests)
    judged.run(judge="arbiter:one")
    assert model.requests[len(first) :] == first
    assert len({r.seed for r in first}) == 12
    assert model.closed >= 2


def test_a_scorer_that_needs_no_judge_gets_none(house, model):
    summary = house.run(judge="arbiter:one", first=2)
    assert summary.status == "done"
    assert house.plan(judge="arbiter:one").notes == [
        "own/add: no judge is asked here, so --judge changes nothing"
    ]
    assert model.requests == []
    assert {s.judge_variant for s in house.scores(summary.run_id)} == {None}


def test_a_scorer_may_do_without(house):
    registry.scorer("either")(lambda judge=None: lambda s, o: Score(value=float(judge is not None)))
    house.scorer = "either"
    assert house.run(first=2).metrics["accuracy"].value == 0.0
    assert house.run(first=2, judge="mock:empty").metrics["accuracy"].value == 1.0


@pytest.mark.parametrize(
    ("judge", "match"), [("mock:golf", "did you mean 'mock:gold'"), ("moc:x", "did you mean")]
)
def test_a_wrong_judge_is_refused_before_any_call(judged, judge, match):
    with pytest.raises(UsageError, match=match):
        judged.run(judge=judge)
    assert judged.calls == []
    assert judged.store.run_ids() == []


def test_the_judge_is_no_option_of_the_scorers_spec(judged):
    judged.scorer = "grader?judge=mock:empty"
    with pytest.raises(UsageError, match="unknown option 'judge'"):
        judged.run()


def test_given_outputs_of_a_judged_task_are_unscored(judged):
    (score,) = score_predictions("own/add", [{"item_id": "i001", "output": "1001"}])
    assert (score.status, score.reason) == ("unscored", "no_judge")
