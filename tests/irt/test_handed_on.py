"""What a fit hands on to scoring, banks and refits: errors, priors, flags, against other sources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import irt
from irt.data import DataError, Responses
from irt.joint import cold_start
from irt.methods import METHODS
from irt.mml import mml
from irt.model import Hyper, State, cells_pass
from irt.new_items import score_items
from irt.newton import arrow
from irt.score import score_models


@pytest.fixture(scope="module")
def short(simulate):
    """A short test of many models: method mml."""
    return simulate(91, 120, 16)


@pytest.fixture(scope="module")
def marginal(short):
    return irt.fit(short.responses, method="mml")


def _beta(simulate, seed, n_models, n_items):
    """Scores with a ninth of the variance of right and wrong."""
    data = simulate(seed, n_models, n_items)
    p = expit(data.a[:, None] * (data.theta - data.b[:, None]))
    k = np.random.default_rng(seed).beta(8 * p, 8 * (1 - p))
    names = data.responses.models, data.responses.items
    return Responses(*names, k, np.ones_like(k), fractional=True)


# errors of fractional scores


def test_models_scored_by_fractions_have_sandwich_errors(simulate):
    """√J/H from the definition, cell by cell."""
    data = _beta(simulate, 92, 25, 120)
    fit = irt.fit(data, method="joint")
    scores = fit.score_model(data)
    a, d, (_, sd) = fit.items.a, fit.items.d, fit.population
    for name, at, prior in (("se", scores.theta, sd**-2), ("wle_se", scores.wle, 0.0)):
        for j in range(0, 25, 6):
            p = expit(a * at[j] + d)
            h = np.sum(a**2 * p * (1 - p)) + prior
            meat = np.sum((a * (data.k[:, j] - p)) ** 2) + prior
            assert getattr(scores, name)[j] == pytest.approx(meat**0.5 / h, rel=1e-6), name
    binomial = score_models(data.k, data.n, a, d, mean=fit.population[0], sd=sd)
    # a third, and the prior's share
    assert 0.33 < np.median(scores.se / binomial.se) < 0.45
    assert scores.eap_sd / binomial.eap_sd == pytest.approx(scores.se / binomial.se, rel=1e-9)
    # as the fit itself, whose errors have those of the items in them besides
    assert np.median(scores.se / fit.models.se) == pytest.approx(1, abs=0.1)


def test_items_added_by_fractions_have_sandwich_errors(simulate):
    data = _beta(simulate, 93, 60, 80)
    fit = irt.fit(data, method="joint")
    again = fit.add_items(data)
    for name in ("se_log_a", "se_b", "se_d"):
        ratio = getattr(again, name) / getattr(fit.items, name)
        assert np.median(ratio) == pytest.approx(1, abs=0.05), name
    # without the abilities' errors: H⁻¹ J H⁻¹ of one item, H by differences of the objective
    hyper, k, theta = Hyper(0.1, 0.6, -0.2, 2.0), data.k[:3], fit.models.theta
    got = score_items(k, np.ones_like(k), theta, hyper, fractional=True)
    for i in range(3):

        def loss(x, k=k[i]):
            z = np.exp(x[0]) * theta + x[1]
            prior = ((x[0] - 0.1) / 0.6) ** 2 / 2 + ((x[1] + 0.2) / 2) ** 2 / 2
            return prior - np.sum(k * log_expit(z) + (1 - k) * log_expit(-z))

        x = np.array([np.log(got.a[i]), got.d[i]])
        bread = np.linalg.inv(_second(loss, x))
        e = k[i] - expit(got.a[i] * theta + got.d[i])
        slopes = e * np.vstack([got.a[i] * theta, np.ones_like(theta)])
        cov = bread @ (slopes @ slopes.T + np.diag([0.6**-2, 0.25])) @ bread
        assert got.se_log_a[i] == pytest.approx(cov[0, 0] ** 0.5, rel=1e-4)
        assert got.se_d[i] == pytest.approx(cov[1, 1] ** 0.5, rel=1e-4)


def _second(f, x, h=1e-4):
    """Hessian by central differences."""
    u = h * np.eye(len(x))
    return np.array([
        [(f(x + r + c) - f(x + r - c) - f(x - r + c) + f(x - r - c)) / (4 * h * h) for c in u]
        for r in u
    ])  # fmt: skip


# method mml


def test_mmls_errors_are_brought_to_the_reported_gauge(short, marginal):
    """From those of `mml` (checked against R's in test_mml): λ = ln a, d' = d + a m, b' = (b − m)/s."""
    found = mml(short.k, short.n, prior="empirical")
    m, s = found.theta.mean(), found.theta.std()
    assert abs(m) > 1e-4
    assert s < 0.95
    assert marginal.models.se == pytest.approx(found.sd / s, rel=1e-12)
    assert marginal.items.se_log_a == pytest.approx(found.se_a / found.a, rel=1e-12)
    assert marginal.items.se_b == pytest.approx(found.se_b / s, rel=1e-9)
    toward = np.array([m, 1.0])
    var_d = np.einsum("p,ipq,q->i", toward, found.cov, toward)
    assert marginal.items.se_d == pytest.approx(np.sqrt(var_d), rel=1e-12)
    # wide enough a mean for the sign of the covariance to tell
    z = found.a[:, None] * found.theta + found.d[:, None]
    loss = -np.mean(short.k * log_expit(z) + (1 - short.k) * log_expit(-z))
    assert marginal.log_loss == pytest.approx(loss, rel=1e-12)


def test_items_added_to_an_mml_fit_carry_the_abilities_errors(short, marginal):
    """Var = H⁻¹ + N diag(SD²) Nᵀ; N, how an item follows each ability, by moving that ability."""
    e, k = marginal.estimate, short.k[:1]
    got = marginal.add_items(Responses(short.responses.models, ("again",), k, np.ones_like(k)))
    theta, h = e.state.theta, 1e-4
    sure = score_items(k, np.ones_like(k), theta, marginal.hyper, m=e.m, s=e.s)
    follows = np.empty((2, len(theta)))
    for j in range(len(theta)):
        ends = []
        for sign in (1, -1):
            moved = theta.copy()
            moved[j] += sign * h * e.s
            ends.append(score_items(k, np.ones_like(k), moved, marginal.hyper, m=e.m, s=e.s))
        follows[0, j] = np.log(ends[0].a[0] / ends[1].a[0]) / (2 * h)
        follows[1, j] = (ends[0].d[0] - ends[1].d[0]) / (2 * h)
    extra = follows**2 @ marginal.models.se**2
    assert got.se_log_a[0] ** 2 == pytest.approx(sure.se_log_a[0] ** 2 + extra[0], rel=1e-3)
    assert got.se_d[0] ** 2 == pytest.approx(sure.se_d[0] ** 2 + extra[1], rel=1e-3)
    assert extra[0] > 0.05 * sure.se_log_a[0] ** 2


def test_mml_has_no_joint_draws_and_says_what_has(marginal):
    for ask in (
        lambda: marginal.draws(10),
        lambda: marginal.compare("m0000", "m0001"),
        marginal.rank_probabilities,
    ):
        with pytest.raises(ValueError, match="no joint draws: use method='joint'"):
            ask()


@pytest.mark.parametrize("n", [0, -3])
def test_no_draws_are_none(simulate, n):
    fit = irt.fit(simulate(94, 6, 20).responses, method="joint")
    with pytest.raises(DataError, match=f"n = {n} draws"):
        fit.draws(n)


# anchors' priors


def test_priors_of_new_items_are_the_anchors_moments(simulate):
    """Means, and SDs with four pseudo-items of .5 and 2; they do not move with the new items."""
    data = simulate(95, 40, 30)
    a, b = np.exp(np.linspace(-0.6, 0.9, 8)), np.linspace(-2.0, 1.0, 8)
    anchors = dict(zip(data.responses.items[:8], zip(a, b, strict=True), strict=True))
    h = irt.fit(data.responses, anchors=anchors).hyper
    lam, d = np.log(a), -a * b
    assert h.mu_a == pytest.approx(lam.mean(), rel=1e-12)
    assert h.mu_d == pytest.approx(d.mean(), rel=1e-12)
    assert h.sigma_a == pytest.approx(np.sqrt((8 * lam.var() + 4 * 0.25) / 12), rel=1e-12)
    assert h.sigma_d == pytest.approx(np.sqrt((8 * d.var() + 4 * 4) / 12), rel=1e-12)


def test_priors_of_a_bank_are_its_own_at_its_reported_scale(simulate):
    """ln a' = ln a + ln s, and d' = d + a m at the typical a."""
    data = simulate(96, 40, 60)
    bank = irt.fit(data.responses, method="joint")
    now = irt.fit(data.responses, anchors=bank).hyper
    e, old = bank.estimate, bank.hyper
    assert (now.sigma_a, now.sigma_d) == (old.sigma_a, old.sigma_d)
    ratio = np.median(bank.items.a / e.state.a)
    assert now.mu_a == pytest.approx(old.mu_a + np.log(ratio), rel=1e-9)
    typical = np.exp(old.mu_a)
    zero = (e.state.theta.mean() - 0.0) * typical
    assert now.mu_d == pytest.approx(old.mu_d + zero, abs=1e-9)


# flags


def test_items_on_the_fisher_fallback_are_those_without_a_maximum(simulate):
    """The 2 × 2 curvature of the log posterior by differences, item by item, away from the maximum."""
    data = simulate(97, 25, 60)
    rng = np.random.default_rng(97)
    start = cold_start(data.k, data.n)
    wide = Hyper(sigma_a=3.0, sigma_d=5.0)
    state = State(start.theta, 1 + 0.8 * rng.normal(size=60), 2 * rng.normal(size=60), wide)
    at = cells_pass(data.k, data.n, state, np.float64, keep_e=True)
    everything = np.ones(60, dtype=bool), np.ones(25, dtype=bool)
    found = arrow(state, at, *everything).fisher
    h = state.hyper
    for i in range(60):

        def loss(x, k=data.k[i]):
            z = np.exp(x[0]) * state.theta + x[1]
            prior = ((x[0] - h.mu_a) / h.sigma_a) ** 2 / 2 + ((x[1] - h.mu_d) / h.sigma_d) ** 2 / 2
            return prior - np.sum(k * log_expit(z) + (1 - k) * log_expit(-z))

        least = np.linalg.eigvalsh(_second(loss, np.array([state.lam[i], state.d[i]])))[0]
        assert abs(least) > 1e-3  # none on the edge
        assert found[i] == (least < 0), i
    assert 2 <= found.sum() <= 58


def test_fisher_items_are_flagged_and_named(simulate, monkeypatch):
    data = simulate(98, 8, 20)

    def two(responses, request):
        mask = np.zeros(20, dtype=bool)
        mask[[3, 11]] = True
        return replace(_joint(responses, request), fisher_items=mask)

    _joint = METHODS["joint"]
    monkeypatch.setitem(METHODS, "two", two)
    fit = irt.fit(data.responses, method="two")
    assert fit.verdict.fisher_items == ("i00003", "i00011")
    assert "fisher" in fit.items.flags[3]
    assert "fisher" not in fit.items.flags[4]


def test_slope_z_is_the_score_test_of_a_logistic_regression(simulate):
    """Rao's test of a zero slope: √N times the correlation of answers and abilities."""
    data = simulate(99, 60, 40, missing=0.25)
    fit = irt.fit(data.responses, method="joint")
    for i in range(40):
        asked = data.n[i] > 0
        k, theta = data.k[i, asked], fit.models.theta[asked]
        if 0 < k.sum() < len(k):
            z = np.sqrt(len(k)) * np.corrcoef(k, theta)[0, 1]
            assert fit.items.slope_z[i] == pytest.approx(z, rel=1e-9)


def test_slope_z_of_repeated_answers_counts_each(simulate):
    """k of n as n rows of one answer each."""
    data = simulate(100, 30, 12, attempts=3)
    fit = irt.fit(data.responses, method="joint")
    for i in range(12):
        answers = np.concatenate([[1.0] * int(k) + [0.0] * int(3 - k) for k in data.k[i]])
        z = np.sqrt(90) * np.corrcoef(answers, np.repeat(fit.models.theta, 3))[0, 1]
        assert fit.items.slope_z[i] == pytest.approx(z, rel=1e-9)


def test_a_free_slope_by_scipy_has_the_sign_and_about_the_size(simulate):
    """Wald's z of the free fit: equal to the score test as the slope goes to 0."""
    data = simulate(101, 400, 60)
    rng = np.random.default_rng(101)
    data.k[0] = rng.random(400) < 0.5  # nothing to do with ability
    fit = irt.fit(data.responses, method="joint")
    k, theta = data.k[0], fit.models.theta

    def loss(x):
        z = x[0] * theta + x[1]
        return -np.sum(k * log_expit(z) + (1 - k) * log_expit(-z))

    best = minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    wald = best[0] / np.sqrt(np.linalg.inv(_second(loss, best))[0, 0])
    assert fit.items.slope_z[0] == pytest.approx(wald, abs=0.05 + 0.02 * abs(wald))
