"""The link to human minutes: against statsmodels and hand calculation, what it refuses, its draws."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm

import irt
from irt.data import DataError
from irt.link import REGRESSIONS, fit_link, regress
from irt.minutes import (
    bucket_accuracy,
    bucket_kappa,
    bucket_macro_f1,
    buckets,
    read_minutes,
    within_factor,
)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(5)
    b, se_b = rng.normal(size=40), rng.uniform(0.05, 0.6, 40)
    y = 2.0 + 1.3 * b + 0.8 * rng.normal(size=40)
    return b + se_b * rng.normal(size=40), se_b, y


def test_ols_is_that_of_statsmodels(points):
    b, se_b, y = points
    link = regress(b, np.exp(y), se_b)
    other = sm.OLS(y, sm.add_constant(b)).fit()
    assert (link.alpha, link.beta) == pytest.approx(other.params, rel=1e-10)
    assert (link.se_alpha, link.se_beta) == pytest.approx(other.bse, rel=1e-10)
    assert link.r2 == pytest.approx(other.rsquared, rel=1e-10)
    assert link.tau == pytest.approx(np.sqrt(other.scale), rel=1e-10)
    assert (link.centroid, link.mean_log) == pytest.approx((b.mean(), y.mean()))


def test_the_interval_of_a_new_item_is_that_of_statsmodels(points):
    b, se_b, y = points
    new = np.array([-3.0, 0.2, 4.0])
    found = regress(b, np.exp(y), se_b).predict(new)
    other = sm.OLS(y, sm.add_constant(b)).fit().get_prediction(sm.add_constant(new))
    assert np.log(found.median) == pytest.approx(other.predicted_mean)
    assert np.log(found.hi / found.median) == pytest.approx(norm.ppf(0.975) * other.se_obs)
    assert np.log(found.median / found.lo) == pytest.approx(norm.ppf(0.975) * other.se_obs)


def test_the_error_of_a_difficulty_widens_its_interval(points):
    b, se_b, y = points
    link = regress(b, np.exp(y), se_b)
    sharp, blunt = link.predict(0.5), link.predict(0.5, 0.4)
    squares = [(np.log(x.hi / x.median) / norm.ppf(0.975)) ** 2 for x in (sharp, blunt)]
    assert squares[1] - squares[0] == pytest.approx(link.beta**2 * 0.4**2)
    assert blunt.median == sharp.median


def test_weighted_is_the_fixed_point_it_is_defined_as(points):
    b, se_b, y = points
    link = regress(b, np.exp(y), se_b, level="weighted")
    precision = 1 / (link.tau**2 + link.beta**2 * se_b**2)
    other = sm.WLS(y, sm.add_constant(b), weights=precision).fit()
    assert (link.alpha, link.beta) == pytest.approx(other.params, rel=1e-9)
    rest = y - link.alpha - link.beta * b
    assert link.tau**2 == pytest.approx(np.mean(rest**2 - link.beta**2 * se_b**2), rel=1e-9)
    known_scale = np.sqrt(np.diag(other.normalized_cov_params))
    assert (link.se_alpha, link.se_beta) == pytest.approx(known_scale, rel=1e-9)
    assert link.r2 == pytest.approx(other.rsquared, rel=1e-9)


def test_weighted_is_ols_where_difficulties_are_known(points):
    b, _, y = points
    plain = regress(b, np.exp(y))
    same = regress(b, np.exp(y), np.zeros(40), level="weighted")
    assert (same.alpha, same.beta) == pytest.approx((plain.alpha, plain.beta))


def test_a_floor_under_tau_is_told(points):
    b, _, _ = points
    found = regress(b, np.exp(1 + b), np.full(40, 0.5), level="weighted")
    assert found.tau == pytest.approx(0.1)
    assert "floor" in found.notes[0]


def test_weighted_needs_errors(points):
    b, _, y = points
    with pytest.raises(DataError, match="standard error"):
        regress(b, np.exp(y), level="weighted")


@pytest.mark.parametrize("level", REGRESSIONS)
def test_draws_of_the_link_have_the_moments_of_the_regression(points, level):
    """With known difficulties: Student's t of n − 2 degrees about the line, its variance (n − 2)/(n − 4)."""
    b, se_b, y = points
    link = regress(b, np.exp(y), se_b, level=level)
    n = 40_000
    drawn = link.draw(np.broadcast_to(b, (n, 40)), np.random.default_rng(1))
    for at in (link.centroid, 2.0):
        logs = drawn.alpha + drawn.beta * at
        sd = np.sqrt((link.se_mean**2 + (at - link.centroid) ** 2 * link.se_beta**2) * 38 / 36)
        assert logs.mean() == pytest.approx(link.log_minutes(at), abs=5 * sd / np.sqrt(n))
        assert logs.std() == pytest.approx(sd, rel=0.02)


