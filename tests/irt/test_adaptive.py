"""Adaptive tests: what is asked, when it stops, what is told, and whether the intervals hold."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, log_expit
from scipy.stats import norm

import irt
from irt.adaptive import information
from irt.bank import PARAMETERISATION, VERSION
from irt.data import DataError
from irt.replay import widening


def _bank(a, d, *, cost=None, group=None, errors=0.0, mean=0.0, sd=1.0, version="1"):
    size = len(a)
    e = np.full(size, errors)
    return irt.Bank(
        tuple(("task", version, f"i{row:03d}") for row in range(size)),
        np.asarray(a, dtype=float), np.asarray(d, dtype=float), e, 2 * e, e * e,
        np.ones(size) if cost is None else np.asarray(cost, dtype=float),
        (None,) * size if group is None else tuple(group),
        mean, sd, "mean(theta) = 0", "joint", "f00d",
    )  # fmt: skip


def _random_bank(size=60, seed=5, **more):
    rng = np.random.default_rng(seed)
    a = np.exp(0.4 * rng.normal(size=size))
    return _bank(a, -a * 1.2 * rng.normal(size=size), **more)


def _run(session, theta=0.3, seed=0):
    """Answer as a model of this ability would; the items in the order asked, and the batches' sizes."""
    bank, asked, sizes = session.bank, [], []
    u = np.random.default_rng(seed).random(len(bank))
    while batch := session.next_batch():
        sizes.append(len(batch))
        for key in batch:
            row = bank.place[key]
            session.record(key, int(u[row] < expit(bank.a[row] * theta + bank.d[row])))
            asked.append(key)
    return asked, sizes


@pytest.mark.parametrize("theta", [-2.0, 0.1, 1.7])
def test_information_is_the_expected_curvature_of_the_log_likelihood(theta):
    """−E[∂² log p(k)/∂θ²] by central differences."""
    a, d, h = np.array([0.5, 1.3, 2.4]), np.array([1.0, -0.4, -2.0]), 1e-3
    p = expit(a * theta + d)
    expected = np.zeros(3)
    for sign, share in ((1, p), (-1, 1 - p)):
        at = [log_expit(sign * (a * (theta + step) + d)) for step in (-h, 0.0, h)]
        expected -= share * (at[0] - 2 * at[1] + at[2]) / h**2
    assert np.allclose(information(a, d, np.array([theta]))[:, 0], expected, rtol=1e-5)


def test_the_first_items_maximise_expected_log_information():
    """Against adaptive quadrature over the prior, item after item."""
    bank = _random_bank(12, mean=0.2, sd=1.3)
    rules = irt.CatRules(batch=4, first=4, aim="theta")
    chosen = irt.cat(bank, rules).next_batch()

    def gain(rows):
        def density(x):
            p = expit(bank.a[rows] * x + bank.d[rows])
            return norm.pdf(x, 0.2, 1.3) * np.log(1.3**-2 + np.sum(bank.a[rows] ** 2 * p * (1 - p)))

        return quad(density, -9, 9, epsabs=1e-10)[0]

    rows: list[int] = []
    for _ in range(4):
        rows.append(max(set(range(12)) - set(rows), key=lambda row: gain([*rows, row])))
    assert [bank.place[key] for key in chosen] == rows


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_items_for_the_score_leave_it_the_least_expected_variance(seed):
    """E[(dS/dθ)² / information] after two answers, against quadrature; S by numerical derivative."""
    bank = _random_bank(12, seed=seed, mean=0.2, sd=1.3)
    session = irt.cat(bank, irt.CatRules(batch=3, first=3))
    session.record(bank.item[0], 1)
    session.record(bank.item[1], 0)

    def bits(x, rows):
        p = expit(bank.a[rows] * x + bank.d[rows])
        return np.sum(bank.a[rows] ** 2 * p * (1 - p))

    def loss(rows):
        def density(x):
            z, h = bank.a[:2] * x + bank.d[:2], 1e-4
            like = norm.pdf(x, 0.2, 1.3) * np.exp(log_expit(z[0]) + log_expit(-z[1]))
            up, down = (expit(bank.a[2:] * (x + s) + bank.d[2:]).sum() for s in (h, -h))
            return like * ((up - down) / (2 * h)) ** 2 / (1.3**-2 + bits(x, [0, 1, *rows]))

        return quad(density, -9, 9, epsabs=1e-12)[0]

    rows: list[int] = []
    for _ in range(3):
        rows.append(min(set(range(2, 12)) - set(rows), key=lambda row: loss([*rows, row])))
    assert [bank.place[key] for key in session.next_batch()] == rows


