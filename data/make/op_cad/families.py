"""The twelve families of bodies: sizes are drawn, then the body is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from . import closed
from .part import Band, Cell, Frame, Params, Part, Rim, prism_edges
from .records import (
    NEW,
    SYMMETRIC,
    TWO_SIDED,
    Loop,
    circle,
    extrude,
    hexagon,
    hexagon_corners,
    obround,
    polygon,
    rectangle,
    revolve,
)  # fmt: skip

INSET = 8.0
"""How far features stay away from the outline, in mm."""
GAP = 3.0
_RIM = 2.5


class Family(NamedTuple):
    """A family: how its sizes are drawn, and how its body is made of them."""

    draw: Callable[[Random], Params]
    make: Callable[[Params, Frame], Part]


def step_of(rng: Random, low: float, high: float, step: float = 1.0) -> float:
    """Draw a size on a grid."""
    return float(low + step * rng.randrange(round((high - low) / step) + 1))


def _prism(frame: Frame, loop: Loop, area: float, ends: tuple[float, float], kind: int = 0) -> Part:
    """Make a body of one profile between two heights."""
    low, high = ends
    extents = (high, low) if kind == TWO_SIDED else (high, 0.0)
    record = extrude(frame.level(0), [loop], NEW, extents, kind)
    return Part(frame, record, area * (high - low), low, high)


def _grid(part: Part, name: str, box: Sequence[float], columns: int, rows: int) -> None:
    """Cut a rectangle of the end faces into cells, with gaps between them."""
    x0, y0, x1, y1 = box
    w = (x1 - x0 - GAP * (columns - 1)) / columns
    h = (y1 - y0 - GAP * (rows - 1)) / rows
    for i in range(columns):
        for j in range(rows):
            x, y = x0 + w / 2 + i * (w + GAP), y0 + h / 2 + j * (h + GAP)
            # Places on half millimetres read better; what is lost there is taken off the cell.
            at = (round(2 * x) / 2, round(2 * y) / 2)
            part.cells[f"{name}{i}{j}"] = Cell(
                *at, w / 2 - 0.25, h / 2 - 0.25, part.high - part.low
            )


def _outline(part: Part, corners: Sequence[Sequence[float]]) -> None:
    room = min(4.0, (part.high - part.low) / 3)
    part.edges |= prism_edges(corners, part.low, part.high, room)


def _box_corners(width: float, depth: float) -> list[tuple[float, float]]:
    a, b = width / 2, depth / 2
    return [(-a, -b), (a, -b), (a, b), (-a, b)]


def _draw_plate(rng: Random) -> Params:
    return {
        "width": step_of(rng, 70, 130, 2), "depth": step_of(rng, 50, 80, 2),
        "height": step_of(rng, 10, 24),
    }  # fmt: skip


def _rectangular(p: Params, frame: Frame, low: float, kind: int) -> Part:
    w, d = p["width"], p["depth"]
    part = _prism(frame, rectangle(0, 0, w, d), w * d, (low, p["height"]), kind)
    _grid(part, "", (INSET - w / 2, INSET - d / 2, w / 2 - INSET, d / 2 - INSET), 3, 2)
    _outline(part, _box_corners(w, d))
    return part


def _plate(p: Params, frame: Frame) -> Part:
    return _rectangular(p, frame, 0.0, 0)


def _draw_symmetric(rng: Random) -> Params:
    return {**_draw_plate(rng), "height": step_of(rng, 5, 12)}


def _symmetric(p: Params, frame: Frame) -> Part:
    return _rectangular(p, frame, -p["height"], SYMMETRIC)


def _draw_two_sided(rng: Random) -> Params:
    height, below = rng.sample([5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0], 2)
    return {**_draw_plate(rng), "height": height, "below": below}


def _two_sided(p: Params, frame: Frame) -> Part:
    return _rectangular(p, frame, -p["below"], TWO_SIDED)


def _draw_arms(rng: Random) -> Params:
    return {
        "width": step_of(rng, 90, 140, 2), "depth": step_of(rng, 70, 110, 2),
        "arm": step_of(rng, 32, 38), "height": step_of(rng, 10, 24),
    }  # fmt: skip


def _polygonal(p: Params, frame: Frame, corners: list[tuple[float, float]]) -> Part:
    area = closed.polygon_area(corners)
    part = _prism(frame, polygon(corners), area, (0.0, p["height"]))
    _outline(part, corners)
    return part


def _ell(p: Params, frame: Frame) -> Part:
    w, d, a = p["width"], p["depth"], p["arm"]
    part = _polygonal(p, frame, [(0, 0), (w, 0), (w, a), (a, a), (a, d), (0, d)])
    _grid(part, "a", (INSET, INSET, w - INSET, a - INSET), 4, 1)
    _grid(part, "b", (INSET, a, a - INSET, d - INSET), 1, 2)
    return part


def _tee(p: Params, frame: Frame) -> Part:
    w, d, a = p["width"], p["depth"], p["arm"]
    b = a / 2
    corners = [(-b, 0), (b, 0), (b, d - a), (w / 2, d - a), (w / 2, d), (-w / 2, d), (-w / 2, d - a), (-b, d - a)]  # fmt: skip
    part = _polygonal(p, frame, corners)
    _grid(part, "a", (INSET - w / 2, d - a + INSET, w / 2 - INSET, d - INSET), 4, 1)
    _grid(part, "b", (INSET - b, INSET, b - INSET, d - a), 1, 2)
    return part


def _draw_you(rng: Random) -> Params:
    p = _draw_arms(rng)
    return {**p, "width": step_of(rng, 100, 140, 2)}


def _you(p: Params, frame: Frame) -> Part:
    w, d, a = p["width"], p["depth"], p["arm"]
    corners = [(0, 0), (w, 0), (w, d), (w - a, d), (w - a, a), (a, a), (a, d), (0, d)]
    part = _polygonal(p, frame, [(x, y) for x, y in corners])
    _grid(part, "a", (INSET, INSET, w - INSET, a - INSET), 3, 1)
    for name, x in (("b", 0.0), ("c", w - a)):
        _grid(part, name, (x + INSET, a, x + a - INSET, d - INSET), 1, 2)
    return part


def _draw_disk(rng: Random) -> Params:
    return {"radius": step_of(rng, 32, 50), "height": step_of(rng, 14, 30)}


def _disk(p: Params, frame: Frame) -> Part:
    r, h = p["radius"], p["height"]
    part = _prism(frame, circle(0, 0, r), closed.circle_area(r), (0.0, h))
    side = (r - INSET) / math.sqrt(2)
    _grid(part, "", (-side, -side, side, side), 2, 2)
    part.bands["rim"] = Band(4.0, h - 4, r)
    part.rims["top outer rim"] = Rim((0.0, 0.0, h), r, _RIM, "boss_rim")
    part.rims["bottom outer rim"] = Rim((0.0, 0.0, 0.0), r, _RIM, "boss_rim")
    return part


def _draw_hexagon(rng: Random) -> Params:
    return {"radius": step_of(rng, 36, 60), "height": step_of(rng, 10, 28)}


def _hexagon(p: Params, frame: Frame) -> Part:
    r, h = p["radius"], p["height"]
    corners = hexagon_corners(0, 0, r)
    part = _prism(frame, hexagon(0, 0, r), closed.polygon_area(corners), (0.0, h))
    high = r * math.sqrt(3) / 2 - INSET
    _grid(part, "", (-r / 2, -high, r / 2, high), 2, 3)
    part.edges |= prism_edges(corners, 0.0, h, 4.0)
    return part


def _draw_obround(rng: Random) -> Params:
    return {
        "length": step_of(rng, 100, 150, 2), "width": step_of(rng, 44, 60, 2),
        "height": step_of(rng, 10, 24),
    }  # fmt: skip


def _obround(p: Params, frame: Frame) -> Part:
    length, width, h = p["length"], p["width"], p["height"]
    area = closed.obround_area(length, width)
    part = _prism(frame, obround(0, 0, length, width, "x"), area, (0.0, h))
    a, b = (length - width) / 2, width / 2 - INSET
    _grid(part, "", (-a, -b, a, b), 3, 2)
    for name, x in (("left", -a - b / 2), ("right", a + b / 2)):
        part.cells[name] = Cell(float(round(x)), 0.0, b / 2 - 2, b / 2 - 2, h)
    return part


def _draw_shaft(rng: Random) -> Params:
    radius = step_of(rng, 28, 40)
    return {
        "radius": radius, "length": step_of(rng, 44, 80), "second_radius": radius - step_of(rng, 6, 12),
        "second_length": step_of(rng, 24, 60),
    }  # fmt: skip


def _shaft(p: Params, frame: Frame) -> Part:
    r, a, s, b = p["radius"], p["length"], p["second_radius"], p["second_length"]
    loop = polygon([(0, 0), (r, 0), (r, a), (s, a), (s, a + b), (0, a + b)])
    volume = closed.tube(r, 0, a) + closed.tube(s, 0, b)
    part = Part(frame, revolve(frame.upright(), [loop], NEW), volume, 0.0, a + b)
    third = (a - 8) / 3
    for k in range(3):
        part.bands[f"first {k + 1}"] = Band(4 + k * third + 1, 4 + (k + 1) * third - 1, r)
    part.bands["second"] = Band(a + 4, a + b - 4, s)
    # Holes in the ends stay clear of what is cut around the shaft, and of each other.
    half = (r - 10) / math.sqrt(2) / 2 - 1
    far = float(round((r - 10) / math.sqrt(2) / 2))
    for k, (i, j) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        cell = Cell(i * far, j * far, half, half, a * 0.8, top=False, through=False)
        part.cells[f"bottom {k + 1}"] = cell
    side = (s - 9) / math.sqrt(2)
    part.cells["top"] = Cell(0.0, 0.0, side, side, b * 0.8, bottom=False, through=False)
    part.rims["top outer rim"] = Rim((0.0, 0.0, a + b), s, _RIM, "boss_rim")
    part.rims["bottom outer rim"] = Rim((0.0, 0.0, 0.0), r, _RIM, "boss_rim")
    return part


def _draw_ring(rng: Random) -> Params:
    return {
        "radius": step_of(rng, 50, 70), "inner_radius": step_of(rng, 14, 22),
        "height": step_of(rng, 18, 36), "angle": rng.choice([360.0, 360.0, 270.0, 180.0]),
    }  # fmt: skip


def _ring(p: Params, frame: Frame) -> Part:
    r, i, h, angle = p["radius"], p["inner_radius"], p["height"], p["angle"]
    loop = rectangle((r + i) / 2, h / 2, r - i, h)
    record = revolve(frame.upright(), [loop], NEW, angle)
    part = Part(frame, record, closed.tube(r, i, h, angle), 0.0, h, sweep=angle)
    middle = (r + i) / 2 - 1.5
    half = ((r - i) / 2 - 6.5) / math.sqrt(2)
    for k, turn in enumerate((35, 90, 145, 200, 235, 300)):
        if turn + 25 < angle:
            x, y = (middle * f(math.radians(turn)) for f in (math.cos, math.sin))
            part.cells[f"{k + 1}"] = Cell(float(round(x)), float(round(y)), half, half, h)
    half_way = h / 2
    part.bands["lower"] = Band(3.0, half_way - 1, r)
    part.bands["upper"] = Band(half_way + 1, h - 3, r)
    return part


def _draw_cone(rng: Random) -> Params:
    radius = step_of(rng, 46, 60)
    return {
        "radius": radius, "second_radius": radius - step_of(rng, 6, 14), "height": step_of(rng, 20, 50),
    }  # fmt: skip


def _cone(p: Params, frame: Frame) -> Part:
    r, s, h = p["radius"], p["second_radius"], p["height"]
    loop = polygon([(0, 0), (r, 0), (s, h), (0, h)])
    record = revolve(frame.upright(), [loop], NEW)
    part = Part(frame, record, closed.frustum(r, s, h), 0.0, h)
    side = (s - INSET) / math.sqrt(2)
    _grid(part, "", (-side, -side, side, side), 3, 2)
    return part


FAMILIES: dict[str, Family] = {
    "plate": Family(_draw_plate, _plate),
    "ell": Family(_draw_arms, _ell),
    "tee": Family(_draw_arms, _tee),
    "you": Family(_draw_you, _you),
    "disk": Family(_draw_disk, _disk),
    "hexagon": Family(_draw_hexagon, _hexagon),
    "obround": Family(_draw_obround, _obround),
    "symmetric_plate": Family(_draw_symmetric, _symmetric),
    "two_sided_plate": Family(_draw_two_sided, _two_sided),
    "stepped_shaft": Family(_draw_shaft, _shaft),
    "ring": Family(_draw_ring, _ring),
    "cone": Family(_draw_cone, _cone),
}
"""Families by name; the last three are turned, the others extruded."""
