"""Items that hang together beyond ability are found, and independent ones are left alone."""

from __future__ import annotations

import numpy as np
import pytest

import irt
from irt import testlets
from irt.testlets import find_testlets


def answers(seed, n_models=120, n_items=60, copies=()):
    """Answers of a 2PL; each group of `copies` is one item that stands there several times."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=n_models), rng.normal(size=n_items)
    a = np.exp(rng.normal(0, 0.3, n_items))
    p = 1 / (1 + np.exp(-a[:, None] * (theta - b[:, None])))
    k = (rng.random(p.shape) < p).astype(float)
    for first, *others in copies:
        for other in others:
            # Nine in ten answers are the same as those to the first.
            same = rng.random(n_models) < 0.9
            k[other] = np.where(same, k[first], k[other])
    return irt.Responses.from_matrix(k.T, items=[f"i{i:02d}" for i in range(n_items)])


def test_copies_of_an_item_are_one_group():
    found = find_testlets(irt.fit(answers(1, copies=[(3, 7, 11), (20, 21)]), method="joint"))
    assert found.groups == (("i03", "i07", "i11"), ("i20", "i21"))
    assert found.items == ("i03", "i07", "i11", "i20", "i21")
    assert (found.pairs, found.tested) == (4, 60 * 59 // 2)


def test_independent_items_are_left_alone():
    """Bonferroni at 5 %: of twenty sets one may show a false pair; these twenty show at most two."""
    hits = sum(
        bool(find_testlets(irt.fit(answers(seed, 80, 40), method="joint")).groups)
        for seed in range(100, 120)
    )
    assert hits <= 2


def test_pairs_that_few_models_answered_both_of_are_not_tested():
    found = find_testlets(irt.fit(answers(1, n_models=12), method="joint"))
    assert (found.groups, found.tested) == ((), 0)


def test_too_many_items_are_refused(monkeypatch):
    monkeypatch.setattr(testlets, "MAX_ITEMS", 50)
    with pytest.raises(ValueError, match="60 items: testlets are looked for among 50 at most"):
        find_testlets(irt.fit(answers(1), method="joint"))
