"""Paired comparison: the right items, the right test, no unlike runs without leave."""

from __future__ import annotations

import math

import pytest

from harness.core import registry
from harness.core.errors import UsageError
from harness.core.task import Task
from harness.core.types import Output, Sample, Score
from harness.runner.compare import compare
from harness.store.difference import diff_runs
from harness.store.ingest import sync
from harness.store.publish import snapshot


@pytest.fixture
def duel(house):
    """20 items; a model gets those right whose numbers stand in its answer key."""
    house.samples = [
        Sample(item_id=f"i{k:02d}", input=f"{k} + {1000 * k}", target=(str(1001 * k),))
        for k in range(20)
    ]

    def run(right, model="count:a", **options):
        def answer(request):
            good = int(request.item_id[1:]) in right
            return house.solve(request) if good else Output(text="-1")

        house.answer = answer
        return house.run(model, **options)

    house.duel = run
    return house


# A alone solves ten items and B alone four, as in the golden vector of the exact McNemar test.
A_RIGHT = {*range(10), 14, 15}
B_RIGHT = {*range(10, 14), 14, 15}


def test_the_golden_vector_of_mcnemar(duel):
    a, b = duel.duel(A_RIGHT), duel.duel(B_RIGHT, "count:b")
    found = compare(duel.store, a.run_id, b.run_id)
    assert (found.n, found.test) == (20, "mcnemar")
    assert found.diff == pytest.approx(6 / 20, abs=1e-12)
    assert found.p == pytest.approx(0.179565, abs=1e-6)
    assert found.flips.gained == [f"i{k:02d}" for k in range(10)]
    assert found.flips.lost == ["i10", "i11", "i12", "i13"]
    # The plain t interval of the 20 differences: mean 0.3, s^2 = (14 - 20 * 0.09) / 19.
    half = 2.093024 * math.sqrt((14 - 20 * 0.09) / 19 / 20)
    assert (found.lo, found.hi) == (
        pytest.approx(0.3 - half, abs=1e-6),
        pytest.approx(0.3 + half, abs=1e-6),
    )


def test_turned_round_everything_turns(duel):
    a, b = duel.duel(A_RIGHT), duel.duel(B_RIGHT, "count:b")
    one, two = (compare(duel.store, *pair.split()) for pair in (
        f"{a.run_id} {b.run_id}", f"{b.run_id} {a.run_id}",
    ))  # fmt: skip
    assert (two.diff, two.lo, two.hi, two.p) == (-one.diff, -one.hi, -one.lo, one.p)
    assert (two.flips.gained, two.flips.lost) == (one.flips.lost, one.flips.gained)


def test_only_items_that_count_in_both_are_compared(duel):
    a = duel.duel(A_RIGHT, first=10)
    b = duel.duel(B_RIGHT, "count:b", ids=[f"i{k:02d}" for k in range(5, 20)])
    found = compare(duel.store, a.run_id, b.run_id)
    task = found.tasks[0]
    assert (found.n, task.only_a, task.only_b) == (5, 5, 10)
    assert (task.mean_a, task.mean_b) == (1.0, 0.0)


def test_a_fault_of_the_network_is_not_a_wrong_answer(duel):
    a = duel.duel(A_RIGHT)
    duel.answer = lambda r: Output(text="", finish_reason="error", error_kind="network", error="x")
    b = duel.run("count:b", first=3)
    with pytest.raises(UsageError, match="no item that counts in both"):
        compare(duel.store, a.run_id, b.run_id)


def test_a_model_that_refuses_everything_is_compared_as_wrong(duel):
    a = duel.duel(A_RIGHT)
    duel.answer = lambda request: Output(text="", finish_reason="content_filter")
    b = duel.run("count:b")
    found = compare(duel.store, a.run_id, b.run_id)
    assert (found.n, found.diff) == (20, pytest.approx(12 / 20))


def test_repeats_are_averaged_and_are_no_further_items(duel):
    a = duel.duel(A_RIGHT, epochs=3)
    b = duel.duel(B_RIGHT, "count:b")
    found = compare(duel.store, a.run_id, b.run_id)
    assert (found.n, found.p) == (20, pytest.approx(0.179565, abs=1e-6))


def test_models_are_compared_by_their_newest_run(duel):
    duel.duel(set())
    duel.duel(A_RIGHT, fresh=True)
    duel.duel(B_RIGHT, "count:b")
    found = compare(duel.store, "count:a", "count:b@own/add")
    assert found.diff == pytest.approx(0.3)
    assert "A: newest of 2 runs" in found.tasks[0].notes


def second_task(house, name="own/more"):
    def task(request):
        made = house.task(request)
        fields = {f: getattr(made, f) for f in Task.__struct_fields__}
        return Task(**{**fields, "name": name})

    registry.task(name, n=20)(task)