def test_answers_that_are_there_are_asked_for_first():
    """Five items cost nothing: they come first, the most telling of them ahead, then the others."""
    bank = _random_bank(30, sd=1e-3, mean=0.7)
    free = {bank.item[row] for row in (2, 9, 11, 20, 25)}
    session = irt.cat(bank, irt.CatRules(batch=8, first=8), free=free)
    chosen = session.next_batch()
    assert set(chosen[:5]) == free
    p = expit(bank.a * 0.7 + bank.d)
    bits = bank.a**2 * p * (1 - p)
    for part in (chosen[:5], chosen[5:]):
        found = [bits[bank.place[key]] for key in part]
        assert found == sorted(found, reverse=True)


def test_later_items_count_what_is_known_and_the_attempts_that_are_planned():
    """After answers, one of them 3 of 6, against quadrature over the posterior."""
    bank, attempts = _random_bank(12, seed=15), np.array([6] * 4 + [1, 8] * 4)
    rules = irt.CatRules(batch=3, first=3, aim="theta")
    session = irt.cat(bank, rules, attempts=attempts)
    k, n = np.array([3, 1, 0]), np.array([6, 1, 1])
    for row in range(3):
        session.record(bank.item[row], k[row], n[row])

    def bits(x, rows):
        p = expit(bank.a[rows] * x + bank.d[rows])
        return bank.a[rows] ** 2 * p * (1 - p)

    def gain(rows):
        def density(x):
            z = bank.a[:3] * x + bank.d[:3]
            like = np.exp(np.sum(k * log_expit(z) + (n - k) * log_expit(-z)) - x * x / 2)
            known = 1 + n @ bits(x, [0, 1, 2]) + attempts[rows] @ bits(x, rows)
            return like * np.log(known)

        return quad(density, -8, 8, epsabs=1e-12)[0]

    rows: list[int] = []
    for _ in range(3):
        rows.append(max(set(range(3, 12)) - set(rows), key=lambda row: gain([*rows, row])))
    assert [bank.place[key] for key in session.next_batch()] == rows


def test_where_ability_is_known_the_order_is_that_of_the_information_there():
    bank = _random_bank(sd=1e-3, mean=0.7)
    p = expit(bank.a * 0.7 + bank.d)
    best = np.argsort(-(bank.a**2) * p * (1 - p))[:10]
    rules = irt.CatRules(batch=10, first=10, randomesque=1)
    assert [bank.place[key] for key in irt.cat(bank, rules).next_batch()] == best.tolist()


def test_a_batch_is_spread_over_where_ability_may_be():
    """Planted fault: by the information at the prior's mean alone, all of the first four are alike."""
    b = np.array([0.0, 0.0, 0.0, 0.0, -2.0, 2.0])
    bank = _bank(np.full(6, 2.5), -2.5 * b, sd=2.0)
    chosen = irt.cat(bank, irt.CatRules(first=4, aim="theta")).next_batch()
    assert {4, 5} < {bank.place[key] for key in chosen}


def test_dear_items_must_be_worth_their_cost():
    a, d = [1.0, 1.0, 1.5], [0.0, 0.0, 0.0]
    rules = irt.CatRules(batch=1, randomesque=1)
    assert irt.cat(_bank(a, d), rules).next_batch() == (("task", "1", "i002"),)
    dear = irt.cat(_bank(a, d, cost=[2, 1, 5]), rules).next_batch()
    assert dear == (("task", "1", "i001"),)


