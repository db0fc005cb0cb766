"""BCa intervals: scipy's, by cluster."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness.stats.bca import bca_mean


def test_agrees_with_scipy_on_the_plain_mean():
    seconds = np.random.default_rng(1).lognormal(0, 1.2, 80)
    theirs = stats.bootstrap(
        (seconds,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(2)
    ).confidence_interval
    found = bca_mean(seconds)
    # Two sets of draws: the ends differ by their own simulation error.
    assert (found.lo, found.hi) == pytest.approx((theirs.low, theirs.high), abs=0.15 * found.se)
    assert found.value == pytest.approx(seconds.mean())
    assert (found.method, found.n_items) == ("bca", 80)
    assert found.hi - found.value > 1.2 * (found.value - found.lo)


def test_a_symmetric_mean_has_the_t_interval():
    values = np.random.default_rng(3).normal(10, 1, 400)
    found = bca_mean(values)
    half = stats.t.ppf(0.975, 399) * values.std(ddof=1) / 20
    assert (found.lo, found.hi) == pytest.approx((10 - half, 10 + half), abs=0.1)
    assert found.hi - found.lo == pytest.approx(2 * half, rel=0.05)


def test_clusters_are_drawn_whole():
    """Copies of an item are no new items: the interval stays what it was for one of each."""
    values = np.random.default_rng(4).lognormal(0, 1, 40)
    once = bca_mean(values)
    copies = bca_mean(np.repeat(values, 5), np.repeat(np.arange(40), 5).tolist())
    assert (copies.lo, copies.hi) == pytest.approx((once.lo, once.hi), rel=1e-9)
    fault = bca_mean(np.repeat(values, 5))
    assert fault.hi - fault.lo < 0.6 * (once.hi - once.lo)


def test_seeds_repeat_and_nothing_is_claimed_without_spread():
    values = [1, 1, 2, 2, 3, 3, 4, 5, 8, 40, 2, 1]
    assert bca_mean(values) == bca_mean(values)
    assert bca_mean(values).hi != bca_mean(values, seed=1).hi
    assert (bca_mean([2.0] * 5).lo, bca_mean([1.0] * 5).notes) == (
        None,
        ("few clusters", "boundary"),
    )
    assert (bca_mean([1, 2, 3], ["a"] * 3).lo, bca_mean([1, 2], ["a"] * 2).notes) == (
        None,
        ("one cluster",),
    )
    assert bca_mean([]).notes == ("no items",)
    with pytest.raises(ValueError, match="draws = 0"):
        bca_mean([1, 2], draws=0)
