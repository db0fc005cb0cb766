"""Which models differ: all pairs of a table at once, and rank intervals from these tests.

A rank is an interval: low end = 1 + the number of models significantly better, high end = K - the
number significantly worse. On small benchmarks the honest answer is often "1 to K".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from harness.stats._clusters import (
    Clusters,
    Codes,
    Floats,
    check_finite_or_nan,
    check_level,
    cluster_codes,
)
from harness.stats.intervals import estimate
from harness.stats.pairs import ROUNDING, holm

FEWEST_ITEMS = 5
FEWEST_CLUSTERS = 3


class PairMatrix(Struct, frozen=True, kw_only=True, eq=False):
    """All pairs of K models; entry [i, j] is model i against model j.

    Attributes
    ----------
    names : tuple of str
        Models, in the order of the columns.
    baseline : array of bool, shape (K,)
        Models that take part in no correction and get no rank.
    diff : array, shape (K, K)
        Mean difference on the shared items; NaN where there are none.
    se : array, shape (K, K)
        Its standard error; NaN where the pair is not comparable.
    p, p_adj : array, shape (K, K)
        Two-sided p value of the t test with (shared clusters - 1) degrees of freedom, and
        corrected by Holm over all comparable pairs of ranked models; NaN where there is none.
    n_items, n_clusters : array of int, shape (K, K)
        Shared items and clusters; on the diagonal the model's own.
    comparable : array of bool, shape (K, K)
        Whether the pair shares 5 items and 3 clusters. False on the diagonal.
    """

    names: tuple[str, ...]
    baseline: NDArray[np.bool_]
    diff: Floats
    se: Floats
    p: Floats
    p_adj: Floats
    n_items: NDArray[np.int64]
    n_clusters: NDArray[np.int64]
    comparable: NDArray[np.bool_]


class RankTable(Struct, frozen=True, kw_only=True):
    """One row of a rank table.

    Attributes
    ----------
    model : str
        Name.
    value, lo, hi : float or None
        Mean score on the model's own items with its interval.
    rank_lo, rank_hi : int or None
        Best and worst rank the tests leave open; None for a baseline.
    tier : int or None
        1 = the leader and all models not separated from it; None for a baseline.
    n_items : int
        Items behind `value`.
    notes : tuple of str
        Those of the interval; ``baseline``; ``not comparable`` (shares too few items with every
        other ranked model, so that nothing is known of its rank).
    """

    model: str
    value: float | None
    lo: float | None
    hi: float | None
    rank_lo: int | None
    rank_hi: int | None
    tier: int | None
    n_items: int
    notes: tuple[str, ...] = ()


class Standing(Struct, frozen=True, kw_only=True):
    """What the tests leave open of one model's rank.

    Attributes
    ----------
    rank_lo, rank_hi : int or None
        Best and worst rank; None for a baseline.
    tier : int or None
        As in `RankTable`.
    """

    rank_lo: int | None
    rank_hi: int | None
    tier: int | None


def all_pairs(
    table: Floats,
    names: Sequence[str],
    clusters: Clusters | None = None,
    baselines: Collection[str] = (),
) -> PairMatrix:
    """Test every pair of models on the items they share.

    For a complete table with residuals E = Y - column means and their cluster sums S (G x K),
    ``C = S'S G / (G - 1) / n^2`` is the cluster-robust covariance of the means, and
    ``Var(A - B) = C_AA + C_BB - 2 C_AB``: what a regression of each pair's differences on a
    constant gives, for all pairs in one product. With missing cells the same sums are taken over
    each pair's shared items.

    Parameters
    ----------
    table : array of float, shape (n_items, K)
        Item scores (means over repeats); NaN for an item that does not count for that model.
    names : sequence of str
        The K models, no name twice.
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.
    baselines : collection of str
        Models that are shown but not ranked: no correction counts them.

    Returns
    -------
    PairMatrix

    Raises
    ------
    ValueError
        For shapes or names that do not fit, or infinite scores.

    Notes
    -----
    p values are those of t tests also below 50 items, where `harness.stats.pairs.compare_items`
    flips signs: 9,999 sign vectors give no p below 1e-4, and Holm over 780 pairs asks for 6e-5.

    Examples
    --------
    >>> table = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1], [1, 1, 0]])
    >>> pairs = all_pairs(table, ["a", "b", "c"])
    >>> pairs.diff[0].round(3).tolist(), pairs.p_adj[0, 1:].round(3).tolist()
    ([0.0, 0.0, 0.667], [1.0, 0.075])
    """
    scores = np.asarray(table, dtype=np.float64)
    baseline = _check_names(scores, names, baselines)
    check_finite_or_nan(scores)
    codes = cluster_codes(clusters, len(scores))
    there = ~np.isnan(scores)
    filled = np.where(there, scores, 0.0)
    counts = there.sum(axis=0)
    # Differences of centred columns lose fewer digits, and the centres are put back at the end.
    centres = np.divide(filled.sum(axis=0), counts, where=counts > 0, out=np.zeros(len(names)))
    centred = np.where(there, filled - centres, 0.0)
    parts = _complete(centred, codes) if there.all() else _masked(centred, there, codes)
    n_items, n_clusters, shift, squares = parts
    # Products sum [i, j] and [j, i] in another order; A against B is minus B against A to the bit.
    shift, squares = (shift - shift.T) / 2, (squares + squares.T) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        diff = np.where(n_items > 0, shift + (centres[:, None] - centres[None, :]), np.nan)
        se = np.sqrt(squares * n_clusters / (n_clusters - 1)) / n_items
    diff[np.abs(diff) <= ROUNDING * np.abs(filled).max(initial=0)] = 0.0
    comparable = (n_items >= FEWEST_ITEMS) & (n_clusters >= FEWEST_CLUSTERS)
    np.fill_diagonal(comparable, val=False)
    se[~comparable] = np.nan
    np.fill_diagonal(se, 0.0)
    p = _p_values(diff, se, n_clusters, comparable)
    family = comparable & ~(baseline[:, None] | baseline[None, :])
    return PairMatrix(
        names=tuple(names), baseline=baseline, diff=diff, se=se, p=p, p_adj=_corrected(p, family),
        n_items=n_items, n_clusters=n_clusters, comparable=comparable,
    )  # fmt: skip


def rank_table(
    table: Floats,
    names: Sequence[str],
    clusters: Clusters | None = None,
    baselines: Collection[str] = (),
    level: float = 0.95,
    pairs: PairMatrix | None = None,
) -> list[RankTable]:
    """Rank intervals and tiers.

    Parameters
    ----------
    table, names, clusters, baselines
        As for `all_pairs`.
    level : float
        Coverage of the intervals; the rank intervals hold all true ranks at once with this chance.
    pairs : PairMatrix, optional
        What `all_pairs` gave for the same arguments, where it is at hand.

    Returns
    -------
    list of RankTable
        By falling value, equal values by name; baselines stand where their value puts them. Tied
        models may not be numbered by this order: their rank intervals are the same.

    Raises
    ------
    ValueError
        As for `all_pairs`.

    Examples
    --------
    >>> table = np.array([[1, 1, 0]] * 20 + [[0, 1, 0], [1, 0, 0]])
    >>> [(row.model, row.rank_lo, row.rank_hi, row.tier) for row in rank_table(table, "abc")]
    [('a', 1, 2, 1), ('b', 1, 2, 1), ('c', 3, 3, 2)]
    """
    check_level(level)
    scores = np.asarray(table, dtype=np.float64)
    pairs = all_pairs(scores, names, clusters, baselines) if pairs is None else pairs
    if pairs.names != tuple(names):
        raise ValueError("these pairs are of other models than the table")
    codes = cluster_codes(clusters, len(scores))
    means = []
    for column in scores.T:
        there = ~np.isnan(column)
        means.append(estimate(column[there].tolist(), codes[there].tolist(), level))
    # A rounded level such as 0.95 leaves 0.05 plus a last bit; p values are compared with 0.05.
    better = pairs.comparable & (pairs.p_adj <= round(1 - level, 12)) & (pairs.diff > 0)
    ranked = ~pairs.baseline
    values = np.array([np.nan if mean.value is None else mean.value for mean in means])
    standings = rank_intervals(values, better, ranked)
    rows = []
    for k, (name, mean) in enumerate(zip(names, means, strict=True)):
        notes = list(mean.notes)
        if not ranked[k]:
            notes.append("baseline")
        elif ranked.sum() > 1 and not pairs.comparable[k, ranked].any():
            notes.append("not comparable")
        row = RankTable(
            model=name, value=mean.value, lo=mean.lo, hi=mean.hi,
            rank_lo=standings[k].rank_lo, rank_hi=standings[k].rank_hi, tier=standings[k].tier,
            n_items=mean.n_items, notes=tuple(notes),
        )  # fmt: skip
        rows.append(row)
    return sorted(rows, key=lambda row: (row.value is None, -(row.value or 0.0), row.model))


def rank_intervals(
    values: Floats, better: NDArray[np.bool_], ranked: NDArray[np.bool_]
) -> list[Standing]:
    """Rank intervals and tiers from the outcome of tests, whatever tests these were.

    Parameters
    ----------
    values : array, shape (K,)
        Scores; NaN for a model without one. They name the leaders of the tiers.
    better : array of bool, shape (K, K)
        [i, j]: model i is significantly better than model j.
    ranked : array of bool, shape (K,)
        False for those that get no rank.

    Returns
    -------
    list of Standing
        In the order of the models.

    Examples
    --------
    >>> better = np.array([[False, True], [False, False]])
    >>> [s.rank_hi for s in rank_intervals(np.array([0.9, 0.1]), better, np.array([True, True]))]
    [1, 2]
    """
    tiers = _tiers(values, better, ranked)
    n = int(ranked.sum())
    return [
        Standing(
            rank_lo=1 + int(better[ranked, k].sum()) if ranked[k] else None,
            rank_hi=n - int(better[k, ranked].sum()) if ranked[k] else None,
            tier=tiers.get(k),
        )
        for k in range(len(ranked))
    ]


_Parts = tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]
"""Shared items, shared clusters, difference of centred means, sum of squared cluster sums."""


def _complete(centred: Floats, codes: Codes) -> _Parts:
    n, k = centred.shape
    g = int(codes.max(initial=-1)) + 1
    sums = centred if g == n else np.zeros((g, k))
    if g < n:
        np.add.at(sums, codes, centred)
    product = sums.T @ sums
    squares = _cut_rounding(
        np.diag(product)[:, None] + np.diag(product)[None, :] - 2 * product,
        np.square(centred).sum(axis=0),
    )
    return np.full((k, k), n), np.full((k, k), g), np.zeros((k, k)), squares


def _masked(centred: Floats, there: NDArray[np.bool_], codes: Codes) -> _Parts:
    """Sums over each pair's shared items, cluster by cluster; items by themselves all at once."""
    mask = there.astype(np.float64)
    n = mask.T @ mask
    one_sided = centred.T @ mask
    shift = np.divide(one_sided - one_sided.T, n, where=n > 0, out=np.zeros_like(n))
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sizes = np.diff(starts, append=len(codes))
    alone = order[starts[sizes == 1]]
    y, m = centred[alone], mask[alone]
    n_alone, sums = m.T @ m, y.T @ m
    once = np.square(y).T @ m
    # sum (d - shift)^2 over shared items by themselves, d = y_a - y_b
    squares = once + once.T - 2 * (y.T @ y) - 2 * shift * (sums - sums.T) + shift**2 * n_alone
    g = n_alone.copy()
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        rows = order[start : start + size]
        y, m = centred[rows], mask[rows]
        n_here, sums = m.T @ m, y.T @ m
        squares += (sums - sums.T - shift * n_here) ** 2
        g += n_here > 0
    whole = np.square(centred).sum(axis=0)
    return n.astype(np.int64), g.astype(np.int64), shift, _cut_rounding(squares, whole)


