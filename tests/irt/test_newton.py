"""The algebra of one step: gradient and Hessian against differences, both sides of the arrow, CG."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_expit

from irt.model import Hyper, State, cells_pass, gradient
from irt.newton import arrow, solve

HYPER = Hyper(0.3, 0.7, -0.4, 1.7, 0.2, 1.3)


def _point(simulate, n_models, n_items):
    """Counts with missing cells and a state that is no maximum."""
    data = simulate(4, n_models, n_items, attempts=3, missing=0.3)
    rng = np.random.default_rng(5)
    state = State(
        rng.normal(size=n_models), 0.5 * rng.normal(size=n_items), rng.normal(size=n_items), HYPER
    )
    return data.k, data.n, state


def _vector(state):
    return np.concatenate([state.theta, state.lam, state.d])


def _log_posterior(k, n, x):
    """Written out from the definition, by scipy's own logistic functions."""
    size, width = k.shape
    theta, lam, d = x[:width], x[width : width + size], x[width + size :]
    z = np.exp(lam)[:, None] * theta + d[:, None]
    h = HYPER
    prior = sum(
        np.sum((v - m) ** 2) / s**2
        for v, m, s in (
            (theta, h.mu_theta, h.sigma_theta), (lam, h.mu_a, h.sigma_a), (d, h.mu_d, h.sigma_d),
        )
    )  # fmt: skip
    return np.sum(k * log_expit(z) + (n - k) * log_expit(-z)) - prior / 2


def _dense(k, n, state, *, observed):
    """The negative Hessian as one matrix, cell by cell from the definition."""
    size, width = k.shape
    a, theta = np.exp(state.lam), state.theta
    p = expit(a[:, None] * theta + state.d[:, None])
    h = HYPER
    full = np.zeros((width + 2 * size,) * 2)
    for i in range(size):
        for j in range(width):
            w, e = n[i, j] * p[i, j] * (1 - p[i, j]), k[i, j] - n[i, j] * p[i, j]
            at = [j, width + i, width + size + i]
            slope = np.array([a[i], a[i] * theta[j], 1.0])  # of z in (θ, λ, d)
            full[np.ix_(at, at)] += w * np.outer(slope, slope)
            if observed:
                full[at[0], at[1]] -= a[i] * e
                full[at[1], at[0]] -= a[i] * e
                full[at[1], at[1]] -= a[i] * theta[j] * e
    precision = [h.sigma_theta] * width + [h.sigma_a] * size + [h.sigma_d] * size
    return full + np.diag(np.array(precision) ** -2.0)


def _all(shape):
    return np.ones(shape[0], dtype=bool), np.ones(shape[1], dtype=bool)


def test_value_and_gradient_against_the_definition(simulate):
    k, n, state = _point(simulate, 7, 9)
    at = cells_pass(k, n, state, np.float64)
    x = _vector(state)
    assert at.log_lik + state.log_prior() == pytest.approx(_log_posterior(k, n, x), rel=1e-13)
    g = np.concatenate(gradient(state, at))
    step = 1e-5
    numeric = [
        (_log_posterior(k, n, x + step * u) - _log_posterior(k, n, x - step * u)) / (2 * step)
        for u in np.eye(len(x))
    ]
    assert np.abs(g - numeric).max() < 1e-7


def test_observed_hessian_against_differences_of_the_gradient(simulate):
    k, n, state = _point(simulate, 7, 9)
    x, step = _vector(state), 1e-5

    def slope(point):
        moved = State(point[:7], point[7:16], point[16:], HYPER)
        return np.concatenate(gradient(moved, cells_pass(k, n, moved, np.float64)))

    numeric = np.array(
        [(slope(x - step * u) - slope(x + step * u)) / (2 * step) for u in np.eye(25)]
    )
    assert np.abs(_dense(k, n, state, observed=True) - numeric).max() < 1e-7


