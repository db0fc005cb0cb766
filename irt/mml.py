"""Marginal maximum likelihood by quadrature EM: the engine for short tests and many models.

k_ij ~ Binomial(n_ij, p_ij), p = c + (1 − c) σ(aθ + d), θ ~ N(0, 1): abilities are integrated out
(Bock & Aitkin 1981), so items are not biased by few answers a model, as they are when abilities are
estimated beside them. The lower asymptote c is given (0, or 1/choices), never estimated.

Every figure is in the gauge θ ~ N(0, 1) of the population. To report mean 0 and SD 1 over the models
at hand use θ' = (θ − m)/s, a' = a s, d' = d + a m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from irt._cells import Cells, Floats, make_cells
from irt._em import HIGHEST, LOWEST, ItemPrior, Posterior, Rule, Run, em_step, item_blocks, squarem
from irt._louis import item_covariance
from irt._nodes import Adaptive, Grid, modes

__all__ = ["ItemPrior", "MmlResult", "mml"]

Nodes = Literal["auto", "grid", "adaptive"]

# The trapezoid rule on a normal density errs by about 2 exp(−2π² (SD/step)²): 1.4 % of the mass at
# half a step, and more than the whole mean soon after.
_FINEST = 0.5
_TOLERATED = 0.1  # share of models below that
_LOOK = 4  # EM steps on the grid before the posterior SDs are looked at
_TOO_FINE = (
    "the posterior SD of ability is below half a step of the fixed grid for {share:.0%} of the models "
    "(step {step:.2g}, median SD {sd:.2g}): abilities and their errors are wrong, use adaptive nodes"
)


@dataclass(frozen=True)
class MmlResult:
    """A fit by marginal maximum likelihood.

    Attributes
    ----------
    a, d, b : array, shape (items,)
        Slope, intercept and difficulty b = −d/a.
    se_a, se_d, se_b : array, shape (items,)
        Standard errors; b's by the delta method. NaN where not asked for or the information is not
        positive definite.
    cov : array, shape (items, 2, 2)
        Covariance of each item's (a, d).
    c : array, shape (items,)
        The lower asymptotes that were given.
    theta, sd : array, shape (models,)
        Posterior mean (EAP) and standard deviation of ability, the items taken as known.
    theta_map, se_map : array, shape (models,)
        Posterior mode (MAP) and its standard error from the expected information.
    log_lik : float
        Log marginal likelihood without binomial coefficients, priors left out.
    iterations : int
        EM steps.
    converged : bool
        Whether the last step changed nothing by more than the tolerance.
    max_change : float
        Largest change of a ln a or d in the last step.
    nodes : {"grid", "adaptive"}
        The quadrature used in the end.
    n_nodes : int
        Its number of nodes.
    prior : ItemPrior or None
        Item priors, with the values that were estimated where they were.
    notes : tuple of str
        What a reader of the result must know; empty when all is well.
    """

    a: Floats
    d: Floats
    b: Floats
    se_a: Floats
    se_d: Floats
    se_b: Floats
    cov: Floats
    c: Floats
    theta: Floats
    sd: Floats
    theta_map: Floats
    se_map: Floats
    log_lik: float
    iterations: int
    converged: bool
    max_change: float
    nodes: Literal["grid", "adaptive"]
    n_nodes: int
    prior: ItemPrior | None
    notes: tuple[str, ...]


def mml(
    k: ArrayLike,
    n: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    c: ArrayLike | None = None,
    prior: ItemPrior | Literal["empirical"] | None = None,
    nodes: Nodes = "auto",
    n_nodes: int | None = None,
    tol: float = 1e-4,
    max_iter: int = 500,
    se: bool = True,
) -> MmlResult:
    """Fit slopes and intercepts with abilities integrated out, then score the models.

    Parameters
    ----------
    k, n : array, shape (items, models)
        Right answers and answers; n = 0 where missing.
    counts : array, shape (models,), optional
        How many models have each column's answers (pattern counts).
    c : array, shape (items,) or a number, optional
        Lower asymptote of each item's curve, 1/choices for multiple choice; 0 without it.
    prior : ItemPrior, "empirical" or None
        Normal priors of ln a and d; "empirical" estimates their means and spreads too, and keeps
        the models at mean 0 and variance 1 whatever the priors would rather have.
    nodes : {"auto", "grid", "adaptive"}
        One grid for all models, or Gauss–Hermite nodes about each model's own mode. "auto" takes the
        grid unless the expected posterior SD of a tenth of the models is below half a grid step.
    n_nodes : int, optional
        Number of nodes: 61 on the grid, 7 adaptive ones.
    tol : float
        Stop when an EM step changes no ln a and no d by as much.
    max_iter : int
        Most EM steps for each kind of nodes.
    se : bool
        Whether to compute the items' standard errors.

    Returns
    -------
    MmlResult

    Raises
    ------
    ValueError
        When the answers are not as `irt._cells.make_cells` wants them, or an item was answered right
        by all or by none and there is no prior.

    Examples
    --------
    >>> patterns = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> k = np.array(patterns, dtype=float).T
    >>> fit = mml(k, np.ones_like(k), counts=[30, 20, 20, 30], prior=ItemPrior(), tol=1e-8)
    >>> bool(np.allclose(fit.d, 0, atol=1e-6)), fit.converged
    (True, True)
    """
    cells = make_cells(k, n, counts, c)
    if prior is None:
        _refuse_extreme(cells)
    given = ItemPrior(centred=True) if prior == "empirical" else prior
    search = _Search(cells, given, empirical=prior == "empirical", tol=tol, max_iter=max_iter)
    rule, run, post, notes = _settle(search, nodes, n_nodes)
    if not run.converged:
        notes += (
            f"not converged after {run.iterations} EM steps: last change {run.max_change:.1e}",
        )
    a, d = np.exp(run.v[0]), run.v[1]
    edge = ((run.v <= LOWEST) | (run.v >= HIGHEST)).any(axis=0)
    if edge.any():
        notes += (f"{edge.sum()} items ran to the edge of ln a or d: they have no finite estimate",)
    final = None if search.prior is None else search.prior.at(run.v)
    cov = np.full((len(a), 2, 2), np.nan)
    if se:
        cov = item_covariance(rule, cells, post, a, d, final)
        if np.isnan(cov).any():
            notes += ("the information matrix is not positive definite: no standard errors",)
    b = -d / a
    var_b = (b * b * cov[:, 0, 0] + 2 * b * cov[:, 0, 1] + cov[:, 1, 1]) / (a * a)
    theta_map, se_map = modes(cells, a, d, post.mean, close=1e-7 if cells.guessing else 1e-4)
    return MmlResult(
        a=a, d=d, b=b, cov=cov, c=cells.c,
        se_a=np.sqrt(cov[:, 0, 0]), se_d=np.sqrt(cov[:, 1, 1]), se_b=np.sqrt(var_b),
        theta=post.mean, sd=post.sd, theta_map=theta_map, se_map=se_map,
        log_lik=float(cells.counts @ post.log_lik),
        iterations=search.steps, converged=run.converged, max_change=run.max_change,
        nodes="grid" if isinstance(rule, Grid) else "adaptive", n_nodes=post.pi.shape[1],
        prior=final, notes=notes,
    )  # fmt: skip


class _Search:
    """One fit in progress: the answers, the priors as they stand, the steps taken."""

    def __init__(
        self, cells: Cells, prior: ItemPrior | None, empirical: bool, tol: float, max_iter: int
    ) -> None:
        self.cells = cells
        self.prior = prior
        self.empirical = empirical
        self.tol = tol
        self.max_iter = max_iter
        self.steps = 0

    def start(self) -> Floats:
        """Return (λ, d) from the items' rates, slopes 1."""
        cells = self.cells
        right, asked = cells.k @ cells.counts, cells.n @ cells.counts
        rate = (right + 0.5) / (asked + 1)
        rate = np.clip((rate - cells.c) / (1 - cells.c), 0.02, 1) if cells.guessing else rate
        rate = np.minimum(rate, 1 - 0.5 / (asked + 1))
        return np.stack([np.zeros(len(rate)), np.log(rate / (1 - rate))])

    def run(self, rule: Rule, v: Floats, max_iter: int) -> Run:
        """Run EM; with empirical priors, in rounds, until these have settled too."""
        for _ in range(20):
            prior = self.prior
            step = partial(em_step, rule, self.cells, prior)
            done = squarem(step, v, self.tol, max_iter)
            self.steps += done.iterations
            v = done.v
            if not self.empirical or prior is None or not done.converged:
                break
            self.prior = _empirical(rule, v, prior)
            before, now = (np.array([p.sigma_a, p.sigma_d]) for p in (prior, self.prior))
            if np.abs(now - before).max() < max(10 * self.tol, 1e-6):
                break
        return done


