"""The ways of estimating, one function a method, all giving the same record.

A method takes `Responses` and a `Request` and gives an `Estimate` in the gauge mean(θ) = 0,
SD(θ) = 1. A new one is a line in `METHODS`; a value is the function itself or "module:function" where its
import is dear.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from irt._joint_link import JointLink
from irt.data import DataError, Floats, Mask, Responses
from irt.joint import Options, cold_start, fit_joint
from irt.laplace import Covariance, Draws, covariance, projected, standard_draws
from irt.model import Hyper, State
from irt.sandwich import sandwich
from irt.score import mode, shifted

LEAST_SD = 1e-6
"""Spread of abilities, in the engine's unit, below which they are rounding: 0.05 is seen for noise."""


@dataclass(frozen=True)
class Request:
    """What a fit was asked for beside the data.

    Parameters
    ----------
    warm : mapping, optional
        A start: see `Warm`.
    anchors : mapping of item to (a, b)
        Items that keep their parameters.
    anchor_hyper : Hyper, optional
        Priors of the other items then.
    minutes : mapping of item to human minutes
        What level "joint" of the link takes into the likelihood; empty: nothing.
    c : array, shape (I,), optional
        Lower asymptotes of the items; method mml takes them.
    """

    warm: Warm | None = None
    anchors: Mapping[Hashable, tuple[float, float]] = field(default_factory=dict)
    anchor_hyper: Hyper | None = None
    minutes: Mapping[Hashable, float] = field(default_factory=dict)
    c: Floats | None = None


@dataclass(frozen=True)
class Warm:
    """The last fit's point by name, in the engine's gauge.

    Parameters
    ----------
    models, items : tuple
    state : State
    """

    models: tuple[Hashable, ...]
    items: tuple[Hashable, ...]
    state: State


@dataclass(frozen=True)
class Estimate:
    """What every method gives; θ (P,), everything of an item (I,).

    Parameters
    ----------
    theta, se_theta : arrays
    a, d : arrays
    var_log_a, var_d, cov : arrays
        Covariance of (log a, d) of each item in the fixed gauge.
    hyper : Hyper
        Priors in the engine's gauge θ_engine = m + s θ.
    m, s : float
        From the engine's gauge to the reported one.
    log_lik : float
        Σ k log p + (n − k) log(1 − p) at the point.
    converged : bool
    iterations, decrement, max_grad : numbers
        As the method counts them.
    cholesky_ok : bool
    fisher_items : array of bool
    notes : tuple of str
    state : State
        The point in the engine's gauge.
    start : State
        Where a warm refit should start.
    draw : callable, optional
        n and a generator to joint draws.
    cov_theta : callable, optional
        Gives the covariance of θ, shape (P, P), in the fixed gauge.
    link : JointLink, optional
        The line through the minutes, in the reported gauge, where they were part of the fit.
    c : array, shape (I,), optional
        Lower asymptotes, where the model has them.
    thresholds, se_thresholds : arrays, shape (I, levels − 1), optional
        Of the graded model, in the reported gauge.
    seed : int, optional
        Of a method that draws.
    """

    theta: Floats
    se_theta: Floats
    a: Floats
    d: Floats
    var_log_a: Floats
    var_d: Floats
    cov: Floats
    hyper: Hyper
    m: float
    s: float
    log_lik: float
    converged: bool
    iterations: int
    decrement: float
    max_grad: float
    cholesky_ok: bool
    fisher_items: Mask
    notes: tuple[str, ...]
    state: State
    start: State
    draw: Callable[[int, np.random.Generator], Draws] | None = None
    cov_theta: Callable[[], Floats] | None = None
    link: JointLink | None = None
    c: Floats | None = None
    thresholds: Floats | None = None
    se_thresholds: Floats | None = None
    seed: int | None = None


Method = Callable[[Responses, Request], Estimate]


def mean_and_sd(theta: Floats) -> tuple[float, float]:
    """Give what takes abilities to mean 0 and SD 1.

    Raises
    ------
    DataError
        Where the models do not differ: what is left of their abilities is rounding, no scale.
    """
    m, s = float(theta.mean()), float(theta.std())
    if not s > LEAST_SD:
        raise DataError("no variation between models: their answers do not tell them apart")
    return m, s