@pytest.mark.parametrize("form", ["fisher", "observed"])
@pytest.mark.parametrize(("n_models", "n_items"), [(12, 9), (9, 30), (40, 15)])
@pytest.mark.parametrize("direct_limit", [500, 0])
def test_a_step_solves_the_dense_system(simulate, form, n_models, n_items, direct_limit):
    """By the models' complement, the items' one (40 × 15), and conjugate gradients (limit 0)."""
    k, n, state = _point(simulate, n_models, n_items)
    if form == "observed":  # near a maximum, or the observed form is not positive definite
        from irt.joint import fit_joint

        found = fit_joint(k, n).state
        state = State(found.theta + 0.05, found.lam, found.d, HYPER)
    at = cells_pass(k, n, state, np.float64, keep_e=form == "observed")
    system = arrow(state, at, *_all(k.shape), pure_fisher=form == "fisher")
    assert not system.fisher.any()
    g = gradient(state, at)
    step = solve(system, g, np.float64, direct_limit)
    assert step is not None
    exact = np.linalg.solve(_dense(k, n, state, observed=form == "observed"), np.concatenate(g))
    error = np.abs(np.concatenate(step) - exact).max() / np.abs(exact).max()
    assert error < (1e-10 if direct_limit else 2e-3)


def test_frozen_parts_do_not_move_and_the_rest_is_the_reduced_system(simulate):
    k, n, state = _point(simulate, 12, 9)
    items, theta = _all(k.shape)
    items[[1, 4]] = False
    theta[[0, 7, 8]] = False
    at = cells_pass(k, n, state, np.float64)
    g = gradient(state, at)
    step = solve(arrow(state, at, items, theta, pure_fisher=True), g, np.float64, 500)
    assert step is not None
    free = np.concatenate([theta, items, items])
    full = _dense(k, n, state, observed=False)[np.ix_(free, free)]
    exact = np.zeros(len(free))
    exact[free] = np.linalg.solve(full, np.concatenate(g)[free])
    assert np.abs(np.concatenate(step) - exact).max() < 1e-11


def test_a_step_with_frozen_parts_by_the_items_side(simulate):
    k, n, state = _point(simulate, 40, 6)
    items, theta = _all(k.shape)
    items[2] = theta[5] = False
    at = cells_pass(k, n, state, np.float64)
    g = gradient(state, at)
    step = solve(arrow(state, at, items, theta, pure_fisher=True), g, np.float64, 500)
    assert step is not None
    free = np.concatenate([theta, items, items])
    exact = np.zeros(len(free))
    full = _dense(k, n, state, observed=False)[np.ix_(free, free)]
    exact[free] = np.linalg.solve(full, np.concatenate(g)[free])
    got = np.concatenate(step)
    assert got[40 + 2] == got[46 + 2] == 0
    assert np.abs(got - exact)[free].max() < 1e-11


def test_single_precision_passes_are_near(simulate):
    k, n, state = _point(simulate, 30, 200)
    exact, near = (cells_pass(k, n, state, t, keep_e=True) for t in (np.float64, np.float32))
    assert near.w.dtype == np.float32
    assert near.log_lik == pytest.approx(exact.log_lik, rel=1e-6)
    for name in ("e0", "e1", "w0", "w1", "w2", "g", "info"):
        assert np.abs(getattr(near, name) - getattr(exact, name)).max() < 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_points_stay_finite(dtype):
    state = State(np.array([-30.0, 0.0, 30.0]), np.array([3.0, 4.0]), np.array([100.0, -100.0]))
    k, n = np.array([[1.0, 0, 1], [0, 0, 1]]), np.ones((2, 3))
    at = cells_pass(k, n, state, dtype)
    assert np.isfinite(at.log_lik)
    assert all(np.isfinite(v).all() for v in gradient(state, at))


def test_sums_follow_a_change_of_the_gauge(simulate):
    k, n, state = _point(simulate, 8, 11)
    moved = state.standardised(0.7, 1.9)
    one = cells_pass(k, n, state, np.float64).standardised(0.7, 1.9)
    two = cells_pass(k, n, moved, np.float64)
    for name in ("log_lik", "e0", "e1", "w0", "w1", "w2", "g", "info", "w"):
        assert np.allclose(getattr(one, name), getattr(two, name), rtol=1e-11, atol=1e-11), name
