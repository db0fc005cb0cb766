"""Features on the end faces: sizes are drawn where a part has room, then records are made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from . import closed
from .draft import Draft, Feature
from .families import step_of
from .part import Cell, Params, Part, Plane, Rim, Straight, prism_edges
from .records import (
    CUT,
    JOIN,
    SYMMETRIC,
    TWO_SIDED,
    Loop,
    Record,
    circle,
    extrude,
    obround,
    rectangle,
)  # fmt: skip

_PAST = 2.0
"""How far a cut goes on past the far face, in mm."""
_CLEAR = 2.5
"""How much of a cell's half side stays free around a feature, for fillets and chamfers."""
_ROOM = 2.0


def face(part: Part, where: str) -> tuple[Plane, float, float]:
    """Give the plane of an end face that looks outwards, the sign of its y axis, and its height."""
    if where == "top":
        return part.frame.level(part.high), 1.0, part.high
    return part.frame.below(part.low), -1.0, part.low


def _cell(
    part: Part, rng: Random, least: float, *, through: bool = False, top_only: bool = False
) -> tuple[str, Cell, str] | None:
    """Choose a cell of at least some half side, and an end face."""
    fit = [
        (name, cell) for name, cell in part.cells.items()
        if cell.half >= least and (cell.through or not through) and (cell.top or not top_only)
    ]  # fmt: skip
    if not fit:
        return None
    name, cell = rng.choice(fit)
    ends = [end for end, may in (("top", cell.top), ("bottom", cell.bottom)) if may]
    return name, cell, "top" if top_only else rng.choice(ends)


def _shifted(rng: Random, cell: Cell, half_x: float, half_y: float) -> tuple[float, float]:
    """Choose a place in a cell for something of some size."""
    dx = max(0, math.floor(cell.half_x - half_x))
    dy = max(0, math.floor(cell.half_y - half_y))
    return cell.x + rng.randint(-dx, dx), cell.y + rng.randint(-dy, dy)


def _radius(rng: Random, cell: Cell, least: float = 2.0, most: float = 9.0) -> float:
    return step_of(rng, least, min(most, math.floor(2 * (cell.half - _CLEAR)) / 2), 0.5)


def _draw_hole(part: Part, rng: Random) -> Params | None:
    found = _cell(part, rng, 4.5, through=True)
    if found is None:
        return None
    name, cell, where = found
    radius = _radius(rng, cell)
    x, y = _shifted(rng, cell, radius + _CLEAR, radius + _CLEAR)
    return {"cell": name, "face": where, "x": x, "y": y, "radius": radius}


def _round_cut(part: Part, p: Params, depth: float | None) -> Record:
    plane, up, _ = face(part, p["face"])
    deep = part.high - part.low + _PAST if depth is None else depth
    return extrude(plane, [circle(p["x"], up * p["y"], p["radius"])], CUT, (-deep, 0.0))


def _make_hole(part: Part, p: Params, n: int) -> Draft:
    r, h = p["radius"], part.high - part.low
    rims = {
        f"hole {n} {end} rim": Rim((p["x"], p["y"], z), r, _ROOM, "hole_rim")
        for end, z in (("top", part.high), ("bottom", part.low))
    }
    return Draft(
        ("hole",),
        [_round_cut(part, p, None)],
        -closed.circle_area(r) * h,
        (p["cell"],),
        new_rims=rims,
    )


def _draw_blind(part: Part, rng: Random) -> Params | None:
    found = _cell(part, rng, 4.5)
    if found is None:
        return None
    name, cell, where = found
    radius = _radius(rng, cell)
    x, y = _shifted(rng, cell, radius + _CLEAR, radius + _CLEAR)
    depth = step_of(rng, 4, math.floor(min(cell.thickness * 0.6, 20)))
    return {"cell": name, "face": where, "x": x, "y": y, "radius": radius, "depth": depth}


def _make_blind(part: Part, p: Params, n: int) -> Draft:
    r, z = p["radius"], face(part, p["face"])[2]
    rims = {f"blind hole {n} rim": Rim((p["x"], p["y"], z), r, _ROOM, "hole_rim")}
    change = -closed.circle_area(r) * p["depth"]
    return Draft(
        ("blind_hole",), [_round_cut(part, p, p["depth"])], change, (p["cell"],), new_rims=rims
    )


def _draw_boss(part: Part, rng: Random) -> Params | None:
    p = _draw_blind(part, rng)
    if p is None:
        return None
    del p["depth"]
    return {**p, "height": step_of(rng, 6, 20)}


def _boss(part: Part, p: Params) -> Record:
    plane, up, _ = face(part, p["face"])
    return extrude(plane, [circle(p["x"], up * p["y"], p["radius"])], JOIN, (p["height"], 0.0))


