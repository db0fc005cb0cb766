"""The joint engine: Newton–Schur on all abilities and item parameters at once, empirical Bayes priors.

Two stages. In the first, each iteration goes along the gauge to where the prior is highest (the
likelihood is flat there, so this costs no pass, and a step from anywhere else spends itself on it),
takes a guarded step with Fisher's information, puts θ back to mean 0 and SD 1, and updates the
hyperparameters. It stops when θ and log a no longer move *after* that standardising: before it, a
step is always some way off in another gauge, and the loop would run to its cap. The second stage
freezes the hyperparameters and polishes with Newton steps of the observed Hessian.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irt._joint_link import JointLink
from irt.data import Floats, Mask
from irt.model import Array, Hyper, Pass, State, Step, cells_pass, gradient
from irt.newton import Arrow, arrow, solve

CAP = 100
MIN_ITERATIONS = 5
MIN_WARM = 1
POLISH_CAP = 50
_NU = 4.0
_FLOAT64_CELLS = 100_000  # below this many cells float32 saves nothing
_LINK_MOVE = 1e-3  # in log-minutes
_HYPER_MOVE = 5e-3  # of the priors: what the first stage allows log a to move
_NEAR = 0.1  # θ this close to its end is a polishing away
_CHORD = 1e-4  # below this decrement a refit's next step takes the Hessian that it has
_DIRECT = 256  # up to here a complement is factored; above, conjugate gradients are cheaper


@dataclass(frozen=True)
class Options:
    """How the engine runs; the defaults are right for a fit from scratch.

    Parameters
    ----------
    start : State, optional
        A warm start; hyperparameters included.
    frozen_items : array of bool, shape (I,), optional
        Anchors: items that keep the parameters of `start`. The gauge is theirs, so θ is not
        standardised; the population's mean and SD move instead, the other hyperparameters do not.
    frozen_theta : array of bool, shape (P,), optional
        Models that keep the ability of `start`.
    dtype : type, optional
        Precision of the first stage's passes; by default float32 from 100,000 cells on.
    direct_limit : int
        Size up to which the complement is factored.
    link : JointLink, optional
        Human minutes of items, to be part of the likelihood.
    """

    start: State | None = None
    frozen_items: Mask | None = None
    frozen_theta: Mask | None = None
    dtype: type | None = None
    direct_limit: int = _DIRECT
    link: JointLink | None = None

    @property
    def anchored(self) -> bool:
        """Whether the gauge is fixed by frozen parts."""
        return any(m is not None and bool(m.any()) for m in (self.frozen_items, self.frozen_theta))


@dataclass(frozen=True)
class JointResult:
    """The polished maximum a posteriori point.

    Parameters
    ----------
    state : State
        θ, λ, d and hyperparameters, in the engine's own gauge (θ ~ N(0, 1) a priori).
    first : State
        Where the first stage ended: the start that a warm refit wants.
    at : Pass
        Sums over the cells there, residuals included.
    system : Arrow
        The observed negative Hessian there.
    converged : bool
        Both stages came to their end before their cap.
    iterations, polish_steps : int
    decrement, max_grad : float
        Newton decrement before the last step; largest gradient after it.
    log_posterior : float
    """

    state: State
    first: State
    at: Pass
    system: Arrow
    converged: bool
    iterations: int
    polish_steps: int
    decrement: float
    max_grad: float
    log_posterior: float


def cold_start(k: Array, n: Array) -> State:
    """Start from the rates: d and θ their smoothed logits, θ standardised, λ = 0.

    Parameters
    ----------
    k, n : arrays, shape (I, P)

    Returns
    -------
    State
    """

    def logits(axis: int) -> Floats:
        right, asked = (grid.sum(axis=axis, dtype=np.float64) for grid in (k, n))
        rate = (right + 0.5) / (asked + 1.0)
        return np.asarray(np.log(rate / (1 - rate)), dtype=np.float64)

    theta = logits(0)
    spread = float(theta.std())
    theta = (theta - theta.mean()) / (spread if spread > 0 else 1.0)
    return State(theta, np.zeros(k.shape[0]), logits(1))


def fit_joint(k: Array, n: Array, options: Options | None = None) -> JointResult:
    """Find the joint maximum a posteriori of abilities and items.

    Parameters
    ----------
    k, n : arrays, shape (I, P)
        Successes (or scores) and attempts; 0 of 0 where there is no answer. No row or column is
        empty.
    options : Options, optional

    Returns
    -------
    JointResult
    """
    options = options or Options()
    state = replace(options.start or cold_start(k, n), link=options.link)
    state, iterations, settled = _first_stage(k, n, state, options)
    return _polish(k, n, state, options, iterations, settled)


def _free(options: Options, shape: tuple[int, ...]) -> tuple[Mask, Mask]:
    items, theta = options.frozen_items, options.frozen_theta
    return (
        np.ones(shape[0], dtype=bool) if items is None else ~items,
        np.ones(shape[1], dtype=bool) if theta is None else ~theta,
    )


def _first_stage(k: Array, n: Array, state: State, options: Options) -> tuple[State, int, bool]:
    dtype: Any = options.dtype or (np.float64 if k.size < _FLOAT64_CELLS else np.float32)
    if options.start is None:  # a refit makes two passes or three: they convert as they go
        k, n = k.astype(dtype, copy=False), n.astype(dtype, copy=False)
    free_items, free_theta = _free(options, k.shape)
    at = cells_pass(k, n, state, dtype)
    at_least = MIN_ITERATIONS if options.start is None else MIN_WARM
    if options.start is not None and not options.anchored:
        m, s = _location_scale(state, at)
        state, at = state.standardised(m, s), at.standardised(m, s)
    for iteration in range(1, CAP + 1):
        base = state
        if not options.anchored:
            m, s = _prior_gauge(state)
            base, at = state.standardised(m, s), at.standardised(m, s)
        system = arrow(base, at, free_items, free_theta)
        step = solve(system, gradient(base, at), dtype, options.direct_limit)
        if step is None:  # Fisher's form is positive definite: only rounding can bring us here
            return state, iteration, False
        moved, at = _guarded(k, n, base, at, step, dtype)
        if options.anchored:
            new = _move_population(moved, at, free_theta)
        else:
            m, s = _location_scale(moved, at)
            new, at = moved.standardised(m, s), at.standardised(m, s)
            if iteration > 1 or options.start is not None:
                new = replace(new, hyper=_empirical_bayes(new, at))
        if iteration > 1 or options.start is not None:
            new = _updated_link(new, at)
        settled = iteration >= at_least and _settled(state, moved, new)
        if options.start is not None and not options.anchored:
            settled = settled or _hardly_moved(state, new)
        state = new
        if settled:
            return state, iteration, True
    return state, CAP, False


def _largest(x: Floats) -> float:
    return max(float(np.abs(x).max()), 1e-300)


def _settled(old: State, _moved: State, new: State) -> bool:
    """Whether one iteration, its standardising included, changed nothing that matters."""
    one, two = old.link, new.link
    if one is not None and two is not None:
        moves = (two.alpha - one.alpha, two.beta - one.beta, two.tau - one.tau)
        if max(map(abs, moves)) >= _LINK_MOVE:
            return False
    return _largest(new.theta - old.theta) < 2e-3 and _largest(new.lam - old.lam) < 5e-3


def _hardly_moved(old: State, new: State) -> bool:
    """Whether a refit's priors stay as they were: the rest is for the polish, which is quadratic.

    θ and the items of a refit move at first by what the new answers say, whatever the priors do; to
    iterate until they rest would be to polish by Fisher's steps.
    """
    one, two = old.hyper, new.hyper
    moves = (
        two.mu_a - one.mu_a, two.sigma_a - one.sigma_a,
        (two.mu_d - one.mu_d) / one.sigma_d, (two.sigma_d - one.sigma_d) / one.sigma_d,
    )  # fmt: skip
    return (
        new.link is None
        and max(map(abs, moves)) < _HYPER_MOVE
        and _largest(new.theta - old.theta) < _NEAR
    )


def _guarded(
    k: Array, n: Array, state: State, at: Pass, step: Step, dtype: Any,
    *, keep_e: bool = False, store: Any = None,
) -> tuple[State, Pass]:  # fmt: skip
    """Go along a step of bounded length, halving it while the log posterior falls."""
    old = at.log_lik + state.log_prior()
    # A fall within the rounding of the sum is none.
    slack = (1e-6 if dtype is np.float32 else 1e-11) * (1 + abs(at.log_lik))
    t = min(1.0, 1.5 / _largest(step[1]), 2.0 / _largest(step[0]))
    for _ in range(30):
        moved = state.moved(step, t)
        new = cells_pass(k, n, moved, dtype, keep_e=keep_e, store=store)
        if new.log_lik + moved.log_prior() >= old - slack:
            break
        t /= 2
    return moved, new


def _location_scale(state: State, at: Pass) -> tuple[float, float]:
    """Mean and SD of θ; the SD counts what the modes leave out, or few models let it run away."""
    m = float(state.theta.mean())
    return m, float(np.sqrt(np.mean((state.theta - m) ** 2) + np.mean(1 / (at.info + 1))))


def _move_population(state: State, at: Pass, free: Mask) -> State:
    """Closed-form update of the population that meets the anchors.

    One pseudo-model from the anchors' own population, N(0, 1), counts with the others: the mean of
    a single model with every answer wrong would follow it without end.
    """
    if not free.any():
        return state
    h, theta = state.hyper, state.theta[free]
    count = len(theta) + 1
    mu = float(theta.sum()) / count
    left = 1 / (at.info[free] + h.sigma_theta**-2)
    var = (float(np.sum((theta - mu) ** 2 + left)) + mu**2 + 1.0) / count
    return replace(state, hyper=replace(h, mu_theta=mu, sigma_theta=float(np.sqrt(var))))


def _empirical_bayes(state: State, at: Pass) -> Hyper:
    """Update of the hyperparameters: moments of the modes plus what the items leave open."""
    h = state.hyper
    h11, h12, h22 = _blocks(state, at)
    left_a = 1 / (h11 - h12**2 / h22)
    left_d = 1 / (h22 - h12**2 / h11)

    def moments(x: Floats, left: Floats, sigma: float, prior: float) -> tuple[float, float]:
        mean = float(x.mean())
        total = float(np.sum((x - mean) ** 2 + np.minimum(left, sigma**2)))
        return mean, float(np.sqrt((total + _NU * prior**2) / (len(x) + _NU)))

    mu_a, sigma_a = moments(state.lam, left_a, h.sigma_a, 0.5)
    mu_d, sigma_d = moments(state.d, left_d, h.sigma_d, 2.0)
    return replace(
        h,
        mu_a=float(np.clip(mu_a, -2, 2)),
        sigma_a=float(np.clip(sigma_a, 0.1, 1)),
        mu_d=mu_d,
        sigma_d=float(np.clip(sigma_d, 0.3, 5)),
    )


def _blocks(state: State, at: Pass) -> tuple[Floats, Floats, Floats]:
    """Fisher information of each item's (λ, d) in its answers and priors."""
    h, a = state.hyper, state.a
    return a * a * at.w2 + h.sigma_a**-2, a * at.w1, at.w0 + h.sigma_d**-2


