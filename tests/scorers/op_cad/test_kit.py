"""Figures on solids and clouds, against closed forms and cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("cadquery", reason="needs the extra cad and libGL")

import cadquery as cq

from scorers.op_cad.kit import clouds, edges, measure, program, solids

BOX = "import cadquery as cq\nresult_0 = cq.Workplane().box(40, 30, 10)\n"
GOLD = 'result = result_0.edges("|Z").fillet(2)\n'


def box(x=40, y=30, z=10):
    return cq.Workplane().box(x, y, z)


# Box 40 x 30 x 10 with four vertical edges filleted by 2 against other ways to do it.
TRUTH = 4 * (1 - math.pi / 4) * 4 * 10


@pytest.mark.parametrize(
    ("other", "region", "whole"),
    [
        (lambda b: b.edges("|Z").fillet(3), 4 / 9, 0.996413),
        (lambda b: b.edges("|Z").chamfer(2), 2 - math.pi / 2, 0.996184),
        (lambda b: b.edges("|Z and >X and >Y").fillet(2), 0.25, 0.997852),
        (lambda b: b, 0.0, 0.997139),
        (lambda b: b.edges("|Z").fillet(2), 1.0, 1.0),
    ],
)
def test_a_fillet_against_others_is_worth_its_share_of_the_change(other, region, whole):
    true = box().edges("|Z").fillet(2).val()
    made = other(box()).val()
    assert solids.region_iou(box().val(), made, true).iou == pytest.approx(region, abs=1e-9)
    assert solids.iou(made, true).iou == pytest.approx(whole, abs=5e-7)
    assert true.Volume() == pytest.approx(12_000 - TRUTH, rel=1e-12)


# Pairs of solids whose intersection over union is known in closed form.
R = 5.0
PAIRS = [
    (box(10, 10, 10), box(10, 10, 10).translate((5, 0, 0)), 1 / 3),
    (box(10, 10, 10), box(10, 10, 10).translate((10, 0, 0)), 0.0),
    (box(10, 10, 10), box(10, 10, 10).translate((20, 0, 0)), 0.0),
    (box(10, 10, 10), box(5, 5, 5), 1 / 8),
    (box(2 * R, 2 * R, 10), cq.Workplane().circle(R).extrude(10).translate((0, 0, -5)), math.pi / 4),
    (cq.Workplane().sphere(R), box(2 * R, 2 * R, 2 * R), math.pi / 6),
    (cq.Workplane().circle(R).extrude(10), cq.Workplane().circle(R / 2).extrude(10), 0.25),
    (box(10, 10, 10), box(10, 10, 10).rotate((0, 0, 0), (0, 0, 1), 90), 1.0),
    (cq.Workplane().sphere(R), cq.Workplane().sphere(R).translate((R, 0, 0)), (5 / 16) / (2 - 5 / 16)),
    (box(10, 10, 10), box(10, 10, 10).rotate((0, 0, 0), (0, 0, 1), 45), 1 / math.sqrt(2)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_ten_pairs_of_known_intersection(number):
    a, b, expected = PAIRS[number]
    found = solids.iou(a.val(), b.val())
    assert found.iou == pytest.approx(expected, abs=1e-6)
    meshes = solids._mesh_iou(a.val(), b.val())
    assert meshes == pytest.approx(expected, abs=1e-3)


def test_two_clouds_by_hand():
    a, b = np.array([[0.0, 0, 0], [1, 0, 0]]), np.array([[0.0, 0, 0], [1, 1, 0]])
    assert clouds.distance(a, b) == (1.0, 1.0)
    assert clouds.distance(a, b, halved=True).cd == 0.5
    assert clouds.distance(a, a) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("n", "even", "floor"),
    [(1024, False, 5.4e-3), (2048, False, 2.9e-3), (8192, False, 7.0e-4), (1024, True, 3.7e-3),
     (2048, True, 1.9e-3), (8192, True, 4.7e-4)],
)  # fmt: skip
def test_a_cube_is_as_far_from_itself_as_was_measured(n, even, floor):
    cube = box(2, 2, 2).val()
    found = []
    for k in range(8):
        pair = (solids.points(cube, n, seed=2 * k + j, even=even) for j in (0, 1))
        found.append(clouds.distance(*map(clouds.normalised, pair)).cd)
    assert np.mean(found) == pytest.approx(floor, rel=0.2)


def test_points_are_the_same_every_time():
    cube = box(2, 2, 2).val()
    assert np.array_equal(solids.points(cube, 500, seed=3), solids.points(cube, 500, seed=3))
    assert not np.array_equal(solids.points(cube, 500, seed=3), solids.points(cube, 500, seed=4))


def test_a_turned_part_is_near_alone_and_far_in_its_place():
    part = cq.Workplane().box(40, 20, 5).faces(">Z").workplane().center(10, 5).hole(6).val()
    turned = part.rotate(cq.Vector(0, 0, 0), cq.Vector(0, 0, 1), 90)
    a, b = (clouds.normalised(solids.points(s, 2048, seed=k)) for k, s in enumerate((part, turned)))
    floor = clouds.distance(a, clouds.normalised(solids.points(part, 2048, seed=9))).cd
    assert clouds.best_distance(b, a).cd < 1.5 * floor
    assert clouds.distance(b, a).cd > 10 * floor


def test_a_larger_copy_has_the_same_shape_and_its_own_size():
    small, large = box().val(), box(120, 90, 30).val()
    assert solids.size_ratio(large, small) == pytest.approx(3.0)
    pair = (clouds.normalised(solids.points(s, 2048, seed=k)) for k, s in enumerate((small, large)))
    assert clouds.distance(*pair).cd < 5e-3


def chosen(solid, selector, kind="fillet"):
    found = [solids.edge(e) for e in solid.edges(selector).vals()]
    return edges.Chosen(found, []) if kind == "fillet" else edges.Chosen([], found)


def test_edges_are_matched_one_to_one_and_kind_by_kind():
    part, tolerance = box(), edges.scaled(50.0)
    true = chosen(part, "|Z")
    three = edges.Chosen([*true.fillet[:3], *chosen(part, ">X and >Z").fillet], [])
    assert edges.cf_iou(three, true, tolerance) == pytest.approx(3 / 5)
    assert edges.cf_iou(chosen(part, "|Z", "chamfer"), true, tolerance) == 0.0
    assert edges.cf_iou(edges.Chosen([], []), edges.Chosen([], []), tolerance) == 1.0
    twice = edges.Chosen([*true.fillet, *true.fillet], [])
    assert edges.cf_iou(twice, true, tolerance) == 1.0


def test_a_wrong_radius_is_no_match_and_was_one_upstream():
    circle = {
        "geomType": "CIRCLE",
        "center": [0.0, 0, 0],
        "length": 2 * math.pi * 10,
        "vertices": [],
    }
    wider = {**circle, "length": 2 * math.pi * 10.1}
    one, other = edges.Chosen([circle], []), edges.Chosen([wider], [])
    assert edges.cf_iou(other, one, edges.scaled(1.0)) == 0.0
    assert edges.cf_iou(other, one, edges.UPSTREAM) == 1.0


def test_edges_of_a_tiny_part_are_told_apart():
    cube = box(0.001, 0.001, 0.001)
    top, bottom = chosen(cube, ">Z"), chosen(cube, "<Z")
    tolerance = edges.scaled(solids.diagonal(cube.val()))
    assert edges.cf_iou(top, bottom, edges.UPSTREAM) == 1.0
    assert edges.cf_iou(top, bottom, tolerance) == 0.0
    assert edges.cf_iou(top, top, tolerance) == 1.0


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import os", "forbidden"), ("from subprocess import run", "forbidden"),
        ("__import__('socket')", "forbidden"), ("result = (", "syntax"), ("result = unknown", "syntax"),
        ("result = cq.Workplane().bax(1)", "syntax"), ("result = 1 / 0", "syntax"), ("pass", "no_result"),
        ("raise SystemExit", "no_result"), ("result = None", "geometry"),
        ("result = cq.Workplane().rect(2, 2)", "geometry"),
        ("result = cq.Face.makePlane(2, 2)", "geometry"),
        ("result = result_0.edges('|Z').fillet(30)", "geometry"),
        ("result = cq.Workplane().polyline([(0, 0), (2, 2), (2, 0), (0, 2)]).close().extrude(1)", "geometry"),
    ],
)  # fmt: skip
def test_how_a_program_fails_is_told_apart(code, kind):
    assert program.build(code, BOX)["fault"][0] == kind


def test_several_objects_are_one_and_overlaps_count_once():
    code = "result = cq.Workplane().pushPoints([(0, 0), (100, 0)]).box(10, 10, 10)"
    apart = program.build(code, BOX)
    assert measure._solid(apart["solids"]["result"]).Volume() == pytest.approx(2000)
    code = "a = cq.Workplane().box(10, 10, 10)\nresult = a.add(a.translate((5, 0, 0)))"
    overlapping = program.build(code, BOX)
    assert measure._solid(overlapping["solids"]["result"]).Volume() == pytest.approx(1500)


@pytest.mark.parametrize(
    "code",
    [
        GOLD,
        "result = cq.Workplane(result_0.val().fillet(2, result_0.edges('|Z').vals()))",
        "from cadquery.func import fillet\nresult = fillet(result_0.val(), result_0.edges('|Z').val(), 2)",
    ],
)
def test_every_way_to_fillet_is_seen(code):
    found = program.build(code, BOX)
    if found["fault"] is None:
        (call,) = found["calls"]
        assert (call["op"], call["sizes"]) == ("fillet", [2.0])
        assert len(call["edges"]) in (1, 4)
    # Nothing of it stays behind for the next program.
    assert program.build("result = result_0.edges('|Z').fillet(1)", BOX)["calls"][0]["sizes"] == [
        1.0
    ]


def test_a_wrong_radius_shows_in_the_parameters_alone():
    def named(found):
        return {"full": found["solids"]["result"], "before": found["solids"]["before"]}

    true, wider = program.build(GOLD, BOX), program.build(GOLD.replace("2)", "3)"), BOX)
    found = measure.measure(named(wider), named(true), (wider["calls"], true["calls"]), n=512)
    assert (found["cf_iou"], found["parameter_error"]) == (1.0, 0.5)
    assert found["region_iou"] == pytest.approx(4 / 9)
    same = measure.measure(named(true), named(true), (true["calls"], true["calls"]), n=512)
    assert (same["region_iou"], same["iou_world"], same["parameter_error"]) == (1.0, 1.0, 0.0)


def test_a_chamfer_of_two_distances_may_stand_either_way():
    before = "import cadquery as cq\nresult_0 = cq.Workplane().box(60, 40, 20)\n"
    code = "result = result_0.edges('>X and >Z').chamfer(2, 6)"
    true, other = program.build(code, before), program.build(code, before, swapped=True)
    assert other["calls"][0]["sizes"] == [6.0, 2.0]
    parts = [measure._solid(found["solids"]["result"]) for found in (true, other)]
    region = solids.region_iou(measure._solid(true["solids"]["before"]), *parts).iou
    # Two right triangles of 2 by 6 and 6 by 2 in one corner share a kite of 3, of 6 each.
    assert region == pytest.approx(1 / 3, abs=1e-6)
    named = {"full": other["solids"]["result"]}
    truth = {"full": true["solids"]["result"], "before": true["solids"]["before"]}
    found = measure.measure(
        named, truth, (other["calls"], true["calls"]), other["solids"]["result"], n=256
    )
    assert (found["region_iou"], found["orientation"]) == (pytest.approx(1.0), "swapped")
