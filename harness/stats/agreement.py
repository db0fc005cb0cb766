"""Agreement between raters, such as a judge model and people: Cohen's kappa, Krippendorff's alpha."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
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
    check_level(level)
    if draws < 1:
        raise ValueError(f"draws = {draws}: a bootstrap needs at least one")
    labels, n_labels = _labels(a, b, categories)
    groups = cluster_codes(clusters, len(labels))
    g = int(groups.max(initial=-1)) + 1
    value = cohen_kappa(a, b, weights, categories)
    se = lo = hi = None
    notes = ["few clusters"] if 2 <= g < FEW_CLUSTERS else []
    if value is None or g < 2:
        notes.append("one cluster" if g == 1 else "no items" if g == 0 else "boundary")
    else:
        tables = np.zeros((g, n_labels**2))
        np.add.at(tables, (groups, labels), 1)
        times = np.random.default_rng(seed).multinomial(g, np.full(g, 1 / g), size=draws)
        found = _kappas(times @ tables, _distances(n_labels, weights))
        found = found[~np.isnan(found)]
        if found.size > 1 and np.ptp(found) > 0:
            se = float(found.std(ddof=1))
            tail = (1 - level) / 2
            lo, hi = (float(end) for end in np.quantile(found, (tail, 1 - tail)))
        else:
            notes.append("boundary")
    return Estimate(
        value=value, se=se, lo=lo, hi=hi, method="bootstrap", level=level,
        n_items=len(labels), n_clusters=g, notes=tuple(notes),
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
