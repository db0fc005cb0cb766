"""What METR's regression works on: runs, counted by model, task and score."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irt._table import encode
from irt.data import DataError, Floats, Responses, Scores, read_rows
from irt.minutes import read_minutes

WEIGHTS = ("equal", "invsqrt", "runs")


@dataclass(frozen=True, eq=False)
class Cells:
    """Runs of models on tasks, those of one score counted together.

    Parameters
    ----------
    models, items : tuple
        Sorted; shapes (P,), (I,).
    minutes : array, shape (I,)
        Human minutes, above 0.
    family : array of int, shape (I,)
        Number of the task's family; without families every task is one of its own.
    k, n : arrays, shape (I, P)
        Sum of scores and number of runs.
    cell : array of int, shape (C,)
        Positions in (I, P), flattened, of the cells with a run.
    score, count : arrays, shape (C, L)
        The distinct scores of a cell in ascending order and its number of runs with each; rows
        with fewer than L of them begin with counts of 0.
    blurred : int
        Cells that give only the sum of several fractional scores: they cannot be resampled.
    without_minutes, without_runs : tuple
        Tasks and models left out.
    """

    models: tuple[Hashable, ...]
    items: tuple[Hashable, ...]
    minutes: Floats
    family: NDArray[np.intp]
    k: Floats
    n: Floats
    cell: NDArray[np.intp]
    score: Floats
    count: Floats
    blurred: int
    without_minutes: tuple[Hashable, ...]
    without_runs: tuple[Hashable, ...]


def read_cells(
    responses: Any, minutes: Any, families: Mapping[Any, Hashable] | None, scores: Scores
) -> Cells:
    """Count the runs with known minutes.

    Parameters
    ----------
    responses : Responses or table
    minutes : mapping of item to minutes, or table
    families : mapping of item to family, or None
    scores : {"counts", "fractional"}

    Returns
    -------
    Cells

    Raises
    ------
    DataError
        For a table that `Responses` would refuse (apart from repeated cells), minutes that are
        not above 0, a task without a family, or when nothing is left.
    """
    models, items, (row, column, k, n) = _rows(responses, scores)
    known = read_minutes(minutes)
    human = np.array([known.get(item, np.nan) for item in items], dtype=np.float64)
    wrong = [
        item for item, value in zip(items, human, strict=True) if value <= 0 or np.isinf(value)
    ]
    if wrong:
        raise DataError(f"the minutes of item {wrong[0]!r} are {known[wrong[0]]:g}: not above 0")
    used = (n > 0) & ~np.isnan(human[row])
    if not used.any():
        raise DataError("no run of a task whose human minutes are known")
    row, column, k, n = row[used], column[used], k[used], n[used]
    kept_rows, row = np.unique(row, return_inverse=True)
    kept_columns, column = np.unique(column, return_inverse=True)
    tasks = tuple(items[i] for i in kept_rows)
    shape = (len(tasks), len(kept_columns))
    cell, score, count, blurred = _levels(row * shape[1] + column, k, n)
    grids = np.zeros((2, shape[0] * shape[1]))
    grids[0, cell], grids[1, cell] = np.sum(score * count, axis=1), count.sum(axis=1)
    absent = set(range(len(models))) - set(kept_columns.tolist())
    return Cells(
        tuple(models[j] for j in kept_columns), tasks, human[kept_rows],
        _family_numbers(tasks, families), grids[0].reshape(shape), grids[1].reshape(shape),
        cell, score, count, blurred,
        tuple(item for item, value in zip(items, human, strict=True) if np.isnan(value)),
        tuple(models[j] for j in sorted(absent)),
    )  # fmt: skip


def _rows(responses: Any, scores: Scores) -> tuple[Any, Any, tuple[Any, ...]]:
    """Bring both forms of input to rows: item number, model number, k, n."""
    if isinstance(responses, Responses):
        row, column = np.nonzero(responses.n)
        k, n = responses.k[row, column], responses.n[row, column]
        return responses.models, responses.items, (row, column, k, n)
    rows = read_rows(responses, scores)
    return rows.models, rows.items, (rows.item, rows.model, rows.k, rows.n)


def _levels(
    cell: NDArray[np.intp], k: Floats, n: Floats
) -> tuple[NDArray[np.intp], Floats, Floats, int]:
    """Count the runs of every cell by score: cells, scores, counts, blurred cells."""
    whole = (k % 1 == 0) & (n % 1 == 0)
    parts = [
        (cell[whole], np.ones(whole.sum()), k[whole]),
        (cell[whole], np.zeros(whole.sum()), (n - k)[whole]),
        (cell[~whole], (k / n)[~whole], n[~whole]),
    ]
    where, score, count = (np.concatenate(part) for part in zip(*parts, strict=True))
    where, score, count = (column[count > 0] for column in (where, score, count))
    # Sorted and summed by score: the same bits for rows in any order, for runs and for counts.
    order = np.lexsort((score, where))
    where, score, count = where[order], score[order], count[order]
    new = np.r_[True, (np.diff(where) != 0) | (np.diff(score) != 0)]
    count = np.bincount(np.cumsum(new) - 1, count)
    where, score = where[new], score[new]
    cells, number, size = np.unique(where, return_inverse=True, return_counts=True)
    # A multinomial gives its last score what is left over: the empty places come first.
    place = np.arange(len(where)) - np.cumsum(size)[number] + size.max()
    grid = np.zeros((2, len(cells), size.max()))
    grid[0, number, place], grid[1, number, place] = score, count
    return cells, grid[0], grid[1], len(np.unique(cell[~whole & (n != 1)]))


def _family_numbers(
    items: tuple[Hashable, ...], families: Mapping[Any, Hashable] | None
) -> NDArray[np.intp]:
    if families is None:
        return np.arange(len(items))
    absent = [item for item in items if item not in families]
    if absent:
        raise DataError(f"item {absent[0]!r} has no family ({len(absent)} items have none)")
    return encode("family", [families[item] for item in items])[1]


def run_weights(cells: Cells, weights: str) -> Floats:
    """Weigh the runs; those of a model sum to 1.

    Parameters
    ----------
    cells : Cells
    weights : {"equal", "invsqrt", "runs"}
        Every task alike; likewise, divided by the root of the number of tasks that the model ran
        in the family; every run alike.

    Returns
    -------
    array, shape (I, P)
        Weight of one run; 0 where there is none.

    Raises
    ------
    ValueError
        For a name that is not there.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"no weights {weights!r}; there are {', '.join(WEIGHTS)}")
    ran = cells.n > 0
    weight = ran.astype(np.float64)
    if weights != "runs":
        weight /= np.maximum(cells.n, 1)
    if weights == "invsqrt":
        tasks = np.zeros((int(cells.family.max()) + 1, len(cells.models)))
        np.add.at(tasks, cells.family, ran.astype(np.float64))
        weight /= np.sqrt(np.maximum(tasks[cells.family], 1))
    return np.asarray(weight / np.sum(weight * cells.n, axis=0))
