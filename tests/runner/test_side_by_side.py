"""Many requests under way at once: the same books, the same order of starting."""

import threading
from concurrent.futures import ALL_COMPLETED

import pytest

from harness.core import registry
from harness.core.errors import HarnessError
from harness.core.types import Message, Output
from harness.runner import pool


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
