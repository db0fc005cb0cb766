"""Fit statistics against brute force, hand calculation, scipy, and their laws under the model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from irt import fitstats
from irt._nodes import normal_grid
from irt.mml import mml


def _simulate(seed, n_items, n_models, attempts=1):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    a, d = np.exp(0.3 * rng.normal(size=n_items)), rng.normal(size=n_items)
    p = 1 / (1 + np.exp(-(a[:, None] * theta + d[:, None])))
    k = rng.binomial(attempts, p).astype(float)
    return k, np.full_like(k, attempts), a, d, theta


@pytest.fixture(scope="module")
def fitted():
    k, n, *_ = _simulate(1, 8, 1500)
    fit = mml(k, n, tol=1e-9)
    return k, n, fit


def test_scores_without_an_item_by_going_through_all_patterns():
    p = np.random.default_rng(0).random((5, 3))
    law = fitstats_law(p)
    for i in range(5):
        others = np.delete(p, i, axis=0)
        want = np.zeros((5, 3))
        for pattern in itertools.product((0, 1), repeat=4):
            y = np.array(pattern)[:, None]
            want[sum(pattern)] += np.prod(others**y * (1 - others) ** (1 - y), axis=0)
        assert law[i] == pytest.approx(want, abs=1e-14)
    assert fitstats_law(np.full((300, 1), 0.5)).sum(axis=1) == pytest.approx(1, abs=1e-10)


def fitstats_law(p):
    return fitstats.leave_one_out_scores(p)


@pytest.mark.parametrize(
    ("groups", "merged"),
    [
        # n, right, expected right: enough everywhere, nothing happens
        ([(9, 2, 3), (9, 4, 5), (9, 6, 6)], [(9, 2, 3), (9, 4, 5), (9, 6, 6)]),
        # empty groups go
        ([(9, 2, 3), (0, 0, 0), (9, 6, 6)], [(9, 2, 3), (9, 6, 6)]),
        # a single model joins the next higher group, the last one the lower
        ([(1, 1, 0.5), (9, 4, 5), (1, 1, 0.9)], [(11, 6, 6.4)]),
        # a cell expects 0.5: it joins the neighbour with fewer models
        ([(9, 2, 3), (8, 0, 0.5), (7, 5, 5)], [(9, 2, 3), (15, 5, 5.5)]),
        # a tie of sizes: the lower neighbour
        ([(9, 2, 3), (8, 0, 0.5), (9, 5, 5)], [(17, 2, 3.5), (9, 5, 5)]),
        # wrong answers are cells too; at the end there is one neighbour
        ([(9, 2, 3), (9, 4, 5), (9, 9, 8.5)], [(9, 2, 3), (18, 13, 13.5)]),
    ],
)
def test_sparse_groups_merge_by_the_stated_rules(groups, merged):
    found = fitstats._merge(*np.array(groups, dtype=float).T)
    assert np.array(found) == pytest.approx(np.array(merged))


def test_s_x2_with_three_items_by_hand():
    """Expected rates by all eight patterns; the groups of scores 1 and 2 only, so df = 0."""
    k, n, a, d, _ = _simulate(5, 3, 400)
    found = fitstats.s_x2(k, n, a, d)
    assert (found.df == 0).all()
    assert np.isnan(found.p).all()
    k, n, a, d, _ = _simulate(5, 4, 4000)
    found = fitstats.s_x2(k, n, a, d)
    assert (found.df == 1).all()
    x, log_w = normal_grid(201)
    p = 1 / (1 + np.exp(-(np.multiply.outer(a, x) + d[:, None])))
    chance = {
        y: float(np.exp(log_w) @ np.prod([q if u else 1 - q for u, q in zip(y, p, strict=True)], 0))
        for y in itertools.product((0, 1), repeat=4)
    }
    statistic = 0.0
    for s in (1, 2, 3):
        group = {y: c for y, c in chance.items() if sum(y) == s}
        e = sum(c for y, c in group.items() if y[0]) / sum(group.values())
        rows = k.sum(axis=0) == s
        statistic += rows.sum() * (k[0, rows].mean() - e) ** 2 / (e * (1 - e))
    assert found.statistic[0] == pytest.approx(statistic, rel=1e-6)
    assert found.p[0] == pytest.approx(stats.chi2.sf(statistic, 1), rel=1e-6)


def test_m2_by_the_formula_as_it_stands(fitted):
    """Margins, their covariance and derivatives from all 2⁵ patterns of five items, no algebra."""
    k, n, fit = fitted
    k, n, a, d = k[:5], n[:5], fit.a[:5], fit.d[:5]
    found = fitstats.m2(k, n, a, d, n_nodes=61)
    y = np.array(list(itertools.product((0, 1), repeat=5)))
    x, log_w = normal_grid(61)
    pairs = list(itertools.combinations(range(5), 2))
    margins = np.column_stack([y] + [y[:, i] * y[:, j] for i, j in pairs]).astype(float)

    def chance(a, d):
        p = 1 / (1 + np.exp(-(np.multiply.outer(a, x) + d[:, None])))
        return np.array([np.exp(log_w) @ np.prod(np.where(u[:, None], p, 1 - p), 0) for u in y])

    pi = chance(a, d)
    h = 1e-6
    shifts = [(h * e, 0 * e) for e in np.eye(5)] + [(0 * e, h * e) for e in np.eye(5)]
    delta = np.column_stack(
        [margins.T @ (chance(a + s, d + t) - chance(a - s, d - t)) / (2 * h) for s, t in shifts]
    )
    expected = margins.T @ pi
    xi = (margins * pi[:, None]).T @ margins - np.outer(expected, expected)
    observed = np.concatenate([k.mean(axis=1), [(k[i] * k[j]).mean() for i, j in pairs]])
    inverse = np.linalg.inv(xi)
    middle = np.linalg.inv(delta.T @ inverse @ delta)
    e = observed - expected
    want = k.shape[1] * e @ (inverse - inverse @ delta @ middle @ delta.T @ inverse) @ e
    assert found.statistic == pytest.approx(want, rel=1e-6)
    assert found.df == 5
    assert found.p == pytest.approx(stats.chi2.sf(want, 5), rel=1e-6)
    assert found.rmsea == pytest.approx(np.sqrt(max(0, (want - 5) / (5 * (1500 - 1)))))


def test_right_models_pass_and_wrong_ones_do_not():
    """M2's mean is its df under the model; a second ability (planted) is found."""
    found = []
    for seed in range(12):
        k, n, *_ = _simulate(seed, 10, 500)
        fit = mml(k, n, tol=1e-6, se=False)
        found.append(fitstats.m2(k, n, fit.a, fit.d))
    assert np.mean([m.statistic for m in found]) == pytest.approx(found[0].df, rel=0.2)
    rng = np.random.default_rng(0)
    z = np.repeat(rng.normal(size=(2, 1000)), 5, axis=0) * 1.5
    k = (rng.random(z.shape) < 1 / (1 + np.exp(-z))).astype(float)
    n = np.ones_like(k)
    fit = mml(k, n, se=False)
    assert fitstats.m2(k, n, fit.a, fit.d).p < 1e-6


