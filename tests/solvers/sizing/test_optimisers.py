"""Optimisers over a grid, on a function whose best point is known."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from harness.core.errors import UsageError
from harness.solvers.sizing.optimisers import (
    OPTIMISERS,
    latin_hypercube,
    optimiser,
    proposals,
    search,
)

pytest.importorskip("optuna")
pytest.importorskip("sklearn")
SHAPE = (10,) * 6


def toy(seed):
    """Six variables of ten values: J = -sum w ((i - i*) / 9)^2, and where its best 0.1 % begin."""
    rng = Random(f"toy {seed}")
    weights = [rng.uniform(0.5, 2.0) for _ in SHAPE]
    best = [rng.randrange(10) for _ in SHAPE]

    def value(point):
        return -sum(w * ((i - b) / 9) ** 2 for w, i, b in zip(weights, point, best, strict=True))

    # All 10^6 values: the thousandth largest is the bar.
    sums = np.zeros(1)
    for w, b in zip(weights, best, strict=True):
        sums = np.add.outer(sums, w * ((np.arange(10) - b) / 9) ** 2).ravel()
    return value, -np.partition(sums, 999)[999]


@pytest.mark.parametrize(
    ("name", "seeds", "least", "most"),
    [("random", 30, 0, 8), ("ga", 30, 24, 30), ("anneal", 30, 24, 30), ("tpe", 5, 4, 5), ("gp", 1, 1, 1)],
)  # fmt: skip
def test_how_often_the_best_thousandth_is_found(name, seeds, least, most):
    hits = 0
    for seed in range(seeds):
        value, bar = toy(seed)
        found = search(name, SHAPE, 100, seed, value)
        hits += max(worth for _, worth in found) >= bar
    assert least <= hits <= most


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_search_is_the_same_from_its_seed_and_stays_on_the_grid(name):
    shape = (3, 1, 7, 2)

    def value(point):
        return float(-abs(point[0] - 1) - abs(point[2] - 5))

    once, again, other = (search(name, shape, 12, seed, value) for seed in (3, 3, 4))
    assert once == again != other
    points = [point for point, _ in once]
    assert len(set(points)) == len(points) <= 12
    assert all(0 <= i < n for point in points for i, n in zip(point, shape, strict=True))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_small_grid_is_known_and_the_search_ends(name):
    seen = []
    search(name, (2, 2), 50, 0, lambda point: seen.append(point) or -1000.0)
    assert len(seen) == len(set(seen)) <= 4


@pytest.mark.parametrize("name", OPTIMISERS)
def test_what_is_known_is_not_proposed_again(name):
    known = [((i, 0), float(i)) for i in range(5)]
    found = search(name, (5, 2), 5, 0, lambda point: 0.0, known)
    assert not {point for point, _ in found} & {point for point, _ in known}


def test_a_latin_hypercube_covers_every_range_evenly():
    points = latin_hypercube((10, 5), 10, Random(0))
    assert sorted(p[0] for p in points) == list(range(10))
    assert sorted(p[1] for p in points) == sorted(list(range(5)) * 2)


def test_another_name_is_refused_with_those_that_there_are():
    with pytest.raises(UsageError, match="anneal, ga, gp, lhs, random, tpe"):
        optimiser("newton", (2,), 5, 0)
    with pytest.raises(UsageError, match="unknown optimiser"):
        next(proposals("newton", (2,), 5, 0))
