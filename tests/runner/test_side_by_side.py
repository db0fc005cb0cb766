"""Many requests under way at once: the same books, the same order of starting."""

import threading
from concurrent.futures import ALL_COMPLETED

import pytest

from harness.backends.base import load
from harness.core import registry
from harness.core.errors import HarnessError, UsageError
from harness.core.records import EventRecord, ScoreRecord
from harness.core.types import Message, Output, Score, Usage
from harness.runner import pool
from harness.store.journal import read_records


@pytest.fixture
def wide(house):
    """Let the backend take three requests at once."""

    def make(spec, options):
        made = house.backend(spec, options)
        made.max_connections = options.max_connections or 3
        return made

    registry.backend("wide")(make)
    return house


def test_one_request_a_call_and_as_many_at_once_as_allowed(wide):
    meeting = threading.Barrier(3, timeout=30)

    def answer(request):
        meeting.wait()  # passes only when three are here at the same time
        return wide.solve(request)

    wide.answer = answer
    run = wide.run("wide:a")
    assert (run.status, run.metrics["accuracy"].value) == ("done", 1.0)
    assert set(wide.batches) == {1}
    assert sorted(wide.calls) == [s.item_id for s in wide.samples]


def test_attempts_start_in_the_order_of_the_plan(wide):
    """With two at once and the first one held, the others go through in order."""
    gate = threading.Event()

    def answer(request):
        if request.item_id == "i000":
            assert gate.wait(30)
        elif request.item_id == "i011":
            gate.set()
        return wide.solve(request)

    wide.answer = answer
    run = wide.run("wide:a", max_connections=2)
    assert run.status == "done"
    assert wide.calls[2:] == [f"i{k:03d}" for k in range(2, 12)]
    assert wide.records(run.run_id)[-1].item_id in ("i000", "i011")


def test_turns_of_one_attempt_follow_each_other(wide):
    @registry.solver("twice")
    class Twice:
        needs = ("generate",)

        def __call__(self, item):
            first = yield item.ask()
            told = (*item.messages, Message("assistant", first.text), Message("user", "1 + 1"))
            return (yield item.ask(told, turn=1))

    run = wide.run("wide:a", solver="twice")
    assert len(wide.calls) == 24
    assert {r.output for r in wide.records(run.run_id)} == {"2"}
    assert run.usage["tokens_in"] == 12 * 10


def test_faults_are_retried_at_the_end(wide):
    failed = []

    def answer(request):
        if request.item_id in ("i001", "i002") and failed.count(request.item_id) < 2:
            failed.append(request.item_id)
            return Output(text="", finish_reason="error", error="503", error_kind="network")
        return wide.solve(request)

    wide.answer = answer
    run = wide.run("wide:a")
    assert (run.status, run.n_scored) == ("done", 12)
    assert {wide.calls.count(i) for i in ("i001", "i002")} == {3}
    # A retry may overtake the two that were started just before it, no more.
    assert len(set(wide.calls[:12])) >= 10


def test_what_is_here_when_the_run_stops_is_kept(wide, monkeypatch):
    """The first of three requests stops the run when all have been answered: two are paid for."""

    def answer(request):
        if request.item_id == "i000":
            raise HarnessError("wrong key")
        return wide.solve(request)

    monkeypatch.setattr(pool, "FIRST_COMPLETED", ALL_COMPLETED)  # so all three are there at once
    wide.answer = answer
    with pytest.raises(HarnessError, match=r"wrong key; .*go on with"):
        wide.run("wide:a")
    assert sorted(wide.calls) == ["i000", "i001", "i002"]
    assert wide.closed == 1
    (run_id,) = wide.store.run_ids()
    assert [r.item_id for r in wide.records(run_id)] == ["i001", "i002"]
    wide.answer = wide.solve
    done = wide.resume(run_id)
    assert (done.status, done.n_scored) == ("done", 12)
    assert len(wide.calls) == 3 + 10


class Bench:
    """A judge of several seats: it answers when three questions are before it."""

    def __init__(self) -> None:
        self.meeting = threading.Barrier(3, timeout=30)
        self.fault = None

    def backend(self, spec, options):
        made = load("mock:constant?text=yes")
        made.max_connections = 3
        made.generate = self.generate
        return made

    def generate(self, requests):
        self.meeting.wait()  # passes only when three are here at the same time
        if self.fault:
            raise self.fault
        return [Output(text="yes", usage=Usage(7, 1)) for _ in requests]


@pytest.fixture
def bench():
    made = Bench()
    registry.backend("bench")(made.backend)

    @registry.scorer("asks")
    def asks(judge):
        def score(sample, output):
            judge([Message("user", f"{sample.input} {output.text}")], 0)
            judge([Message("user", f"Surely, {sample.input}?")], 0)
            return Score(value=1.0, passed=True, answer=sample.item_id)

        return score

    return made


@pytest.mark.parametrize("model", ["count:a", "wide:a"])
def test_a_judge_is_asked_by_several_scorers_at_once(wide, bench, model):
    """Each verdict keeps its own two calls, whichever thread was faster."""
    wide.scorer = "asks"
    run = wide.run(model, judge="bench:one")
    assert (run.status, run.metrics["accuracy"].value) == ("done", 1.0)
    records = list(read_records(wide.store.journal(run.run_id)))
    answers = {r.item_id: r.answer for r in records if isinstance(r, ScoreRecord)}
    assert answers == {s.item_id: s.item_id for s in wide.samples}
    judged = [r.item_id for r in records if isinstance(r, EventRecord) and r.kind == "judge_call"]
    assert sorted(judged) == sorted(2 * [s.item_id for s in wide.samples])


def test_a_judge_whose_key_is_refused_stops_the_run_with_one_line(wide, bench):
    wide.scorer = "asks"
    bench.fault = UsageError("bench:one: the key was refused")
    with pytest.raises(HarnessError, match=r"the key was refused; what is done is kept"):
        wide.run("wide:a", judge="bench:one")
