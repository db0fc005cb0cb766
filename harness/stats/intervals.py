"""Intervals of a score: Wilson, Clopper-Pearson, the clustered t interval, the ratio of two sums.

Only ``math`` is imported at the top: scipy costs more than scoring a small run, so it is imported
where a quantile is needed, and the usual case (0/1 scores, 95 %) needs none.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import msgspec
from msgspec import Struct

_Z95 = 1.959963984540054
FEW_CLUSTERS = 10


class Estimate(Struct, frozen=True, kw_only=True):
    """A number with its uncertainty.

    Attributes
    ----------
    value : float or None
        The point estimate; None when there are no items.
    se : float or None
        Standard error in the unit of `value`.
    lo, hi : float or None
        Ends of the interval, not cut to the metric's range; None when none can be given.
    method : str
        ``wilson``, ``clopper-pearson``, ``t`` (items), ``cluster-t`` (clusters) or ``ratio-t``.
    level : float
        Coverage of the interval.
    n_items, n_clusters : int
        Units behind the estimate.
    notes : tuple of str
        ``few clusters`` (fewer than 10), ``boundary`` (all scores 0 or all 1, see
        `clustered_mean`), ``one cluster``, ``no items``.
    """

    value: float | None
    se: float | None
    lo: float | None
    hi: float | None
    method: str
    level: float
    n_items: int
    n_clusters: int
    notes: tuple[str, ...] = ()


def wilson(k: int, n: int, level: float = 0.95) -> Estimate:
    """Wilson's score interval of a proportion.

    Parameters
    ----------
    k, n : int
        Successes and trials, ``0 <= k <= n``, ``n >= 1``.
    level : float
        Coverage, between 0 and 1.

    Returns
    -------
    Estimate
        `se` is the plain sqrt(p (1 - p) / n).

    Raises
    ------
    ValueError
        For arguments out of range.

    Examples
    --------
    >>> interval = wilson(50, 100)
    >>> round(interval.lo, 6), round(interval.hi, 6)
    (0.403832, 0.596168)
    """
    _check_counts(k, n, level)
    lo, hi = _wilson_ends(k / n, n, level)
    return _proportion(k, n, lo, hi, "wilson", level)


def clopper_pearson(k: int, n: int, level: float = 0.95) -> Estimate:
    """Clopper and Pearson's exact interval of a proportion, from quantiles of the beta law.

    Parameters and errors as for `wilson`.

    Examples
    --------
    >>> round(clopper_pearson(60, 60).lo, 6)
    0.940371
    """
    _check_counts(k, n, level)
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    lo = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    hi = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return _proportion(k, n, lo, hi, "clopper-pearson", level)


def clustered_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable | None] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean of item scores with a cluster-robust standard error and a t interval.

    With residuals e_i, cluster sums S_g of them, n items and G clusters,
    SE = sqrt(sum S_g^2) / n * sqrt(G / (G - 1)), and the interval is mean ± t(G - 1) SE: the
    cluster covariance of a regression on a constant (as statsmodels gives it). With every item by
    itself it is the plain s / sqrt(n).

    Parameters
    ----------
    values : sequence of float
        One score an item (repeats of an item are averaged before).
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.
    level : float
        Coverage.

    Returns
    -------
    Estimate
        Without an interval for fewer than 2 clusters. Where all scores are 0 or all are 1 the
        standard error is 0 and says nothing: the ends are Wilson's for n items, or for G clusters
        when items share clusters (conservative), noted as ``boundary``.

    Raises
    ------
    ValueError
        For a score that is not finite, or sequences of unequal length.

    Examples
    --------
    >>> mean = clustered_mean([1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0], "aaaabbbccddd")
    >>> mean.value, round(mean.se, 6), mean.notes
    (0.5, 0.204124, ('few clusters',))
    """
    groups = _groups(values, clusters)
    n, g = len(values), len(groups)
    method = "cluster-t" if g < n else "t"
    if n == 0:
        return _no_interval(None, method, level, 0, 0, "no items")
    mean = math.fsum(values) / n
    if g < 2:
        return _no_interval(mean, method, level, n, g, "one cluster")
    notes = ("few clusters",) if g < FEW_CLUSTERS else ()
    if all(v == 0 for v in values) or all(v == 1 for v in values):
        lo, hi = _wilson_ends(mean, g, level)
        notes = (*notes, "boundary")
        return _estimate(mean, 0.0, lo, hi, "wilson", level, n, g, notes)
    squares = math.fsum(math.fsum(v - mean for v in group) ** 2 for group in groups)
    se = math.sqrt(squares) / n * math.sqrt(g / (g - 1))
    half = _t_quantile(g - 1, level) * se
    return _estimate(mean, se, mean - half, mean + half, method, level, n, g, notes)


