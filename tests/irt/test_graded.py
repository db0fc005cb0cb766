"""The graded response model: its definition, its special case, recovery."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from irt.graded import grm
from irt.mml import mml


def _simulate(seed, n_items, n_models, n_levels):
    """Scores from a latent logistic variable cut at rising thresholds: the model's other face."""
    rng = np.random.default_rng(seed)
    theta, a = rng.normal(size=n_models), np.exp(0.3 * rng.normal(size=n_items))
    b = np.linspace(-1.5, 1.5, n_levels - 1) + 0.5 * rng.normal(size=(n_items, 1))
    latent = a[:, None] * theta + rng.logistic(size=(n_items, n_models))
    y = (latent[:, None] > (a[:, None] * b)[:, :, None]).sum(axis=1)
    return y, a, b, theta


def test_parameters_and_abilities_are_recovered():
    y, a, b, theta = _simulate(1, 12, 4000, 4)
    fit = grm(y, 4)
    assert fit.converged
    assert np.abs(np.log(fit.a / a)).max() < 0.15
    assert np.abs(fit.d + a[:, None] * b).max() < 0.2
    assert np.abs(fit.b - b).mean() < 0.06
    assert (np.diff(fit.b, axis=1) > 0).all()
    assert np.abs(np.mean(np.abs(fit.theta - theta) < 1.96 * fit.sd) - 0.95) < 0.01


def test_two_levels_are_the_two_parameter_model():
    rng = np.random.default_rng(2)
    y, *_ = _simulate(2, 10, 500, 2)
    seen = rng.random(y.shape) < 0.8
    graded = grm(np.where(seen, y, -1), 2, tol=1e-10)
    plain = mml(y * seen, seen.astype(float), tol=1e-10)
    assert graded.a == pytest.approx(plain.a, abs=1e-6)
    assert graded.d[:, 0] == pytest.approx(plain.d, abs=1e-6)
    assert graded.theta == pytest.approx(plain.theta, abs=1e-6)
    assert graded.log_lik == pytest.approx(plain.log_lik, abs=1e-7)


def test_the_likelihood_is_that_of_the_definition_and_at_its_maximum():
    y, *_ = _simulate(3, 4, 300, 3)
    fit = grm(y, 3, tol=1e-10)
    x = np.linspace(-8, 8, 801)
    w = norm.pdf(x) / norm.pdf(x).sum()

    def log_lik(v):
        a, d = np.exp(v[:, 0]), v[:, 1:]
        like = np.ones((y.shape[1], len(x)))
        for i in range(len(a)):
            above = [1 / (1 + np.exp(-(a[i] * x + cut))) for cut in d[i]]
            level = np.array([1 - above[0], above[0] - above[1], above[1]])
            like *= level[y[i]]
        return float(np.log(like @ w).sum())

    v = np.column_stack([np.log(fit.a), fit.d])
    assert fit.log_lik == pytest.approx(log_lik(v), abs=1e-6)
    for i, m in np.ndindex(*v.shape):
        step = np.zeros_like(v)
        step[i, m] = 1e-4
        assert abs(log_lik(v + step) - log_lik(v - step)) / 2e-4 < 1e-4


def test_counts_are_repeated_columns():
    y, *_ = _simulate(4, 5, 150, 3)
    counts = np.random.default_rng(4).integers(1, 4, 150)
    once = grm(y, 3, counts=counts, tol=1e-9)
    repeated = grm(np.repeat(y, counts, axis=1), 3, tol=1e-9)
    assert once.d == pytest.approx(repeated.d, abs=1e-6)
    assert once.log_lik == pytest.approx(repeated.log_lik, abs=1e-6)


def test_bad_scores_are_refused_in_one_line():
    y = np.array([[0, 1, 2], [2, 1, 0]])
    for bad, levels, extra, message in (
        (y + 1, 3, {}, "item 0, model 2: score 3.0 is not a whole number from 0 to 2"),
        (y * 0.5, 3, {}, "score 0.5"),
        (y, 4, {}, "item 0: score 3 was never given"),
        (y[0], 3, {}, "must be"),
        (y, 1, {}, "2 or more"),
        (y, 3, {"counts": [1, 2]}, "counts must be 3 positive numbers"),
    ):
        with pytest.raises(ValueError, match=message) as refused:
            grm(bad, levels, **extra)
        assert "\n" not in str(refused.value)


def _log_lik(y, v):
    """By the trapezoid rule on a fine grid, from the definition."""
    x = np.linspace(-8, 8, 401)
    w = norm.pdf(x) / norm.pdf(x).sum()
    like = np.ones((y.shape[1], len(x)))
    for row, (lam, *cuts) in zip(y, v, strict=True):
        above = [np.ones_like(x), *(1 / (1 + np.exp(-(np.exp(lam) * x + d))) for d in cuts), 0 * x]
        level = -np.diff(above, axis=0)
        like *= np.where((row >= 0)[:, None], level[row], 1.0)
    return float(np.log(like @ w).sum())


def test_errors_are_those_of_the_likelihoods_curvature():
    """The inverse of its Hessian by central differences; a fifth of the scores missing."""
    y, *_ = _simulate(5, 4, 250, 4)
    y = np.where(np.random.default_rng(5).random(y.shape) < 0.8, y, -1)
    fit = grm(y, 4, tol=1e-9)
    v, h = np.column_stack([np.log(fit.a), fit.d]), 1e-3
    steps = h * np.eye(v.size).reshape(-1, *v.shape)
    hessian = np.array([
        [(_log_lik(y, v + r + c) - _log_lik(y, v + r - c) - _log_lik(y, v - r + c)
          + _log_lik(y, v - r - c)) / (4 * h * h) for c in steps] for r in steps
    ])  # fmt: skip
    cov = np.linalg.inv(-hessian).reshape(4, 4, 4, 4)
    for i in range(4):
        assert fit.cov[i] == pytest.approx(cov[i, :, i], rel=2e-4, abs=1e-6)
        assert fit.se_log_a[i] == pytest.approx(cov[i, 0, i, 0] ** 0.5, rel=1e-4)
        # b = −d e^−λ
        slope = np.concatenate([[-fit.b[i, 1]], [0, -1 / fit.a[i], 0]])
        assert fit.se_b[i, 1] == pytest.approx((slope @ cov[i, :, i] @ slope) ** 0.5, rel=1e-4)
    assert fit.se_d[:, 0] == pytest.approx(fit.cov[:, 1, 1] ** 0.5, rel=1e-12)


def test_errors_of_two_levels_are_those_of_the_two_parameter_model():
    y, *_ = _simulate(6, 8, 400, 2)
    graded, plain = grm(y, 2, tol=1e-10), mml(y, np.ones(y.shape), tol=1e-10)
    assert graded.se_log_a == pytest.approx(plain.se_a / plain.a, rel=1e-5)
    assert graded.se_d[:, 0] == pytest.approx(plain.se_d, rel=1e-5)
    assert graded.se_b[:, 0] == pytest.approx(plain.se_b, rel=1e-5)


def test_errors_are_left_out_when_they_are_not_asked_for():
    y, *_ = _simulate(7, 4, 100, 3)
    assert np.isnan(grm(y, 3, se=False).se_d).all()
