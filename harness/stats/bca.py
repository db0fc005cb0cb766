"""BCa bootstrap interval of a mean, for scores so skewed that a symmetric interval misleads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.stats._clusters import Clusters, Floats, check_level, cluster_codes
from harness.stats.intervals import Estimate, clustered_mean


def bca_mean(
    values: Sequence[float] | Floats,
    clusters: Clusters | None = None,
    level: float = 0.95,
    draws: int = 9999,
    seed: int = 0,
) -> Estimate:
    """Mean with a bias-corrected and accelerated bootstrap interval (Efron 1987).

    `scipy.stats.bootstrap` over the clusters: the mean is the quotient of two cluster sums. For
    seconds, tokens and costs; a 0/1 score has Wilson's interval.

    Parameters
    ----------
    values : array of float, shape (n,)
        One number an item.
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.
    level : float
        Coverage.
    draws, seed : int
        Of the bootstrap.

    Returns
    -------
    Estimate
        Value, standard error and notes as `clustered_mean` gives them, with other ends. Without
        an interval for fewer than 2 clusters, or equal values (note ``boundary``).

    Raises
    ------
    ValueError
        For a number that is not finite, draws below 1, or a level out of range.

    Examples
    --------
    >>> found = bca_mean([1, 1, 2, 2, 3, 3, 4, 5, 8, 40, 2, 1])
    >>> found.value, found.value - found.lo < found.hi - found.value
    (6.0, True)
    """
    check_level(level)
    if draws < 1:
        raise ValueError(f"draws = {draws}: a bootstrap needs at least one")
    y = np.asarray(values, dtype=np.float64)
    mean = clustered_mean(y.tolist(), clusters, level)
    lo = hi = None
    notes = [note for note in mean.notes if note != "boundary"]
    if mean.n_clusters >= 2:
        codes = cluster_codes(clusters, len(y))
        sums, sizes = np.bincount(codes, weights=y), np.bincount(codes)
        if np.ptp(sums / sizes) > 0:
            lo, hi = _ends(sums.astype(np.float64), sizes.astype(np.float64), level, draws, seed)
        else:
            notes.append("boundary")
    return Estimate(
        value=mean.value, se=mean.se, lo=lo, hi=hi, method="bca", level=level,
        n_items=mean.n_items, n_clusters=mean.n_clusters, notes=tuple(notes),
    )  # fmt: skip


def _ends(sums: Floats, sizes: Floats, level: float, draws: int, seed: int) -> tuple[float, float]:
    from scipy.stats import bootstrap

    def quotient(top: Floats, bottom: Floats, axis: int = -1) -> Floats:
        found: Floats = top.sum(axis=axis) / bottom.sum(axis=axis)
        return found

    interval = bootstrap(
        (sums, sizes), quotient, paired=True, vectorized=True, n_resamples=draws, batch=1000,
        confidence_level=level, method="BCa", rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return float(interval.low), float(interval.high)
