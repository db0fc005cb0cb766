"""METR's method: closed forms, scikit-learn, and a bootstrap written out row by row."""

from __future__ import annotations

import json
from datetime import date, timedelta

import numpy as np
import pytest
from scipy import stats

import irt
from irt._metr_cells import read_cells, run_weights
from irt._metr_fit import _resample, fit_draws, fit_lines
from irt._metr_records import MetrDraws, horizon_minutes
from irt.data import DataError, Responses
from irt.metr_mode import metr, state_of_the_art

SIX = ("a1", "a2", "a3", "b1", "b2", "c1")
MINUTES = dict(zip(SIX, (1.0, 3.0, 9.0, 30.0, 100.0, 240.0), strict=True))
FAMILIES = {item: item[0] for item in SIX}


def _table(seed=1, models=("m0", "m1", "m2")):
    """Counts of three models on six tasks in three families; the last model lacks one task."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, model in enumerate(models):
        for item in SIX[: 6 - (number == 2)]:
            n = int(rng.integers(2, 9))
            p = 1 / (1 + np.exp(0.6 * np.log2(MINUTES[item]) - 2 - 0.5 * number))
            rows.append({"model": model, "item": item, "k": int(rng.binomial(n, p)), "n": n})
    return rows


def _runs(rows):
    return [
        {"model": row["model"], "item": row["item"], "k": int(run < row["k"])}
        for row in rows
        for run in range(row["n"])
    ]


def _sklearn(x, y, w, lam):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / lam, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(np.reshape(x, (-1, 1)), y, sample_weight=w)
    return float(model.intercept_[0]), float(model.coef_[0, 0])


def _plain_weights(runs, kind):
    """Weights run by run, from the definition."""
    pairs = [(row["model"], row["item"]) for row in runs]
    weight = []
    for model, item in pairs:
        tasks = {i for m, i in pairs if m == model and FAMILIES[i] == FAMILIES[item]}
        w = 1.0 if kind == "runs" else 1 / pairs.count((model, item))
        weight.append(w / np.sqrt(len(tasks)) if kind == "invsqrt" else w)
    total = {model: sum(w for (m, _), w in zip(pairs, weight, strict=True) if m == model)
             for model, _ in pairs}  # fmt: skip
    return np.array([w / total[model] for (model, _), w in zip(pairs, weight, strict=True)])


def _logit(p):
    return np.log(p / (1 - p))


@pytest.mark.parametrize("counts", [((9, 10), (2, 10)), ((5, 8), (1, 30)), ((1, 4), (3, 4))])
def test_two_tasks_have_a_closed_form(counts):
    (k1, n1), (k2, n2) = counts
    rows = [
        {"model": "m", "item": "x", "k": k1, "n": n1},
        {"model": "m", "item": "y", "k": k2, "n": n2},
    ]
    found = metr(rows, {"x": 2.0, "y": 32.0}, regularisation=1e-13)
    slope = (_logit(k2 / n2) - _logit(k1 / n1)) / 4
    intercept = _logit(k1 / n1) - slope
    assert found.slope[0] == pytest.approx(slope, abs=1e-9)
    assert found.intercept[0] == pytest.approx(intercept, abs=1e-9)
    assert found.minutes[:, 0] == pytest.approx(
        [2 ** (-intercept / slope), 2 ** ((np.log(4) - intercept) / slope)], rel=1e-8
    )
    assert found.flags == (("rising",) if k2 / n2 > k1 / n1 else (),)


@pytest.mark.parametrize("lam", [1e-5, 0.1, 10.0])
@pytest.mark.parametrize("weights", ["equal", "invsqrt", "runs"])
def test_lines_are_those_of_scikit_learn(weights, lam):
    rows = _table()
    found = metr(rows, MINUTES, weights=weights, families=FAMILIES, regularisation=lam)
    runs = _runs(rows)
    w = _plain_weights(runs, weights)
    for j, model in enumerate(found.model):
        mine = np.array([row["model"] == model for row in runs])
        x = np.log2([MINUTES[row["item"]] for row in runs])[mine]
        y = np.array([row["k"] for row in runs])[mine]
        expected = _sklearn(x, y, w[mine], lam)
        assert (found.intercept[j], found.slope[j]) == pytest.approx(expected, abs=1e-6)


def test_a_separable_model_is_that_of_scikit_learn():
    x, y = np.log2(list(MINUTES.values())), np.array([1, 1, 1, 0, 0, 0])
    rows = [{"model": "m", "item": i, "k": int(k)} for i, k in zip(SIX, y, strict=True)]
    found = metr(rows, MINUTES)
    expected = _sklearn(x, y, np.full(6, 1 / 6), 1e-5)
    assert (found.intercept[0], found.slope[0]) == pytest.approx(expected, rel=1e-6)
    assert found.flags == ((),)
    assert 9 < found.minutes[0, 0] < 30


def test_a_fractional_score_is_two_weighted_rows():
    rng = np.random.default_rng(3)
    y = rng.random(6)
    rows = [{"model": "m", "item": i, "k": float(k)} for i, k in zip(SIX, y, strict=True)]
    found = metr(rows, MINUTES, regularisation=0.1, scores="fractional")
    x = np.log2(list(MINUTES.values()))
    expected = _sklearn(np.r_[x, x], [1] * 6 + [0] * 6, np.r_[y, 1 - y] / 6, 0.1)
    assert (found.intercept[0], found.slope[0]) == pytest.approx(expected, abs=1e-6)
    halves = [{"model": "m", "item": i, "k": k / 4} for i, k in zip(SIX, range(5, -1, -1), strict=True)
              if k <= 4]  # fmt: skip
    quarters = [{**row, "k": int(4 * row["k"]), "n": 4} for row in halves]
    one, four = metr(halves, MINUTES, scores="fractional"), metr(quarters, MINUTES)
    assert one.intercept[0] == pytest.approx(four.intercept[0], rel=1e-12)
    assert one.slope[0] == pytest.approx(four.slope[0], rel=1e-12)


def test_without_a_success_or_a_failure():
    rows = [
        {"model": model, "item": item, "k": k, "n": 2}
        for model, k in (("none", 0), ("all", 2))
        for item in SIX
    ]
    found = metr(rows, MINUTES)
    assert found.model == ("all", "none")
    assert found.minutes.tolist() == [[np.inf, 0.0], [np.inf, 0.0]]
    assert found.slope.tolist() == [-np.inf, -np.inf]
    assert found.flags == (("all_one",), ("all_zero",))
    best, worst = json.loads(json.dumps(found.to_dicts(), allow_nan=False))
    assert (best["h50"], best["h80"], best["slope"]) == (None, None, None)
    assert (worst["h50"], worst["h80"], worst["slope"], worst["n_runs"]) == (0.0, 0.0, None, 12)
    draws = found.bootstrap(5)
    assert draws.interval().tolist() == [[np.inf, 0.0], [np.inf, 0.0]]


def test_tasks_of_one_length_give_no_horizon():
    found = metr(_table(), dict.fromkeys(SIX, 7.0))
    assert found.flags == (("level",),) * 3
    assert np.isnan(found.minutes).all()
    assert found.to_dicts()[0]["h50"] is None


def test_rounding_makes_no_slope_of_tasks_of_one_length():
    """The mean of eleven equal numbers is not always that number."""
    rng = np.random.default_rng(0)
    right, wrong = rng.integers(1, 5, (2, 500, 11)) / rng.integers(5, 9, (2, 500, 11)) / 11
    for minutes in (230.39, 241.97, 248.92, 0.3, 7.0):
        slope = fit_lines(np.full(11, np.log2(minutes)), right, wrong, 1e-5)[1]
        assert (slope == 0).all()


def test_runs_counts_and_every_order_give_the_same_bits():
    rows = _table()
    runs = _runs(rows)
    expected = metr(rows, MINUTES, weights="invsqrt", families=FAMILIES)
    rng = np.random.default_rng(4)
    others = [
        runs,
        rows[::-1],
        [runs[i] for i in rng.permutation(len(runs))],
        Responses.from_table(rows),
    ]
    for other in others:
        found = metr(other, MINUTES, weights="invsqrt", families=FAMILIES)
        assert found.model == expected.model
        assert found.intercept.tobytes() == expected.intercept.tobytes()
        assert found.slope.tobytes() == expected.slope.tobytes()
        one, two = found.bootstrap(7), expected.bootstrap(7)
        assert one.intercept.tobytes() == two.intercept.tobytes()
        assert one.slope.tobytes() == two.slope.tobytes()


def test_fractional_runs_in_every_order_give_the_same_bits():
    rng = np.random.default_rng(8)
    runs = [
        {"model": "m", "item": item, "k": float(k)}
        for item in SIX
        for k in rng.choice([0.1, 0.3, 0.7, 1.0, 0.0], 9)
    ]
    expected = metr(runs, MINUTES, scores="fractional")
    for _ in range(5):
        rng.shuffle(runs)
        found = metr(runs, MINUTES, scores="fractional")
        assert found.slope.tobytes() == expected.slope.tobytes()
        assert found.bootstrap(4).slope.tobytes() == expected.bootstrap(4).slope.tobytes()


def test_what_has_no_minutes_is_left_out_and_listed():
    rows = _table()
    more = [*rows, {"model": "m0", "item": "z", "k": 1}, {"model": "only", "item": "z", "k": 0}]
    for minutes in (MINUTES, MINUTES | {"z": None, "unused": 4.0}):
        found = metr(more, minutes)
        assert found.without_minutes == ("z",)
        assert found.without_runs == ("only",)
        assert found.slope.tobytes() == metr(rows, MINUTES).slope.tobytes()


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"model": "m", "item": "a1", "k": 2}], {}, "k is more than n.*row 1"),
        ([{"model": "m", "item": "a1", "k": 0.5}], {}, "not a whole number"),
        ([{"model": "m", "item": "a1"}], {}, "no column k"),
        ({"model": ["m"], "item": ["a1"], "k": [1, 1]}, {}, "one length"),
        ([{"model": "m", "item": "q", "k": 1}], {}, "no run of a task"),
        ([], {}, "no column"),
        (_table(), {"weights": "invsqrt"}, "need the families"),
        (_table(), {"families": {"a1": "a"}}, "'a2' has no family"),
        (_table(), {"weights": "even"}, "no weights 'even'; there are equal, invsqrt, runs"),
        (_table(), {"regularisation": 0.0}, "not above 0"),
        (_table(), {"quantiles": (1.0,)}, "not between 0 and 1"),
    ],
)
def test_what_is_refused(rows, options, message):
    with pytest.raises(ValueError, match=message):
        metr(rows, MINUTES, **options)


def test_minutes_must_be_above_zero():
    with pytest.raises(DataError, match="'a1' are 0"):
        metr(_table(), MINUTES | {"a1": 0.0})


def _cells(rows=None, families=FAMILIES):
    return read_cells(rows or _table(), MINUTES, families, "counts")


def test_tasks_are_drawn_with_the_moments_of_two_stages():
    """Drawn m times: E 1; Var = (1 − 1/tasks of the family) + (1 − 1/families), by total variance."""
    cells = _cells()
    n = 6000
    times = np.array([
        _resample(cells, np.random.default_rng(i))[1][:, 0] / cells.n[:, 0] for i in range(n)
    ])  # fmt: skip
    assert times.mean(axis=0) == pytest.approx(np.ones(6), abs=5 * np.sqrt(4 / 3 / n))
    size = np.array([3, 3, 3, 2, 2, 1])
    assert times.var(axis=0) == pytest.approx((1 - 1 / size) + (1 - 1 / 3), abs=0.15)
    # families of 3, 2 and 1 tasks, three of them drawn: a draw has between 3 and 9 tasks
    assert {3, 9} <= set(times.sum(axis=1)) <= set(range(3, 10))


def test_runs_are_drawn_as_a_binomial():
    cells = read_cells([{"model": "m", "item": "a1", "k": 3, "n": 10}], MINUTES, None, "counts")
    solved = [_resample(cells, np.random.default_rng(i))[0][0, 0] for i in range(4000)]
    seen = np.bincount(np.array(solved, dtype=int), minlength=11)
    expected = 4000 * stats.binom.pmf(np.arange(11), 10, 0.3)
    big = expected > 5
    assert (
        stats.chisquare(seen[big], expected[big] * seen[big].sum() / expected[big].sum()).pvalue
        > 0.01
    )


def test_fractional_runs_are_drawn_whole():
    rows = [{"model": "m", "item": "a1", "k": k} for k in (0.25, 0.25, 1.0)]
    cells = read_cells(rows, MINUTES, None, "fractional")
    sums = [_resample(cells, np.random.default_rng(i))[0][0, 0] for i in range(3000)]
    # three runs, each 1 with chance a third, else a quarter
    values, seen = np.unique(sums, return_counts=True)
    assert values.tolist() == [0.75, 1.5, 2.25, 3.0]
    assert stats.chisquare(seen, 3000 * stats.binom.pmf(range(4), 3, 1 / 3)).pvalue > 0.01


def test_a_sum_of_fractional_scores_cannot_be_resampled():
    rows = [{"model": "m", "item": "a1", "k": 1.5, "n": 3}, {"model": "m", "item": "a2", "k": 0}]
    found = metr(rows, MINUTES, scores="fractional")
    with pytest.raises(DataError, match="1 cells give the sum"):
        found.bootstrap(2)


def test_a_draw_is_fitted_with_the_weights_of_the_whole():
    """Not renormalised: scikit-learn with the first weights on every run drawn."""
    cells, lam = _cells(), 0.1
    weight = run_weights(cells, "invsqrt")
    intercept, slope, failed = fit_draws(cells, weight, lam, 20, 42)
    x = np.log2(cells.minutes)
    totals = []
    for i in range(20):
        solved, tried = _resample(cells, np.random.default_rng(42 + i))
        for j in range(3):
            right, wrong = weight[:, j] * solved[:, j], weight[:, j] * (tried - solved)[:, j]
            totals.append(right.sum() + wrong.sum())
            if right.sum() > 0 and wrong.sum() > 0:
                expected = _sklearn(np.r_[x, x], [1] * 6 + [0] * 6, np.r_[right, wrong], lam)
                assert (intercept[i, j], slope[i, j]) == pytest.approx(expected, abs=1e-6)
    assert failed == 0
    assert max(totals) > 1.2
    assert min(totals) < 0.8


def test_a_bootstrap_row_by_row_has_the_same_distribution():
    rows = _table()
    runs = _runs(rows)
    weight = _plain_weights(runs, "equal")
    rng = np.random.default_rng(5)
    plain = []
    for _ in range(300):
        drawn = []
        for family in rng.choice(list("abc"), 3):
            tasks = [item for item in SIX if FAMILIES[item] == family]
            for task in rng.choice(tasks, len(tasks)):
                here = [
                    i for i, row in enumerate(runs) if row["item"] == task and row["model"] == "m1"
                ]
                drawn += rng.choice(here, len(here)).tolist()
        y = np.array([runs[i]["k"] for i in drawn])
        if 0 < y.sum() < len(y):
            x = np.log2([MINUTES[runs[i]["item"]] for i in drawn])
            intercept, slope = _sklearn(x, y, weight[drawn], 0.1)
            plain.append(-intercept / slope if slope else np.nan)
    found = metr(rows, MINUTES, families=FAMILIES, regularisation=0.1).bootstrap(2000)
    ours = found.horizons()[:, 1]
    ours = np.log2(ours[np.isfinite(ours) & (ours > 0)])
    plain = np.array(plain)[np.isfinite(plain)]
    assert stats.ks_2samp(ours, plain).pvalue > 0.05


def test_draw_i_has_seed_plus_i():
    found = metr(_table(), MINUTES, families=FAMILIES)
    draws = found.bootstrap(4, seed=42)
    for i in range(4):
        assert found.bootstrap(1, seed=42 + i).slope.tobytes() == draws.slope[i].tobytes()


def test_models_are_drawn_on_the_same_tasks():
    rows = [
        {"model": model, "item": item, "k": k}
        for model in ("one", "two")
        for item, k in zip(SIX, (1, 1, 0, 1, 0, 0), strict=True)
    ]
    draws = metr(rows, MINUTES, families=FAMILIES).bootstrap(50)
    assert draws.intercept[:, 0].tobytes() == draws.intercept[:, 1].tobytes()
    assert len(np.unique(draws.intercept[:, 0])) > 10


@pytest.mark.parametrize(
    ("n", "level", "ranks"),
    [(200, 0.9, (10, 190)), (1000, 0.95, (25, 975)), (200, 0.925, (8, 193)), (9, 0.999, (1, 9))],
)
def test_the_interval_is_one_of_order_statistics(n, level, ranks):
    """The least value with at least that share of the draws at or below it."""
    known = np.random.default_rng(9).permutation(np.arange(1.0, n + 1))
    intercept = np.log2(np.r_[known, np.nan, np.nan])[:, None]
    draws = MetrDraws(("m",), intercept, np.where(np.isnan(intercept), np.nan, -1.0), ())
    assert draws.interval(0.5, level)[:, 0] == pytest.approx(ranks)
    with pytest.raises(ValueError, match="not between 0 and 1"):
        draws.interval(0.5, 1.0)


def test_a_draw_without_a_models_tasks_has_no_line():
    rows = [*_table(), {"model": "few", "item": "c1", "k": 1, "n": 2}]
    draws = metr(rows, MINUTES, families=FAMILIES).bootstrap(300)
    # family c is missing in (2/3)³ of the draws
    assert np.isnan(draws.intercept[:, 0]).mean() == pytest.approx(8 / 27, abs=0.08)
    assert not np.isnan(draws.intercept[:, 1]).any()


def test_state_of_the_art_is_its_definition():
    rng = np.random.default_rng(6)
    for _ in range(50):
        minutes = rng.integers(0, 6, 12).astype(float)
        days = [date(2024, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 6, 12)]
        expected = [
            all(h >= other for other, then in zip(minutes, days, strict=True) if then <= day)
            for h, day in zip(minutes, days, strict=True)
        ]
        assert state_of_the_art(minutes, days).tolist() == expected
    assert state_of_the_art([np.nan, 1.0], [date(2024, 1, 1)] * 2).tolist() == [False, True]


def _steps(at):
    """Models that solve exactly the tasks below their horizon, on a fine grid of minutes."""
    grid = 2.0 ** np.arange(-4, 12)
    minutes = {f"t{i:02d}": float(m) for i, m in enumerate(grid)}
    rows = [
        {"model": model, "item": item, "k": int(m < h)}
        for model, h in at.items()
        for item, m in minutes.items()
    ]
    return rows, minutes


def test_the_trend_of_known_horizons():
    at = {"p": 1.5, "q": 3.0, "r": 6.0, "s": 12.0}
    found = metr(*_steps(at))
    dates = {name: date(2024, 1, 1) + timedelta(150 * i) for i, name in enumerate(at)}
    line = found.trend(dates)
    assert line.model == tuple(at)
    assert line.doubling_days == pytest.approx(150, rel=0.01)
    x, y = np.array([0, 150, 300, 450]), np.log(found.minutes[0])
    assert (line.slope, line.intercept) == pytest.approx(np.polyfit(x, y, 1), rel=1e-9)
    assert line.r2 == pytest.approx(stats.linregress(x, y).rvalue ** 2, rel=1e-9)
    assert np.isnan(line.lo)


def test_the_trend_clips_leaves_out_and_lists():
    at = {"none": 0.0, "p": 1.5, "behind": 1.0, "q": 3.0, "all": 1e9, "undated": 4.0}
    found = metr(*_steps(at))
    days = {"none": "2023-01-01", "p": "2024-01-01", "behind": "2024-02-01", "q": "2024-06-01",
            "all": "2024-07-01", "undated": None, "elsewhere": "2020-01-01"}  # fmt: skip
    line = found.trend(days)
    assert line.model == ("none", "p", "q")
    assert line.undated == ("undated",)
    assert line.without_horizon == ("all",)
    h = dict(zip(found.model, found.minutes[0], strict=True))
    x = [(date.fromisoformat(days[name]) - date(2023, 1, 1)).days for name in line.model]
    y = np.log([1e-3, h["p"], h["q"]])
    assert (line.slope, line.intercept) == pytest.approx(np.polyfit(x, y, 1), rel=1e-9)
    assert found.trend(days, frontier=False).model == ("none", "p", "behind", "q")
    with pytest.raises(DataError, match="1 models with 1 release dates"):
        found.trend({"p": "2024-01-01"})
    with pytest.raises(DataError, match="no date"):
        found.trend(days | {"p": "soon"})


def test_the_interval_of_the_trend_is_that_of_the_draws_slopes():
    found = metr(_table(), MINUTES, families=FAMILIES)
    dates = {"m0": "2024-01-01", "m1": "2024-04-01", "m2": "2024-12-01"}
    draws = found.bootstrap(100)
    line = found.trend(dates, draws=draws, level=0.8, frontier=False)
    x, slopes = np.array([0.0, 91.0, 335.0]), []
    for row in np.log(np.maximum(draws.horizons(), 1e-3)):
        good = np.isfinite(row)
        if good.sum() > 1:
            slopes.append(np.polyfit(x[good], row[good], 1)[0])
    ends = np.sort(slopes)[[int(np.ceil(f * len(slopes))) - 1 for f in (0.9, 0.1)]]
    expected = [np.log(2) / s if s > 0 else np.inf for s in ends]
    assert (line.lo, line.hi) == pytest.approx(expected, rel=1e-9)


def test_binned_rates_by_hand():
    minutes = {"u": 0.5, "v": 1.0, "w": 3.9, "x": 4.0, "y": 2880.0}
    rows = [
        {"model": "m", "item": item, "k": k, "n": n}
        for item, k, n in (("u", 1, 1), ("v", 1, 4), ("w", 2, 2), ("x", 1, 3), ("y", 0, 2))
    ]
    found = metr(rows, minutes)
    bins = found.binned()
    assert bins.lower.tolist() == [0, 1, 4, 16, 64, 256, 960, 2880]
    assert bins.upper.tolist() == [1, 4, 16, 64, 256, 960, 2880, np.inf]
    # every task alike: (1/4 + 1)/2 from 1 to 4 minutes
    assert bins.rate[[0, 1, 2, 7], 0] == pytest.approx([1, 0.625, 1 / 3, 0])
    assert np.isnan(bins.rate[3:7]).all()
    assert bins.n_runs[:, 0].tolist() == [1, 6, 3, 0, 0, 0, 0, 2]
    assert bins.n_items[:, 0].tolist() == [1, 2, 1, 0, 0, 0, 0, 1]
    # every run alike: 3 of 6
    assert metr(rows, minutes, weights="runs").binned().rate[1, 0] == pytest.approx(0.5)


def test_the_fit_does_not_care_for_its_company():
    """One problem at a time and all at once; scaled weights and penalty change nothing."""
    rng = np.random.default_rng(7)
    x, right, wrong = np.log2(list(MINUTES.values())), rng.random((40, 6)), rng.random((40, 6))
    intercept, slope, good = fit_lines(x, right / 6, wrong / 6, 0.05)
    assert good.all()
    for i in range(40):
        alone = fit_lines(x, right[i : i + 1] / 3, wrong[i : i + 1] / 3, 0.1)
        assert (alone[0][0], alone[1][0]) == pytest.approx((intercept[i], slope[i]), rel=1e-9)
        gradient = np.sum(
            right[i] - (right[i] + wrong[i]) / (1 + np.exp(-intercept[i] - slope[i] * x))
        )
        assert gradient == pytest.approx(0, abs=1e-9)


def test_the_names_of_the_library():
    assert irt.metr is metr
    assert irt.Metr.__name__ == "Metr"
    assert float(horizon_minutes(3.0, -1.0, 0.5)) == 8.0


def test_draws_are_the_same_in_chunks_of_any_size(monkeypatch):
    found = metr(_table(), MINUTES, families=FAMILIES)
    whole = found.bootstrap(7)
    monkeypatch.setattr("irt._metr_fit._CHUNK", 40)
    assert found.bootstrap(7).slope.tobytes() == whole.slope.tobytes()


def test_a_fit_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("irt._metr_fit._MAX_STEPS", 1)
    found = metr(_table(), MINUTES, families=FAMILIES)
    assert found.flags == (("not_converged",),) * 3
    (note,) = found.bootstrap(10).notes
    assert note.endswith("of 30 fits did not converge")
