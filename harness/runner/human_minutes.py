"""Human minutes of items and release dates of models: from files, the store and the models' cards."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.models import card_of
from harness.core.resources import data

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEVELS = ("ols", "weighted", "joint")
LEAST_ANCHORS = 3
REFERENCE = "published/bridge.csv"  # the population that BRIDGE's published figures are of
_ITEM = ("item", "item_id", "task_id")
_MINUTES = ("human_minutes", "minutes")
_MODEL = ("model", "subject_id")
_DATE = ("release_date", "release_time", "date")


class Minutes(Struct, frozen=True, kw_only=True):
    """What ties a fit to human minutes.

    Attributes
    ----------
    minutes : dict of str to float
        The anchors, by the item's name in the fit (``task/item`` for items of the store); empty
        where no human time is known.
    dates : dict of str to str
        Release dates by model.
    level : {"ols", "weighted", "joint"}
        How the link is estimated.
    others : dict of str to dict
        Items with minutes that are no anchors, by group: what the link can be tested on.
    notes : tuple of str
        Where minutes and dates come from, and what was left out on reading.
    """

    minutes: dict[str, float] = msgspec.field(default_factory=dict)
    dates: dict[str, str] = msgspec.field(default_factory=dict)
    level: str = "ols"
    others: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_minutes(
    path: Path | None,
    dates: Path | None = None,
    anchors: str | None = None,
    level: str = "ols",
) -> Minutes:
    """Read the files.

    Parameters
    ----------
    path : pathlib.Path, optional
        ``.csv``, ``.jsonl`` or ``.parquet`` with the columns `item` (or `item_id`, `task_id`) and
        `human_minutes` (or `minutes`). Rows with an empty cell of minutes are no anchors.
    dates : pathlib.Path, optional
        The same forms, with `model` (or `subject_id`) and `release_date` (or `release_time`, `date`).
    anchors : str, optional
        ``COLUMN=VALUE``: only these rows of the first file; the link is tested on the others.
    level : {"ols", "weighted", "joint"}

    Raises
    ------
    UsageError
        A file, column or cell that cannot be read, an item given twice.
    """
    if level not in LEVELS:
        raise UsageError(f"--link {level!r} is not one of {', '.join(LEVELS)}")
    minutes: dict[str, float] = {}
    others: dict[str, dict[str, float]] = {}
    notes: tuple[str, ...] = ()
    if path is not None:
        groups, notes = _grouped(path, anchors)
        minutes = groups.pop("")
        others = groups
    released = {} if dates is None else _pairs(dates, _rows(dates), _MODEL, _DATE, _text)
    return Minutes(minutes=minutes, dates=released, level=level, others=others, notes=notes)


def _grouped(
    path: Path, anchors: str | None
) -> tuple[dict[str, dict[str, float]], tuple[str, ...]]:
    """Give the anchors under "", and other items with minutes by their value in the column."""
    rows = _rows(path)
    column, equals, value = (anchors or "").partition("=")
    if anchors is not None and (not equals or not rows or column not in rows[0]):
        raise UsageError(f"--anchors {anchors!r}: write COLUMN=VALUE; {path} has {_columns(rows)}")
    groups: dict[str, list[dict[str, Any]]] = {"": []}
    for row in rows:
        group = str(row.get(column)) if anchors is not None else value
        groups.setdefault("" if group == value else group, []).append(row)
    found = {
        group: _pairs(path, members, _ITEM, _MINUTES, _number) if members or not group else {}
        for group, members in groups.items()
    }
    left = len(groups[""]) - len(found[""])
    notes = (f"{left} rows of {path.name} have no minutes, so they are no anchors",) if left else ()
    return {group: pairs for group, pairs in found.items() if pairs or not group}, notes


def with_the_stores_own(
    con: DuckDBPyConnection,
    given: Minutes,
    tasks: list[str],
    items: Iterable[str],
    models: Mapping[str, str],
) -> Minutes:
    """Fill in what no file gave: minutes that tasks state of their items, dates of the cards.

    Parameters
    ----------
    con : DuckDBPyConnection
        A snapshot.
    given : Minutes
        As read from files.
    tasks : list of str
        What is fitted.
    items : iterable of str
        The fit's names of its items.
    models : mapping of str to str
        The fit's names of its models to their SPECs.

    Returns
    -------
    Minutes
    """
    if not given.minutes:
        stated, notes = stated_minutes(con, tasks)
        here = set(items)  # not every planned item has an answer that counts
        minutes = {name: value for name, value in stated.items() if name in here}
        if 0 < len(minutes) < LEAST_ANCHORS:
            notes = (f"only {len(minutes)} items have human minutes: too few for a link",)
            minutes = {}
        given = msgspec.structs.replace(given, minutes=minutes, notes=given.notes + notes)
    ran = con.execute(
        "SELECT DISTINCT model, CAST(release_date AS VARCHAR) FROM runs JOIN model_variants "
        "USING (variant_id) JOIN models USING (model_id) WHERE release_date IS NOT NULL ORDER BY ALL"
    ).fetchall()
    return with_known_dates(given, models, dict(ran))


def stated_minutes(
    con: DuckDBPyConnection, tasks: list[str]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Read the human minutes that tasks state of their items.

    Parameters
    ----------
    con : DuckDBPyConnection
    tasks : list of str

    Returns
    -------
    minutes, notes
        By ``task/item``; notes name the source of each task's.
    """
    rows = con.execute(
        """
        SELECT task_id, item_id, human_minutes, coalesce(human_time_source, 'no source stated')
        FROM items JOIN tasks USING (task_id, version)
        WHERE human_minutes IS NOT NULL AND list_contains($tasks, task_id)
        ORDER BY task_id, version, item_id
        """,
        {"tasks": tasks},
    ).fetchall()
    sources = {task: source for task, _, _, source in rows}
    notes = [f"human minutes of {task}: {source}" for task, source in sources.items()]
    return {f"{task}/{item}": minutes for task, item, minutes, _ in rows}, tuple(notes)


