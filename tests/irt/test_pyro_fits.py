"""Methods svi and nuts: near the engine where it is right, nearer to the truth where it is not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

torch = pytest.importorskip("torch")
pyro = pytest.importorskip("pyro")

import irt  # noqa: E402
from irt import _pyro_run, pyro_model  # noqa: E402
from irt._pyro_run import apart  # noqa: E402
from irt.joint import fit_joint  # noqa: E402
from irt.laplace import Draws, covariance  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(simulate):
    """A few answers a cell: enough for the posterior to be nearly normal."""
    return simulate(51, 12, 20, attempts=10, missing=0.2)


@pytest.fixture(scope="module")
def joint(data):
    return irt.fit(data.responses, method="joint")


@pytest.fixture(scope="module")
def svi(data):
    return irt.fit(data.responses, method="svi")


@pytest.fixture(scope="module")
def small(simulate):
    """Few answers: the posterior is skewed, its mode is not its mean."""
    return simulate(52, 8, 6, attempts=10)


@pytest.fixture(scope="module")
def chains(small):
    return pyro_model.nuts(small.responses, warmup=60, draws=120)


@pytest.fixture(scope="module")
def truth(small):
    """Posterior mean and SD of standardised θ, log a and d by importance sampling, without Pyro.

    Multivariate t about the mode; its scale matrix only has to be wide enough.
    """
    result, rng = fit_joint(small.k, small.n), np.random.default_rng(54)
    state, h, nu = result.state, result.state.hyper, 12
    spread = covariance(result)[0].deviations(20_000, rng)
    lower = 1.15 * np.linalg.cholesky(np.cov(np.vstack(spread)))
    count, size = 60_000, len(lower)
    t = rng.standard_normal((count, size)) * np.sqrt(nu / rng.chisquare(nu, (count, 1)))
    theta, lam, d = np.split(t @ lower.T, [8, 14], axis=1)
    theta, lam, d = theta + state.theta, lam + state.lam, d + state.d
    z = np.exp(lam)[:, :, None] * theta[:, None, :] + d[:, :, None]
    target = (small.k * z - small.n * np.logaddexp(0, z)).sum(axis=(1, 2))
    for x, mean, sd in ((theta, 0, 1), (lam, h.mu_a, h.sigma_a), (d, h.mu_d, h.sigma_d)):
        target -= 0.5 * (((x - mean) / sd) ** 2).sum(axis=1)
    target += (nu + size) / 2 * np.log1p((t**2).sum(axis=1) / nu)
    weight = np.exp(target - target.max())
    # what the log densities above leave out: coefficients, normal constants, those of the t
    constant = stats.binom.logpmf(small.k, small.n, 0.5).sum() + small.n.sum() * np.log(2)
    constant += -size / 2 * np.log(2 * np.pi) - 6 * np.log(h.sigma_a * h.sigma_d)
    constant += size / 2 * np.log(nu * np.pi) + gammaln(nu / 2) - gammaln((nu + size) / 2)
    constant += np.log(np.diag(lower)).sum()
    evidence = target.max() + np.log(weight.mean()) + constant
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 5_000
    standard = flat(standardised(theta, np.exp(lam), d))
    mean = weight @ standard
    return mean, np.sqrt(weight @ (standard - mean) ** 2), evidence


def standardised(theta, a, d):
    m, s = theta.mean(axis=1, keepdims=True), theta.std(axis=1, keepdims=True)
    return Draws((theta - m) / s, a * s, d + a * m)


def flat(draws):
    return np.hstack([draws.theta, np.log(draws.a), draws.d])


def correlations(draws):
    """Between log a and d of each item, and between the difficulties of the first items."""
    within = [
        np.corrcoef(np.log(draws.a[:, i]), draws.d[:, i])[0, 1] for i in range(draws.a.shape[1])
    ]
    between = np.corrcoef(draws.theta[:, :6].T)[np.triu_indices(6, 1)]
    return np.concatenate([within, between])


def gap(one, two):
    return float(np.sqrt(np.mean((correlations(one) - correlations(two)) ** 2)))


def test_svi_is_a_method_like_the_others(svi, joint, data):
    assert svi.method == "svi"
    assert svi.verdict.converged
    assert "ELBO" in str(svi.verdict)
    assert abs(svi.models.theta.mean()) < 1e-12
    assert svi.models.theta.std() == pytest.approx(1, abs=1e-12)
    assert svi.hyper == joint.hyper
    assert svi.population == pytest.approx(joint.population, abs=0.1)
    assert svi.log_loss == pytest.approx(joint.log_loss, rel=0.01)
    assert np.abs(svi.score_model(data.responses).theta - svi.models.theta).max() < 0.2


def test_svis_means_are_near_the_engines(svi, joint):
    """Within half a Laplace SE each: the mean and the mode of a skewed posterior differ."""
    for ours, theirs, se in (
        (svi.models.theta, joint.models.theta, joint.models.se),
        (np.log(svi.items.a), np.log(joint.items.a), joint.items.se_log_a),
        (svi.items.d, joint.items.d, joint.items.se_d),
    ):
        assert np.abs((ours - theirs) / se).max() < 0.5
    assert svi.models.se == pytest.approx(joint.models.se, rel=0.25)
    assert svi.items.se_log_a == pytest.approx(joint.items.se_log_a, rel=0.25)
    assert svi.items.se_d == pytest.approx(joint.items.se_d, rel=0.25)


def test_svis_draws_keep_the_correlations_and_the_gauge(svi, joint):
    draws, reference = svi.draws(2000), joint.draws(2000)
    assert np.abs(draws.theta.mean(axis=1)).max() < 1e-12
    assert np.abs(draws.theta.std(axis=1) - 1).max() < 1e-12
    assert np.abs(correlations(reference)).max() > 0.5  # there is something to keep
    assert gap(draws, reference) < 0.08
    assert svi.items.se_b == pytest.approx(joint.items.se_b, rel=0.3)


def test_a_guide_without_correlations_would_be_noticed(data, joint):
    """The planted fault: Pyro's AutoNormal on the plain model, started at the same point."""
    from pyro.infer import SVI, Trace_ELBO
    from pyro.infer.autoguide import AutoNormal, init_to_value

    state = fit_joint(data.k, data.n).state
    h = state.hyper
    sites = {"theta_z": state.theta, "lam_z": (state.lam - h.mu_a) / h.sigma_a}
    sites["d_z"] = (state.d - h.mu_d) / h.sigma_d
    target = partial(pyro_model.model, pyro_model.observed(data.responses), h)
    with apart(0):
        start = {name: torch.tensor(value) for name, value in sites.items()}
        guide = AutoNormal(target, init_loc_fn=init_to_value(values=start))
        steps = SVI(
            target, guide, pyro.optim.Adam({"lr": 0.02}), Trace_ELBO(8, vectorize_particles=True)
        )
        for _ in range(300):
            steps.step()
        with torch.no_grad(), pyro.plate("draws", 2000, dim=-2):
            drawn = {name: value.numpy() for name, value in guide().items()}
    a = np.exp(h.mu_a + h.sigma_a * drawn["lam_z"])
    d = h.mu_d + h.sigma_d * drawn["d_z"]
    assert gap(standardised(drawn["theta_z"], a, d), joint.draws(2000)) > 0.2


