"""Repeats (epochs) of an item: averaged first, never counted as further items.

More repeats make a score steadier only up to a point; `variance_parts` says how much of the
uncertainty they can still remove. `pass_at_k` is for repeats that are attempts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from harness.stats._clusters import Clusters, Floats, check_finite_or_nan
from harness.stats.intervals import Estimate, clustered_mean, estimate


class VarianceParts(Struct, frozen=True, kw_only=True):
    """Where the uncertainty of a mean score comes from.

    Attributes
    ----------
    value : float
        Mean over items of the mean over repeats.
    se : float or None
        Standard error of `value` (cluster-robust); None below 2 clusters.
    se_items, se_repeats : float or None
        The part that only more items, and the part that only more repeats would make smaller;
        their squares add up to that of `se`. None when no item was repeated.
    n_items, n_clusters : int
        Units behind the value.
    n_epochs_min, n_epochs_max : int
        Fewest and most repeats of an item.
    notes : tuple of str
        Those of `clustered_mean`; ``some items not repeated`` (they are taken to vary like the
        others); ``repeats explain all`` (the part of the repeats came out above the whole, as it
        may by chance; the part of the items is 0 then).
    """

    value: float
    se: float | None
    se_items: float | None
    se_repeats: float | None
    n_items: int
    n_clusters: int
    n_epochs_min: int
    n_epochs_max: int
    notes: tuple[str, ...] = ()


def item_means(values: Iterable[float], items: Iterable[Hashable]) -> dict[Hashable, float]:
    """Mean score of each item over its repeats.

    Parameters
    ----------
    values : iterable of float
        One score an attempt.
    items : iterable of hashable
        The item of each attempt: the whole identity (task, version, item id), since two tasks may
        use the same item id.

    Returns
    -------
    dict
        Item to mean, in the order in which items appear.

    Raises
    ------
    ValueError
        For a score that is not finite, or iterables of unequal length.

    Examples
    --------
    >>> item_means([1, 0, 1, 1], ["a", "a", "b", "b"])
    {'a': 0.5, 'b': 1.0}
    """
    found: dict[Hashable, list[float]] = {}
    for value, item in zip(values, items, strict=True):
        if not math.isfinite(value):
            raise ValueError(f"a score of {item!r} is not finite")
        found.setdefault(item, []).append(value)
    return {item: math.fsum(epochs) / len(epochs) for item, epochs in found.items()}


def variance_parts(
    epochs: Sequence[Sequence[float]] | Floats, clusters: Clusters | None = None
) -> VarianceParts:
    """Split the uncertainty of a mean score into items and repeats.

    With n items, K_i repeats of item i and their variance s_i^2 (divisor K_i - 1), the repeats'
    part of the variance of the mean is ``sum_i(s_i^2 / K_i) / n^2``; the items' part is the rest
    of the cluster-robust variance (one-way random effects; Miller 2024, arXiv 2411.00640).
    An item with one repeat has no s_i^2 of its own and gets the mean of the others'.

    Parameters
    ----------
    epochs : sequence of sequences, or array of shape (n_items, n_epochs)
        Scores of each item's repeats; not all items need the same number, NaN stands for none.
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.

    Returns
    -------
    VarianceParts

    Raises
    ------
    ValueError
        Without items, for an item without a score, or an infinite score.

    Examples
    --------
    >>> parts = variance_parts([[1, 0], [1, 1], [0, 0], [0, 1]])
    >>> [round(se, 6) for se in (parts.se, parts.se_items, parts.se_repeats)]
    [0.204124, 0.102062, 0.176777]
    """
    kept = [_answered(row, i) for i, row in enumerate(epochs)]
    if not kept:
        raise ValueError("no items")
    counts = np.array([len(row) for row in kept])
    whole = clustered_mean([math.fsum(row) / len(row) for row in kept], clusters)
    assert whole.value is not None
    notes = list(whole.notes)
    se_items = se_repeats = None
    if whole.se is not None and counts.max() > 1:
        repeated = counts > 1
        if not repeated.all():
            notes.append("some items not repeated")
        within = np.array([np.var(row, ddof=1) if len(row) > 1 else np.nan for row in kept])
        within[~repeated] = within[repeated].mean()
        part = float((within / counts).sum()) / len(kept) ** 2
        rest = whole.se**2 - part
        if rest < 0:
            notes.append("repeats explain all")
        se_repeats = math.sqrt(min(part, whole.se**2))
        se_items = math.sqrt(max(rest, 0.0))
    return VarianceParts(
        value=whole.value, se=whole.se, se_items=se_items, se_repeats=se_repeats,
        n_items=whole.n_items, n_clusters=whole.n_clusters,
        n_epochs_min=int(counts.min()), n_epochs_max=int(counts.max()), notes=tuple(notes),
    )  # fmt: skip


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k attempts is right, from n attempts with c right.

    ``1 - C(n - c, k) / C(n, k)``, without bias (Chen et al. 2021, arXiv 2107.03374, eq. 1);
    ``1 - (1 - c/n)^k`` is too low.

    Parameters
    ----------
    n, c : int
        Attempts and right ones, ``0 <= c <= n``.
    k : int
        Attempts allowed, ``1 <= k <= n``.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For counts out of range.

    Examples
    --------
    >>> round(pass_at_k(10, 3, 5), 6), round(pass_at_k(200, 13, 10), 6)
    (0.916667, 0.497551)
    """
    return float(pass_at_k_items([n], [c], k)[0])


