"""Leaderboard rows: the numbers of the statistics package, ranks that never claim too much."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, ttest_1samp
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from harness.stats.intervals import estimate
from harness.stats.ranks import rank_table
from harness.store import snapshot, sync
from leaderboard.rows.board import board, labels, task_versions
from leaderboard.rows.ranks import TaskTable, estimates, over_tasks, pairs_of, standings


def rows_of(store, *tasks):
    con = snapshot(store)
    chosen = tasks or tuple((t.task, t.version) for t in task_versions(con) if t.newest)
    return board(con, tuple(chosen))


def test_one_run(one_store):
    (row,) = rows_of(one_store).rows
    # Wilson's interval of 3 in 4, statsmodels: proportion_confint(3, 4, method="wilson")
    assert (row.value, row.method) == (0.75, "wilson")
    assert (row.lo, row.hi) == pytest.approx((0.3006418, 0.9544127), abs=1e-6)
    assert (row.rank_lo, row.rank_hi, row.tier) == (1, 1, 1)
    assert (row.n_planned, row.n_scored, row.n_items, row.n_runs) == (4, 4, 4, 1)
    # latencies are 10, 11, 12, 13 ms; each call cost 0.001 USD and took 10 tokens in, 5 out
    assert row.latency_ms == 11.5
    assert row.cost_usd == pytest.approx(0.004)
    assert (row.tokens_in, row.tokens_out) == (40, 20)


def test_every_status_is_counted_and_they_sum_to_the_plan(partial_store):
    rows = {row.model: row for row in rows_of(partial_store).rows}
    row = rows["hf:a"]
    names = ("n_scored", "error", "error_harness", "timeout", "truncated", "refused", "unscored",
             "unavailable", "open")  # fmt: skip
    assert [getattr(row, name) for name in names] == [1, 1, 1, 1, 1, 1, 1, 1, 2]
    for each in rows.values():
        assert sum(getattr(each, name) for name in names) == each.n_planned
    # right: the scored and the truncated one; wrong: error, timeout, refused; the rest is left out
    assert (row.value, row.n_counted) == (2 / 5, 5)
    assert "partial" in row.flags
    assert "partial" not in rows["hf:b"].flags


def test_a_baseline_has_no_rank_and_is_in_nobodys_way(partial_store):
    rows = rows_of(partial_store).rows
    assert [row.model for row in rows][-1] == "mock:gold"
    gold = rows[-1]
    assert (gold.value, gold.rank_lo, gold.rank_hi, gold.tier) == (1.0, None, None, None)
    assert "baseline" in gold.flags
    assert {(row.rank_lo, row.rank_hi) for row in rows[:-1]} == {(1, 2)}


def test_ties_are_one_tier_with_every_rank_open(ties_store):
    found = rows_of(ties_store)
    assert {(row.rank_lo, row.rank_hi, row.tier) for row in found.rows} == {(1, 6, 1)}
    cells = {(cell.rank_lo, cell.rank_hi) for cells in found.cells for cell in cells}
    assert cells == {(1, 6)}


def test_ranks_are_those_of_the_statistics_package(many_store):
    con = snapshot(many_store)
    items = con.execute(
        "SELECT item_id, variant_id, mean FROM item_scores WHERE task_id = 'many/task3' ORDER BY ALL"
    ).fetchall()
    names = sorted({variant for _, variant, _ in items})
    table = np.array([mean for _, _, mean in items]).reshape(12, 40)
    expected = {row.model: row for row in rank_table(table, names)}
    found = rows_of(many_store, ("many/task3", "1")).rows
    assert len(found) == 40
    for row in found:
        other = expected[row.variant_id]
        assert (row.rank_lo, row.rank_hi, row.tier) == (other.rank_lo, other.rank_hi, other.tier)
        assert (row.value, row.lo, row.hi) == pytest.approx((other.value, other.lo, other.hi))


def test_the_planted_order_is_inside_the_rank_intervals_of_all_tasks(many_store):
    # Models were made better from hf:m0 to hf:m39: hf:m39 has true rank 1.
    for row in rows_of(many_store).rows:
        assert row.rank_lo <= 40 - int(row.model.removeprefix("hf:m")) <= row.rank_hi
    assert len({row.tier for row in rows_of(many_store).rows}) > 1


def test_items_of_two_tasks_with_one_name_are_two_items(many_store):
    # All seven tasks name their items demo-0 ... demo-11.
    assert {row.n_items for row in rows_of(many_store).rows} == {84}


def test_versions_of_a_task_are_never_mixed(store, write):
    write(store, [1.0, 1.0], version="1")
    write(store, [0.0, 0.0], version="2")
    sync(store)
    found = task_versions(snapshot(store))
    assert [(t.version, t.label, t.newest) for t in found] == [
        ("2", "demo/add", True), ("1", "demo/add (version 1)", False),
    ]  # fmt: skip
    assert [row.value for row in rows_of(store).rows] == [0.0]
    assert [row.value for row in rows_of(store, ("demo/add", "1")).rows] == [1.0]


def test_a_model_without_every_task_has_no_mean_and_no_rank(store, write):
    for task in ("demo/add", "demo/mul"):
        for model in ("hf:a", "hf:b"):
            write(store, [1.0, 0.0] * 5, model=model, task=task)
    write(store, [1.0] * 10, model="hf:best", task="demo/add")
    sync(store)
    rows = {row.model: row for row in rows_of(store).rows}
    assert (rows["hf:best"].value, rows["hf:best"].rank_lo, rows["hf:best"].n_tasks) == (
        None,
        None,
        1,
    )
    assert "incomplete" in rows["hf:best"].flags
    assert {(rows[m].rank_lo, rows[m].rank_hi) for m in ("hf:a", "hf:b")} == {(1, 2)}
    alone = {row.model: row for row in rows_of(store, ("demo/add", "1")).rows}
    # 5 of 10 items differ: t(9) = 3, p = 0.01496, and Holm's factor is 3 for both pairs: below 0.05
    assert (alone["hf:best"].value, alone["hf:best"].rank_hi) == (1.0, 1)
    assert {(alone[m].rank_lo, alone[m].rank_hi) for m in ("hf:a", "hf:b")} == {(2, 3)}


def test_a_filter_of_tasks_changes_ranks_but_unscored_answers_are_no_zero(unscored_store):
    (row,) = rows_of(unscored_store).rows
    assert (row.value, row.lo, row.rank_lo, row.unscored, row.n_items) == (None, None, None, 3, 0)


def test_simulated_quantisation_claims_no_speed(store, write):
    write(store, [1.0, 0.0], quantisation="int4", simulated=True)
    write(store, [1.0, 0.0], quantisation="int8")
    sync(store)
    rows = {row.quantisation: row for row in rows_of(store).rows}
    assert rows["int4 simulated"].latency_ms is None
    assert "simulated" in rows["int4 simulated"].flags
    assert rows["int8"].latency_ms == 10.5


def test_runs_of_a_variant_are_one_row_and_a_later_whole_run_mends_a_partial_one(store, write):
    write(store, [1.0], n_planned=2, finish=False, run_id="20260101T000000000000-00000001")
    sync(store)
    (row,) = rows_of(store).rows
    assert "partial" in row.flags
    write(store, [1.0], run_id="20260101T000000000000-00000002")
    sync(store)
    assert "partial" in rows_of(store).rows[0].flags  # it planned less than was left open
    write(store, [1.0, 0.0], run_id="20260101T000000000000-00000003")
    sync(store)
    (row,) = rows_of(store).rows
    assert "partial" not in row.flags
    assert (row.n_runs, row.n_planned, row.n_scored, row.open) == (3, 5, 4, 1)


def test_runs_without_the_data_are_no_answers(store, write):
    write(store, [1.0, 1.0])
    write(store, [0.0, 0.0], config={"no_data": True})
    sync(store)
    (row,) = rows_of(store).rows
    assert (row.value, row.n_runs, row.n_planned) == (1.0, 1, 2)


def test_a_strategy_is_a_row_of_its_own(store, write):
    write(store, [1.0, 0.0])
    write(store, [1.0, 1.0], strategy="vote?n=1")
    sync(store)
    rows = rows_of(store).rows
    assert sorted(row.strategy for row in rows) == ["single", "vote?n=1"]
    assert len(set(labels(rows))) == 2
    assert all("hf:a" in name for name in labels(rows))


@given(
    st.lists(st.sampled_from([0.0, 1.0, 0.5, math.nan]), min_size=1, max_size=24),
    st.integers(1, 6), st.booleans(),
)  # fmt: skip
def test_estimates_of_a_table_are_those_of_single_columns(values, n_clusters, binary):
    column = np.array(values)
    if binary:
        column = np.where(column == 0.5, 1.0, column)
    codes = np.arange(len(column)) % n_clusters
    if n_clusters == 6:
        codes = np.arange(len(column))
    (found,) = estimates(TaskTable(column[:, None], codes.astype(np.int64)))
    there = ~np.isnan(column)
    expected = estimate(column[there].tolist(), codes[there].tolist())
    assert (found.method, found.n_items, found.n_clusters, found.notes) == (
        expected.method, expected.n_items, expected.n_clusters, expected.notes,
    )  # fmt: skip
    for name in ("value", "se", "lo", "hi"):
        ours, other = getattr(found, name), getattr(expected, name)
        assert (ours is None) == (other is None)
        assert ours is None or ours == pytest.approx(other, abs=1e-12)


def test_the_clustered_interval_is_that_of_statsmodels():
    rng = np.random.default_rng(3)
    scores, groups = rng.random(60), np.repeat(np.arange(12), 5)
    (found,) = estimates(TaskTable(scores[:, None], groups))
    fitted = sm.OLS(scores, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    # statsmodels scales by (n - 1) / (n - k) as well, which is 1 for one column
    assert found.se == pytest.approx(fitted.bse[0], rel=1e-12)
    assert (found.lo, found.hi) == pytest.approx(tuple(fitted.conf_int()[0]), rel=1e-10)


def test_the_mean_over_tasks_by_hand():
    # Two tasks of 4 and 9 items: sample variances s^2 / n add up, Welch and Satterthwaite give the
    # degrees of freedom; scipy's own Welch test of a sum is its test of the difference x - (-y).
    x, y = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.2, 0.9, 0.5, 0.4, 0.7, 0.6, 0.1, 0.3, 0.8])
    parts = [estimates(TaskTable(v[:, None], np.arange(len(v)))) for v in (x, y)]
    (found,) = over_tasks(parts)
    from scipy.stats import ttest_ind

    welch = ttest_ind(x, -y, equal_var=False).confidence_interval(0.95)
    assert found.value == pytest.approx((x.mean() + y.mean()) / 2)
    assert (found.lo, found.hi) == pytest.approx((welch.low / 2, welch.high / 2), rel=1e-10)


@pytest.mark.parametrize("right", [(0, 0), (1, 1), (0, 1)])
def test_all_wrong_and_all_right_have_an_interval_over_tasks(right):
    n = (40, 90)
    parts = [
        estimates(TaskTable(np.full((k, 1), float(r)), np.arange(k)))
        for k, r in zip(n, right, strict=True)
    ]
    (found,) = over_tasks(parts)
    mean = sum(right) / 2
    ends = [proportion_confint(k * r, k, method="wilson") for k, r in zip(n, right, strict=True)]
    # Zou and Donner (2008): distances from the scores add up in squares, each with its weight of 1/2.
    below = sum(((r - lo) / 2) ** 2 for r, (lo, _) in zip(right, ends, strict=True)) ** 0.5
    above = sum(((hi - r) / 2) ** 2 for r, (_, hi) in zip(right, ends, strict=True)) ** 0.5
    assert (found.value, found.method) == (mean, "macro-wilson")
    assert (found.lo, found.hi) == pytest.approx((mean - below, mean + above), abs=1e-12)
    if right == (0, 0):
        # Every mean success under which 130 misses in a row are no surprise lies inside.
        assert found.lo == 0
        assert found.hi > beta.ppf(0.975, 1, sum(n))


def test_nothing_that_varies_on_one_task_only_has_no_interval_made_up():
    one = estimates(TaskTable(np.zeros((40, 1)), np.arange(40)))
    flat = estimates(TaskTable(np.full((40, 1), 0.5), np.arange(40)))
    (found,) = over_tasks([one, flat])
    assert (found.value, found.lo, found.hi, found.method) == (0.25, None, None, "macro-t")


def test_pairs_over_two_tasks_by_hand():
    # a is better than b by the same kind of noisy margin on both tasks; only together it is enough.
    a1 = np.array([1, 1, 1, 1, 0, 1, 1, 1, 0, 1.0])
    b1 = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 0.0])
    table = TaskTable(np.stack([a1, b1], axis=1), np.arange(10))
    none = np.zeros(2, dtype=bool)
    means = estimates(table)
    pairs = pairs_of(table, none)
    p_one = ttest_1samp(a1 - b1, 0).pvalue
    d = a1 - b1
    se = d.std(ddof=1) / np.sqrt(10) / np.sqrt(2)
    p_two = 2 * student.sf(d.mean() / se, 18)  # equal variances: 9 + 9 degrees of freedom
    assert p_one > 0.01 > p_two
    alone = standings([pairs], means, none)
    both = standings([pairs, pairs], over_tasks([means, means]), none)
    assert (alone[1].rank_lo, both[1].rank_lo) == (1 + (p_one <= 0.05), 2)


def test_nothing_differs_nothing_is_separated():
    # No real difference between 12 models on three tasks: at most 5 % of the tables may show two tiers.
    rng = np.random.default_rng(11)
    several = 0
    none = np.zeros(12, dtype=bool)
    for _ in range(200):
        tables = [
            TaskTable((rng.random((40, 12)) < 0.5).astype(float), np.arange(40)) for _ in range(3)
        ]
        means = over_tasks([estimates(table) for table in tables])
        found = standings([pairs_of(table, none) for table in tables], means, none)
        several += len({s.tier for s in found}) > 1
    assert several <= 20  # 5 % of 200 is 10; 20 lies three standard errors above


def test_items_that_were_chosen_are_no_score(store, write):
    write(store, [1.0, 1.0, 1.0], model="hf:a", config={"adaptive": True})
    write(store, [1.0, 0.0], model="hf:b")
    write(store, [0.0, 0.0, 0.0], model="hf:b", config={"adaptive": True})
    sync(store)
    (row,) = rows_of(store).rows
    # Items 0 and 1 were asked for their own sake and count; item 2 was only chosen.
    assert (row.model, row.n_items, row.n_planned, row.n_runs) == ("hf:b", 2, 2, 1)
