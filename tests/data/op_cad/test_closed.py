"""Closed forms of volume changes, against numerical integration and figures measured elsewhere."""

from __future__ import annotations

import math

import pytest
from scipy.integrate import dblquad, quad


def corner_gap(t, r):
    """Depth of what a fillet of a right-angled corner takes away, at a distance t along one face."""
    return r - math.sqrt(r**2 - (r - t) ** 2)


@pytest.mark.parametrize("radius", [1.0, 2.5, 4.0])
def test_straight_fillet_at_a_right_angle(maker, radius):
    area, _ = quad(corner_gap, 0, radius, args=(radius,), epsabs=1e-12)
    assert maker.closed.straight_fillet(radius, 7.0) == pytest.approx(7 * area, rel=1e-9)


def test_two_concave_fillets_of_the_t_profile(maker):
    # Measured in the kernel: 19,200 mm³ before, 19,337.345 mm³ with two concave fillets r = 4.
    assert 19_200 + 2 * maker.closed.straight_fillet(4, 20) == pytest.approx(19_337.345, abs=5e-4)


def test_fillet_of_a_hexagonal_edge(maker):
    # Tangents from a corner of 120°: a kite of two right triangles less the sector of 60° between them.
    r = 3.0
    t = r / math.tan(math.radians(60))
    area = 2 * (t * r / 2) - math.pi * r**2 * 60 / 360
    assert maker.closed.straight_fillet(r, 1.0, math.radians(120)) == pytest.approx(area)


@pytest.mark.parametrize("outwards", [True, False])
@pytest.mark.parametrize(("radius", "size"), [(5.0, 1.0), (20.0, 2.5)])
def test_rims_against_integrals(maker, radius, size, outwards):
    side = 1 if outwards else -1
    rounded, _ = quad(
        lambda t: 2 * math.pi * (radius + side * t) * corner_gap(t, size), 0, size, epsabs=1e-12
    )
    bevelled, _ = dblquad(
        lambda _, t: 2 * math.pi * (radius + side * t), 0, size, 0, lambda t: size - t
    )
    closed = maker.closed
    assert closed.rim_fillet(radius, size, outwards=outwards) == pytest.approx(rounded, rel=1e-9)
    assert closed.rim_chamfer(radius, size, outwards=outwards) == pytest.approx(bevelled, rel=1e-9)


def test_centroid_of_a_fillet(maker):
    moment, _ = quad(lambda t: t * corner_gap(t, 1.0), 0, 1, epsabs=1e-12)
    area, _ = quad(corner_gap, 0, 1, args=(1.0,), epsabs=1e-12)
    assert moment / area == pytest.approx(maker.closed.FILLET_CENTROID, rel=1e-9)
    # Tables of engineers give the centroid of the spandrel of a quarter circle as 0.2234 r.
    assert pytest.approx(0.2234, abs=5e-5) == maker.closed.FILLET_CENTROID


def test_areas_and_solids(maker):
    closed = maker.closed
    assert closed.polygon_area([(0, 0), (4, 0), (4, 3), (0, 3)]) == 12
    assert closed.obround_area(10, 4) == pytest.approx(6 * 4 + math.pi * 4)
    assert closed.segment_area(5, 0) == pytest.approx(math.pi * 25 / 2)
    half, _ = quad(lambda x: 2 * math.sqrt(25 - x**2), 3, 5, epsabs=1e-12)
    assert closed.segment_area(5, 3) == pytest.approx(half)
    assert closed.frustum(3, 3, 2) == pytest.approx(closed.tube(3, 0, 2))
    assert closed.frustum(3, 0, 2) == pytest.approx(math.pi * 9 * 2 / 3)
    assert closed.tube(5, 3, 2, 90) == pytest.approx(math.pi * 16 * 2 / 4)
