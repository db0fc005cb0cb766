"""Differential item functioning: each test against another library, then simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import StratifiedTable, mcnemar
from statsmodels.stats.multitest import multipletests

import irt
from irt._dif_checks import mantel_haenszel
from irt._dif_fit import fit_item_groups
from irt._dif_pairs import pair_test
from irt.data import DataError, Responses
from irt.dif import dif, paired_dif
from irt.residuals import benjamini_hochberg

FLAT = (0.0, 1e4)


def simulated(seed, models=80, items=60, *, shift=None, attempts=1, impact=0.0, slope=None):
    """Every other model is focal; `shift` moves difficulties, `slope` log a, for those only."""
    rng = np.random.default_rng(seed)
    focal = np.arange(models) % 2 == 1
    theta = rng.normal(size=models) + impact * focal
    a, b = np.exp(0.3 * rng.normal(size=items)), rng.normal(size=items)
    z_shift = np.zeros(items) if shift is None else shift
    a_shift = np.zeros(items) if slope is None else slope
    each = np.exp(np.log(a)[:, None] + np.outer(a_shift, focal))
    p = 1 / (1 + np.exp(-each * (theta - b[:, None] - np.outer(z_shift, focal))))
    n = np.full((items, models), attempts)
    k = rng.binomial(n, p)
    names = tuple(f"m{j:03d}" for j in range(models)), tuple(f"i{i:03d}" for i in range(items))
    data = Responses(*names, k.astype(float), n.astype(float))
    return data, {name: ("focal" if f else "base") for name, f in zip(names[0], focal, strict=True)}


@pytest.fixture(scope="module")
def shifted():
    """Three items harder by 1.5 for the focal group, two easier; one with half the slope."""
    shift, slope = np.zeros(60), np.zeros(60)
    shift[[4, 17, 31]], shift[[8, 40]], slope[54] = 1.5, -1.5, -1.6
    data, groups = simulated(61, 200, 60, shift=shift, slope=slope, attempts=3)
    return irt.fit(data, method="joint"), groups


@pytest.fixture(scope="module")
def found(shifted):
    return dif(*shifted, reference="base")


def test_planted_differences_are_found(found):
    flagged = {
        item
        for item, group, f in zip(found.item, found.group, found.flags, strict=True)
        if "dif" in f
    }
    assert flagged >= {"i004", "i017", "i031", "i008", "i040"}
    assert len(flagged) <= 7
    place = {item: row for row, item in enumerate(found.item)}
    for item, truth in (
        ("i004", 1.5),
        ("i017", 1.5),
        ("i031", 1.5),
        ("i008", -1.5),
        ("i040", -1.5),
    ):
        row = place[item]
        assert abs(found.delta_b[row] - truth) < 3 * found.se_b[row]
        assert "mh" in found.flags[row]
        # positive log odds favour the reference group: the item is harder for the focal one
        assert np.sign(found.mh_log_odds[row]) == np.sign(truth)
    assert int(np.argmin(found.p_slope)) == place["i054"]
    assert abs(found.delta_log_a[place["i054"]] + 1.6) < 3 * found.se_log_a[place["i054"]]
    assert found.converged
    assert found.reference == "base"
    assert ("i004", "focal") in found.flagged


def test_rows_name_their_columns(found):
    first = found.to_dicts()[0]
    assert first["item"] == "i000"
    assert first["group"] == "focal"
    assert (first["n_reference"], first["n_focal"]) == (100, 100)
    assert "reference" not in first
    assert len(found.to_dicts()) == len(found) == 60


def test_no_difference_gives_five_in_a_hundred():
    """Forty sets of 60 items; the groups differ in ability, which is no difference of items."""
    p_lr, p_wald, p_slope, p_mh, flags = [], [], [], [], 0
    for seed in range(40):
        data, groups = simulated(100 + seed, 100, 60, impact=0.5)
        at = dif(irt.fit(data, method="joint"), groups)
        (
            p_lr.append(at.p_lr),
            p_wald.append(at.p_wald),
            p_slope.append(at.p_slope),
            p_mh.append(at.p_mh),
        )
        flags += sum("dif" in f for f in at.flags)
    assert 0.04 < np.mean(np.concatenate(p_lr) < 0.05) < 0.06
    assert 0.03 < np.mean(np.concatenate(p_wald) < 0.05) < 0.06
    assert 0.04 < np.mean(np.concatenate(p_slope) < 0.05) < 0.08
    assert np.nanmean(np.concatenate(p_mh) < 0.05) < 0.075  # corrected for continuity: careful
    assert flags <= 6  # of 2,400


def test_the_size_of_a_difference_is_covered():
    hits = []
    for seed in range(6):
        shift = np.zeros(50)
        shift[:10] = np.linspace(-1.2, 1.2, 10)
        data, groups = simulated(200 + seed, 150, 50, shift=shift)
        at = dif(irt.fit(data, method="joint"), groups, reference="base")
        truth = dict(zip(data.items, shift, strict=True))
        hits += [
            abs(at.delta_b[row] - truth[item]) < 1.96 * at.se_b[row]
            for row, item in enumerate(at.item)
        ]
    assert 0.91 < np.mean(hits) < 0.98


def test_linked_abilities_see_through_many_differences_of_one_sign():
    """A third of the items are harder for the focal group: fixed abilities blame the others too."""
    shift = np.zeros(60)
    shift[:20] = 1.5
    data, groups = simulated(63, 240, 60, shift=shift)
    fitted = irt.fit(data, method="joint")
    fixed, linked = (dif(fitted, groups, reference="base", theta=t) for t in ("fixed", "linked"))
    bias = [
        np.mean([d for item, d in zip(at.item, at.delta_b, strict=True) if item >= "i020"])
        for at in (fixed, linked)
    ]
    assert bias[0] < -0.25
    assert abs(bias[1]) < abs(bias[0]) / 3
    wrong = [sum(item >= "i020" for item, _ in at.flagged) for at in (fixed, linked)]
    assert wrong[1] < wrong[0]
    assert sum(item < "i020" for item in linked.purified) >= 18
    assert not fixed.purified


def test_permuted_rows_names_and_groups_change_nothing(shifted, found, rows_of):
    fitted, groups = shifted
    rows = rows_of(fitted.responses)
    np.random.default_rng(5).shuffle(rows)
    again = dif(irt.fit(rows, method="joint"), dict(reversed(groups.items())), reference="base")
    assert np.array_equal(again.lr, found.lr)
    # other names, so another order of the models
    names = {m: f"x{(37 * j) % 200:03d}" for j, m in enumerate(fitted.models.model)}
    renamed = [row | {"model": names[row["model"]]} for row in rows]
    moved = dif(
        irt.fit(renamed, method="joint"), {names[m]: g for m, g in groups.items()}, reference="base"
    )
    assert moved.item == found.item
    assert moved.lr == pytest.approx(found.lr, rel=1e-4, abs=1e-4)
    assert moved.flags == found.flags
    # the other group as reference: the same test, the other sign
    other = dif(fitted, groups, reference="focal")
    assert other.delta_b == pytest.approx(-found.delta_b, rel=1e-3, abs=1e-5)
    assert other.lr == pytest.approx(found.lr, rel=1e-4, abs=1e-5)


def test_three_groups_and_models_without_one(shifted):
    fitted, groups = shifted
    three = dict(groups)
    for j, name in enumerate(fitted.models.model):
        if j % 4 == 3:
            three[name] = "third"
        if j >= 190:
            del three[name]
    at = dif(fitted, three)
    assert at.reference == "base"  # the largest
    assert set(at.group) == {"focal", "third"}
    assert at.left_out == fitted.models.model[190:]
    assert len(at) + len(at.not_testable) == 120


def test_items_without_variation_are_listed():
    data, groups = simulated(65, 40, 20)
    k, n = data.k.copy(), data.n.copy()
    focal = np.arange(40) % 2 == 1
    k[3, focal], k[5, ~focal] = 0, 1
    n[7, focal], k[7, focal] = 0, 0
    at = dif(
        irt.fit(Responses(data.models, data.items, k, n), method="joint"), groups, reference="base"
    )
    listed = {item: (group, why) for item, group, why in at.not_testable}
    assert listed["i003"] == ("focal", "all wrong in the focal group")
    assert listed["i005"] == ("focal", "all right in the reference group")
    assert listed["i007"] == ("focal", "no answers in the focal group")
    assert not {"i003", "i005", "i007"} & set(at.item)
    assert len(at) + len(at.not_testable) == 20


def test_what_is_refused(shifted):
    fitted, groups = shifted
    for bad, why in (
        (groups | {"nobody": "base"}, r"1 models are not in the fit: \['nobody'\]"),
        (dict.fromkeys(groups, "one"), "1 groups: a comparison needs at least two"),
        ({}, "0 groups"),
    ):
        with pytest.raises(DataError, match=why) as caught:
            dif(fitted, bad)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="reference 'best' is no group"):
        dif(fitted, groups, reference="best")
    data = fitted.responses
    halves = Responses(data.models, data.items, data.k / 2, data.n, fractional=True)
    with pytest.raises(DataError, match="fractional"):
        dif(irt.fit(halves, method="joint"), groups)


def test_nothing_to_test_and_nothing_to_link_on(shifted):
    fitted, groups = shifted
    with pytest.raises(DataError, match="nearly every item is flagged"):
        dif(fitted, groups, theta="linked", alpha=1.1)
    data, small = simulated(73, 20, 10)
    k = data.k.copy()
    k[:, 1::2] = 0
    with pytest.raises(DataError, match="nothing can be tested"):
        dif(irt.fit(Responses(data.models, data.items, k, data.n), method="joint"), small)


def test_a_model_that_only_answered_flagged_items_leaves_the_linked_test(shifted):
    fitted, groups = shifted
    data, n = fitted.responses, fitted.responses.n.copy()
    n[:, 0] = 0
    n[4, 0] = 3
    less = irt.fit(Responses(data.models, data.items, np.minimum(data.k, n), n), method="joint")
    fixed, linked = (dif(less, groups, reference="base", theta=t) for t in ("fixed", "linked"))
    assert "i004" in linked.purified
    row = linked.item.index("i004")
    assert (fixed.n_reference[row], linked.n_reference[row]) == (100, 99)
    assert np.isfinite(linked.lr).all()


def by_statsmodels(k, n, columns):
    return sm.GLM(
        np.column_stack([k, n - k]), np.column_stack(columns), sm.families.Binomial()
    ).fit(tol=1e-13)


def test_refits_agree_with_logistic_regression():
    """With a flat prior of the slope the models are logistic regressions: statsmodels' GLM."""
    rng = np.random.default_rng(66)
    theta, focal = rng.normal(size=60), (np.arange(60) % 3 == 0).astype(float)
    n = rng.integers(0, 6, size=(8, 60)).astype(float)
    a, b = np.exp(0.3 * rng.normal(size=(8, 1))), rng.normal(size=(8, 1))
    k = rng.binomial(n.astype(int), 1 / (1 + np.exp(-a * (theta - b)))).astype(float)
    at = fit_item_groups(k, n, theta, focal, FLAT)
    assert at.converged
    one = np.ones(60)
    for i in range(8):
        asked = n[i] > 0
        null, level, slope = (
            by_statsmodels(k[i, asked], n[i, asked], [c[asked] for c in columns])
            for columns in ([theta, one], [theta, one, focal], [theta, one, focal, theta * focal])
        )
        assert np.exp(at.x[i, 0]) == pytest.approx(level.params[0], rel=1e-5)
        assert at.x[i, 1:3] == pytest.approx(level.params[1:3], abs=1e-5)
        assert at.gamma_se[i] == pytest.approx(level.bse[2], rel=1e-4)
        assert at.lr[i] == pytest.approx(2 * (level.llf - null.llf), abs=1e-6)
        assert at.lr_slope[i] == pytest.approx(2 * (slope.llf - level.llf), abs=1e-6)
        ratio = np.log(slope.params[0] + slope.params[3]) - np.log(slope.params[0])
        assert at.x[i, 3] == pytest.approx(ratio, abs=1e-4)
        cov = slope.cov_params()
        gradient = np.array(
            [1 / (slope.params[0] + slope.params[3]) - 1 / slope.params[0], 0, 0, 0]
        )
        gradient[3] = 1 / (slope.params[0] + slope.params[3])
        assert at.delta_se[i] == pytest.approx(np.sqrt(gradient @ cov @ gradient), rel=1e-3)


