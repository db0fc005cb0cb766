"""Measure what a program made against the truth; in a child of a warm process, inside a box.

A solid of a model may make the kernel crash or never end: then this child is lost, and the solid is one
that cannot be measured.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from . import clouds, edges, solids


def measure(
    predicted: Mapping[str, str],
    true: Mapping[str, str],
    calls: tuple[Sequence[Any], Sequence[Any]],
    other: str | None = None,
    *,
    with_floor: bool = False,
    in_cube: bool = False,
    n: int = clouds.N_POINTS,
    seed: int = 0,
    even: bool = False,
) -> dict[str, Any]:
    """Give every figure of a step or of a whole part.

    Parameters
    ----------
    predicted, true : mapping of str to str
        BREP as base64: ``full``, the model; ``single``, the new part alone, where there is one;
        ``before`` (of the truth), the state that the step began with.
    calls : (sequence, sequence)
        The fillets and chamfers of the prediction and of the truth.
    other : str, optional
        The truth with the distances of its chamfers the other way round.
    with_floor : bool
        Give the noise floor of the truth as well.
    in_cube : bool
        Give ProCAD's Chamfer distance as well: in the unit cube, halved.
    n, seed, even
        Of the clouds; see `solids.points`.

    Returns
    -------
    dict
        Figures by name; ``engines``: what found the intersections.
    """
    ours, theirs = _read(predicted), _read(true)
    before = theirs.get("before")
    found: dict[str, Any] = {
        "volume": ours["full"].Volume(),
        "volume_true": theirs["full"].Volume(),
        "size_ratio": solids.size_ratio(ours["full"], theirs["full"]),
        "faces": len(ours["full"].Faces()),
    }
    engines: dict[str, str] = {}
    regions = [solids.region_iou(before, ours["full"], theirs["full"])]
    if other is not None:
        regions.append(solids.region_iou(before, ours["full"], _solid(other)))
    best = max(regions, key=lambda share: share.iou)
    found["orientation"] = "as given" if best is regions[0] else "swapped"
    found["region_iou"], engines["region"] = best
    found["iou_world"], engines["full"] = solids.iou(ours["full"], theirs["full"])
    found |= _clouds(ours, theirs, n, seed, even)
    if in_cube:
        pair = (
            solids.points(one["full"], n, seed=seed + k, even=even)
            for k, one in enumerate((ours, theirs))
        )
        in_cubes = (clouds.normalised(points, "cube") for points in pair)
        found["cd_cube_halved"] = clouds.distance(*in_cubes, halved=True).cd
    if with_floor:
        found["noise_floor"] = _floor(theirs["full"], n, seed, even)
    if any(calls):
        tolerance = edges.scaled(solids.diagonal(before or theirs["full"]))
        p, g = edges.chosen(calls[0]), edges.chosen(calls[1])
        found["cf_iou"] = edges.cf_iou(p, g, tolerance)
        found["cf_iou_upstream"] = edges.cf_iou(p, g, edges.UPSTREAM)
        error = _size_error(*calls)
        if error is not None:
            found["parameter_error"] = error
    return {**found, "engines": engines}


def floor(brep: str, *, n: int = clouds.N_POINTS, seed: int = 0, even: bool = False) -> float:
    """Give the Chamfer distance of a solid from itself: two clouds of it, drawn apart.

    Nothing that is measured with clouds of this size can lie much below it.
    """
    return _floor(_solid(brep), n, seed, even)


def _floor(solid: Any, n: int, seed: int, even: bool) -> float:
    pair = (solids.points(solid, n, seed=s, even=even) for s in (seed + 42, seed + 123))
    return clouds.distance(*map(clouds.normalised, pair)).cd


def _clouds(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], n: int, seed: int, even: bool
) -> dict[str, float]:
    """Compare clouds: the model where it is, the new part alone after any turn by right angles."""

    def cloud(solid: Any, of: int) -> clouds.Points:
        return clouds.normalised(solids.points(solid, n, seed=of, even=even))

    full = clouds.distance(cloud(ours["full"], seed), cloud(theirs["full"], seed + 1))
    found = {"cd_full": full.cd, "hd_full": full.hd}
    if "single" in ours and "single" in theirs:
        alone = clouds.best_distance(cloud(ours["single"], seed), cloud(theirs["single"], seed + 1))
        share = solids.iou(ours["single"], theirs["single"])
        found |= {"cd_single": alone.cd, "hd_single": alone.hd, "iou_single": share.iou}
    return found


def _size_error(predicted: Sequence[Any], true: Sequence[Any]) -> float | None:
    """Give the largest relative error of a radius or distance, kind by kind in order; None for none."""
    errors = []
    for op in ("fillet", "chamfer"):
        p = sorted(tuple(sorted(c["sizes"])) for c in predicted if c["op"] == op)
        g = sorted(tuple(sorted(c["sizes"])) for c in true if c["op"] == op)
        for ours, theirs in zip(p, g, strict=False):
            errors += [abs(a - b) / b for a, b in zip(ours, theirs, strict=False) if b]
    return max(errors, default=None)


def _read(given: Mapping[str, str]) -> dict[str, Any]:
    return {name: _solid(text) for name, text in given.items()}


def _solid(text: str) -> Any:
    solid = solids.read(base64.b64decode(text))
    solids.check(solid)
    return solid
