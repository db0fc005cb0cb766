"""acc, acc_norm and their standard errors, number for number, from one set of log-likelihoods.

lm-eval's side is lm-eval itself: its task object judges every item and its functions aggregate.
Ours is what the scorer stores. The log-likelihoods are a pure function of the texts, so that neither
model nor rounding can hide a difference in the rules.
"""

from __future__ import annotations

import hashlib
import json
import math
import random

import pytest

from harness.core.types import Output, Sample
from scorers.choice import choice

N = 3000


def hash_loglikelihood(context, continuation):
    """Give -1 - 20u, u in [0, 1) from sha256 of the arguments."""
    digest = hashlib.sha256(f"{context}\x00{continuation}".encode()).digest()
    return -1 - 20 * int.from_bytes(digest[:8], "big") / 2**64


@pytest.fixture(scope="module")
def rows():
    """Questions with 2 to 6 options of unequal length, characters beyond ASCII among them."""
    rng = random.Random(0)
    words = ["a", "of", "über", "model", "naïve", "π", "token", "数学", "evaluation", "spine"]
    made = []
    for i in range(N):
        n = rng.randrange(2, 7)
        options = [
            " ".join(rng.choice(words) for _ in range(rng.randrange(1, 9))) + f" {j}"
            for j in range(n)
        ]
        made.append({"query": f"Item {i}: which?", "choices": options, "gold": rng.randrange(n)})
    return made


@pytest.fixture(scope="module")
def lm_task(rows, tmp_path_factory):
    """A multiple-choice task of lm-eval over the rows."""
    from lm_eval.api.task import ConfigurableTask

    folder = tmp_path_factory.mktemp("lm_eval")
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = ConfigurableTask(config={
        "task": "parity",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}, "cache_dir": str(folder / "cache")},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{query}}",
        "doc_to_choice": "choices",
        "doc_to_target": "gold",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
        "metadata": {"version": 1},
    })  # fmt: skip
    task.build_all_requests(rank=0, world_size=1)
    return task


def ours(row, logprobs):
    sample = Sample(
        item_id="1", input=row["query"], choices=tuple(row["choices"]), correct=(row["gold"],)
    )
    return choice()(sample, Output(text="", choice_logprobs=tuple(logprobs))).metrics


def test_each_item_and_the_aggregates_agree(rows, lm_task):
    from lm_eval.api.metrics import mean, mean_stderr

    asked = {}
    for instance in lm_task.instances:
        assert instance.request_type == "loglikelihood"
        asked.setdefault(instance.doc_id, {})[instance.idx] = instance
    theirs, stored, by_bytes = [], [], []
    for i, row in enumerate(rows):
        instances = [asked[i][j] for j in range(len(row["choices"]))]
        results = [(hash_loglikelihood(*instance.args), False) for instance in instances]
        theirs.append(lm_task.process_results(instances[0].doc, results))
        logprobs = [hash_loglikelihood(row["query"], f" {c}") for c in row["choices"]]
        stored.append(ours(row, logprobs))
        normed = [p / len(c.encode()) for p, c in zip(logprobs, row["choices"], strict=True)]
        by_bytes.append(float(normed.index(max(normed)) == row["gold"]))
    for name in ("acc", "acc_norm"):
        a, b = [m[name] for m in stored], [float(m[name]) for m in theirs]
        assert a == b
        average = math.fsum(a) / N
        variance = math.fsum((x - average) ** 2 for x in a) / (N - 1)
        assert average == pytest.approx(mean(b), abs=1e-12)
        assert math.sqrt(variance / N) == pytest.approx(mean_stderr(b), abs=1e-12)
    # The items tell the rules apart: by nothing, by characters, by bytes.
    assert [m["acc"] for m in stored] != [m["acc_norm"] for m in stored] != by_bytes


def test_the_first_of_equals_wins_on_both_sides(rows, lm_task):
    docs = {instance.doc_id: instance.doc for instance in lm_task.instances}
    for i, row in enumerate(rows[:300]):
        tied = [-2.0 for _ in row["choices"]]
        tied_a_character = [-1.0 * len(c) for c in row["choices"]]
        for logprobs, name in ((tied, "acc"), (tied_a_character, "acc_norm")):
            theirs = lm_task.process_results(docs[i], [(p, False) for p in logprobs])
            found = ours(row, logprobs)
            assert found == {k: float(theirs[k]) for k in found}
            assert found[name] == float(row["gold"] == 0)