def test_refits_with_a_prior_are_the_maxima_that_scipy_finds():
    rng = np.random.default_rng(67)
    theta, focal = rng.normal(size=30), (np.arange(30) % 2).astype(float)
    k = (rng.random((4, 30)) < 1 / (1 + np.exp(-3 * theta))).astype(float)
    n, prior = np.ones_like(k), (0.4, 0.3)
    at = fit_item_groups(k, n, theta, focal, prior)

    def loss(x, row, free):
        x = np.concatenate([x, np.zeros(4 - free)])
        z = np.exp(x[0] + x[3] * focal) * theta + x[1] + x[2] * focal
        return np.logaddexp(0, z).sum() - k[row] @ z + 0.5 * ((x[0] - 0.4) / 0.3) ** 2

    for row in range(4):
        best = [
            optimize.minimize(loss, np.zeros(free), (row, free), tol=1e-12).fun
            for free in (2, 3, 4)
        ]
        assert at.lr[row] == pytest.approx(2 * (best[0] - best[1]), abs=1e-5)
        assert at.lr_slope[row] == pytest.approx(2 * (best[1] - best[2]), abs=1e-4)


def tables(k, n, theta, focal, strata):
    """The 2 × 2 tables, rows groups (reference first), columns right and wrong, by plain loops."""
    edges = np.quantile(theta, np.linspace(0, 1, strata + 1)[1:-1])
    found = []
    for stratum in range(strata):
        inside = np.array([sum(t >= e for e in edges) == stratum for t in theta])
        found.append(
            [[k[inside & (focal == g)].sum(), (n - k)[inside & (focal == g)].sum()] for g in (0, 1)]
        )
    return [np.array(t) for t in found]


