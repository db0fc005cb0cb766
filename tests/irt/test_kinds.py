"""Guessing (3PL) and ordered scores (GRM) through `irt.fit`: against definitions and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

import irt
from irt.bank import Bank
from irt.data import DataError, Responses
from irt.graded import grm
from irt.mml import ItemPrior, mml
from irt.score import score_models
from irt.testlets import find_testlets

A, D = np.array([0.8, 1.2, 1.6, 2.0, 1.0]), np.array([1.0, 0.2, -0.5, -1.5, 0.0])
C = np.array([0.25, 0.2, 0.5, 0.25, 0.0])
K = np.array([[1, 3], [1, 2], [0, 1], [1, 3], [0, 2]], dtype=float)
N = np.array([[1, 3], [1, 3], [1, 2], [1, 3], [1, 3]], dtype=float)


def _responses(k, n):
    return Responses.from_matrix(k.T, n.T)


@pytest.fixture(scope="module")
def guessed():
    """Four options an item: a quarter of what is not known is right by luck."""
    rng = np.random.default_rng(81)
    theta, a, b = rng.normal(size=1500), np.exp(0.3 * rng.normal(size=20)), rng.normal(size=20)
    p = 0.25 + 0.75 * expit(a[:, None] * (theta - b[:, None]))
    k = (rng.random(p.shape) < p).astype(float)
    return _responses(k, np.ones_like(k)), theta, a, b


@pytest.fixture(scope="module")
def three(guessed):
    return irt.fit(guessed[0], model="3pl", choices=4)


def _reported(fit, x):
    """Abilities or difficulties of the population N(0, 1), in the gauge of the fit."""
    mean, sd = fit.population
    return mean + sd * x


def test_guessing_is_allowed_for(guessed, three):
    data, _, a, b = guessed
    assert (three.kind, three.method) == ("3pl", "mml")
    assert three.verdict.converged
    assert "c = 1/choices" in three.parameterisation
    plain = irt.fit(data)
    # three of four hard items are right by luck as often as known: the 2PL calls them easier
    hard = b > 0.5
    off = [np.abs(fit.items.b - _reported(fit, b))[hard].mean() for fit in (three, plain)]
    assert off[0] < 0.2 < off[1]
    assert np.sqrt(np.mean(np.log(three.items.a / a * three.population[1]) ** 2)) < 0.2
    inside = np.abs(three.items.b - _reported(three, b)) < 1.96 * three.items.se_b
    assert inside.mean() >= 0.85
    assert three.log_loss < plain.log_loss


def test_it_is_the_mml_fit_in_the_reported_gauge(guessed, three):
    data, *_ = guessed
    found = mml(data.k, data.n, c=0.25, prior="empirical")
    assert isinstance(found.prior, ItemPrior)
    m, s = found.theta.mean(), found.theta.std()
    assert three.models.theta == pytest.approx((found.theta - m) / s, abs=1e-12)
    assert three.items.b == pytest.approx((found.b - m) / s, abs=1e-12)
    assert three.items.se_b == pytest.approx(found.se_b / s, rel=1e-9)
    p = 0.25 + 0.75 * expit(found.a[:, None] * found.theta + found.d[:, None])
    assert three.probabilities() == pytest.approx(p, abs=1e-12)
    loss = -np.mean(data.k * np.log(p) + (1 - data.k) * np.log(1 - p))
    assert three.log_loss == pytest.approx(loss, rel=1e-10)


def test_items_without_choices_are_not_guessed(guessed):
    data, *_ = guessed
    few = dict.fromkeys(data.items[:10], 4)
    fit = irt.fit(data, model="3pl", choices=few)
    low = fit.probabilities()[:, fit.models.theta.argmin()]
    assert (low[:10] >= 0.25).all()
    assert low[10:].min() < 0.25


@pytest.mark.parametrize("j", range(2))
def test_scores_under_guessing_against_scipy(j):
    """Mode, posterior mean and Warm's estimate from their definitions; mean .3, SD 1.2."""
    scores = score_models(K, N, A, D, mean=0.3, sd=1.2, c=C)

    def p_of(theta):
        return C + (1 - C) * expit(A * theta + D)

    def log_post(theta):
        p = p_of(theta)
        return (
            np.sum(K[:, j] * np.log(p) + (N - K)[:, j] * np.log(1 - p)) - (theta - 0.3) ** 2 / 2.88
        )

    best = minimize_scalar(lambda t: -log_post(t), bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})  # fmt: skip
    assert scores.theta[j] == pytest.approx(best.x, abs=1e-6)

    def slopes(theta, h=1e-5):
        first = (p_of(theta + h) - p_of(theta - h)) / (2 * h)
        second = (p_of(theta + h) - 2 * p_of(theta) + p_of(theta - h)) / h**2
        return first, second

    def information(theta):
        p, (first, _) = p_of(theta), slopes(theta)
        return np.sum(N[:, j] * first**2 / (p * (1 - p)))

    assert scores.se[j] == pytest.approx(
        (information(scores.theta[j]) + 1 / 1.44) ** -0.5, rel=1e-6
    )
    total, first, second = (
        quad(lambda t, m=m: t**m * np.exp(log_post(t)), -12, 12, epsabs=1e-14)[0] for m in range(3)
    )
    assert scores.eap[j] == pytest.approx(first / total, abs=2e-3)
    assert scores.eap_sd[j] == pytest.approx(
        (second / total - (first / total) ** 2) ** 0.5, abs=2e-3
    )

    def warm(theta):
        p, (one, two) = p_of(theta), slopes(theta)
        score = np.sum((K[:, j] - N[:, j] * p) * one / (p * (1 - p)))
        bias = np.sum(N[:, j] * one * two / (p * (1 - p)))
        return score + bias / (2 * information(theta))

    assert scores.wle[j] == pytest.approx(brentq(warm, -4, 6), abs=1e-4)
    assert scores.wle_se[j] == pytest.approx(information(scores.wle[j]) ** -0.5, rel=1e-4)


