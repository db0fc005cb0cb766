"""Standard errors and draws against the dense inverse, projected and not, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import irt
from irt.joint import fit_joint
from irt.laplace import ItemSide, ThetaSide, covariance, projected

SIZES = pytest.mark.parametrize(
    ("n_models", "n_items", "side"), [(12, 30, ThetaSide), (44, 20, ItemSide)]
)


def _dense_covariance(k, n, state):
    """Inverse of the observed negative Hessian, cell by cell from the definition."""
    size, width = k.shape
    a, theta, h = np.exp(state.lam), state.theta, state.hyper
    p = expit(a[:, None] * theta + state.d[:, None])
    full = np.zeros((width + 2 * size,) * 2)
    for i in range(size):
        for j in range(width):
            w, e = n[i, j] * p[i, j] * (1 - p[i, j]), k[i, j] - n[i, j] * p[i, j]
            at = [j, width + i, width + size + i]
            slope = np.array([a[i], a[i] * theta[j], 1.0])
            full[np.ix_(at, at)] += w * np.outer(slope, slope)
            full[at[0], at[1]] -= a[i] * e
            full[at[1], at[0]] -= a[i] * e
            full[at[1], at[1]] -= a[i] * theta[j] * e
    precision = [h.sigma_theta] * width + [h.sigma_a] * size + [h.sigma_d] * size
    return np.linalg.inv(full + np.diag(np.array(precision) ** -2.0))


def _standardised(x, width, size):
    """The map to the fixed gauge, as a plain function of (θ, λ, d)."""
    theta, lam, d = x[:width], x[width : width + size], x[width + size :]
    m, s = theta.mean(), theta.std()
    return np.concatenate([(theta - m) / s, lam + np.log(s), d + np.exp(lam) * m])


def _parts(matrix, width, size):
    i = np.arange(size)
    diagonal = np.diag(matrix)
    return (
        diagonal[:width], diagonal[width : width + size], diagonal[width + size :],
        matrix[width + i, width + size + i],
    )  # fmt: skip


@SIZES
def test_the_covariance_is_the_dense_inverse(simulate, n_models, n_items, side):
    data = simulate(21, n_models, n_items, attempts=2, missing=0.2)
    found = fit_joint(data.k, data.n)
    cov, ok = covariance(found)
    assert ok
    assert isinstance(cov, side)
    dense = _dense_covariance(data.k, data.n, found.state)
    errors = cov.variances()
    wanted = _parts(dense, n_models, n_items)
    for got, want in zip((errors.theta, errors.lam, errors.d, errors.lam_d), wanted, strict=True):
        assert np.abs(got - want).max() <= 1e-12 * np.abs(want).max()
    x = np.random.default_rng(0).normal(size=(n_models, 3))
    for got, want in zip(
        cov.times(x), np.split(dense[:, :n_models] @ x, [n_models, n_models + n_items]), strict=True
    ):
        assert np.abs(got - want).max() <= 1e-11 * np.abs(want).max()


@SIZES
def test_projected_errors_are_the_delta_method_of_standardising(simulate, n_models, n_items, side):
    """With the derivative of the standardising taken by differences."""
    data = simulate(22, n_models, n_items)
    found = fit_joint(data.k, data.n)
    state, cov = found.state, covariance(found)[0]
    x = np.concatenate([state.theta, state.lam, state.d])
    step = 1e-6
    jacobian = np.array([
        (_standardised(x + step * u, n_models, n_items) - _standardised(x - step * u, n_models, n_items))
        / (2 * step)
        for u in np.eye(len(x))
    ]).T  # fmt: skip
    wanted = _parts(
        jacobian @ _dense_covariance(data.k, data.n, state) @ jacobian.T, n_models, n_items
    )
    errors = projected(cov.variances(), cov.times, state.theta, state.a)
    for got, want in zip((errors.theta, errors.lam, errors.d, errors.lam_d), wanted, strict=True):
        assert np.abs(got - want).max() <= 1e-7 * np.abs(want).max()


@SIZES
def test_draws_have_the_dense_covariance(simulate, n_models, n_items, side):
    data = simulate(23, n_models, n_items)
    found = fit_joint(data.k, data.n)
    cov = covariance(found)[0]
    drawn = np.vstack(cov.deviations(20_000, np.random.default_rng(1)))
    dense = _dense_covariance(data.k, data.n, found.state)
    scale = np.sqrt(np.diag(dense))
    gap = (np.cov(drawn) - dense) / np.outer(scale, scale)
    # the error of a correlation from 20,000 draws is at most .007
    assert np.abs(gap).max() < 6 * 0.0071


def test_projected_errors_are_the_spread_of_standardised_draws(simulate):
    fit = irt.fit(simulate(24, 40, 300).responses, method="joint")
    draws = fit.draws(4000, seed=3)
    assert np.abs(draws.theta.mean(axis=1)).max() < 1e-12
    assert np.abs(draws.theta.std(axis=1) - 1).max() < 1e-12
    # an SD from 4,000 draws is known to 1.1 %; the map is not quite linear
    assert abs(np.median(draws.theta.std(axis=0) / fit.models.se) - 1) < 0.02
    assert abs(np.median(np.log(draws.a).std(axis=0) / fit.items.se_log_a) - 1) < 0.02
    assert abs(np.median(draws.d.std(axis=0) / fit.items.se_d) - 1) < 0.02
    middle = np.percentile(draws.b, [16, 84], axis=0)
    assert abs(np.median((middle[1] - middle[0]) / 2 / fit.items.se_b) - 1) < 0.05


def test_unprojected_errors_are_too_wide(simulate):
    data = simulate(24, 40, 300)
    found = fit_joint(data.k, data.n)
    cov = covariance(found)[0]
    raw = cov.variances()
    errors = projected(raw, cov.times, found.state.theta, found.state.a)
    assert np.median(np.sqrt(raw.theta / errors.theta) / found.state.theta.std()) > 1.1


def test_the_projection_has_rank_p_minus_two(simulate):
    fit = irt.fit(simulate(24, 20, 200).responses, method="joint")
    assert fit.estimate.cov_theta is not None
    cov = fit.estimate.cov_theta()
    assert np.allclose(np.diag(cov), fit.models.se**2, rtol=1e-10)
    values = np.linalg.eigvalsh(cov)
    assert np.abs(values[:2]).max() < 1e-12
    assert values[2] > 1e-5


def test_coverage(simulate):
    """95 % intervals over 12 sets of 40 × 300; the full size is bench/irt_coverage.py."""
    hits = {"theta": [], "b": [], "log a": []}
    for seed in range(12):
        data = simulate(300 + seed, 40, 300)
        fit = irt.fit(data.responses, method="joint")
        draws = fit.draws(300, seed=seed)
        low, high = np.percentile(draws.b, [2.5, 97.5], axis=0)
        hits["theta"].append(np.abs(fit.models.theta - data.theta) < 1.96 * fit.models.se)
        hits["b"].append((low < data.b) & (data.b < high))
        hits["log a"].append(np.abs(np.log(fit.items.a / data.a)) < 1.96 * fit.items.se_log_a)
    shares = {name: float(np.mean(hit)) for name, hit in hits.items()}
    assert 0.92 <= shares["theta"] <= 0.98, shares
    assert 0.92 <= shares["b"] <= 0.98, shares
    assert 0.90 <= shares["log a"] <= 0.98, shares


def test_single_precision_sums_are_near(simulate):
    data = simulate(25, 30, 200)
    found = fit_joint(data.k, data.n)
    exact, near = (covariance(found, dtype=t)[0].variances() for t in (np.float64, np.float32))
    assert np.allclose(near.lam, exact.lam, rtol=1e-4)
    assert np.allclose(near.d, exact.d, rtol=1e-4)