@pytest.mark.parametrize("level", REGRESSIONS)
def test_minutes_do_not_depend_on_the_gauge(points, level):
    b, se_b, y = points
    c, m = 2.7, -1.9
    draws = b + se_b * np.random.default_rng(2).normal(size=(50, 40))
    one = regress(b, np.exp(y), se_b, level=level)
    two = regress(c * b + m, np.exp(y), c * se_b, level=level)
    first, second = one.predict(b, se_b), two.predict(c * b + m, c * se_b)
    for name in ("median", "lo", "hi"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-9)
    assert (one.tau, one.r2) == pytest.approx((two.tau, two.r2), rel=1e-9)
    old = one.draw(draws, np.random.default_rng(3))
    new = two.draw(c * draws + m, np.random.default_rng(3))
    assert old.alpha + old.beta * 0.7 == pytest.approx(new.alpha + new.beta * (c * 0.7 + m))


BAD_MINUTES = {"none": None, "nan": float("nan"), "zero": 0.0, "less": -3.0, "inf": float("inf")}


@pytest.mark.parametrize("name", BAD_MINUTES)
def test_minutes_that_are_missing_or_not_positive_are_refused_by_name(simulate, name):
    found = irt.fit(simulate(1, 20, 12).responses, method="joint")
    minutes = dict.fromkeys(found.items.item, 5.0)
    minutes["i00007"] = BAD_MINUTES[name]
    with pytest.raises(DataError, match=r"1 items .* not positive: 'i00007'"):
        fit_link(found, minutes)


def test_other_refusals_name_what_is_wrong(simulate):
    found = irt.fit(simulate(1, 20, 12).responses, method="joint")
    with pytest.raises(DataError, match=r"not in the fit: 'elsewhere'"):
        fit_link(found, {"i00001": 1.0, "elsewhere": 2.0})
    with pytest.raises(DataError, match=r"needs 3 items .* here are 2: 'i00001', 'i00004'"):
        fit_link(found, {"i00004": 1.0, "i00001": 2.0})
    with pytest.raises(DataError, match=r"needs 3 items .* here are 0: none"):
        fit_link(found, {})
    with pytest.raises(DataError, match=r"all of difficulty 1: no slope: 'x', 'y', 'z'"):
        regress([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], anchors=("x", "y", "z"))
    with pytest.raises(DataError, match="no finite difficulty: 'y'"):
        regress([1.0, np.inf, 2.0], [1.0, 2.0, 3.0], anchors=("x", "y", "z"))
    with pytest.raises(ValueError, match="no regression 'magic'; there are ols, weighted"):
        regress([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], level="magic")
    with pytest.raises(ValueError, match="level = 95"):
        regress([1.0, 2.0, 4.0], [1.0, 2.0, 3.0]).predict(1.0, level=95)


@pytest.mark.parametrize(("scale", "told"), [(1.0, False), (1e5, True), (1e-4, True)])
def test_minutes_that_look_like_other_units_are_noted(scale, told):
    notes = regress([0.0, 1.0, 2.0], scale * np.array([2.0, 5.0, 30.0])).notes
    assert bool(notes) == told
    assert all("minutes?" in note for note in notes)


