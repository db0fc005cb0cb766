"""Covariance of the item parameters after marginal maximum likelihood (Louis 1982)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from irt._cells import Cells, Floats
from irt._em import ItemPrior, Posterior, Rule


def item_covariance(
    rule: Rule,
    cells: Cells,
    post: Posterior,
    a: Floats,
    d: Floats,
    prior: ItemPrior | None,
    degree: int = 16,
) -> Floats:
    """Return each item's covariance of (a, d), from the observed information of all items together.

    The information is J = Σ_j {E[B] − Cov(s_j)}, mean and covariance over the posterior of θ_j, with
    s_j the stacked scores of the complete data and B the block-diagonal complete information. The
    covariance is written as a sum of squares on polynomials orthonormal under that posterior
    (Parseval), which stops at a low degree since a score is a smooth function of θ: J is a block
    diagonal less V Vᵀ with few columns a model, and is inverted on its smaller side.

    Parameters
    ----------
    rule : Rule
        The nodes.
    cells : Cells
        The answers.
    post : Posterior
        The abilities at (a, d).
    a, d : array, shape (items,)
        Slopes and intercepts at the maximum.
    prior : ItemPrior, optional
        Item priors of the fit.
    degree : int
        Highest degree of the polynomials; the sum stops before it where a degree adds less than
        1e-10 of every entry of B's diagonal.

    Returns
    -------
    array, shape (items, 2, 2)
        NaN throughout when J is not positive definite.
    """
    sums = rule.item_sums(post)(a, d, "observed")
    block = np.stack([sums.wxx, sums.wx, sums.wx, sums.w], axis=1).reshape(-1, 2, 2)
    if prior is not None:
        block[:, 0, 0] += (1 - (np.log(a) - prior.mu_a)) / (prior.sigma_a * a) ** 2
        block[:, 1, 1] += prior.sigma_d**-2
    columns = _columns(rule, cells, post, a, d, block, degree)
    try:
        np.linalg.cholesky(block)
        if 2 * len(a) <= degree * len(cells.counts):
            return _dense_blocks(block, columns)
        return _woodbury_blocks(block, np.concatenate(list(columns), axis=1))
    except np.linalg.LinAlgError:
        return np.full_like(block, np.nan)


def _columns(
    rule: Rule, cells: Cells, post: Posterior, a: Floats, d: Floats, block: Floats, degree: int
) -> Iterator[Floats]:
    """Yield V by degree, shape (2 items, models), until no degree adds anything."""
    diagonal = np.stack([block[:, 0, 0], block[:, 1, 1]], axis=1).ravel()
    weight = np.sqrt(cells.counts)
    for values in _orthonormal(post, degree):
        v = (rule.scores_on(post, values, a, d) * weight).reshape(2 * len(a), -1)
        yield v
        if (np.einsum("im,im->i", v, v) < 1e-10 * diagonal).all():
            return


def _dense_blocks(block: Floats, columns: Iterator[Floats]) -> Floats:
    """Return the diagonal 2×2 blocks of (blockdiag − Σ v vᵀ)⁻¹: more models than items."""
    n_items = len(block)
    full = np.zeros((2 * n_items, 2 * n_items))
    for v in columns:
        full -= v @ v.T
    at = 2 * np.arange(n_items)[:, None, None] + np.arange(2)
    full[at.swapaxes(1, 2), at] += block
    root = np.linalg.inv(np.linalg.cholesky(full))
    # The inverse is rootᵀ root; only its blocks on the diagonal are wanted.
    halves = root.reshape(len(root), n_items, 2)
    return np.asarray(np.einsum("rip,riq->ipq", halves, halves))


def _woodbury_blocks(block: Floats, v: Floats) -> Floats:
    """Return the diagonal 2×2 blocks of (blockdiag − v vᵀ)⁻¹: many items, few models."""
    inverse = np.linalg.inv(block)
    scaled = np.einsum("ipq,iqm->ipm", inverse, v.reshape(len(block), 2, -1))
    small = np.eye(v.shape[1]) - v.T @ scaled.reshape(v.shape)
    half = scaled @ np.linalg.inv(np.linalg.cholesky(small)).T
    return np.asarray(inverse + np.einsum("ipm,iqm->ipq", half, half))


def _orthonormal(post: Posterior, degree: int) -> Iterator[Floats]:
    """Yield polynomials of degree 1 … orthonormal under each posterior, (models, nodes) each.

    By the three-term recurrence (Stieltjes): two polynomials in memory, whatever the degree.
    """
    # A posterior on a single node has no spread and no score that varies.
    t = (post.x - post.mean[:, None]) / np.maximum(post.sd, 1e-12)[:, None]
    before, now, norm = np.zeros_like(post.pi), np.ones_like(post.pi), np.zeros((len(t), 1))
    for _ in range(min(degree, post.pi.shape[1] - 1)):
        new = t * now
        new -= (post.pi * new * now).sum(axis=1, keepdims=True) * now + norm * before
        norm = np.sqrt((post.pi * new * new).sum(axis=1, keepdims=True))
        before, now = now, np.where(norm > 1e-9, new / np.maximum(norm, 1e-9), 0.0)
        yield now