def with_known_dates(
    given: Minutes, models: Mapping[str, str], recorded: Mapping[str, str] | None = None
) -> Minutes:
    """Where no release dates were given, take those of the cards and of the published population.

    Parameters
    ----------
    given : Minutes
    models : mapping of str to str
        The fit's names of its models to their SPECs, or to the names that BRIDGE gives its models.
    recorded : mapping of SPEC to date, optional
        What the store recorded when the models ran.

    Returns
    -------
    Minutes
    """
    if given.dates or not given.minutes:
        return given
    known = {**reference_dates(), **(recorded or {})}
    found: dict[str, str] = {}
    for name, spec in models.items():
        card = card_of(spec) if ":" in spec else None
        if card is not None and card.release_date is not None:
            found[name] = card.release_date.isoformat()
        elif spec in known:
            found[name] = known[spec]
    notes: tuple[str, ...] = ()
    if found:
        notes = (
            f"release dates of {len(found)} models: from their cards and BRIDGE's published table",
        )
    return msgspec.structs.replace(given, dates=found, notes=given.notes + notes)


@cache
def reference_dates() -> dict[str, str]:
    """Read the release dates of the 36 models of BRIDGE's published trend."""
    path = data(REFERENCE)
    return _pairs(path, _rows(path), _MODEL, _DATE, _text)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        if path.suffix == ".jsonl":
            lines = path.read_bytes().splitlines()
            return [msgspec.json.decode(line, type=dict) for line in lines if line.strip()]
        if path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as stream:
                return list(csv.DictReader(stream))
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
            return rows
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, csv.Error) as error:
        raise UsageError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    raise UsageError(f"cannot read {path}: give .csv, .jsonl or .parquet")


def _pairs(
    path: Path,
    rows: list[dict[str, Any]],
    keys: Iterable[str],
    values: Iterable[str],
    read: Callable[[Path, str, Any], Any],
) -> dict[str, Any]:
    """Read two columns; rows whose value is empty are left out, a key that stands twice is refused."""
    if not rows:
        raise UsageError(f"{path} has no rows")
    found: dict[str, Any] = {}
    columns = []
    for wanted in (tuple(keys), tuple(values)):
        here = [name for name in wanted if name in rows[0]]
        if not here:
            raise UsageError(
                f"{path} needs a column {' or '.join(wanted)}; it has {_columns(rows)}"
            )
        columns.append(here[0])
    for row in rows:
        key, value = str(row.get(columns[0])), row.get(columns[1])
        if value in (None, ""):
            continue
        if key in found:
            raise UsageError(f"{path}: {key!r} stands twice")
        found[key] = read(path, key, value)
    return found


def _number(path: Path, key: str, value: Any) -> float:
    try:
        if not isinstance(value, bool):
            return float(value)
        raise TypeError(value)
    except (TypeError, ValueError):
        raise UsageError(f"{path}: the minutes of {key!r} are {value!r}, no number") from None


def _text(_path: Path, _key: str, value: Any) -> str:
    return value.date().isoformat() if isinstance(value, datetime) else str(value)


def _columns(rows: list[dict[str, Any]]) -> str:
    return ", ".join(str(name) for name in rows[0] if name is not None) if rows else "none"


def finite(value: Any) -> float | None:
    """Give what JSON can hold: nothing where there is no finite number."""
    return float(value) if math.isfinite(value) else None
