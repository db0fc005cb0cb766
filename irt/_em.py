"""The EM algorithm of the two- and three-parameter models: item steps, priors, acceleration.

An EM step here has three parts: the posterior of every ability on quadrature nodes, two clipped
Newton steps of each item, and the free mean and scale of the population, which go back into the
items (parameter expansion: Liu, Rubin & Wu 1998). Without the third part the scale creeps with
many items: the answers then hold the abilities so firmly that the N(0, 1) population corrects their
mean by 1/(1 + information) a step only. It raises the likelihood and leaves its maximum alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from irt._cells import Cells, Floats

Information = Literal["expected", "observed", "larger"]

# λ and d stay in here: without priors some estimates run away, and infinities would follow.
LOWEST, HIGHEST = np.array([[-7.0], [-60.0]]), np.array([[5.0], [60.0]])


@dataclass(frozen=True)
class ItemPrior:
    """Normal priors of the item parameters: λ = ln a ~ N(mu_a, sigma_a²), d ~ N(mu_d, sigma_d²).

    Attributes
    ----------
    mu_a, sigma_a : float
        Mean and standard deviation of ln a.
    mu_d, sigma_d : float
        Mean and standard deviation of the intercept d.
    centred : bool
        Whether the two means are those of the items at hand (kept within ±2 and ±6), and mu_a and
        mu_d are ignored.
    """

    mu_a: float = 0.0
    sigma_a: float = 0.5
    mu_d: float = 0.0
    sigma_d: float = 3.0
    centred: bool = False

    def at(self, v: Floats) -> ItemPrior:
        """Return the prior whose means hold for v = (λ, d)."""
        if not self.centred:
            return self
        # Answers that are all alike would draw the items to infinity and the means behind them.
        mu_a, mu_d = np.clip(v.mean(axis=1), [-2, -6], [2, 6])
        return replace(self, mu_a=float(mu_a), mu_d=float(mu_d))

    def log_density(self, v: Floats) -> float:
        """Return the log prior density of v = (λ, d), up to a constant."""
        za = (v[0] - self.mu_a) / self.sigma_a
        zd = (v[1] - self.mu_d) / self.sigma_d
        return float(-0.5 * (za @ za + zd @ zd))


@dataclass(frozen=True)
class Posterior:
    """Abilities given the answers, on quadrature nodes.

    Attributes
    ----------
    x : array, shape (nodes,) or (models, nodes)
        The nodes.
    pi : array, shape (models, nodes)
        Posterior weights; a row sums to 1.
    log_lik : array, shape (models,)
        Log marginal likelihood of each column.
    mean, sd : array, shape (models,)
        Posterior mean (EAP) and standard deviation.
    """

    x: Floats
    pi: Floats
    log_lik: Floats
    mean: Floats
    sd: Floats


@dataclass(frozen=True)
class ItemSums:
    """Sums over models and nodes, one a item: of e, e·x, and of W, W·x, W·x²."""

    e: Floats
    ex: Floats
    w: Floats
    wx: Floats
    wxx: Floats


class Rule(Protocol):
    """A quadrature rule: where the nodes lie and how sums over them are made."""

    def posterior(self, a: Floats, d: Floats) -> Posterior:
        """Return the posterior of the abilities given the items."""

    def item_sums(self, post: Posterior) -> Callable[[Floats, Floats, Information], ItemSums]:
        """Return the function that gives an item's sums at (a, d) and a kind of W."""

    def scores_on(self, post: Posterior, values: Floats, a: Floats, d: Floats) -> Floats:
        """Return Σ_q π values (e·x, e), shape (items, 2, models); values: (models, nodes)."""

    def moved(self, mean: float, scale: float) -> None:
        """Follow the abilities to (θ − mean)/scale."""


def posterior_of(x: Floats, log_joint: Floats) -> Posterior:
    """Normalise log joint densities, shape (models, nodes), on nodes x."""
    top = log_joint.max(axis=1, keepdims=True)
    pi = np.exp(log_joint - top)
    total = pi.sum(axis=1, keepdims=True)
    pi /= total
    mean = (pi * x).sum(axis=1)
    sd = np.sqrt((pi * (x - mean[:, None]) ** 2).sum(axis=1))
    return Posterior(x, pi, (top + np.log(total))[:, 0], mean, sd)