def test_mantel_haenszel_agrees_with_statsmodels():
    rng = np.random.default_rng(68)
    theta, focal = rng.normal(size=90), (np.arange(90) % 3 == 0).astype(float)
    n = rng.integers(0, 4, size=(12, 90)).astype(float)
    k = rng.binomial(n.astype(int), 1 / (1 + np.exp(-theta - 0.5 * focal))).astype(float)
    log_odds, se, chi2 = mantel_haenszel(k, n, theta, focal, 5)
    for i in range(12):
        theirs = StratifiedTable(tables(k[i], n[i], theta, focal, 5))
        assert log_odds[i] == pytest.approx(theirs.logodds_pooled, rel=1e-10)
        assert se[i] == pytest.approx(theirs.logodds_pooled_se, rel=1e-10)
        assert chi2[i] == pytest.approx(theirs.test_null_odds(correction=True).statistic, rel=1e-10)


def test_mantel_haenszel_by_hand():
    """Two classes: reference 3 right 1 wrong, focal 1 and 3; then 4 and 2, focal 3 and 3.

    Odds ratio (9/8 + 12/12)/(1/8 + 6/12) = 2.125/0.625 = 3.4; 3 + 4 right expected 2 + 3.5, variances
    4·4·4·4/(64·7) = 4/7 and 6·6·7·5/(144·11) = 35/44: χ² = (1.5 − 0.5)²/(4/7 + 35/44).
    """
    k, n = np.array([[3.0, 1, 4, 3]]), np.array([[4.0, 4, 6, 6]])
    theta, focal = np.array([-1.0, -1, 1, 1]), np.array([0.0, 1, 0, 1])
    log_odds, _, chi2 = mantel_haenszel(k, n, theta, focal, 2)
    assert log_odds[0] == pytest.approx(np.log(3.4), rel=1e-12)
    assert chi2[0] == pytest.approx(1 / (4 / 7 + 35 / 44), rel=1e-12)


