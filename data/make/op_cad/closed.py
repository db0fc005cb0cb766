"""Closed forms: how much volume a step adds or takes away, in mm³, from its sizes in mm alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

FILLET_CENTROID = (5 / 6 - math.pi / 4) / (1 - math.pi / 4)
"""Distance from either face, by the radius, of the centroid of what a fillet fills: 0.223368.

The unit square (first moment 1/2) less the quarter disc around its far corner (π/4 - 1/3).
"""


def polygon_area(corners: Sequence[Sequence[float]]) -> float:
    """Give the area of a polygon (shoelace formula)."""
    turned = [*corners[1:], corners[0]]
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, turned, strict=True))) / 2


def circle_area(radius: float) -> float:
    """Give the area of a disc."""
    return math.pi * radius**2


def obround_area(length: float, width: float) -> float:
    """Give the area of a slot with round ends, of some length overall."""
    return (length - width) * width + circle_area(width / 2)


def segment_area(radius: float, distance: float) -> float:
    """Give the area that a chord in some distance from the centre cuts off a disc."""
    return radius**2 * math.acos(distance / radius) - distance * math.sqrt(radius**2 - distance**2)


def tube(outer: float, inner: float, height: float, angle: float = 360.0) -> float:
    """Give the volume between two coaxial cylinders, over an angle in degrees."""
    return math.pi * (outer**2 - inner**2) * height * angle / 360


def frustum(bottom: float, top: float, height: float) -> float:
    """Give the volume of a cone without its tip."""
    return math.pi * height * (bottom**2 + bottom * top + top**2) / 3


def straight_fillet(radius: float, length: float, angle: float = math.pi / 2) -> float:
    """Give the volume between a straight edge and its fillet.

    r² (cot(θ/2) - (π - θ)/2) L: two tangents and the arc between them; (1 - π/4) r² L at a right angle.

    Parameters
    ----------
    radius, length : float
    angle : float
        Between the two faces, in the material or in the gap, in radians.
    """
    return radius**2 * (1 / math.tan(angle / 2) - (math.pi - angle) / 2) * length


def straight_chamfer(one: float, two: float, length: float, angle: float = math.pi / 2) -> float:
    """Give the volume of the wedge that a chamfer of a straight edge takes away."""
    return one * two * math.sin(angle) * length / 2


def rim_fillet(radius: float, size: float, *, outwards: bool) -> float:
    """Give the volume between a circular edge and its fillet (Pappus).

    Parameters
    ----------
    radius : float
        Of the edge.
    size : float
        Radius of the fillet.
    outwards : bool
        It lies outside the circle, as at the rim of a hole and the base of a boss.
    """
    away = FILLET_CENTROID * size
    return 2 * math.pi * (radius + (away if outwards else -away)) * (1 - math.pi / 4) * size**2


def rim_chamfer(radius: float, size: float, *, outwards: bool) -> float:
    """Give the volume of the ring that a chamfer of a circular edge takes away; see `rim_fillet`."""
    away = size / 3
    return 2 * math.pi * (radius + (away if outwards else -away)) * size**2 / 2