def test_two_items_that_share_more_than_ability_are_found():
    """Planted: item 1 repeats the answer to item 0 in half of the models."""
    k, n, *_ = _simulate(21, 20, 800)
    same = np.random.default_rng(0).random(800) < 0.5
    k[1, same] = k[0, same]
    fit = mml(k, n, se=False)
    found = fitstats.q3(k, n, fit.a, fit.d, fit.theta)
    upper = np.triu_indices(20, 1)
    worst = int(np.argmax(found.q3[upper]))
    assert (upper[0][worst], upper[1][worst]) == (0, 1)
    assert found.p_bh[0, 1] < 1e-6
    assert (found.p_bh[upper] < 0.05).sum() <= 5


def test_an_item_with_another_curve_is_found():
    """Planted: the middle of the scale gets item 3 right, both ends do not."""
    k, n, *_, theta = _simulate(2, 40, 1000)
    k[3] = np.abs(theta) < 0.7
    fit = mml(k, n, se=False)
    found = fitstats.s_x2(k, n, fit.a, fit.d)
    assert found.p_bh[3] < 1e-6
    bands = fitstats.predictive_bands(k, n, fit.a, fit.d, fit.theta, sd=fit.sd)
    assert bands.inside[3].sum() <= 2
    assert np.delete(bands.inside, 3, axis=0).mean() > 0.85


