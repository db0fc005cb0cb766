"""Scoring again: no model is called, every verdict stays, the newest one is valid."""

from __future__ import annotations

import pytest

from harness.core import registry
from harness.core.errors import UsageError
from harness.core.types import Output, Score
from harness.runner.rescore import rescore
from harness.runner.summary import summarise
from harness.store.care import verify
from harness.store.publish import snapshot
from harness.store.queries import sample


@pytest.fixture
def judged(house, by_item):
    """Twelve right answers but two, judged by a scorer of version 1 that knows no mercy."""
    by_item({"i003": "0", "i007": "seven"})

    def enter(version, score):
        registry.scorer("grader", version=version)(lambda: score)

    enter("1", lambda s, o: Score(value=float(o.text == s.target[0]), metrics={"length": 1.0}))
    house.scorer = "grader"
    house.enter = enter
    return house


def lenient(sample, output):
    """Version 2: words are forgiven, and `length` is no metric any more."""
    return Score(value=float(output.text in (sample.target[0], "seven")))


def test_a_new_scorer_judges_stored_outputs_and_calls_no_model(judged):
    run = judged.run()
    calls = len(judged.calls)
    judged.enter("2", lenient)
    done = rescore(judged.store, run.run_id)
    assert len(judged.calls) == calls
    assert (done.before.versions, done.after.versions) == (("1",), ("2",))
    assert done.before.headline.value == pytest.approx(10 / 12)
    assert done.after.headline.value == pytest.approx(11 / 12)
    assert (done.n_rescored, done.changed) == (12, ["i007"])
    assert done.summary.status == "done"
    assert verify(judged.store) == []


def test_history_is_kept_and_both_are_shown(judged):
    run = judged.run()
    judged.enter("2", lenient)
    rescore(judged.store, run.run_id)
    scores = sample(snapshot(judged.store), judged.store, run.run_id, "i007")["scores"]
    shown = [(s["metric"], s["scorer_version"], s["value"]) for s in scores]
    assert shown == [("accuracy", "1", 0.0), ("length", "1", 1.0), ("accuracy", "2", 1.0)]
    assert scores[2]["replaces"] == scores[0]["seq"]
    # What only the older verdict said is history, not a result of the newer one.
    assert list(summarise(judged.store, run.run_id).metrics) == ["accuracy"]


def test_a_mended_scorer_ends_a_run_that_its_fault_left_open(judged):
    def falls(sample, output):
        if sample.item_id == "i001":
            raise RuntimeError("the scorer fell over")
        return lenient(sample, output)

    judged.enter("2", falls)
    run = judged.run()
    assert (run.status, run.counts["error_harness"]) == ("partial", 1)
    judged.enter("3", lenient)
    done = rescore(judged.store, run.run_id)
    assert (done.summary.status, done.summary.n_scored) == ("done", 12)
    assert done.changed == ["i001"]


def test_attempts_without_an_output_stay_as_they_are(judged, by_item):
    by_item({
        "i000": Output(text="", finish_reason="content_filter"),
        "i001": Output(text="", finish_reason="timeout"),
        "i002": Output(text="2", finish_reason="length"),
    })  # fmt: skip
    run = judged.run()
    judged.enter("2", lenient)
    done = rescore(judged.store, run.run_id)
    assert done.n_rescored == 10
    assert done.summary.counts == run.counts
    assert (done.summary.counts["refused"], done.summary.counts["timeout"]) == (1, 1)


def test_a_killed_run_stays_unfinished(judged):
    """Only what is there is judged again; `resume` still knows what is missing."""
    run = judged.run(first=12)
    path = judged.store.journal(run.run_id)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-5]))
    judged.store.database.unlink()
    judged.enter("2", lenient)
    done = rescore(judged.store, run.run_id)
    assert (done.summary.status, done.summary.open) == ("partial", 2)
    assert judged.resume(run.run_id).status == "done"


def test_a_strategy_chooses_again_among_the_draws(judged):
    """The first of two draws is chosen when it is right, by the verdict that is valid now."""

    @registry.strategy("likes_seven")
    class LikesSeven:
        n = 2

        def __call__(self, candidates):
            return next((i for i, c in enumerate(candidates) if c.answer == "seven"), 0)

    judged.enter("1", lambda s, o: Score(value=0.0, answer="?"))
    run = judged.run(strategy="likes_seven", temperature=1.0)
    assert run.metrics["likes_seven"].value == 0.0
    judged.enter("2", lambda s, o: Score(value=float(o.text == "seven"), answer=o.text))
    done = rescore(judged.store, run.run_id)
    assert done.summary.metrics["likes_seven"].value == pytest.approx(1 / 12)
    assert done.after.metric == "likes_seven"


def test_another_judge(judged):
    def grader(judge):
        from harness.core.types import Message

        return lambda s, o: Score(value=float(judge([Message("user", o.text)], 0).text == "yes"))

    registry.scorer("grader")(grader)
    run = judged.run(judge="mock:constant?text=yes")
    done = rescore(judged.store, run.run_id, judge="mock:constant?text=no")
    assert (done.before.headline.value, done.after.headline.value) == (1.0, 0.0)
    assert done.before.judge != done.after.judge


def test_a_judge_for_a_scorer_that_asks_none_is_refused(judged):
    run = judged.run()
    with pytest.raises(UsageError, match="asks no judge"):
        rescore(judged.store, run.run_id, judge="mock:gold")


def test_changed_items_are_refused(judged):
    run = judged.run()
    judged.samples = judged.samples[:-1]
    with pytest.raises(UsageError, match=r"its data changed \(1 items, e.g. i011\)"):
        rescore(judged.store, run.run_id)
