"""The model of the joint engine, stated in Pyro: the reference it is checked against, SVI and NUTS.

Pyro's log joint is the second opinion on the engine's objective. `svi` and `nuts` are ways to fit
(`irt.fit(..., method="svi")`): both start at the engine's maximum, work in the coordinates that its
curvature gives (`irt._white`), and standardise every draw by itself, so that shift and scale of θ, which
the data do not say, do not pass for uncertainty. They are seeded and leave torch's generator as it
was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from irt import _pyro_run as run
from irt._nodes import log_likelihood
from irt._white import White, white_model, whiten
from irt.data import DataError, Floats, Responses
from irt.joint import JointResult, fit_joint
from irt.laplace import Draws, standard_draws
from irt.methods import Estimate, Request, mean_and_sd
from irt.model import Hyper, State

# Measured on one core: 14 ms a gradient at this size, 20 to 60 gradients a draw, so up to half an hour
# with the usual chains; beyond it, hours.
MAX_CELLS = 100_000
MAX_PARAMETERS = 3_000

_GUIDE_DRAWS = 2_000


@dataclass(frozen=True)
class Observed:
    """The cells that were tried, one entry a cell.

    Parameters
    ----------
    item, model : tensors of int, shape (cells,)
        Row and column of each cell.
    k, n : tensors of float64, shape (cells,)
    shape : tuple of int
        Items and models.
    """

    item: Any
    model: Any
    k: Any
    n: Any
    shape: tuple[int, int]


def observed(responses: Responses) -> Observed:
    """List the cells with at least one attempt.

    Parameters
    ----------
    responses : Responses
        Counts.

    Returns
    -------
    Observed

    Raises
    ------
    DataError
        For fractional scores, which are no binomial counts.
    ModuleNotFoundError
        Where Pyro is not installed, with the command that installs it.
    """
    if responses.fractional:
        raise DataError("Pyro's model counts successes: fractional scores need method='joint'")
    torch, _ = run.packages()
    item, model = np.nonzero(responses.n)
    k, n = (torch.tensor(grid[item, model]) for grid in (responses.k, responses.n))
    return Observed(torch.tensor(item), torch.tensor(model), k, n, responses.n.shape)


def model(cells: Observed, hyper: Hyper | None = None) -> None:
    """State the model: k ~ Binomial(n, σ(a θ + d)), non-centred.

    θ = μ_θ + σ_θ `theta_z`, log a = μ_a + σ_a `lam_z`, d = μ_d + σ_d `d_z`, all three standard normal.

    Parameters
    ----------
    cells : Observed
    hyper : Hyper, optional
        Without it they have priors: μ_a ~ N(0, 0.5), σ_a ~ HalfNormal(0.5), μ_d ~ N(0, 2),
        σ_d ~ HalfNormal(3); θ ~ N(0, 1).
    """
    import pyro
    from pyro import distributions as dist

    zero, one = cells.k.new_zeros(()), cells.k.new_ones(())
    mu_theta, sigma_theta = zero, one
    if hyper is None:
        mu_a = pyro.sample("mu_a", dist.Normal(zero, 0.5 * one))
        sigma_a = pyro.sample("sigma_a", dist.HalfNormal(0.5 * one))
        mu_d = pyro.sample("mu_d", dist.Normal(zero, 2 * one))
        sigma_d = pyro.sample("sigma_d", dist.HalfNormal(3 * one))
    else:
        mu_theta, sigma_theta = hyper.mu_theta * one, hyper.sigma_theta * one
        mu_a, sigma_a = hyper.mu_a * one, hyper.sigma_a * one
        mu_d, sigma_d = hyper.mu_d * one, hyper.sigma_d * one
    items, models = cells.shape
    with pyro.plate("models", models, dim=-1):
        theta_z = pyro.sample("theta_z", dist.Normal(zero, one))
    with pyro.plate("items", items, dim=-1):
        lam_z = pyro.sample("lam_z", dist.Normal(zero, one))
        d_z = pyro.sample("d_z", dist.Normal(zero, one))
    theta = mu_theta + sigma_theta * theta_z
    a = (mu_a + sigma_a * lam_z).exp()
    d = mu_d + sigma_d * d_z
    z = a[..., cells.item] * theta[..., cells.model] + d[..., cells.item]
    with pyro.plate("cells", len(cells.k), dim=-1):
        pyro.sample("k", dist.Binomial(cells.n, logits=z), obs=cells.k)


def log_joint(
    cells: Observed, theta: Any, lam: Any, d: Any, hyper: Hyper, *, priors: bool = False
) -> Any:
    """Log density of answers and parameters together, by Pyro; autograd goes through it.

    Parameters
    ----------
    cells : Observed
    theta, lam, d : tensors of float64, shapes (P,), (I,) and (I,)
        Abilities, λ = log a, intercepts.
    hyper : Hyper
        Their priors' mean and SD.
    priors : bool
        Whether the hyperparameters' own priors count, as in `model` without hyperparameters.

    Returns
    -------
    tensor, shape ()
        Densities of the standardised sites `theta_z`, `lam_z`, `d_z`; binomial coefficients included.
    """
    torch, pyro = run.packages()
    sites = {
        "theta_z": (theta - hyper.mu_theta) / hyper.sigma_theta,
        "lam_z": (lam - hyper.mu_a) / hyper.sigma_a,
        "d_z": (d - hyper.mu_d) / hyper.sigma_d,
    }
    if priors:
        names = ("mu_a", "sigma_a", "mu_d", "sigma_d")
        sites |= {name: torch.tensor(getattr(hyper, name), dtype=d.dtype) for name in names}
    given = pyro.poutine.condition(model, data=sites)
    return pyro.poutine.trace(given).get_trace(cells, None if priors else hyper).log_prob_sum()


@dataclass(frozen=True)
class SviEstimate(Estimate):
    """An `Estimate` with what the variational fit leaves behind.

    Parameters
    ----------
    elbo : array, shape (steps,)
        Evidence lower bound at every step, binomial coefficients included.
    """

    elbo: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class NutsEstimate(Estimate):
    """An `Estimate` with the chains' diagnostics.

    Parameters
    ----------
    r_hat, ess : float
        The worst split r-hat and the smallest effective sample size of all θ, log a and d,
        standardised.
    divergences : int
        Divergent draws after the adaptation, all chains together.
    hyper_mean : mapping of str to float
        Posterior means of the hyperparameters, where they were sampled.
    """

    r_hat: float = float("nan")
    ess: float = float("nan")
    divergences: int = 0
    hyper_mean: Mapping[str, float] = field(default_factory=dict)


def svi(
    responses: Responses, request: Request | None = None, *, seed: int = 0,
    rank: int | None = None, particles: int = 8, learning_rate: float = 0.01, cap: int = 3000,
) -> SviEstimate:  # fmt: skip
    """Fit Pyro's AutoLowRankMultivariateNormal to the posterior at the engine's hyperparameters.

    It starts as the engine's Laplace approximation and learns where the posterior differs: its mean,
    its scales, and `rank` directions of correlation. Every 100 steps the mean ELBO is compared with
    that of the 100 before; no gain beyond twice the error of the difference, and the fit stops (at
    least 300 steps). The parameters are averaged over the last 100 steps.

    Parameters
    ----------
    responses : Responses
        Counts.
    request : Request, optional
        No anchors; a warm start saves nothing here and is not used.
    seed : int
    rank : int, optional
        Directions of the guide; the root of the number of parameters by default.
    particles : int
        Draws a step.
    learning_rate : float
        Adam's, in standard errors.
    cap : int
        Most steps.

    Returns
    -------
    SviEstimate

    Raises
    ------
    DataError
        For fractional scores or anchors.
    ModuleNotFoundError
        Where Pyro is not installed.
    """
    torch, _ = run.packages()
    cells = _accepted("svi", responses, request)
    result = fit_joint(responses.k, responses.n)
    white, point = whiten(result), result.state
    target = partial(white_model, model, cells, white, point, point.hyper)
    with run.apart(seed):
        guide = run.low_rank_guide(target, white.size, rank)
        elbo, last, settled = run.climb(target, guide, particles, learning_rate, cap)
    h, (items, models) = point.hyper, cells.shape
    # white coordinates to sites: the bound is one of the model's evidence, not of the coordinates
    elbo += white.log_det - models * np.log(h.sigma_theta) - items * np.log(h.sigma_a * h.sigma_d)
    loc, scale, factor = last

    def draw(n: int, rng: np.random.Generator) -> Draws:
        wide = torch.tensor(rng.standard_normal((n, factor.shape[1]))) @ factor.mT
        own = torch.tensor(rng.standard_normal((n, white.size)))
        return standard_draws(result, _columns(white.deviations(loc + scale * (wide + own))))

    moved = point.moved(_columns(white.deviations(loc)), 1.0)
    mean_and_sd(result.state.theta)
    m, s = float(moved.theta.mean()), float(moved.theta.std())
    note = (
        f"svi: ELBO {elbo[-run.WINDOW :].mean():.2f} after {len(elbo)} steps "
        f"({elbo[: run.WINDOW].mean():.2f} in the first {run.WINDOW}), rank {factor.shape[1]}"
    )
    sample = draw(_GUIDE_DRAWS, np.random.default_rng(seed))
    record = _record(responses, result, moved.standardised(m, s), (m, s), sample)
    gain = abs(float(elbo[-run.WINDOW :].mean() - elbo[-2 * run.WINDOW : -run.WINDOW].mean()))
    return SviEstimate(
        **record, converged=settled and result.converged, iterations=len(elbo), decrement=gain,
        notes=(note,), draw=draw, elbo=elbo, seed=seed,
    )  # fmt: skip


def nuts(
    responses: Responses, request: Request | None = None, *, seed: int = 0, chains: int = 2,
    warmup: int = 200, draws: int = 500, hyper: Literal["fixed", "free"] = "fixed",
) -> NutsEstimate:  # fmt: skip
    """Sample the posterior by Pyro's NUTS: the audit of the other methods, for small data.

    Parameters
    ----------
    responses : Responses
        Counts; at most 100,000 cells and 3,000 parameters.
    request : Request, optional
        No anchors; a warm start saves nothing here and is not used.
    seed : int
    chains : int
        One after the other, each from its own random point.
    warmup, draws : int
        Steps of each chain before and after its adaptation.
    hyper : {"fixed", "free"}
        Keep the engine's hyperparameters, or sample them under the priors of `model`.

    Returns
    -------
    NutsEstimate
        Posterior means. Converged: every split r-hat below 1.05, every effective sample size at least
        100, fewer than one draw in a hundred divergent.

    Raises
    ------
    DataError
        For more data than the limits, fractional scores or anchors.
    ModuleNotFoundError
        Where Pyro is not installed.
    """
    size = len(responses.models) + 2 * len(responses.items)
    if responses.n_cells > MAX_CELLS or size > MAX_PARAMETERS:
        raise DataError(
            f"nuts would take hours on {responses.n_cells} cells and {size} parameters: at most "
            f"{MAX_CELLS} cells and {MAX_PARAMETERS} parameters; use method='joint' or 'svi'"
        )
    cells = _accepted("nuts", responses, request)
    result = fit_joint(responses.k, responses.n)
    target = partial(
        white_model, model, cells, whiten(result), result.state,
        result.state.hyper if hyper == "fixed" else None,
    )  # fmt: skip
    runs = [
        run.chain(target, size, seed + 7919 * number, warmup, draws) for number in range(chains)
    ]
    return replace(_gather(responses, result, whiten(result), runs), seed=seed)


def _accepted(method: str, responses: Responses, request: Request | None) -> Observed:
    if request is not None and request.anchors:
        raise DataError(f"{method} takes no anchors: use method='joint'")
    return observed(responses)


def _columns(parts: tuple[Any, ...]) -> tuple[Floats, Floats, Floats]:
    """Give tensors of deviations (draws, ·) as the engine's arrays (·, draws)."""
    theta, lam, d = (np.asarray(x.detach().numpy().T, dtype=np.float64) for x in parts)
    return theta, lam, d


