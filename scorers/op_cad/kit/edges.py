"""CF-IoU: are the right edges filleted and chamfered?

The intersection is the largest one-to-one matching of the chosen edges with the true ones, fillets and
chamfers apart (the Hungarian method); the union what is left over on either side with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
from scipy.optimize import linear_sum_assignment

KERNEL = 1e-7
"""The CAD kernel's own tolerance: nothing is told apart below it."""
_NO = 1e9


class Edge(TypedDict):
    """An edge of a solid, as JSON.

    Attributes
    ----------
    geomType : str
        ``LINE``, ``CIRCLE``, …, the kernel's names.
    center : list of float
        Its centre of mass.
    length : float
    vertices : list of list of float
        Its ends, one for a closed edge.
    """

    geomType: str
    center: list[float]
    length: float
    vertices: list[list[float]]


class Chosen(NamedTuple):
    """The edges that were filleted, and those that were chamfered."""

    fillet: Sequence[Edge]
    chamfer: Sequence[Edge]


class Tolerance(NamedTuple):
    """How far two edges may lie apart and be the same one.

    Attributes
    ----------
    place : float
        Of the centres, and of the ends in the mean.
    length : float
        Of the lengths, absolute; two per cent are enough as well.
    radius : float
        Of a circle's radius.
    bug : bool
        Upstream's: a circle of another radius costs nothing, so that it matches.
    """

    place: float
    length: float
    radius: float
    bug: bool = False


UPSTREAM = Tolerance(1e-3, 1e-2, 2e-3, bug=True)
"""Absolute, whatever the size of the part."""


def scaled(diagonal: float) -> Tolerance:
    """Give the tolerances for a part by the diagonal of its box, never below the kernel's.

    Examples
    --------
    >>> scaled(1.0).place, scaled(1e-6).length
    (0.001, 1e-07)
    """
    place, length, radius = (max(KERNEL, f * diagonal) for f in (1e-3, 1e-2, 2e-3))
    return Tolerance(place, length, radius)


def cf_iou(predicted: Chosen, true: Chosen, tolerance: Tolerance) -> float:
    """Compare the chosen edges with the true ones.

    (h_f + h_c) / (|P_f| + |G_f| - h_f + |P_c| + |G_c| - h_c), h = matches of a kind; 1 where nothing
    was to be chosen and nothing was.

    Examples
    --------
    >>> nothing = Chosen([], [])
    >>> cf_iou(nothing, nothing, UPSTREAM)
    1.0
    """
    found = all_ = 0
    for p, g in zip(predicted, true, strict=True):
        ours, theirs = distinct(p), distinct(g)
        h = matches(ours, theirs, tolerance)
        found += h
        all_ += len(ours) + len(theirs) - h
    return found / all_ if all_ else 1.0


def distinct(edges: Sequence[Edge]) -> list[Edge]:
    """Leave out edges that stand twice: same type, centre (6 decimals) and length (4 decimals)."""
    seen: dict[tuple[Any, ...], Edge] = {}
    for edge in edges:
        centre = tuple(round(x, 6) + 0.0 for x in edge["center"])
        seen.setdefault((edge["geomType"], centre, round(edge["length"], 4)), edge)
    return list(seen.values())


def matches(ours: Sequence[Edge], theirs: Sequence[Edge], tolerance: Tolerance) -> int:
    """Count the pairs of the best one-to-one matching."""
    if not ours or not theirs:
        return 0
    costs = np.array([[_cost(a, b, tolerance) for b in theirs] for a in ours])
    rows, columns = linear_sum_assignment(costs)
    return int((costs[rows, columns] < _NO).sum())


def _cost(a: Edge, b: Edge, tolerance: Tolerance) -> float:
    """Give what a pair costs: d_c + 0.5 d_v + 5 d_l + 2 d_r, and more than all where it is none."""
    if a["geomType"] != b["geomType"]:
        return _NO
    apart = math.dist(a["center"], b["center"])
    ends = _ends_apart(a["vertices"], b["vertices"])
    longer = abs(a["length"] - b["length"])
    most = max(a["length"], b["length"])
    if apart > tolerance.place or ends > tolerance.place:
        return _NO
    if longer > tolerance.length and longer > 0.02 * most:
        return _NO
    wider = 0.0
    if a["geomType"] == "CIRCLE":
        wider = longer / (2 * math.pi)
        if wider > tolerance.radius:
            return 1e-9 if tolerance.bug else _NO
    return apart + 0.5 * ends + 5 * longer + 2 * wider


def _ends_apart(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> float:
    """Give the mean distance of the ends, in the order that fits better."""
    if len(a) != len(b):
        return math.inf
    if not a:
        return 0.0
    ways = [list(b), list(reversed(b))]
    return min(sum(map(math.dist, a, way)) / len(a) for way in ways)


def chosen(calls: Sequence[Mapping[str, Any]]) -> Chosen:
    """Gather the edges of traced calls by kind."""
    both: dict[str, list[Edge]] = {"fillet": [], "chamfer": []}
    for call in calls:
        both[call["op"]] += call["edges"]
    return Chosen(both["fillet"], both["chamfer"])