def test_svi_comes_back_from_a_bad_start(small, monkeypatch):
    """The guide is displaced by two SEs and half as wide: the fit is the same within its noise."""
    plain = pyro_model.svi(small.responses)

    def displaced(*args):
        guide = original(*args)
        guide.loc.data += 2.0
        guide.scale = torch.full_like(guide.scale, 0.5)
        return guide

    original = _pyro_run.low_rank_guide
    monkeypatch.setattr(_pyro_run, "low_rank_guide", displaced)
    moved = pyro_model.svi(small.responses, learning_rate=0.05)
    assert moved.elbo[:20].mean() < plain.elbo[:20].mean() - 5
    assert moved.elbo[-100:].mean() == pytest.approx(plain.elbo[-100:].mean(), abs=1.0)
    assert np.abs((moved.theta - plain.theta) / plain.se_theta).max() < 0.35
    assert np.median(moved.se_theta / plain.se_theta) == pytest.approx(1, abs=0.15)


def test_the_elbo_is_a_bound_of_the_evidence(small, truth):
    """And a close one: it ends within one nat of what importance sampling gives."""
    found = pyro_model.svi(small.responses)
    end = found.elbo[-100:].mean()
    assert end < truth[2] + 0.1
    assert end == pytest.approx(truth[2], abs=1.0)
    assert end > found.elbo[:20].mean() - 0.5


