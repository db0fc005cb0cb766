"""aicrypto/mcq on a sample of upstream's items; skipped where it is not at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "aicrypto"
FILE = DATA / "data" / "mcqs" / "aicrypto_mcqs.json"
IDS = (0, 23, 67, 71, 82, 109, 119, 125)


@pytest.fixture(scope="module")
def rows():
    if not FILE.is_file():
        pytest.skip("needs ../shared/upstream/aicrypto")
    return json.loads(FILE.read_text())


def _values(task, text):
    score = build("scorers", task.scorer)
    texts = [text(s) if callable(text) else text for s in task.samples]
    pairs = zip(task.samples, texts, strict=True)
    return [score(sample, Output(text=answer)).value for sample, answer in pairs]


def test_exactly_the_items_of_the_sample_in_their_order(rows):
    task = make_task("aicrypto/mcq", TaskRequest(data_root=DATA))
    assert [s.item_id for s in task.samples] == [f"mcq-{i:03d}" for i in IDS]
    for sample, row in zip(task.samples, rows, strict=True):
        assert list(sample.choices) == row["choice"]
        assert list(sample.correct) == row["answer"]


@pytest.mark.parametrize("args", [{}, {"shuffle": "on"}, {"reader": "upstream"}])
def test_gold_scores_one_and_nothing_scores_zero(rows, args):
    task = make_task("aicrypto/mcq", TaskRequest(data_root=DATA, args=args))
    assert _values(task, task.gold) == [1.0] * len(rows)
    assert _values(task, "") == [0.0] * len(rows)


@pytest.mark.parametrize("reader", ["strict", "upstream"])
@pytest.mark.parametrize("index", range(4))
def test_a_constant_scores_its_share_of_the_raw_keys(rows, index, reader):
    task = make_task("aicrypto/mcq", TaskRequest(data_root=DATA, args={"reader": reader}))
    share = sum(row["answer"] == [index] for row in rows)
    assert sum(_values(task, f"### Answer\n{index}")) == share
