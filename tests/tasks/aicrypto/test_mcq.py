"""aicrypto/mcq whole: baselines score what chance says, and a shuffle that forgets the key is seen."""

from __future__ import annotations

import json

import msgspec
import pytest

import harness
from harness.core import resources
from harness.core.errors import UsageError
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output
from tasks.aicrypto import mcq

OWN = json.loads(resources.data("aicrypto/mcq.json").read_text(encoding="utf-8"))
BY_ID = {row["item_id"]: row for row in OWN}
SEEDS = range(40)


def _task(seed=0, **request):
    return make_task("aicrypto/mcq", TaskRequest(seed=seed, **request))


@pytest.fixture(scope="module")
def hits():
    """How often each index is right, over the seeds, and each item's chance where it has that index."""
    right, chances = [0] * 5, [[] for _ in range(5)]
    for seed in SEEDS:
        task = _task(seed)
        score = build("scorers", task.scorer)
        for sample in task.samples:
            if len(sample.correct) == 1:
                for index in range(len(sample.choices)):
                    text = f"### Answer\n{index}"
                    right[index] += score(sample, Output(text=text)).value == 1
                    chances[index].append(1 / len(sample.choices))
    return right, chances


@pytest.mark.parametrize("index", range(5))
def test_a_constant_index_scores_chance_after_shuffling(hits, index):
    """Chance is the sum of 1/n over the items with n > index options, its error that of independent
    draws: "None of the above" stays last, and is right in 5 of the 25 items of 5 that offer it."""
    right, chances = hits[0][index], hits[1][index]
    error = sum(p * (1 - p) for p in chances) ** 0.5
    assert abs(right - sum(chances)) < 3 * error


@pytest.mark.parametrize("index", range(5))
def test_mock_constant_scores_chance_through_the_whole_path(tmp_path, index):
    single = [row for row in OWN if len(row["answer"]) == 1]
    chances = [1 / len(row["choice"]) for row in single if len(row["choice"]) > index]
    error = sum(p * (1 - p) for p in chances) ** 0.5
    model = f"mock:constant?text={index}"
    run = harness.run(task="aicrypto/mcq", model=model, seed=11, store=tmp_path).summary()
    assert list(run.metrics) == ["accuracy"]
    assert run.n_counted == 50
    assert abs(run.metrics["accuracy"].value * 50 - sum(chances)) < 3 * error


@pytest.mark.parametrize("solver", ["generate", "choose"])
def test_gold_scores_one_through_the_whole_path(tmp_path, solver):
    run = harness.run(
        task="aicrypto/mcq", model="mock:gold", solver=solver, seed=2, store=tmp_path
    ).summary()
    assert run.metrics["accuracy"].value == 1.0


def _out_of_step(sample):
    """What a shuffle must keep: each place shows the option of its row, and the key moves along."""
    row, order = BY_ID[sample.item_id], sample.metadata["order"]
    return [
        fault
        for fault, found in (
            ("options", list(sample.choices) != [row["choice"][i] for i in order]),
            ("key", {sample.choices[j] for j in sample.correct} != _right(row)),
            ("target", set(sample.target) != _right(row)),
        )
        if found
    ]


def _right(row):
    return {row["choice"][i] for i in row["answer"]}


@pytest.mark.parametrize("seed", range(5))
def test_options_key_and_target_stay_in_step(seed):
    assert [_out_of_step(sample) for sample in _task(seed).samples] == [[]] * 50


def test_planted_a_shuffle_that_leaves_the_key_behind_is_seen():
    """The key of the file at the places of a shuffled item: wrong wherever the option moved."""
    seen = moved = 0
    for sample in _task(3).samples:
        row = BY_ID[sample.item_id]
        planted = msgspec.structs.replace(sample, correct=tuple(row["answer"]))
        moved += set(sample.correct) != set(row["answer"])
        seen += _out_of_step(planted) == ["key"]
    assert seen == moved > 25


def test_planted_a_key_that_is_wrong_loses_its_item_only(tmp_path):
    rows = [dict(row) for row in OWN]
    rows[4]["answer"] = [(rows[4]["answer"][0] + 1) % len(rows[4]["choice"])]
    (tmp_path / "aicrypto_mcqs.json").write_text(json.dumps(rows))
    wrong = _task(data_root=tmp_path, args={"shuffle": "off"})
    score = build("scorers", wrong.scorer)
    sound = {s.item_id: mcq.gold(s) for s in _task(args={"shuffle": "off"}).samples}
    lost = [s.item_id for s in wrong.samples if score(s, Output(text=sound[s.item_id])).value != 1]
    assert lost == [rows[4]["item_id"]]


def test_planted_an_index_out_of_range_names_file_and_item(tmp_path):
    rows = [dict(row) for row in OWN]
    rows[7]["answer"] = [len(rows[7]["choice"])]
    path = tmp_path / "data/mcqs/aicrypto_mcqs.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(rows))
    with pytest.raises(UsageError) as caught:
        _task(data_root=tmp_path)
    assert str(caught.value).startswith(f"{path}: row 8 (item own-mcq-C08): field 'answer': index ")


def test_what_an_item_says_of_its_difficulty():
    """Its label, how many options it has and how many are right; no two items share a source."""
    for sample in _task().samples:
        row = BY_ID[sample.item_id]
        assert sample.category == row["label"]
        assert (len(sample.choices), len(sample.correct)) == (
            len(row["choice"]),
            len(row["answer"]),
        )
        assert sample.cluster_id is None
        assert set(sample.metadata) == {"order", "arity_hint"}
