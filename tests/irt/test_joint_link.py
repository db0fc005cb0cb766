"""Human minutes in the likelihood: derivatives, EM against the marginal likelihood, what it helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import irt
from irt._joint_link import JointLink
from irt.data import DataError
from irt.horizon import horizons
from irt.joint import fit_joint
from irt.link import choose_anchors, fit_link, joint_fit
from irt.model import State, cells_pass, gradient
from irt.newton import arrow, solve
from irt.prepare import Excluded
from irt.trend import all_levels

P, ITEMS, ROWS = 7, 9, np.array([1, 4, 5, 8])


@pytest.fixture(scope="module")
def point(simulate):
    """Counts and a state with a line through four anchors' minutes, which is no maximum."""
    data = simulate(4, P, ITEMS, attempts=3, missing=0.3)
    rng = np.random.default_rng(6)
    y = rng.normal(2.0, 1.0, len(ROWS))
    link = JointLink(ROWS, y, 1.7, 0.9, 0.6, np.zeros(len(ROWS)))
    state = State(
        rng.normal(size=P), 0.4 * rng.normal(size=ITEMS), rng.normal(size=ITEMS), link=link
    )
    return data.k, data.n, state


def _vector(state):
    return np.concatenate([state.theta, state.lam, state.d])


def _at(state, x):
    return replace(state, theta=x[:P], lam=x[P : P + ITEMS], d=x[P + ITEMS :])


def _value(k, n, state):
    """Log posterior, the minutes' part by scipy's normal density."""
    plain = replace(state, link=None)
    b = -state.d[ROWS] / np.exp(state.lam[ROWS])
    link = state.link
    minutes = norm.logpdf(link.log_minutes, link.alpha + link.beta * b, link.tau).sum()
    return cells_pass(k, n, plain, np.float64).log_lik + plain.log_prior() + minutes


def _slope(k, n, state):
    return np.concatenate(gradient(state, cells_pass(k, n, state, np.float64)))


def test_the_gradient_is_that_of_differences(point):
    k, n, state = point
    x, h = _vector(state), 1e-5
    numeric = [
        (_value(k, n, _at(state, x + h * u)) - _value(k, n, _at(state, x - h * u))) / (2 * h)
        for u in np.eye(len(x))
    ]
    assert np.abs(_slope(k, n, state) - numeric).max() < 1e-7


def test_the_observed_step_solves_the_system_of_differences(simulate):
    """Near a maximum, where no item falls back on Fisher's form."""
    data = simulate(8, 12, ITEMS, attempts=3)
    y = np.array([0.5, 1.0, 3.0, 2.0])
    link = JointLink(ROWS, y, 1.7, 0.9, 0.6, np.zeros(len(ROWS)))
    found = fit_joint(data.k, data.n).state
    state = replace(found, theta=found.theta + 0.03, link=link)
    x, h = _vector(state), 1e-5

    def moved(v):
        return replace(state, theta=v[:12], lam=v[12 : 12 + ITEMS], d=v[12 + ITEMS :])

    numeric = np.array([
        (_slope(data.k, data.n, moved(x - h * u)) - _slope(data.k, data.n, moved(x + h * u))) / (2 * h)
        for u in np.eye(len(x))
    ])  # fmt: skip
    at = cells_pass(data.k, data.n, state, np.float64, keep_e=True)
    free = np.ones(ITEMS, dtype=bool), np.ones(12, dtype=bool)
    system = arrow(state, at, *free)
    assert not system.fisher.any()
    step = solve(system, gradient(state, at), np.float64, 500)
    exact = np.linalg.solve(numeric, _slope(data.k, data.n, state))
    assert np.abs(np.concatenate(step) - exact).max() < 1e-6 * np.abs(exact).max()


def test_a_forgotten_term_is_found_by_the_differences(point):
    """The planted fault: a gradient without the minutes differs by far more than rounding."""
    k, n, state = point
    gap = _slope(k, n, state) - _slope(k, n, replace(state, link=None))
    assert np.abs(gap).max() > 0.1
    assert np.flatnonzero(gap).tolist() == [*(P + ROWS), *(P + ITEMS + ROWS)]


