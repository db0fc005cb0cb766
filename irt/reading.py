"""Reading responses from a file whose form shows itself: py-irt JSONL, long or wide CSV, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from irt.data import DataError, Responses, Scores


def read(path: str | Path, scores: Scores = "counts") -> Responses:
    """Read responses, recognising the form of the file.

    Parameters
    ----------
    path : path
        `.jsonl`: py-irt's records (`subject_id`, `responses`), or one long row a line (`model`,
        `item`, `k`, optional `n`). `.parquet`: a long table. `.csv`: a long table where the header
        has `model`, `item` and `k`; otherwise wide, the first column the model, every other one an
        item, an empty cell one that was not tried.
    scores : {"counts", "fractional"}
        "fractional" allows real numbers between 0 and n.

    Returns
    -------
    Responses
        Checked and sorted.

    Raises
    ------
    DataError
        For a file of another form, or data that `Responses` refuses; the message names the file.
    """
    file = Path(path)
    readers = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
    if file.suffix not in readers:
        raise DataError(f"{file.name}: not one of {', '.join(readers)}")
    try:
        return readers[file.suffix](file, scores)
    except DataError as error:
        raise DataError(f"{file.name}: {error}") from None
    except OSError:
        raise
    except (ValueError, csv.Error) as error:  # bytes that are no text, or no Parquet
        raise DataError(f"cannot read {file.name}: {error}") from None


def _jsonl(file: Path, scores: Scores) -> Responses:
    rows = list(_records(file))
    if rows and "subject_id" in rows[0]:
        return Responses.from_pyirt(rows, scores)
    return Responses.from_table(rows, scores)


def _records(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_once)
            except DataError as error:
                raise DataError(f"line {number}: {error}") from None
            except json.JSONDecodeError as error:
                raise DataError(f"line {number} is not JSON ({error.msg})") from None
            if not isinstance(record, dict):
                raise DataError(f"line {number} is not a JSON object")
            yield record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object; a name that stands twice would lose one of its values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{twice!r} stands twice in one object")
    return found


def _csv(file: Path, scores: Scores) -> Responses:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream)
        header = next(rows, [])
        body = [row for row in rows if row]
    for number, row in enumerate(body, 2):
        if len(row) != len(header):
            raise DataError(f"line {number} has {len(row)} fields, the header has {len(header)}")
    if {"model", "item", "k"} <= set(header):
        if len(set(header)) < len(header):
            raise DataError(f"a column stands twice in the header: {', '.join(header)}")
        columns = zip(*body, strict=True) if body else [()] * len(header)
        return Responses.from_table(dict(zip(header, columns, strict=True)), scores)
    if len(header) < 2:
        raise DataError("neither a long table (model, item, k) nor a wide one (model, items ...)")
    names: list[Hashable] = [row[0] for row in body]
    cells = [[_cell(text, number) for text in row[1:]] for number, row in enumerate(body, 2)]
    matrix = np.array(cells, dtype=np.float64).reshape(len(body), len(header) - 1)
    return Responses.from_matrix(matrix, models=names, items=header[1:], scores=scores)


def _cell(text: str, line: int) -> float:
    """Read a cell of a wide table; only an empty one was not tried."""
    if not text.strip():
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if np.isnan(value):
        raise DataError(
            f"a cell is not a number: {text!r} in line {line}; leave a cell empty that was not tried"
        )
    return value


def _parquet(file: Path, scores: Scores) -> Responses:
    import pyarrow.parquet  # pyarrow is not needed by anything else here

    return Responses.from_table(pyarrow.parquet.read_table(file), scores)