def _updated_link(state: State, at: Pass) -> State:
    """Estimate the line through the minutes anew, given the models."""
    link = state.link
    if link is None:
        return state
    a, h11, h12, h22 = (x[link.rows] for x in (state.a, *_blocks(state, at)))
    _, of_lam, of_d = gradient(replace(state, link=None), at)
    b, g1, g2 = -state.d[link.rows] / a, of_lam[link.rows], of_d[link.rows]
    det = h11 * h22 - h12**2
    var_b = (b * b * h22 - 2 * b / a * h12 + h11 / a**2) / det
    # What the answers alone say: b after a Newton step without the minutes. (Taking their pull off
    # instead multiplies by β² var_b/τ² whatever is left to the maximum.)
    alone = b - (b * (h22 * g1 - h12 * g2) + (h11 * g2 - h12 * g1) / a) / det
    return replace(state, link=link.updated(alone, var_b))


def _prior_gauge(state: State) -> tuple[float, float]:
    """Move along the gauge, where the likelihood is flat, to where the prior is highest.

    This is most of what polishing does, and costs no pass over the cells: m for a given s in closed
    form, ln s by Newton, in turns.
    """
    h, a, theta = state.hyper, state.a, state.theta
    m, u = 0.0, 0.0
    for _ in range(20):
        weight = np.exp(-2 * u)
        m = float(weight * theta.sum() - np.sum(a * (state.d - h.mu_d)) / h.sigma_d**2) / float(
            weight * len(theta) + np.sum(a * a) / h.sigma_d**2
        )
        squares = weight * float(np.sum((theta - m) ** 2))
        slope = squares - float(np.sum(state.lam + u - h.mu_a)) / h.sigma_a**2
        move = slope / (2 * squares + len(a) / h.sigma_a**2)
        u += move
        if abs(move) < 1e-10:
            break
    return m, float(np.exp(u))