def item_blocks(
    sums: ItemSums, v: Floats, prior: ItemPrior | None
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Return the gradient by (λ, d), shape (2, items), and h11, h12, h22 of the negative Hessian."""
    a = np.exp(v[0])
    gradient = np.stack([a * sums.ex, sums.e])
    h11, h12, h22 = a * a * sums.wxx, a * sums.wx, sums.w
    if prior is not None:
        gradient[0] -= (v[0] - prior.mu_a) / prior.sigma_a**2
        gradient[1] -= (v[1] - prior.mu_d) / prior.sigma_d**2
        h11, h22 = h11 + prior.sigma_a**-2, h22 + prior.sigma_d**-2
    return gradient, (h11, h12, h22)


def m_step(
    sums_at: Callable[[Floats, Floats, Information], ItemSums], v: Floats, prior: ItemPrior | None
) -> Floats:
    """Take two Newton steps of (λ, d), clipped at 1 and 2."""
    for _ in range(2):
        g, (h11, h12, h22) = item_blocks(sums_at(np.exp(v[0]), v[1], "larger"), v, prior)
        # An item that is certain at every node has no curvature left: the clip then sets the step.
        det = np.maximum(h11 * h22 - h12 * h12, 1e-300)
        step = np.stack([(h22 * g[0] - h12 * g[1]) / det, (h11 * g[1] - h12 * g[0]) / det])
        v = np.clip(v + np.clip(step, [[-1.0], [-2.0]], [[1.0], [2.0]]), LOWEST, HIGHEST)
    return v


def population(
    post: Posterior, counts: Floats, v: Floats, prior: ItemPrior | None
) -> tuple[float, float]:
    """Return the mean and the scale of the abilities that the expanded model fits best.

    With θ ~ N(m, s²) and the items' priors on what they become, λ + ln s and d + a m, the best m
    at a given s is a ratio and the best ln s at a given m the root of a falling function. Where the
    means of the priors follow the items, the abilities alone say: the prior would else move the
    population off N(0, 1) to make slopes and intercepts independent.
    """
    total = float(counts.sum())
    mean = float(counts @ post.mean) / total
    spread = float(counts @ (post.sd**2 + (post.mean - mean) ** 2)) / total
    if prior is None or prior.centred:
        return mean, float(np.clip(np.sqrt(spread), 0.5, 2.0))
    a = np.exp(v[0])
    off, firm = float((v[0] - prior.mu_a).sum()), v.shape[1] / prior.sigma_a**2
    pull = float(a @ (v[1] - prior.mu_d)) / prior.sigma_d**2
    stiff = float(a @ a) / prior.sigma_d**2
    m, log_s = mean, 0.0
    for _ in range(4):
        m = (total * mean * np.exp(-2 * log_s) - pull) / (total * np.exp(-2 * log_s) + stiff)
        square = total * (spread + (mean - m) ** 2) * np.exp(-2 * log_s)
        slope = square - total - off / prior.sigma_a**2 - firm * log_s
        log_s += np.clip(slope / (2 * square + firm), -0.5, 0.5)
    return float(m), float(np.exp(np.clip(log_s, -0.7, 0.7)))


def em_step(rule: Rule, cells: Cells, prior: ItemPrior | None, v: Floats) -> tuple[Floats, float]:
    """Take one EM step from v = (λ, d); also return the objective at v."""
    v = np.clip(v, LOWEST, HIGHEST)
    post = rule.posterior(np.exp(v[0]), v[1])
    objective = float(cells.counts @ post.log_lik)
    here = None if prior is None else prior.at(v)
    if here is not None:
        objective += here.log_density(v)
    after = m_step(rule.item_sums(post), v, here)
    mean, scale = population(post, cells.counts, after, prior)
    rule.moved(mean, scale)
    moved = np.stack([after[0] + np.log(scale), after[1] + np.exp(after[0]) * mean])
    return np.clip(moved, LOWEST, HIGHEST), objective


@dataclass(frozen=True)
class Run:
    """Where an accelerated fixed-point run ended."""

    v: Floats
    iterations: int
    converged: bool
    max_change: float


def squarem(
    step: Callable[[Floats], tuple[Floats, float]], v: Floats, tol: float, max_iter: int
) -> Run:
    """Run EM steps with an extrapolation after every two (SQUAREM: Varadhan & Roland 2008).

    With r = v1 − v0 and q = v2 − v1 − r the point v0 − 2αr + α²q, α = −clip(‖r‖/‖q‖, 1, 16), is
    kept unless the objective falls there.

    Parameters
    ----------
    step : callable
        Maps v to the next v and the objective at v.
    v : array
        Start.
    tol : float
        Stop when a step changes no entry by as much.
    max_iter : int
        Most steps.
    """
    fallback, floor, change, done = v, -np.inf, np.inf, 0
    while done < max_iter:
        v1, at_v = step(v)
        done += 1
        if at_v < floor - 1e-12 * abs(floor):
            v, floor = fallback, -np.inf
            continue
        change = float(np.abs(v1 - v).max())
        if change < tol:
            return Run(v1, done, converged=True, max_change=change)
        v2, at_v1 = step(v1)
        done += 1
        change = float(np.abs(v2 - v1).max())
        if change < tol:
            return Run(v2, done, converged=True, max_change=change)
        fallback, floor = v2, at_v1
        r = v1 - v
        q = v2 - v1 - r
        alpha = -np.clip(float(np.linalg.norm(r)) / max(float(np.linalg.norm(q)), 1e-300), 1, 16)
        v = v - 2 * alpha * r + alpha**2 * q
    return Run(fallback, done, converged=False, max_change=change)
