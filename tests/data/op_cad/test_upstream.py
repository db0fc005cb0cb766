"""Own sequences in upstream's folder form."""

from __future__ import annotations

import csv
import json
import math
import re

import pytest

cq = pytest.importorskip("cadquery", reason="needs the extra cad and libGL")


@pytest.fixture(scope="module")
def chosen(sequences):
    """The first with two base operations in a step, and the first with edge work; six steps at most."""
    short = [row for row in sequences if len(row["steps"]) <= 6]
    two = next(r for r in short if any(len(s["records"]) > 1 for s in r["steps"]))
    edges = next(
        r
        for r in short
        if r is not two and sum(s["op"] == "chamfer_fillet" for s in r["steps"]) > 1
    )
    return [two, edges]


@pytest.fixture(scope="module")
def folder(maker, chosen, tmp_path_factory):
    made = tmp_path_factory.mktemp("upstream")
    maker.upstream.write(chosen, made, step_files=True)
    return made


def test_tables(folder, chosen):
    steps = [step for row in chosen for step in row["steps"]]
    with (folder / "prompt.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["group_index"] for row in rows] == [step["group_index"] for step in steps]
    assert [row["prompt_text"] for row in rows] == [step["instruction"] for step in steps]
    assert {row["op"] for row in rows} <= {"extrude", "revolve", "chamfer_fillet"}
    split = json.loads((folder / "split_result.json").read_text())
    assert sorted(split["train"] + split["test"]) == sorted(step["group_index"] for step in steps)
    full = [json.loads(line) for line in (folder / "full_sequence.jsonl").read_text().splitlines()]
    assert [one["num_steps"] for one in full] == [len(row["steps"]) for row in chosen]
    assert [one["step"] for one in full[0]["instructions"]] == list(range(full[0]["num_steps"]))
    assert all((folder / one["pre_code_path"]).exists() for one in full)


def test_code_before_a_step(folder, chosen):
    for row in chosen:
        for k, step in enumerate(row["steps"]):
            name = step["group_index"].replace("/", "_") + ".py"
            plain = (folder / "pre_code" / name).read_text()
            commented = (folder / "pre_code_cop" / name).read_text()
            assert (plain == "") == (k == 0)
            assert row["script"].startswith(plain)
            assert commented.count("## step") == k
            assert (folder / "full_pre_code" / name).read_text() == plain


def test_group_info(folder, chosen):
    for row in chosen:
        lines = (
            (folder / "step_files" / row["group_id"] / "group_info.txt").read_text().splitlines()
        )
        for k, (line, step) in enumerate(zip(lines, row["steps"], strict=True)):
            name, _, bases = line.partition(": ")
            assert name == f"step{k}"
            found = re.findall(r"\{(\d+): '([^']+ (\d+))'\}", bases)
            assert [key for _, key, _ in found] == [key for r in step["records"] for key in r]
            assert all(number == again for number, _, again in found)


def test_true_edges_are_those_of_the_records(folder, chosen):
    files = sorted((folder / "gt_edges_json").rglob("*.json"))
    records = [
        (key, body)
        for row in chosen for step in row["steps"] for r in step["records"] for key, body in r.items()
        if "edge" in body
    ]  # fmt: skip
    assert len(files) == len(records) >= 2
    for path in files:
        found = json.loads(path.read_text())
        body = next(
            body
            for key, body in records
            if key == found["op_tag"] and body["edge"] == found["selector_points"]
        )
        assert path.stem == found["op_tag"].replace(" ", "_")
        assert found["num_edges"] == len(found["edges"]) == len(found["calls"]) == len(body["edge"])
        for edge, point in zip(found["edges"], body["edge"], strict=True):
            assert math.dist(edge["center"], point) < 1e-5
            assert edge["geomType"] in ("LINE", "CIRCLE")
            assert edge["length"] > 0
        assert found.get("radius", found.get("d1")) == body.get("radius", body.get("distance_one"))


def test_step_files_hold_the_solids(folder, chosen):
    for row in chosen:
        for step in row["steps"]:
            numbers = "_".join(key.rpartition(" ")[2] for r in step["records"] for key in r)
            group = folder / "step_files" / row["group_id"]
            model = cq.importers.importStep(str(group / numbers / "next_model.step"))
            assert model.val().Volume() == pytest.approx(step["volume"], rel=1e-9)
            alone = group / f"step{numbers}" / "3D.step"
            assert alone.exists() == (step["op"] != "chamfer_fillet")


def test_the_command_line_writes_it_as_well(maker, tmp_path, capsys):
    assert maker.main.main(["--count", "1", "--upstream", str(tmp_path / "u")]) == 0
    assert "1 sequences in upstream's form" in capsys.readouterr().out
    assert (tmp_path / "u" / "prompt.csv").exists()
