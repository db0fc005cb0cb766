"""Scorers with an engine behind them: what they measure is kept, how they end counts as it should."""

from __future__ import annotations

import base64
import threading

import msgspec
import pytest

import harness
from harness.cli.main import main
from harness.core import registry
from harness.core.types import Picture, Score
from harness.runner.inspect import whole_sample
from harness.runner.lifecycle import all_runs
from harness.runner.rescore import rescore
from harness.runner.summary import summarise
from harness.store.care import rebuild, verify
from harness.store.publish import snapshot
from harness.store.queries import attempts

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


class Engine:
    """Says of each item what the test wants, and counts how it is used."""

    at_once = 3

    def __init__(self, sandbox="auto"):
        self.level = sandbox
        self.closed = 0
        self.threads = set()
        self.together = threading.Barrier(3, timeout=20)
        self.meets = False
        self.says = {}

    def __call__(self, sample, output):
        self.threads.add(threading.get_ident())
        if self.meets:
            self.together.wait()
        special = self.says.get(sample.item_id)
        return special or Score(
            value=1.0, passed=True, metrics={"partial": 1.0}, isolation="userns",
            facts={"layouts": [{"index": 0, "seconds": 0.25}], "engine": "toy 1"},
            pictures=(Picture(name="first", media_type="image/svg+xml", data=SVG),),
        )  # fmt: skip

    def close(self):
        self.closed += 1


@pytest.fixture
def engine(house):
    made = Engine()

    def factory(sandbox="auto"):
        made.level = sandbox
        return made

    registry.scorer("engine")(factory)
    house.scorer = "engine"
    return made


def test_what_a_verdict_rests_on_is_stored_with_it(house, engine):
    run = house.run(sandbox="userns")
    assert engine.level == "userns"
    whole = whole_sample(house.store, run.run_id, "i001")
    assert whole["facts"] == {"layouts": [{"index": 0, "seconds": 0.25}], "engine": "toy 1"}
    (picture,) = whole["files"]
    assert base64.b64decode(picture["data"]) == SVG
    assert whole["events"] == []
    assert whole["isolation"] == "userns"
    assert verify(house.store) == []
    rebuild(house.store)
    assert whole_sample(house.store, run.run_id, "i001")["facts"] == whole["facts"]


def test_only_what_the_standing_verdict_rests_on_is_shown(house, engine):
    run = house.run()
    engine.says = {"i001": Score(value=0.0, passed=False, facts={"engine": "toy 2"})}
    rescore(house.store, run.run_id)
    whole = whole_sample(house.store, run.run_id, "i001")
    assert (whole["facts"], whole["files"]) == ({"engine": "toy 2"}, [])
    assert whole["isolation"] is None


def test_outputs_are_judged_side_by_side_and_the_engine_is_let_go(house, engine):
    engine.meets = True  # nobody goes on before three are there
    house.run()
    assert len(engine.threads) == 3
    assert engine.closed == 1
    rows = [{"item_id": f"i{k:03d}", "output": "x"} for k in range(6)]
    scores = harness.score("own/add", rows)
    assert [score.value for score in scores] == [1.0] * 6
    assert engine.closed == 2


def test_timeouts_and_crashes_count_as_wrong_as_far_as_they_came(house, engine):
    half = {"partial": 0.5}
    engine.says = {
        "i001": Score(value=0.0, status="timeout", reason="deck_hangs", metrics=half),
        "i002": Score(value=0.0, status="error", reason="deck_raises", metrics=half),
        "i003": Score(
            value=None, status="unavailable", explanation="no engine: apt-get install it"
        ),
    }
    run = house.run()
    assert (run.counts["timeout"], run.counts["error"], run.counts["unavailable"]) == (1, 1, 1)
    assert run.status == "partial"
    assert run.n_counted == 11
    assert run.metrics["accuracy"].value == pytest.approx(9 / 11)
    assert run.metrics["partial"].value == pytest.approx((9 + 0.5 + 0.5) / 11)
    reasons = {row["item_id"]: row["reason"] for row in attempts(snapshot(house.store), run.run_id)}
    assert (reasons["i001"], reasons["i002"]) == ("deck_hangs", "deck_raises")


def test_an_output_whose_engine_was_missing_is_judged_by_resume_without_a_call(house, engine):
    engine.says = {"i003": Score(value=None, status="unavailable", explanation="no engine")}
    run = house.run()
    calls = len(house.calls)
    engine.says = {}
    again = house.resume(run.run_id)
    assert (again.status, again.n_counted, len(house.calls)) == ("done", 12, calls)


def test_an_item_that_cannot_be_judged_here_is_not_asked(house, engine, capsys):
    why = "no engine: apt-get install it"
    plain = house.task
    registry.task("own/add", n=12)(
        lambda request: msgspec.structs.replace(
            plain(request), missing=lambda sample: why if sample.item_id == "i004" else ""
        )
    )
    store = str(house.store.root)
    assert main(["run", "--task", "own/add", "--model", "count:a", "--store", store]) == 1
    said = capsys.readouterr()
    assert why in said.out + said.err
    assert "i004" not in house.calls
    (run,) = all_runs(house.store)
    assert (run.counts["unavailable"], run.n_counted) == (1, 11)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"value": 1.0, "status": "error"}, "worth 0"),
        ({"value": 0.5, "status": "timeout"}, "worth 0"),
        ({"value": 1.0, "facts": {"rows": [{"s": float("nan")}]}}, "not finite"),
    ],
)
def test_a_score_that_would_mislead_is_refused(fields, why):
    with pytest.raises(ValueError, match=why):
        Score(**fields)


def test_pictures_are_written_as_files(house, engine, tmp_path, capsys):
    run = house.run()
    args = ["show", "sample", run.run_id, "i001", "--store", str(house.store.root)]
    assert main(args) == 0
    assert "--pictures DIR" in capsys.readouterr().out
    assert main([*args, "--pictures", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "01-first.svg").read_bytes() == SVG
    (tmp_path / "taken").write_text("")
    assert main([*args, "--pictures", str(tmp_path / "taken")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert summarise(house.store, run.run_id).n_counted == 12