def test_it_stops_at_the_standard_error():
    session = irt.cat(_random_bank(400), irt.CatRules(batch=1, se=0.3))
    asked, _ = _run(session)
    assert session.stopped == session.result().stopped == "se"
    assert session.result().se <= 0.3
    before = irt.cat(_random_bank(400), irt.CatRules(batch=1, se=0.3))
    _replay(before, session, asked[:-1])
    assert before.stopped is None
    assert before.result().se > 0.3


def _replay(session, source, keys):
    for key in keys:
        row = source.bank.place[key]
        session.record(key, source._k[row])


def test_it_stops_at_the_number_of_items_and_batches_grow_to_theirs():
    session = irt.cat(_random_bank(100), irt.CatRules(max_items=50))
    asked, sizes = _run(session)
    assert sizes == [1, 1, 2, 4, 8, 16, 16, 2]
    assert session.stopped == "max_items"
    assert session.n_items == len(asked) == 50


def test_without_a_rule_every_item_is_asked_once():
    session = irt.cat(_random_bank(60))
    asked, _ = _run(session)
    assert sorted(asked) == sorted(session.bank.item)
    assert session.stopped == "no items left"
    result = session.result()
    assert result.score == result.observed == result.score_lo == result.score_hi
    assert result.score_se == 0


def test_a_batch_that_is_out_is_asked_again_only_for_what_is_missing():
    session = irt.cat(_random_bank(), irt.CatRules(first=4))
    first = session.next_batch()
    session.record(first[1], 1)
    assert session.next_batch() == (first[0], *first[2:])


def test_a_lost_item_is_not_asked_again_and_stays_unseen():
    session = irt.cat(_random_bank(5), irt.CatRules(batch=8, first=8))
    lost, *others = session.next_batch()
    session.record(lost, 0, 0)
    for key in others:
        session.record(key, 1)
    assert session.next_batch() == ()
    assert session.result().n_items == 4
    assert 0.8 < session.result().score < 1


def test_content_is_balanced():
    group = ["x"] * 20 + ["y"] * 20 + ["z"] * 10 + [None] * 10
    bank = _random_bank(60, group=group)
    name = dict(zip(bank.item, group, strict=True))
    rules = irt.CatRules(max_items=20, shares={"x": 2, "y": 1, "z": 1})
    asked, _ = _run(irt.cat(bank, rules))
    assert Counter(name[key] for key in asked) == {"x": 10, "y": 5, "z": 5}
    for upto in range(1, 21):  # at every point, not at the end only
        assert abs(sum(name[key] == "x" for key in asked[:upto]) - upto / 2) <= 1
    # A group that is used up leaves its turn to the others; items without a share are never asked.
    session = irt.cat(bank, irt.CatRules(shares={"x": 1, "z": 1}))
    everything, _ = _run(session)
    assert session.stopped == "no items left"
    assert Counter(name[key] for key in everything) == {"x": 20, "z": 10}
    with pytest.raises(DataError, match="no item of the bank is of the group 'w'"):
        irt.cat(bank, irt.CatRules(shares={"x": 1, "w": 1}))


def test_exposure_is_shared_among_the_best():
    """The best item is drawn once in five first picks: binomial(200, 1/5) within four SDs."""
    bank = _random_bank(sd=1e-3)
    p = expit(bank.d)
    best = np.argsort(-(bank.a**2) * p * (1 - p))[:5]
    firsts = Counter(
        irt.cat(bank, irt.CatRules(batch=1, randomesque=5, seed=seed)).next_batch()[0]
        for seed in range(200)
    )
    assert set(firsts) == {bank.item[row] for row in best}
    assert all(abs(count - 40) <= 4 * (200 * 0.2 * 0.8) ** 0.5 for count in firsts.values())


