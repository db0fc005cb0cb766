"""Fillets and chamfers of the edges that a part has."""

from __future__ import annotations

import math
from random import Random

from .draft import Draft, Feature
from .families import step_of
from .part import Params, Part, Rim, Straight, key
from .records import Record, chamfer, fillet

_MOST = 4
"""How many edges one record takes at most."""
_TWO_DISTANCES = 0.08
"""Share of chamfers with two distances."""


def edge_kind(edge: Rim | Straight) -> str:
    """Name what an edge is: straight_convex, straight_concave, or a rim's own kind."""
    if isinstance(edge, Rim):
        return edge.kind
    return "straight_convex" if edge.convex else "straight_concave"


def candidates(part: Part) -> dict[str, Rim | Straight]:
    """Give the edges that can be worked on, by name."""
    return {**part.free_edges(), **part.rims}


def _draw(op: str, kind: str, part: Part, rng: Random) -> Params | None:
    fit = {n: e for n, e in candidates(part).items() if edge_kind(e) == kind and e.room >= 1}
    if not fit:
        return None
    many = 1 if kind in ("straight_concave", "boss_base") else rng.choice([1, 1, 2, _MOST])
    chosen = _apart(rng, fit, many)
    room = min(fit[name].room for name in chosen)
    p = {"op": op, "edges": chosen, "size": step_of(rng, 1, math.floor(2 * room) / 2, 0.5)}
    if op == "chamfer" and kind == "straight_convex" and rng.random() < _TWO_DISTANCES:
        other = step_of(rng, 1, math.floor(2 * room) / 2, 0.5)
        return {**p, "second_size": other} if other != p["size"] else p
    return p


def _apart(rng: Random, fit: dict[str, Rim | Straight], many: int) -> list[str]:
    """Choose edges of which no two meet; of a part's outline all upright or none."""
    first = rng.choice(sorted(fit))
    stem = first.rstrip("0123456789")
    like = sorted(name for name in fit if name.rstrip("0123456789") == stem and name != first)
    chosen = [first]
    for name in rng.sample(like, len(like)):
        one = fit[name]
        if len(chosen) < many and not any(_meet(one, fit[other]) for other in chosen):
            chosen.append(name)
    return sorted(chosen)


def _meet(one: Rim | Straight, two: Rim | Straight) -> bool:
    if isinstance(one, Rim) or isinstance(two, Rim):
        return False
    return bool({key(p) for p in one.ends} & {key(p) for p in two.ends})


def _make(part: Part, p: Params, _: int) -> Draft:
    edges = candidates(part)
    chosen = [edges[name] for name in p["edges"]]
    centres = [part.frame.point(*(e.centre)) for e in chosen]
    one, two = p["size"], p.get("second_size")
    record: Record = fillet(centres, one) if p["op"] == "fillet" else chamfer(centres, one, two)
    change = sum(
        e.change(p["op"], one) if isinstance(e, Rim) else e.change(p["op"], one, two or one)
        for e in chosen
    )
    return Draft(
        (f"{p['op']}_{edge_kind(chosen[0])}",), [record], change,
        rims=tuple(name for name in p["edges"] if name in part.rims),
        used=frozenset(key(q) for e in chosen if isinstance(e, Straight) for q in e.ends),
    )  # fmt: skip


def _draw_pair(part: Part, rng: Random) -> Params | None:
    one = _draw("fillet", "straight_convex", part, rng)
    two = _draw("chamfer", rng.choice(["straight_convex", "hole_rim", "boss_rim"]), part, rng)
    if one is None or two is None:
        return None
    edges = candidates(part)
    if any(_meet(edges[a], edges[b]) for a in one["edges"] for b in two["edges"]):
        return None
    return {"one": one, "two": two}


def _make_pair(part: Part, p: Params, n: int) -> Draft:
    one, two = _make(part, p["one"], n), _make(part, p["two"], n)
    return Draft(
        one.kinds + two.kinds, one.records + two.records, one.change + two.change,
        rims=one.rims + two.rims, used=one.used | two.used,
    )  # fmt: skip


def _feature(op: str, kind: str) -> Feature:
    return Feature(lambda part, rng: _draw(op, kind, part, rng), _make)


KINDS = ("straight_convex", "straight_concave", "hole_rim", "boss_rim", "boss_base")
EDGE_FEATURES: dict[str, Feature] = {
    **{f"{op}_{kind}": _feature(op, kind) for op in ("fillet", "chamfer") for kind in KINDS},
    "edge_pair": Feature(_draw_pair, _make_pair),
}
"""Kinds of steps that work on edges."""
