"""The task `procad`: what is shown, gold in both arms, and those who never or always ask."""

from __future__ import annotations

import json

import pytest

from harness.cli.main import main
from harness.core.errors import UsageError
from harness.core.resources import data
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output

pytest.importorskip("cadquery")
pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")

from scorers.op_cad import missing_engine
from scorers.op_cad.procad import procad

IDS = "90001_index_1/clean,90001_index_1/unclear1,90001_index_1/unclear2"


def task(root=None, **args):
    return make_task("procad", TaskRequest(args=args, data_root=root))


def figures(tmp_path, capsys, *words):
    """Run three prompts on one part; give the metrics' values."""
    if why := missing_engine():
        pytest.skip(why)
    assert (
        main(
            [
                "run",
                "--task",
                "procad",
                "--ids",
                IDS,
                "--store",
                str(tmp_path / "s"),
                "--json",
                *words,
            ]
        )
        == 0
    )
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    return {name: found["value"] for name, found in row["metrics"].items()}


def test_there_are_enough_of_each_kind_and_what_was_meant_is_not_shown():
    assert len(task(prompts="clean").samples) >= 60
    kinds = [sample.category.split("_")[0] for sample in task(prompts="unclear").samples]
    assert kinds.count("underspec") >= 120
    assert kinds.count("conflict") >= 120
    for sample in task(prompts="unclear").samples:
        assert sample.metadata["original"] != sample.input
        assert sample.target[0] not in sample.input


def test_gold_asks_what_is_needed_and_builds_the_part(tmp_path, capsys):
    found = figures(tmp_path, capsys, "--model", "mock:gold")
    assert found["correct"] == found["question_f1"] == found["detection"] == 1.0
    assert found["false_alarm:clean"] == 0.0


def test_gold_without_asking_is_the_program(tmp_path, capsys):
    found = figures(tmp_path, capsys, "--model", "mock:gold", "--arg", "arm=direct")
    assert found["correct"] == 1.0
    assert "question_f1" not in found


def script(tmp_path, first):
    """A model whose first turn is given and whose program is that of the clean part."""
    code = next(s for s in task().samples if s.item_id == IDS.split(",", maxsplit=1)[0]).target[0]
    clear = json.dumps({"is_misleading": False, "standardized_prompt": "as it is"})
    path = tmp_path / "script.jsonl"
    turns = [first, clear, code] if "true" in first else [first, code]
    path.write_text(json.dumps({"item_id": "*", "turns": turns}))
    return f"mock:script?file={path}"


def test_who_never_asks_detects_nothing_and_gives_no_false_alarm(tmp_path, capsys):
    silent = json.dumps({"is_misleading": False, "standardized_prompt": "as it is"})
    found = figures(tmp_path, capsys, "--model", script(tmp_path, silent))
    assert (found["detection:unclear"], found["false_alarm:clean"]) == (0.0, 0.0)
    assert found["question_f1"] == pytest.approx(1 / 3)  # 1 where nothing is open, 0 elsewhere
    assert found["correct"] == 1.0


def test_who_always_asks_gives_a_false_alarm_on_every_clean_prompt(tmp_path, capsys):
    always = json.dumps({"is_misleading": True, "questions": ["What colour is it?"]})
    found = figures(tmp_path, capsys, "--model", script(tmp_path, always))
    assert (found["detection:unclear"], found["false_alarm:clean"]) == (1.0, 1.0)
    assert found["question_f1"] == 0.0


def test_a_wrong_value_builds_another_part():
    if why := missing_engine():
        pytest.skip(why)
    scorer, made = procad(), task()
    try:
        sample = made.samples[0]
        wrong = sample.target[0].replace("extrude(23)", "extrude(24)")
        assert wrong != sample.target[0]
        score = scorer(sample, Output(text=wrong))
        assert (score.value, score.metrics["valid"]) == (0.0, 1.0)
        assert scorer(sample, Output(text="r = (")).reason == "syntax"
        assert scorer(sample, Output(text="")).reason == "no_answer"
    finally:
        scorer.close()


def test_every_open_size_is_large_enough_to_tell_parts_apart():
    # An item built from its wrong values differs by at least its smallest slot; the limit lies far below.
    rows = [json.loads(line) for line in (data("op_cad") / "procad.jsonl").read_text().splitlines()]
    limits = {sample.item_id: sample.metadata["limit"] for sample in task().samples}
    for row in rows:
        for slot in row["slots"]:
            assert limits[row["uid"]] <= slot["symdiff"] / 20 * (1 + 1e-9)


def test_a_small_open_size_built_wrong_is_wrong():
    if why := missing_engine():
        pytest.skip(why)
    made = task()
    rows = [json.loads(line) for line in (data("op_cad") / "procad.jsonl").read_text().splitlines()]
    row = min((r for r in rows if r["k"] == 1), key=lambda r: r["slots"][0]["symdiff"])
    slot = row["slots"][0]
    code = row["ground_truth_code"]
    right, wrong = (f"{slot[name]:g}" for name in ("value", "other_value"))
    assert f"({right})" in code, "its size stands alone in a call"
    sample = next(s for s in made.samples if s.item_id == row["uid"])
    scorer = procad()
    try:
        assert scorer(sample, Output(text=code.replace(f"({right})", f"({wrong})"))).value == 0.0
        # In the arm without questions an object is no program.
        direct = next(s for s in task(arm="direct").samples if s.item_id == row["uid"])
        forged = json.dumps({"questions": row["questions_to_ask"], "code": code})
        assert "question_f1" not in scorer(direct, Output(text=forged)).metrics
        told = json.dumps({"questions": row["questions_to_ask"], "code": code})
        score = scorer(sample, Output(text=told))
        assert (score.value, score.metrics["question_f1"]) == (1.0, 1.0)
        none = scorer(
            sample, Output(text=json.dumps({"questions": row["questions_to_ask"], "code": ""}))
        )
        assert (none.reason, none.metrics["question_f1"]) == ("no_answer", 1.0)
    finally:
        scorer.close()


def test_data_that_cannot_be_read_are_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"procad\.jsonl"):
        task(root=tmp_path)
    (tmp_path / "procad.jsonl").write_text('{"uid": "a"}\n')
    with pytest.raises(UsageError, match=r"procad\.jsonl:1"):
        task(root=tmp_path)
    with pytest.raises(UsageError, match="arm=both"):
        task(arm="both")