def test_nuts_finds_the_posterior_means(chains, truth):
    pool = flat(chains.draw(240, np.random.default_rng(0)))
    assert np.abs((pool.mean(axis=0) - truth[0]) / truth[1]).max() < 4 / chains.ess**0.5
    assert np.median(pool.std(axis=0) / truth[1]) == pytest.approx(1, abs=0.1)


def test_nuts_agrees_with_laplace(small, chains):
    """In θ and d, within four Monte-Carlo errors and a quarter SE that skewness accounts for."""
    joint = irt.fit(small.responses, method="joint")
    laplace, pool = joint.draws(4000), chains.draw(240, np.random.default_rng(0))
    error = 4 / chains.ess**0.5 + 0.25
    assert error < 0.8
    for ours, theirs in ((pool.theta, laplace.theta), (pool.d, laplace.d)):
        assert np.abs((ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)).max() < error
    assert np.median(chains.se_theta / joint.models.se) == pytest.approx(1, abs=0.15)


def test_svi_finds_the_posterior_means_better_than_laplace(small, truth):
    found = irt.fit(small.responses, method="svi")
    joint = irt.fit(small.responses, method="joint")
    ours, theirs = (
        np.abs((flat(x.draws(4000)).mean(axis=0) - truth[0]) / truth[1]) for x in (found, joint)
    )
    assert ours.max() < 0.2
    assert np.sqrt(np.mean(ours**2)) < 0.6 * np.sqrt(np.mean(theirs**2))
    assert np.abs(flat(found.draws(4000)).std(axis=0) / truth[1] - 1).max() < 0.15


def test_nuts_says_how_its_chains_went(small, chains):
    assert chains.r_hat < 1.1
    assert chains.ess > 50
    assert chains.notes[0].startswith("nuts: 2 chains of 120 draws, worst r-hat")
    assert f"{chains.divergences} divergences" in chains.notes[0]
    draws = chains.draw(100, np.random.default_rng(0))
    assert np.abs(draws.theta.mean(axis=1)).max() < 1e-12
    assert np.abs(draws.theta.std(axis=1) - 1).max() < 1e-12
    assert chains.draw(1000, np.random.default_rng(0)).a.shape == (1000, 6)
    assert not chains.hyper_mean


def test_chains_that_do_not_agree_are_not_converged(small):
    short = pyro_model.nuts(small.responses, warmup=2, draws=8)
    assert not short.converged


def test_free_hyperparameters_are_sampled(small):
    free = pyro_model.nuts(small.responses, chains=1, warmup=10, draws=20, hyper="free")
    assert set(free.hyper_mean) == {"mu_a", "sigma_a", "mu_d", "sigma_d"}
    assert free.hyper.sigma_a == free.hyper_mean["sigma_a"] > 0
    assert np.isfinite(free.theta).all()