def _cut_rounding(squares: Floats, whole: Floats) -> Floats:
    """Set to 0 what is left of equal columns after sums in another order."""
    return np.where(squares <= ROUNDING * (whole[:, None] + whole[None, :]), 0.0, squares)


def _p_values(
    diff: Floats, se: Floats, n_clusters: NDArray[np.int64], comparable: NDArray[np.bool_]
) -> Floats:
    from scipy.special import stdtr

    p = np.full(diff.shape, np.nan)
    spread = comparable & (se > 0)
    p[spread] = 2 * stdtr(n_clusters[spread] - 1, -np.abs(diff[spread] / se[spread]))
    # The same difference in every cluster has no standard error. Of all 2^G sign flips only two
    # reach it, which is the p value; equal columns differ in nothing.
    flat = comparable & (se == 0)
    p[flat] = np.where(diff[flat] == 0, 1.0, 2.0 ** (1 - n_clusters[flat]))
    np.fill_diagonal(p, 1.0)
    return p


def _corrected(p: Floats, family: NDArray[np.bool_]) -> Floats:
    adjusted = np.full(p.shape, np.nan)
    rows, columns = np.nonzero(np.triu(family, 1))
    adjusted[rows, columns] = adjusted[columns, rows] = holm(p[rows, columns])
    np.fill_diagonal(adjusted, 1.0)
    return adjusted


def _tiers(values: Floats, better: NDArray[np.bool_], ranked: NDArray[np.bool_]) -> dict[int, int]:
    """Tier of each ranked model, from the leader down.

    Of several equal leaders each one counts: the order in which they are listed decides nothing.
    """
    left = np.flatnonzero(ranked)
    found: dict[int, int] = {}
    tier = 0
    while left.size:
        tier += 1
        known = values[left]
        top = left if np.isnan(known).all() else left[known == np.nanmax(known)]
        inside = ~better[np.ix_(top, left)].all(axis=0)
        inside |= np.isin(left, top)
        found.update((int(k), tier) for k in left[inside])
        left = left[~inside]
    return found


def _check_names(
    scores: Floats, names: Sequence[str], baselines: Collection[str]
) -> NDArray[np.bool_]:
    if scores.ndim != 2 or scores.shape[1] != len(names):
        raise ValueError(f"a table of items x {len(names)} models is needed, not {scores.shape}")
    if len(set(names)) < len(names):
        raise ValueError("a model is named twice")
    if isinstance(baselines, str) or set(baselines) - set(names):
        raise ValueError(f"baselines {baselines!r} must be names of models in the table")
    return np.array([name in set(baselines) for name in names], dtype=np.bool_)
