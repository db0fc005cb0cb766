"""One number over several tasks: the macro mean, with a hierarchical bootstrap interval."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from harness.stats._clusters import (
    Clusters,
    Codes,
    Floats,
    check_finite_or_nan,
    check_level,
    cluster_codes,
)
from harness.stats.intervals import FEW_CLUSTERS, Estimate

LEVELS = ("cluster", "item", "epoch")
_CELLS = 4_000_000  # weights held at a time: 32 MB


class TaskScores(Struct, frozen=True, kw_only=True, eq=False):
    """Scores of one task.

    Attributes
    ----------
    scores : array of float, shape (n_items, n_models) or (n_items, n_models, n_epochs)
        NaN for what does not count or was not run. A model with no score at all did not run the
        task.
    clusters : sequence, optional
        The cluster of each item; None stands for an item by itself.
    """

    scores: Floats
    clusters: Clusters | None = None


class Overall(Struct, frozen=True, kw_only=True):
    """A model's score over a set of tasks.

    Attributes
    ----------
    model : str
        Name.
    estimate : Estimate
        Macro mean, method ``bootstrap``; no number for a model that did not run every task.
        Notes: ``incomplete``; ``one cluster`` (in some task, so that no interval can be given);
        ``few clusters`` (fewer than 10 in some task); ``boundary`` (all scores of some task are
        equal: its part of the uncertainty counts as 0). Where all draws are equal there is no
        interval.
    n_tasks, of_tasks : int
        Tasks the model ran, and tasks of the set.
    draws, seed : int
        Of the bootstrap.
    """

    model: str
    estimate: Estimate
    n_tasks: int
    of_tasks: int
    draws: int
    seed: int


def overall(
    tasks: Mapping[str, TaskScores],
    models: Sequence[str],
    *,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    resample_tasks: bool = False,
    levels: Collection[str] = LEVELS,
) -> list[Overall]:
    """Macro mean over tasks (each task one weight) with a percentile bootstrap interval.

    Each draw takes clusters with replacement, inside them items, inside these epochs: nested
    multinomial weights, the same for all models, so that one matrix product gives every model's
    mean of a task in every draw (Davison and Hinkley 1997, section 3.8). Resampling at every level
    counts what varies inside a cluster twice, so that the interval is too wide rather than too
    narrow where clusters hold several items (see Notes).

    Parameters
    ----------
    tasks : mapping of str to TaskScores
        The set of tasks; all have the same models in the same order.
    models : sequence of str
        Names of the columns.
    draws : int
        Bootstrap draws, at least 1.
    seed : int
        The same seed gives the same interval bit for bit, in any process and with any number of
        threads.
    level : float
        Coverage.
    resample_tasks : bool
        True for the claim "on tasks like these": tasks are drawn too, and the interval grows. By
        default the claim is about these tasks.
    levels : collection of str
        What is resampled below the task, of ``cluster``, ``item``, ``epoch``.

    Returns
    -------
    list of Overall
        In the order of `models`.

    Raises
    ------
    ValueError
        Without draws, tasks or levels, or for shapes that do not fit.

    Notes
    -----
    Simulated coverage at a nominal 95 % (400 sets of three tasks of 300 items, `bench/coverage.py`):
    94.0 % for items by themselves; for clusters of ten 96.5 % where clusters differ much, 99.0 %
    where they do not differ at all.

    Examples
    --------
    >>> arithmetic = TaskScores(scores=np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]))
    >>> drawing = TaskScores(scores=np.array([[0.5, np.nan], [0.5, np.nan], [0.2, np.nan]]))
    >>> a, b = overall({"arithmetic": arithmetic, "drawing": drawing}, ["a", "b"])
    >>> round(a.estimate.value, 4), b.estimate.value, b.estimate.notes, b.n_tasks, b.of_tasks
    (0.5333, None, ('incomplete',), 1, 2)
    """
    _check_call(tasks, models, draws, level, levels)
    rng = np.random.default_rng(seed)
    names = sorted(tasks)  # not the order in which a query happened to return them
    prepared = [_Task(tasks[name], name, len(models)) for name in names]
    copies = np.ones((draws, len(names)), dtype=np.int64)
    if resample_tasks:
        copies = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    sums = np.zeros((draws, len(models)))
    for t, task in enumerate(prepared):
        times = copies[:, t]
        # A task left out of a draw has no mean there, and needs none.
        means = task.draw(rng, np.maximum(times, 1), set(levels))
        sums += times[:, None] * means
    rows = []
    for k, model in enumerate(models):
        ran = [task for task in prepared if task.n_items[k]]
        estimate = _summary(prepared, ran, k, sums[:, k] / len(names), level)
        rows.append(
            Overall(
                model=model, estimate=estimate, n_tasks=len(ran), of_tasks=len(names),
                draws=draws, seed=seed,
            )
        )  # fmt: skip
    return rows


class _Task:
    """One task, laid out for the matrix products."""

    def __init__(self, task: TaskScores, name: str, n_models: int) -> None:
        scores = np.asarray(task.scores, dtype=np.float64)
        if scores.ndim == 2:
            scores = scores[:, :, None]
        if scores.ndim != 3 or scores.shape[1] != n_models:
            raise ValueError(
                f"task {name}: items x {n_models} models are needed, not {scores.shape}"
            )
        check_finite_or_nan(scores)
        there = ~np.isnan(scores)
        counts = there.sum(axis=2)
        filled = np.where(there, scores, 0.0)
        means = filled.sum(axis=2) / np.maximum(counts, 1)
        self.codes = cluster_codes(task.clusters, len(scores))
        self.answered = counts > 0
        self.n_items = self.answered.sum(axis=0)
        self.values = [math.fsum(means[self.answered[:, k], k]) for k in range(n_models)]
        self.n_clusters = [len(np.unique(self.codes[a])) for a in self.answered.T]
        self.constant = [_all_equal(scores[:, k][there[:, k]]) for k in range(n_models)]
        # A repeat that is missing is filled with the mean of the item's others: then every item
        # has one vote whichever repeats are drawn.
        repeats = np.where(there, scores, means[:, :, None])
        self.n_epochs = scores.shape[2]
        self.repeats = _on_grid(repeats.transpose(0, 2, 1).reshape(-1, n_models))
        self.means = _on_grid(means)

    def draw(self, rng: np.random.Generator, copies: Codes, levels: set[str]) -> Floats:
        """Mean of every model in every draw; `copies` of the task are pooled in a draw."""
        found = np.empty((len(copies), self.means.shape[1]))
        block = max(1, _CELLS // max(1, len(self.repeats)))
        for start in range(0, len(copies), block):
            times = copies[start : start + block]
            weights = _item_weights(rng, self.codes, times, levels)
            if self.n_epochs > 1 and "epoch" in levels:
                even = np.full(self.n_epochs, 1 / self.n_epochs)
                repeats = rng.multinomial(weights * self.n_epochs, even)
                totals = repeats.reshape(len(times), -1) @ self.repeats / self.n_epochs
            else:
                totals = weights @ self.means
            with np.errstate(invalid="ignore"):  # no answered item drawn: no mean in this draw
                found[start : start + block] = totals / (weights @ self.answered.astype(float))
        return found


def _item_weights(rng: np.random.Generator, codes: Codes, copies: Codes, levels: set[str]) -> Codes:
    """How often each item is drawn, shape (draws, n_items)."""
    sizes = np.bincount(codes)
    g = len(sizes)
    drawn = np.repeat(copies[:, None], g, axis=1)
    if "cluster" in levels:
        drawn = rng.multinomial(copies * g, np.full(g, 1 / g))
    if "item" not in levels:
        return drawn[:, codes]
    weights = np.empty((len(copies), len(codes)), dtype=np.int64)
    for size, items in _by_size(codes, sizes):
        times = drawn[:, codes[items[:, 0]]]
        inside = rng.multinomial(times * size, np.full(size, 1 / size)) if size > 1 else times
        weights[:, items.ravel()] = inside.reshape(len(copies), -1)
    return weights


def _by_size(codes: Codes, sizes: Codes) -> Iterator[tuple[int, Codes]]:
    """Items of the clusters of each size, shape (clusters, size): one draw for all of these."""
    order = np.argsort(codes, kind="stable")
    for size in np.unique(sizes):
        inside = order[np.isin(codes[order], np.flatnonzero(sizes == size))]
        yield int(size), inside.reshape(-1, int(size))


def _all_equal(values: Floats) -> bool:
    return bool((values == values[:1]).all())


def _on_grid(values: Floats) -> Floats:
    """Round to multiples of 2^-30 of the largest score.

    Sums of up to eight million of these are exact, hence the same in whatever order a matrix
    product adds them; the rounding, 1e-9, is far below any standard error.
    """
    largest = float(np.abs(values).max(initial=0))
    step = 2.0 ** (math.frexp(largest)[1] - 30)
    return np.rint(values / step) * step


def _summary(
    tasks: Sequence[_Task], ran: Sequence[_Task], k: int, draws: Floats, level: float
) -> Estimate:
    n_items = sum(int(task.n_items[k]) for task in ran)
    n_clusters = sum(task.n_clusters[k] for task in ran)
    value = se = lo = hi = None
    notes = []
    if len(ran) < len(tasks):
        notes.append("incomplete")
    else:
        value = math.fsum(task.values[k] / float(task.n_items[k]) for task in ran) / len(ran)
        fewest = min(task.n_clusters[k] for task in ran)
        if fewest < FEW_CLUSTERS:
            notes.append("one cluster" if fewest < 2 else "few clusters")
        if any(task.constant[k] for task in ran):
            notes.append("boundary")
        drawn = draws[~np.isnan(draws)]
        # Draws that are all equal say nothing about the spread.
        if fewest >= 2 and drawn.size > 1 and np.ptp(drawn) > 0:
            se = float(drawn.std(ddof=1))
            tail = (1 - level) / 2
            lo, hi = (float(end) for end in np.quantile(drawn, (tail, 1 - tail)))
    return Estimate(
        value=value, se=se, lo=lo, hi=hi, method="bootstrap", level=level,
        n_items=n_items, n_clusters=n_clusters, notes=tuple(notes),
    )  # fmt: skip


def _check_call(
    tasks: Mapping[str, TaskScores],
    models: Sequence[str],
    draws: int,
    level: float,
    levels: Collection[str],
) -> None:
    check_level(level)
    if draws < 1:
        raise ValueError(f"draws = {draws}: a bootstrap needs at least one")
    if not tasks:
        raise ValueError("no tasks")
    if len(set(models)) < len(models):
        raise ValueError("a model is named twice")
    if isinstance(levels, str) or not levels or set(levels) - set(LEVELS):
        raise ValueError(f"levels {levels!r}: some of {', '.join(LEVELS)}")