def joint(responses: Responses, request: Request) -> Estimate:
    """Fit by the joint Newton–Schur engine.

    Parameters
    ----------
    responses : Responses
    request : Request

    Returns
    -------
    Estimate
        Errors by Laplace; by the sandwich where the scores are fractional.
    """
    options = _options(responses, request)
    result = fit_joint(responses.k, responses.n, options)
    cov: Covariance
    notes: tuple[str, ...] = ()
    if responses.fractional:
        cov, ok = sandwich(result), True
        notes = ("fractional scores: quasi-binomial with sandwich errors",)
    else:
        cov, ok = covariance(result)
        if not ok:
            notes = ("the observed information is not positive definite: errors by Fisher's",)
    state, errors = result.state, cov.variances()
    m, s = 0.0, 1.0
    if not options.anchored:
        m, s = mean_and_sd(state.theta)
        errors = projected(errors, cov.times, state.theta, state.a)
    standard = state.standardised(m, s)

    def draw(n: int, rng: np.random.Generator) -> Draws:
        return standard_draws(result, cov.deviations(n, rng), standardise=not options.anchored)

    def cov_theta() -> Floats:
        full = cov.times(np.eye(len(state.theta)))[0]
        return full if options.anchored else _in_gauge(full, standard.theta) / s**2

    return Estimate(
        standard.theta, np.sqrt(errors.theta), standard.a, standard.d,
        errors.lam, errors.d, errors.lam_d, state.hyper, m, s, result.at.log_lik,
        result.converged, result.iterations, result.decrement, result.max_grad, ok,
        result.system.fisher, notes, state, result.first, draw, cov_theta, standard.link,
    )  # fmt: skip


def _in_gauge(cov: Floats, t: Floats) -> Floats:
    """G C Gᵀ with G = I − 11ᵀ/P − ttᵀ/P."""
    count = len(t)
    g = np.eye(count) - 1 / count - np.outer(t, t) / count
    return np.asarray(g @ cov @ g.T, dtype=np.float64)


def _options(responses: Responses, request: Request) -> Options:
    link = _joint_link(responses, request)
    if request.anchors:
        return replace(_anchored(responses, request), link=link)
    start = None if request.warm is None else _warm(responses, request.warm)
    return Options(start=start, link=link)


def _joint_link(responses: Responses, request: Request) -> JointLink | None:
    if not request.minutes:
        return None
    if responses.fractional:
        raise DataError("link='joint' takes counts: with fractional scores use link='weighted'")
    rows = np.array([i for i, key in enumerate(responses.items) if key in request.minutes])
    minutes = np.array([request.minutes[responses.items[i]] for i in rows], dtype=np.float64)
    return JointLink.start(rows, minutes)


def _warm(responses: Responses, warm: Warm) -> State:
    """Start where the last fit ended; new models are scored on it, new items start cold."""
    old, hyper = warm.state, warm.state.hyper
    theta, lam, d = (
        _by_name(names, known, values)
        for names, known, values in (
            (responses.models, warm.models, old.theta),
            (responses.items, warm.items, old.lam),
            (responses.items, warm.items, old.d),
        )
    )
    new = np.isnan(lam)
    if new.any():
        lam[new], d[new] = hyper.mu_a, cold_start(responses.k[new], responses.n[new]).d
    new = np.isnan(theta)
    if new.any():
        k, n = responses.k[:, new], responses.n[:, new]
        theta[new] = mode(k, n, np.exp(lam), d)[0]
    return State(theta, lam, d, hyper)


def _by_name(names: tuple[Hashable, ...], known: tuple[Hashable, ...], values: Floats) -> Floats:
    """Give each name its value; NaN where it is new."""
    if names == known:
        return values.copy()
    place = {name: row for row, name in enumerate(known)}
    rows = np.array([place.get(name, -1) for name in names], dtype=np.intp)
    return np.where(rows >= 0, values[rows], np.nan)


def _anchored(responses: Responses, request: Request) -> Options:
    """Fixed-item calibration (Kim 2006): anchors keep (a, b), the population moves."""
    frozen = np.array([key in request.anchors for key in responses.items])
    if not frozen.any():
        raise DataError("none of the anchors has answers here: there is no link to their scale")
    pairs = [
        request.anchors[k] for k, is_one in zip(responses.items, frozen, strict=True) if is_one
    ]
    a, b = np.array(pairs, dtype=np.float64).T
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all()):
        raise DataError("an anchor needs a positive a and a finite b")
    start = _warm(responses, request.warm) if request.warm else None
    start = start or cold_start(responses.k, responses.n)
    hyper = request.anchor_hyper or _anchor_priors(np.log(a), -a * b)
    lam, d = start.lam + (0.0 if request.warm else hyper.mu_a), start.d.copy()
    lam[frozen], d[frozen] = np.log(a), -a * b
    start = replace(start, lam=lam, d=d, hyper=hyper)
    return Options(start=start, frozen_items=frozen)