def test_counts_are_repeated_columns_and_order_does_not_matter(fitted):
    k, n, fit = fitted
    k, n = k[:, :300], n[:, :300]
    counts = np.random.default_rng(3).integers(1, 4, 300)
    rows, columns = (
        np.random.default_rng(4).permutation(8),
        np.random.default_rng(5).permutation(300),
    )
    one = fitstats.s_x2(k, n, fit.a, fit.d, counts=counts)
    many = fitstats.s_x2(np.repeat(k, counts, 1), np.repeat(n, counts, 1), fit.a, fit.d)
    moved = fitstats.s_x2(k[rows][:, columns], n, fit.a[rows], fit.d[rows], counts=counts[columns])
    assert one.statistic == pytest.approx(many.statistic, rel=1e-9)
    assert moved.statistic == pytest.approx(one.statistic[rows], rel=1e-9)
    one_m2 = fitstats.m2(k, n, fit.a, fit.d, counts=counts)
    many_m2 = fitstats.m2(np.repeat(k, counts, 1), np.repeat(n, counts, 1), fit.a, fit.d)
    assert one_m2.statistic == pytest.approx(many_m2.statistic, rel=1e-8)
    assert one_m2.n_models == counts.sum()


@pytest.mark.parametrize("test", [fitstats.s_x2, fitstats.m2])
def test_incomplete_answers_are_refused_or_left_out_and_counted(test, fitted):
    k, n, fit = fitted
    k, n = k.copy(), n.copy()
    n[0, :7] = k[0, :7] = 0
    n[1, 7] = 2
    with pytest.raises(ValueError, match="8 of 1500 models lack an answer"):
        test(k, n, fit.a, fit.d)
    left = test(k, n, fit.a, fit.d, drop_incomplete=True)
    want = test(k[:, 8:], n[:, 8:], fit.a, fit.d)
    assert (left.n_models, left.n_dropped) == (1492, 8)
    assert left.statistic == pytest.approx(want.statistic)


def test_too_few_or_too_many_items_are_refused(fitted):
    k, n, fit = fitted
    with pytest.raises(ValueError, match="at least 3 items, not 2"):
        fitstats.s_x2(k[:2], n[:2], fit.a[:2], fit.d[:2])
    with pytest.raises(ValueError, match="M2 needs 4 to 150 items, not 3"):
        fitstats.m2(k[:3], n[:3], fit.a[:3], fit.d[:3])
    with pytest.raises(ValueError, match="a and d must have shape"):
        fitstats.m2(k, n, fit.a[:3], fit.d)
    with pytest.raises(ValueError, match="a, d, theta have shapes"):
        fitstats.q3(k, n, fit.a, fit.d, fit.theta[:3])
    with pytest.raises(ValueError, match="it is 'items' or 'models'"):
        fitstats.mean_squares(k, n, fit.a, fit.d, fit.theta, of="cells")
    with pytest.raises(ValueError, match="groups = 0"):
        fitstats.predictive_bands(k, n, fit.a, fit.d, fit.theta, groups=0)


