"""gsm8k on upstream's 1,319 test problems; skipped where they are not at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "gsm8k"


@pytest.fixture(scope="module")
def task():
    if not (DATA / "test.jsonl").is_file():
        pytest.skip("needs ../shared/upstream/gsm8k")
    return make_task("gsm8k", TaskRequest(data_root=DATA))


def _values(task, text_of):
    score = build("scorers", task.scorer)
    return [score(sample, Output(text=text_of(sample))).value for sample in task.samples]


def test_there_are_1319_items_named_by_row(task):
    assert len(task.samples) == 1319
    assert (task.samples[0].item_id, task.samples[-1].item_id) == ("test-0001", "test-1319")


def test_gold_scores_one_and_nothing_scores_zero(task):
    assert set(_values(task, task.gold)) == {1.0}
    assert set(_values(task, lambda _: "")) == {0.0}


def test_a_constant_scores_its_share_of_the_raw_file(task):
    rows = [json.loads(line) for line in (DATA / "test.jsonl").read_text().splitlines()]
    keys = [row["answer"].rsplit("#### ", 1)[1].replace(",", "") for row in rows]
    assert sum(_values(task, lambda _: "The answer is $20.")) == keys.count("20") > 5


def test_gold_in_other_clothes_scores_one_all_the_same(task):
    for frame in ("The answer is ${}.", r"\boxed{{{}}}", "**{}**", "So it is {}dollars", "{}.00"):
        assert set(_values(task, lambda s, f=frame: f.format(f"{int(s.target[0]):,}"))) == {1.0}


def test_without_a_marker_the_last_number_is_nearly_always_the_result(task):
    """The last number of a worked answer without its last line: 97 % by hand of their authors."""
    texts = {s.item_id: task.gold(s).rsplit("####", 1)[0] for s in task.samples}
    assert sum(_values(task, lambda s: texts[s.item_id])) / 1319 > 0.96


def test_a_data_set_of_the_same_rows_gives_the_same_items(task, tmp_path):
    import pyarrow.json
    import pyarrow.parquet

    table = pyarrow.json.read_json(DATA / "test.jsonl")
    pyarrow.parquet.write_table(table, tmp_path / "test-00000-of-00001.parquet")
    read = make_task("gsm8k", TaskRequest(data=f"hub:{tmp_path}"))
    assert list(read.samples) == list(task.samples)
    assert set(_values(read, read.gold)) == {1.0}
