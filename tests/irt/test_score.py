"""New models on known items, new items on known models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, log_expit

import irt
from irt.data import DataError
from irt.new_items import score_items
from irt.score import score_models

A, D = np.array([0.6, 1.0, 1.4, 2.0, 0.9]), np.array([1.0, 0.2, -0.5, -1.5, 0.0])
K = np.array([[1, 0, 2], [1, 0, 3], [0, 0, 1], [0, 0, 1], [1, 0, 0]], dtype=float)
N = np.array([[1, 1, 2], [1, 1, 3], [1, 1, 1], [1, 1, 1], [0, 1, 0]], dtype=float)
K[4, 0] = 0


def _log_lik(theta, j):
    z = A * theta + D
    return float(np.sum(K[:, j] * log_expit(z) + (N - K)[:, j] * log_expit(-z)))


@pytest.mark.parametrize("j", range(3))
def test_map_eap_and_wle_against_scipy(j):
    """A mixed pattern, all wrong, all right; mean .3, SD 1.2."""
    scores = score_models(K, N, A, D, mean=0.3, sd=1.2)

    def slope(theta):
        p = expit(A * theta + D)
        return np.sum(A * (K[:, j] - N[:, j] * p)) - (theta - 0.3) / 1.44

    assert scores.theta[j] == pytest.approx(brentq(slope, -10, 10, xtol=1e-13), abs=1e-8)
    p = expit(A * scores.theta[j] + D)
    information = np.sum(N[:, j] * A**2 * p * (1 - p)) + 1 / 1.44
    assert scores.se[j] == pytest.approx(information**-0.5, rel=1e-8)

    def density(theta, power):
        return theta**power * np.exp(_log_lik(theta, j) - (theta - 0.3) ** 2 / 2.88)

    total, first, second = (quad(density, -15, 15, args=(m,), epsabs=1e-14)[0] for m in range(3))
    assert scores.eap[j] == pytest.approx(first / total, abs=1e-4)
    assert scores.eap_sd[j] == pytest.approx(
        (second / total - (first / total) ** 2) ** 0.5, abs=1e-4
    )

    def weighted(theta):
        p = expit(A * theta + D)
        w = N[:, j] * p * (1 - p)
        return np.sum(A * (K[:, j] - N[:, j] * p)) + np.sum(A**3 * w * (1 - 2 * p)) / (
            2 * np.sum(A**2 * w)
        )

    assert scores.wle[j] == pytest.approx(brentq(weighted, -12, 12, xtol=1e-13), abs=1e-7)
    p = expit(A * scores.wle[j] + D)
    assert scores.wle_se[j] == pytest.approx(np.sum(N[:, j] * A**2 * p * (1 - p)) ** -0.5, rel=1e-6)


def test_warm_on_equal_items_is_the_logit_with_half_a_success():
    """For n Rasch items of one difficulty WLE is log((k + ½)/(n − k + ½)): J/(2I) = ½ − p there."""
    k = np.repeat(np.arange(8.0)[None], 7, axis=0)
    k = (np.arange(7)[:, None] < k).astype(float)
    scores = score_models(k, np.ones((7, 8)), np.ones(7), np.zeros(7))
    right = np.arange(8)
    assert np.allclose(scores.wle, np.log((right + 0.5) / (7 - right + 0.5)), atol=1e-9)


def test_one_model_alone_is_the_same_model():
    together = score_models(K, N, A, D)
    for j in range(3):
        alone = score_models(K[:, [j]], N[:, [j]], A, D)
        for name in ("theta", "se", "eap", "eap_sd", "wle", "wle_se"):
            assert getattr(alone, name)[0] == pytest.approx(getattr(together, name)[j], abs=1e-9)
        assert alone.n_items[0] == together.n_items[j]


def test_a_model_without_answers_has_the_prior_and_no_wle():
    scores = score_models(np.zeros((5, 1)), np.zeros((5, 1)), A, D, mean=0.4, sd=1.1)
    assert (scores.theta[0], scores.se[0]) == (pytest.approx(0.4), pytest.approx(1.1))
    assert scores.eap_sd[0] == pytest.approx(1.1, rel=1e-4)
    assert np.isnan(scores.wle[0])


def test_a_calibration_model_scored_anew_has_its_own_ability(simulate):
    data = simulate(41, 30, 150, missing=0.3)
    fit = irt.fit(data.responses, method="joint")
    scores = fit.score_model(data.responses)
    assert scores.model == data.responses.models
    assert np.abs(scores.theta - fit.models.theta).max() < 1e-7
    few = [{"model": "new", "item": "i00004", "k": 1}, {"model": "new", "item": "i00009", "k": 0}]
    (row,) = fit.score_model(few).to_dicts()
    assert (row["model"], row["n_items"]) == ("new", 2)
    with pytest.raises(DataError, match="not in the bank"):
        fit.score_model([{"model": "new", "item": "elsewhere", "k": 1}])


def test_abilities_are_covered(simulate):
    """Held-out models on a well-known bank: 95 % of them within 1.96 SE, none told apart by luck."""
    data = simulate(42, 400, 100)
    scores = score_models(data.k, data.n, data.a, -data.a * data.b)
    for estimate, se in (
        (scores.theta, scores.se),
        (scores.eap, scores.eap_sd),
        (scores.wle, scores.wle_se),
    ):
        assert abs(np.mean(np.abs(estimate - data.theta) < 1.96 * se) - 0.95) < 0.033


def test_calibration_items_scored_anew_are_themselves(simulate):
    data = simulate(44, 40, 120)
    fit = irt.fit(data.responses, method="joint")
    again = fit.add_items(data.responses)
    assert all(again.converged)
    assert np.abs(again.a / fit.items.a - 1).max() < 1e-6
    assert np.abs(again.d - fit.items.d).max() < 1e-6
    # the abilities' errors carried through are nearly all of the joint fit's own
    assert abs(np.median(again.se_b / fit.items.se_b) - 1) < 0.03
    assert abs(np.median(again.se_log_a / fit.items.se_log_a) - 1) < 0.03


def test_new_items_are_the_penalised_maximum(simulate):
    """By scipy's minimiser, item by item, θ known."""
    from scipy.optimize import minimize

    from irt.model import Hyper

    data = simulate(45, 60, 6)
    hyper = Hyper(0.1, 0.6, -0.2, 2.0)
    got = score_items(data.k, data.n, data.theta, hyper)
    for i in range(6):

        def loss(x, k=data.k[i]):
            z = np.exp(x[0]) * data.theta + x[1]
            prior = ((x[0] - 0.1) / 0.6) ** 2 / 2 + ((x[1] + 0.2) / 2) ** 2 / 2
            return prior - np.sum(k * log_expit(z) + (1 - k) * log_expit(-z))

        best = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-9})
        assert np.allclose([np.log(got.a[i]), got.d[i]], best.x, atol=1e-5)
        # curvature by central differences
        h, x = 1e-4, best.x
        u = np.eye(2) * h
        second = np.array([
            [(loss(x + u[r] + u[c]) - loss(x + u[r] - u[c]) - loss(x - u[r] + u[c])
              + loss(x - u[r] - u[c])) / (4 * h * h) for c in range(2)] for r in range(2)
        ])  # fmt: skip
        cov = np.linalg.inv(second)
        assert got.se_log_a[i] == pytest.approx(cov[0, 0] ** 0.5, rel=1e-3)
        assert got.se_d[i] == pytest.approx(cov[1, 1] ** 0.5, rel=1e-3)


def test_uncertain_abilities_widen_the_items(simulate):
    data = simulate(46, 30, 10)
    sure = score_items(data.k, data.n, data.theta)
    unsure = score_items(data.k, data.n, data.theta, cov_theta=0.09 * np.eye(30))
    assert (unsure.se_d > sure.se_d).all()
    assert (unsure.se_log_a > sure.se_log_a).all()
    assert np.array_equal(unsure.a, sure.a)


def test_items_for_models_that_are_not_there(simulate):
    fit = irt.fit(simulate(44, 40, 120).responses, method="joint")
    with pytest.raises(DataError, match="not in the fit"):
        fit.add_items([{"model": "nobody", "item": "new", "k": 1}])
    few = [{"model": m, "item": "new", "k": int(j > 20)} for j, m in enumerate(fit.models.model)]
    (row,) = fit.add_items(few).to_dicts()
    assert (row["item"], row["n_models"]) == ("new", 40)
