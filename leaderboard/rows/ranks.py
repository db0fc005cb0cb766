"""Scores, intervals and rank intervals of all models on some tasks, from tables of item scores.

The same numbers as `harness.stats` gives item by item, here for whole tables at once: a million
attempts are 840,000 item scores. A mean over tasks has each task fixed and with the same weight; its
standard error is sqrt(sum se_t^2) / T, with the degrees of freedom of Satterthwaite (1946).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from harness.stats.intervals import FEW_CLUSTERS, Estimate, clustered_mean, wilson
from harness.stats.pairs import holm
from harness.stats.ranks import PairMatrix, Standing, all_pairs, rank_intervals
from harness.store.queries import Total

Floats = NDArray[np.float64]
LEVEL = 0.95


class TaskTable(Struct, frozen=True, eq=False):
    """Item scores of one task.

    Attributes
    ----------
    scores : array, shape (n_items, n_models)
        NaN where an item does not count for a model.
    clusters : array of int, shape (n_items,)
        The cluster of each item.
    """

    scores: Floats
    clusters: NDArray[np.int64]


def estimates(table: TaskTable) -> list[Estimate]:
    """Give each model's mean on a task with its interval, as `harness.stats.intervals.estimate`."""
    scores, codes = table.scores, table.clusters
    there = ~np.isnan(scores)
    n = there.sum(axis=0)
    filled = np.where(there, scores, 0.0)
    total = filled.sum(axis=0)
    means = np.divide(total, n, where=n > 0, out=np.zeros(len(n)))
    sizes = _cluster_sums(there.astype(np.float64), codes)
    g = (sizes > 0).sum(axis=0)
    deviations = _cluster_sums(np.where(there, filled - means, 0.0), codes)
    squares = np.square(deviations).sum(axis=0)
    binary = ((filled == 0) | (filled == 1)).all(axis=0)
    found = []
    for k in range(scores.shape[1]):
        if binary[k] and n[k] and g[k] == n[k]:
            found.append(wilson(round(float(total[k])), int(n[k]), LEVEL))
        elif n[k] == 0 or g[k] < 2 or (binary[k] and total[k] in (0, n[k])):
            # The edges have rules of their own, and their home is there.
            column = there[:, k]
            found.append(clustered_mean(scores[column, k].tolist(), codes[column].tolist(), LEVEL))
        else:
            found.append(_t_interval(float(means[k]), float(squares[k]), int(n[k]), int(g[k])))
    return found


def estimate_of(total: Total) -> Estimate:
    """Give a metric's mean with its interval from the sums of a run, as `estimates`."""
    n, g = total.n_items, total.n_clusters
    mean = total.total / n
    if total.is_binary and g == n:
        return wilson(round(total.total), n, LEVEL)
    if g < 2:
        return clustered_mean([mean] * n, [0] * n, LEVEL)
    if total.is_binary and mean in (0, 1):
        # Only size and number of the clusters count where all scores are equal.
        return clustered_mean([mean] * n, [min(i, g - 1) for i in range(n)], LEVEL)
    return _t_interval(mean, total.cluster_sq, n, g)


def over_tasks(by_task: Sequence[Sequence[Estimate]]) -> list[Estimate]:
    """Give each model's mean over tasks with its interval.

    Parameters
    ----------
    by_task : sequence of sequences of Estimate
        For each task one estimate a model.

    Returns
    -------
    list of Estimate
        Method ``macro-t``. No number for a model that lacks a task (``incomplete``), and no interval
        where a task has none or nothing varies; but where every task is at 0 or 1 the intervals of
        the tasks, Wilson's there, are put together (method ``macro-wilson``, see `_from_ends`).
    """
    found = []
    for parts in zip(*by_task, strict=True):
        n_items, g = sum(p.n_items for p in parts), sum(p.n_clusters for p in parts)
        value = se = lo = hi = None
        method = "macro-t"
        notes = [n for n in ("few clusters", "boundary") if any(n in p.notes for p in parts)]
        if any(p.value is None for p in parts):
            notes = ["incomplete"]
        else:
            value = sum(p.value or 0.0 for p in parts) / len(parts)
            if all(p.se is not None for p in parts):
                squares = [(p.se or 0.0) ** 2 for p in parts]
                se = float(np.sqrt(sum(squares))) / len(parts)
                if se > 0:
                    df = _satterthwaite(np.array(squares), np.array([p.n_clusters for p in parts]))
                    half = float(_t_quantile(df)) * se
                    lo, hi = value - half, value + half
                elif all(p.value in (0, 1) and p.lo is not None for p in parts):
                    lo, hi = _from_ends(parts, value)
                    method = "macro-wilson"
        found.append(Estimate(
            value=value, se=se, lo=lo, hi=hi, method=method, level=LEVEL, n_items=n_items,
            n_clusters=g, notes=tuple(notes),
        ))  # fmt: skip
    return found