def test_the_seed_decides_and_nothing_else():
    bank = _random_bank()
    runs = [
        _run(irt.cat(bank, irt.CatRules(max_items=30, randomesque=3, seed=seed)))[0]
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_session_rebuilt_from_its_answers_goes_on_alike():
    rules = irt.CatRules(max_items=40, shares={"x": 1, "y": 2})
    bank = _random_bank(group=["x", "y"] * 30)
    whole = irt.cat(bank, rules)
    asked, _ = _run(whole)
    resumed = irt.cat(bank, rules)
    _replay(resumed, whole, asked[:16])
    assert list(resumed.next_batch()) == asked[16:32]


def test_ability_and_score_against_scipy():
    """Four answers of ten, one of them 2 of 3: posterior moments by quadrature, the score by hand."""
    bank = _random_bank(10, mean=0.3, sd=1.2)
    session = irt.cat(bank)
    k, n = np.array([1, 0, 2, 1]), np.array([1, 1, 3, 1])
    for row in range(4):
        session.record(bank.item[row], k[row], n[row])

    def density(x, power):
        z = bank.a[:4] * x + bank.d[:4]
        log = np.sum(k * log_expit(z) + (n - k) * log_expit(-z))
        return x**power * np.exp(log - (x - 0.3) ** 2 / 2.88)

    total, first, second = (quad(density, -12, 12, args=(m,), epsabs=1e-13)[0] for m in range(3))
    mean, var = first / total, second / total - (first / total) ** 2
    found = session.result(level=0.9)
    assert found.theta == pytest.approx(mean, abs=1e-4)
    assert found.se == pytest.approx(var**0.5, abs=1e-4)
    p = expit(bank.a[4:] * found.theta + bank.d[4:])
    assert found.score == pytest.approx((1 + 0 + 2 / 3 + 1 + p.sum()) / 10, abs=1e-12)
    h = 1e-5
    moved = [expit(bank.a[4:] * (found.theta + s) + bank.d[4:]).sum() for s in (-h, h)]
    slope = (moved[1] - moved[0]) / (2 * h)
    se = np.sqrt((slope * found.se) ** 2 + np.sum(p * (1 - p))) / 10
    assert found.score_se == pytest.approx(se, rel=1e-6)
    assert found.score - found.score_lo == pytest.approx(1.6448536 * se, rel=1e-6)
    assert found.observed == pytest.approx((8 / 3) / 4)


def test_the_banks_own_error_is_that_of_a_simulation():
    """Items drawn from their errors, the mode found anew by bisection: its SD over 2,000 banks."""
    bank = _random_bank(25, errors=0.12)
    session = irt.cat(bank)
    k = np.random.default_rng(1).integers(0, 2, size=25)
    for row, key in enumerate(bank.item):
        session.record(key, int(k[row]))
    rng = np.random.default_rng(2)
    cov = np.array([[0.12**2, 0.12**2], [0.12**2, 0.24**2]])  # as `_bank` makes it
    modes = []
    for _ in range(2000):
        lam, d = rng.multivariate_normal([0, 0], cov, size=25).T
        a, d = bank.a * np.exp(lam), bank.d + d
        modes.append(brentq(lambda x, a=a, d=d: np.sum(a * (k - expit(a * x + d))) - x, -9, 9))
    found = session.result()
    assert found.bank_se == pytest.approx(np.std(modes), rel=0.06)
    known = irt.cat(_random_bank(25))
    for row, key in enumerate(bank.item):
        known.record(key, int(k[row]))
    assert known.result().bank_se == 0
    assert found.se == pytest.approx(np.hypot(known.result().se, found.bank_se), rel=1e-9)


def test_the_interval_holds_what_is_possible_only():
    """Two items and no idea: the normal interval would reach from below none to above both."""
    session = irt.cat(_random_bank(2, sd=3.0))
    assert (session.result().score_lo, session.result().score_hi) == (0, 1)
    session.record(session.bank.item[0], 1)
    assert session.result().score_lo == 0.5


def test_unseen_items_errors_widen_the_score():
    """Before any answer, 25 attempts an item: θ, coins and items' errors, drawn 20,000 times."""
    bank = _random_bank(40, errors=0.15, sd=0.05)
    rng = np.random.default_rng(3)
    theta = 0.05 * rng.normal(size=20_000)
    cov = np.array([[0.15**2, 0.15**2], [0.15**2, 0.3**2]])
    lam, d = np.moveaxis(rng.multivariate_normal([0, 0], cov, size=(20_000, 40)), 2, 0)
    p = expit(bank.a * np.exp(lam) * theta[:, None] + bank.d + d)
    sd = np.std(rng.binomial(25, p).mean(axis=1) / 25)
    result = irt.cat(bank, attempts=25).result()
    assert result.score_se == pytest.approx(sd, rel=0.03)
    plain = irt.cat(_random_bank(40, sd=0.05), attempts=25).result().score_se
    assert plain < 0.9 * sd
    wide = irt.cat(bank, irt.CatRules(widen=2.0), attempts=25).result()
    assert wide.score_se == pytest.approx(2 * result.score_se)


def test_intervals_cover_the_truth_on_a_fitted_bank(simulate):
    """Six banks of 60 models, 60 new models on each: θ at 60 items, the score of a run of all 250."""
    z, alone, in_score, without_coins = [], [], [], []
    for seed in range(6):
        truth = simulate(seed, 60, 250)
        bank = irt.Bank.of(irt.fit(truth.responses, method="joint"))
        rng = np.random.default_rng(1000 + seed)
        theta = rng.normal(size=60)
        right = rng.random((250, 60)) < expit(truth.a[:, None] * (theta - truth.b[:, None]))
        answers = irt.Responses.from_matrix(right.T.astype(float), items=bank.item)
        trials = irt.simulate(bank, answers, irt.CatRules(max_items=60))
        for ability, trial in zip(theta, trials, strict=True):
            r = trial.result
            z.append((r.theta - ability) / r.se)
            alone.append((r.theta - ability) / np.sqrt(r.se**2 - r.bank_se**2))
            in_score.append(r.score_lo <= trial.score_all <= r.score_hi)
            share = _coins(bank, trial) / r.score_se
            without_coins.append(trial.score_z / np.sqrt(1 - share**2))
    assert 0.92 <= np.mean(np.abs(z) < 1.96) <= 0.98
    assert 0.92 <= np.mean(in_score) <= 0.98
    # Planted faults: the items taken as known; the coins of the unseen items left out.
    assert np.mean(np.abs(alone) < 1.96) < np.mean(np.abs(z) < 1.96)
    assert np.mean(np.abs(without_coins) < 1.96) < 0.9


def _coins(bank, trial):
    """Binomial error of the mean over the bank, from the items that were not asked."""
    seen = np.array([key in set(trial.asked) for key in bank.item])
    p = expit(bank.a[~seen] * trial.result.theta + bank.d[~seen])
    return np.sqrt(np.sum(p * (1 - p))) / len(bank)


def test_a_replay_offers_what_was_answered_and_knows_the_whole(simulate):
    truth = simulate(21, 30, 80, missing=0.3)
    fit = irt.fit(truth.responses, method="joint")
    bank = irt.Bank.of(fit)
    found = irt.simulate(bank, truth.responses, irt.CatRules(max_items=15))
    for column, trial in enumerate(found):
        answered = truth.n[:, column] > 0
        assert set(trial.asked) <= {bank.item[row] for row in np.flatnonzero(answered)}
        assert len(set(trial.asked)) == len(trial.asked) == trial.result.n_items == 15
        assert trial.result.n_bank == answered.sum()
        assert trial.score_all == pytest.approx(truth.k[answered, column].mean())
        assert trial.theta_all == pytest.approx(fit.models.theta[column], abs=1e-6)
    often = irt.simulate(bank, _times(truth.responses, 4), irt.CatRules(max_items=15))
    part = bank.subset(truth.n[:, 0] > 0)
    session = irt.cat(part, attempts=4)
    for key in often[0].asked:
        row = bank.place[key]
        session.record(key, 4 * truth.k[row, 0], 4)
    assert often[0].result.score_se == session.result().score_se
    with pytest.raises(DataError, match="model 'm' has no answer to an item of the bank"):
        irt.simulate(bank, {"model": ["m"], "item": ["i00001"], "k": [0], "n": [0]})


def _times(responses, times):
    return irt.Responses(
        responses.models, responses.items, times * responses.k, times * responses.n
    )


def test_a_bank_comes_back_from_json_as_it_was(simulate):
    fit = irt.fit(simulate(31, 20, 40).responses, method="joint")
    cost = {key: 1.0 + row for row, key in enumerate(fit.items.item)}
    bank = irt.Bank.of(fit, cost=cost, group=dict.fromkeys(fit.items.item[:10], "x"))
    assert np.allclose(bank.b, fit.items.b)
    assert np.allclose(bank.se_b, fit.items.se_b)
    stored = json.loads(json.dumps(bank.to_dict(), allow_nan=False))
    assert stored["parameterisation"] == PARAMETERISATION
    assert stored["gauge"] == fit.gauge
    assert stored["data_hash"] == fit.data_hash
    again = irt.Bank.from_dict(stored)
    assert again.to_dict() == bank.to_dict()
    assert again.group == ("x",) * 10 + (None,) * 30
    keyed = dataclasses.replace(_random_bank(1), item=(("task", ("1", 2), "x"),))
    assert irt.Bank.from_dict(json.loads(json.dumps(keyed.to_dict()))).item == keyed.item
    asked = [_run(irt.cat(one, irt.CatRules(max_items=20)))[0] for one in (bank, again)]
    assert asked[0] == asked[1]


def test_widening_is_none_where_the_model_is_true_and_found_where_it_is_not(simulate):
    """Planted fault: every item stands there three times, with the same answers each time."""
    truth = simulate(41, 48, 120)
    honest = widening(irt.fit(truth.responses, method="joint"), asked=20)
    k, n = truth.responses.k, truth.responses.n
    names = tuple(f"{key}/{copy}" for key in truth.responses.items[:40] for copy in range(3))
    thrice = irt.Responses(
        truth.responses.models, names, np.repeat(k[:40], 3, axis=0), np.repeat(n[:40], 3, axis=0)
    )
    hanging = widening(irt.fit(thrice, method="joint"), asked=20)
    # 48 z's: their root mean square has a standard error of a tenth.
    assert 1 <= honest < 1.3
    assert hanging > honest + 0.3
    few = thrice.subset(np.ones(120, dtype=bool), np.arange(48) < 7)
    assert widening(irt.fit(few, method="joint")) == 1  # too few to leave any out


def test_content_hashes_come_back_and_are_of_all_items_or_none(simulate):
    fit = irt.fit(simulate(31, 20, 40).responses, method="joint")
    bank = irt.Bank.of(fit, content=dict.fromkeys(fit.items.item[:3], "5ha"))
    again = irt.Bank.from_dict(json.loads(json.dumps(bank.to_dict())))
    assert again.content == bank.content == ("5ha",) * 3 + (None,) * 37
    assert bank.subset(np.arange(40) == 2).content == ("5ha",)
    assert irt.Bank.of(fit).content == ()
    with pytest.raises(DataError, match=r"40 items, but columns of \[2, 40\] rows"):
        dataclasses.replace(bank, content=("a", "b"))


def test_a_fit_that_has_not_converged_is_no_bank(simulate):
    fit = irt.fit(simulate(31, 20, 40).responses, method="joint")
    object.__setattr__(fit, "verdict", dataclasses.replace(fit.verdict, converged=False))
    with pytest.raises(DataError, match="has not converged"):
        irt.Bank.of(fit)


def _changed(**fields):
    return {**_random_bank(3).to_dict(), **fields}


def _item(**fields):
    stored = _random_bank(3).to_dict()
    stored["items"][1].update(fields)
    return stored


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (_changed(version=VERSION + 1),
         f"format version {VERSION + 1}; this program reads up to {VERSION}"),
        (_changed(format="csv"), "no bank of items"),
        (_changed(widen=0.0), "widens errors by 0"),
        (_changed(converged=False), "a fit that has not converged"),
        (_changed(parameterisation="d as difficulty"), "parameterisation is 'd as difficulty'"),
        (_changed(items=[]), "a bank without items"),
        (_changed(items=[{"item": "x"}]), "no field 'a'"),
        (_changed(items=3), "cannot be read"),
        (_item(a=-1.0), "'i001'.* a and cost above 0"),
        (_item(d=float("inf")), "finite parameters"),
        (_item(cov=0.5), "errors that are a covariance"),
        (_item(item=["task", "1", "i000"]), "the item .*'i000'.* twice"),
        (_changed(population={"mean": 0.0, "sd": 0.0}), "population has mean 0 and SD 0"),
    ],
)  # fmt: skip
def test_a_bank_that_cannot_be_used_is_refused_in_one_line(stored, message):
    with pytest.raises(DataError, match=message) as caught:
        irt.Bank.from_dict(stored)
    assert "\n" not in str(caught.value)


