"""Long tables of every form, read row by row and checked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Scores = Literal["counts", "fractional"]

NAMED = 5  # how many offending rows or cells a message names


class DataError(ValueError):
    """Data that cannot be fitted; the message says which rows or cells, and why."""


@dataclass(frozen=True)
class Rows:
    """A long table, checked row by row; a cell may have several rows.

    Parameters
    ----------
    models, items : tuple
        Sorted; shapes (P,), (I,).
    model, item : arrays of int, shape (R,)
        Of each row, its place among those.
    k, n : arrays, shape (R,)
    """

    models: tuple[Hashable, ...]
    items: tuple[Hashable, ...]
    model: NDArray[np.intp]
    item: NDArray[np.intp]
    k: Floats
    n: Floats

    def named(self, row: int) -> str:
        """Name a row for a message, counted from 1."""
        return (
            f"row {row + 1} (model {self.models[self.model[row]]!r}, "
            f"item {self.items[self.item[row]]!r}): k = {self.k[row]:g}, n = {self.n[row]:g}"
        )


def read_rows(table: Any, scores: Scores) -> Rows:
    """Read a long table as `Responses.from_table` does, apart from what a cell given twice is.

    Parameters
    ----------
    table : mapping of columns, list of mappings, pyarrow Table, data frame or structured array
    scores : {"counts", "fractional"}

    Returns
    -------
    Rows

    Raises
    ------
    DataError
        For a missing column or name, or numbers that are no k of n.
    """
    columns = _columns(table)
    absent = [name for name in ("model", "item", "k") if name not in columns]
    if absent:
        raise DataError(
            f"the table has no column {', '.join(absent)}; it has {', '.join(columns) or 'none'}"
        )
    models, model = encode("model", columns["model"])
    items, item = encode("item", columns["item"])
    k = _numbers("k", columns["k"])
    n = _numbers("n", columns["n"]) if "n" in columns else np.ones(len(k))
    lengths = {len(model), len(item), len(k), len(n)}
    if len(lengths) > 1:
        raise DataError(f"the columns are not of one length: {sorted(lengths)}")
    rows = Rows(tuple(models), tuple(items), model, item, k, n)
    check_counts(k, n, scores, rows.named)
    return rows


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
    return tuple(map(_plain, key)) if isinstance(key, list) else key


def _text(key: Hashable) -> tuple[str, str]:
    """Give the order of names: their text, whatever they are."""
    return (key if isinstance(key, str) else repr(key), type(key).__name__)


def encode(what: str, column: Any) -> tuple[list[Hashable], NDArray[np.intp]]:
    """Give the sorted distinct names of a column and each row's number among them."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    seen: dict[Hashable, int] = {}
    numbers: list[int] = []
    for row, value in enumerate(values, 1):
        try:
            numbers.append(seen.setdefault(_plain(value), len(seen)))
        except TypeError:
            kind = type(value).__name__
            raise DataError(f"the {what} in row {row} is no name: a {kind}") from None
    codes = np.array(numbers, dtype=np.intp)
    for name, code in seen.items():
        if name is None or name == "" or (isinstance(name, float) and np.isnan(name)):
            row = int(np.flatnonzero(codes == code)[0]) + 1
            raise DataError(f"the {what} has no name in row {row}")
    names = list(seen)
    order = sorted(range(len(names)), key=lambda number: _text(names[number]))
    rank = np.empty(len(names), dtype=np.intp)
    rank[order] = np.arange(len(names))
    return [names[number] for number in order], rank[codes] if len(codes) else codes


def axis_names(
    what: str, names: Sequence[Hashable] | None, size: int
) -> tuple[list[Hashable], NDArray[np.intp]]:
    """Give the sorted names of a matrix's axis and where each stood."""
    if names is None:
        digits = max(4, len(str(size)))
        names = [f"{what[0]}{number:0{digits}d}" for number in range(size)]
    if len(names) != size:
        raise DataError(f"{size} rows or columns, but {len(names)} {what} names")
    distinct, codes = encode(what, list(names))
    if len(distinct) != size:
        twice = distinct[int(np.argmax(np.bincount(codes)))]
        raise DataError(f"the {what} {twice!r} is given twice")
    return distinct, np.argsort(codes, kind="stable")


def _numbers(what: str, column: Any) -> Floats:
    values = column if isinstance(column, np.ndarray) else list(column)
    try:
        # None becomes NaN, which is refused later with its row.
        return np.asarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        row = next((row for row, value in enumerate(values, 1) if not _is_number(value)), 0)
        raise DataError(
            f"the column {what} holds something that is not a number"
            + (f", or too large for one, in row {row}" if row else "")
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(np.nan if value is None else value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def read_matrix(what: str, grid: Any) -> Floats:
    try:
        return np.asarray(grid, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"the matrix {what} holds something that is not a number, or too large for one, or rows "
            "of different lengths"
        ) from None


def listed(rows: NDArray[np.intp], named: Callable[[int], str]) -> str:
    shown = "; ".join(named(int(row)) for row in rows[:NAMED])
    return shown + (f"; and {len(rows) - NAMED} more" if len(rows) > NAMED else "")


def check_counts(k: Floats, n: Floats, scores: Scores, named: Callable[[int], str]) -> None:
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
            raise DataError(f"{why}: {listed(np.flatnonzero(wrong), named)}")