def _from_ends(parts: Sequence[Estimate], value: float) -> tuple[float, float]:
    """Put the intervals of tasks together for their mean, where their standard errors say nothing.

    The distances of the ends from the scores add up as standard errors do: the method of variance
    estimates recovery of Zou and Donner (2008).
    """
    below = math.hypot(*((p.value or 0.0) - (p.lo or 0.0) for p in parts)) / len(parts)
    above = math.hypot(*((p.hi or 0.0) - (p.value or 0.0) for p in parts)) / len(parts)
    return value - below, value + above


def pairs_of(table: TaskTable, baseline: NDArray[np.bool_]) -> PairMatrix:
    """Test every pair of models on a task; those without any score count as baselines there."""
    names = [str(k) for k in range(table.scores.shape[1])]
    out = baseline | np.isnan(table.scores).all(axis=0)
    alone = int(table.clusters.max(initial=-1)) + 1 == len(table.clusters)
    clusters = None if alone else table.clusters.tolist()
    left_out = [name for name, is_out in zip(names, out, strict=True) if is_out]
    return all_pairs(table.scores, names, clusters, left_out)


def standings(
    pairs: Sequence[PairMatrix], means: Sequence[Estimate], baseline: NDArray[np.bool_]
) -> list[Standing]:
    """Give each model's rank interval and tier on one task, or on the mean over several.

    Parameters
    ----------
    pairs : sequence of PairMatrix
        One a task, of the same models in the same order (`pairs_of`).
    means : sequence of Estimate
        Of each model: what the tiers are ordered by.
    baseline : array of bool, shape (K,)
        Mocks: no rank, and no part in the correction. Those without a value get no rank either.
    """
    values = np.array([np.nan if m.value is None else m.value for m in means])
    ranked = ~baseline & ~np.isnan(values)
    if len(pairs) == 1:
        p_adj, diff = pairs[0].p_adj, pairs[0].diff
    else:
        p_adj, diff = _macro_pairs(pairs, ranked)
    with np.errstate(invalid="ignore"):
        better = (p_adj <= round(1 - LEVEL, 12)) & (diff > 0)
    return rank_intervals(values, better, ranked)


def _macro_pairs(pairs: Sequence[PairMatrix], ranked: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Test every pair on its mean difference over tasks; Holm over all ranked pairs."""
    from scipy.special import stdtr

    diff = np.mean([p.diff for p in pairs], axis=0)
    squares = np.square([p.se for p in pairs])
    g = np.array([p.n_clusters for p in pairs])
    se = np.sqrt(squares.sum(axis=0)) / len(pairs)
    comparable = np.all([p.comparable for p in pairs], axis=0)
    family = np.triu(comparable & ranked[:, None] & ranked[None, :], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t_test = 2 * stdtr(_satterthwaite(squares, g), -np.abs(diff / se))
    # As for one task: without any spread only two of all sign flips reach the difference.
    flat = np.where(diff == 0, 1.0, 2.0 ** (1.0 - g.sum(axis=0)))
    p = np.where(se > 0, t_test, flat)
    p_adj = np.full(p.shape, np.nan)
    rows, columns = np.nonzero(family)
    p_adj[rows, columns] = p_adj[columns, rows] = holm(p[rows, columns])
    return p_adj, diff


def _satterthwaite(squares: Floats, n_clusters: NDArray[np.int64]) -> Floats:
    """Degrees of freedom of a sum of variances with G - 1 each, along the first axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        df = squares.sum(axis=0) ** 2 / (squares**2 / (n_clusters - 1)).sum(axis=0)
    return np.asarray(df)


def _cluster_sums(values: Floats, codes: NDArray[np.int64]) -> Floats:
    n_clusters = int(codes.max(initial=-1)) + 1
    if n_clusters == len(values):
        return values
    sums = np.zeros((n_clusters, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums


def _t_interval(mean: float, squares: float, n: int, g: int) -> Estimate:
    se = float(np.sqrt(squares)) / n * float(np.sqrt(g / (g - 1)))
    half = float(_t_quantile(np.float64(g - 1))) * se
    return Estimate(
        value=mean, se=se, lo=mean - half, hi=mean + half,
        method="cluster-t" if g < n else "t", level=LEVEL, n_items=n, n_clusters=g,
        notes=("few clusters",) if g < FEW_CLUSTERS else (),
    )  # fmt: skip


def _t_quantile(df: Floats | np.float64) -> Floats:
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, 0.5 + LEVEL / 2))