def _make_boss(part: Part, p: Params, n: int) -> Draft:
    _, up, z = face(part, p["face"])
    r, x, y = p["radius"], p["x"], p["y"]
    rims = {
        f"boss {n} base": Rim((x, y, z), r, _ROOM, "boss_base"),
        f"boss {n} rim": Rim((x, y, z + up * p["height"]), r, min(_ROOM, r / 2), "boss_rim"),
    }
    change = closed.circle_area(r) * p["height"]
    return Draft(("boss",), [_boss(part, p)], change, (p["cell"],), new_rims=rims)


def _draw_two(draw: Callable[[Part, Random], Params | None]) -> Callable[..., Params | None]:
    """Draw a feature twice, in two cells and with two radii."""

    def drawn(part: Part, rng: Random) -> Params | None:
        one, two = draw(part, rng), draw(part, rng)
        if (
            one is None
            or two is None
            or one["cell"] == two["cell"]
            or one["radius"] == two["radius"]
        ):
            return None
        return {"one": one, "two": two}

    return drawn


def _make_two(make: Callable[[Part, Params, int], Draft]) -> Callable[..., Draft]:
    """Make a feature twice, in one step of two base operations; its edges are not worked on."""

    def made(part: Part, p: Params, n: int) -> Draft:
        one, two = make(part, p["one"], n), make(part, p["two"], n)
        return Draft(
            one.kinds + two.kinds, one.records + two.records, one.change + two.change,
            one.cells + two.cells,
        )  # fmt: skip

    return made


def _box_in(part: Part, rng: Random, *, top_only: bool) -> Params | None:
    found = _cell(part, rng, 5.0, top_only=top_only)
    if found is None:
        return None
    name, cell, where = found
    width = step_of(rng, 5, math.floor(2 * (cell.half_x - 2)))
    length = step_of(rng, 5, math.floor(2 * (cell.half_y - 2)))
    x, y = _shifted(rng, cell, width / 2 + 2, length / 2 + 2)
    return {"cell": name, "face": where, "x": x, "y": y, "width": width, "length": length}


def _draw_rib(part: Part, rng: Random) -> Params | None:
    p = _box_in(part, rng, top_only=True)
    return p and {**p, "height": step_of(rng, 5, 16)}


def _corners(p: Params) -> list[tuple[float, float]]:
    a, b = p["width"] / 2, p["length"] / 2
    x, y = p["x"], p["y"]
    return [(x - a, y - b), (x + a, y - b), (x + a, y + b), (x - a, y + b)]


def _box(part: Part, p: Params, operation: int, extent: float) -> Record:
    plane, up, _ = face(part, p["face"])
    loop = rectangle(p["x"], up * p["y"], p["width"], p["length"])
    return extrude(plane, [loop], operation, (extent, 0.0))


def _make_rib(part: Part, p: Params, n: int) -> Draft:
    z, h = part.high, p["height"]
    room = min(_ROOM, min(p["width"], p["length"]) / 3, h / 3)
    edges = prism_edges(_corners(p), z, z + h, room, name=f"rib {n} ", ends="high")
    change = p["width"] * p["length"] * h
    return Draft(("rib",), [_box(part, p, JOIN, h)], change, (p["cell"],), new_edges=edges)


def _draw_pocket(part: Part, rng: Random) -> Params | None:
    p = _box_in(part, rng, top_only=False)
    if p is None:
        return None
    deep = min(part.cells[p["cell"]].thickness * 0.6, 20)
    return {**p, "depth": step_of(rng, 4, math.floor(deep))}


def _make_pocket(part: Part, p: Params, n: int) -> Draft:
    _, up, z = face(part, p["face"])
    room = min(_ROOM, min(p["width"], p["length"]) / 3)
    edges = {
        f"pocket {n} corner {k}": Straight(
            ((x, y, z), (x, y, z - up * p["depth"])), room, convex=False
        )
        for k, (x, y) in enumerate(_corners(p), 1)
    }
    change = -p["width"] * p["length"] * p["depth"]
    return Draft(
        ("pocket",), [_box(part, p, CUT, -p["depth"])], change, (p["cell"],), new_edges=edges
    )


def _draw_slot(part: Part, rng: Random) -> Params | None:
    p = _draw_pocket(part, rng)
    if p is None or p["width"] == p["length"]:
        return None
    along = "x" if p["width"] > p["length"] else "y"
    long, wide = max(p["width"], p["length"]), min(p["width"], p["length"])
    del p["width"], p["length"]
    return {**p, "slot_length": long, "slot_width": wide, "along": along}


def _make_slot(part: Part, p: Params, _: int) -> Draft:
    plane, up = face(part, p["face"])[:2]
    loop = obround(p["x"], up * p["y"], p["slot_length"], p["slot_width"], p["along"])
    area = closed.obround_area(p["slot_length"], p["slot_width"])
    record = extrude(plane, [loop], CUT, (-p["depth"], 0.0))
    return Draft(("slot_pocket",), [record], -area * p["depth"], (p["cell"],))


