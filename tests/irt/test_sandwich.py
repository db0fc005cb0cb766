"""Fractional scores: the sandwich against its dense form, its draws, and when it matters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import irt
from irt.data import DataError, Responses
from irt.joint import fit_joint
from irt.sandwich import sandwich


def _fractional(simulate, seed, n_models=15, n_items=30, precision=8.0):
    """Scores from a beta law about the model's probability: less spread than right or wrong."""
    data = simulate(seed, n_models, n_items)
    rng = np.random.default_rng(seed + 1)
    p = expit(data.a[:, None] * (data.theta - data.b[:, None]))
    return data, rng.beta(precision * p, precision * (1 - p))


def _dense(k, n, state):
    """Hessian and meat, cell by cell from the definition."""
    size, width = k.shape
    a, theta, h = np.exp(state.lam), state.theta, state.hyper
    p = expit(a[:, None] * theta + state.d[:, None])
    bread, meat = (np.zeros((width + 2 * size,) * 2) for _ in range(2))
    for i in range(size):
        for j in range(width):
            w, e = n[i, j] * p[i, j] * (1 - p[i, j]), k[i, j] - n[i, j] * p[i, j]
            at = [j, width + i, width + size + i]
            slope = np.array([a[i], a[i] * theta[j], 1.0])
            bread[np.ix_(at, at)] += w * np.outer(slope, slope)
            meat[np.ix_(at, at)] += e * e * np.outer(slope, slope)
            bread[at[0], at[1]] -= a[i] * e
            bread[at[1], at[0]] -= a[i] * e
            bread[at[1], at[1]] -= a[i] * theta[j] * e
    precision = np.diag(
        np.array([h.sigma_theta] * width + [h.sigma_a] * size + [h.sigma_d] * size) ** -2.0
    )
    inverse = np.linalg.inv(bread + precision)
    return inverse @ (meat + precision) @ inverse


@pytest.mark.parametrize(("n_models", "n_items"), [(12, 20), (30, 10)])
def test_against_the_dense_form(simulate, n_models, n_items):
    _, k = _fractional(simulate, 61, n_models, n_items)
    n = (np.random.default_rng(2).random(k.shape) > 0.2).astype(float)
    found = fit_joint(k * n, n)
    got, want = sandwich(found), _dense(k * n, n, found.state)
    i = np.arange(n_items)
    for ours, dense in (
        (got.cov_theta, want[:n_models, :n_models]),
        (got.cov_lam, want[n_models : n_models + n_items, :n_models]),
        (got.cov_d, want[n_models + n_items :, :n_models]),
        (got.errors.lam, np.diag(want)[n_models : n_models + n_items]),
        (got.errors.d, np.diag(want)[n_models + n_items :]),
        (got.errors.lam_d, want[n_models + i, n_models + n_items + i]),
    ):
        assert np.abs(ours - dense).max() < 1e-10 * max(1, np.abs(dense).max())


def test_draws_have_that_covariance(simulate):
    _, k = _fractional(simulate, 62, 8, 10)
    found = fit_joint(k, np.ones_like(k))
    got, want = sandwich(found), _dense(k, np.ones_like(k), found.state)
    drawn = np.vstack(got.deviations(8000, np.random.default_rng(3)))
    scale = np.sqrt(np.diag(want))
    assert np.abs((np.cov(drawn) - want) / np.outer(scale, scale)).max() < 6 * 0.0112


def test_errors_follow_the_spread_of_the_scores(simulate):
    """Scores with a ninth of the binomial variance: errors about a third, and they cover."""
    hits, ratios = [], []
    for seed in range(70, 76):
        data, k = _fractional(simulate, seed, 30, 150)
        names = (data.responses.models, data.responses.items)
        fit = irt.fit(Responses(*names, k, data.n, fractional=True), method="joint")
        hits.append(np.abs(fit.models.theta - data.theta) < 1.96 * fit.models.se)
        naive = irt.fit(Responses(*names, k, data.n), method="joint")  # the fault: taken for counts
        ratios.append(np.median(fit.models.se / naive.models.se))
        assert any("sandwich" in note for note in fit.verdict.notes)
    assert 0.88 <= np.mean(hits) <= 0.99
    assert 0.25 < np.mean(ratios) < 0.45  # √(1/9) = .33


def test_fractions_must_be_declared():
    table = {"model": list("abcd"), "item": [1] * 4, "k": [0.5, 0, 1, 0.2]}
    with pytest.raises(DataError, match="declare scores='fractional'"):
        irt.fit(table)
    with pytest.raises(DataError, match="mml takes no fractional"):
        irt.fit(Responses.from_table(table, scores="fractional"), method="mml")
