"""Promises kept by simulation, in a small form: `bench/coverage.py` has the full size.

Seeds are fixed. Where a bar is a share itself ("at least 95 %"), two standard errors of the
simulation are allowed for.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.stats.intervals import clustered_mean
from harness.stats.overall import TaskScores, overall
from harness.stats.pairs import compare_items, sign_flip_p
from harness.stats.ranks import all_pairs, rank_table

NAMES = [f"m{i}" for i in range(8)]


def at_least(share, sets):
    """The bar less two standard errors of a share of so many sets."""
    return share - 2 * math.sqrt(share * (1 - share) / sets)


def test_clustered_mean_with_unequal_clusters():
    rng = np.random.default_rng(1)
    sizes = np.arange(30) % 14 + 3
    clusters = np.repeat(np.arange(30), sizes)
    hits = 0
    for _ in range(400):
        shared = rng.normal(0, 0.25, 30)[clusters]
        found = clustered_mean((shared + rng.normal(0, 0.5, clusters.size)).tolist(), clusters)
        hits += found.lo <= 0 <= found.hi
    assert 0.92 <= hits / 400 <= 0.97


def test_paired_difference_of_clustered_items_and_the_plain_error_fails_it():
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(30), 10)
    hits = plain = 0
    for _ in range(400):
        item = rng.normal(0.5, 0.3, 300)
        a = item + 0.1 + rng.normal(0, 0.25, 30)[clusters] + rng.normal(0, 0.5, 300)
        b = item + rng.normal(0, 0.5, 300)
        found, fault = compare_items(a, b, clusters.tolist()), compare_items(a, b)
        hits += found.lo <= 0.1 <= found.hi
        plain += fault.lo <= 0.1 <= fault.hi
    assert 0.93 <= hits / 400 <= 0.97
    assert plain / 400 < 0.93


def right_or_wrong(rng, ability, n):
    """0/1 scores of models on items of different difficulty, in clusters of three."""
    chance = ability + rng.normal(0, 0.15, (n, 1)) + rng.normal(0, 0.1, (n // 3, 1)).repeat(3, 0)
    return (rng.random((n, len(ability))) < chance).astype(float)


def test_rank_intervals_hold_all_true_ranks():
    rng = np.random.default_rng(3)
    ability = np.linspace(0.35, 0.65, 8)
    clusters = [i // 3 for i in range(300)]
    hits = separated = 0
    for _ in range(100):
        rows = rank_table(right_or_wrong(rng, ability, 300), NAMES, clusters)
        true = {f"m{i}": 8 - i for i in range(8)}
        hits += all(row.rank_lo <= true[row.model] <= row.rank_hi for row in rows)
        separated += max(row.tier for row in rows) > 1
    assert hits / 100 >= at_least(0.95, 100)
    assert separated > 90  # the intervals say something, too


@pytest.mark.parametrize("n", [30, 300])
def test_without_a_real_difference_there_is_one_tier(n):
    rng = np.random.default_rng(4)
    clusters = [i // 3 for i in range(n)]
    one = raw = 0
    for _ in range(200):
        table = right_or_wrong(rng, np.full(8, 0.5), n)
        pairs = all_pairs(table, NAMES, clusters)
        one += all(row.tier == 1 for row in rank_table(table, NAMES, clusters, pairs=pairs))
        raw += np.nanmin(pairs.p) > 0.05
    assert one / 200 >= at_least(0.95, 200)
    assert raw / 200 < 0.7  # without the correction models come apart by chance


@pytest.mark.parametrize("n", [12, 30, 200])
def test_sign_flips_err_as_often_as_they_say(n):
    rng = np.random.default_rng(5)
    found = [sign_flip_p(rng.normal(0, 1, n), seed, draws=199) <= 0.05 for seed in range(8000)]
    assert 0.04 <= np.mean(found) <= 0.06


def test_sign_flips_of_clusters_err_as_often_as_they_say():
    """Twenty clusters of one to nine items; flipping items instead finds what is not there."""
    rng = np.random.default_rng(6)
    clusters = np.repeat(np.arange(20), np.arange(20) % 9 + 1)
    by_cluster, by_item = [], []
    for seed in range(8000):
        d = rng.normal(0, 0.5, 20)[clusters] + rng.normal(0, 0.5, clusters.size)
        by_cluster.append(sign_flip_p(np.bincount(clusters, d), seed, draws=199) <= 0.05)
        if seed < 1000:
            by_item.append(sign_flip_p(d, seed, draws=199) <= 0.05)
    assert 0.04 <= np.mean(by_cluster) <= 0.06
    assert np.mean(by_item) > 0.12


def test_overall_interval():
    """Three tasks, clusters of ten, two repeats: not below 93 % (it errs on the wide side)."""
    rng = np.random.default_rng(7)
    clusters = [i // 10 for i in range(300)]
    hits = 0
    for seed in range(100):
        tasks = {}
        for name in ("t", "u", "v"):
            item = rng.normal(0, 0.2, 30).repeat(10) + rng.normal(0.5, 0.3, 300)
            scores = item[:, None, None] + rng.normal(0, 0.4, (300, 1, 2))
            tasks[name] = TaskScores(scores=scores, clusters=clusters)
        found = overall(tasks, ["a"], draws=200, seed=seed)[0].estimate
        hits += found.lo <= 0.5 <= found.hi
    assert hits / 100 >= at_least(0.93, 100)
