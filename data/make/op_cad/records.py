"""Records of modelling operations, in the form of upstream's sequences: dicts with one key, `Kind N`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

Vector: TypeAlias = tuple[float, ...]
Curve: TypeAlias = dict[str, Any]
Loop: TypeAlias = list[Curve]
Record: TypeAlias = dict[str, dict[str, Any]]

EXTRUDE, REVOLVE, FILLET, CHAMFER = (
    "Sketch-Extrude pair",
    "Sketch-Revolve pair",
    "Fillet",
    "Chamfer",
)
NEW, JOIN, CUT, INTERSECT = 0, 1, 2, 3
ONE_SIDED, SYMMETRIC, TWO_SIDED = 0, 1, 2
OPS = {EXTRUDE: "extrude", REVOLVE: "revolve", FILLET: "chamfer_fillet", CHAMFER: "chamfer_fillet"}
_DIGITS = 6


def num(value: float) -> float:
    """Round a length in mm to what a record keeps; no negative zero."""
    return round(float(value), _DIGITS) + 0.0


def point(values: Sequence[float]) -> list[float]:
    """Round a point or direction."""
    return [num(value) for value in values]


def cross(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Give the vector product of two directions in space."""
    return [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]


def circle(x: float, y: float, radius: float) -> Loop:
    """Draw a circle."""
    return [{"type": "Circle", "center": point((x, y)), "radius": num(radius)}]


def path(start: Sequence[float], *ways: Sequence[Sequence[float]]) -> Loop:
    """Draw a path: each way is the end of a line, or a middle and the end of an arc.

    A path that does not return to its start is closed by a line.
    """
    curves: Loop = []
    first = here = point(start)
    for way in ways:
        end = point(way[-1])
        if len(way) == 1:
            curves.append({"type": "Line", "start": here, "end": end})
        else:
            curves.append({"type": "Arc", "start": here, "mid": point(way[0]), "end": end})
        here = end
    if here != first:
        curves.append({"type": "Line", "start": here, "end": first})
    return curves


def polygon(corners: Sequence[Sequence[float]]) -> Loop:
    """Draw a closed polygon."""
    return path(corners[0], *[(corner,) for corner in corners[1:]])


def rectangle(x: float, y: float, width: float, height: float) -> Loop:
    """Draw a rectangle around a centre, anticlockwise from the lower left."""
    a, b = width / 2, height / 2
    return polygon([(x - a, y - b), (x + a, y - b), (x + a, y + b), (x - a, y + b)])


def hexagon(x: float, y: float, radius: float) -> Loop:
    """Draw a regular hexagon with a corner on the x axis through its centre."""
    return polygon(hexagon_corners(x, y, radius))


def hexagon_corners(x: float, y: float, radius: float) -> list[list[float]]:
    """Give the corners of a regular hexagon, as rounded as a record keeps them."""
    turns = [math.radians(60 * k) for k in range(6)]
    return [point((x + radius * math.cos(t), y + radius * math.sin(t))) for t in turns]


def obround(x: float, y: float, length: float, width: float, along: str) -> Loop:
    """Draw a slot with round ends: two lines and two half circles."""
    a, r = (length - width) / 2, width / 2

    def at(u: float, v: float) -> tuple[float, float]:
        return (x + u, y + v) if along == "x" else (x - v, y + u)

    return path(
        at(-a, -r),
        (at(a, -r),),
        (at(a + r, 0), at(a, r)),
        (at(-a, r),),
        (at(-a - r, 0), at(-a, -r)),
    )


def extrude(
    plane: tuple[Vector, Vector, Vector],
    loops: Sequence[Loop],
    operation: int,
    extents: tuple[float, float],
    kind: int = ONE_SIDED,
) -> Record:
    """Record a sketch and its extrusion.

    Parameters
    ----------
    plane : (origin, normal, x direction)
    loops : sequence of Loop
        In plane coordinates.
    operation, kind : int
        See the constants of this module.
    extents : (float, float)
        Along the normal; the second one counts for two-sided extrusions only, and is negative.
    """
    body = {**_plane(plane), "operation": operation, "type": kind}
    body |= {
        "extent_one": num(extents[0]),
        "extent_two": num(extents[1]),
        "Profile": _profile(loops),
    }
    return {EXTRUDE: body}


def revolve(
    plane: tuple[Vector, Vector, Vector],
    loops: Sequence[Loop],
    operation: int,
    angle: float = 360.0,
) -> Record:
    """Record a sketch and its revolution about the y axis of its plane.

    Parameters
    ----------
    plane, loops
        See `extrude`.
    operation : int
        NEW, JOIN or CUT; upstream writes 1 for the first two, and tells them apart by `merge`.
    angle : float
        In degrees.
    """
    body = _plane(plane)
    del body["y_axis"]
    body |= {"operation": CUT if operation == CUT else JOIN, "merge": operation != NEW}
    body |= {"axis_start": [0.0, 0.0], "axis_end": [0.0, 1.0], "angle": num(angle)}
    return {REVOLVE: {**body, "Profile": _profile(loops)}}


def fillet(edges: Sequence[Sequence[float]], radius: float) -> Record:
    """Record a fillet of the edges whose centres are nearest to some points."""
    return {FILLET: {"edge": [point(edge) for edge in edges], "radius": num(radius)}}


def chamfer(edges: Sequence[Sequence[float]], one: float, two: float | None = None) -> Record:
    """Record a chamfer; with two distances where the second one is given."""
    second = one if two is None else two
    return {
        CHAMFER: {
            "edge": [point(edge) for edge in edges], "distance_one": num(one),
            "distance_two": num(second), "chamfer_type": int(two is not None),
        }
    }  # fmt: skip


def numbered(record: Record, number: int) -> Record:
    """Write the number of a base operation into its key."""
    ((kind, body),) = record.items()
    return {f"{kind} {number}": body}


def opened(record: Record) -> tuple[str, int, dict[str, Any]]:
    """Take a numbered record apart: its kind, its number and its fields."""
    ((key, body),) = record.items()
    kind, _, number = key.rpartition(" ")
    return kind, int(number), body


def op_of(record: Record) -> str:
    """Name the operation as `prompt.csv` does: extrude, revolve or chamfer_fillet."""
    return OPS[opened(record)[0]]


def _plane(plane: tuple[Vector, Vector, Vector]) -> dict[str, Any]:
    origin, normal, x_axis = plane
    return {
        "origin": point(origin), "normal": point(normal), "x_axis": point(x_axis),
        "y_axis": point(cross(normal, x_axis)),
    }  # fmt: skip


def _profile(loops: Sequence[Loop]) -> dict[str, Loop]:
    return {f"loop_{k}": loop for k, loop in enumerate(loops)}