def test_a_seed_gives_the_same_bits_and_touches_nothing(small):
    torch.manual_seed(1234)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    store = set(pyro.get_param_store().keys())
    one, two = (pyro_model.svi(small.responses, seed=3) for _ in range(2))
    chain, again = (
        pyro_model.nuts(small.responses, seed=3, chains=1, warmup=3, draws=4) for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    assert set(pyro.get_param_store().keys()) == store
    assert np.array_equal(one.theta, two.theta)
    assert np.array_equal(one.elbo, two.elbo)
    assert np.array_equal(
        one.draw(5, np.random.default_rng(1)).d, two.draw(5, np.random.default_rng(1)).d
    )
    assert np.array_equal(chain.theta, again.theta)
    other = pyro_model.svi(small.responses, seed=4)
    assert not np.array_equal(one.elbo, other.elbo)


def test_what_svi_hands_on_is_its_own_point_and_spread(svi, data):
    """State: the engine's gauge of the reported point. cov_theta: that of its draws."""
    e = svi.estimate
    assert e.seed == 0
    assert e.state.theta == pytest.approx(e.m + e.s * svi.models.theta, abs=1e-10)
    assert (e.m, e.s) == (pytest.approx(e.state.theta.mean()), pytest.approx(e.state.theta.std()))
    z = e.state.a[:, None] * e.state.theta + e.state.d[:, None]
    assert svi.probabilities() == pytest.approx(1 / (1 + np.exp(-z)), abs=1e-10)
    other = np.cov(svi.draws(4000, seed=5).theta.T)  # other draws of the same guide
    assert e.cov_theta().shape == other.shape == (12, 12)
    scale = np.sqrt(np.diag(other))
    assert np.abs((e.cov_theta() - other) / np.outer(scale, scale)).max() < 6 * 0.027
    assert np.diag(e.cov_theta()) == pytest.approx(svi.models.se**2, rel=1e-9)
    # so that its own items, added anew, are about themselves
    again = svi.add_items(data.responses)
    assert np.abs((again.b - svi.items.b) / svi.items.se_b).max() < 0.6
    assert np.median(again.se_b / svi.items.se_b) == pytest.approx(1, abs=0.2)


def test_free_hyperparameters_move_the_items_that_stand_on_them(small):
    """White coordinates at 0 are the engine's point: λ = μ_a + σ_a z, with the z of that point."""
    from irt._white import whiten

    result = fit_joint(small.k, small.n)
    state, h = result.state, result.state.hyper
    count, size = 40, len(state.theta) + 2 * len(state.lam)
    rng = np.random.default_rng(6)
    drawn = {
        "mu_a": 0.3 + 0.05 * rng.normal(size=count), "sigma_a": 0.4 + 0.05 * rng.random(count),
        "mu_d": -0.6 + 0.05 * rng.normal(size=count), "sigma_d": 1.5 + 0.1 * rng.random(count),
    }  # fmt: skip
    sites = {name: torch.tensor(x) for name, x in drawn.items()}
    sites["point"] = torch.zeros((count, size), dtype=torch.float64)
    found = pyro_model._gather(small.responses, result, whiten(result), [(sites, 0)])
    lam = drawn["mu_a"][:, None] + drawn["sigma_a"][:, None] * (state.lam - h.mu_a) / h.sigma_a
    d = drawn["mu_d"][:, None] + drawn["sigma_d"][:, None] * (state.d - h.mu_d) / h.sigma_d
    m, s = state.theta.mean(), state.theta.std()
    want = np.log(np.exp(lam) * s)
    assert np.log(found.a) == pytest.approx(want.mean(axis=0), abs=1e-9)
    assert found.var_log_a == pytest.approx(want.var(axis=0, ddof=1), rel=1e-6)
    assert found.d == pytest.approx((d + np.exp(lam) * m).mean(axis=0), abs=1e-9)
    for name, x in drawn.items():
        assert getattr(found.hyper, name) == pytest.approx(x.mean(), rel=1e-12)
