"""Responses: which model solved which item, k of n times, checked and in one canonical order.

Everything downstream sees arrays of shape (items, models); a cell that was never tried has
k = n = 0 and drops out of every sum. Models and items are sorted, so the same table in any row
order gives the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Scores = Literal["counts", "fractional"]

_NAMED = 5  # how many offending rows or cells a message names


class DataError(ValueError):
    """Data that cannot be fitted; the message says which rows or cells, and why."""


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
        columns = _columns(table)
        absent = [name for name in ("model", "item", "k") if name not in columns]
        if absent:
            raise DataError(
                f"the table has no column {', '.join(absent)}; it has {', '.join(columns) or 'none'}"
            )
        models, column_of = _encode("model", columns["model"])
        items, row_of = _encode("item", columns["item"])
        k = _numbers("k", columns["k"])
        n = _numbers("n", columns["n"]) if "n" in columns else np.ones(len(k))
        lengths = {len(column_of), len(row_of), len(k), len(n)}
        if len(lengths) > 1:
            raise DataError(f"the columns are not of one length: {sorted(lengths)}")

        def named(row: int) -> str:
            return (
                f"row {row + 1} (model {models[column_of[row]]!r}, item {items[row_of[row]]!r}): "
                f"k = {k[row]:g}, n = {n[row]:g}"
            )

        _check_counts(k, n, scores, named)
        cell = row_of * len(models) + column_of
        order = np.argsort(cell, kind="stable")
        again = order[1:][cell[order][1:] == cell[order][:-1]]
        if again.size:
            raise DataError(f"a cell is given twice: {_list(np.sort(again), named)}")
        shape = (len(items), len(models))
        grid_k, grid_n = np.zeros(shape), np.zeros(shape)
        grid_k[row_of, column_of] = k
        grid_n[row_of, column_of] = n
        return cls(tuple(models), tuple(items), grid_k, grid_n, scores == "fractional")

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
        grid_k = np.asarray(k, dtype=np.float64)
        if grid_k.ndim != 2:
            raise DataError(f"a matrix has two dimensions, this one has {grid_k.ndim}")
        missing = np.isnan(grid_k)
        grid_n = (~missing).astype(np.float64) if n is None else np.asarray(n, dtype=np.float64)
        if grid_n.shape != grid_k.shape:
            raise DataError(f"k is {grid_k.shape}, n is {grid_n.shape}")
        grid_k = np.where(missing, 0.0, grid_k)
        grid_n = np.where(missing, 0.0, grid_n)
        row_names, rows = _axis("model", models, grid_k.shape[0])
        column_names, columns = _axis("item", items, grid_k.shape[1])

        def named(flat: int) -> str:
            i, j = divmod(flat, grid_k.shape[1])
            name_of_row = row_names[int(np.flatnonzero(rows == i)[0])]
            name_of_column = column_names[int(np.flatnonzero(columns == j)[0])]
            return (
                f"cell (model {name_of_row!r}, item {name_of_column!r}): "
                f"k = {grid_k[i, j]:g}, n = {grid_n[i, j]:g}"
            )

        _check_counts(grid_k.ravel(), grid_n.ravel(), scores, named)
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
                f"{len(unknown)} items are not in the bank: {', '.join(map(repr, unknown[:_NAMED]))}"
            )
        rows = np.array([place[key] for key in self.items], dtype=np.intp)
        k, n = (np.zeros((len(items), len(self.models))) for _ in range(2))
        k[rows], n[rows] = self.k, self.n
        return k, n


def _columns(table: Any) -> dict[str, Any]:
    """Bring every form of a long table to a mapping of columns."""
    if isinstance(table, Mapping):
        return dict(table)
    if hasattr(table, "column_names") and hasattr(table, "column"):  # pyarrow, not imported here
        return {name: table.column(name).to_pylist() for name in table.column_names}
    names = getattr(getattr(table, "dtype", None), "names", None)
    if names:
        return {name: table[name] for name in names}
    if hasattr(table, "columns"):  # a data frame of any kind
        return {str(name): np.asarray(table[name]) for name in table.columns}
    rows = list(table)
    if not all(isinstance(row, Mapping) for row in rows):
        raise DataError("a table is a mapping of columns, a list of mappings or a pyarrow Table")
    # n may stand in some rows only: where it does not, there was one attempt.
    defaults = {"n": 1}
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return {key: [row.get(key, defaults.get(key)) for row in rows] for key in keys}


def _plain(key: Any) -> Hashable:
    """Turn a key as JSON or Arrow give it (a list) into one that can be looked up (a tuple)."""
    return tuple(key) if isinstance(key, list) else key


def _text(key: Hashable) -> tuple[str, str]:
    """Give the order of names: their text, whatever they are."""
    return (key if isinstance(key, str) else repr(key), type(key).__name__)


def _encode(what: str, column: Any) -> tuple[list[Hashable], NDArray[np.intp]]:
    """Give the sorted distinct names of a column and each row's number among them."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    seen: dict[Hashable, int] = {}
    codes = np.array([seen.setdefault(_plain(v), len(seen)) for v in values], dtype=np.intp)
    for name, code in seen.items():
        if name is None or name == "" or (isinstance(name, float) and np.isnan(name)):
            row = int(np.flatnonzero(codes == code)[0]) + 1
            raise DataError(f"the {what} has no name in row {row}")
    names = list(seen)
    order = sorted(range(len(names)), key=lambda number: _text(names[number]))
    rank = np.empty(len(names), dtype=np.intp)
    rank[order] = np.arange(len(names))
    return [names[number] for number in order], rank[codes] if len(codes) else codes


def _axis(
    what: str, names: Sequence[Hashable] | None, size: int
) -> tuple[list[Hashable], NDArray[np.intp]]:
    """Give the sorted names of a matrix's axis and where each stood."""
    if names is None:
        digits = max(4, len(str(size)))
        names = [f"{what[0]}{number:0{digits}d}" for number in range(size)]
    if len(names) != size:
        raise DataError(f"{size} rows or columns, but {len(names)} {what} names")
    distinct, codes = _encode(what, list(names))
    if len(distinct) != size:
        twice = distinct[int(np.argmax(np.bincount(codes)))]
        raise DataError(f"the {what} {twice!r} is given twice")
    return distinct, np.argsort(codes, kind="stable")


def _numbers(what: str, column: Any) -> Floats:
    try:
        # None becomes NaN, which is refused later with its row.
        return np.asarray(column, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise DataError(f"the column {what} holds something that is not a number") from None


def _list(rows: NDArray[np.intp], named: Callable[[int], str]) -> str:
    shown = "; ".join(named(int(row)) for row in rows[:_NAMED])
    return shown + (f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else "")


def _check_counts(k: Floats, n: Floats, scores: Scores, named: Callable[[int], str]) -> None:
    """Refuse numbers that are no k of n, naming where they stand."""
    if scores not in ("counts", "fractional"):
        raise DataError(f"scores is 'counts' or 'fractional', not {scores!r}")
    with np.errstate(invalid="ignore"):  # a remainder of infinity
        broken = (k % 1 != 0) | (n % 1 != 0) if scores == "counts" else np.zeros(len(k), dtype=bool)
    faults: list[tuple[str, Mask]] = [
        ("not a finite number (leave out a cell that was not tried)", ~np.isfinite(k + n)),
        ("a negative count", (k < 0) | (n < 0)),
        ("k is more than n", k > n),
        ("not a whole number (declare scores='fractional')", broken),
    ]
    for why, wrong in faults:
        if wrong.any():
            raise DataError(f"{why}: {_list(np.flatnonzero(wrong), named)}")