def pass_at_k_items(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """`pass_at_k` of many items at once.

    Parameters
    ----------
    n, c : array of int, shape (n_items,)
        Attempts and right ones of each item; either may be one number for all.
    k : int
        Attempts allowed: from 1 to the fewest attempts of an item.

    Returns
    -------
    array of float, shape (n_items,)

    Raises
    ------
    ValueError
        For counts out of range.

    Examples
    --------
    >>> pass_at_k_items([5, 5], [0, 3], 3).tolist()
    [0.0, 1.0]
    """
    attempts, right = np.broadcast_arrays(np.asarray(n), np.asarray(c))
    if attempts.size and not (1 <= k <= attempts.min()):
        raise ValueError(f"k = {k}: from 1 to the {attempts.min()} attempts of each item")
    if (right < 0).any() or (right > attempts).any():
        raise ValueError("right attempts must be from 0 to the number of attempts")
    # A product of k factors: the binomials themselves overflow.
    all_wrong = np.ones(attempts.shape)
    for j in range(k):
        all_wrong *= np.maximum(attempts - right - j, 0) / (attempts - j)
    return 1 - all_wrong


def pass_at_k_estimate(
    successes: Sequence[int],
    epochs: Sequence[int],
    k: int,
    clusters: Clusters | None = None,
    level: float = 0.95,
) -> Estimate:
    """pass@k of a task: the mean over items, with the interval of a mean.

    Parameters
    ----------
    successes, epochs : sequence of int
        Right attempts and attempts of each item.
    k : int
        Attempts allowed: from 1 to the fewest attempts of an item.
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.
    level : float
        Coverage.

    Returns
    -------
    Estimate
        As `harness.stats.intervals.estimate` gives it for the per-item values.

    Raises
    ------
    ValueError
        For k above the fewest attempts, or counts out of range.

    Examples
    --------
    >>> pass_at_k_estimate([3, 0, 10], [10, 10, 10], 5).value
    0.638888...
    """
    if len(successes) != len(epochs):
        raise ValueError(f"{len(successes)} counts of successes, but {len(epochs)} of attempts")
    values = pass_at_k_items(epochs, successes, k)
    return estimate(values.tolist(), clusters, level)


def _answered(row: Sequence[float] | Floats, index: int) -> list[float]:
    values = np.asarray(row, dtype=np.float64)
    check_finite_or_nan(values)
    kept: list[float] = values[~np.isnan(values)].tolist()
    if not kept:
        raise ValueError(f"item {index} has no score; leave it out and say so")
    return kept
