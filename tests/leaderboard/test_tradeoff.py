"""The page Trade-off: prices by hand, and no memory or speed for what is simulated."""

from __future__ import annotations

import json

import pytest

from harness.store import snapshot, sync
from harness.store.publish import publish
from harness.store.schema import connect
from leaderboard.charts.tradeoff import AXES, tradeoff_plot
from leaderboard.rows.board import board
from leaderboard.rows.tradeoff import trade_row, tradeoff

TASK = (("demo/add", "1"),)


@pytest.fixture
def priced_store(store, write):
    """A full model, a packed and a simulated quantisation; every call took 2 GiB."""
    write(store, [1.0] * 8 + [0.0] * 2)
    write(store, [1.0] * 6 + [0.0] * 4, quantisation="int4")
    write(store, [1.0] * 7 + [0.0] * 3, quantisation="rtn4", simulated=True)
    write(store, [1.0] * 10, model="mock:gold")
    sync(store)
    with connect(store.database) as con:
        con.execute("UPDATE samples SET peak_mem_bytes = 2147483648")
    publish(store)
    return store


def by_variant(store, against="bits"):
    return {
        row.variant: row for row in tradeoff(snapshot(store), TASK, against) if not row.baseline
    }


def test_prices_by_hand(priced_store):
    row = by_variant(priced_store)["float32 int4"]
    # Ten answers of 5 tokens in 10 to 19 ms; 0.001 USD a call
    assert row.tokens_per_s == pytest.approx(50 / 0.145)
    assert row.cost_usd == pytest.approx(0.01)
    assert (row.memory_gib, row.bits, row.value) == (2.0, 4.0, 0.6)


def test_scores_are_those_of_the_leaderboard(fit_store):
    con = snapshot(fit_store)
    expected = {row.model: (row.value, row.lo, row.hi) for row in board(con, TASK).rows}
    rows = tradeoff(con, TASK, "cost_usd")
    assert {row.model: (row.value, row.lo, row.hi) for row in rows} == expected


def test_a_simulated_quantisation_has_no_memory_and_no_speed(priced_store):
    row = by_variant(priced_store)["float32 rtn4 simulated"]
    assert row.simulated
    assert (row.memory_gib, row.tokens_per_s) == (None, None)
    assert (row.bits, row.value) == (4.0, 0.7)
    rows = [trade_row(row) for row in tradeoff(snapshot(priced_store), TASK, "memory_gib")]
    for against in ("memory_gib", "tokens_per_s"):
        drawn = json.dumps(tradeoff_plot(rows, against).to_dict()["datasets"])
        assert "float32 int4" in drawn
        assert "rtn4" not in drawn


def test_the_front_by_hand(priced_store):
    # At 4 bits the simulated one (0.7) beats the packed one (0.6); the full one tells no bits.
    front = {variant for variant, row in by_variant(priced_store).items() if row.front}
    assert front == {"float32 rtn4 simulated"}
    # Memory is the same: the best score wins, and the simulated one is not in it.
    rows = by_variant(priced_store, "memory_gib")
    assert {variant for variant, row in rows.items() if row.front} == {"float32"}


def test_a_baseline_is_never_on_the_front(priced_store):
    for against in AXES:
        rows = tradeoff(snapshot(priced_store), TASK, against)
        assert not any(row.front for row in rows if row.baseline)


def test_draws_of_a_strategy_are_paid_for_reuse_is_not_and_runs_without_data_are_out(store, write):
    write(store, [1.0] * 4)
    write(store, [1.0] * 4)
    write(store, [1.0] * 4, strategy="vote?n=3", epochs=3, model="hf:b")
    write(store, [0.0] * 4, model="hf:c", config={"task": "demo/add", "no_data": True})
    sync(store)
    rows = {row.model: row for row in tradeoff(snapshot(store), TASK, "cost_usd")}
    assert set(rows) == {"hf:a", "hf:b"}
    # Run twice, and still four items at 0.001 USD; a vote of three pays three times as much.
    assert rows["hf:a"].cost_usd == pytest.approx(0.004)
    assert rows["hf:b"].cost_usd == pytest.approx(0.012)


def test_prices_of_two_versions_of_a_task_are_not_mixed(store, write):
    write(store, [1.0] * 4)
    write(store, [1.0] * 8, version="2")
    sync(store)
    both = (("demo/add", "1"), ("demo/add", "2"))
    (row,) = tradeoff(snapshot(store), both, "cost_usd")
    assert row.cost_usd == pytest.approx(0.012)


@pytest.mark.parametrize("against", ["bits", "memory", "speed", "cost"])
def test_the_page_on_every_store(any_store, open_page, against):
    app = open_page("tradeoff", any_store, against=against)
    assert not app.exception
    assert app.title


def test_the_page_shows_no_memory_of_a_simulated_one(priced_store, open_page):
    frame = open_page("tradeoff", priced_store, against="memory").dataframe[0].value
    cells = frame.set_index("label")
    assert cells.loc["hf:a float32", "front"] == "front"
    assert cells.loc["hf:a float32", "memory_gib"] == 2.0
    assert cells.loc["hf:a float32 rtn4 simulated", ["memory_gib", "tokens_per_s"]].isna().all()