def test_the_gauge_says_nothing(point):
    _, _, state = point
    other = state.standardised(0.7, 1.9)
    same = other.link.log_density(other.lam, other.d)
    assert same == pytest.approx(state.link.log_density(state.lam, state.d), rel=1e-12)


def test_em_ends_at_the_maximum_of_the_marginal_likelihood():
    """With b_i ~ N(m_i, v_i) the minutes are N(α + β m_i, τ² + β² v_i): maximised by scipy."""
    rng = np.random.default_rng(1)
    b, v = rng.normal(size=60), rng.uniform(0.05, 0.5, 60)
    y = 2.0 + 1.3 * (b + np.sqrt(v) * rng.normal(size=60)) + 0.7 * rng.normal(size=60)

    def loss(x):
        return -norm.logpdf(y, x[0] + x[1] * b, np.sqrt(np.exp(2 * x[2]) + x[1] ** 2 * v)).sum()

    best = minimize(loss, [1.0, 1.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    found = JointLink.start(np.arange(60), np.exp(y)).updated(b, v)
    assert (found.alpha, found.beta) == pytest.approx(best[:2], abs=1e-5)
    assert found.tau == pytest.approx(np.exp(best[2]), abs=1e-5)


@pytest.fixture(scope="module")
def world(simulate):
    """40 models, 300 items, 90 of them with minutes 3 + 1.5 b + N(0, 1)."""

    def make(seed, models=40):
        data = simulate(seed, models, 300)
        rng = np.random.default_rng([seed, 9])
        rows = np.sort(rng.choice(300, 90, replace=False))
        y = 3 + 1.5 * data.b[rows] + rng.normal(size=90)
        minutes = {data.responses.items[i]: float(h) for i, h in zip(rows, np.exp(y), strict=True)}
        return data, rows, minutes

    return make


def test_the_point_is_a_maximum_and_the_line_a_fixed_point(world):
    data, _, minutes = world(1)
    found = irt.fit(data.responses, "joint", human_minutes=minutes, link="joint")
    assert found.verdict.converged
    assert found.verdict.max_grad < 1e-6
    assert (found.link.level, found.link.n_anchors) == ("joint", 90)
    again = joint_fit(irt.fit(data.responses, "joint"), minutes)
    assert found.link.beta == pytest.approx(again.link.beta, rel=5e-3)
    assert found.models.theta == pytest.approx(again.models.theta, abs=0.01)
    # The residuals' spread and the difficulties' own make up τ².
    line = found.estimate.link
    rest = line.log_minutes - line.alpha - line.beta * found.items.b[line.rows]
    left = 1 / (1 / line.var_b + line.beta**2 / line.tau**2)
    assert line.tau**2 == pytest.approx(np.mean(rest**2 + line.beta**2 * left), rel=0.02)


def test_minutes_place_the_items_that_all_or_none_solved(world):
    """Sixteen models leave many such items: their error, read in minutes, shrinks by a third."""
    plain, helped, count = 0.0, 0.0, 0
    for seed in range(8):
        data, rows, minutes = world(seed, 16)
        fit = irt.fit(data.responses, "joint")
        again, line = joint_fit(fit, minutes), fit_link(fit, minutes)
        flat = [i for i in rows if "prior_only" in fit.items.flags[i]]
        truth = 3 + 1.5 * data.b[flat]
        plain += np.sum((line.log_minutes(fit.items.b[flat]) - truth) ** 2)
        helped += np.sum((again.link.log_minutes(again.items.b[flat]) - truth) ** 2)
        count += len(flat)
    assert count >= 10
    assert np.sqrt(helped / plain) < 2 / 3, (helped / count, plain / count)


def test_intervals_of_horizons_cover(world):
    """Twenty sets; level "joint" was measured at .92 to .94 in fifty of them."""
    hits = []
    for seed in range(20):
        data, _, minutes = world(seed)
        found = irt.fit(data.responses, "joint", human_minutes=minutes, link="joint")
        h50, truth = horizons(found, found.link, n=300, seed=seed), 3 + 1.5 * data.theta
        hits.append((np.log(h50.lo) < truth) & (truth < np.log(h50.hi)))
    assert 0.88 <= np.mean(hits) <= 0.98


def test_every_level_of_the_link_stands_beside_the_others(world):
    data, _, minutes = world(3)
    fit = irt.fit(data.responses, "joint")
    levels = all_levels(fit, minutes)
    assert list(levels) == ["ols", "weighted", "joint"]
    assert levels["ols"][0] is levels["weighted"][0] is fit
    short = irt.fit(data.responses, "mml")
    assert list(all_levels(short, minutes)) == ["ols", "weighted"]


def test_the_order_of_minutes_changes_no_bit(world):
    data, _, minutes = world(4)
    one = irt.fit(data.responses, "joint", human_minutes=minutes, link="joint")
    two = irt.fit(
        data.responses, "joint", human_minutes=dict(reversed(minutes.items())), link="joint"
    )
    assert one.models.theta.tobytes() == two.models.theta.tobytes()
    assert (one.link.alpha, one.link.beta) == (two.link.alpha, two.link.beta)


def test_minutes_given_to_a_fit_are_its_link_at_any_level(world):
    data, _, minutes = world(5)
    for level in ("ols", "weighted"):
        found = irt.fit(data.responses, "joint", human_minutes=minutes, link=level)
        apart = fit_link(irt.fit(data.responses, "joint"), minutes, level=level)
        assert (found.link.level, found.link.beta) == (level, apart.beta)
    assert irt.fit(data.responses, "joint").link is None


def test_what_is_refused(world, simulate):
    data, _, minutes = world(6)
    fit = irt.fit(data.responses, "joint")
    with pytest.raises(DataError, match="these minutes were none of this one's"):
        fit_link(fit, minutes, level="joint")
    other = joint_fit(fit, minutes)
    with pytest.raises(DataError, match="these minutes were none of this one's"):
        fit_link(other, {key: 2 * h for key, h in minutes.items()}, level="joint")
    assert fit_link(other, minutes, level="joint").beta == other.link.beta
    with pytest.raises(DataError, match="part of method='joint', not of 'mml'"):
        irt.fit(data.responses, "mml", human_minutes=minutes, link="joint")
    with pytest.raises(ValueError, match="no link level 'cubic'; there are ols, weighted, joint"):
        irt.fit(data.responses, human_minutes=minutes, link="cubic")
    with pytest.raises(DataError, match=r"not in the fit: 'elsewhere'"):
        irt.fit(data.responses, human_minutes={**minutes, "elsewhere": 1.0}, link="joint")
    with pytest.raises(DataError, match="missing or not positive"):
        irt.fit(data.responses, human_minutes={**minutes, "i00000": 0.0}, link="joint")
    halves = irt.Responses(
        data.responses.models, data.responses.items, data.k / 2, data.n, fractional=True
    )
    with pytest.raises(DataError, match="takes counts"):
        irt.fit(halves, "joint", human_minutes=minutes, link="joint")


def test_anchors_are_in_the_fits_order_and_the_lost_are_named():
    out = Excluded(items=(("gone", "no answers"),))
    found = choose_anchors({"c": 3.0, "gone": 9.0, "a": 1.0, "b": 2.0}, ("a", "b", "c", "x"), out)
    assert (found.rows.tolist(), found.minutes) == ([0, 1, 2], {"a": 1.0, "b": 2.0, "c": 3.0})
    assert found.notes == ("1 items with minutes were left out of the fit: 'gone'",)


def test_a_line_that_falls_voids_the_horizon(world):
    data, rows, _ = world(7)
    falling = {data.responses.items[i]: float(np.exp(3 - data.b[i])) for i in rows}
    found = irt.fit(data.responses, "joint", human_minutes=falling, link="joint")
    assert found.link.beta < 0
    assert any("a horizon is void" in note for note in found.link.notes)
