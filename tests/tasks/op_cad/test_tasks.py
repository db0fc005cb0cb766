"""The tasks of Op-CAD: what is asked, gold on own items, upstream's folder."""

from __future__ import annotations

import csv
import json

import pytest

import harness
from harness.core.errors import UsageError
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output, text_of
from harness.runner.prompt import Prompt
from tasks.op_cad.loader import load, place_of, read_results, read_split

pytest.importorskip("cadquery")
pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")

from scorers.op_cad import missing_engine
from scorers.op_cad.scorer import op_cad


def task(protocol="step", root=None, **args):
    return make_task(f"op_cad/{protocol}", TaskRequest(args=args, data_root=root))


def asked(made, number):
    return text_of(Prompt(made).turns(made.samples[number])[-1])


@pytest.fixture(scope="module")
def scorer():
    if why := missing_engine():
        pytest.skip(why)
    made = op_cad(pictures="no")
    yield made
    made.close()


def test_steps_are_asked_with_the_code_so_far_and_never_with_their_own():
    made = task()
    assert len(made.samples) == 420
    for number, sample in enumerate(made.samples):
        text, about = asked(made, number), sample.metadata
        assert about["before"].rstrip() in text
        assert ("This is the first step" in text) == (not about["before"])
        assert ("Do not select faces" in text) == (about["op"] != "chamfer_fillet")
        assert ("NearestToPointSelector" in text.split("Form:")[1]) == (
            about["op"] == "chamfer_fillet"
        )
        marks = ("moveTo", "NearestToPointSelector")
        wanted = [line for line in about["truth"].splitlines() if any(m in line for m in marks)]
        assert wanted
        assert not any(line in text for line in wanted)
        assert sample.cluster_id == place_of(sample.item_id)[0]


def test_chain_of_operation_adds_the_instructions_and_nothing_else():
    plain, chained = task(), task(mode="cop")
    for number in range(0, 420, 7):
        text = asked(chained, number)
        left = [line for line in text.splitlines() if not line.startswith("## step")]
        assert left == asked(plain, number).splitlines()
        assert text.count("## step") == plain.samples[number].metadata["step"]


def test_switches_choose_kinds_and_inputs():
    assert {s.metadata["op"] for s in task(op="revolve").samples} == {"revolve"}
    bare = task(inputs="text")
    assert "The code so far" not in asked(bare, 1)
    for wrong, why in (
        ({"op": "loft"}, "op=loft"), ({"inputs": "code"}, "text and any of"), ({"inputs": "text+sound"}, "text and any"),
        ({"points": "0"}, "must be 1 to 2048"), ({"mode": "long"}, "mode=long"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=why):
            task(**wrong)


def test_gold_of_parts_and_of_their_steps_is_right(scorer):
    # One part of each family whole, and every step of three; the maker's tests hold the closed forms of all.
    parts = task("sequence")
    families = {sample.metadata["family"]: sample for sample in parts.samples}
    assert len(parts.samples) == 84
    assert len(families) == 12
    for sample in families.values():
        score = scorer(sample, Output(text=parts.gold(sample)))
        assert score.value == 1.0, (sample.item_id, score.explanation)
    steps = task()
    groups = [sample.item_id for sample in list(families.values())[:3]]
    for sample in steps.samples:
        if sample.cluster_id not in groups:
            continue
        score = scorer(sample, Output(text=steps.gold(sample)))
        assert score.value == 1.0, (sample.item_id, score.explanation)
        assert score.metrics["region_iou"] >= 1 - 1e-9
        assert score.metrics.get("cf_iou:edges", 1.0) == 1.0


def test_a_guess_runs_and_is_wrong(scorer):
    from random import Random

    for made in (task(), task("sequence")):
        for sample in made.samples[1:4]:
            score = scorer(sample, Output(text=made.guess(sample, Random(0))))
            assert (score.value, score.metrics["valid"]) == (0.0, 1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three own parts in upstream's form, solids as STEP."""
    from data.make.op_cad import upstream
    from harness.core.resources import data

    rows = [
        json.loads(line) for line in (data("op_cad") / "sequences.jsonl").read_text().splitlines()
    ]
    # Parts with fillets, chamfers and a revolved body, and few steps.
    chosen = [r for r in rows if {"chamfer_fillet", "extrude"} <= {s["op"] for s in r["steps"]}][:2]
    chosen.append(next(r for r in rows if r["steps"][0]["op"] == "revolve" and len(r["steps"]) < 5))
    place = tmp_path_factory.mktemp("op_cad")
    upstream.write(chosen, place, step_files=True)
    return place


def test_upstreams_folder_is_read_and_its_solids_are_the_truth(folder, scorer):
    made = task(root=folder)
    split = read_split(folder / "split_result.json")
    assert sorted(sample.item_id for sample in made.samples) == sorted(split["test"])
    own = {sample.item_id: sample for sample in task().samples}
    for sample in made.samples:
        assert asked(made, list(made.samples).index(sample)) == text_of(
            Prompt(task()).turns(own[sample.item_id])[-1]
        )
        score = scorer(sample, Output(text=task().gold(own[sample.item_id])))
        assert score.value == 1.0, (sample.item_id, score.explanation)
        if sample.metadata["op"] == "chamfer_fillet":
            assert score.metrics["cf_iou:edges"] == 1.0


def test_a_broken_folder_is_one_line(folder, tmp_path):
    with pytest.raises(UsageError, match=r"prompt\.csv is not there"):
        task(root=tmp_path)
    rows = [["group_index", "prompt_text", "op"], ["90001_index_1/step0", "draw", "loft"]]
    with (tmp_path / "prompt.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(UsageError, match=r"prompt\.csv:2: op must be one of"):
        task(root=tmp_path)
    rows[1][2] = "extrude"
    with (tmp_path / "prompt.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(UsageError, match=r"group_info\.txt cannot be read"):
        task(root=tmp_path)
    with pytest.raises(UsageError, match="own items only"):
        task("sequence", root=folder)


def test_a_split_may_be_lists_or_dicts_of_lists(tmp_path):
    path = tmp_path / "split_result.json"
    path.write_text('{"train": ["a"], "test": {"easy": ["b"], "hard": ["c", "d"]}}')
    assert read_split(path) == {"train": ["a"], "test": ["b", "c", "d"]}
    path.write_text('{"train": "a"}')
    with pytest.raises(UsageError, match="neither a list of names"):
        read_split(path)


def test_a_fault_of_the_service_is_no_invalid_program(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(
        "group_index,exec_ok_full,gen_error\n1_index_1/step0,0,APITimeoutError\n1_index_1/step1,0,\n1_index_1/step2,1,\n"
    )
    assert [row["class"] for row in read_results(path)] == ["api_fault", "invalid", "valid"]


def test_own_data_are_what_the_manifest_says():
    import hashlib
    from pathlib import Path

    root = Path(harness.__file__).parents[1] / "data/op_cad"
    manifest = json.loads((root / "manifest.json").read_text())
    for name, about in manifest["files"].items():
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == about["sha256"]
    assert load(TaskRequest()).own
