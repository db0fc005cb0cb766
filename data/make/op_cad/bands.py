"""Features around a cylinder: grooves, collars, flats."""

from __future__ import annotations

import math
from random import Random

from . import closed
from .draft import Draft, Feature
from .families import GAP, step_of
from .part import Band, Params, Part
from .records import CUT, JOIN, ONE_SIDED, Record, extrude, rectangle, revolve


def _band(part: Part, rng: Random, least: float) -> tuple[str, Band] | None:
    fit = [(name, band) for name, band in part.bands.items() if band.high - band.low >= least]
    return rng.choice(fit) if fit else None


def _draw_groove(part: Part, rng: Random) -> Params | None:
    found = _band(part, rng, 3.0)
    if found is None:
        return None
    name, band = found
    width = step_of(rng, 2, min(8, math.floor(band.high - band.low)))
    z = band.low + step_of(rng, 0, math.floor(band.high - band.low - width))
    return {"band": name, "z": round(z, 1), "width": width, "depth": step_of(rng, 1.5, 4, 0.5)}


def _ringed(part: Part, inner: float, outer: float, p: Params, operation: int) -> Record:
    width, z = p["width"], p["z"]
    loop = rectangle((inner + outer) / 2, z + width / 2, outer - inner, width)
    return revolve(part.frame.upright(), [loop], operation)


def _make_groove(part: Part, p: Params, _: int) -> Draft:
    r = part.bands[p["band"]].radius
    record = _ringed(part, r - p["depth"], r + GAP, p, CUT)
    change = -closed.tube(r, r - p["depth"], p["width"], part.sweep)
    return Draft(("groove",), [record], change, bands=(p["band"],))


def _draw_collar(part: Part, rng: Random) -> Params | None:
    p = _draw_groove(part, rng)
    if p is None or part.sweep < 360:
        return None
    p["rise"] = p.pop("depth")
    return p


def _make_collar(part: Part, p: Params, _: int) -> Draft:
    r = part.bands[p["band"]].radius
    record = _ringed(part, r - GAP, r + p["rise"], p, JOIN)
    change = closed.tube(r + p["rise"], r, p["width"])
    return Draft(("collar",), [record], change, bands=(p["band"],))


def _draw_flat(part: Part, rng: Random) -> Params | None:
    found = _band(part, rng, 5.0)
    if found is None:
        return None
    name, band = found
    width = step_of(rng, 4, min(20, math.floor(band.high - band.low)))
    z = band.low + step_of(rng, 0, math.floor(band.high - band.low - width))
    side = 1 if part.sweep < 360 else rng.randrange(4)
    return {
        "band": name, "z": round(z, 1), "width": width, "distance": band.radius - step_of(rng, 2, 5, 0.5),
        "side": side,
    }  # fmt: skip


def _make_flat(part: Part, p: Params, _: int) -> Draft:
    r, a = part.bands[p["band"]].radius, p["distance"]
    away, thick, wide = (a + r + GAP) / 2, r + GAP - a, 2 * (r + GAP)
    i, j = ((1, 0), (0, 1), (-1, 0), (0, -1))[p["side"]]
    size = (thick, wide) if i else (wide, thick)
    loop = rectangle(i * away, j * away, *size)
    record = extrude(part.frame.level(p["z"]), [loop], CUT, (p["width"], 0.0), ONE_SIDED)
    change = -closed.segment_area(r, a) * p["width"]
    return Draft(("key_flat",), [record], change, bands=(p["band"],))


BAND_FEATURES: dict[str, Feature] = {
    "collar": Feature(_draw_collar, _make_collar),
    "key_flat": Feature(_draw_flat, _make_flat),
    "groove": Feature(_draw_groove, _make_groove),
}
"""Kinds of steps around a cylinder; the first one adds, the others cut."""
