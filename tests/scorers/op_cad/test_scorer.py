"""The scorer `op_cad`: gold is right, each wrong candidate has its class, and analytic figures come out."""

from __future__ import annotations

import math

import pytest

from harness.core.types import Output, Sample

pytest.importorskip("cadquery")
pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")

from scorers.op_cad import missing_engine
from scorers.op_cad.scorer import OpCadScorer, is_right, metrics_of, op_cad

HEAD = "import cadquery as cq\n"
BOX = f"{HEAD}result_0 = cq.Workplane('XY').box(40, 30, 10)\n"
VERTICAL = "result_0.edges('|Z')"


@pytest.fixture(scope="module")
def scorer():
    if why := missing_engine():
        pytest.skip(why)
    made = op_cad(pictures="no")
    yield made
    made.close()


def item(truth, before=BOX, op="chamfer_fillet", protocol="step", name="x", **more):
    return Sample(
        item_id=name, input="",
        metadata={"protocol": protocol, "op": op, "before": before, "truth": truth, **more},
    )  # fmt: skip


def says(scorer, sample, code):
    return scorer(sample, Output(text=f"```python\n{code}\n```"))


FILLET = item(f"result = {VERTICAL}.fillet(2)", name="fillet")


@pytest.mark.parametrize(
    ("code", "region", "iou"),
    [
        # With a = (1 - pi/4) r^2: one of four edges 1/4; nothing 0; r = 3 4/9; a chamfer of 2: 2 - pi/2.
        (f"result = {VERTICAL}.fillet(2)", 1.0, 1.0),
        (f"result = {VERTICAL}.fillet(3)", 4 / 9, 0.996413),
        (f"result = {VERTICAL}.chamfer(2)", 2 - math.pi / 2, 0.996184),
        (
            "result = result_0.edges(cq.NearestToPointSelector((20, 15, 0))).fillet(2)",
            0.25,
            0.997852,
        ),
        ("result = result_0", 0.0, 0.997139),
    ],
)
def test_the_table_of_the_fillet(scorer, code, region, iou):
    score = says(scorer, FILLET, code)
    assert score.status == "scored"
    assert score.metrics["region_iou"] == pytest.approx(region, abs=1e-6)
    assert score.metrics["iou_world"] == pytest.approx(iou, abs=1e-6)
    assert score.value == float(region == 1.0)
    assert score.facts["class"] == ("valid" if region == 1.0 else "valid_wrong")
    assert score.facts["engines"]["full"] in ("occ", "manifold")
    assert 0 < score.facts["figures"]["noise_floor"] < 2e-3


def test_chosen_edges_and_sizes_are_seen(scorer):
    right = says(scorer, FILLET, f"result = {VERTICAL}.fillet(2)").metrics
    assert right["cf_iou:edges"] == 1.0
    wide = says(scorer, FILLET, f"result = {VERTICAL}.fillet(3)")
    assert wide.metrics["cf_iou:edges"] == 1.0
    assert wide.facts["figures"]["parameter_error"] == pytest.approx(0.5)
    assert says(scorer, FILLET, f"result = {VERTICAL}.chamfer(2)").metrics["cf_iou:edges"] == 0.0


def test_a_chamfer_of_two_distances_may_stand_either_way(scorer):
    edge = "result_0.edges(cq.NearestToPointSelector((0, 15, 5)))"
    sample = item(f"result = {edge}.chamfer(2, 4)", name="chamfer")
    for code in (f"result = {edge}.chamfer(2, 4)", f"result = {edge}.chamfer(4, 2)"):
        score = says(scorer, sample, code)
        assert score.value == 1.0
    assert score.facts["orientation"] == "swapped"


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        ("result = result_0.edges('|Z').fillet(100)", "geometry", "error"),
        ("result = result_0.faces('>Z').val()", "geometry", "error"),
        ("result = cq.Workplane('XY')", "geometry", "error"),
        (
            "result = cq.Workplane('XY').polyline([(0,0),(4,4),(4,0),(0,4)]).close().extrude(2)",
            "geometry",
            "error",
        ),
        ("result = result_0.edges('|Z').filet(2)", "syntax", "error"),
        ("result = (", "syntax", "error"),
        ("print('done')", "no_result", "error"),
        ("import os\nresult = result_0", "forbidden", "error"),
        ("import ctypes\nctypes.string_at(0)", "forbidden", "error"),
        (
            "import numpy\nx = numpy.ones((8, 1 << 30))\nx[:] = 1\nresult = result_0",
            "memory",
            "error",
        ),
    ],
)
def test_each_way_to_fail_has_its_class(scorer, code, reason, status):
    score = says(scorer, FILLET, code)
    assert (score.value, score.reason, score.status) == (0.0, reason, status)
    assert score.metrics == {
        "correct": 0.0,
        "valid": 0.0,
        "iou_world": 0.0,
        "closeness": 0.0,
        "region_iou": 0.0,
    }
    assert score.facts["class"] == reason


