"""Paired tests against statsmodels and scipy, published vectors, and their invariances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.stats.pairs import (
    benjamini_hochberg,
    compare_items,
    holm,
    holm_adjusted,
    mcnemar_exact,
    sign_flip_p,
)
from harness.stats.power import mde_paired

# The same draws each time, and no clock: a busy machine must not fail a test.
steady = settings(deadline=None, derandomize=True)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=50)


@st.composite
def clustered_scores(draw, least=5):
    """Scores of two models and the cluster of each item; clusters of unequal size."""
    n = draw(st.integers(least, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    clusters = rng.integers(0, draw(st.integers(2, n)), n)
    shift = rng.normal(0, 0.3, clusters.max() + 1)[clusters]
    return rng.normal(0.5, 1, n) + shift, rng.normal(0.4, 1, n), clusters


def no_nan(found):
    numbers = (found.diff, found.se, found.lo, found.hi, found.p, found.mcnemar_p, found.mde)
    return all(number is None or math.isfinite(number) for number in numbers)


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(10, 4, 0.179565), (15, 5, 0.041389), (6, 0, 0.03125), (5, 0, 0.0625)]
)
def test_mcnemar_vectors(gained, lost, p):
    assert mcnemar_exact(gained, lost) == pytest.approx(p, abs=5e-7)
    assert mcnemar_exact(lost, gained) == mcnemar_exact(gained, lost)


@steady
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_agrees_with_statsmodels(gained, lost):
    from statsmodels.stats.contingency_tables import mcnemar

    theirs = mcnemar([[7, gained], [lost, 5]], exact=True).pvalue
    assert mcnemar_exact(gained, lost) == pytest.approx(theirs, abs=1e-10)


def test_corrections_vectors():
    p = [0.001, 0.01, 0.02, 0.03, 0.2]
    assert holm(p) == pytest.approx([0.005, 0.04, 0.06, 0.06, 0.2])
    assert benjamini_hochberg(p) == pytest.approx([0.005, 0.025, 0.033333, 0.0375, 0.2], abs=5e-7)


@settings(steady, max_examples=30)  # multipletests collects garbage at each call
@given(P_VALUES)
def test_corrections_agree_with_statsmodels_and_scipy(p):
    from statsmodels.stats.multitest import multipletests

    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-10)
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p), abs=1e-10)


def test_corrections_refuse_what_is_no_p_value():
    assert holm([]).tolist() == []
    for correct in (holm, benjamini_hochberg):
        for bad in ([0.5, float("nan")], [1.2], [-0.1], [[0.1]]):
            with pytest.raises(ValueError, match="p values"):
                correct(bad)


@steady
@given(clustered_scores())
def test_difference_agrees_with_statsmodels(data):
    import statsmodels.api as sm

    a, b, clusters = data
    if len(set(clusters.tolist())) < 2:
        return
    fit = sm.OLS(a - b, np.ones(len(a))).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    found = compare_items(a, b, clusters.tolist())
    assert found.diff == pytest.approx(fit.params[0], abs=1e-10)
    assert found.se == pytest.approx(fit.bse[0], abs=1e-10)
    assert (found.lo, found.hi) == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-8)


@pytest.mark.parametrize("clustered", [False, True])
def test_large_tests_are_t_tests(clustered):
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    a, b = rng.normal(0.1, 1, 300), rng.normal(0, 1, 300)
    if clustered:
        groups = rng.integers(0, 80, 300)
        fit = sm.OLS(a - b, np.ones(300)).fit(
            cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
        )
        found, theirs, test = compare_items(a, b, groups.tolist()), fit.pvalues[0], "cluster-t"
    else:
        found, theirs, test = compare_items(a, b), stats.ttest_rel(a, b).pvalue, "t"
    assert (found.p, found.test) == (pytest.approx(theirs, abs=1e-10), test)


@steady
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=10))
def test_all_sign_vectors_agree_with_scipy(d):
    theirs = stats.permutation_test(
        (np.array(d), np.zeros(len(d))), lambda x, y, axis: (x - y).sum(axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=np.inf,
    ).pvalue  # fmt: skip
    # scipy doubles the smaller tail; the two agree since the law is symmetric.
    assert sign_flip_p(d, seed=0) == pytest.approx(min(theirs, 1), abs=1e-10)


def test_drawn_sign_vectors_agree_with_scipy():
    rng = np.random.default_rng(4)
    d = rng.normal(0.25, 1, 40)
    theirs = stats.permutation_test(
        (d, np.zeros(40)), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=99_999, rng=rng,
    ).pvalue  # fmt: skip
    p = sign_flip_p(d, seed=1, draws=99_999)
    assert p == pytest.approx(theirs, abs=4 * math.sqrt(2 * theirs * (1 - theirs) / 99_999))
    assert sign_flip_p(d, seed=1) == sign_flip_p(d, seed=1) != sign_flip_p(d, seed=2)


def test_sign_flips_by_hand():
    # Six equal signs: only all + and all - reach the sum.
    assert sign_flip_p([1.0] * 6, seed=0) == 2 / 64
    # 20 equal signs: no drawn vector reaches it (chance 1e-2 in 9,999), so the + 1 alone is left.
    assert sign_flip_p([1.0] * 20, seed=0) == 1 / 10_000
    assert sign_flip_p([0.0] * 5, seed=0) == sign_flip_p([0.0] * 50, seed=0) == 1.0
    # 0.1 + 0.2 - 0.3 is not 0 to the last bit; all eight vectors of equal size still count.
    assert sign_flip_p([0.1, 0.2, -0.3], seed=0) == 1.0


@pytest.mark.parametrize("sums", [[], [[1.0]], [float("nan")], [float("inf"), 1]])
def test_sign_flips_refuse_broken_sums(sums):
    with pytest.raises(ValueError, match="finite sum"):
        sign_flip_p(sums, seed=0)
    with pytest.raises(ValueError, match="draws = 0"):
        sign_flip_p([1.0], seed=0, draws=0)


def test_which_test_gives_p():
    rng = np.random.default_rng(5)
    right = rng.integers(0, 2, (2, 120)).astype(float)
    real = rng.random((2, 120))
    tens = [i // 10 for i in range(120)]
    twos = [i // 2 for i in range(120)]
    cases = [
        (right[:, :30], None, "mcnemar"),
        (right, None, "mcnemar"),
        (real[:, :49], None, "sign-flip"),
        (real[:, :50], None, "t"),
        (right, tens, "sign-flip"),
        (right, twos, "cluster-t"),
        (real, twos, "cluster-t"),
    ]
    for (a, b), clusters, test in cases:
        found = compare_items(a, b, clusters)
        assert found.test == test
        assert (found.mcnemar_p is None) == (a is real[0] or not set(a.tolist()) <= {0.0, 1.0})
        assert found.p_adj is None
    beside = compare_items(*right, twos)
    only_a, only_b = int((right[0] > right[1]).sum()), int((right[0] < right[1]).sum())
    assert beside.mcnemar_p == mcnemar_exact(only_a, only_b)


@steady
@given(clustered_scores(), st.booleans())
def test_a_against_b_is_minus_b_against_a(data, binary):
    a, b, clusters = data
    if binary:
        a, b = (a > 0.5).astype(float), (b > 0.5).astype(float)
    one = compare_items(a, b, clusters.tolist())
    other = compare_items(b, a, clusters.tolist())
    assert one.diff == -other.diff
    assert (one.p, one.se, one.mcnemar_p, one.mde, one.n_clusters) == (
        other.p, other.se, other.mcnemar_p, other.mde, other.n_clusters,
    )  # fmt: skip
    assert (one.a, one.b) == (other.b, other.a)
    if one.lo is not None:
        assert (one.lo, one.hi) == pytest.approx((-other.hi, -other.lo))
    assert no_nan(one)


@steady
@given(clustered_scores(), st.randoms(use_true_random=False))
def test_order_of_items_and_names_of_clusters_do_not_matter(data, random):
    a, b, clusters = data
    order = list(range(len(a)))
    random.shuffle(order)
    one = compare_items(a, b, clusters.tolist())
    other = compare_items(a[order], b[order], [f"c{c}" for c in clusters[order]])
    assert (one.diff, one.n_clusters) == (pytest.approx(other.diff, abs=1e-12), other.n_clusters)
    if one.se is not None:
        assert one.se == pytest.approx(other.se, abs=1e-12)
    if one.n_clusters <= 13:
        assert one.p == pytest.approx(other.p, abs=1e-12)


def test_one_cluster_gives_no_interval():
    found = compare_items([1, 0, 1, 1], [0, 0, 1, 0], ["a"] * 4)
    assert (found.se, found.lo, found.hi, found.mde) == (None, None, None, None)
    assert (found.diff, found.p, found.notes) == (0.5, 1.0, ("one cluster",))


@pytest.mark.parametrize("n", [1, 5, 30, 200])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.3])
def test_equal_answers_are_no_difference(n, clustered, value):
    scores = [value, 0.0, value, 1.0] * n
    clusters = [i // 2 for i in range(4 * n)] if clustered else None
    found = compare_items(scores, scores, clusters)
    assert (found.diff, found.p, found.mde) == (0.0, 1.0, None)
    assert "boundary" in found.notes
    assert no_nan(found)
    if value in (0.0, 1.0):
        # Nothing else seen on g units: up to Wilson's upper end of 0 in g may be otherwise.
        g = 2 * n if clustered else 4 * n
        top = 1.959963984540054**2 / (g + 1.959963984540054**2)
        assert (found.lo, found.hi) == pytest.approx((-top, top))
    else:
        assert (found.lo, found.hi) == (None, None)


def test_one_right_everywhere_and_the_other_nowhere():
    found = compare_items([1] * 60, [0] * 60)
    assert (found.diff, found.hi, found.p) == (1.0, 1.0, pytest.approx(2 * 0.5**60))
    assert found.lo == pytest.approx(1 - 2 * (1 - 0.939828), abs=2e-6)
    # The same difference in every cluster leaves no spread to compare with; p is from the signs.
    found = compare_items([0.9, 0.9] * 40, [0.4, 0.4] * 40, [i // 2 for i in range(80)])
    assert (found.test, found.p, found.lo) == ("sign-flip", 1 / 10_000, None)


def test_only_shared_items_count():
    nan = float("nan")
    a, b = [1, nan, 0, 1, 1, 0], [0, 1, nan, 1, 0, 1]
    found = compare_items(a, b, ["x", "x", "y", "y", "z", "z"])
    assert found == compare_items([1, 1, 1, 0], [0, 1, 0, 1], ["x", "y", "z", "z"])
    assert (found.n_items, found.n_clusters, found.a, found.b) == (4, 3, 0.75, 0.5)
    nothing = compare_items([nan, 1], [1, nan])
    assert (nothing.diff, nothing.p, nothing.n_items, nothing.test) == (None, None, 0, "none")
    assert nothing.notes == ("no items",)


def test_broken_scores_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        compare_items([1, float("inf")], [0, 1])
    with pytest.raises(ValueError, match="same items"):
        compare_items([1, 0], [0, 1, 1])
    with pytest.raises(ValueError, match="2 items, but 1 clusters"):
        compare_items([1, 0], [0, 1], ["a"])
    with pytest.raises(ValueError, match="level"):
        compare_items([1, 0], [0, 1], level=95)


def test_detectable_difference_stands_beside():
    rng = np.random.default_rng(6)
    a, b = rng.random((2, 200))
    found = compare_items(a, b)
    assert found.mde == pytest.approx(mde_paired(200, np.std(a - b, ddof=1)))
    clustered = compare_items(a, b, [i // 10 for i in range(200)])
    assert clustered.mde == pytest.approx(mde_paired(20, clustered.se * math.sqrt(20)))


def test_a_family_is_adjusted_together():
    rng = np.random.default_rng(7)
    scores = (rng.random((4, 80)) < np.array([[0.9], [0.6], [0.5], [0.5]])).astype(float)
    family = [compare_items(scores[0], scores[k]) for k in (1, 2, 3)]
    family.insert(1, compare_items([], []))
    adjusted = holm_adjusted(family)
    assert adjusted[1].p_adj is None
    kept = [test for test in adjusted if test.p is not None]
    assert [t.p_adj for t in kept] == pytest.approx(holm([t.p for t in kept]).tolist())


def test_an_unpaired_test_on_paired_data_is_caught():
    """Correlated models: the paired error is smaller, and the unpaired interval covers too often.

    Two models' scores share the item's part (sd 0.3) beside their own (sd 0.4): the standard
    error of a difference of 100 items is 0.4 sqrt(2 / 100) = 0.0566, unpaired 0.0707.
    """
    rng = np.random.default_rng(8)
    hits = wide = 0
    errors = []
    for _ in range(400):
        item = rng.normal(0, 0.3, 100)
        a, b = item + rng.normal(0.5, 0.4, 100), item + rng.normal(0.5, 0.4, 100)
        found = compare_items(a, b)
        errors.append(found.se)
        hits += found.lo <= 0 <= found.hi
        unpaired = stats.ttest_ind(a, b).confidence_interval(0.95)
        wide += unpaired.low <= 0 <= unpaired.high
    assert np.mean(errors) == pytest.approx(0.4 * math.sqrt(2 / 100), rel=0.01)
    assert 0.93 <= hits / 400 <= 0.97
    assert wide / 400 > 0.97