def _gather(
    responses: Responses, result: JointResult, white: White, runs: list[tuple[dict[str, Any], int]]
) -> NutsEstimate:
    """Standardise every draw, look at the chains' agreement, and make the record."""
    import torch

    samples = {name: torch.cat([run[name] for run, _ in runs]) for name in runs[0][0]}
    theta, lam, d = white.deviations(samples["point"])
    state = result.state
    h = state.hyper
    if "mu_a" in samples:  # the sites stand, what they mean moved with the hyperparameters
        column = {name: x[:, None] for name, x in samples.items() if name != "point"}
        lam = lam + torch.tensor(state.lam)
        d = d + torch.tensor(state.d)
        lam = (
            column["mu_a"]
            + column["sigma_a"] * (lam - h.mu_a) / h.sigma_a
            - torch.tensor(state.lam)
        )
        d = column["mu_d"] + column["sigma_d"] * (d - h.mu_d) / h.sigma_d - torch.tensor(state.d)
    mean_and_sd(result.state.theta)
    pool = standard_draws(result, _columns((theta, lam, d)))
    r_hat, ess = run.agreement(pool, len(runs))
    means = {name: float(x.mean()) for name, x in samples.items() if name != "point"}
    centre = State(pool.theta.mean(axis=0), np.log(pool.a).mean(axis=0), pool.d.mean(axis=0), h)
    record = _record(
        responses, result, centre.standardised(float(centre.theta.mean()), float(centre.theta.std())),
        (float(state.theta.mean()), float(state.theta.std())), pool,
    )  # fmt: skip
    record["hyper"] = replace(h, **means)
    count, divergent = len(pool.theta), sum(number for _, number in runs)
    note = (
        f"nuts: {len(runs)} chains of {count // len(runs)} draws, worst r-hat {r_hat:.3f}, smallest "
        f"effective sample size {ess:.0f}, {divergent} divergences"
    )

    def draw(n: int, rng: np.random.Generator) -> Draws:
        rows = rng.choice(count, size=n, replace=n > count)
        return Draws(pool.theta[rows], pool.a[rows], pool.d[rows])

    good = r_hat < 1.05 and ess >= 100 and divergent < count / 100
    return NutsEstimate(
        **record, converged=good and result.converged, iterations=count, decrement=float("nan"),
        notes=(note,), draw=draw, r_hat=r_hat, ess=ess, divergences=divergent, hyper_mean=means,
    )  # fmt: skip


