"""A part while it is drawn: where it lies, what room it has, which edges can be worked on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from . import closed
from .records import Record, Vector, cross, point

Params: TypeAlias = dict[str, Any]
Plane: TypeAlias = tuple[Vector, Vector, Vector]


class Frame(NamedTuple):
    """Where a part lies: its features are thought of along x, y and z, its body grows along z."""

    origin: Vector
    x: Vector
    z: Vector

    def point(self, x: float, y: float, z: float) -> Vector:
        """Give a place of the part in space."""
        y_axis = cross(self.z, self.x)
        return tuple(
            point([
                o + x * a + y * b + z * c
                for o, a, b, c in zip(self.origin, self.x, y_axis, self.z, strict=True)
            ])
        )  # fmt: skip

    def level(self, z: float) -> Plane:
        """Give the plane at a height: its coordinates are the part's x and y."""
        return self.point(0, 0, z), self.z, self.x

    def below(self, z: float) -> Plane:
        """Give the plane at a height that looks down: its coordinates are the part's x and -y."""
        return self.point(0, 0, z), tuple(-c + 0.0 for c in self.z), self.x

    def upright(self) -> Plane:
        """Give the plane for turning: its coordinates are the distance from the axis and the height."""
        normal = tuple(-c + 0.0 for c in cross(self.z, self.x))
        return self.origin, normal, self.x


FRAMES: tuple[tuple[Vector, Vector], ...] = (
    ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0)),
    ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0)),
)
"""Directions of x and z: lying, standing to the front, standing to the side."""


class Cell(NamedTuple):
    """Room for one feature on the end faces: a rectangle around a place.

    Attributes
    ----------
    x, y, half_x, half_y : float
    bottom, top : bool
        On which end it may be.
    thickness : float
        Of the part there.
    through : bool
        A hole may go through.
    """

    x: float
    y: float
    half_x: float
    half_y: float
    thickness: float
    bottom: bool = True
    top: bool = True
    through: bool = True

    @property
    def half(self) -> float:
        """The smaller half side."""
        return min(self.half_x, self.half_y)


class Band(NamedTuple):
    """Room for one feature around a cylinder, between two heights."""

    low: float
    high: float
    radius: float


class Rim(NamedTuple):
    """A circular edge that can be worked on.

    Attributes
    ----------
    centre : (float, float, float)
        In the part's own directions.
    radius, room : float
        Of the edge, and the largest size of a fillet or chamfer.
    kind : str
        ``hole_rim``, ``boss_rim`` or ``boss_base``; the last one gains material.
    """

    centre: Vector
    radius: float
    room: float
    kind: str

    def change(self, op: str, size: float) -> float:
        """Give the change of volume by a fillet or chamfer."""
        form = closed.rim_fillet if op == "fillet" else closed.rim_chamfer
        removed = form(self.radius, size, outwards=self.kind != "boss_rim")
        return removed if self.kind == "boss_base" else -removed


class Straight(NamedTuple):
    """A straight edge that can be worked on.

    Attributes
    ----------
    ends : (Vector, Vector)
        In the part's own directions.
    room : float
    convex : bool
    angle : float
        Between its faces, in radians.
    """

    ends: tuple[Vector, Vector]
    room: float
    convex: bool = True
    angle: float = math.pi / 2

    @property
    def centre(self) -> Vector:
        """Its middle."""
        return tuple((a + b) / 2 for a, b in zip(*self.ends, strict=True))

    def change(self, op: str, one: float, two: float) -> float:
        """Give the change of volume by a fillet (the first size counts) or chamfer."""
        length = math.dist(*self.ends)
        if op == "fillet":
            change = closed.straight_fillet(one, length, self.angle)
        else:
            change = closed.straight_chamfer(one, two, length, self.angle)
        return -change if self.convex else change


@dataclass
class Part:
    """A part while it is drawn.

    Attributes
    ----------
    record : Record
        Of its body, the first step.
    volume : float
        Of the body, closed form.
    low, high : float
        Heights of its end faces.
    sweep : float
        Angle over which it was turned, in degrees.
    """

    frame: Frame
    record: Record
    volume: float
    low: float
    high: float
    cells: dict[str, Cell] = field(default_factory=dict)
    bands: dict[str, Band] = field(default_factory=dict)
    rims: dict[str, Rim] = field(default_factory=dict)
    edges: dict[str, Straight] = field(default_factory=dict)
    used: set[Vector] = field(default_factory=set)
    sweep: float = 360.0

    def free_edges(self) -> dict[str, Straight]:
        """Give the straight edges of which neither end was touched."""
        return {k: e for k, e in self.edges.items() if not self.used & {key(p) for p in e.ends}}


def key(place: Sequence[float]) -> Vector:
    """Give what tells a corner from others."""
    return tuple(point(place))


def prism_edges(
    corners: Sequence[Sequence[float]], low: float, high: float, room: float, *, name: str = "",
    ends: str = "both",
) -> dict[str, Straight]:  # fmt: skip
    """List the edges of a prism that can be worked on: upright ones, and those between right angles.

    Parameters
    ----------
    corners : sequence of points
        Of the outline, anticlockwise.
    low, high : float
        Heights of its end faces.
    room : float
        Largest size of a fillet.
    name : str
        Stands before the names of the edges.
    ends : str
        ``both`` or ``high``: at which end faces edges are listed.
    """
    found: dict[str, Straight] = {}
    count = len(corners)
    angles = [_angle(corners[k - 1], corners[k], corners[(k + 1) % count]) for k in range(count)]
    for k, (x, y) in enumerate(corners):
        inside = angles[k]
        convex = inside < math.pi
        found[f"{name}corner {k + 1}"] = Straight(
            ((x, y, low), (x, y, high)), room, convex, inside if convex else 2 * math.pi - inside
        )
        other = corners[(k + 1) % count]
        if not (_right(inside) and _right(angles[(k + 1) % count])):
            continue
        for where, z in (("top", high), ("bottom", low)):
            if ends == "both" or where == "top":
                flat = min(room, (high - low) / 3)
                found[f"{name}{where} side {k + 1}"] = Straight(
                    ((x, y, z), (other[0], other[1], z)), flat
                )
    return found


def _angle(before: Sequence[float], at: Sequence[float], after: Sequence[float]) -> float:
    """Give the inside angle at a corner of an anticlockwise outline, in radians."""
    a = math.atan2(before[1] - at[1], before[0] - at[0])
    b = math.atan2(after[1] - at[1], after[0] - at[0])
    return (a - b) % (2 * math.pi)


def _right(angle: float) -> bool:
    return math.isclose(angle, math.pi / 2)