def test_mean_squares_of_two_cells_by_hand():
    """p = ½ and ¾ (d = 0, ln 3; θ = 0): squares 1, (¾)²/(3/16) = 3 of one model."""
    found = fitstats.mean_squares([[1], [0]], [[1], [1]], [1, 1], [0, np.log(3)], [0], of="models")
    assert found.outfit == pytest.approx([(1 + 3) / 2])
    assert found.infit == pytest.approx([(0.25 + 0.5625) / (0.25 + 0.1875)])
    fourth = np.array([1 / 16, (0.75 * 0.25**4 + 0.25 * 0.75**4)])
    v = np.array([0.25, 0.1875])
    s = np.sqrt((fourth / v**2 - 1).sum()) / 2
    assert found.z_outfit == pytest.approx([(np.cbrt(2) - 1) * 3 / s + s / 3])
    s = np.sqrt((fourth - v**2).sum()) / v.sum()
    assert found.z_infit == pytest.approx([(np.cbrt(found.infit[0]) - 1) * 3 / s + s / 3])
    assert found.p_infit == pytest.approx(2 * stats.norm.sf(abs(found.z_infit)))


def test_statistics_of_true_parameters_follow_their_laws():
    k, n, a, d, theta = _simulate(8, 60, 2000, attempts=3)
    n[:, ::5] = k[:, ::5] = 0
    n[0], k[0] = 3, 1
    square = fitstats.mean_squares(k[1:], n[1:], a[1:], d[1:], theta)
    assert square.infit == pytest.approx(np.ones(59), abs=0.1)
    assert np.std(square.z_infit) == pytest.approx(1, abs=0.25)
    persons = fitstats.person_fit(k[1:], n[1:], a[1:], d[1:], theta)
    seen = np.arange(2000) % 5 != 0
    assert np.isnan(persons.l_z[~seen]).all()
    assert np.mean(persons.l_z[seen]) == pytest.approx(0, abs=0.1)
    assert np.std(persons.l_z[seen]) == pytest.approx(1, abs=0.1)
    bands = fitstats.predictive_bands(k[1:], n[1:], a[1:], d[1:], theta, level=0.9)
    assert 0.87 < bands.inside.mean() < 0.97
    assert np.nansum(bands.n) == n[1:].sum()


def test_bands_average_the_curve_over_the_error_of_ability():
    """One model, θ ~ N(0.3, 0.8²), three attempts, by a fine sum; the band has half an answer more."""
    x = np.linspace(-6, 6, 4001)
    w = stats.norm.pdf(x, 0.3, 0.8) / stats.norm.pdf(x, 0.3, 0.8).sum()
    p = 1 / (1 + np.exp(-(1.2 * x - 0.4)))
    mean, square = p @ w, (p * p) @ w
    variance = 3 * mean * (1 - mean) + 6 * (square - mean**2)
    found = fitstats.predictive_bands(
        [[2]], [[3]], [1.2], [-0.4], [0.3], sd=[0.8], groups=1, level=0.5
    )
    assert found.expected[0, 0] == pytest.approx(mean, abs=1e-4)
    half = stats.norm.ppf(0.75) * np.sqrt(variance) + 0.5
    assert 3 * (found.hi - found.expected)[0, 0] == pytest.approx(min(half, 3 - 3 * mean), abs=1e-3)
    assert 3 * (found.expected - found.lo)[0, 0] == pytest.approx(min(half, 3 * mean), abs=1e-3)


