"""Horizons, frontier and doubling time: closed forms, gauge, order, and coverage with a planted fault."""

from __future__ import annotations

from datetime import date, datetime
from types import SimpleNamespace

import numpy as np
import pytest

import irt
from irt.data import DataError
from irt.horizon import horizons, rolling_difficulty, typical_difficulty
from irt.link import REGRESSIONS, fit_link, regress
from irt.trend import as_date, bootstrap, doubling, frontier, link_sensitivity, month_number, trend

LOGIT_80 = np.log(4.0)


@pytest.fixture(scope="module")
def world(simulate):
    """40 models of which 30 are dated, abler later; 120 items, all with human minutes."""
    made = simulate(11, 40, 120)
    rng = np.random.default_rng(12)
    fit = irt.fit(made.responses, method="joint")
    logs = 3.0 + 1.2 * made.b + 0.5 * rng.normal(size=120)
    minutes = dict(zip(made.responses.items, np.exp(logs).tolist(), strict=True))
    rank = np.argsort(np.argsort(made.theta))
    dates = {
        name: date(2022 + int(place) // 12, 1 + int(place) % 12, 1 + j % 28)
        for j, (name, place) in enumerate(zip(made.responses.models, rank, strict=True))
        if j % 4
    }
    return SimpleNamespace(fit=fit, minutes=minutes, dates=dates, link=fit_link(fit, minutes))


def test_typical_item_by_hand():
    a = np.array([0.5, 2.0])  # geometric mean 1
    assert typical_difficulty(np.array([0.3]), a, np.zeros(2), 0.8)[0] == pytest.approx(
        0.3 - LOGIT_80
    )
    assert typical_difficulty(np.array([0.3]), 2 * a, np.zeros(2), 0.8)[0] == pytest.approx(
        0.3 - LOGIT_80 / 2
    )


def test_rolling_rule_on_a_regular_pool_is_the_item_itself():
    """Equal steps of b and a = 1: the mean logit of a window is that of its middle."""
    b = np.linspace(-6, 6, 2401)
    found = rolling_difficulty(np.array([-1.0, 0.4]), np.ones(2401), -b, 0.8)
    assert found == pytest.approx(np.array([-1.0, 0.4]) - LOGIT_80, abs=1e-5)


def test_rolling_rule_against_loops():
    rng = np.random.default_rng(8)
    a, b = np.exp(0.4 * rng.normal(size=60)), rng.normal(size=60)
    order = np.argsort(b)
    a, b, ability = a[order], b[order], 1.1
    p = []
    for i in range(60):
        window = range(max(0, i - 7), min(60, i + 8))
        p.append(1 / (1 + np.exp(-np.mean([a[k] * (ability - b[k]) for k in window]))))
    crossings = [
        b[i] + (b[i + 1] - b[i]) * (p[i] - 0.8) / (p[i] - p[i + 1])
        for i in range(59)
        if p[i] >= 0.8 > p[i + 1]
    ]
    shuffle = rng.permutation(60)
    found = rolling_difficulty(np.array([ability]), a[shuffle], (-a * b)[shuffle], 0.8)
    assert crossings
    assert found[0] == pytest.approx(np.mean(crossings), rel=1e-9)


def test_rolling_rule_without_a_crossing_or_with_few_items_is_nan():
    b = np.linspace(-1, 1, 40)
    assert np.isnan(rolling_difficulty(np.array([-9.0, 9.0]), np.ones(40), -b)).all()
    assert np.isnan(rolling_difficulty(np.array([0.0]), np.ones(4), np.array([9, 1, -1, -9.0])))[0]


def test_half_is_the_ability_itself(world):
    found = horizons(world.fit, world.link)
    expected = world.link.alpha + world.link.beta * world.fit.models.theta
    assert np.log(found.minutes) == pytest.approx(expected, abs=1e-12)
    assert (found.lo < found.minutes).all()
    assert (found.minutes < found.hi).all()
    assert found.label == "item of typical discrimination"
    assert found.to_dicts()[0]["minutes"] == found.minutes[0]


def test_eighty_per_cent_is_shorter_and_labelled_by_its_rule(world):
    half = horizons(world.fit, world.link)
    typical = horizons(world.fit, world.link, 0.8)
    steps = world.link.beta * LOGIT_80 / np.exp(np.log(world.fit.items.a).mean())
    assert np.log(half.minutes / typical.minutes) == pytest.approx(np.full(40, steps))
    pool = horizons(world.fit, world.link, 0.8, rule="bridge", n=50)
    assert pool.label.startswith("BRIDGE")
    expected = rolling_difficulty(world.fit.models.theta, world.fit.items.a, world.fit.items.d)
    assert np.log(pool.minutes) == pytest.approx(world.link.log_minutes(expected), nan_ok=True)
    assert pool.minutes[0] != typical.minutes[0]


def test_models_without_a_crossing_are_named(world):
    """No crossing of .8 for the weakest; one near the border has it in some draws only."""
    pool = horizons(world.fit, world.link, 0.8, rule="bridge", n=200)
    nowhere = np.isnan(pool.minutes)
    assert 0 < nowhere.sum() < 20
    names = [name for name, none in zip(pool.model, nowhere, strict=True) if none]
    assert f"{len(names)} models have no crossing of 0.8: {names[0]!r}" in pool.notes[0]
    assert np.isnan(pool.lo[nowhere]).all()
    assert np.isfinite(pool.hi[~nowhere]).all()
    partly = (np.isnan(pool.log_draws).any(axis=0) & ~nowhere).sum()
    assert partly > 0
    assert pool.notes[1] == f"{partly} intervals leave out draws without a crossing of 0.8"


def test_intervals_are_percentiles_of_the_formula_on_joint_draws(world):
    """log H* = ȳ + β* (θ* − b̄*) + e*: spread of its parts, added up by hand."""
    found = horizons(world.fit, world.link, n=4000)
    drawn = world.fit.draws(4000)
    rows = [world.fit.items.item.index(key) for key in world.link.anchors]
    gap = drawn.theta - drawn.b[:, rows].mean(axis=1)[:, None]
    link = world.link
    inflate = (link.n_anchors - 2) / (link.n_anchors - 4)
    variance = (
        link.beta**2 * gap.var(axis=0)
        + inflate * (link.se_beta**2 * (gap.mean(axis=0) ** 2 + gap.var(axis=0)) + link.se_mean**2)
    )  # fmt: skip
    assert found.log_draws.std(axis=0) == pytest.approx(np.sqrt(variance), rel=0.05)
    assert np.log(found.lo) == pytest.approx(np.quantile(found.log_draws, 0.025, axis=0))


def test_a_method_without_joint_draws_gives_no_interval_and_says_so(simulate):
    made = simulate(4, 80, 20)
    fit = irt.fit(made.responses, method="mml")
    minutes = dict(zip(fit.items.item, np.exp(1 + fit.items.b).tolist(), strict=True))
    found = horizons(fit, fit_link(fit, minutes))
    assert np.isnan(found.lo).all()
    assert np.isfinite(found.minutes).all()
    assert "'mml' gives no joint draws" in found.notes[-1]


def test_a_link_of_another_fit_is_refused(world, simulate):
    other = irt.fit(simulate(99, 40, 120).responses, method="joint")
    with pytest.raises(DataError, match="another fit: its anchors"):
        horizons(other, world.link)
    small = irt.fit(simulate(99, 40, 30).responses, method="joint")
    with pytest.raises(DataError, match="another fit: no item"):
        horizons(small, world.link)
    with pytest.raises(ValueError, match="no horizon rule 'best'; there are typical, bridge"):
        horizons(world.fit, world.link, rule="best")
    with pytest.raises(ValueError, match="q = 80"):
        horizons(world.fit, world.link, 80)
    with pytest.raises(ValueError, match="level = 2"):
        horizons(world.fit, world.link, level=2)


def test_dates():
    assert as_date("2025-05-14") == as_date(datetime(2025, 5, 14, 9)) == date(2025, 5, 14)  # noqa: DTZ001
    assert type(as_date(datetime(2025, 5, 14))) is date  # noqa: DTZ001
    assert month_number(date(2024, 12, 31)) == 12 * 2024 + 11
    for wrong in ("May 2025", 20250514.5, None):
        with pytest.raises(DataError, match="2025-05-14"):
            as_date(wrong)


def test_frontier_by_hand():
    days = [date(2024, m, 1) for m in (5, 1, 2, 3, 4)]
    logs = [0.9, 0.0, 0.163, 0.17, 0.30]  # .163 does not beat, .17 does, .30 only by .13
    assert frontier(logs, days).tolist() == [True, True, False, True, False]
    # a slow creep is kept once it has come far enough from the last one kept
    assert frontier([0.0, 0.1, 0.2], days[1:4]).tolist() == [True, False, True]
    assert frontier([np.nan, 1.0], days[1:3]).tolist() == [False, True]


def test_models_of_one_day_are_taken_in_ascending_order():
    days = [date(2022, 3, 15)] * 2 + [date(2023, 1, 1)]
    for logs in ([1.0, 0.0, 2.0], [0.0, 1.0, 2.0]):
        assert frontier(logs, days).all()


def test_a_horizon_that_doubles_every_other_month():
    days = [date(2023, 11, 30), date(2024, 1, 1), date(2024, 3, 31), date(2024, 5, 2)]
    found = trend("pqrs", np.log([3.0, 6.0, 12.0, 24.0]), days)
    assert found.doubling == pytest.approx(2.0)
    assert np.exp(found.intercept + found.slope * month_number(days[2])) == pytest.approx(12.0)
    ends = bootstrap(found)
    assert np.log(2) / ends == pytest.approx([2.0, 2.0])


def test_no_trend_without_two_months():
    with pytest.raises(DataError, match="1 are on the frontier"):
        trend("pq", [2.0, 1.0], [date(2024, 1, 1), date(2024, 2, 1)])
    with pytest.raises(DataError, match="fewer than two months"):
        trend("pq", [1.0, 2.0], [date(2024, 1, 1), date(2024, 1, 9)])
    with pytest.raises(DataError, match="2 models, 1 horizons"):
        trend("pq", [1.0], [date(2024, 1, 1)])


def test_bootstrap_is_that_of_single_draws_of_the_same_generator():
    rng = np.random.default_rng(1)
    days = [date(2022 + i // 3, 1 + 4 * (i % 3), 1) for i in range(9)]
    found = trend(range(9), np.cumsum(rng.uniform(0.2, 1.0, 9)), days)
    months = np.array([month_number(day) for day in days])
    one_by_one, slopes = np.random.default_rng(42), []
    for _ in range(500):
        rows = one_by_one.integers(0, 9, 9)
        if len(set(months[rows])) > 1:
            slopes.append(np.polyfit(months[rows], found.log_minutes[rows], 1)[0])
    assert bootstrap(found, 500) == pytest.approx(np.percentile(slopes, [2.5, 97.5]), rel=1e-8)


def test_the_bootstrap_interval_is_that_of_the_points_and_no_other(world):
    found = doubling(world.fit, world.link, world.dates, interval="bootstrap", n=20, seed=9)
    assert (found.slope_lo, found.slope_hi) == tuple(bootstrap(found.trend))
    assert (found.hi, found.lo) == pytest.approx(tuple(np.log(2) / bootstrap(found.trend)))


def test_the_frontier_is_chosen_anew_in_each_draw(world):
    found = doubling(world.fit, world.link, world.dates, n=100, seed=3)
    logs = horizons(world.fit, world.link, n=100, seed=3).log_draws
    dated = [j for j, name in enumerate(world.fit.models.model) if name in world.dates]
    names = [world.fit.models.model[j] for j in dated]
    days = [world.dates[name] for name in names]
    lines = [trend(names, row[dated], days) for row in logs]
    assert len({line.model for line in lines}) > 1
    ends = np.quantile([line.slope for line in lines], [0.025, 0.975])
    assert (found.slope_lo, found.slope_hi) == pytest.approx(tuple(ends), rel=1e-9)
    assert (found.hi, found.lo) == pytest.approx(tuple(np.log(2) / ends), rel=1e-9)
    assert found.lo < found.months < found.hi


def test_models_without_dates_are_listed(world):
    dates = {**world.dates, "not-here": "2025-01-01", "m0000": None, "m0004": ""}
    found = doubling(world.fit, world.link, dates, n=50)
    assert found.undated == tuple(f"m{j:04d}" for j in range(0, 40, 4))
    assert found.unknown == ("not-here",)
    assert found.best in world.dates
    with pytest.raises(DataError, match="none of the models has a release date"):
        doubling(world.fit, world.link, {"not-here": "2025-01-01"})
    with pytest.raises(ValueError, match="no interval 'none'"):
        doubling(world.fit, world.link, dates, interval="none")


def test_the_order_of_dates_changes_no_bit(world):
    backwards = dict(reversed(world.dates.items()))
    one, two = (doubling(world.fit, world.link, dates, n=60) for dates in (world.dates, backwards))
    assert (one.months, one.lo, one.hi, one.trend.model) == (
        two.months,
        two.lo,
        two.hi,
        two.trend.model,
    )


def test_a_frontier_that_may_not_have_grown_has_no_upper_end(world):
    """Two models just further apart than the threshold: in many draws the second is no advance."""
    logs = horizons(world.fit, world.link, n=200)
    order = np.argsort(logs.minutes)
    middle = np.log(logs.minutes[order])
    first = next(i for i in range(12, 40) if 0.163 < middle[i + 1] - middle[i] < 0.4)
    one, two = order[first], order[first + 1]
    flat = int(np.sum(logs.log_draws[:, two] <= logs.log_draws[:, one] + 0.163))
    assert flat > 10
    names = world.fit.models.model
    dates = {names[one]: date(2024, 1, 1), names[two]: date(2024, 6, 1)}
    found = doubling(world.fit, world.link, dates, n=200)
    assert found.months == pytest.approx(5 * np.log(2) / (middle[first + 1] - middle[first]))
    assert 0 < found.lo < found.months
    assert found.hi == np.inf
    assert found.notes[-1].startswith(f"in {flat} of 200 draws")


@pytest.mark.parametrize("level", REGRESSIONS)
def test_horizons_and_doubling_do_not_depend_on_the_gauge(world, level):
    """θ' = c θ + m, b' = c b + m, a' = a/c leaves p, minutes and months as they are."""
    fit, c, m = world.fit, 0.4, 3.0
    a, b, theta = fit.items.a, fit.items.b, fit.models.theta
    moved = SimpleNamespace(a=a / c, b=c * b + m, theta=c * theta + m)
    z = a[:, None] * (theta - b[:, None])
    assert moved.a[:, None] * (moved.theta - moved.b[:, None]) == pytest.approx(z)
    minutes = [world.minutes[key] for key in fit.items.item]
    one = regress(b, minutes, fit.items.se_b, level=level)
    two = regress(moved.b, minutes, c * fit.items.se_b, level=level)
    days = [world.dates.get(name, date(2021, 1, 1)) for name in fit.models.model]
    for rule, q in (
        (typical_difficulty, 0.5),
        (typical_difficulty, 0.8),
        (rolling_difficulty, 0.8),
    ):
        old = one.log_minutes(rule(theta, a, -a * b, q))
        new = two.log_minutes(rule(moved.theta, moved.a, -moved.a * moved.b, q))
        assert old == pytest.approx(new, nan_ok=True, rel=1e-8)
        lines = [trend(fit.models.model, x, days) for x in (old, new)]
        assert lines[0].model == lines[1].model
        assert lines[0].doubling == pytest.approx(lines[1].doubling, rel=1e-8)


def test_a_stale_slope_would_be_caught(world):
    """A doubling time with the slope of another fit (2.26 = e^.814 a unit) fails what ours passes."""
    found = doubling(world.fit, world.link, world.dates, n=20)
    theta = (found.trend.log_minutes - world.link.alpha) / world.link.beta
    months = [month_number(day) for day in found.trend.dates]
    a_unit = np.polyfit(months, theta, 1)[0]
    assert found.months == pytest.approx(np.log(2) / (world.link.beta * a_unit), rel=1e-9)
    stale = np.log(2) / (np.log(2.26) * a_unit)
    assert abs(stale / found.months - 1) > 0.2


def test_all_levels_of_the_link_stand_side_by_side(world):
    found = link_sensitivity(world.fit, world.minutes, world.dates, n=50)
    assert list(found) == [one.link for one in found.values()] == ["ols", "weighted", "joint"]
    assert len({one.months for one in found.values()}) == 3


def _naive(drawn, y, rows):
    """The fault: ordinary least squares anew on every draw of b."""
    logs = []
    for theta, b in zip(drawn.theta, drawn.b[:, rows], strict=True):
        beta = np.cov(b, y)[0, 1] / b.var(ddof=1)
        logs.append(y.mean() + beta * (theta - b.mean()))
    return np.array(logs)


def test_intervals_of_horizons_cover_and_those_of_a_naive_refit_do_not(simulate):
    """40 × 300, 90 anchors, τ = 1: expected coverage .95 with centroid draws, .73 with a refit."""
    hits = {"ols": [], "weighted": [], "naive": []}
    for seed in range(24):
        made = simulate(1000 + seed, 40, 300)
        rng = np.random.default_rng(2000 + seed)
        fit = irt.fit(made.responses, method="joint")
        chosen = np.sort(rng.choice(300, 90, replace=False))
        y = 3.0 + 1.5 * made.b[chosen] + rng.normal(size=90)
        truth = 3.0 + 1.5 * made.theta
        minutes = {made.responses.items[i]: h for i, h in zip(chosen, np.exp(y), strict=True)}
        for level in ("ols", "weighted"):
            found = horizons(fit, fit_link(fit, minutes, level=level), n=300, seed=seed)
            hits[level].append((np.log(found.lo) < truth) & (truth < np.log(found.hi)))
        low, high = np.quantile(_naive(fit.draws(300, seed), y, chosen), [0.025, 0.975], axis=0)
        hits["naive"].append((low < truth) & (truth < high))
    cover = {name: float(np.mean(found)) for name, found in hits.items()}
    assert 0.90 <= cover["ols"] <= 0.99, cover
    assert 0.90 <= cover["weighted"] <= 0.99, cover
    assert cover["naive"] < 0.85, cover
