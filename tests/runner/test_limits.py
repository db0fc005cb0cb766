"""Limits stop a run, keep what is done, say how to go on, and change no key; cost is by hand."""

from __future__ import annotations

import threading

import pytest

from harness.core.errors import UsageError
from harness.core.types import Output, Usage
from harness.runner.config import make_config
from harness.runner.lifecycle import carry_out, resume, start
from harness.runner.limits import Limits, Meter
from harness.runner.observe import Observer

# 5 tokens in and 1 out a call at these prices: (5 x 2 + 1 x 90) / 1e6 = 0.0001 dollars
CARD = (
    '["count:*"]\nprice_in = 2.0\nprice_out = 90.0\nprice_date = 2026-01-31\n'
    'price_source = "made up for the test"\nfamily = "Counter"\nlicense = "MIT"\n'
)
CALL = 0.0001


class Notes(Observer):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


class Clock:
    """A clock that a call of the model moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def priced(tmp_path, monkeypatch):
    path = tmp_path / "models.toml"
    path.write_text(CARD)
    monkeypatch.setenv("HARNESS_MODELS", str(path))


@pytest.fixture
def go(house):
    """Run with limits; give the summary and what was said."""

    def run(meter=None, **options):
        notes = Notes()
        options = {"batch_size": 1, **options}
        config = make_config(task="own/add", model="count:a", **options)
        if meter is None:
            return start(config, house.store, notes), notes.said
        return carry_out(house.plan(**options), house.store, notes, meter), notes.said

    return run


def test_the_cost_of_every_attempt_is_usage_times_price(house, priced):
    summary = house.run()
    assert [r.cost_usd for r in house.records(summary.run_id)] == pytest.approx([CALL] * 12)
    assert summary.usage["cost_usd"] == pytest.approx(12 * CALL)


def test_answers_of_an_earlier_run_cost_nothing(house, priced):
    house.run(first=4)
    summary = house.run()
    assert (summary.cached, summary.usage["cost_usd"]) == (4, pytest.approx(8 * CALL))
    assert house.run().usage["cost_usd"] == 0
    # A limit counts what is paid now, not what was paid once.
    assert house.run(max_cost=CALL / 2).status == "done"


@pytest.mark.parametrize("known", [True, False])
def test_without_price_or_usage_a_cost_is_unknown_not_nothing(house, priced, monkeypatch, known):
    if known:
        house.answer = lambda request: Output(text="1", usage=Usage(5, None))
    else:
        monkeypatch.delenv("HARNESS_MODELS")
    summary = house.run()
    assert {r.cost_usd for r in house.records(summary.run_id)} == {None}
    assert summary.usage["cost_usd"] is None


def test_the_facts_of_the_card_go_with_the_run_and_not_into_the_key(house, priced, monkeypatch):
    keys = house.planned_keys()
    assert house.plan().card.family == "Counter"
    summary = house.run()
    from harness.store.publish import snapshot

    model = snapshot(house.store).execute("SELECT family, license FROM models").fetchone()
    assert model == ("Counter", "MIT")
    monkeypatch.delenv("HARNESS_MODELS")
    assert house.planned_keys() == keys
    assert house.run().cached == summary.n_planned


@pytest.mark.parametrize(
    ("limits", "made", "said"),
    [
        # Reached by the third call: 0.0003 of 0.00025
        ({"max_cost": 0.00025}, 3, "--max-cost 0.00025 is reached: 0.0003 USD spent"),
        # 6 tokens a call: 18 of 13
        ({"max_total_tokens": 13}, 3, "--max-total-tokens 13 is reached: 18 used"),
    ],
)
def test_a_limit_stops_the_run_and_resume_ends_it(house, priced, go, limits, made, said):
    summary, notes = go(**limits)
    assert (summary.status, len(house.calls), summary.open) == ("partial", made, 12 - made)
    (line,) = [note for note in notes if "is reached" in note]
    assert said in line
    assert f"{made} of 12 attempts are there" in line
    assert f"harness resume {summary.run_id} --store" in line
    # The run's limits count anew for the session that goes on, and others may be given.
    again = resume(house.store, summary.run_id)
    assert (again.status, len(house.calls)) == ("partial", 2 * made)
    ended = resume(house.store, summary.run_id, limits=Limits(max_cost=1.0))
    assert (ended.status, len(house.calls)) == ("done", 12)
    assert ended.metrics["accuracy"].value == 1.0


def test_what_is_under_way_is_finished_and_kept(house, priced, go):
    summary, _ = go(batch_size=4, max_cost=CALL / 2)
    assert (summary.n_scored, summary.open, len(house.calls)) == (4, 8, 4)


def test_time_is_counted_from_the_first_attempt(house, go):
    clock = Clock()

    def slow(request):
        clock.now += 10.0
        return house.solve(request)

    house.answer = slow
    summary, notes = go(meter=Meter(Limits(max_time=25.0), clock))
    assert (summary.status, summary.n_scored) == ("partial", 3)
    assert any("--max-time 25 is reached: 30.0 s gone" in note for note in notes)


def test_a_limit_that_the_last_attempt_reaches_stops_nothing(house, priced, go):
    summary, notes = go(max_total_tokens=72)  # 12 calls of 6 tokens
    assert (summary.status, notes) == ("done", [])


def test_one_meter_serves_several_runs(house, priced, go):
    meter = Meter(Limits(max_total_tokens=60))
    first, _ = go(meter=meter, first=8)
    second, _ = go(meter=meter, seed=1)
    assert (first.status, second.n_scored, len(house.calls)) == ("done", 2, 10)


def test_retries_count_and_stay_open_at_the_limit(house, go):
    house.answer = lambda request: Output(
        text="", finish_reason="error", error="no line", error_kind="network", usage=Usage(5, 0)
    )
    summary, _ = go(max_total_tokens=1)
    assert (summary.n_counted, len(house.calls)) == (0, 1)
    house.answer = house.solve
    ended = resume(house.store, summary.run_id, limits=Limits(max_total_tokens=1000))
    assert (ended.status, ended.n_scored) == ("done", 12)


def test_a_call_that_never_reached_a_model_used_nothing(house, go):
    house.answer = lambda request: Output(
        text="", finish_reason="error", error="no line", error_kind="network"
    )
    summary, notes = go(max_total_tokens=1)
    assert summary.counts["error_harness"] == 12
    assert notes == []


def test_a_limit_holds_for_calls_side_by_side(house, priced, go, monkeypatch):
    lock = threading.Lock()

    def answer(request):
        with lock:
            return house.solve(request)

    house.answer = answer
    made = house.backend

    def connected(spec, options):
        backend = made(spec, options)
        backend.max_connections = 3
        return backend

    from harness.core import registry

    registry.backend("count")(connected)
    summary, _ = go(max_cost=3.5 * CALL)
    assert summary.status == "partial"
    assert 4 <= summary.n_scored <= 6  # four reach the limit, at most two more are under way
    assert summary.n_scored == len(house.calls)


@pytest.mark.parametrize("lacks", ["usage", "price"])
def test_a_limit_that_cannot_be_kept_is_said_once(house, priced, go, monkeypatch, lacks):
    if lacks == "usage":
        house.answer = lambda request: Output(text="1")
    else:
        monkeypatch.delenv("HARNESS_MODELS")
    summary, notes = go(max_cost=CALL)
    (line,) = notes
    assert "--max-cost cannot be kept" in line
    assert summary.n_scored == 12


def test_limits_are_no_part_of_the_key(house):
    plain = house.planned_keys()
    for limits in ({"max_cost": 1.0}, {"max_time": 1.0}, {"max_total_tokens": 1}):
        assert house.planned_keys(**limits) == plain


@pytest.mark.parametrize("name", ["max_cost", "max_time", "max_total_tokens"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_that_allows_nothing_is_refused(name, value):
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} must be above 0"):
        make_config(task="own/add", model="count:a", **{name: value})
