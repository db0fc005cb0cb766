"""Two models on the same items: difference, interval, p value; and many p values at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from harness.stats._clusters import (
    Clusters,
    Codes,
    Floats,
    check_finite_or_nan,
    check_level,
    cluster_codes,
    dense_codes,
)
from harness.stats.intervals import clustered_mean, wilson
from harness.stats.power import mde_from_se

FEW_UNITS = 50
"""Below this many items (or clusters) a t test is not trusted: signs are flipped instead."""

ALL_SIGNS_UP_TO = 13
"""Up to this many clusters all sign vectors (8,192) are tried, beyond it a random sample."""

ROUNDING = 1e-12
"""A spread below this share of the scores is rounding, not data."""

_BLOCK = 1_000  # sign vectors at a time: bounds the memory for thousands of clusters


class PairTest(Struct, frozen=True, kw_only=True):
    """Model A against model B on the items both answered.

    Attributes
    ----------
    a, b : float or None
        Mean score of each on the shared items.
    diff : float or None
        a - b; None without shared items.
    se : float or None
        Standard error of `diff` (cluster-robust when items share clusters); None below 2 clusters.
    lo, hi : float or None
        Interval of `diff`; None where none can be given.
    p : float or None
        Two-sided p value of "no difference"; None without shared items.
    p_adj : float or None
        `p` corrected for the number of comparisons (`holm_adjusted`).
    n_items, n_clusters : int
        Shared items and their clusters.
    mcnemar_p : float or None
        Exact McNemar test, for 0/1 scores; it knows nothing of clusters.
    mde : float or None
        Smallest difference found with 80 % power at the 5 % level, given this spread.
    test : str
        Which test gave `p`: ``mcnemar``, ``sign-flip``, ``t``, ``cluster-t`` or ``none``.
    notes : tuple of str
        ``few clusters``, ``one cluster``, ``no items``, ``boundary`` (all differences are equal,
        so that the standard error is 0 and says nothing).
    """

    a: float | None
    b: float | None
    diff: float | None
    se: float | None
    lo: float | None
    hi: float | None
    p: float | None
    p_adj: float | None = None
    n_items: int
    n_clusters: int
    mcnemar_p: float | None
    mde: float | None
    test: str
    notes: tuple[str, ...] = ()


def compare_items(
    a: Sequence[float] | Floats,
    b: Sequence[float] | Floats,
    clusters: Clusters | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> PairTest:
    """Compare two models item by item.

    Difference, standard error and interval are those of the mean per-item difference
    (`harness.stats.intervals.clustered_mean`). The p value comes from

    ======  =================  =========================================
    scores  items              test
    ======  =================  =========================================
    0/1     by themselves      exact McNemar, at any n
    other   by themselves      n < 50 sign flips of items, else t
    any     sharing clusters   G < 50 sign flips of clusters, else cluster t;
                               for 0/1 scores McNemar stands beside
    ======  =================  =========================================

    Parameters
    ----------
    a, b : array of float, shape (n,)
        Score of each item (the mean over its repeats), in the same order; NaN for an item that
        does not count for that model. Only items with both are used.
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.
    level : float
        Coverage of the interval.
    seed : int
        For the sign flips; the same seed gives the same p.

    Returns
    -------
    PairTest

    Raises
    ------
    ValueError
        For arrays of unequal length, an infinite score, or a level out of range.

    Examples
    --------
    >>> found = compare_items([1] * 10 + [0] * 4 + [1] * 6, [0] * 10 + [1] * 4 + [1] * 6)
    >>> found.diff, found.test, round(found.p, 6)
    (0.3, 'mcnemar', 0.179565)
    """
    check_level(level)
    x, y, groups = _shared_items(a, b, clusters)
    n = len(x)
    if n == 0:
        return PairTest(
            a=None, b=None, diff=None, se=None, lo=None, hi=None, p=None, n_items=0, n_clusters=0,
            mcnemar_p=None, mde=None, test="none", notes=("no items",),
        )  # fmt: skip
    d = x - y
    diff = math.fsum(d) / n
    sums = np.bincount(groups, weights=d).astype(np.float64)
    sizes = np.bincount(groups)
    g = len(sums)
    binary = bool(((x == 0) | (x == 1)).all() and ((y == 0) | (y == 1)).all())
    exact = mcnemar_exact(int((d > 0).sum()), int((d < 0).sum())) if binary else None
    flat = bool(np.abs(sums - diff * sizes).max() <= ROUNDING * np.abs(d).max())
    if flat and g >= 2:
        se: float | None = 0.0
        lo, hi = _flat_interval(d, g, level) if binary else (None, None)
        notes: tuple[str, ...] = ("boundary",)
    else:
        mean = clustered_mean(d.tolist(), groups.tolist(), level)
        se, lo, hi, notes = mean.se, mean.lo, mean.hi, mean.notes
    if exact is not None and g == n:
        p, test = exact, "mcnemar"
    elif g < FEW_UNITS or not se:
        p, test = sign_flip_p(sums, seed), "sign-flip"
    else:
        p, test = _t_p(diff / se, g - 1), "t" if g == n else "cluster-t"
    return PairTest(
        a=math.fsum(x) / n, b=math.fsum(y) / n, diff=diff, se=se, lo=lo, hi=hi, p=p,
        n_items=n, n_clusters=g, mcnemar_p=exact, mde=mde_from_se(se, g - 1) if se else None,
        test=test, notes=notes,
    )  # fmt: skip


class MacroTest(Struct, frozen=True, kw_only=True):
    """A mean difference over several tasks, each with the same weight.

    Attributes
    ----------
    diff, lo, hi, p : float or None
        The difference, its interval, and the two-sided p value of "no difference".
    """

    diff: float
    lo: float | None
    hi: float | None
    p: float | None


def over_tasks(tests: Sequence[PairTest], level: float = 0.95) -> MacroTest:
    """Average differences over tasks, the tasks held fixed.

    The standard error is sqrt(sum se_t^2) / T, and interval and p value are normal, whatever the
    number of items; there are none where all differences of a task are equal.

    Parameters
    ----------
    tests : sequence of PairTest
        One a task, at least one.
    level : float
        Coverage of the interval.

    Examples
    --------
    >>> one = compare_items([1, 1, 0, 1], [0, 1, 0, 0])
    >>> over_tasks([one, one]).diff == one.diff
    True
    """
    from scipy.special import ndtr, ndtri

    check_level(level)
    diff = math.fsum(test.diff or 0.0 for test in tests) / len(tests)
    known = [test.se for test in tests if test.se]  # 0 says nothing
    if len(known) < len(tests):
        return MacroTest(diff=diff, lo=None, hi=None, p=None)
    se = math.hypot(*known) / len(tests)
    half = float(ndtri(0.5 + level / 2)) * se
    return MacroTest(diff=diff, lo=diff - half, hi=diff + half, p=2 * float(ndtr(-abs(diff) / se)))


def mcnemar_exact(n_gained: int, n_lost: int) -> float:
    """Exact McNemar test: are the items that only one model solved evenly split?

    Twice the lower tail of the binomial law with p = 1/2, at most 1 (McNemar 1947).

    Parameters
    ----------
    n_gained, n_lost : int
        Items that only A, and that only B solved.

    Returns
    -------
    float
        Two-sided p value; 1 when there are none.

    Raises
    ------
    ValueError
        For a negative count.

    Examples
    --------
    >>> [round(mcnemar_exact(*pair), 6) for pair in ((10, 4), (15, 5), (6, 0), (5, 0), (0, 0))]
    [0.179565, 0.041389, 0.03125, 0.0625, 1.0]
    """
    from scipy.special import bdtr

    if min(n_gained, n_lost) < 0:
        raise ValueError(f"counts of items cannot be negative: {n_gained}, {n_lost}")
    n = n_gained + n_lost
    return min(1.0, 2 * float(bdtr(min(n_gained, n_lost), n, 0.5))) if n else 1.0


def sign_flip_p(cluster_sums: Sequence[float] | Floats, seed: int, draws: int = 9999) -> float:
    """Paired permutation test: were A and B interchangeable, each difference could turn its sign.

    ``p = (1 + #{|s . D| >= |sum D|}) / (draws + 1)`` for random sign vectors s; up to 13 clusters
    all 2^G vectors are tried, and the share is exact (Phipson and Smyth 2010 on the + 1).

    Parameters
    ----------
    cluster_sums : array of float, shape (G,)
        Sum of the differences in each cluster: a whole cluster turns at once.
    seed : int
        Seed of the sign vectors.
    draws : int
        Number of random sign vectors, at least 1.

    Returns
    -------
    float
        Two-sided p value.

    Raises
    ------
    ValueError
        Without clusters, for a sum that is not finite, or draws below 1.

    Examples
    --------
    >>> sign_flip_p([1, 1, 1, 1, 1, 1], seed=0)
    0.03125
    """
    d = np.asarray(cluster_sums, dtype=np.float64)
    if d.ndim != 1 or d.size == 0 or not np.isfinite(d).all():
        raise ValueError("one finite sum a cluster is needed, and at least one cluster")
    if draws < 1:
        raise ValueError(f"draws = {draws}: at least one is needed")
    # Equal sums may differ in the last bit by the order of adding: they count as equal.
    bar = abs(math.fsum(d)) - ROUNDING * float(np.abs(d).sum())
    if d.size <= ALL_SIGNS_UP_TO:
        bits = np.arange(2**d.size)[:, None] >> np.arange(d.size) & 1
        return float((np.abs((2 * bits - 1) @ d) >= bar).mean())
    rng = np.random.default_rng(seed)
    beyond = 0
    for start in range(0, draws, _BLOCK):
        shape = (min(_BLOCK, draws - start), d.size)
        signs = 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1
        beyond += int((np.abs(signs @ d) >= bar).sum())
    return (1 + beyond) / (draws + 1)


def holm(p: ArrayLike) -> Floats:
    """Correct p values for their number so that one false find in the family is rare (Holm 1979).

    The i-th smallest of m is multiplied by m - i + 1, made non-decreasing, and cut at 1.

    Parameters
    ----------
    p : array of float, shape (m,)
        p values in any order.

    Returns
    -------
    array of float, shape (m,)
        Adjusted values in the order of `p`.

    Raises
    ------
    ValueError
        For a value outside 0 ... 1.

    Examples
    --------
    >>> holm([.001, .01, .02, .03, .2]).round(6).tolist()
    [0.005, 0.04, 0.06, 0.06, 0.2]
    """
    values, order = _sorted_p(p)
    steps = np.arange(values.size, 0, -1)
    return _unsorted(np.maximum.accumulate(steps * values[order]), order)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Correct p values so that few of the finds are false (Benjamini and Hochberg 1995).

    For exploring; rank sets use `holm`. The i-th smallest of m is multiplied by m / i, made
    non-decreasing from above, and cut at 1.

    Parameters and errors as for `holm`.

    Examples
    --------
    >>> benjamini_hochberg([.001, .01, .02, .03, .2]).round(6).tolist()
    [0.005, 0.025, 0.033333, 0.0375, 0.2]
    """
    values, order = _sorted_p(p)
    scaled = values[order] * values.size / np.arange(1, values.size + 1)
    return _unsorted(np.minimum.accumulate(scaled[::-1])[::-1], order)


def holm_adjusted(tests: Sequence[PairTest]) -> list[PairTest]:
    """Fill in `p_adj` of comparisons that are read together.

    Parameters
    ----------
    tests : sequence of PairTest
        The family. Those without a p value are no part of it.

    Returns
    -------
    list of PairTest
        In the same order.
    """
    adjusted = iter(holm([test.p for test in tests if test.p is not None]).tolist())
    return [test if test.p is None else replace(test, p_adj=next(adjusted)) for test in tests]


def _shared_items(
    a: Sequence[float] | Floats, b: Sequence[float] | Floats, clusters: Clusters | None
) -> tuple[Floats, Floats, Codes]:
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"scores of the same items are needed, not {x.shape} and {y.shape}")
    check_finite_or_nan(x)
    check_finite_or_nan(y)
    both = ~(np.isnan(x) | np.isnan(y))
    return x[both], y[both], dense_codes(cluster_codes(clusters, len(x))[both])


def _flat_interval(d: Floats, g: int, level: float) -> tuple[float | None, float | None]:
    """Interval of a 0/1 difference that is the same on every item.

    Nothing else was seen on g units, so at most a share w of all items is otherwise, w the upper
    end of Wilson's interval of 0 in g; from 0 such an item moves the mean by one, from 1 by two.
    """
    value = float(d[0])
    if (d != value).any():
        return None, None
    reach = (wilson(0, g, level).hi or 1.0) * (1 + abs(value))
    return max(-1.0, value - reach), min(1.0, value + reach)


def _t_p(t: float, df: int) -> float:
    from scipy.special import stdtr

    return 2 * float(stdtr(df, -abs(t)))


def _sorted_p(p: ArrayLike) -> tuple[Floats, Codes]:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p values must be from 0 to 1, in one row")
    return values, np.argsort(values, kind="stable")


def _unsorted(values: Floats, order: Codes) -> Floats:
    found = np.empty_like(values)
    found[order] = np.minimum(values, 1.0)
    return found