def test_several_tasks_holm_and_the_mean_of_their_differences(duel):
    """p .179565 (10 : 4) and .03125 (6 : 0): Holm gives .179565 and .0625."""
    second_task(duel)
    duel.duel(A_RIGHT)
    duel.duel(B_RIGHT, "count:b")
    duel.duel(set(range(6)), task="own/more")
    duel.duel(set(), "count:b", task="own/more")
    found = compare(duel.store, "count:a", "count:b")
    adjusted = {t.task: t.p_adj for t in found.tasks}
    assert adjusted["own/add"] == pytest.approx(0.179565, abs=1e-6)
    assert adjusted["own/more"] == pytest.approx(0.0625, abs=1e-12)
    assert (found.n, found.test, found.diff) == (40, "macro", pytest.approx((0.3 + 0.3) / 2))
    # Both spreads by hand: s^2 = (sum d^2 - n mean^2) / (n - 1).
    se = math.sqrt((14 - 1.8) / 19 / 20 + (6 - 1.8) / 19 / 20) / 2
    assert found.hi - found.diff == pytest.approx(1.959964 * se, rel=1e-6)
    assert found.flips.gained[-1] == "own/more/i05"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fewshot": 2}, r"fewshot \(0 / 2\)"),
        ({"system": "Be brief."}, "system"),
        ({"no_data": True}, "no_data"),
        ({"errors": "exclude"}, r"errors \(wrong / exclude\)"),
        ({"args": {"style": "plain"}}, "args"),
    ],
)
def test_unlike_runs_are_refused_unless_told_and_then_it_is_said(duel, options, why):
    a, b = duel.duel(A_RIGHT), duel.duel(B_RIGHT, "count:b", **options)
    with pytest.raises(UsageError, match=f"not alike in {why}.*--allow-different"):
        compare(duel.store, a.run_id, b.run_id)
    found = compare(duel.store, a.run_id, b.run_id, allow_different=True)
    assert found.tasks[0].unlike


@pytest.mark.parametrize("change", ["version", "prompt", "item", "scorer"])
def test_another_task_is_another_task(duel, change):
    """Planted: the same item ids, but the task is no longer what it was."""
    a = duel.duel(A_RIGHT)
    if change == "version":
        duel.version = "2"
    elif change == "prompt":
        duel.prompt = "Add {{ input }}!"
    elif change == "item":
        duel.samples[3] = Sample(item_id="i03", input="3 + 4", target=("7",))
    else:
        registry.scorer("lax", version="1")(lambda: lambda s, o: Score(value=1.0))
        duel.scorer = "lax"
    b = duel.duel(B_RIGHT, "count:b")
    with pytest.raises(UsageError, match="not alike in"):
        compare(duel.store, a.run_id, b.run_id)


def test_a_longer_answer_or_another_seat_is_no_reason_to_refuse(duel):
    a = duel.duel(A_RIGHT)
    b = duel.duel(B_RIGHT, "count:b", max_tokens=99, batch_size=2)
    assert compare(duel.store, a.run_id, b.run_id).n == 20


def test_the_same_run_and_strangers_are_refused(duel):
    a = duel.duel(A_RIGHT)
    with pytest.raises(UsageError, match="are the same run"):
        compare(duel.store, a.run_id, "count:a")
    with pytest.raises(UsageError, match="unknown run or model 'count:c'"):
        compare(duel.store, a.run_id, "count:c")
    second_task(duel)
    b = duel.duel(B_RIGHT, "count:b", task="own/more")
    with pytest.raises(UsageError, match="no task in common"):
        compare(duel.store, a.run_id, b.run_id)


def test_equal_runs_differ_in_nothing_that_reaches_an_answer(duel):
    """A second run of the same thing is served the first one's answers: every key is equal."""
    a, b = duel.duel(A_RIGHT), duel.duel(A_RIGHT)
    found = diff_runs(snapshot(duel.store), duel.store, a.run_id, b.run_id)
    assert (found.equal_keys, found.n_attempts, found.differences) == (20, 20, [])
    assert compare(duel.store, a.run_id, b.run_id).p == 1.0


def test_a_diff_names_the_group_that_each_fact_belongs_to(duel, monkeypatch):
    a = duel.duel(A_RIGHT)
    b = duel.duel(A_RIGHT, "count:b?size=7", temperature=0.5, seed=3, batch_size=2, limit=9)
    sync(duel.store, wait=True)
    found = diff_runs(snapshot(duel.store), duel.store, a.run_id, b.run_id)
    groups = {(d.group, d.name): (d.a, d.b) for d in found.differences}
    assert groups[("model", "args.size")] == (None, "7")
    assert groups[("solving", "generation.temperature")] == (0.0, 0.5)
    assert groups[("solving", "seed")] == (0, 3)
    assert groups[("running", "batch_size")] == (None, 2)
    assert groups[("selection", "limit")] == (None, 9)
    assert (found.equal_keys, found.n_shared, found.n_attempts) == (0, 9, 9)
    assert found.unlike() == []


def test_a_task_whose_differences_are_all_equal_gives_no_interval_over_the_tasks(duel):
    """Its standard error of 0 says nothing, and must not pass for certainty."""
    second_task(duel)
    duel.duel(A_RIGHT)
    duel.duel(B_RIGHT, "count:b")
    duel.duel(set(range(20)), task="own/more")
    duel.duel(set(), "count:b", task="own/more")
    found = compare(duel.store, "count:a", "count:b")
    assert found.diff == pytest.approx((0.3 + 1.0) / 2)
    assert (found.lo, found.hi, found.p) == (None, None, None)


def test_a_task_that_one_model_could_not_run_is_left_out_with_a_word(duel):
    second_task(duel)
    duel.duel(A_RIGHT)
    duel.duel(B_RIGHT, "count:b")
    duel.duel(A_RIGHT, task="own/more")
    duel.answer = lambda r: Output(text="", finish_reason="error", error_kind="network", error="x")
    duel.run("count:b", task="own/more")
    found = compare(duel.store, "count:a", "count:b")
    assert [one.task for one in found.tasks] == ["own/add"]
    assert any("own/more is left out" in note for note in found.tasks[0].notes)
