"""Quadrature EM against its own definition by brute force, classical data, and simulations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm

from irt._cells import make_cells
from irt._em import em_step, posterior_of
from irt._louis import item_covariance
from irt._nodes import Grid, log_terms, modes, score_and_weight
from irt.mml import ItemPrior, mml

# Pattern counts of sections 6 and 7 of the Law School Admission Test, 1,000 people, 5 items each:
# Bock & Lieberman (1970), Psychometrika 35, 179–197; patterns 00000, 00001, …, 11111.
LSAT6 = [3, 6, 2, 11, 1, 1, 3, 4, 1, 8, 0, 16, 0, 3, 2, 15, 10, 29, 14, 81, 3, 28, 15, 80,
         16, 56, 21, 173, 11, 61, 28, 298]  # fmt: skip
LSAT7 = [12, 19, 1, 7, 3, 19, 3, 17, 10, 5, 3, 7, 7, 23, 8, 28, 7, 39, 11, 34, 14, 51, 15, 90,
         6, 25, 7, 35, 18, 136, 32, 308]  # fmt: skip


def _patterns(counts):
    k = np.array([[p >> (4 - i) & 1 for p in range(32)] for i in range(5)], dtype=float)
    counts = np.array(counts, dtype=float)
    return k[:, counts > 0], counts[counts > 0]


def _log_lik(a, d, k, n, c=0.0, counts=None):
    """The definition, on 321 other nodes, without any of the engine's code."""
    x = np.linspace(-8, 8, 321)
    w = norm.pdf(x)
    p = c + (1 - c) / (1 + np.exp(-(np.multiply.outer(a, x) + d[:, None])))
    like = np.exp(k.T @ np.log(p) + (n - k).T @ np.log1p(-p)) @ (w / w.sum())
    return float(np.log(like) @ (np.ones(k.shape[1]) if counts is None else counts))