def _polish(
    k: Array, n: Array, state: State, options: Options, iterations: int, settled: bool
) -> JointResult:
    """Newton steps of the observed form at frozen hyperparameters, to a gradient of zero."""
    free_items, free_theta = _free(options, k.shape)
    first = state
    if not options.anchored:
        state = state.standardised(*_prior_gauge(state))
    # The gradient is summed in float64; a large fit keeps its Hessian's cells in float32.
    store: Any = np.float64 if k.size < _FLOAT64_CELLS else np.float32
    at = cells_pass(k, n, state, np.float64, keep_e=True, store=store)
    decrement, done, steps = np.inf, False, 0
    system = arrow(state, at, free_items, free_theta)
    used = system
    while not done and steps < POLISH_CAP:
        g = _masked(gradient(state, at), free_items, free_theta)
        if options.start is None or decrement > _CHORD:
            used = system
        step = solve(used, g, store, options.direct_limit)
        if step is None:
            fisher = arrow(state, at, free_items, free_theta, pure_fisher=True)
            step = solve(fisher, g, store, options.direct_limit)
            if step is None:
                break
        steps += 1
        decrement = float(sum(x @ y for x, y in zip(g, step, strict=True)))
        state, at = _guarded(k, n, state, at, step, np.float64, keep_e=True, store=store)
        system = arrow(state, at, free_items, free_theta)
        done = decrement < 1e-10
    g = _masked(gradient(state, at), free_items, free_theta)
    return JointResult(
        state, first, at, system, settled and done, iterations, steps, decrement,
        max(_largest(x) for x in g), at.log_lik + state.log_prior(),
    )  # fmt: skip


def _masked(g: Step, free_items: Mask, free_theta: Mask) -> Step:
    return g[0] * free_theta, g[1] * free_items, g[2] * free_items
