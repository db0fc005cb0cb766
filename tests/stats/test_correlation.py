"""Correlations of two raters: the values are scipy's, the interval is a bootstrap over clusters."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from harness.stats.agreement import correlation, correlation_estimate

KINDS = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}


def ratings(n, seed, step=1.0):
    """Two raters whose whole points go together, with many ties."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    return (np.round((quality + rng.normal(scale=0.7, size=n)) / step) for _ in range(2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_value_is_scipys(kind, seed):
    a, b = ratings(40, seed)
    assert correlation(a, b, kind) == pytest.approx(KINDS[kind](a, b)[0], abs=1e-12)
    assert correlation_estimate(a, b, kind, draws=10).value == correlation(a, b, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_is_scipys_percentile_bootstrap(kind):
    a, b = ratings(60, 7)
    found = correlation_estimate(a, b, kind, draws=4000)
    theirs = scipy.stats.bootstrap(
        (a, b), lambda x, y: KINDS[kind](x, y)[0], paired=True, vectorized=False, n_resamples=2000,
        method="percentile", rng=np.random.default_rng(1),
    )  # fmt: skip
    # Ends of two bootstraps of some thousand draws differ by their own noise only.
    assert found.lo == pytest.approx(theirs.confidence_interval.low, abs=0.02)
    assert found.hi == pytest.approx(theirs.confidence_interval.high, abs=0.02)
    assert found.se == pytest.approx(theirs.standard_error, rel=0.1)
    assert (found.method, found.n_items, found.n_clusters) == ("bootstrap", 60, 60)


def test_copies_of_items_make_no_interval_narrower():
    a, b = (np.array(list(x)) for x in ratings(30, 3))
    plain = correlation_estimate(a, b, "pearson", draws=500)
    groups = [str(i) for i in range(30)] * 4
    copied = correlation_estimate(np.tile(a, 4), np.tile(b, 4), "pearson", groups, draws=500)
    assert (copied.lo, copied.hi) == pytest.approx((plain.lo, plain.hi))
    naive = correlation_estimate(np.tile(a, 4), np.tile(b, 4), "pearson", draws=500)
    assert naive.hi - naive.lo < 0.7 * (plain.hi - plain.lo)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [2.0]), ([1, 1, 1], [1, 2, 3])])
def test_where_it_is_not_defined_there_is_none(kind, a, b):
    assert correlation(a, b, kind) is None
    found = correlation_estimate(a, b, kind)
    assert found.value is found.lo is found.hi is found.se is None


def test_one_cluster_gives_a_value_and_no_interval():
    found = correlation_estimate([1, 2, 3], [1, 3, 2], "pearson", ["x"] * 3)
    assert (found.value, found.lo, found.notes) == (pytest.approx(0.5), None, ("one cluster",))


@pytest.mark.parametrize(
    ("a", "b", "kind", "match"),
    [([1, 2], [1], "pearson", "2 numbers of one rater, but 1"),
     ([1, float("nan")], [1, 2], "spearman", "not finite"), ([1, 2], [1, 2], "tau", "'tau'")],
)  # fmt: skip
def test_what_cannot_be_correlated_is_refused(a, b, kind, match):
    with pytest.raises(ValueError, match=match):
        correlation_estimate(a, b, kind)


def test_the_bootstrap_is_reproducible_and_needs_draws():
    a, b = (list(x) for x in ratings(20, 1))
    one, two = (correlation_estimate(a, b, "spearman", draws=100, seed=3) for _ in range(2))
    assert one == two
    with pytest.raises(ValueError, match="at least one"):
        correlation_estimate(a, b, "pearson", draws=0)