def test_mantel_haenszel_without_a_mixed_class_says_nothing():
    k, n = np.array([[2.0, 0.0, 1.0, 0.0]]), np.array([[2.0, 0.0, 1.0, 0.0]])
    log_odds, se, chi2 = mantel_haenszel(k, n, np.arange(4.0), np.array([0.0, 1, 0, 1]), 2)
    assert np.isnan([log_odds[0], se[0], chi2[0]]).all()


def test_false_discovery_rates_are_statsmodels():
    p = np.random.default_rng(69).random(40) ** 3
    p[7] = p[8]
    expected = multipletests(p, method="fdr_bh")[1]
    assert benjamini_hochberg(p) == pytest.approx(expected, rel=1e-12)
    with_gap = np.insert(p, 5, np.nan)
    assert np.isnan(benjamini_hochberg(with_gap)[5])
    assert np.delete(benjamini_hochberg(with_gap), 5) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("wins", "losses"), [(1, 7), (3, 9), (5, 5), (0, 6)])
def test_equal_pairs_are_mcnemars(wins, losses):
    first = [(0.0, 1.0)] * wins + [(1.0, 1.0)] * losses + [(1.0, 1.0)] * 4 + [(0.0, 1.0)] * 3
    second = [(1.0, 1.0)] * wins + [(0.0, 1.0)] * losses + [(1.0, 1.0)] * 4 + [(0.0, 1.0)] * 3
    test, discordant = pair_test(first, second, np.zeros(len(first)))
    assert discordant == wins + losses
    expected = mcnemar([[4, losses], [wins, 3]], exact=True).pvalue
    assert test.p_exact == pytest.approx(expected, rel=1e-9)
    if wins:
        assert test.delta == pytest.approx(np.log(wins / losses), abs=1e-9)
        assert test.se == pytest.approx((1 / wins + 1 / losses) ** 0.5, rel=1e-6)
    else:
        assert test.delta == -np.inf
        assert test.lr == pytest.approx(2 * losses * np.log(2), rel=1e-9)


