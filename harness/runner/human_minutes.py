"""Read a fit in human minutes: files of minutes and release dates, horizons, doubling time."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError

if TYPE_CHECKING:
    import irt
    from harness.store.fits import StoredFit

LEVELS = ("ols", "weighted")
_ITEM = ("item", "item_id", "task_id")
_MINUTES = ("human_minutes", "minutes")
_MODEL = ("model", "subject_id")
_DATE = ("release_date", "release_time", "date")


class Minutes(Struct, frozen=True, kw_only=True):
    """What ties a fit to human minutes.

    Attributes
    ----------
    minutes : dict of str to float
        The anchors, by the item's name in the fit (``task/item`` for items of the store).
    dates : dict of str to str
        Release dates by model; empty when none were given.
    level : {"ols", "weighted"}
        How the link is estimated.
    notes : tuple of str
        What was left out on reading.
    """

    minutes: dict[str, float]
    dates: dict[str, str]
    level: str = "ols"
    notes: tuple[str, ...] = ()


def read_minutes(
    path: Path, dates: Path | None = None, anchors: str | None = None, level: str = "ols"
) -> Minutes:
    """Read the files.

    Parameters
    ----------
    path : pathlib.Path
        ``.csv``, ``.jsonl`` or ``.parquet`` with the columns `item` (or `item_id`, `task_id`) and
        `human_minutes` (or `minutes`). Rows with an empty cell of minutes are no anchors.
    dates : pathlib.Path, optional
        The same forms, with `model` (or `subject_id`) and `release_date` (or `release_time`, `date`).
    anchors : str, optional
        ``COLUMN=VALUE``: only these rows of the first file.
    level : {"ols", "weighted"}

    Raises
    ------
    UsageError
        A file, column or cell that cannot be read, an item given twice.
    """
    if level not in LEVELS:
        raise UsageError(f"--link {level!r} is not one of {', '.join(LEVELS)}")
    rows, notes = _rows(path), []
    if anchors is not None:
        column, equals, value = anchors.partition("=")
        if not equals or not rows or column not in rows[0]:
            known = _columns(rows)
            raise UsageError(f"--anchors {anchors!r}: write COLUMN=VALUE; {path} has {known}")
        rows = [row for row in rows if str(row.get(column)) == value]
    minutes = _pairs(path, rows, _ITEM, _MINUTES, _number)
    if left := len(rows) - len(minutes):
        notes.append(f"{left} rows of {path.name} have no minutes, so they are no anchors")
    released = {} if dates is None else _pairs(dates, _rows(dates), _MODEL, _DATE, _text)
    return Minutes(minutes=minutes, dates=released, level=level, notes=tuple(notes))


def add_minutes(fitted: irt.Fit, found: StoredFit, given: Minutes) -> None:
    """Write link, horizons and doubling time into a fit's rows.

    Raises
    ------
    UsageError
        Minutes or dates that do not fit: unknown items, minutes that are not positive, too few
        anchors, a frontier in fewer than two months.
    """
    import irt

    # One name may stand for an item of several task versions: all of them take the same time.
    names: dict[str, list[Any]] = {}
    for key in (*fitted.items.item, *(key for key, _ in fitted.verdict.excluded.items)):
        names.setdefault(str(key), []).append(key)
    minutes = {
        key: value for name, value in given.minutes.items() for key in names.get(name, [name])
    }
    try:
        link = irt.fit_link(fitted, minutes, level=given.level)
        halves, fifths = (irt.horizons(fitted, link, q) for q in (0.5, 0.8))
        doubling = _doubling(fitted, link, minutes, given)
    except irt.DataError as error:
        raise UsageError(f"human minutes: {error}") from None
    predicted = link.predict(fitted.items.b, fitted.items.se_b)
    by_item = {
        key if isinstance(key, tuple) else str(key): ends
        for key, *ends in zip(
            fitted.items.item, *map(_numbers, (predicted.median, predicted.lo, predicted.hi)),
            strict=True,
        )
    }  # fmt: skip
    for item in found.items:
        whole = (item.task_id, item.version, item.item_id)
        place = item.item_id if item.task_id is None else whole
        item.human_minutes_hat, item.lo, item.hi = by_item[place]
    by_model = {
        str(name): (*h50, *h80)
        for name, h50, h80 in zip(
            halves.model, *(zip(*map(_numbers, (h.minutes, h.lo, h.hi)), strict=True)
                            for h in (halves, fifths)), strict=True,
        )
    }  # fmt: skip
    for model in found.models:
        (
            model.horizon50_min, model.lo, model.hi,
            model.horizon80_min, model.lo80, model.hi80,
        ) = by_model[model.model]  # fmt: skip
    found.fit.link = {
        "level": link.level, "slope": finite(link.beta), "intercept": finite(link.alpha),
        "r2": finite(link.r2), "tau": finite(link.tau), "n_anchors": link.n_anchors, **doubling,
        "notes": [*given.notes, *dict.fromkeys((*link.notes, *halves.notes))],
    }  # fmt: skip


def _doubling(
    fitted: irt.Fit, link: irt.Link, minutes: dict[Any, float], given: Minutes
) -> dict[str, Any]:
    """Give the doubling time at the frontier, and how far the level of the link moves it."""
    import irt

    if not given.dates:
        return {}
    names = {str(name): name for name in fitted.models.model}
    dates = {names.get(name, name): day for name, day in given.dates.items()}
    by_level = {
        level: irt.doubling(
            fitted,
            link if level == link.level else irt.fit_link(fitted, minutes, level=level),
            dates,
        )
        for level in LEVELS
    }
    best = by_level[link.level]
    return {
        "doubling": _ends(best.months, best.lo, best.hi),
        "best": {"model": str(best.best), **_ends(best.best_minutes, best.best_lo, best.best_hi)},
        "frontier": [str(name) for name in best.trend.model],
        "sensitivity": {
            level: {
                "doubling": finite(one.months),
                "best": finite(one.best_minutes),
            }
            for level, one in by_level.items()
        },
        "undated": len(best.undated),
        "dates_of_others": [str(name) for name in best.unknown],
    }


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


def _numbers(values: Any) -> list[float | None]:
    return [finite(value) for value in values]


def finite(value: Any) -> float | None:
    """Give what JSON can hold: nothing where there is no finite number."""
    return float(value) if math.isfinite(value) else None


def _ends(value: float, lo: float, hi: float) -> dict[str, float | None]:
    return dict(zip(("value", "lo", "hi"), _numbers((value, lo, hi)), strict=True))
