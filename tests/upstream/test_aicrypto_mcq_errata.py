"""The errata of aicrypto/mcq on a sample of upstream's items; skipped where it is not at hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import harness
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output
from tasks.errata import read_errata

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "aicrypto"
FILE = DATA / "data" / "mcqs" / "aicrypto_mcqs.json"
ERRATA = Path(__file__).resolve().parents[2] / "data" / "aicrypto" / "errata.toml"
WRONG = {"mcq-023": "89", "mcq-071": "0", "mcq-109": "None of the above"}


@pytest.fixture(scope="module")
def rows():
    if not FILE.is_file():
        pytest.skip("needs ../shared/upstream/aicrypto")
    return json.loads(FILE.read_text())


def _task(folder=DATA, **request):
    return make_task("aicrypto/mcq", TaskRequest(data_root=folder, **request))


def _states(task):
    return [(row["item"], row["action"], row["state"]) for row in task.info["errata"]["rows"]]


def test_the_hashes_of_the_file_are_those_of_the_records(rows):
    """Made from the file's bytes by json and hashlib alone, so that they stay what they are."""
    made = {
        f"mcq-{row['id']:03d}": hashlib.sha256(
            json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        ).hexdigest()
        for row in rows
    }
    assert {row.item: row.sha256 for row in read_errata(ERRATA)} == {
        item: made[item] for item in WRONG
    }


def test_three_keys_are_found_wrong_by_computing_and_one_label_is_flagged(rows):
    task = _task()
    assert _states(task) == [
        ("mcq-023", "fix", "applied"), ("mcq-071", "fix", "applied"),
        ("mcq-109", "fix", "applied"), ("mcq-109", "flag", "flagged"),
    ]  # fmt: skip
    by_id = {sample.item_id: sample for sample in task.samples}
    for row in task.info["errata"]["rows"][:3]:
        (right,) = row["computed"]
        assert by_id[row["item"]].choices[right] == WRONG[row["item"]]
        assert by_id[row["item"]].correct != (right,)
    assert set(task.info["known_faults"]) == set(WRONG)
    assert "math" in task.info["known_faults"]["mcq-109"]


@pytest.mark.parametrize(
    "args", [{}, {"shuffle": "on"}, {"reader": "upstream"}, {"shuffle": "on", "reader": "upstream"}]
)
@pytest.mark.parametrize("seed", [0, 5])
def test_a_solver_that_is_right_gets_all_by_the_corrected_keys_and_five_of_eight_by_the_raw(
    rows, args, seed
):
    task = _task(seed=seed, args=args)
    score = build("scorers", task.scorer)
    made = []
    for sample in task.samples:
        right = {WRONG[sample.item_id]} if sample.item_id in WRONG else set(sample.target)
        places = [str(j) for j, text in enumerate(sample.choices) if text in right]
        made.append(score(sample, Output(text="### Answer\n" + ", ".join(places))))
    assert sum(one.value for one in made) == 5
    assert [one.metrics["accuracy_corrected"] for one in made] == [1.0] * 8


def test_both_scores_stand_in_the_summary_of_a_run(rows, tmp_path):
    """mock:gold answers by the raw keys: right in all of them, and in five of eight in truth."""
    run = harness.run(
        task="aicrypto/mcq", model="mock:gold", data_root=DATA, store=tmp_path
    ).summary()
    values = {name: metric.value for name, metric in run.metrics.items()}
    assert values == {"accuracy": 1.0, "accuracy_corrected": 5 / 8}
    assert run.metrics["accuracy_corrected"].method == "wilson"


def test_planted_a_record_that_changed_is_left_alone(rows, tmp_path):
    """The authors mend a key or reword a question: then the row is about another record."""
    changed = [dict(row) for row in rows]
    for row in changed:
        if row["id"] == 23:
            row["answer"] = [2]
        if row["id"] == 71:
            row["question"] += " "
    (tmp_path / "aicrypto_mcqs.json").write_text(json.dumps(changed))
    task = _task(tmp_path)
    assert _states(task)[:3] == [
        ("mcq-023", "fix", "does_not_fit"), ("mcq-071", "fix", "does_not_fit"),
        ("mcq-109", "fix", "applied"),
    ]  # fmt: skip
    assert task.scorer == "choice?profile=strict&corrected=mcq-109:4"
    assert "not applied" in task.info["known_faults"]["mcq-023"]


def test_nothing_of_a_record_is_passed_on(rows):
    """No run of five words of a question, and no option of more than one word, is in our files."""
    root = Path(__file__).resolve().parents[2]
    ours = [ERRATA, *(root / "data/make/aicrypto").glob("errata_*.py")]
    text = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in ours).lower()
    for row in rows:
        words = row["question"].lower().split()
        assert not [
            w for w in zip(*(words[i:] for i in range(5)), strict=False) if " ".join(w) in text
        ]
        for option in row["choice"]:
            assert option == "None of the above" or " " not in option or option.lower() not in text
