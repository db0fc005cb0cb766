"""Agreement between raters, such as a judge model and people.

Cohen's kappa and Krippendorff's alpha; Pearson's and Spearman's correlation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

import numpy as np

from harness.stats._clusters import (
    Clusters,
    Floats,
    check_finite_or_nan,
    check_level,
    cluster_codes,
)
from harness.stats.intervals import FEW_CLUSTERS, Estimate

Weights = Literal["none", "linear", "quadratic"]
Scale = Literal["nominal", "ordinal", "interval"]
Correlation = Literal["pearson", "spearman"]


def cohen_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    weights: Weights = "none",
    categories: Sequence[Hashable] | None = None,
) -> float | None:
    """Agreement of two raters beyond chance.

    ``1 - sum w_ij O_ij / sum w_ij E_ij`` with the observed table O, the table E that the two
    raters' own shares would give, and the disagreement w_ij = 1 for i != j, |i - j| (linear), or
    (i - j)^2 (quadratic) (Cohen 1960, 1968).

    Parameters
    ----------
    a, b : sequence, shape (n,)
        The label each rater gave to each item.
    weights : {"none", "linear", "quadratic"}
        How far apart two labels count; the weighted forms need labels in order.
    categories : sequence, optional
        All labels in their order; by default those that occur, sorted.

    Returns
    -------
    float or None
        At most 1; 0 is agreement by chance. None when it is not defined: no items, or both raters
        gave one and the same label throughout.

    Raises
    ------
    ValueError
        For sequences of unequal length, or a label that is not among the categories.

    Examples
    --------
    >>> first = ["yes"] * 25 + ["no"] * 25
    >>> second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    >>> round(cohen_kappa(first, second), 6)
    0.4
    """
    codes, n_labels = _labels(a, b, categories)
    table = np.bincount(codes, minlength=n_labels**2).astype(np.float64)
    kappa = float(_kappas(table[None, :], _distances(n_labels, weights))[0])
    return None if math.isnan(kappa) else kappa


def kappa_estimate(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    weights: Weights = "none",
    categories: Sequence[Hashable] | None = None,
    clusters: Clusters | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Cohen's kappa with a percentile bootstrap interval over clusters (dialogues).

    Parameters
    ----------
    a, b, weights, categories
        As for `cohen_kappa`.
    clusters : sequence, optional
        What is drawn with replacement: the dialogue of each item; None stands for an item by
        itself.
    level : float
        Coverage.
    draws, seed : int
        Of the bootstrap. Draws in which kappa is not defined are left out.

    Returns
    -------
    Estimate
        Method ``bootstrap``; without an interval for fewer than 2 clusters, or where kappa itself
        is not defined.

    Raises
    ------
    ValueError
        As for `cohen_kappa`, and for draws below 1.
    """
    labels, n_labels = _labels(a, b, categories)
    groups = cluster_codes(clusters, len(labels))
    g = int(groups.max(initial=-1)) + 1

    def drawn(times: Floats) -> Floats:
        tables = np.zeros((g, n_labels**2))
        np.add.at(tables, (groups, labels), 1)
        return _kappas(times @ tables, _distances(n_labels, weights))

    value = cohen_kappa(a, b, weights, categories)
    return _bootstrapped(value, len(labels), g, level, draws, seed, drawn)


def correlation(a: Sequence[float], b: Sequence[float], kind: Correlation) -> float | None:
    """Correlation of two raters' numbers, as ``scipy.stats`` gives it too.

    Parameters
    ----------
    a, b : sequence of float, shape (n,)
        What each rater gave to each item.
    kind : {"pearson", "spearman"}
        Of the numbers, or of their ranks (ties share the mean rank).

    Returns
    -------
    float or None
        -1 to 1. None when it is not defined: fewer than 2 items, or equal numbers of one rater.

    Raises
    ------
    ValueError
        For sequences of unequal length, a number that is not finite, or an unknown kind.

    Examples
    --------
    >>> round(correlation([1, 2, 3, 4], [1, 4, 9, 16], "pearson"), 6)
    0.984374
    >>> correlation([1, 2, 3, 4], [1, 4, 9, 16], "spearman")
    1.0
    """
    x, y = _numbers(a, b, kind)
    return _correlated(x, y)