def test_an_endless_program_is_a_timeout_and_the_next_is_answered(monkeypatch):
    if why := missing_engine():
        pytest.skip(why)
    from scorers.op_cad.engine import CadEngine

    made = OpCadScorer()
    made._engine = CadEngine(wall_s=3.0)
    assert says(made, FILLET, "while True: pass").status == "timeout"
    assert says(made, FILLET, f"result = {VERTICAL}.fillet(2)").value == 1.0
    made.close()


def test_what_is_wrong_is_drawn():
    if why := missing_engine():
        pytest.skip(why)
    made = op_cad()
    try:
        assert [p.name for p in says(made, FILLET, "result = result_0").pictures][-1] == "3-D"
        assert says(made, FILLET, f"result = {VERTICAL}.fillet(2)").pictures == ()
    finally:
        made.close()
    with pytest.raises(ValueError, match="pictures=maybe"):
        op_cad(pictures="maybe")


def test_an_answer_without_a_program_is_none(scorer):
    assert scorer(FILLET, Output(text="  ")).reason == "no_answer"


def test_a_first_step_is_compared_as_a_whole(scorer):
    truth = f"{HEAD}shape = cq.Workplane('XY').box(40, 30, 10)\nresult = shape"
    sample = item(truth, before="", op="extrude", name="first")
    assert says(scorer, sample, truth).value == 1.0
    moved = truth.replace("result = shape", "result = shape.translate((0.1, 0, 0))")
    score = says(scorer, sample, moved)
    assert score.value == 0.0
    assert score.metrics["iou_world"] == pytest.approx(39.9 / 40.1, abs=1e-6)
    # The same part three times as large: the Chamfer distance is blind to it, the size ratio is not.
    large = f"{HEAD}shape = cq.Workplane('XY').box(120, 90, 30)\nresult = shape"
    score = says(scorer, sample, large)
    assert score.metrics["size_ratio:valid"] == pytest.approx(3.0, rel=1e-9)
    assert score.metrics["closeness"] > 1 - 2e-3
    assert score.metrics["iou_world"] == pytest.approx(1 / 27, rel=1e-6)


def test_a_new_part_alone_may_be_turned_but_not_the_whole(scorer):
    truth = "shape = cq.Workplane('XY').box(20, 4, 30)\nresult = result_0.union(shape)"
    sample = item(truth, op="extrude", name="turned")
    turned = truth.replace("box(20, 4, 30)", "box(4, 20, 30)")
    score = says(scorer, sample, turned)
    assert score.value == 0.0
    assert score.metrics["cd_single:valid"] < 3e-3 < score.metrics["cd_full:valid"] + 3e-3
    assert score.metrics["region_iou"] < 0.5


def test_a_whole_part_may_differ_by_a_twentieth_of_its_smallest_step():
    # Volumes of 1000 with an IoU of u differ by 2000 (1 - u)/(1 + u).
    about = {"protocol": "sequence", "least_change": 100.0}
    for apart, right in ((4.9, True), (5.1, False)):
        u = (2000 - apart) / (2000 + apart)
        figures = {"volume": 1000.0, "volume_true": 1000.0, "iou_world": u}
        assert is_right(figures, about) is right


def test_what_is_invalid_counts_in_the_means_of_all_and_in_none_of_the_valid():
    about = {"protocol": "step", "op": "extrude"}
    assert metrics_of(None, about) == {
        "valid": 0.0,
        "iou_world": 0.0,
        "closeness": 0.0,
        "region_iou": 0.0,
    }
    assert not any(":" in name for name in metrics_of(None, about))
