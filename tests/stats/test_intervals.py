"""Intervals against published vectors, statsmodels, and their promise (coverage)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats.intervals import clopper_pearson, clustered_mean, estimate, ratio, wilson

# The same draws each time, and no clock: a busy machine must not fail a test.
steady = settings(deadline=None, derandomize=True)

UNIT = {"abs": 5e-7}  # the vectors are given to six digits


@pytest.mark.parametrize(
    ("k", "n", "lo", "hi"),
    [
        (0, 20, 0, 0.161125),
        (1, 20, 0.008881, 0.236131),
        (50, 100, 0.403832, 0.596168),
        (58, 60, 0.886362, 0.990811),
        (60, 60, 0.939828, 1),
    ],
)
def test_wilson_vectors(k, n, lo, hi):
    found = wilson(k, n)
    assert (found.lo, found.hi) == (pytest.approx(lo, **UNIT), pytest.approx(hi, **UNIT))
    assert (found.value, found.method, found.n_items) == (k / n, "wilson", n)
    assert ("boundary" in found.notes) == (k in (0, n))


@pytest.mark.parametrize(
    ("k", "n", "lo", "hi"),
    [(0, 20, 0, 0.168433), (1, 20, 0.001265, 0.248733), (60, 60, 0.940371, 1)],
)
def test_clopper_pearson_vectors(k, n, lo, hi):
    found = clopper_pearson(k, n)
    assert (found.lo, found.hi) == (pytest.approx(lo, **UNIT), pytest.approx(hi, **UNIT))


CLUSTERED = ([1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0], list("aaaabbbccddd"))


def test_cluster_vector():
    found = clustered_mean(*CLUSTERED)
    assert found.value == 0.5
    assert found.se == pytest.approx(0.204124, **UNIT)
    assert (found.hi - found.value) / found.se == pytest.approx(3.182446, **UNIT)
    assert (found.lo, found.hi) == (
        pytest.approx(-0.149614, **UNIT),
        pytest.approx(1.149614, **UNIT),
    )
    assert (found.n_items, found.n_clusters, found.method) == (12, 4, "cluster-t")
    assert found.notes == ("few clusters",)


def test_without_clusters_the_error_is_the_plain_one():
    assert clustered_mean(CLUSTERED[0]).se == pytest.approx(0.150756, **UNIT)


@steady
@given(st.integers(1, 10**6), st.floats(0, 1), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_proportions_agree_with_statsmodels(n, share, level):
    from statsmodels.stats.proportion import proportion_confint

    k = round(n * share)
    for ours, theirs in ((wilson, "wilson"), (clopper_pearson, "beta")):
        lo, hi = proportion_confint(k, n, alpha=1 - level, method=theirs)
        found = ours(k, n, level)
        assert found.lo == pytest.approx(lo, abs=1e-10)
        assert found.hi == pytest.approx(hi, abs=1e-10)


@steady
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 11)), min_size=3, max_size=60))
def test_clusters_agree_with_statsmodels(rows):
    import statsmodels.api as sm

    values = np.array([value for value, _ in rows])
    groups = np.array([group for _, group in rows])
    found = clustered_mean(values.tolist(), groups.tolist())
    if len(set(groups.tolist())) < 2:
        assert found.lo is None
        return
    if set(values.tolist()) <= {0.0} or set(values.tolist()) <= {1.0}:
        assert "boundary" in found.notes
        return
    fit = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )
    # statsmodels scales by (n-1)/(n-1) * G/(G-1) for a constant alone, as we do.
    assert found.value == pytest.approx(fit.params[0], abs=1e-10)
    assert found.se == pytest.approx(fit.bse[0], abs=1e-10)
    lo, hi = fit.conf_int()[0]
    assert (found.lo, found.hi) == (pytest.approx(lo, abs=1e-9), pytest.approx(hi, abs=1e-9))


def test_fewer_than_two_clusters_give_no_interval():
    for values, clusters in (([1, 0, 1], ["a"] * 3), ([1, 1, 1], ["a"] * 3), ([0.5], None)):
        found = estimate(values, clusters)
        assert (found.lo, found.hi, found.se) == (None, None, None)
        assert found.notes == ("one cluster",)
        assert found.value == pytest.approx(sum(values) / len(values))


def test_ten_clusters_are_enough():
    assert "few clusters" in clustered_mean([0.1, 0.9] * 5, list("aabbccddee")).notes
    assert clustered_mean([0.1, 0.9] * 10, list("aabbccddeeffgghhiijj")).notes == ()


@pytest.mark.parametrize("value", [0, 1])
def test_at_the_boundary_clusters_are_the_units(value):
    found = clustered_mean([value] * 60, [i // 5 for i in range(60)])
    by_cluster, by_item = wilson(12 * value, 12), wilson(60 * value, 60)
    assert (found.lo, found.hi) == (by_cluster.lo, by_cluster.hi)
    assert found.notes == ("boundary",)
    alone = clustered_mean([value] * 60)
    assert (alone.lo, alone.hi) == (by_item.lo, by_item.hi)


def test_no_items_give_no_number():
    found = estimate([])
    assert (found.value, found.lo, found.n_items, found.notes) == (None, None, 0, ("no items",))


def test_the_method_follows_the_scores():
    assert estimate([1, 0, 1]) == wilson(2, 3)
    assert estimate([True, False, 1.0], [None, "a", "b"]) == wilson(2, 3)
    assert estimate([1, 0, 0.5]).method == "t"
    assert estimate([1, 0, 1], ["a", "a", None]).method == "cluster-t"


@steady
@given(st.permutations(list(zip(*CLUSTERED, strict=True))))
def test_order_and_names_do_not_matter(rows):
    values = [value for value, _ in rows]
    names = [f"cluster {name}" for _, name in rows]
    found, base = estimate(values, names), estimate(*CLUSTERED)
    assert (found.se, found.lo) == (
        pytest.approx(base.se, abs=1e-14),
        pytest.approx(base.lo, abs=1e-14),
    )


@pytest.mark.parametrize(
    ("k", "n", "level"), [(1, 0, 0.95), (-1, 5, 0.95), (6, 5, 0.95), (1, 5, 1.0), (1, 5, 0)]
)
def test_impossible_counts_are_refused(k, n, level):
    for interval in (wilson, clopper_pearson):
        with pytest.raises(ValueError, match="="):
            interval(k, n, level)


def test_broken_scores_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        estimate([1.0, float("nan")])
    with pytest.raises(ValueError, match="2 scores, but 1 clusters"):
        estimate([1.0, 0.0], ["a"])


def test_coverage_with_clusters_and_the_plain_error_fails_it():
    """30 clusters of 10 items, cluster effect of sd 0.25: 93-97 %, the plain error far less."""
    rng = np.random.default_rng(20261130)
    clusters = [i // 10 for i in range(300)]
    hits = plain = 0
    for _ in range(400):
        values = (0.5 + np.repeat(rng.normal(0, 0.25, 30), 10) + rng.normal(0, 0.5, 300)).tolist()
        robust, naive = clustered_mean(values, clusters), clustered_mean(values)
        hits += robust.lo <= 0.5 <= robust.hi
        plain += naive.lo <= 0.5 <= naive.hi
    assert 0.93 <= hits / 400 <= 0.97
    assert plain / 400 < 0.85


def test_the_usual_case_imports_no_scipy():
    code = (
        "import sys; from harness.stats.intervals import estimate; estimate([1, 0, 1]);"
        "print([m for m in ('scipy', 'numpy', 'statistics') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
    code = code.replace("[1, 0, 1]", "[0.2, 0.4]").replace("'scipy', 'numpy'", "'scipy.stats'")
    out = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert "scipy.stats" not in out.stdout


@pytest.mark.parametrize("clustered", [False, True])
def test_a_ratio_of_sums_is_a_weighted_regression_on_a_constant(clustered):
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    possible = rng.integers(6, 19, 24).astype(float)
    won = np.floor(possible * rng.random(24))
    clusters = np.repeat(np.arange(8), 3) if clustered else np.arange(24)
    fitted = sm.WLS(won / possible, np.ones(24), weights=possible).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    found = ratio(won.tolist(), possible.tolist(), clusters.tolist() if clustered else None)
    # The same sandwich; statsmodels' correction is G / (G - 1) too, with one constant.
    assert found.value == pytest.approx(won.sum() / possible.sum(), rel=1e-12)
    assert found.se == pytest.approx(float(fitted.bse[0]), rel=1e-9)
    lo, hi = fitted.conf_int()[0]
    assert (found.lo, found.hi) == (pytest.approx(lo, rel=1e-9), pytest.approx(hi, rel=1e-9))
    assert found.method == "ratio-t"


def test_a_ratio_at_its_ends_and_of_bad_numbers():
    whole = ratio([8, 10, 11], [8, 10, 11])
    # Wilson's lower end of 3 of 3: 3 / (3 + z^2)
    assert (whole.value, whole.lo) == (1.0, pytest.approx(3 / (3 + 1.959963984540054**2)))
    assert (ratio([0, 0], [8, 10]).value, ratio([0, 0], [8, 10]).lo) == (0.0, 0.0)
    assert ratio([], []).value is None
    for wrong in ([0.0], [-1.0], [1.0, 2.0]):
        with pytest.raises(ValueError, match="whole"):
            ratio([0.0], wrong)