def _record(
    responses: Responses,
    result: JointResult,
    standard: State,
    gauge: tuple[float, float],
    draws: Draws,
) -> dict[str, Any]:
    """Collect what both methods say of a point (standardised) and of draws around it."""
    lam = np.log(draws.a)
    var_log_a, var_d = lam.var(axis=0, ddof=1), draws.d.var(axis=0, ddof=1)
    cov = np.einsum("ni,ni->i", lam - lam.mean(axis=0), draws.d - draws.d.mean(axis=0))
    z = standard.a[:, None] * standard.theta + standard.d[:, None]
    log_lik = log_likelihood(responses.k, responses.n, z)
    m, s = gauge
    return {
        "theta": standard.theta, "se_theta": draws.theta.std(axis=0, ddof=1),
        "a": standard.a, "d": standard.d,
        "var_log_a": var_log_a, "var_d": var_d, "cov": cov / (len(lam) - 1),
        "hyper": standard.hyper, "m": m, "s": s, "log_lik": log_lik, "max_grad": float("nan"),
        "cholesky_ok": bool(np.isfinite(var_log_a).all()), "fisher_items": result.system.fisher,
        "state": standard.standardised(-m / s, 1 / s), "start": result.first,
        "cov_theta": lambda: np.cov(draws.theta.T),
    }  # fmt: skip
