"""The graded response model for ordered scores (Samejima 1969), by quadrature EM.

P(score ≥ m) = σ(a θ + d_m), d_1 > d_2 > …; thresholds b_m = −d_m/a rise. θ ~ N(0, 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from irt._cells import Floats
from irt._em import Posterior, population, posterior_of, squarem
from irt._graded_louis import graded_covariance, graded_levels
from irt._nodes import normal_grid


@dataclass(frozen=True)
class GrmResult:
    """A fit of the graded response model.

    Attributes
    ----------
    a : array, shape (items,)
        Slopes.
    d, b : array, shape (items, levels − 1)
        Intercepts, falling, and thresholds b = −d/a, rising.
    se_log_a : array, shape (items,)
        Standard errors of ln a; NaN, as all errors, where not asked for or the information is not
        positive definite.
    se_d, se_b : array, shape (items, levels − 1)
        Standard errors; b's by the delta method.
    cov : array, shape (items, levels, levels)
        Covariance of each item's (ln a, d_1, …).
    theta, sd : array, shape (models,)
        Posterior mean and standard deviation of ability.
    log_lik : float
        Log marginal likelihood.
    iterations : int
        EM steps.
    converged : bool
        Whether the last step changed nothing by more than the tolerance.
    max_change : float
        Largest change of a ln a or d in the last step.
    """

    a: Floats
    d: Floats
    b: Floats
    se_log_a: Floats
    se_d: Floats
    se_b: Floats
    cov: Floats
    theta: Floats
    sd: Floats
    log_lik: float
    iterations: int
    converged: bool
    max_change: float


def grm(
    responses: ArrayLike,
    n_levels: int,
    *,
    counts: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 500,
    n_nodes: int = 61,
    se: bool = True,
) -> GrmResult:
    """Fit slopes and ordered thresholds to scores 0 … n_levels − 1.

    Parameters
    ----------
    responses : array of int, shape (items, models)
        Scores; −1 where missing.
    n_levels : int
        Number of levels, the same for all items.
    counts : array, shape (models,), optional
        Multiplicities of the columns.
    tol : float
        Stop when an EM step changes no ln a and no d by as much.
    max_iter : int
        Most EM steps.
    n_nodes : int
        Nodes on [−6, 6].
    se : bool
        Whether to compute the items' standard errors.

    Returns
    -------
    GrmResult

    Raises
    ------
    ValueError
        When a score is not a whole number from −1 to n_levels − 1, or a level of an item was never
        given (its threshold is then not finite).
    """
    y, weight = _check(responses, n_levels, counts)
    x, log_w = normal_grid(n_nodes)
    n_items, n_models = y.shape
    hot = (y[:, None, :] == np.arange(n_levels)[:, None]).astype(np.float64)
    flat = hot.reshape(n_items * n_levels, n_models)
    share = (hot @ weight + 0.5) / ((hot.sum(axis=1) @ weight)[:, None] + 0.5 * n_levels)
    above = 1 - np.cumsum(share, axis=1)[:, :-1]
    start = np.column_stack([np.zeros(n_items), np.log(above / (1 - above))]).T

    def posterior(v: Floats) -> Posterior:
        level = graded_levels(v, x)[0].reshape(len(flat), -1)
        return posterior_of(x, flat.T @ np.log(level) + log_w)

    def step(v: Floats) -> tuple[Floats, float]:
        if (np.diff(v[1:], axis=0) >= 0).any():
            return v, -np.inf  # an extrapolation that broke the order
        post = posterior(v)
        expected = (flat @ (post.pi * weight[:, None])).reshape(n_items, n_levels, -1)
        after = v
        for _ in range(2):
            after = _newton(after, x, expected)
        mean, scale = population(post, weight, after, None)
        moved = np.vstack([after[:1] + np.log(scale), after[1:] + np.exp(after[0]) * mean])
        return moved, float(weight @ post.log_lik)

    run = squarem(step, start, tol, max_iter)
    post = posterior(run.v)
    a, d = np.exp(run.v[0]), run.v[1:].T
    cov = np.full((n_items, n_levels, n_levels), np.nan)
    if se:
        cov = graded_covariance(run.v, post, y, weight)
    b = -d / a[:, None]
    own = np.einsum("irr->ir", cov)
    var_b = own[:, 1:] / a[:, None] ** 2 + b**2 * own[:, :1] + 2 * b / a[:, None] * cov[:, 0, 1:]
    return GrmResult(
        a, d, b, np.sqrt(own[:, 0]), np.sqrt(own[:, 1:]), np.sqrt(var_b), cov, post.mean, post.sd, float(weight @ post.log_lik),
        run.iterations, run.converged, run.max_change,
    )  # fmt: skip


def _check(
    responses: ArrayLike, n_levels: int, counts: ArrayLike | None
) -> tuple[NDArray[np.int64], Floats]:
    raw = np.asarray(responses, dtype=np.float64)
    if raw.ndim != 2 or n_levels < 2:
        raise ValueError(
            f"scores of shape {raw.shape} with {n_levels} levels: they must be (items, models), 2 or more"
        )
    bad = ~np.isin(raw, np.arange(-1, n_levels))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(
            f"item {i}, model {j}: score {raw[i, j]} is not a whole number from 0 to {n_levels - 1}, "
            "nor −1 for missing"
        )
    for level in range(n_levels):
        never = np.flatnonzero(~(raw == level).any(axis=1))
        if never.size:
            raise ValueError(f"item {never[0]}: score {level} was never given; merge its levels")
    weight = np.ones(raw.shape[1]) if counts is None else np.asarray(counts, dtype=np.float64)
    if weight.shape != raw.shape[1:] or not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError(f"counts must be {raw.shape[1]} positive numbers")
    return raw.astype(np.int64), weight


def _newton(v: Floats, x: Floats, expected: Floats) -> Floats:
    """Take one Fisher-scoring step of every item's (λ, d_1 …), clipped, and halved to keep order."""
    level, by, _ = graded_levels(v, x)
    n_levels = level.shape[1]
    gradient = np.einsum("imq,irmq->ir", expected / level, by)
    total = expected.sum(axis=1)
    weighted = by * (total[:, None] / level)[:, None]
    hessian = np.einsum("irmq,ismq->irs", weighted, by)
    step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0].T
    limit = np.full((n_levels, 1), 2.0)
    limit[0] = 1
    step = np.clip(step, -limit, limit)
    for _ in range(30):
        broken = (np.diff((v + step)[1:], axis=0) >= 0).any(axis=0)
        if not broken.any():
            break
        step[:, broken] /= 2
    return np.asarray(v + step)
