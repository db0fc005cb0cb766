"""What a page is made of; the templates draw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

from msgspec import Struct

from leaderboard.columns import Row, as_dict, cells, column, is_filled, text

_RANKS = 100_000
Link = Callable[[dict[str, Any]], str | None]
"""Gives the page that a row's cell leads to, from the top of the site."""


class Cell(Struct, frozen=True):
    """A cell: what is written, what it is sorted by, where it leads, and a bar from 0 to 1."""

    text: str
    sort: str
    href: str | None = None
    bar: float | None = None


class Head(Struct, frozen=True):
    """A heading of a column."""

    title: str
    tooltip: str
    is_number: bool


class TableRow(Struct, frozen=True):
    """A row: its cells, whether a tier begins with it, and whether it is a baseline."""

    cells: list[Cell]
    begins: bool
    baseline: bool


class Table(Struct, frozen=True):
    """A table, and the name of the files in `data/` that hold its rows."""

    kind: ClassVar[str] = "table"
    caption: str
    heads: list[Head]
    rows: list[TableRow]
    data: str


class Chart(Struct, frozen=True):
    """A chart for both themes, in pixels; `more` is a page of its own that answers the pointer."""

    kind: ClassVar[str] = "chart"
    name: str
    alt: str
    width: str
    height: str
    more: str | None = None


class Heading(Struct, frozen=True):
    """A heading inside a page."""

    kind: ClassVar[str] = "heading"
    text: str


class Note(Struct, frozen=True):
    """A paragraph; a warning stands out."""

    kind: ClassVar[str] = "note"
    text: str
    warning: bool = False


class Facts(Struct, frozen=True):
    """Names and values; `summary` folds them away under it."""

    kind: ClassVar[str] = "facts"
    facts: list[tuple[str, str]]
    summary: str = ""


class Code(Struct, frozen=True):
    """Text as it is, such as a command."""

    kind: ClassVar[str] = "code"
    text: str


class Links(Struct, frozen=True):
    """A row of links: what they say, and where they lead from the top of the site."""

    kind: ClassVar[str] = "links"
    links: list[tuple[str, str]]


class Prose(Struct, frozen=True):
    """Own text in the little Markdown of the page About."""

    kind: ClassVar[str] = "prose"
    text: str


class SamplePart(Struct, frozen=True):
    """One attempt: facts, and its texts by name."""

    kind: ClassVar[str] = "sample"
    anchor: str
    title: str
    facts: str
    texts: list[tuple[str, str]]


Part = Table | Chart | Heading | Note | Facts | Code | Links | Prose | SamplePart


class Page(Struct, frozen=True):
    """A page; `path` is from the top of the site and ends in ``.html``."""

    path: str
    title: str
    parts: Sequence[Part]
    lead: str = ""


def make_table(
    rows: Sequence[Row],
    names: Sequence[str],
    data: str,
    *,
    caption: str,
    links: Mapping[str, Link] | None = None,
    band: str | None = None,
    bars: Sequence[str] = (),
) -> Table:
    """Write rows as a table; columns that are empty in all rows are left out.

    Parameters
    ----------
    rows : sequence of Struct or mapping
    names : sequence of str
        Columns as in `leaderboard.columns.COLUMNS`.
    data : str
        Of the files with the rows.
    caption : str
        For readers who do not see the table.
    links : mapping of str to callable or None
        For a column, where a row's cell leads.
    band : str or None
        A field: a rule is drawn where it changes.
    bars : sequence of str
        Columns drawn with a bar from 0 to 1.

    Examples
    --------
    >>> made = make_table([{"model": "m", "value": 0.5}], ["model", "value"], "d", caption="")
    >>> [cell.text for cell in made.rows[0].cells]
    ['m', '50.0 %']
    """
    found = cells(rows, names)
    kept = [name for name in names if is_filled(name, found[name])]
    records = [as_dict(row) for row in rows]
    lines = []
    for i, record in enumerate(records):
        line = []
        for name in kept:
            value, kind = found[name][i], column(name).kind
            link = (links or {}).get(name)
            bar = min(1.0, max(0.0, value)) if name in bars and value is not None else None
            line.append(Cell(
                text(value, kind), _sort_key(name, value, record), link(record) if link else None,
                bar,
            ))  # fmt: skip
        begins = band is not None and i > 0 and record[band] != records[i - 1][band]
        flags = record.get("flags") or ()
        baseline = bool(record.get("baseline")) or "baseline" in flags
        lines.append(TableRow(line, begins, baseline))
    heads = [
        Head(column(n).title, column(n).tooltip(), column(n).kind not in ("text", "date"))
        for n in kept
    ]
    return Table(caption, heads, lines, data)


def _sort_key(name: str, value: Any, record: Mapping[str, Any]) -> str:
    """Give what a cell is sorted by: a number, a date, a text; empty goes last."""
    if name == "rank":
        lo, hi = record["rank_lo"], record["rank_hi"]
        return "" if lo is None else str(_RANKS * lo + hi)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return value.isoformat() if isinstance(value, date) else str(value)