def test_a_calibration_model_scored_anew(guessed, three):
    scored = three.score_model(guessed[0])
    assert np.abs(scored.eap - three.models.theta).max() < 0.05
    assert three.person_fit().l_z.std() == pytest.approx(1, abs=0.3)
    assert abs(np.median(three.item_fit().outfit) - 1) < 0.1
    assert find_testlets(three).groups == ()


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(82)
    theta, a = rng.normal(size=800), np.exp(0.3 * rng.normal(size=12))
    b = np.array([-1.0, 0.0, 1.0]) + 0.4 * rng.normal(size=(12, 1))
    above = expit(a[:, None, None] * (theta - b[:, :, None]))
    k = (rng.random((12, 1, 800)) < above).sum(axis=1).astype(float)
    n = 3.0 * (rng.random(k.shape) < 0.9)
    data = _responses(k * (n > 0), n)
    return data, irt.fit(data, model="grm"), theta, a, b


def test_the_graded_fit_is_grm_in_the_reported_gauge(graded):
    data, fit, *_ = graded
    found = grm(np.where(data.n > 0, data.k, -1), 4)
    m, s = found.theta.mean(), found.theta.std()
    assert (fit.kind, fit.method) == ("grm", "mml")
    assert fit.verdict.converged
    assert fit.models.theta == pytest.approx((found.theta - m) / s, abs=1e-12)
    assert fit.models.se == pytest.approx(found.sd / s, rel=1e-12)
    assert fit.estimate.thresholds == pytest.approx((found.b - m) / s, abs=1e-12)
    assert fit.estimate.se_thresholds == pytest.approx(found.se_b / s, rel=1e-12)
    # b and d of an item are the means over its levels; errors by the delta method
    assert fit.items.b == pytest.approx(((found.b - m) / s).mean(axis=1), abs=1e-12)
    assert fit.items.d == pytest.approx((found.d + found.a[:, None] * m).mean(axis=1), abs=1e-12)
    slope = np.column_stack(
        [-found.b.mean(axis=1), np.repeat(-1 / found.a[:, None] / 3, 3, axis=1)]
    )
    var_b = np.einsum("ir,irs,is->i", slope, found.cov, slope)
    assert fit.items.se_b == pytest.approx(np.sqrt(var_b) / s, rel=1e-9)
    slope = np.column_stack([found.a * m, np.full((12, 3), 1 / 3)])
    var_d = np.einsum("ir,irs,is->i", slope, found.cov, slope)
    assert fit.items.se_d == pytest.approx(np.sqrt(var_d), rel=1e-9)