def test_pairs_of_unequal_ability_are_a_logistic_regression_with_offset():
    rng = np.random.default_rng(70)
    offset = rng.normal(size=40)
    y = (rng.random(40) < 1 / (1 + np.exp(-offset - 0.7))).astype(float)
    test, _ = pair_test([(1 - v, 1.0) for v in y], [(v, 1.0) for v in y], offset)
    theirs = sm.GLM(y, np.ones(40), sm.families.Binomial(), offset=offset).fit(tol=1e-12)
    assert test.delta == pytest.approx(theirs.params[0], abs=1e-7)
    assert test.se == pytest.approx(theirs.bse[0], rel=1e-5)
    null = stats.bernoulli.logpmf(y, 1 / (1 + np.exp(-offset))).sum()
    assert test.lr == pytest.approx(2 * (theirs.llf - null), abs=1e-8)


def test_pairs_with_several_attempts_are_fishers_noncentral_hypergeometric():
    first, second, offset = (
        [(3.0, 4.0), (1.0, 2.0)],
        [(1.0, 3.0), (2.0, 5.0)],
        np.array([0.4, -0.3]),
    )
    test, _ = pair_test(first, second, offset)
    laws = [
        stats.nchypergeom_fisher(n1 + n2, n2, k1 + k2, np.exp(o))
        for (k1, n1), (k2, n2), o in zip(first, second, offset, strict=True)
    ]
    whole = np.convolve(laws[0].pmf(np.arange(4)), laws[1].pmf(np.arange(6)))
    expected = min(1.0, 2 * min(whole[:4].sum(), whole[3:].sum()))  # 1 + 2 right
    assert test.p_exact == pytest.approx(expected, rel=1e-9)
    at = [
        stats.nchypergeom_fisher(n1 + n2, n2, k1 + k2, np.exp(o + test.delta)).mean()
        for (k1, n1), (k2, n2), o in zip(first, second, offset, strict=True)
    ]
    assert sum(at) == pytest.approx(3, abs=1e-8)