def correlation_estimate(
    a: Sequence[float],
    b: Sequence[float],
    kind: Correlation,
    clusters: Clusters | None = None,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Correlation with a percentile bootstrap interval over clusters (items).

    Parameters
    ----------
    a, b, kind
        As for `correlation`. Ranks are taken anew in each draw.
    clusters : sequence, optional
        What is drawn with replacement; None stands for a pair by itself.
    level : float
        Coverage.
    draws, seed : int
        Of the bootstrap. Draws in which the correlation is not defined are left out.

    Returns
    -------
    Estimate
        Method ``bootstrap``; without an interval for fewer than 2 clusters, or where the
        correlation itself is not defined.

    Raises
    ------
    ValueError
        As for `correlation`, and for draws below 1.
    """
    x, y = _numbers(a, b, kind)
    groups = cluster_codes(clusters, len(a))
    g = int(groups.max(initial=-1)) + 1

    def drawn(times: Floats) -> Floats:
        weights = times[:, groups]
        if kind == "spearman":
            return _weighted_correlations(_ranks(weights, x), _ranks(weights, y), weights)
        return _weighted_correlations(x[None, :], y[None, :], weights)

    return _bootstrapped(_correlated(x, y), len(a), g, level, draws, seed, drawn)


def _bootstrapped(
    value: float | None,
    n: int,
    g: int,
    level: float,
    draws: int,
    seed: int,
    drawn: Callable[[Floats], Floats],
) -> Estimate:
    """Join a value with the percentiles of its draws, each of them how often a cluster is in it."""
    check_level(level)
    if draws < 1:
        raise ValueError(f"draws = {draws}: a bootstrap needs at least one")
    se = lo = hi = None
    notes = ["few clusters"] if 2 <= g < FEW_CLUSTERS else []
    if value is None or g < 2:
        notes.append("one cluster" if g == 1 else "no items" if g == 0 else "boundary")
    else:
        times = np.random.default_rng(seed).multinomial(g, np.full(g, 1 / g), size=draws)
        found = drawn(times.astype(np.float64))
        found = found[~np.isnan(found)]
        if found.size > 1 and np.ptp(found) > 0:
            se = float(found.std(ddof=1))
            tail = (1 - level) / 2
            lo, hi = (float(end) for end in np.quantile(found, (tail, 1 - tail)))
        else:
            notes.append("boundary")
    return Estimate(
        value=value, se=se, lo=lo, hi=hi, method="bootstrap", level=level,
        n_items=n, n_clusters=g, notes=tuple(notes),
    )  # fmt: skip


def krippendorff_alpha(ratings: Floats, scale: Scale = "nominal") -> float | None:
    """Agreement of any number of raters, with missing ratings.

    ``1 - D_o / D_e``: the mean disagreement of values given to one unit, over that of all values
    paired at random. The disagreement of two values is 1 unless equal (nominal), the squared
    difference (interval), or the squared number of ratings between them, the two values' own
    counted half (ordinal) (Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011).

    Parameters
    ----------
    ratings : array of float, shape (n_raters, n_units)
        NaN where a rater gave none. Units with fewer than two ratings do not count.
    scale : {"nominal", "ordinal", "interval"}
        What the numbers mean.

    Returns
    -------
    float or None
        At most 1; 0 is agreement by chance. None when it is not defined: no unit has two ratings,
        or all ratings are equal.

    Raises
    ------
    ValueError
        For an array of another shape, an infinite rating, or an unknown scale.

    Examples
    --------
    >>> first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    >>> second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    >>> round(krippendorff_alpha(np.array([first, second], dtype=float)), 3)
    0.095
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"a table of raters x units is needed, not {table.shape}")
    check_finite_or_nan(table)
    table = table[:, (~np.isnan(table)).sum(axis=0) >= 2]
    values = np.unique(table[~np.isnan(table)])
    if values.size < 2:
        return None
    counts = (table[:, :, None] == values).sum(axis=0).astype(np.float64)
    raters = counts.sum(axis=1, keepdims=True)
    # Coincidences: every ordered pair of ratings of a unit, a unit of m ratings weighing m.
    observed = (counts / (raters - 1)).T @ counts - np.diag((counts / (raters - 1)).sum(axis=0))
    totals = counts.sum(axis=0)
    expected = (np.outer(totals, totals) - np.diag(totals)) / (totals.sum() - 1)
    distance = _alpha_distances(values, totals, scale)
    return float(1 - (observed * distance).sum() / (expected * distance).sum())