def test_costs_are_of_all_items_or_of_none(simulate):
    fit = irt.fit(simulate(31, 20, 40).responses, method="joint")
    with pytest.raises(DataError, match="39 items have no cost, 'i00001' among them"):
        irt.Bank.of(fit, cost={"i00000": 1.0})


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([("nothing", 1, 1)], "1 items are not in the bank: 'nothing'"),
        ([(("task", "1", "i001"), 1, 1)] * 2, "'i001'.* was recorded before"),
        ([(("task", "1", "i001"), 2, 1)], "k = 2 of n = 1; 0 <= k <= n"),
        ([(("task", "1", "i001"), -1, 1)], "k = -1 of n = 1"),
        ([(("task", "1", "i001"), float("nan"), 1)], "k = nan of n = 1"),
        ([(("task", "2", "i001"), 1, 1)],
         r"another version of the task: it has \('task', '1', 'i001'\), not \('task', '2', 'i001'\)"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_are_refused_in_one_line(answers, message):
    session = irt.cat(_random_bank())
    *before, last = answers
    for answer in before:
        session.record(*answer)
    with pytest.raises(DataError, match=message) as caught:
        session.record(*last)
    assert "\n" not in str(caught.value)


def test_answers_to_another_version_of_the_task_are_refused():
    other = _random_bank(version="2").item
    table = {"model": ["m"] * 60, "item": list(other), "k": [1] * 60}
    message = r"it has \('task', '1', 'i000'\), not \('task', '2', 'i000'\) \(60 such items\)"
    with pytest.raises(DataError, match=message):
        irt.simulate(_random_bank(), table)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"batch": 0}, "batch = 0"), ({"first": 0}, "first = 0"), ({"max_items": 0}, "max_items"),
        ({"randomesque": 0}, "randomesque = 0"), ({"seed": -1}, "seed = -1"), ({"se": 0.0}, "se = 0"),
        ({"aim": "speed"}, "aim = 'speed'"), ({"widen": float("nan")}, "widen = nan"), ({"shares": {}}, "shares"),
        ({"shares": {"x": -1.0}}, "shares"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_kept_are_refused(rules, message):
    with pytest.raises(DataError, match=message):
        irt.CatRules(**rules)


def test_attempts_count_in_the_noise_of_the_unseen():
    """Planned four times each, an unseen item's mean has a quarter of the variance."""
    bank = _random_bank(40, sd=1e-6)
    one, four = (irt.cat(bank, attempts=n).result().score_se for n in (1, 4))
    assert one / four == pytest.approx(2.0, rel=1e-6)
    with pytest.raises(DataError, match="attempts planned"):
        irt.cat(bank, attempts=0)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(DataError, match=r"level = .* between 0 and 1"):
        irt.cat(_random_bank(3)).result(level)
