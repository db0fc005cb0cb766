"""A table that people filled in, read row by row: every row that cannot be right is named."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from harness.core.errors import UsageError
from harness.exchange.grading import COLUMNS, unguarded
from harness.exchange.rejected import Reasons

_MOST_BYTES = 256 << 20
_LONGEST = {"grader": 100, "comment": 10_000}
_FILL = "fill in points, grader and comment only, in the table that `harness export grading` wrote"


class Row(Struct, frozen=True, kw_only=True):
    """One row with something in it: what a grader gave for one criterion of one answer.

    Attributes
    ----------
    where : str
        File and line, for messages.
    points : int or None
        None where the cell was left empty.
    """

    where: str
    run: str
    item_id: str
    epoch: int
    attempt: int
    criterion_id: str
    points_possible: int
    points: int | None
    grader: str
    comment: str
    content: str


def read_tables(paths: Iterable[Path], reasons: Reasons) -> list[Row]:
    """Read filled tables; rows that nobody graded are left out.

    Parameters
    ----------
    paths : iterable of Path
        CSV in UTF-8 (with or without a byte order mark), parted by commas or semicolons.
    reasons : Reasons
        Receives what is wrong with single rows.

    Raises
    ------
    UsageError
        A file that cannot be read, or that is no such table.
    """
    return [row for path in paths for row in _read(path, reasons)]


def _read(path: Path, reasons: Reasons) -> list[Row]:
    text = _text(path)
    head_line = text.partition("\n")[0]
    delimiter = ";" if head_line.count(";") > head_line.count(",") else ","
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    head = next(_parsed(lines, path), [])
    places = _places(head, path)
    rows = []
    for cells in _parsed(lines, path):
        if any(cell.strip() for cell in cells):
            row = _row(cells, places, len(head), f"{path.name}:{lines.line_num}", reasons)
            if row is not None and (row.points is not None or row.grader or row.comment):
                rows.append(row)
    return rows


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    if len(raw) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MiB: import it in parts")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is no UTF-8 text (byte {error.start}): save it as CSV in UTF-8"
        ) from error


def _parsed(lines: Iterable[list[str]], path: Path) -> Iterator[list[str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise UsageError(f"{path} is no CSV table: {error}") from error


def _places(head: list[str], path: Path) -> dict[str, int]:
    """Find the columns, in whatever order they are now; empty ones at the end are no columns."""
    names = [name.strip() for name in head]
    while names and not names[-1]:
        names.pop()
    missing = [name for name in COLUMNS if name not in names and name != "criterion"]
    strange = [name for name in names if name not in COLUMNS or names.count(name) > 1]
    if missing or strange:
        parts = [f"misses {', '.join(missing)}"] if missing else []
        parts += [f"has {', '.join(map(repr, strange[:3]))}"] if strange else []
        raise UsageError(
            f"{path} is no grading table parted by commas or semicolons: its first row "
            f"{' and '.join(parts)}; {_FILL}"
        )
    return {name: names.index(name) for name in names}


def _row(
    cells: list[str], places: dict[str, int], width: int, where: str, reasons: Reasons
) -> Row | None:
    if any(cell.strip() for cell in cells[width:]):
        reasons.add("a row has more cells than columns", where, _FILL)
        return None
    said = {name: cells[at].strip() if at < len(cells) else "" for name, at in places.items()}
    numbers: dict[str, int] = {}
    for name in ("epoch", "attempt", "points_possible", "points"):
        # More digits than any points have, and Python reads digits of other scripts too.
        if said[name].isascii() and said[name].isdigit() and len(said[name]) <= 9:
            numbers[name] = int(said[name])
        elif said[name] or name != "points":
            what = "points are no whole number" if name == "points" else f"{name} was changed"
            reasons.add(what, f"{where} ({said[name][:40]!r})", _FILL)
            return None
    for name, longest in _LONGEST.items():
        if len(said[name]) > longest:
            reasons.add(f"a {name} has more than {longest} characters", where, "shorten it")
            return None
    if not said["grader"].isprintable():
        reasons.add("a grader is no name on one line", where, "write a name")
        return None
    return Row(
        where=where, run=unguarded(said["run"]), item_id=unguarded(said["item_id"]),
        epoch=numbers["epoch"], attempt=numbers["attempt"],
        criterion_id=unguarded(said["criterion_id"]),
        points_possible=numbers["points_possible"], points=numbers.get("points"),
        grader=said["grader"], comment=said["comment"], content=said["content"],
    )  # fmt: skip
