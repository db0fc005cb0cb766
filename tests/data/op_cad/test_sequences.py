"""Own sequences of Op-CAD: counts, closed forms in the kernel, the same again from the seed."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from random import Random

import pytest

from harness.core.resources import data

cq = pytest.importorskip("cadquery", reason="needs the extra cad and libGL")

FOLDER = data("op_cad")


def kind_of(record):
    ((key, body),) = record.items()
    return key.rpartition(" ")[0], body


def test_the_files_are_those_of_the_manifest(maker):
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    for name, said in manifest["files"].items():
        content = (FOLDER / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == said["sha256"]
        assert content.count(b"\n") == said["rows"]
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000
    assert len(set(manifest["breps"].values())) == manifest["sequences"] == 84


def test_families_lengths_and_ids(sequences):
    assert Counter(row["family"] for row in sequences) == dict.fromkeys(
        {row["family"] for row in sequences}, 7
    )
    assert Counter(len(row["steps"]) for row in sequences) == dict.fromkeys(range(2, 9), 12)
    assert [row["group_id"] for row in sequences] == [f"{90001 + k}_index_1" for k in range(84)]
    for row in sequences:
        keys = [key for step in row["steps"] for record in step["records"] for key in record]
        assert [int(key.rpartition(" ")[2]) for key in keys] == list(range(len(keys)))
        for k, step in enumerate(row["steps"]):
            assert step["group_index"] == f"{row['group_id']}/step{k}"


def test_least_counts(sequences):
    found: Counter[str] = Counter()
    pairs = 0
    for row in sequences:
        pairs += any(len(step["records"]) > 1 for step in row["steps"])
        for step in row["steps"]:
            for kind, body in map(kind_of, step["records"]):
                cut = body.get("operation") == 2
                found[f"{kind} cut" if cut else kind] += 1
                found["two distances"] += body.get("chamfer_type", 0)
    assert found["Sketch-Extrude pair"] >= 40
    assert found["Sketch-Extrude pair cut"] >= 60
    assert found["Sketch-Revolve pair"] + found["Sketch-Revolve pair cut"] >= 20
    assert found["Chamfer"] >= 30
    assert found["Fillet"] >= 30
    assert 0 < found["two distances"] <= 0.1 * found["Chamfer"]
    assert pairs >= 8


def test_every_kind_of_step_and_extrusion_is_there(sequences):
    kinds = {kind for row in sequences for step in row["steps"] for kind in step["kinds"]}
    assert {
        "boss", "rib", "hole", "blind_hole", "pocket", "hole_pattern", "two_sided_cut", "key_flat",
        "groove", "fillet_straight_convex", "fillet_straight_concave", "fillet_hole_rim",
        "fillet_boss_rim", "fillet_boss_base", "chamfer_straight_convex", "chamfer_hole_rim",
        "chamfer_boss_rim",
    } <= kinds  # fmt: skip
    bodies = [kind_of(r)[1] for row in sequences for s in row["steps"] for r in s["records"]]
    assert {body["type"] for body in bodies if "type" in body} == {0, 1, 2}
    assert any(len(body.get("Profile", {})) > 1 for body in bodies)
    assert any(len(body.get("edge", [])) > 1 for body in bodies)


def test_too_few_of_a_kind_are_told(maker, sequences):
    assert maker.rows.lacking(maker.rows.counts(sequences)) == []
    without = [
        row for row in sequences if not any("Fillet" in str(s["records"]) for s in row["steps"])
    ]
    assert any(
        told.startswith("fillet: 0 of 30")
        for told in maker.rows.lacking(maker.rows.counts(without))
    )


def test_output_form(sequences):
    for row in sequences:
        for k, step in enumerate(row["steps"]):
            code = step["code"]
            if step["op"] == "chamfer_fillet":
                assert re.search(r"^edges_0 = .*NearestToPointSelector", code, re.MULTILINE)
                assert re.search(r"^shape_0 = edges_0\.(fillet|chamfer)\(", code, re.MULTILINE)
                assert ("reduce(" in code) == (code.count("edges_1 =") > 0)
                continue
            shape, _, boolean = code.partition("#bool\n")
            assert shape.startswith("#shape\n" if k else "import cadquery as cq\n\n#shape\n")
            assert re.search(r"^shape = ", shape, re.MULTILINE)
            wanted = (
                rf"result = result_{k - 1}\.(union|cut)\(shape\)\n" if k else r"result = shape\n"
            )
            assert re.fullmatch(wanted, boolean)


def test_steps_in_the_kernel_are_closed_forms(sample):
    """Twelve sequences, run by themselves: the script's solids, and those of the output form."""
    for row in sample:
        scope: dict[str, object] = {}
        before = 0.0
        for k, step in enumerate(row["steps"]):
            asked = dict(scope)
            exec(step["script_part"], scope)
            exec(step["code"], asked)
            shape, other = scope[f"result_{k}"].val(), asked["result"].val()
            assert shape.isValid()
            assert len(shape.Solids()) == 1
            volume = shape.Volume()
            assert volume == pytest.approx(before + step["volume_change"], rel=1e-9)
            assert volume == pytest.approx(step["volume"], rel=1e-9)
            assert other.Volume() == pytest.approx(volume, rel=1e-9)
            assert abs(volume - before) >= 1e-4 * volume
            before = volume
        whole: dict[str, object] = {}
        exec(row["script"], whole)
        last = whole[f"result_{len(row['steps']) - 1}"].val()
        assert last.Volume() == pytest.approx(before, rel=1e-12)
        box = last.BoundingBox()
        assert all(10 <= side <= 200 for side in (box.xlen, box.ylen, box.zlen))


