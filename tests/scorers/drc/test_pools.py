"""Best of N over pools of candidates drawn once: the figures of the paper's protocol."""

from __future__ import annotations

import pytest

from scorers.drc.pools import best, pool_figures

PLANTED = [i in (3, 12, 25) for i in range(60)]
SCORES = [float(x) for x in PLANTED]


def test_planted_successes_are_found_by_pools_of_ten_and_not_by_all_of_twenty():
    ten = pool_figures([PLANTED], [PLANTED], [SCORES], 10)
    assert ten.oracle == (1.0, 0.0)
    assert ten.random == pytest.approx((0.1, 0.0))
    twenty = pool_figures([PLANTED], [PLANTED], [SCORES], 20)
    assert twenty.oracle[0] == pytest.approx(2 / 3)
    assert twenty.oracle[1] == pytest.approx(0.471405, abs=1e-6)  # of (1, 1, 0), over all of them
    assert twenty.chosen == twenty.oracle


def test_a_pool_with_a_missing_score_chooses_nothing():
    lacking = [None if i == 7 else s for i, s in enumerate(SCORES)]
    assert pool_figures([PLANTED], [PLANTED], [lacking], 10).chosen[0] == pytest.approx(2 / 3)
    assert best(lacking[:10]) is None


def test_the_lowest_of_equal_scores_and_the_first_candidate():
    success = [[True, False] * 30, [False, True] * 30]
    flat = [[0.0] * 60, [0.0] * 60]
    found = pool_figures(success, success, flat, 10)
    assert found.chosen == found.first == (0.5, 0.0)
    assert found.compile == (1.0, 0.0)


def test_too_few_candidates_are_refused():
    with pytest.raises(ValueError, match="60 candidates"):
        pool_figures([PLANTED[:50]], [PLANTED[:50]], [SCORES[:50]], 20)