def test_truth_of_the_graded_model_comes_back(graded):
    _, fit, theta, a, b = graded
    assert np.sqrt(np.mean(np.log(fit.items.a / a * fit.population[1]) ** 2)) < 0.15
    hit = np.abs(fit.estimate.thresholds - _reported(fit, b)) < 1.96 * fit.estimate.se_thresholds
    assert 0.83 <= hit.mean() <= 1
    assert np.corrcoef(fit.models.theta, theta)[0, 1] > 0.8


def test_a_graded_items_probability_is_its_share_of_points(graded):
    data, fit, *_ = graded
    a, b, theta = fit.items.a, fit.estimate.thresholds, fit.models.theta
    share, log_lik = np.zeros(data.k.shape), 0.0
    for i, j in np.ndindex(*share.shape):
        above = np.array([1, *(1 / (1 + np.exp(-a[i] * (theta[j] - b[i])))), 0])
        level = above[:-1] - above[1:]
        share[i, j] = level @ np.arange(4) / 3
        if data.n[i, j]:
            log_lik += np.log(level[int(data.k[i, j])])
    assert fit.probabilities() == pytest.approx(share, abs=1e-12)
    assert fit.log_loss == pytest.approx(-log_lik / data.n.sum(), rel=1e-9)


def test_what_a_graded_fit_does_not_give_is_said(graded):
    data, fit, *_ = graded
    for ask, what in (
        (lambda: fit.score_model(data), "scoring models"),
        (lambda: fit.add_items(data), "adding items"),
        (fit.item_fit, "item fit"),
        (fit.person_fit, "person fit"),
        (lambda: fit.dif({}), "DIF"),
    ):
        with pytest.raises(DataError, match=f"{what} is there for model .*, not for grm"):
            ask()
    with pytest.raises(DataError, match="two-parameter"):
        Bank.of(fit)
    assert find_testlets(fit).tested == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "4pl"}, "no model '4pl'; there are 2pl, 3pl, grm"),
        ({"model": "3pl"}, "needs choices="),
        ({"choices": 4}, "takes no choices="),
        ({"model": "3pl", "choices": 1}, "at least 2"),
        ({"model": "3pl", "choices": {"i0000": 4, "zz": 4}}, "1 items with choices are not here"),
        ({"model": "3pl", "choices": {"i0000": 4.5}}, "item 'i0000' has 4.5 choices"),
        ({"model": "3pl", "choices": 4, "method": "joint"}, "fitted by method='mml'"),
        ({"model": "grm", "anchors": {"i0000": (1, 0)}}, "without anchors"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(guessed, options, message):
    with pytest.raises(DataError, match=message) as refused:
        irt.fit(guessed[0], **options)
    assert "\n" not in str(refused.value)


def test_scores_that_are_not_graded_are_refused():
    k = np.array([[0, 1, 2, 1, 0], [2, 1, 0, 0, 1.0]])
    n = np.full_like(k, 2)
    with pytest.raises(DataError, match="n the same for all items"):
        irt.fit(_responses(k, n + np.array([[0], [1]])), model="grm")
    with pytest.raises(DataError, match=r"item 'i0001': score 2 was never given \(1 such items\)"):
        irt.fit(_responses(np.minimum(k, [[2], [1]]), n), model="grm")
