"""The page Model: scores, categories, cost and paired quantisations against hand values."""

from __future__ import annotations

import pytest
from statsmodels.stats.contingency_tables import mcnemar

from harness.store import snapshot, sync
from leaderboard.rows.board import board
from leaderboard.rows.model import category_scores, model_names, model_page

FULL = [1.0] * 12 + [0.0] * 8
# One item gained and seven lost against FULL.
FOUR = [0.0] * 7 + [1.0] * 5 + [1.0] + [0.0] * 7


@pytest.fixture
def quant_store(store, write):
    write(store, FULL)
    write(store, FOUR, quantisation="int4")
    write(store, FULL, quantisation="rtn4", simulated=True)
    write(store, [1.0] * 20, model="hf:b", quantisation="int4")
    sync(store)
    return store


def test_a_model_is_all_its_variants(quant_store):
    con = snapshot(quant_store)
    assert model_names(con) == ["hf:a", "hf:b"]
    page = model_page(con, "hf:a")
    assert [v.label for v in page.variants] == [
        "hf:a float32", "hf:a float32 int4", "hf:a float32 rtn4 simulated",
    ]  # fmt: skip
    assert len(page.run_ids) == 3


def test_scores_are_those_of_the_leaderboard(fit_store):
    con = snapshot(fit_store)
    (row,) = model_page(con, "hf:m4").scores
    (same,) = [r for r in board(con, (("demo/add", "1"),)).rows if r.model == "hf:m4"]
    assert (row.value, row.lo, row.hi, row.method) == (same.value, same.lo, same.hi, same.method)


def test_quantised_against_full(quant_store):
    rows = {row.label: row for row in model_page(snapshot(quant_store), "hf:a").quantised}
    row = rows["hf:a float32 int4"]
    assert (row.full, row.gained, row.lost, row.n_shared) == ("hf:a float32", 1, 7, 20)
    assert row.diff == pytest.approx(-6 / 20)
    exact = mcnemar([[0, 1], [7, 0]], exact=True).pvalue
    assert (row.p, row.test) == (pytest.approx(exact), "mcnemar")
    # Two comparisons are read together: Holm doubles the smaller p.
    assert row.p_adj == pytest.approx(2 * exact)
    same = rows["hf:a float32 rtn4 simulated"]
    assert (same.gained, same.lost, same.p) == (0, 0, 1.0)
    assert "simulated" in same.flags


def test_pairs_are_of_one_task_and_version(store, write):
    write(store, [1.0] * 6)
    write(store, [0.0] * 6, task="demo/mul")
    write(store, [1.0] * 6, quantisation="int4")
    sync(store)
    (row,) = model_page(snapshot(store), "hf:a").quantised
    # By item_id alone the six items of the other task would come in, each a flip.
    assert (row.task, row.n_shared, row.gained, row.lost) == ("demo/add", 6, 0, 0)


def test_a_model_without_a_full_variant_has_no_pairs(quant_store):
    assert model_page(snapshot(quant_store), "hf:b").quantised == []


def test_a_simulated_quantisation_has_no_memory_and_no_speed(quant_store):
    page = model_page(snapshot(quant_store), "hf:a")
    rows = {row.label: row for row in page.scores}
    for name in ("latency_ms", "tokens_per_s", "memory_gib"):
        assert getattr(rows["hf:a float32 rtn4 simulated"], name) is None
    # 20 answers of 5 tokens, their calls 10, 11, ... 29 ms
    assert rows["hf:a float32"].tokens_per_s == pytest.approx(100 / (sum(range(10, 30)) / 1000))
    assert rows["hf:a float32"].latency_ms == 19.5
    assert rows["hf:a float32"].cost_usd == pytest.approx(0.02)
    weights = {v.label: v.weight_gib for v in page.variants}
    assert weights["hf:a float32 rtn4 simulated"] is None


def test_categories(quant_store):
    con = snapshot(quant_store)
    key = model_page(con, "hf:a").variants[0].key
    easy, hard = category_scores(con, "demo/add", "1", "hf:a float32", key)
    # Items 0, 2, ... are easy: 6 of 10 right; Wilson, statsmodels proportion_confint(6, 10)
    assert (easy.category, hard.category) == ("easy", "hard")
    assert (easy.value, easy.lo, easy.hi) == pytest.approx((0.6, 0.3126738, 0.8318197), abs=1e-6)


def test_the_page_on_every_store(any_store, open_page):
    app = open_page("model", any_store)
    assert not app.exception
    assert app.title


def test_the_page_shows_flips_and_runs(quant_store, open_page):
    app = open_page("model", quant_store, model="hf:a")
    assert not app.exception
    frames = [frame.value for frame in app.dataframe]
    (pairs,) = [frame for frame in frames if "lost" in frame.columns]
    assert set(pairs["label"]) == {"hf:a float32 int4", "hf:a float32 rtn4 simulated"}
    (runs,) = [frame for frame in frames if "run_id" in frame.columns]
    assert len(runs) == 3
