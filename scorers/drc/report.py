"""Reading a report of violations (KLayout's lyrdb)."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from scorers.drc.results import MOST_MARKERS, Marker, Ring

MOST_BYTES = 16 << 20


class BadReportError(ValueError):
    """A report that cannot be read."""


def read_report(data: bytes) -> tuple[dict[str, int], tuple[Marker, ...]]:
    """Read what a report holds.

    Parameters
    ----------
    data : bytes
        Written by a deck, so anything.

    Returns
    -------
    counts : dict of str to int
        Items by category name as the deck gave it, never quoted; two categories of one name are one,
        one below another is named ``outer.inner``. Categories without items are in it.
    markers : tuple of Marker
        The first 50 shapes, µm.

    Raises
    ------
    BadReportError
        It is too large, declares entities, or is no report.
    """
    import klayout.db  # noqa: F401  shapes of a report are its classes
    import klayout.rdb as rdb

    if len(data) > MOST_BYTES:
        raise BadReportError(f"the report has {len(data):,} bytes, more than {MOST_BYTES:,}")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise BadReportError("the report declares entities, which none of the engine's does")
    if b"<report-database" not in data[:4096]:
        raise BadReportError("the file is no report")
    found = rdb.ReportDatabase("")
    with tempfile.TemporaryDirectory(prefix="harness-report-") as folder:
        path = Path(folder) / "report.lyrdb"
        path.write_bytes(data)
        try:
            found.load(str(path))
        except RuntimeError as error:
            raise BadReportError(
                f"the report cannot be read: {str(error).splitlines()[0]}"
            ) from error
    names = {c.rdb_id(): _name(c) for top in found.each_category() for c in _all(top)}
    counts = dict.fromkeys(names.values(), 0)
    counts |= Counter(names[item.category_id()] for item in found.each_item())
    return counts, tuple(_markers(found, names))


def _all(category: Any) -> list[Any]:
    return [category, *(c for sub in category.each_sub_category() for c in _all(sub))]


def _name(category: Any) -> str:
    parent = category.parent()
    name: str = category.name()
    return name if parent is None else f"{_name(parent)}.{name}"


def _markers(found: Any, names: dict[int, str]) -> list[Marker]:
    made: list[Marker] = []
    for item in found.each_item():
        for value in item.each_value():
            marker = _marker(names[item.category_id()], value)
            made += [marker] if marker is not None else []
            if len(made) >= MOST_MARKERS:
                return made
    return made


def _marker(category: str, value: Any) -> Marker | None:
    if value.is_polygon():
        return Marker(category=category, kind="polygon", points=(_ring(value.polygon()),))
    if value.is_edge():
        return Marker(category=category, kind="edge", points=(_line(value.edge()),))
    if value.is_edge_pair():
        pair = value.edge_pair()
        lines = (_line(pair.first), _line(pair.second))
        return Marker(category=category, kind="edge_pair", points=lines)
    if value.is_box():
        box = value.box()
        corners = ((box.left, box.bottom), (box.right, box.top))
        return Marker(category=category, kind="box", points=(corners,))
    return None


def _ring(polygon: Any) -> Ring:
    return tuple((point.x, point.y) for point in polygon.each_point_hull())


def _line(edge: Any) -> Ring:
    return ((edge.p1.x, edge.p1.y), (edge.p2.x, edge.p2.y))
