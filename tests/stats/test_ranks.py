"""All pairs and rank intervals: against a loop of regressions, by hand, and under permutations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.intervals import estimate
from harness.stats.pairs import compare_items
from harness.stats.ranks import all_pairs, rank_table

steady = settings(deadline=None, derandomize=True)
NAN = float("nan")


@st.composite
def tables(draw, holes):
    """A table of items x models, with clusters of unequal size and perhaps missing cells."""
    n, k = draw(st.integers(8, 60)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.normal(0.5, 0.4, (n, k)) + rng.normal(0, 0.3, (n, 1))
    if holes:
        table[rng.random((n, k)) < draw(st.sampled_from([0.1, 0.5]))] = NAN
    clusters = rng.integers(0, draw(st.integers(4, n)), n).tolist()
    return table, [f"m{i}" for i in range(k)], draw(st.sampled_from([None, clusters]))


def check_against_loop(table, names, clusters):
    """Every pair is what a regression of its differences on a constant gives."""
    import statsmodels.api as sm

    found = all_pairs(table, names, clusters)
    groups = np.arange(len(table)) if clusters is None else np.array(clusters)
    for i in range(len(names)):
        for j in range(i):
            d = table[:, i] - table[:, j]
            there = ~np.isnan(d)
            n, g = int(there.sum()), len(set(groups[there].tolist()))
            assert (found.n_items[i, j], found.n_clusters[i, j]) == (n, g)
            assert found.comparable[i, j] == found.comparable[j, i] == (n >= 5 and g >= 3)
            assert (found.p[i, j] == found.p[j, i]) == found.comparable[i, j]
            if not found.comparable[i, j]:
                assert np.isnan([found.se[i, j], found.p[i, j], found.p_adj[i, j]]).all()
                continue
            fit = sm.OLS(d[there], np.ones(n)).fit(
                cov_type="cluster", cov_kwds={"groups": groups[there]}, use_t=True
            )
            assert found.diff[i, j] == pytest.approx(fit.params[0], abs=1e-10)
            assert found.diff[i, j] == -found.diff[j, i]
            assert found.se[i, j] == pytest.approx(fit.bse[0], abs=1e-10)
            assert found.p[i, j] == pytest.approx(fit.pvalues[0], abs=1e-10)
    return found


@settings(steady, max_examples=25)  # a loop of regressions is slow
@given(tables(holes=False))
def test_complete_tables_agree_with_statsmodels(case):
    check_against_loop(*case)


@settings(steady, max_examples=25)  # a loop of regressions is slow
@given(tables(holes=True))
def test_tables_with_holes_agree_with_statsmodels(case):
    found = check_against_loop(*case)
    family = [(i, j) for i, j in zip(*np.nonzero(np.triu(found.comparable, 1)), strict=True)]
    if family:
        from statsmodels.stats.multitest import multipletests

        theirs = multipletests([found.p[pair] for pair in family], method="holm")[1]
        assert [found.p_adj[pair] for pair in family] == pytest.approx(theirs.tolist(), abs=1e-10)


def test_holes_and_no_holes_are_one_formula():
    """One more item that nobody answered leads through the other code, to the same numbers."""
    rng = np.random.default_rng(1)
    table = (rng.random((90, 12)) < 0.6).astype(float)
    table[:, 3] = table[:, 4]
    names = [f"m{i}" for i in range(12)]
    clusters = [i // 4 for i in range(90)]
    one = all_pairs(table, names, clusters)
    other = all_pairs(np.vstack([table, np.full(12, NAN)]), names, [*clusters, 99])
    for field in ("diff", "se", "p", "p_adj", "n_items", "n_clusters", "comparable"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), atol=1e-12)


def test_pairs_agree_with_a_comparison_of_two():
    rng = np.random.default_rng(2)
    table = rng.random((300, 3))
    clusters = [i // 3 for i in range(300)]
    found = all_pairs(table, ["a", "b", "c"], clusters)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        two = compare_items(table[:, i], table[:, j], clusters)
        assert (found.diff[i, j], found.se[i, j], found.p[i, j]) == (
            pytest.approx(two.diff), pytest.approx(two.se), pytest.approx(two.p),
        )  # fmt: skip


def test_exact_ties_are_no_difference():
    rng = np.random.default_rng(3)
    table = rng.random((50, 3))
    table[:, 2] = table[:, 0]
    for scores in (table, np.vstack([table, [[NAN, 1.0, NAN]]])):
        found = all_pairs(scores, ["a", "b", "c"])
        assert (found.diff[0, 2], found.se[0, 2], found.p[0, 2], found.p_adj[0, 2]) == (0, 0, 1, 1)
    constant = all_pairs(np.ones((20, 2)), ["a", "b"])
    assert (constant.p == 1).all()


def test_the_same_difference_everywhere_has_the_p_of_sign_flips():
    """A is one better on each of 20 items: 2 of 2^20 sign vectors reach the sum."""
    table = np.array([[1.0, 0.0]] * 20)
    found = all_pairs(table, ["a", "b"])
    assert found.p[0, 1] == 2.0**-19
    assert all_pairs(table[:5], ["a", "b"]).p[0, 1] == 2 / 2**5 == compare_items([1] * 5, [0] * 5).p


def test_pairs_without_shared_items_separate_nobody():
    table = np.full((40, 3), NAN)
    table[:20, 0], table[:20, 1] = 1.0, np.arange(20) % 10 == 0
    table[20:, 2] = np.arange(20) % 9 == 0
    found = all_pairs(table, ["a", "b", "c"])
    assert found.n_items.tolist() == [[20, 20, 0], [20, 20, 0], [0, 0, 20]]
    assert np.isnan(found.diff[0, 2])
    assert found.p_adj[0, 1] == found.p[0, 1]  # a family of one
    rows = {row.model: row for row in rank_table(table, ["a", "b", "c"])}
    assert (rows["a"].rank_lo, rows["a"].rank_hi) == (1, 2)
    assert (rows["b"].rank_lo, rows["b"].rank_hi) == (2, 3)
    assert (rows["c"].rank_lo, rows["c"].rank_hi) == (1, 3)
    assert "not comparable" in rows["c"].notes
    assert "not comparable" not in rows["a"].notes


@pytest.mark.parametrize(
    ("n", "g", "ok"), [(4, 4, False), (5, 5, True), (9, 2, False), (9, 3, True)]
)
def test_five_items_and_three_clusters_are_needed(n, g, ok):
    table = np.random.default_rng(4).random((n, 2))
    found = all_pairs(table, ["a", "b"], [i % g for i in range(n)])
    assert found.comparable[0, 1] == ok
    assert np.isnan(found.p[0, 1]) != ok
    row = rank_table(table, ["a", "b"], [i % g for i in range(n)])[0]
    assert (row.rank_lo, row.rank_hi, row.tier) == (1, 2, 1) or ok


def test_ranks_and_tiers_by_hand():
    """a and b level, c far below both, d far below c; e differs from d by one item of 200."""
    right = {"a": 180, "b": 178, "c": 120, "d": 40, "e": 39}
    rng = np.random.default_rng(5)
    columns = [rng.permutation([1.0] * k + [0.0] * (200 - k)) for k in right.values()]
    rows = rank_table(np.column_stack(columns), list(right))
    assert [(row.model, row.rank_lo, row.rank_hi, row.tier) for row in rows] == [
        ("a", 1, 2, 1), ("b", 1, 2, 1), ("c", 3, 3, 2), ("d", 4, 5, 3), ("e", 4, 5, 3),
    ]  # fmt: skip
    for row, column in zip(rows, columns, strict=True):
        mean = estimate(column.tolist())
        assert (row.value, row.lo, row.hi, row.n_items) == (mean.value, mean.lo, mean.hi, 200)


def test_the_level_decides_who_is_apart():
    """Nine items for a and three for b of 100: p is 0.083, apart at 90 % and not at 95 %."""
    from scipy.stats import ttest_rel

    a = np.array([1.0] * 9 + [0.0] * 3 + [0.0] * 88)
    b = np.array([0.0] * 9 + [1.0] * 3 + [0.0] * 88)
    assert 0.05 < ttest_rel(a, b).pvalue < 0.1
    table = np.column_stack([a, b])
    assert [row.tier for row in rank_table(table, ["a", "b"])] == [1, 1]
    assert [row.tier for row in rank_table(table, ["a", "b"], level=0.9)] == [1, 2]


def five_models(seed=6):
    rng = np.random.default_rng(seed)
    table = (rng.random((240, 5)) < [0.9, 0.85, 0.6, 0.6, 0.2]).astype(float)
    table[:, 3] = table[:, 2]  # an exact tie
    return table, ["a", "b", "c", "d", "e"], [i // 4 for i in range(240)]


def as_sets(rows):
    return {row.model: (row.rank_lo, row.rank_hi, row.tier, round(row.value, 9)) for row in rows}


@settings(steady, max_examples=40)
@given(st.permutations(range(5)), st.permutations(range(240)))
def test_order_of_models_and_items_does_not_matter(models, items):
    table, names, clusters = five_models()
    base = as_sets(rank_table(table, names, clusters))
    assert base["c"] == base["d"]
    shuffled = table[np.ix_(items, models)]
    named = [names[m] for m in models]
    assert as_sets(rank_table(shuffled, named, [f"c{clusters[i]}" for i in items])) == base


@steady
@given(st.permutations(range(3)))
def test_no_order_among_tied_leaders(order):
    """Two leaders of equal value, one of which separates from the third: listing order is mute.

    a and c agree on all but some items (a small error of their difference), b is independent.
    """
    rng = np.random.default_rng(7)
    a = np.array([1.0] * 150 + [0.0] * 150)
    c = a.copy()
    c[:14] = 0.0
    b = rng.permutation(a)
    table, names = np.column_stack([a, b, c]), ["a", "b", "c"]
    pairs = all_pairs(table, names)
    assert pairs.p_adj[0, 2] < 0.05 < pairs.p_adj[1, 2]
    rows = rank_table(table[:, list(order)], [names[i] for i in order])
    found = {row.model: (row.rank_lo, row.rank_hi, row.tier) for row in rows}
    assert found == {"a": (1, 2, 1), "b": (1, 3, 1), "c": (2, 3, 1)}


def test_an_order_printed_for_tied_models_is_caught():
    """What a bare 1..N would say: equal columns get different numbers. Here they may not."""
    table, names, clusters = five_models()
    rows = rank_table(table, names, clusters)
    bare = {row.model: place for place, row in enumerate(rows, 1)}
    tied = {row.model: (row.rank_lo, row.rank_hi) for row in rows if row.model in ("c", "d")}
    assert bare["c"] != bare["d"]
    assert tied["c"] == tied["d"]
    assert all(lo <= bare[model] <= hi for model, (lo, hi) in tied.items())


def test_a_mock_in_the_rank_set_is_caught():
    """A baseline that gets everything right changes no rank, no tier and no adjusted p value."""
    table, names, clusters = five_models()
    base, base_pairs = rank_table(table, names, clusters), all_pairs(table, names, clusters)
    more = np.column_stack([np.ones(240), table, np.zeros(240)])
    mocks = ["mock:gold", "mock:empty"]
    wide = [mocks[0], *names, mocks[1]]
    rows = rank_table(more, wide, clusters, baselines=mocks)
    assert [row for row in rows if row.model not in mocks] == base
    pairs = all_pairs(more, wide, clusters, baselines=mocks)
    np.testing.assert_allclose(pairs.p_adj[1:6, 1:6], base_pairs.p_adj, atol=1e-12)
    gold = rows[0]
    assert (gold.model, gold.rank_lo, gold.rank_hi, gold.tier) == ("mock:gold", None, None, None)
    assert {"baseline", "boundary"} <= set(gold.notes)
    assert pairs.comparable[0, 1]
    assert pairs.p[0, 5] < 1e-6
    assert np.isnan(pairs.p_adj[0, 1:]).all()
    # The planted fault: named as models they push everyone down.
    fault = {row.model: row.rank_lo for row in rank_table(more, wide, clusters)}
    assert fault["a"] == 2


def test_one_cluster_separates_nobody():
    table, names, _ = five_models()
    rows = rank_table(table, names, ["x"] * 240)
    assert {(row.rank_lo, row.rank_hi, row.tier, row.lo) for row in rows} == {(1, 5, 1, None)}


def test_models_without_items_come_last_and_have_no_number():
    table, names, _ = five_models()
    rows = rank_table(np.column_stack([np.full(240, NAN), table]), ["none", *names])
    last = rows[-1]
    assert (last.model, last.value, last.n_items) == ("none", None, 0)
    assert (last.rank_lo, last.rank_hi) == (1, 6)
    assert {"no items", "not comparable"} <= set(last.notes)
    only = rank_table(np.full((3, 2), NAN), ["a", "b"])
    assert [(row.rank_lo, row.rank_hi, row.tier) for row in only] == [(1, 2, 1)] * 2
    assert [row.tier for row in rank_table(np.ones((6, 1)), ["a"])] == [1]


def test_broken_tables_are_refused():
    table = np.ones((6, 2))
    for bad, names, options, message in (
        (table, ["a"], {}, "items x 1 models"),
        (table, ["a", "a"], {}, "named twice"),
        (table * np.inf, ["a", "b"], {}, "not finite"),
        (table, ["a", "b"], {"baselines": ["c"]}, "names of models"),
        (table, ["a", "b"], {"baselines": "a"}, "names of models"),
        (table, ["a", "b"], {"clusters": ["x"]}, "6 items, but 1 clusters"),
    ):
        for call in (all_pairs, rank_table):
            with pytest.raises(ValueError, match=message):
                call(bad, names, **options)
    with pytest.raises(ValueError, match="other models"):
        rank_table(table, ["a", "b"], pairs=all_pairs(table, ["a", "c"]))
    with pytest.raises(ValueError, match="level"):
        rank_table(table, ["a", "b"], level=1.0)