def _settle(
    search: _Search, nodes: Nodes, n_nodes: int | None
) -> tuple[Rule, Run, Posterior, tuple[str, ...]]:
    """Choose the nodes, run to the end on them and take the posterior there."""
    grid = Grid(search.cells, n_nodes if nodes == "grid" and n_nodes else 61)
    # Adaptive nodes start from a few steps on the grid, which finds the rough abilities at once.
    first = search.max_iter if nodes == "grid" else min(_LOOK, search.max_iter)
    run = search.run(grid, search.start(), first)
    post, share, sd = _look(grid, search.cells, run.v)
    if nodes == "auto" and share <= _TOLERATED and not run.converged:
        run = search.run(grid, run.v, search.max_iter)
        post, share, sd = _look(grid, search.cells, run.v)
    if nodes == "grid" or (nodes == "auto" and share <= _TOLERATED):
        note = _TOO_FINE.format(share=share, step=grid.step, sd=sd)
        return grid, run, post, (note,) if share > _TOLERATED else ()
    rule = Adaptive(search.cells, post.mean, n_nodes or 7)
    run = search.run(rule, run.v, search.max_iter)
    return rule, run, rule.posterior(np.exp(run.v[0]), run.v[1]), ()


def _look(grid: Grid, cells: Cells, v: Floats) -> tuple[Posterior, float, float]:
    """Return the posterior, the share of models with an SD below half a step, the median SD."""
    a, d = np.exp(v[0]), v[1]
    post = grid.posterior(a, d)
    sd = grid.expected_sd(post, a, d)
    fine = float(cells.counts @ (sd < _FINEST * grid.step) / cells.counts.sum())
    return post, fine, float(np.median(sd))