def test_a_slope_that_goes_the_wrong_way_is_noted():
    assert "no longer" in regress([0.0, 1.0, 2.0], [30.0, 5.0, 2.0]).notes[0]


def test_an_item_left_out_of_the_fit_is_listed(rows_of, simulate):
    rows = rows_of(simulate(2, 20, 12).responses)
    rows.append({"model": "m0000", "item": "untried", "k": 0, "n": 0})
    found = irt.fit(rows, method="joint")
    minutes = {key: 1.0 + row for row, key in enumerate(found.items.item)}
    link = fit_link(found, {**minutes, "untried": 4.0})
    assert link.n_anchors == 12
    assert link.notes[-1] == "1 items with minutes were left out of the fit: 'untried'"


def test_the_order_of_minutes_changes_no_bit(simulate):
    found = irt.fit(simulate(3, 30, 25).responses, method="joint")
    minutes = {
        key: float(np.exp(b)) + 0.5 for key, b in zip(found.items.item, found.items.b, strict=True)
    }
    shuffled = dict(sorted(minutes.items(), key=lambda pair: -pair[1]))
    columns = {"item": list(shuffled), "human_minutes": list(shuffled.values())}
    rows = [{"item": key, "minutes": value} for key, value in shuffled.items()]
    link = fit_link(found, minutes)
    for other in (shuffled, columns, rows):
        again = fit_link(found, other)
        assert (again.alpha, again.beta, again.anchors) == (link.alpha, link.beta, link.anchors)


def test_tables_of_minutes():
    assert read_minutes({"item": 3.0, "x": 4}) == {"item": 3.0, "x": 4.0}
    assert read_minutes([{"item": ["t", 1], "minutes": 2}]) == {("t", 1): 2.0}
    with pytest.raises(DataError, match="'x' are given twice"):
        read_minutes({"item": ["x", "x"], "minutes": [1, 1]})
    with pytest.raises(DataError, match="it has item, hours"):
        read_minutes([{"item": "x", "hours": 2}])
    with pytest.raises(DataError, match="'x' are 'long'"):
        read_minutes({"x": "long"})
    with pytest.raises(DataError, match="one length: 2 and 1"):
        read_minutes({"item": ["x", "y"], "minutes": [1]})


def test_buckets_and_their_agreement_by_hand():
    """Known 0 0 1 2 3, predicted 0 1 1 1 3."""
    known, predicted = [3, 15, 16, 240, 241], [15, 60, 30, 61 - 2, 1e4]
    assert buckets(known).tolist() == [0, 0, 1, 2, 3]
    assert buckets(predicted).tolist() == [0, 1, 1, 1, 3]
    assert bucket_accuracy(known, predicted) == pytest.approx(3 / 5)
    # F1: 2·1/(2 + 1), 2·1/(1 + 3), 0/(1 + 0), 2·1/(1 + 1)
    assert bucket_macro_f1(known, predicted) == pytest.approx((2 / 3 + 1 / 2 + 0 + 1) / 4)
    # observed distance 2/5; by chance (rows 2 1 1 1, columns 1 3 0 1) 2·6 + 1·3 + 1·5 + 1·9... of 25
    rows, columns = (2, 1, 1, 1), (1, 3, 0, 1)
    chance = sum(abs(i - j) * rows[i] * columns[j] for i in range(4) for j in range(4)) / 25
    assert bucket_kappa(known, predicted) == pytest.approx(1 - (2 / 5) / chance)
    assert np.isnan(bucket_kappa([1], [2]))
    with pytest.raises(DataError, match="2 known and 1 predicted"):
        bucket_accuracy([1, 2], [1])


def test_within_a_factor_counts_the_ends():
    assert within_factor([10, 10, 10, 10], [5, 20, 4.9, 20.1]) == 2
    assert within_factor([10.0], [29.0], factor=3) == 1
