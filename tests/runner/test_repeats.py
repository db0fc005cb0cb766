"""Repeats in a run's summary: pass@k unbiased, and the two parts of the uncertainty."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from harness.core.types import Output


@pytest.fixture
def repeated(house):
    """Four items of three repeats each, right 0, 1, 2 and 3 times."""
    house.samples = house.samples[:4]
    seen = {}

    def answer(request):
        n = seen[request.item_id] = seen.get(request.item_id, 0) + 1
        return house.solve(request) if n <= int(request.item_id[1:]) else Output(text="-1")

    house.answer = answer
    return house.run(epochs=3, temperature=1.0)


def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts(repeated):
    """Counted out: of the k-subsets of each item's attempts, how many hold a right one?"""
    for k in (2, 3):
        per_item = []
        for right in range(4):
            attempts = [True] * right + [False] * (3 - right)
            chosen = [any(subset) for subset in combinations(attempts, k)]
            per_item.append(sum(chosen) / len(chosen))
        found = repeated.metrics[f"pass@{k}"]
        assert found.value == pytest.approx(sum(per_item) / 4, abs=1e-12)
    assert list(repeated.metrics) == ["accuracy", "pass@2", "pass@3"]


def test_the_parts_of_the_uncertainty_by_hand(repeated):
    """Means 0, 1/3, 2/3, 1; within-item variances 0, 1/3, 1/3, 0."""
    assert repeated.metrics["accuracy"].value == pytest.approx(0.5)
    spread = sum((k / 3 - 0.5) ** 2 for k in range(4)) / 3 / 4
    within = (1 / 3 / 3 + 1 / 3 / 3) / 16
    assert repeated.repeats.se == pytest.approx(math.sqrt(spread))
    assert repeated.repeats.se_repeats == pytest.approx(math.sqrt(within))
    assert repeated.repeats.se_items == pytest.approx(math.sqrt(spread - within))
    assert (repeated.repeats.n_min, repeated.repeats.n_max) == (3, 3)


def test_a_run_without_repeats_has_neither(house):
    run = house.run()
    assert (run.repeats, list(run.metrics)) == (None, ["accuracy"])


def test_a_repeat_that_fell_to_the_network_is_no_attempt(house):
    """pass@k goes up to the fewest repeats of an item that count, here one."""
    house.samples = house.samples[:3]
    house.answer = lambda request: (
        Output(text="", finish_reason="error", error="no line", error_kind="network")
        if request.item_id == "i001" and house.calls.count("i001") > 1
        else house.solve(request)
    )
    run = house.run(epochs=2, temperature=1.0, batch_size=1)
    assert (run.status, run.counts["error_harness"], run.n_counted) == ("partial", 1, 5)
    assert (run.repeats.n_min, run.repeats.n_max) == (1, 2)
    assert (list(run.metrics), run.metrics["accuracy"].value) == (["accuracy"], 1.0)