def _empirical(rule: Rule, v: Floats, prior: ItemPrior) -> ItemPrior:
    """Re-estimate the spreads of the priors from the items and the curvature at them."""
    here = prior.at(v)
    a, d = np.exp(v[0]), v[1]
    sums = rule.item_sums(rule.posterior(a, d))(a, d, "expected")
    _, (h11, h12, h22) = item_blocks(sums, v, here)
    sigma_a = _spread(v[0] - here.mu_a, h11 - h12**2 / h22, here.sigma_a, 0.5)
    sigma_d = _spread(d - here.mu_d, h22 - h12**2 / h11, here.sigma_d, 2.0)
    return replace(
        prior, sigma_a=float(np.clip(sigma_a, 0.1, 1)), sigma_d=float(np.clip(sigma_d, 0.3, 5))
    )


def _spread(off: Floats, precision: Floats, sigma: float, guess: float) -> float:
    """Return the SD σ of normal effects that were shrunk towards 0 with the given one.

    The fixed point of σ² = [Σ(off² + 1/precision) + ν guess²]/(I + ν), ν = 4, with the estimates
    and their precisions following σ: solved here, where a round costs nothing, not by further EM
    runs. Without ν few items would shrink the spread to nothing.
    """
    data = np.maximum(precision - sigma**-2, 1e-6)
    unshrunk = off * (data + sigma**-2) / data
    for _ in range(200):
        total = data + sigma**-2
        square = ((unshrunk * data / total) ** 2 + 1 / total).sum() + 4 * guess**2
        sigma = float(np.sqrt(square / (len(off) + 4)))
    return sigma


def _refuse_extreme(cells: Cells) -> None:
    right, asked = cells.k @ cells.counts, cells.n @ cells.counts
    for bad, whom in ((right == 0, "nobody"), (right == asked, "everybody")):
        if bad.any():
            raise ValueError(
                f"item {np.flatnonzero(bad)[0]} was answered right by {whom}: without item priors "
                "its difficulty has no finite estimate; give a prior or leave it out"
            )