def _labels(
    a: Sequence[Hashable], b: Sequence[Hashable], categories: Sequence[Hashable] | None
) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], int]:
    """Number of the cell of the agreement table for each item, and the number of labels."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} labels of one rater, but {len(b)} of the other")
    order = sorted({*a, *b}) if categories is None else list(categories)  # type: ignore[type-var]
    place = {label: i for i, label in enumerate(order)}
    strange = {*a, *b} - set(place)
    if strange:
        raise ValueError(f"labels outside the categories: {sorted(map(repr, strange))}")
    cells = [place[x] * len(order) + place[y] for x, y in zip(a, b, strict=True)]
    return np.array(cells, dtype=np.intp), len(order)


def _numbers(a: Sequence[float], b: Sequence[float], kind: Correlation) -> tuple[Floats, Floats]:
    """Check two raters' numbers, and give their ranks where these are what is correlated."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"{len(a)} numbers of one rater, but {len(b)} of the other")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a number is not finite")
    if kind == "pearson":
        return x, y
    if kind == "spearman":
        from scipy.stats import rankdata

        return rankdata(x), rankdata(y)
    raise ValueError(f"kind {kind!r}: pearson or spearman")


def _correlated(x: Floats, y: Floats) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def _ranks(weights: Floats, values: Floats) -> Floats:
    """Mean ranks of values that occur so often in each draw, shape (draws, n)."""
    levels, places = np.unique(values, return_inverse=True)
    counts = weights @ (places[:, None] == np.arange(len(levels))).astype(np.float64)
    ranks: Floats = (counts.cumsum(axis=1) - (counts - 1) / 2)[:, places]
    return ranks


def _weighted_correlations(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Correlation within each draw; NaN where one of the two is constant."""
    n = weights.sum(axis=1, keepdims=True)
    dx, dy = (v - (weights * v).sum(axis=1, keepdims=True) / n for v in (x, y))
    squares = (weights * dx**2).sum(axis=1) * (weights * dy**2).sum(axis=1)
    varies = np.ones(len(weights), dtype=bool)
    for v in (x, y):  # exactly, where sums of squares would leave a rounding error
        most = np.where(weights > 0, v, -np.inf).max(axis=1)
        varies &= most > np.where(weights > 0, v, np.inf).min(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (weights * dx * dy).sum(axis=1) / np.sqrt(squares)
    return np.where(varies, found, np.nan)


def _distances(n_labels: int, weights: Weights) -> Floats:
    steps = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels))).astype(np.float64)
    if weights == "none":
        return (steps > 0).astype(np.float64)
    if weights == "linear":
        return steps
    if weights == "quadratic":
        return steps**2
    raise ValueError(f"weights {weights!r}: none, linear or quadratic")


def _kappas(tables: Floats, distance: Floats) -> Floats:
    """Kappa of each flattened agreement table, shape (draws, labels^2); NaN where not defined."""
    k = len(distance)
    cells = tables.reshape(len(tables), k, k)
    observed = (cells * distance).sum(axis=(1, 2))
    rows, columns = cells.sum(axis=2), cells.sum(axis=1)
    by_chance = np.einsum("bi,ij,bj->b", rows, distance, columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = 1 - observed * cells.sum(axis=(1, 2)) / by_chance
    return np.where(by_chance > 0, found, np.nan)


def _alpha_distances(values: Floats, totals: Floats, scale: Scale) -> Floats:
    if scale == "nominal":
        return 1 - np.eye(len(values))
    if scale == "interval":
        return np.subtract.outer(values, values) ** 2
    if scale == "ordinal":
        middles = np.cumsum(totals) - totals / 2
        return np.subtract.outer(middles, middles) ** 2
    raise ValueError(f"scale {scale!r}: nominal, ordinal or interval")
