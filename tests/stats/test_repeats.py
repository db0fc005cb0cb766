"""Repeats: item means, the two sources of variance, pass@k."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.stats.intervals import clustered_mean, estimate
from harness.stats.repeats import (
    item_means,
    pass_at_k,
    pass_at_k_estimate,
    pass_at_k_items,
    variance_parts,
)

steady = settings(deadline=None, derandomize=True)


def test_items_of_two_tasks_with_one_id_stay_apart():
    values = [1, 1, 0, 0]
    whole = [("t1", "1", "7"), ("t1", "1", "7"), ("t2", "1", "7"), ("t2", "1", "7")]
    assert item_means(values, whole) == {("t1", "1", "7"): 1.0, ("t2", "1", "7"): 0.0}
    # The planted fault: by the bare id the two become one item, half right.
    assert item_means(values, [item[2] for item in whole]) == {"7": 0.5}


def test_item_means_refuses_broken_scores():
    with pytest.raises(ValueError, match="'b' is not finite"):
        item_means([1, float("nan")], ["a", "b"])
    with pytest.raises(ValueError, match="zip"):
        item_means([1, 0], ["a"])


@steady
@given(st.integers(2, 30), st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_parts_agree_with_the_analysis_of_variance(n, k, seed):
    """Whole over repeats' part is the F of a one-way analysis of variance with items as groups."""
    rng = np.random.default_rng(seed)
    table = rng.normal(0, 1, (n, 1)) + rng.normal(0, 0.7, (n, k))
    found = variance_parts(table)
    f = stats.f_oneway(*table).statistic
    assert found.value == pytest.approx(table.mean(), abs=1e-10)
    if f >= 1:
        assert (found.se / found.se_repeats) ** 2 == pytest.approx(f, rel=1e-9)
        assert found.se_items**2 + found.se_repeats**2 == pytest.approx(found.se**2, abs=1e-12)
    else:
        assert (found.se_items, found.se_repeats) == (0.0, found.se)
        assert "repeats explain all" in found.notes


def test_unequal_repeats_by_hand():
    # s^2 = 0.5 (K = 2) and 1/3 (K = 3); the item with one repeat gets their mean, 5/12.
    found = variance_parts([[0, 1], [1, 1, 0], [1.0]])
    part = (0.5 / 2 + (1 / 3) / 3 + (5 / 12) / 1) / 9
    whole = np.var([0.5, 2 / 3, 1], ddof=1) / 3
    assert found.value == pytest.approx((0.5 + 2 / 3 + 1) / 3)
    assert found.se == pytest.approx(math.sqrt(whole))
    assert part > whole
    assert (found.se_items, found.se_repeats) == (0.0, found.se)
    assert (found.n_epochs_min, found.n_epochs_max) == (1, 3)
    assert found.notes == ("few clusters", "some items not repeated", "repeats explain all")


def test_an_item_with_one_repeat_varies_like_the_others():
    # s^2 = 0.5, 0 and 0; the third item gets their mean, 1/6: (0.25 + 1/6) / 16 = 0.0260417.
    # Item means 0.5, 1, 0, 0 about 0.375: 0.6875 / 3 / 4 = 0.0572917; the rest is 1/32.
    found = variance_parts([[0, 1], [1, 1, 1], [0.0], [0, 0]])
    assert found.se_repeats == pytest.approx(math.sqrt(0.0260417), abs=1e-6)
    assert found.se_items == pytest.approx(math.sqrt(1 / 32))
    assert found.notes == ("few clusters", "some items not repeated")


def test_a_table_with_holes_is_the_list_of_what_is_there():
    nan = float("nan")
    table = np.array([[1, 0, nan], [1, 1, 0], [0, nan, nan]])
    assert variance_parts(table) == variance_parts([[1, 0], [1, 1, 0], [0]])


def test_without_repeats_nothing_is_said_about_them():
    found = variance_parts([[1], [0], [1]])
    assert (found.se_items, found.se_repeats) == (None, None)
    assert found.se == pytest.approx(np.std([1, 0, 1], ddof=1) / math.sqrt(3))
    alone = variance_parts([[1, 0], [1, 1]], ["a", "a"])
    assert (alone.se, alone.se_items, alone.se_repeats) == (None, None, None)
    assert "one cluster" in alone.notes


def test_parts_find_what_was_put_in():
    """Item sd 0.3, repeat sd 0.6, 4 repeats, 2,000 items: the parts are known."""
    rng = np.random.default_rng(1)
    table = rng.normal(0, 0.3, (2000, 1)) + rng.normal(0, 0.6, (2000, 4))
    found = variance_parts(table)
    assert found.se_items == pytest.approx(0.3 / math.sqrt(2000), rel=0.05)
    assert found.se_repeats == pytest.approx(0.3 / math.sqrt(2000), rel=0.05)