def _anchor_priors(lam: Floats, d: Floats) -> Hyper:
    """Priors of the new items: the anchors' moments, drawn to the engine's start as in a fit."""

    def moments(x: Floats, prior: float) -> tuple[float, float]:
        mean = float(x.mean())
        return mean, float(np.sqrt((np.sum((x - mean) ** 2) + 4 * prior**2) / (len(x) + 4)))

    mu_a, sigma_a = moments(lam, 0.5)
    mu_d, sigma_d = moments(d, 2.0)
    return Hyper(mu_a, sigma_a, mu_d, sigma_d)


def mml_method(responses: Responses, request: Request) -> Estimate:
    """Fit by marginal maximum likelihood (`irt.mml`) with empirical priors.

    Parameters
    ----------
    responses : Responses
        Counts; no anchors.
    request : Request
        Its lower asymptotes are the items'.

    Returns
    -------
    Estimate
        θ is the posterior mean, its error the posterior SD; no joint draws.

    Raises
    ------
    DataError
        For fractional scores or anchors, which this method does not take.
    """
    from irt._nodes import log_likelihood
    from irt.mml import mml

    if responses.fractional or request.anchors:
        raise DataError("mml takes no fractional scores and no anchors: use method='joint'")
    c = request.c
    found = mml(responses.k, responses.n, c=c, prior="empirical")
    prior = found.prior
    hyper = Hyper()
    if prior is not None:
        hyper = Hyper(prior.mu_a, prior.sigma_a, prior.mu_d, prior.sigma_d)
    state = State(found.theta, np.log(found.a), found.d, hyper)
    m, s = mean_and_sd(found.theta)
    standard = state.standardised(m, s)
    var_lam, cov = found.cov[:, 0, 0] / found.a**2, found.cov[:, 0, 1] / found.a
    var_d, cov = shifted(var_lam, cov, found.cov[:, 1, 1], found.a * m)
    z = found.a[:, None] * found.theta + found.d[:, None]
    log_lik = log_likelihood(responses.k, responses.n, z, None if c is None else c[:, None])
    se_theta = found.sd / s

    def cov_theta() -> Floats:
        return np.diag(se_theta**2)  # the items as known: given them, abilities are independent

    return Estimate(
        standard.theta, se_theta, standard.a, standard.d, var_lam, var_d, cov, hyper, m, s, log_lik, found.converged, found.iterations, found.max_change, float("nan"),
        bool(np.isfinite(found.cov).all()), np.zeros(len(found.a), dtype=bool), found.notes, state,
        standard, cov_theta=cov_theta, c=c,
    )  # fmt: skip


METHODS: dict[str, Method | str] = {
    "joint": joint, "mml": mml_method,
    "svi": "irt.pyro_model:svi", "nuts": "irt.pyro_model:nuts",
}  # fmt: skip


def find_method(name: str) -> Method:
    """Look a method up, importing it where it is given as "module:function".

    Parameters
    ----------
    name : str

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        For a name that is not there.
    """
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; there are {', '.join(('auto', *METHODS))}")
    entry = METHODS[name]
    if isinstance(entry, str):
        module, _, function = entry.partition(":")
        loaded: Method = getattr(importlib.import_module(module), function)
        return loaded
    return entry


SHORT_TEST = 60
_BIASED = (
    "a short test of many models: the joint fit is biased (abilities spread, slopes too steep)"
)


def is_short_test(responses: Responses) -> bool:
    """Whether models outnumber items and the median model answered fewer than 60.

    Parameters
    ----------
    responses : Responses

    Returns
    -------
    bool
        There joint estimates of abilities and items are biased (Neyman & Scott 1948).
    """
    answered = float(np.median(np.count_nonzero(responses.n, axis=0)))
    return answered < SHORT_TEST and len(responses.models) > len(responses.items)


def choose_method(responses: Responses, method: str = "auto") -> tuple[str, tuple[str, ...]]:
    """Choose as `auto` does: `mml` for short tests of many models, else `joint`.

    Parameters
    ----------
    responses : Responses
    method : str
        What was asked for; anything but "auto" stays.

    Returns
    -------
    name, notes
        Notes say where a better method is not there or was not asked for.
    """
    short = is_short_test(responses)
    if method != "auto":
        return method, ((f"{_BIASED}: prefer method='mml'",) if short and method == "joint" else ())
    if not short:
        return "joint", ()
    if responses.fractional:
        return "joint", (f"{_BIASED}, but fractional scores need it",)
    return ("mml", ()) if "mml" in METHODS else ("joint", (f"{_BIASED}, but mml is not there",))
