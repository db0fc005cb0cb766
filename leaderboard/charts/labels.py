"""Places for names beside points: the drawing library has no placing of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

_CHARACTER, _LINE = 6.2, 12.0  # pixels of a letter on average and of a line, at the small size
_DOT, _STROKE = 5.0, 2.0
_Point = tuple[float, float]
_Box = tuple[float, float, float, float]


class Side(Struct, frozen=True):
    """Where a name stands, seen from its point.

    Attributes
    ----------
    align : str
        Which end of the name is at the point.
    dx, dy : int
        Pixels from the point to that end.
    """

    align: Literal["left", "right", "center"]
    dx: int
    dy: int


SIDES = (
    Side("right", -8, -9), Side("left", 8, 9), Side("left", 8, 0), Side("right", -8, 0),
    Side("center", 0, -13), Side("center", 0, 13),
)  # fmt: skip


def _box(name: str, x: float, y: float, side: Side) -> _Box:
    width = len(name) * _CHARACTER
    left = {"left": 0.0, "right": -width, "center": -width / 2}[side.align]
    x0, y0 = x + side.dx + left, y + side.dy - _LINE / 2
    return x0, y0, x0 + width, y0 + _LINE


def _around(point: _Point, reach: float) -> _Box:
    return point[0] - reach, point[1] - reach, point[0] + reach, point[1] + reach


def _along(line: Sequence[_Point]) -> Iterator[_Point]:
    """Points on a line, denser than a name is high."""
    for (x0, y0), (x1, y1) in pairwise(line):
        steps = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / (_LINE / 2)))
        for i in range(steps + 1):
            yield x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps


def _overlap(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place_labels(
    labels: Sequence[tuple[str, float, float]],
    *,
    points: Sequence[_Point],
    lines: Sequence[Sequence[_Point]] = (),
    size: tuple[float, float],
) -> list[Side | None]:
    """Choose for each name a side of its point where it covers no point, no line and no name before it.

    Parameters
    ----------
    labels : sequence of (name, x, y)
        In pixels from the upper left; those that matter most first.
    points : sequence of (x, y)
        All points of the chart.
    lines : sequence of sequence of (x, y)
        Its lines, by their corners.
    size : tuple of float
        Width and height of the chart: names stay inside.

    Returns
    -------
    list of Side or None
        None where there is no room.

    Examples
    --------
    >>> place_labels([("a", 50, 50), ("a", 50, 50)], points=[(50, 50)], size=(100, 100))[0]
    Side(align='right', dx=-8, dy=-9)
    """
    taken = [_around(point, _DOT) for point in points]
    taken += [_around(point, _STROKE) for line in lines for point in _along(line)]
    chosen: list[Side | None] = []
    for name, x, y in labels:
        found = None
        for side in SIDES:
            box = _box(name, x, y, side)
            inside = box[0] >= 0 and box[2] <= size[0] and box[1] >= 0 and box[3] <= size[1]
            if inside and not any(_overlap(box, other) for other in taken):
                found = side
                taken.append(box)
                break
        chosen.append(found)
    return chosen


def stair(corners: Sequence[_Point], *, up_first: bool = False) -> list[_Point]:
    """Give the corners of a stair through points.

    Parameters
    ----------
    corners : sequence of (x, y)
    up_first : bool
        Vertical before horizontal, as "step-before" draws it; else as "step-after" does.

    Returns
    -------
    list of (x, y)

    Examples
    --------
    >>> stair([(0, 0), (2, 1)])
    [(0, 0), (2, 0), (2, 1)]
    """
    found = [*corners[:1]]
    for (x0, y0), (x1, y1) in pairwise(corners):
        found += [(x0, y1) if up_first else (x1, y0), (x1, y1)]
    return found