def test_q3_is_numpys_correlation_over_common_models():
    k, n, a, d, theta = _simulate(9, 5, 80)
    n[0, :20] = k[0, :20] = 0
    n[1, 10:40] = k[1, 10:40] = 0
    found = fitstats.q3(k, n, a, d, theta)
    r = k - n / (1 + np.exp(-(a[:, None] * theta + d[:, None])))
    both = (n[0] > 0) & (n[1] > 0)
    want = np.corrcoef(r[0, both], r[1, both])[0, 1]
    assert found.q3[0, 1] == found.q3[1, 0] == pytest.approx(want)
    assert found.n[0, 1] == both.sum()
    z = (np.arctanh(want) - np.arctanh(-0.25)) * np.sqrt(both.sum() - 3)
    assert found.p[0, 1] == pytest.approx(2 * stats.norm.sf(abs(z)))
    upper = np.triu_indices(5, 1)
    adjusted = stats.false_discovery_control(found.p[upper])
    assert found.p_bh[upper] == pytest.approx(adjusted)
    assert found.p_bh.T[upper] == pytest.approx(adjusted)


def test_a_contaminated_model_stands_out():
    """Planted: one model gets the 15 hardest items right and the others wrong."""
    k, n, a, d, theta = _simulate(10, 60, 50)
    k[:, 7] = d <= np.sort(d)[14]
    theta[7] = -0.5
    found = fitstats.person_fit(k, n, a, d, theta)
    p = 1 / (1 + np.exp(-(a * theta[7] + d)))
    log_lik = np.log(np.where(k[:, 7] == 1, p, 1 - p)).sum()
    mean = (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    variance = (p * (1 - p) * np.log(p / (1 - p)) ** 2).sum()
    assert found.l_z[7] == pytest.approx((log_lik - mean) / np.sqrt(variance))
    assert np.flatnonzero(found.p_bh < 0.01).tolist() == [7]


def test_log_loss_and_auc_by_pairs_and_by_sums():
    rng = np.random.default_rng(0)
    n = rng.integers(0, 4, (6, 7))
    k, p = rng.binomial(n, 0.5), rng.integers(1, 9, (6, 7)) / 10
    ones, zeros = np.repeat(p.ravel(), k.ravel()), np.repeat(p.ravel(), (n - k).ravel())
    pairs = [(x > y) + (x == y) / 2 for x in ones for y in zeros]
    assert fitstats.auc(k, n, p) == pytest.approx(np.mean(pairs))
    u = stats.mannwhitneyu(ones, zeros).statistic
    assert fitstats.auc(k, n, p) == pytest.approx(u / (len(ones) * len(zeros)))
    want = -np.concatenate([np.log(ones), np.log(1 - zeros)]).mean()
    assert fitstats.log_loss(k, n, p) == pytest.approx(want)
    assert fitstats.log_loss([1, 0], [1, 1], [1.0, 0.0]) == 0
    assert np.isnan(fitstats.auc([1, 1], [1, 1], [0.2, 0.3]))


def test_held_out_cells_are_whole_and_predicted_better_than_by_the_mean():
    k, n, *_ = _simulate(12, 30, 400, attempts=2)
    k_fit, n_fit, k_test, n_test = fitstats.hold_out(k, n, share=0.1, seed=1)
    assert ((n_fit > 0) ^ (n_test > 0)).all()
    assert (k_fit + k_test == k).all()
    assert 0.08 < n_test.sum() / n.sum() < 0.12
    fit = mml(k_fit, n_fit, se=False)
    p = 1 / (1 + np.exp(-(np.multiply.outer(fit.a, fit.theta) + fit.d[:, None])))
    rate = np.broadcast_to(k_fit.sum(1, keepdims=True) / n_fit.sum(1, keepdims=True), p.shape)
    assert fitstats.log_loss(k_test, n_test, p) < fitstats.log_loss(k_test, n_test, rate) - 0.03
    assert fitstats.auc(k_test, n_test, p) > fitstats.auc(k_test, n_test, rate) + 0.03
    with pytest.raises(ValueError, match="share = 1"):
        fitstats.hold_out(k, n, share=1)


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(1).random(40) ** 2
    assert fitstats.benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    with_gap = np.insert(p, 3, np.nan)
    assert np.delete(fitstats.benjamini_hochberg(with_gap), 3) == pytest.approx(
        stats.false_discovery_control(p)
    )