def ratio(
    parts: Sequence[float],
    wholes: Sequence[float],
    clusters: Sequence[Hashable | None] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Points won over points possible: the ratio of two sums, with its linearised interval.

    With R = sum y / sum x the residuals are e_i = (y_i - R x_i) / mean(x); their mean is 0 and its
    standard error, `clustered_mean`'s, is that of R: the cluster covariance of a regression of
    y / x on a constant with weights x.

    Parameters
    ----------
    parts, wholes : sequence of float
        Of each item: ``0 <= y <= x`` and ``x > 0``.
    clusters, level
        As for `clustered_mean`.

    Returns
    -------
    Estimate
        Method ``ratio-t``. Where everything or nothing was won it is `clustered_mean`'s answer to
        that.

    Raises
    ------
    ValueError
        As for `clustered_mean`, and for a whole that is not above 0.

    Examples
    --------
    >>> ratio([8, 0, 5], [8, 10, 10]).value == 13 / 28
    True
    """
    if len(parts) != len(wholes) or any(not x > 0 for x in wholes):
        raise ValueError("every item needs a whole above 0")
    if not wholes:
        return clustered_mean([], clusters, level)
    value = math.fsum(parts) / math.fsum(wholes)
    if all(y == 0 for y in parts) or list(parts) == list(wholes):
        return clustered_mean([value] * len(parts), clusters, level)
    mean = math.fsum(wholes) / len(wholes)
    residuals = [(y - value * x) / mean for y, x in zip(parts, wholes, strict=True)]
    found = clustered_mean(residuals, clusters, level)
    lo, hi = (None if end is None else value + end for end in (found.lo, found.hi))
    return msgspec.structs.replace(found, value=value, lo=lo, hi=hi, method="ratio-t")


def estimate(
    values: Sequence[float],
    clusters: Sequence[Hashable | None] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean of item scores with the interval that fits them.

    Wilson's for 0/1 scores of items that stand by themselves, else `clustered_mean`.

    Parameters and errors as for `clustered_mean`.

    Examples
    --------
    >>> estimate([1, 0, 1, 1]).method
    'wilson'
    >>> estimate([1, 0, 0.5, 1]).method
    't'
    >>> estimate([1, 0, 1, 1], ["a", "a", "b", "c"]).method
    'cluster-t'
    """
    alone = len(_groups(values, clusters)) == len(values)
    if values and alone and all(v in (0, 1) for v in values):
        return wilson(round(math.fsum(values)), len(values), level)
    return clustered_mean(values, clusters, level)


def _groups(
    values: Sequence[float], clusters: Sequence[Hashable | None] | None
) -> list[list[float]]:
    """Sort scores into clusters; an item without one is a cluster of its own."""
    if not all(math.isfinite(v) for v in values):
        raise ValueError("a score is not finite")
    if clusters is None:
        return [[v] for v in values]
    if len(clusters) != len(values):
        raise ValueError(f"{len(values)} scores, but {len(clusters)} clusters")
    alone: list[list[float]] = []
    shared: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        if cluster is None:
            alone.append([value])
        else:
            shared.setdefault(cluster, []).append(value)
    return [*alone, *shared.values()]


def _wilson_ends(p: float, n: int, level: float) -> tuple[float, float]:
    z = _z_quantile(level)
    shrink = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink
    # The ends are exactly 0 and 1 there; rounding must not leave 1e-17 behind.
    return (0.0 if p == 0 else centre - half), (1.0 if p == 1 else centre + half)


def _z_quantile(level: float) -> float:
    """Two-sided quantile of the normal law."""
    if level == 0.95:
        return _Z95
    from statistics import NormalDist

    return NormalDist().inv_cdf(0.5 + level / 2)


def _t_quantile(df: int, level: float) -> float:
    """Two-sided quantile of Student's law."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def _check_counts(k: int, n: int, level: float) -> None:
    if n < 1 or not 0 <= k <= n:
        raise ValueError(
            f"k = {k} of n = {n}: there must be trials, and no more successes than these"
        )
    if not 0 < level < 1:
        raise ValueError(f"level = {level} is not between 0 and 1")


def _proportion(k: int, n: int, lo: float, hi: float, method: str, level: float) -> Estimate:
    p = k / n
    notes = ("boundary",) if k in (0, n) else ()
    return _estimate(p, math.sqrt(p * (1 - p) / n), lo, hi, method, level, n, n, notes)


def _no_interval(
    value: float | None, method: str, level: float, n: int, g: int, note: str
) -> Estimate:
    return _estimate(value, None, None, None, method, level, n, g, (note,))


def _estimate(
    value: float | None,
    se: float | None,
    lo: float | None,
    hi: float | None,
    method: str,
    level: float,
    n_items: int,
    n_clusters: int,
    notes: tuple[str, ...],
) -> Estimate:
    return Estimate(
        value=value, se=se, lo=lo, hi=hi, method=method, level=level,
        n_items=n_items, n_clusters=n_clusters, notes=notes,
    )  # fmt: skip