def _simulate(seed, n_items, n_models, c=0.0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    a, b = np.exp(0.3 * rng.normal(size=n_items)), rng.normal(size=n_items)
    p = c + (1 - c) / (1 + np.exp(-a[:, None] * (theta - b[:, None])))
    k = (rng.random(p.shape) < p).astype(float)
    return k, np.ones_like(k), a, -a * b, theta


@pytest.fixture(scope="module")
def small():
    """Twelve items, 300 models, a fifth missing, some cells of three attempts."""
    rng = np.random.default_rng(5)
    k, n, *_ = _simulate(4, 12, 300)
    n = n * rng.choice([0, 1, 1, 1, 3], size=n.shape)
    return rng.binomial(n.astype(int), 0.2 + 0.6 * k).astype(float), n


@pytest.mark.parametrize(("counts", "log_lik"), [(LSAT6, -2466.65337751), (LSAT7, -2658.80511363)])
def test_the_classical_sets_reach_the_published_maximum(counts, log_lik):
    """Log-likelihoods of R mirt 1.38.1 (61 points on [−6, 6]); ltm 1.2-0 agrees on the first."""
    k, counts = _patterns(counts)
    assert counts.sum() == 1000
    fit = mml(k, np.ones_like(k), counts=counts, tol=1e-10)
    assert fit.converged
    assert fit.nodes == "grid"
    assert fit.notes == ()
    assert fit.log_lik == pytest.approx(log_lik, abs=1e-6)


def test_a_general_optimiser_on_the_definition_finds_the_same_items(small):
    k, n = (x[:5] for x in small)
    fit = mml(k, n, tol=1e-10)
    half = len(k)

    def loss(v):
        return -_log_lik(np.exp(v[:half]), v[half:], k, n)

    start = np.concatenate([np.log(fit.a), fit.d])
    assert fit.log_lik == pytest.approx(-loss(start), abs=1e-7)
    best = minimize(loss, start + 0.2, method="BFGS", options={"gtol": 1e-3})
    assert -best.fun == pytest.approx(fit.log_lik, abs=1e-4)
    assert best.x == pytest.approx(start, abs=3e-3)


def test_standard_errors_are_those_of_a_numerical_hessian(small):
    k, n = small
    k, n = k[:5], n[:5]
    fit = mml(k, n, tol=1e-10)
    v = np.concatenate([fit.a, fit.d])

    def gradient(at):
        return approx_fprime(at, lambda u: -_log_lik(u[:5], u[5:], k, n), 1e-5)

    steps = 1e-3 * np.eye(10)
    hessian = np.array([(gradient(v + h) - gradient(v - h)) / 2e-3 for h in steps])
    cov = np.linalg.inv((hessian + hessian.T) / 2)
    assert fit.se_a == pytest.approx(np.sqrt(np.diag(cov)[:5]), rel=1e-3)
    assert fit.se_d == pytest.approx(np.sqrt(np.diag(cov)[5:]), rel=1e-3)
    at = np.arange(5)
    assert fit.cov[:, 0, 1] == pytest.approx(cov[at, at + 5], abs=1e-4)
    by_b = np.stack([fit.d / fit.a**2, -1 / fit.a], axis=1)
    assert fit.se_b == pytest.approx(np.sqrt(np.einsum("ip,ipq,iq->i", by_b, fit.cov, by_b)))


def test_both_ways_of_inverting_the_information_agree(small):
    """Two models of ten functions each are fewer than 24 parameters: Woodbury's side."""
    k, n = small
    k, n = k[:, :30], n[:, :30]
    prior = ItemPrior()
    fit = mml(k, n, prior=prior, tol=1e-8)
    few = make_cells(n[:, :2], np.maximum(n[:, :2], 1) * 5)
    for some in (make_cells(k, n), few):
        rule = Grid(some)
        post = rule.posterior(fit.a, fit.d)
        cov = item_covariance(rule, some, post, fit.a, fit.d, prior)
        dense = np.linalg.inv(_dense_information(some, post, fit.a, fit.d, prior))
        want = np.stack([dense[i::12, i::12] for i in range(12)])
        assert np.abs(cov - want).max() < 1e-6


def _dense_information(cells, post, a, d, prior):
    """Louis' formula as it stands, one model and one node at a time; order a_1 …, d_1 …."""
    n_items = len(a)
    out = np.zeros((2 * n_items, 2 * n_items))
    out[:n_items, :n_items] += np.diag((1 - np.log(a) + prior.mu_a) / (prior.sigma_a * a) ** 2)
    out[n_items:, n_items:] += np.eye(n_items) / prior.sigma_d**2
    for k, n, pi in zip(cells.k.T, cells.n.T, post.pi, strict=True):
        mean = np.zeros(2 * n_items)
        for x, weight in zip(post.x, pi, strict=True):
            p = 1 / (1 + np.exp(-(a * x + d)))
            s = np.concatenate([(k - n * p) * x, k - n * p])
            w = n * p * (1 - p)
            b = np.block([[np.diag(w * x * x), np.diag(w * x)], [np.diag(w * x), np.diag(w)]])
            out += weight * (b - np.outer(s, s))
            mean += weight * s
        out += np.outer(mean, mean)
    return out


def test_eap_and_map_are_those_of_the_definition(small):
    k, n = small
    fit = mml(k, n)
    x = np.linspace(-8, 8, 4001)
    p = 1 / (1 + np.exp(-(np.multiply.outer(fit.a, x) + fit.d[:, None])))
    log_post = k.T @ np.log(p) + (n - k).T @ np.log1p(-p) - x * x / 2
    post = np.exp(log_post - log_post.max(axis=1, keepdims=True))
    post /= post.sum(axis=1, keepdims=True)
    assert fit.theta == pytest.approx(post @ x, abs=3e-6)
    assert fit.sd == pytest.approx(np.sqrt(post @ x**2 - (post @ x) ** 2), abs=3e-6)
    assert np.abs(fit.theta_map - x[log_post.argmax(axis=1)]).max() <= 0.002
    at = 1 / (1 + np.exp(-(np.multiply.outer(fit.a, fit.theta_map) + fit.d[:, None])))
    information = (n * fit.a[:, None] ** 2 * at * (1 - at)).sum(axis=0) + 1
    assert fit.se_map == pytest.approx(information**-0.5, rel=1e-3)


def test_em_never_lowers_the_objective(small):
    k, n = small
    cells = make_cells(k, n)
    for prior in (None, ItemPrior(), ItemPrior(centred=True)):
        v, values = np.zeros((2, 12)), []
        for _ in range(15):
            v, value = em_step(Grid(cells), cells, prior, v)
            values.append(value)
        assert (np.diff(values) > -1e-9).all()


def test_the_prior_is_in_the_objective(small):
    """At the end the gradient of log-likelihood plus log prior vanishes, by differences."""
    k, n = small
    prior = ItemPrior(mu_a=0.3, sigma_a=0.2, mu_d=-0.5, sigma_d=0.7)
    fit = mml(k, n, prior=prior, tol=1e-9)

    def objective(v):
        return (
            _log_lik(np.exp(v[:12]), v[12:], k, n)
            + norm.logpdf(v[:12], 0.3, 0.2).sum() + norm.logpdf(v[12:], -0.5, 0.7).sum()
        )  # fmt: skip

    v = np.concatenate([np.log(fit.a), fit.d])
    slopes = [(objective(v + h) - objective(v - h)) / 2e-4 for h in 1e-4 * np.eye(24)]
    assert np.abs(slopes).max() < 1e-4


def test_adaptive_nodes_agree_with_a_fine_grid(small):
    k, n = small
    grid = mml(k, n, tol=1e-10, nodes="grid", n_nodes=121)
    own = mml(k, n, tol=1e-10, nodes="adaptive", n_nodes=21)
    assert (own.nodes, own.n_nodes) == ("adaptive", 21)
    assert own.log_lik == pytest.approx(grid.log_lik, abs=1e-6)
    assert own.a == pytest.approx(grid.a, abs=1e-6)
    assert own.se_a == pytest.approx(grid.se_a, abs=1e-5)
    assert own.theta == pytest.approx(grid.theta, abs=1e-5)


def _cover(fit, theta):
    """Share of true abilities in θ ± 1.96 SD, both with mean 0 and SD 1."""
    m, s = fit.theta.mean(), fit.theta.std()
    z = (theta - theta.mean()) / theta.std()
    return float((np.abs((fit.theta - m) / s - z) < 1.96 * fit.sd / s).mean())


@pytest.mark.parametrize(("n_items", "at_most"), [(1000, 0.92), (5000, 0.4)])
def test_with_many_items_only_adaptive_nodes_cover_the_abilities(n_items, at_most):
    """The planted fault: a fixed grid forced on a long test. It is wrong, and says so."""
    own, fixed = [], []
    for seed in range(4 if n_items == 1000 else 2):
        k, n, *_, theta = _simulate(seed, n_items, 100)
        free = mml(k, n, prior=ItemPrior(), se=False)
        assert (free.nodes, free.converged, free.notes) == ("adaptive", True, ())
        own.append(_cover(free, theta))
        forced = mml(k, n, prior=ItemPrior(), se=False, nodes="grid", max_iter=40)
        assert "below half a step of the fixed grid" in forced.notes[0]
        fixed.append(_cover(forced, theta))
    assert 0.91 <= np.mean(own) <= 0.985
    assert np.mean(fixed) < at_most


def test_empirical_priors_find_the_spread_of_the_items():
    k, n, a, d, _ = _simulate(11, 80, 400)
    fit = mml(k, n, prior="empirical")
    assert fit.converged
    assert fit.prior is not None
    assert fit.prior.sigma_a == pytest.approx(np.log(a).std(), abs=0.06)
    assert fit.prior.sigma_d == pytest.approx(d.std(), abs=0.15)
    assert fit.prior.mu_d == pytest.approx(fit.d.mean())


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_answers_without_any_ability_in_them_still_give_a_fit(share):
    k = (np.random.default_rng(0).random((6, 40)) < share).astype(float)
    for prior in (ItemPrior(), "empirical"):
        fit = mml(k, np.ones_like(k), prior=prior)
        assert fit.converged
        assert np.isfinite(np.concatenate([fit.theta, fit.b, fit.se_b])).all()


def test_fewer_right_than_guessing_gives_still_converge():
    k = (np.random.default_rng(1).random((4, 60)) < 0.1).astype(float)
    fit = mml(k, np.ones_like(k), c=0.25, prior=ItemPrior())
    assert fit.converged
    assert (fit.d < -2).all()


def test_items_that_run_away_are_told():
    """A perfect ladder of answers has no finite slopes without priors."""
    theta, b = np.linspace(-2, 2, 40), np.linspace(-1.9, 1.9, 10)
    k = (theta > b[:, None]).astype(float)
    fit = mml(k, np.ones_like(k), nodes="grid")
    assert any("ran to the edge" in note or "not converged" in note for note in fit.notes)
    assert mml(k, np.ones_like(k), prior=ItemPrior()).converged


def test_a_known_lower_asymptote_is_taken_into_account():
    k, n, a, d, _ = _simulate(3, 30, 4000, c=0.25)
    fit = mml(k, n, c=0.25, prior=ItemPrior())
    blind = mml(k, n, prior=ItemPrior())
    assert fit.converged
    assert np.corrcoef(np.log(fit.a), np.log(a))[0, 1] > 0.9
    assert np.abs(fit.d - d).mean() < 0.12 < np.abs(blind.d - d).mean()
    z = (fit.a - a) / fit.se_a
    assert np.sqrt(np.mean(z**2)) < 1.4


def test_the_gradient_with_a_lower_asymptote_vanishes():
    k, n, *_ = _simulate(3, 8, 800, c=0.2)
    prior = ItemPrior()
    fit = mml(k, n, c=np.full(8, 0.2), prior=prior, tol=1e-9)

    def objective(v):
        return (
            _log_lik(np.exp(v[:8]), v[8:], k, n, 0.2)
            + norm.logpdf(v[:8], 0, 0.5).sum() + norm.logpdf(v[8:], 0, 3).sum()
        )  # fmt: skip

    v = np.concatenate([np.log(fit.a), fit.d])
    slopes = [(objective(v + h) - objective(v - h)) / 2e-4 for h in 1e-4 * np.eye(16)]
    assert np.abs(slopes).max() < 1e-4
    own = mml(k, n, c=0.2, prior=prior, tol=1e-9, nodes="adaptive", n_nodes=21)
    assert own.a == pytest.approx(fit.a, abs=1e-5)
    assert own.se_d == pytest.approx(fit.se_d, rel=1e-3)


@pytest.mark.parametrize("nodes", ["grid", "adaptive"])
def test_no_asymptote_is_the_two_parameter_model_bit_for_bit(small, nodes):
    """The general formulas, run at c = 0 on all items but one, give the simple ones' bits."""
    k, n = small
    plain, zero = mml(k, n, nodes=nodes), mml(k, n, c=np.zeros(12), nodes=nodes)
    for name in ("a", "d", "theta", "se_a", "theta_map"):
        assert (getattr(plain, name) == getattr(zero, name)).all()
    z, none = np.linspace(-50, 50, 12 * 300).reshape(12, 300), np.zeros((12, 1))
    for kind in ("expected", "observed", "larger"):
        for x, y in zip(
            score_and_weight(k, n, z, None, kind),
            score_and_weight(k, n, z, none, kind),
            strict=True,
        ):
            assert (x == y).all()
    assert all((x == y).all() for x, y in zip(log_terms(z, None), log_terms(z, none), strict=True))


def test_models_without_answers_get_the_population(small):
    k, n = small
    more_k, more_n = np.hstack([k, np.zeros((12, 3))]), np.hstack([n, np.zeros((12, 3))])
    fit, base = mml(more_k, more_n, tol=1e-9), mml(k, n, tol=1e-9)
    assert fit.theta[-3:] == pytest.approx(0, abs=1e-9)
    assert fit.sd[-3:] == pytest.approx(1, abs=1e-6)
    assert fit.a == pytest.approx(base.a, abs=1e-6)


def test_a_run_that_is_cut_short_says_so(small):
    fit = mml(*small, max_iter=2, nodes="grid")
    assert not fit.converged
    assert "not converged after 2 EM steps" in fit.notes[0]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_order_does_not_matter_and_counts_are_repeated_columns(seed):
    rng = np.random.default_rng(seed)
    k, n, *_ = _simulate(seed, 6, 60)
    prior = ItemPrior()
    counts = rng.integers(1, 4, 60)
    fit = mml(k, n, counts=counts, prior=prior, tol=1e-8)
    rows, columns = rng.permutation(6), rng.permutation(60)
    other = mml(k[rows][:, columns], n, counts=counts[columns], prior=prior, tol=1e-8)
    repeated = mml(np.repeat(k, counts, axis=1), np.ones((6, counts.sum())), prior=prior, tol=1e-8)
    assert other.a == pytest.approx(fit.a[rows], abs=1e-6)
    assert other.theta == pytest.approx(fit.theta[columns], abs=1e-6)
    assert repeated.log_lik == pytest.approx(fit.log_lik, abs=1e-6)
    assert repeated.d == pytest.approx(fit.d, abs=1e-6)
    assert repeated.se_d == pytest.approx(fit.se_d, rel=1e-4)


def test_k_of_n_is_n_single_answers(small):
    k, n = small
    a, d = np.linspace(0.5, 2, 12), np.linspace(-1, 1, 12)
    single = make_cells(np.vstack([k > r for r in range(3)]), np.vstack([n > r for r in range(3)]))
    once = Grid(make_cells(k, n)).posterior(a, d)
    split = Grid(single).posterior(np.tile(a, 3), np.tile(d, 3))
    assert split.log_lik == pytest.approx(once.log_lik, abs=1e-10)
    assert split.mean == pytest.approx(once.mean, abs=1e-12)
    theta, se = modes(make_cells(k, n), a, d, np.zeros(300), 1e-9)
    other = modes(single, np.tile(a, 3), np.tile(d, 3), np.zeros(300), 1e-9)
    assert other[0] == pytest.approx(theta, abs=1e-9)
    assert other[1] == pytest.approx(se, abs=1e-9)


def test_a_posterior_sums_to_one():
    post = posterior_of(np.array([-1.0, 1.0]), np.log(np.array([[1.0, 3.0], [2.0, 2.0]])) - 1000)
    assert post.pi == pytest.approx(np.array([[0.25, 0.75], [0.5, 0.5]]))
    assert post.mean == pytest.approx([0.5, 0])
    assert post.log_lik == pytest.approx(np.log(4) - 1000)


def test_bad_answers_are_refused_in_one_line():
    k, n = np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones((2, 2))
    for bad_k, bad_n, extra, message in (
        (k + 1, n, {}, "item 0, model 0: k = 2.0, n = 1.0: k must be between 0 and n"),
        (k, n * np.nan, {}, "item 0, model 0"),
        (k * -1, n, {}, "k must be between 0 and n"),
        (k, n[:1], {}, "both must be"),
        (k * 0, n * [[1], [0]], {}, "item 1 has no answers"),
        (k * 0, n, {}, "item 0 was answered right by nobody"),
        (n, n, {}, "item 0 was answered right by everybody"),
        (k, n, {"counts": [1, 0]}, "counts must be positive"),
        (k, n, {"counts": [1]}, "counts has shape"),
        (k, n, {"c": 1.0}, "c must be in"),
    ):
        with pytest.raises(ValueError, match=message) as refused:
            mml(bad_k, bad_n, **extra)
        assert "\n" not in str(refused.value)