def _draw_pattern(part: Part, rng: Random) -> Params | None:
    found = _cell(part, rng, 5.0, through=True)
    if found is None:
        return None
    name, cell, where = found
    along = "x" if cell.half_x > cell.half_y else "y"
    long = max(cell.half_x, cell.half_y)
    radius = step_of(rng, 1.5, min(3.0, cell.half - 3), 0.5)
    count = rng.randint(2, 4)
    pitch = math.floor(2 * (2 * long - 2 * radius - 2) / (count - 1)) / 2
    if pitch < 2 * radius + 2:
        return None
    pitch = step_of(rng, 2 * radius + 2, pitch, 0.5)
    start = -pitch * (count - 1) / 2
    x, y = (cell.x + start, cell.y) if along == "x" else (cell.x, cell.y + start)
    return {
        "cell": name, "face": where, "x": x, "y": y, "radius": radius, "count": count, "pitch": pitch,
        "along": along,
    }  # fmt: skip


def _make_pattern(part: Part, p: Params, _: int) -> Draft:
    plane, up = face(part, p["face"])[:2]
    away = [k * p["pitch"] for k in range(p["count"])]
    places = [(p["x"] + s, p["y"]) if p["along"] == "x" else (p["x"], p["y"] + s) for s in away]
    h = part.high - part.low
    loops = [circle(x, up * y, p["radius"]) for x, y in places]
    change = -p["count"] * closed.circle_area(p["radius"]) * h
    return Draft(
        ("hole_pattern",), [extrude(plane, loops, CUT, (-h - _PAST, 0.0))], change, (p["cell"],)
    )


def _draw_two_sided_cut(part: Part, rng: Random) -> Params | None:
    p = _box_in(part, rng, top_only=False)
    if p is None or not part.cells[p["cell"]].through:
        return None
    del p["face"]
    return {**p, "kind": rng.choice([SYMMETRIC, TWO_SIDED])}


def _make_two_sided_cut(part: Part, p: Params, n: int) -> Draft:
    h = part.high - part.low
    middle = part.low + h / 2
    if p["kind"] == SYMMETRIC:
        z, extents = middle, (h / 2 + _PAST, 0.0)
    else:
        z = middle + 1
        extents = (h / 2 + _PAST, -(h / 2 + _PAST + 1))
    loop: Loop = rectangle(p["x"], p["y"], p["width"], p["length"])
    record = extrude(part.frame.level(z), [loop], CUT, extents, p["kind"])
    edges = {
        f"cut-out {n} corner {k}": Straight(
            ((x, y, part.low), (x, y, part.high)), min(_ROOM, min(p["width"], p["length"]) / 3),
            convex=False,
        )
        for k, (x, y) in enumerate(_corners(p), 1)
    }  # fmt: skip
    change = -p["width"] * p["length"] * h
    return Draft(("two_sided_cut",), [record], change, (p["cell"],), new_edges=edges)


def _draw_counterbore(part: Part, rng: Random) -> Params | None:
    found = _cell(part, rng, 6.5, through=True)
    if found is None:
        return None
    name, cell, where = found
    outer = _radius(rng, cell, 3.5)
    radius = step_of(rng, 1.5, outer - 1.5, 0.5)
    x, y = _shifted(rng, cell, outer + _CLEAR, outer + _CLEAR)
    depth = step_of(rng, 2, math.floor(cell.thickness * 0.5))
    return {
        "cell": name, "face": where, "x": x, "y": y, "radius": radius, "outer_radius": outer,
        "depth": depth,
    }  # fmt: skip


def _make_counterbore(part: Part, p: Params, n: int) -> Draft:
    wide = {**p, "radius": p["outer_radius"]}
    change = -closed.circle_area(p["radius"]) * (part.high - part.low)
    change -= closed.tube(p["outer_radius"], p["radius"], p["depth"])
    z = face(part, p["face"])[2]
    rims = {f"counterbore {n} rim": Rim((p["x"], p["y"], z), p["outer_radius"], min(1.5, p["depth"] / 2), "hole_rim")}  # fmt: skip
    records = [_round_cut(part, p, None), _round_cut(part, wide, p["depth"])]
    return Draft(("hole", "counterbore"), records, change, (p["cell"],), new_rims=rims)


FEATURES: dict[str, Feature] = {
    "boss": Feature(_draw_boss, _make_boss),
    "rib": Feature(_draw_rib, _make_rib),
    "boss_pair": Feature(_draw_two(_draw_boss), _make_two(_make_boss)),
    "hole": Feature(_draw_hole, _make_hole),
    "blind_hole": Feature(_draw_blind, _make_blind),
    "pocket": Feature(_draw_pocket, _make_pocket),
    "slot_pocket": Feature(_draw_slot, _make_slot),
    "hole_pattern": Feature(_draw_pattern, _make_pattern),
    "two_sided_cut": Feature(_draw_two_sided_cut, _make_two_sided_cut),
    "hole_pair": Feature(_draw_two(_draw_hole), _make_two(_make_hole)),
    "counterbore": Feature(_draw_counterbore, _make_counterbore),
}
"""Kinds of steps on the end faces that add (the first three) or cut material."""