@steady
@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=2, max_size=40))
def test_an_epoch_with_the_same_answers_changes_no_value(table):
    """Three repeats again as six: mean and standard error stay; more rows would shrink it."""
    once, twice = variance_parts(table), variance_parts([row * 2 for row in table])
    assert (twice.value, twice.n_items) == (pytest.approx(once.value), once.n_items)
    assert twice.se == pytest.approx(once.se)
    means = [sum(row) / 3 for row in table]
    assert clustered_mean(means).se == pytest.approx(once.se)


def test_epochs_counted_as_items_are_caught():
    """60 items of 8 repeats: by items the interval covers, by attempts it falls short."""
    rng = np.random.default_rng(20261130)
    hits = fault = 0
    for _ in range(400):
        item = 0.5 + rng.normal(0, 0.3, (60, 1))
        table = item + rng.normal(0, 0.3, (60, 8))
        found = variance_parts(table)
        half = stats.t.ppf(0.975, found.n_clusters - 1) * found.se
        hits += abs(found.value - 0.5) <= half
        attempts = clustered_mean(table.ravel().tolist())
        fault += attempts.lo <= 0.5 <= attempts.hi
    assert 0.93 <= hits / 400 <= 0.97
    assert fault / 400 < 0.75


@pytest.mark.parametrize(
    ("table", "message"),
    [([], "no items"), ([[1], []], "item 1 has no score"), ([[1, float("inf")]], "not finite")],
)
def test_broken_tables_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        variance_parts(table)


@pytest.mark.parametrize(
    ("n", "c", "k", "chance"),
    [(10, 3, 5, 0.916667), (5, 0, 3, 0), (5, 3, 3, 1), (200, 13, 10, 0.497551)],
)
def test_pass_at_k_vectors(n, c, k, chance):
    assert pass_at_k(n, c, k) == pytest.approx(chance, abs=5e-7)


def test_the_plug_in_is_caught():
    """For (10, 3, 5) the plug-in says .8319; and over many draws it is off, ours is not."""
    plug_in = 1 - (1 - 3 / 10) ** 5
    assert plug_in == pytest.approx(0.8319, abs=5e-5)
    assert abs(pass_at_k(10, 3, 5) - plug_in) > 0.08
    right = np.random.default_rng(2).binomial(10, 0.2, 200_000)
    truth = 1 - 0.8**5
    ours = pass_at_k_items(10, right, 5)
    margin = 4 * ours.std() / math.sqrt(len(right))
    assert abs(ours.mean() - truth) < margin
    assert truth - (1 - (1 - right / 10) ** 5).mean() > 10 * margin


@steady
@given(st.data())
def test_pass_at_k_agrees_with_scipy(data):
    n = data.draw(st.integers(1, 300))
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    assert pass_at_k(n, c, k) == pytest.approx(1 - stats.hypergeom.pmf(0, n, c, k), abs=1e-10)
    rows = pass_at_k_items([n, n], [c, 0], k)
    assert rows.tolist() == [pass_at_k(n, c, k), 0.0]


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 6), (5, 2, 0), (5, 6, 1), (5, -1, 1)])
def test_pass_at_k_refuses_impossible_counts(n, c, k):
    with pytest.raises(ValueError, match="attempts"):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError, match="attempts"):
        pass_at_k_items([n, 100], [c, 1], k)


def test_pass_at_k_of_a_task_is_a_mean_over_items():
    successes, epochs, clusters = [3, 0, 10, 5], [10, 10, 12, 9], ["a", "a", "b", "c"]
    values = [1 - stats.hypergeom.pmf(0, n, c, 4) for n, c in zip(epochs, successes, strict=True)]
    found = pass_at_k_estimate(successes, epochs, 4, clusters)
    by_hand = clustered_mean(values, clusters)
    assert (found.value, found.se) == (pytest.approx(by_hand.value), pytest.approx(by_hand.se))
    assert (found.method, found.n_items, found.n_clusters) == ("cluster-t", 4, 3)
    # One attempt, one allowed: the share of right ones, with Wilson's interval.
    assert pass_at_k_estimate([1, 0, 1], [1, 1, 1], 1) == estimate([1, 0, 1])
    with pytest.raises(ValueError, match="k = 10: from 1 to the 9 attempts"):
        pass_at_k_estimate(successes, epochs, 10, clusters)
    with pytest.raises(ValueError, match="2 counts of successes, but 1"):
        pass_at_k_estimate([1, 1], [1], 1)
