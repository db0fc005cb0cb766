"""Differences and ranks from joint draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import irt
from irt.compare import compare_draws, rank_shares
from irt.data import DataError


@pytest.fixture(scope="module")
def fit(simulate):
    return irt.fit(simulate(81, 20, 300).responses, method="joint")


def test_a_difference_has_the_error_of_the_joint_covariance(fit):
    """Var(θ₁ − θ₂) = C₁₁ + C₂₂ − 2 C₁₂ from the projected covariance; normal to good measure."""
    assert fit.estimate.cov_theta is not None
    cov = fit.estimate.cov_theta()
    found = fit.compare("m0003", "m0008", n=8000)
    se = (cov[3, 3] + cov[8, 8] - 2 * cov[3, 8]) ** 0.5
    assert found.difference == fit.models.theta[3] - fit.models.theta[8]
    assert found.se == pytest.approx(se, rel=0.03)
    assert found.p_better == pytest.approx(norm.cdf(found.difference / se), abs=0.02)
    assert found.hi - found.lo == pytest.approx(2 * 1.96 * se, rel=0.06)
    back = fit.compare("m0008", "m0003", n=8000)
    assert (back.difference, back.lo) == (
        pytest.approx(-found.difference),
        pytest.approx(-found.hi),
    )


def test_intervals_of_differences_cover(simulate):
    hits = []
    for seed in range(15):
        data = simulate(400 + seed, 20, 200)
        draws = irt.fit(data.responses, method="joint").draws(400, seed=seed).theta
        gaps = draws[:, :-1] - draws[:, 1:]
        low, high = np.percentile(gaps, [2.5, 97.5], axis=0)
        truth = data.theta[:-1] - data.theta[1:]
        hits.append((low < truth) & (truth < high))
    assert 0.91 <= np.mean(hits) <= 0.985


def test_ranks_are_doubly_stochastic_and_follow_the_abilities(fit):
    shares = fit.rank_probabilities(n=2000)
    assert np.allclose(shares.sum(axis=0), 1)
    assert np.allclose(shares.sum(axis=1), 1)
    expected = shares @ np.arange(20)
    assert np.corrcoef(expected, -fit.models.theta)[0, 1] > 0.95


def test_certain_ranks():
    assert np.array_equal(rank_shares(np.tile([3.0, 1.0, 2.0], (5, 1))).round(12),
                          [[1, 0, 0], [0, 0, 1], [0, 1, 0]])  # fmt: skip


def test_what_is_refused(fit):
    with pytest.raises(DataError, match="not in the fit: 'nobody'"):
        fit.compare("m0003", "nobody")
    with pytest.raises(ValueError, match="level"):
        compare_draws(np.zeros(3), np.ones(3), 0.0, level=95)