@pytest.fixture(scope="module")
def twins():
    """Sixty models and their quantised twins: 0.4 less able all over, and item 9 harder by 3 more."""
    rng = np.random.default_rng(71)
    theta, b = rng.normal(size=60), np.linspace(-2, 2, 40)
    b[9] = -0.5
    z = np.concatenate([theta - b[:, None] for theta in (theta, theta - 0.4)], axis=1)
    z[9, 60:] -= 3
    names = [f"m{j:02d}" for j in range(60)]
    items = tuple(f"i{i:02d}" for i in range(40))
    k = (rng.random(z.shape) < 1 / (1 + np.exp(-z))).astype(float)
    models = tuple(sorted([*names, *(f"{name}-q4" for name in names)]))
    order = [[*names, *(f"{name}-q4" for name in names)].index(m) for m in models]
    data = Responses(models, items, k[:, order], np.ones_like(k))
    return irt.fit(data, method="joint"), {f"{name}-q4": name for name in names}


def test_an_item_hurt_by_quantising_is_found_and_a_general_loss_is_not(twins):
    found = paired_dif(*twins)
    assert found.flagged == ("i09",)
    row = found.item.index("i09")
    assert abs(found.delta_b[row] - 3) < 3 * found.se_b[row]
    assert found.n_pairs[row] == 60
    assert np.mean(found.p_exact < 0.05) < 0.12
    assert len(found) + len(found.not_testable) == 40
    first = found.to_dicts()[0]
    assert set(first) >= {"item", "n_discordant", "delta_b", "p_exact", "q_exact", "flags"}


def test_pairs_that_agree_are_not_testable():
    data, _ = simulated(72, 20, 15)
    k, n = data.k.copy(), data.n.copy()
    k[2, 1::2] = k[2, ::2]
    n[4, ::2], k[4, ::2] = 0, 0
    fitted = irt.fit(Responses(data.models, data.items, k, n), method="joint")
    found = paired_dif(fitted, dict(zip(data.models[1::2], data.models[::2], strict=True)))
    assert ("i002", "no pair answered it differently") in found.not_testable
    assert ("i004", "no pair answered it") in found.not_testable


def test_pairs_that_are_refused(twins):
    fitted, pairs = twins
    with pytest.raises(DataError, match=r"1 models are not in the fit: \['m99'\]"):
        paired_dif(fitted, pairs | {"m99": "m00"})
    with pytest.raises(DataError, match="to another one"):
        paired_dif(fitted, {"m00": "m00"})
    with pytest.raises(DataError, match="at least one"):
        paired_dif(fitted, {})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"theta": "x"}, "theta is 'fixed' or 'linked', not 'x'"),
        ({"strata": 0}, "strata = 0: at least one"),
    ],
)
def test_an_option_out_of_its_range_is_refused_in_one_line(simulate, option, message):
    fitted = irt.fit(simulate(3, 12, 30).responses, method="joint")
    groups = {name: j % 2 for j, name in enumerate(fitted.models.model)}
    with pytest.raises(DataError, match=message):
        fitted.dif(groups, **option)
