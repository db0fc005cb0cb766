"""The macro mean and its bootstrap: against closed forms of its variance, and bit for bit."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from harness.stats.overall import LEVELS, TaskScores, overall

NAN = float("nan")


def make_tasks(seed=0, epochs=3):
    """Two tasks of two models: 20 clusters of 4 items, and 50 items by themselves."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 0.3, (20, 1, 1)).repeat(4, axis=0)
    first = 0.5 + shared + rng.normal(0, 0.3, (80, 2, 1)) + rng.normal(0, 0.5, (80, 2, epochs))
    second = 0.4 + rng.normal(0, 0.3, (50, 2, 1)) + rng.normal(0, 0.5, (50, 2, epochs))
    return {
        "first": TaskScores(scores=first, clusters=[i // 4 for i in range(80)]),
        "second": TaskScores(scores=second),
    }


def drawn_variance(scores, clusters, levels):
    """Variance of a bootstrap mean of one task and model, clusters of equal size, in closed form.

    Each level adds the spread of what is drawn there (divisor its number, not that less one).
    """
    n, k = scores.shape
    items = scores.mean(axis=1)
    groups = [items[np.array(clusters) == c] for c in sorted(set(clusters))]
    found = 0.0
    if "cluster" in levels:
        found += np.var([group.mean() for group in groups]) / len(groups)
    if "item" in levels:
        found += np.mean([np.var(group) for group in groups]) / n
    if "epoch" in levels:
        found += np.var(scores, axis=1).mean() / (n * k)
    return found


@pytest.mark.parametrize(
    "levels", [LEVELS, ("cluster",), ("item",), ("epoch",), ("cluster", "item"), ("item", "epoch")]
)
def test_the_spread_is_the_closed_form(levels):
    tasks = make_tasks()
    found = overall(tasks, ["a", "b"], draws=8000, seed=1, levels=levels)
    clusters = {"first": [i // 4 for i in range(80)], "second": list(range(50))}
    for k in range(2):
        variance = [
            drawn_variance(task.scores[:, k], clusters[name], levels)
            for name, task in tasks.items()
        ]
        se = math.sqrt(sum(variance)) / 2
        # The error of a standard deviation from 8,000 draws is 0.8 %.
        assert found[k].estimate.se == pytest.approx(se, rel=0.032)
        means = [task.scores[:, k].mean() for task in tasks.values()]
        assert found[k].estimate.value == pytest.approx(sum(means) / 2, abs=1e-12)


def test_drawing_tasks_adds_their_spread():
    tasks = make_tasks()
    clusters = {"first": [i // 4 for i in range(80)], "second": list(range(50))}
    found = overall(tasks, ["a", "b"], draws=8000, seed=2, resample_tasks=True)[0].estimate
    below = sum(drawn_variance(t.scores[:, 0], clusters[n], LEVELS) for n, t in tasks.items()) / 4
    between = np.var([task.scores[:, 0].mean() for task in tasks.values()]) / 2
    assert found.se == pytest.approx(math.sqrt(below + between), rel=0.032)
    assert found.se > overall(tasks, ["a", "b"], draws=8000)[0].estimate.se


def test_one_task_of_single_items_agrees_with_scipy():
    scores = np.random.default_rng(3).exponential(1, (60, 1))
    theirs = stats.bootstrap(
        (scores[:, 0],), np.mean, n_resamples=20_000, method="percentile",
        rng=np.random.default_rng(4),
    )  # fmt: skip
    found = overall({"t": TaskScores(scores=scores)}, ["a"], draws=20_000)[0].estimate
    assert found.se == pytest.approx(theirs.standard_error, rel=0.03)
    interval = theirs.confidence_interval
    assert (found.lo, found.hi) == pytest.approx((interval.low, interval.high), abs=0.02)


def test_each_task_is_one_weight():
    tasks = {
        "large": TaskScores(scores=np.tile([[1.0], [0.0]], (100, 1))),
        "small": TaskScores(scores=np.tile([[1.0], [1.0], [0.0], [1.0]], (3, 1))),
    }
    found = overall(tasks, ["a"])[0]
    assert found.estimate.value == (0.5 + 0.75) / 2
    assert (found.estimate.n_items, found.estimate.n_clusters) == (212, 212)
    assert (found.n_tasks, found.of_tasks, found.draws, found.seed) == (2, 2, 1000, 0)


def test_a_model_without_every_task_has_no_number():
    tasks = make_tasks()
    tasks["second"].scores[:, 1] = NAN
    base, found = overall(tasks, ["a", "b"])
    assert base.estimate.value is not None
    assert (found.estimate.value, found.estimate.lo, found.estimate.se) == (None, None, None)
    assert found.estimate.notes == ("incomplete",)
    assert (found.n_tasks, found.of_tasks, found.estimate.n_items) == (1, 2, 80)


def test_missing_items_and_repeats_leave_every_item_one_vote():
    """Item means 1 and 0.5: the mean is 0.75 whichever repeats are missing."""
    table = np.array([[[1, 1, NAN]], [[1, 0, NAN]], [[NAN, NAN, NAN]], [[1, NAN, NAN]]])
    found = overall({"t": TaskScores(scores=table)}, ["a"])[0].estimate
    assert found.value == pytest.approx((1 + 0.5 + 1) / 3)
    assert found.n_items == 3
    assert found.lo <= found.value <= found.hi


def test_a_missing_repeat_is_no_wrong_answer():
    """Repeats that agree have no spread, whichever of them are missing; so nothing is claimed."""
    table = np.array([[[1, 1, NAN]], [[0, NAN, 0]], [[1, 1, 1]], [[1, NAN, NAN]]])
    found = overall({"t": TaskScores(scores=table)}, ["a"], levels=["epoch"])[0].estimate
    assert (found.value, found.se, found.lo, found.hi) == (0.75, None, None, None)


def test_repeats_of_the_same_answers_change_nothing():
    scores = np.random.default_rng(5).random((40, 2))
    once = overall({"t": TaskScores(scores=scores)}, ["a", "b"], levels=["cluster", "item"])
    thrice = overall(
        {"t": TaskScores(scores=scores[:, :, None].repeat(3, axis=2))}, ["a", "b"],
        levels=["cluster", "item"],
    )  # fmt: skip
    for one, three in zip(once, thrice, strict=True):
        assert three.estimate.value == pytest.approx(one.estimate.value, abs=1e-12)
        assert three.estimate.se == pytest.approx(one.estimate.se, abs=1e-8)


def test_order_of_tasks_and_models_does_not_matter():
    tasks = make_tasks()
    base = overall(tasks, ["a", "b"])
    turned = {
        name: TaskScores(scores=tasks[name].scores[:, ::-1], clusters=tasks[name].clusters)
        for name in reversed(tasks)
    }
    assert overall(turned, ["b", "a"])[::-1] == base


def test_no_interval_where_none_can_be_given():
    scores = np.random.default_rng(6).random((30, 1))
    one = overall({"t": TaskScores(scores=scores, clusters=["x"] * 30)}, ["a"])[0].estimate
    assert (one.lo, one.se, one.notes) == (None, None, ("one cluster",))
    assert one.value == pytest.approx(scores.mean())
    solved = TaskScores(scores=np.ones((30, 1)))
    only = overall({"t": solved}, ["a"])[0].estimate
    assert (only.value, only.lo, only.notes) == (1.0, None, ("boundary",))
    both = overall({"s": solved, "t": TaskScores(scores=scores)}, ["a"])[0].estimate
    assert both.lo < both.value < both.hi
    assert both.notes == ("boundary",)
    few = TaskScores(scores=scores, clusters=[i // 10 for i in range(30)])
    assert overall({"t": few}, ["a"])[0].estimate.notes == ("few clusters",)


def test_seeds_repeat():
    tasks = make_tasks()
    assert overall(tasks, ["a", "b"], seed=7) == overall(tasks, ["a", "b"], seed=7)
    assert overall(tasks, ["a", "b"], seed=7) != overall(tasks, ["a", "b"], seed=8)


CODE = """
import numpy as np
from harness.stats.overall import TaskScores, overall
rng = np.random.default_rng(9)
tasks = {
    "t": TaskScores(scores=rng.random((300, 5, 3)), clusters=[i // 7 for i in range(300)]),
    "u": TaskScores(scores=1e4 * rng.random((700, 5))),
}
for row in overall(tasks, list("abcde"), seed=3, resample_tasks=True):
    print(row.estimate.se.hex(), row.estimate.lo.hex(), row.estimate.hi.hex())
"""


def test_bit_for_bit_in_any_process():
    outputs = set()
    for threads in ("1", "1", "2"):
        env = os.environ | dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), threads)
        run = subprocess.run(
            [sys.executable, "-P", "-c", CODE], env=env, capture_output=True, text=True, check=True
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 0}, "draws = 0"),
        ({"tasks": {}}, "no tasks"),
        ({"levels": []}, "levels"),
        ({"levels": ["task"]}, "levels"),
        ({"levels": "item"}, "levels"),
        ({"level": 95}, "level = 95"),
        ({"models": ["a", "a"]}, "named twice"),
        ({"models": ["a"]}, "task first: items x 1 models"),
        ({"tasks": {"t": TaskScores(scores=np.full((3, 2), np.inf))}}, "not finite"),
        ({"tasks": {"t": TaskScores(scores=np.ones((3, 2)), clusters=["x"])}}, "1 clusters"),
    ],
)
def test_broken_questions_are_refused(change, message):
    call = {"tasks": make_tasks(), "models": ["a", "b"]} | change
    with pytest.raises(ValueError, match=message):
        overall(call.pop("tasks"), call.pop("models"), **call)
