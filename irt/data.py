"""Responses: which model solved which item, k of n times, checked and in one canonical order.

Everything downstream sees arrays of shape (items, models); a cell that was never tried has
k = n = 0 and drops out of every sum. Models and items are sorted, so the same table in any row
order gives the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from irt._table import (
    NAMED,
    DataError,
    Floats,
    Mask,
    Rows,
    Scores,
    axis_names,
    check_counts,
    listed,
    read_matrix,
    read_rows,
)

__all__ = ["DataError", "Floats", "Mask", "Responses", "Rows", "Scores", "read_rows"]


@dataclass(frozen=True, eq=False)
class Responses:
    """Answers of models to items.

    Use `from_table`, `from_matrix`, `from_pyirt` or `irt.read`, which check and sort.

    Parameters
    ----------
    models : tuple
        Names, sorted; shape (P,).
    items : tuple
        Keys, sorted; strings, tuples or anything hashable with a stable `repr`; shape (I,).
    k : array of float, shape (I, P)
        Successes (or scores, where `fractional`).
    n : array of float, shape (I, P)
        Attempts; 0 where the model was never asked.
    fractional : bool
        Whether scores between 0 and 1 were declared: then standard errors are sandwich ones.

    Examples
    --------
    >>> table = {"model": ["x", "x", "y"], "item": ["1", "2", "2"], "k": [1, 0, 3], "n": [1, 1, 4]}
    >>> data = Responses.from_table(table)
    >>> data.models, data.n.tolist()
    (('x', 'y'), [[1.0, 0.0], [1.0, 4.0]])
    """

    models: tuple[Hashable, ...]
    items: tuple[Hashable, ...]
    k: Floats
    n: Floats
    fractional: bool = False

    @classmethod
    def from_table(cls, table: Any, scores: Scores = "counts") -> Responses:
        """Read a long table: one row a cell.

        Parameters
        ----------
        table : mapping of columns, list of mappings, pyarrow Table, data frame or structured array
            Columns `model`, `item`, `k` and, optionally, `n` (1 where there is no such column).
        scores : {"counts", "fractional"}
            "fractional" allows real numbers 0 <= k <= n.

        Returns
        -------
        Responses
            Models and items sorted; cells without a row have n = 0.

        Raises
        ------
        DataError
            For a missing column or name, a cell given twice, or numbers that are no k of n; the
            rows are named, counted from 1.
        """
        rows = read_rows(table, scores)
        cell = rows.item * len(rows.models) + rows.model
        order = np.argsort(cell, kind="stable")
        again = order[1:][cell[order][1:] == cell[order][:-1]]
        if again.size:
            raise DataError(f"a cell is given twice: {listed(np.sort(again), rows.named)}")
        shape = (len(rows.items), len(rows.models))
        grid_k, grid_n = np.zeros(shape), np.zeros(shape)
        grid_k[rows.item, rows.model] = rows.k
        grid_n[rows.item, rows.model] = rows.n
        return cls(rows.models, rows.items, grid_k, grid_n, scores == "fractional")

    @classmethod
    def from_matrix(
        cls,
        k: Any,
        n: Any = None,
        *,
        models: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        scores: Scores = "counts",
    ) -> Responses:
        """Read a matrix with a row a model and a column an item.

        Parameters
        ----------
        k : array, shape (P, I)
            Successes; NaN where the model was never asked.
        n : array, shape (P, I), optional
            Attempts; by default 1 in every cell that is not NaN.
        models, items : sequence, optional
            Names; by default `m0000`, ... and `i0000`, ...
        scores : {"counts", "fractional"}
            "fractional" allows real numbers 0 <= k <= n.

        Returns
        -------
        Responses
            Sorted by name, transposed to items × models.

        Raises
        ------
        DataError
            For names that do not fit or are given twice, or numbers that are no k of n.
        """
        grid_k = read_matrix("k", k)
        if grid_k.ndim != 2:
            raise DataError(f"a matrix has two dimensions, this one has {grid_k.ndim}")
        missing = np.isnan(grid_k)
        grid_n = (~missing).astype(np.float64) if n is None else read_matrix("n", n)
        if grid_n.shape != grid_k.shape:
            raise DataError(f"k is {grid_k.shape}, n is {grid_n.shape}")
        grid_k = np.where(missing, 0.0, grid_k)
        grid_n = np.where(missing, 0.0, grid_n)
        row_names, rows = axis_names("model", models, grid_k.shape[0])
        column_names, columns = axis_names("item", items, grid_k.shape[1])

        def named(flat: int) -> str:
            i, j = divmod(flat, grid_k.shape[1])
            name_of_row = row_names[int(np.flatnonzero(rows == i)[0])]
            name_of_column = column_names[int(np.flatnonzero(columns == j)[0])]
            return (
                f"cell (model {name_of_row!r}, item {name_of_column!r}): "
                f"k = {grid_k[i, j]:g}, n = {grid_n[i, j]:g}"
            )

        check_counts(grid_k.ravel(), grid_n.ravel(), scores, named)
        return cls(
            tuple(row_names),
            tuple(column_names),
            np.ascontiguousarray(grid_k[rows][:, columns].T),
            np.ascontiguousarray(grid_n[rows][:, columns].T),
            scores == "fractional",
        )

    @classmethod
    def from_pyirt(
        cls, subjects: Iterable[Mapping[str, Any]], scores: Scores = "counts"
    ) -> Responses:
        """Read py-irt's form: one record a model, `subject_id` and `responses {item: 0 or 1}`.

        Parameters
        ----------
        subjects : iterable of mappings
            The decoded lines.
        scores : {"counts", "fractional"}
            As for `from_table`.

        Returns
        -------
        Responses
            Cells without an answer have n = 0.

        Raises
        ------
        DataError
            For a record without the two fields, or answers that `from_table` refuses.
        """
        model: list[Hashable] = []
        item: list[Hashable] = []
        k: list[Any] = []
        for number, record in enumerate(subjects, 1):
            answers = record.get("responses")
            if "subject_id" not in record or not isinstance(answers, Mapping):
                raise DataError(f"record {number} has no subject_id and responses {{item: 0 or 1}}")
            model.extend([record["subject_id"]] * len(answers))
            item.extend(answers)
            k.extend(answers.values())
        return cls.from_table({"model": model, "item": item, "k": k}, scores)

    @cached_property
    def data_hash(self) -> str:
        """sha256 over names, k and n: equal for the same cells in whatever order they came."""
        digest = hashlib.sha256(repr((self.models, self.items)).encode())
        for grid in (self.k, self.n):
            digest.update(np.ascontiguousarray(grid, dtype="<f8").tobytes())
        return digest.hexdigest()

    @property
    def n_cells(self) -> int:
        """Number of cells with at least one attempt."""
        return int(np.count_nonzero(self.n))

    def subset(self, items: Mask, models: Mask) -> Responses:
        """Keep some items and models.

        Parameters
        ----------
        items : array of bool, shape (I,)
        models : array of bool, shape (P,)

        Returns
        -------
        Responses
            The cells of both.
        """
        return Responses(
            tuple(name for name, kept in zip(self.models, models, strict=True) if kept),
            tuple(name for name, kept in zip(self.items, items, strict=True) if kept),
            np.ascontiguousarray(self.k[items][:, models]),
            np.ascontiguousarray(self.n[items][:, models]),
            self.fractional,
        )

    def on_items(self, items: Sequence[Hashable]) -> tuple[Floats, Floats]:
        """Lay the cells out in the order of a bank's items.

        Parameters
        ----------
        items : sequence
            The bank's keys; those without answers here get n = 0.

        Returns
        -------
        k, n : arrays, shape (len(items), P)

        Raises
        ------
        DataError
            For answers to items that the bank does not have.
        """
        place = {key: row for row, key in enumerate(items)}
        unknown = [key for key in self.items if key not in place]
        if unknown:
            raise DataError(
                f"{len(unknown)} items are not in the bank: {', '.join(map(repr, unknown[:NAMED]))}"
            )
        rows = np.array([place[key] for key in self.items], dtype=np.intp)
        k, n = (np.zeros((len(items), len(self.models))) for _ in range(2))
        k[rows], n[rows] = self.k, self.n
        return k, n