def test_a_few_are_drawn_again_from_the_seed(maker, sequences):
    seed = json.loads((FOLDER / "manifest.json").read_text())["seed"]
    for number in (0, 8, 9, 13):
        row = sequences[number]
        made = maker.draw.draw(seed, row["family"], len(row["steps"]))
        assert json.loads(json.dumps(maker.rows.row(made, number))) == row


def test_a_plan_gives_the_script_again(maker, sequences):
    for row in sequences:
        assert maker.draw.script_of(row["plan"]) == row["script"]


def test_concentric_rims_have_no_margin(maker):
    washer = cq.Workplane().circle(20).circle(8).extrude(5).val()
    assert maker.kernel.margin(washer, (0, 0, 5)) == pytest.approx(0)
    assert maker.kernel.margin(washer, (1, 2, 3)) < 0
    disk = cq.Workplane().circle(20).extrude(5).val()
    assert maker.kernel.margin(disk, (0, 0, 5)) > 4


@pytest.fixture
def plate(maker):
    made = maker.draw.Drawn(maker.draw.new_plan(Random(1), "plate"))
    part = maker.draw.body_of(made.plan)
    draft = maker.draft.Draft(("plate",), [part.record], part.volume)
    scope = maker.draw._added(made, draft, 0, {})
    return made, part, scope


def test_a_wrong_closed_form_is_refused(maker, plate):
    made, part, scope = plate
    draft = hole(maker, part, 4.0)
    with pytest.raises(maker.draw.GateError, match="instead of"):
        maker.draw._added(made, draft._replace(change=draft.change * (1 + 1e-4)), 0, scope)
    maker.draw._added(made, draft, 0, scope)


def test_a_step_that_does_next_to_nothing_is_refused(maker, plate):
    made, part, scope = plate
    with pytest.raises(maker.draw.GateError, match="too little"):
        maker.draw._added(made, hole(maker, part, 0.1), 0, scope)


def test_a_fillet_that_the_kernel_cannot_make_is_refused(maker, plate):
    made, part, scope = plate
    edge = part.edges["corner 1"]
    record = maker.records.fillet([part.frame.point(*edge.centre)], 500.0)
    draft = maker.draft.Draft(("fillet_straight_convex",), [record], -1.0)
    with pytest.raises(maker.draw.GateError, match="step 1"):
        maker.draw._added(made, draft, 0, scope)


def test_a_tie_is_refused(maker, plate):
    made, part, scope = plate
    plane = part.frame.level(part.high)
    r = maker.records
    for radius, depth in ((12.0, 3.0), (6.0, part.high + 2)):
        record = r.extrude(plane, [r.circle(0, 0, radius)], r.CUT, (-depth, 0.0))
        deep = min(depth, part.high) - (3.0 if radius < 12 else 0.0)
        change = -maker.closed.circle_area(radius) * deep
        scope = maker.draw._added(made, maker.draft.Draft(("hole",), [record], change), 0, scope)
    # The ledge of the wide hole and the rim of the narrow one lie around the same centre.
    record = r.chamfer([part.frame.point(0, 0, part.high - 3)], 1.0)
    change = -maker.closed.rim_chamfer(6.0, 1.0, outwards=True)
    draft = maker.draft.Draft(("chamfer_hole_rim",), [record], change)
    with pytest.raises(maker.draw.GateError, match=r"not told apart|instead of"):
        maker.draw._added(made, draft, 0, scope)


def hole(maker, part, radius):
    r = maker.records
    record = r.extrude(
        part.frame.level(part.high), [r.circle(5, 5, radius)], r.CUT, (-part.high - 2, 0.0)
    )
    return maker.draft.Draft(("hole",), [record], -maker.closed.circle_area(radius) * part.high)
