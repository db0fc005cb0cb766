"""Runs of every kind go out and come in: statuses, strategies, judges, tools; what cannot is refused."""

from __future__ import annotations

import msgspec
import pytest

from harness.core import registry
from harness.core.environment import ToolResult
from harness.core.types import Output, Score
from harness.exchange import submission_import
from harness.exchange.rejected import RejectedError
from harness.exchange.submission import export_submission, read_submission
from harness.exchange.submission_import import import_submission
from harness.runner.summary import summarise
from harness.store.care import verify
from harness.store.layout import Store


class Last:
    """Three draws, the last one wins."""

    n = 3

    def __call__(self, candidates):
        return len(candidates) - 1


@pytest.fixture
def round_trip(house, tmp_path):
    """Send a run to another store; give what came of it and both summaries."""

    def go(run_id):
        export_submission(house.store, run_id, tmp_path / "x.zip")
        mine = Store.open(tmp_path / "mine")
        found = import_submission(tmp_path / "x.zip", mine)
        assert verify(mine) == []
        theirs = summarise(house.store, run_id)
        assert (found.summary.counts, found.summary.metrics) == (theirs.counts, theirs.metrics)
        assert (found.summary.status, found.summary.usage) == (theirs.status, theirs.usage)
        return found

    return go


def test_every_way_that_an_answer_ends(house, by_item, round_trip):
    house.scorer = "moody"
    by_item({
        "i000": Output(text="", finish_reason="error", error="no", error_kind="network"),
        "i001": Output(text="", finish_reason="error", error="no", error_kind="model"),
        "i002": Output(text="", finish_reason="timeout", error="late"),
        "i003": Output(text="cut", finish_reason="length"),
        "i004": Output(text="", finish_reason="content_filter"),
        "i005": Output(text="", finish_reason="skipped"),
        "i006": "mumble", "i007": "explode", "i008": "",
    })  # fmt: skip
    run = house.run()
    assert run.status == "partial"
    found = round_trip(run.run_id)
    counts = found.summary.counts
    assert counts == {
        "error": 1, "error_harness": 2, "timeout": 1, "truncated": 1, "refused": 1,
        "unscored": 1, "unavailable": 1,
    }  # fmt: skip
    # Of what was judged only the scorer's own fault gives no verdict to compare with.
    assert found.scores.not_recomputed == {"the scorer fell over there": 1}
    assert found.scores.n_equal == 6


def test_what_a_strategy_chose_is_chosen_again(house, round_trip):
    registry.strategy("last")(Last)
    run = house.run("mock:noisy?accuracy=0.5", strategy="last", epochs=2)
    assert next(iter(round_trip(run.run_id).summary.metrics)) == "last"


def test_a_choice_that_the_strategy_does_not_make_is_refused(house, tmp_path):
    registry.strategy("last")(Last)
    run = house.run("mock:noisy?accuracy=0.5", strategy="last")
    export_submission(house.store, run.run_id, tmp_path / "x.zip")
    registry.strategy("last")(type("First", (), {"n": 3, "__call__": lambda self, c: 0}))
    with pytest.raises(RejectedError, match="what last chose is not what it chooses here: item"):
        import_submission(tmp_path / "x.zip", Store.open(tmp_path / "mine"))


def test_what_a_judge_said_cannot_be_checked_and_is_marked(house, round_trip):
    def grader(judge):
        def score(sample, output):
            reply = judge([], 0).text
            return Score(value=float(reply == "yes"))

        return score

    registry.scorer("grader")(grader)
    house.scorer = "grader"
    run = house.run(judge="mock:constant?text=yes")
    found = round_trip(run.run_id)
    assert found.scores.n_equal == 0
    assert found.scores.not_recomputed == {"the scorer grader may ask a judge": 12}


def test_an_unjudged_run_can_be_sent_too(house, round_trip):
    registry.scorer("grader")(lambda judge: lambda sample, output: Score(value=1.0))
    house.scorer = "grader"
    assert round_trip(house.run().run_id).summary.counts["unscored"] == 12


def test_the_context_of_the_model_may_have_shortened_its_answers(house, round_trip):
    """Nobody knows the context where the file is read; the answers' length stands in it."""
    house.context_length = 40
    run = house.run()
    house.context_length = None
    assert round_trip(run.run_id).outcome == "imported"


def test_reused_answers_are_sent_with_the_run_that_paid(house, round_trip):
    house.run(first=4)
    run = house.run()
    assert run.cached == 4
    assert round_trip(run.run_id).summary.cached == 4


def test_a_run_that_was_stopped_and_went_on(house, round_trip):
    house.answer = lambda request: Output(text="", finish_reason="error", error_kind="engine")
    run = house.run()
    house.answer = house.solve
    assert house.resume(run.run_id).status == "done"
    assert round_trip(run.run_id).summary.metrics["accuracy"].value == 1.0


@pytest.mark.parametrize("calls_tools", [False, True])
def test_the_tools_of_an_agent_are_part_of_the_key(house, round_trip, tmp_path, calls_tools):
    class Place:
        tools = ()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def call(self, call, wall_s):
            return ToolResult(text="done")

        def kill(self):
            pass

    class Worker:
        needs = ("generate",)
        works_locally = True

        def __call__(self, item):
            with item.environment():
                yield item.ask()
                return (yield item.ask(turn=1))

    make, toolset = house.task, {"version": 1}

    def task(request):
        return msgspec.structs.replace(
            make(request), environment=lambda sample, request: Place(), toolset=dict(toolset)
        )

    registry.task("own/add", n=12)(task)
    registry.solver("worker")(Worker)
    house.solver = "worker"
    if calls_tools:
        house.capabilities |= {"tools"}
    run = house.run(first=2)
    assert round_trip(run.run_id).summary.n_scored == 2
    toolset["version"] = 2
    with pytest.raises(RejectedError, match="the key of an attempt is another"):
        import_submission(tmp_path / "x.zip", Store.open(tmp_path / "another"))


def test_a_task_that_changed_is_refused_where_it_is_read(house, tmp_path):
    run = house.run()
    export_submission(house.store, run.run_id, tmp_path / "x.zip")
    house.samples[3] = msgspec.structs.replace(house.samples[3], target=("another",))
    with pytest.raises(RejectedError) as refused:
        import_submission(tmp_path / "x.zip", Store.open(tmp_path / "mine"))
    assert any("content_sha256 of an item is another: item i003" in r
               for r in refused.value.reasons)  # fmt: skip


def test_a_store_that_fills_up_keeps_nothing_half(house, tmp_path, monkeypatch):
    run = house.run()
    export_submission(house.store, run.run_id, tmp_path / "x.zip")
    mine = Store.open(tmp_path / "mine")

    def full(*_):
        raise OSError(28, "No space left on device")

    for step in ("_write_journal", "_compare_totals", "_take_over"):
        with monkeypatch.context() as patched:
            patched.setattr(submission_import, step, full)
            with pytest.raises(Exception, match="No space left"):
                import_submission(tmp_path / "x.zip", mine)
        assert mine.run_ids() == []
        assert not list(mine.root.glob("import-*"))
    assert import_submission(tmp_path / "x.zip", mine).outcome == "imported"


def test_what_is_read_is_what_was_written(house, tmp_path):
    run = house.run()
    export_submission(house.store, run.run_id, tmp_path / "x.zip")
    read = read_submission(tmp_path / "x.zip")
    assert [s.output for s in read.rows.samples] == [r.output for r in house.records(run.run_id)]
    assert read.rows.scores == house.scores(run.run_id)
