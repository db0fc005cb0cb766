"""Covariance of the graded model's item parameters, from the observed information (Louis 1982)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from irt._cells import Floats, sigmoid
from irt._em import Posterior

_BLOCK = 1 << 21  # numbers of (parameters, models, nodes) at once


def graded_levels(v: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Give the probability of each level, its slopes, and the steps that both are made of.

    Parameters
    ----------
    v : array, shape (levels, items)
        ln a, then the intercepts d_1 > d_2 > …
    x : array, shape (nodes,)
        Abilities.

    Returns
    -------
    level : array, shape (items, levels, nodes)
        At least 1e-300.
    by : array, shape (items, parameters, levels, nodes)
        ∂ level by ln a and by each d.
    above : array, shape (items, levels − 1, nodes)
        F_m = σ(aθ + d_m).
    """
    above = sigmoid(np.exp(v[0])[:, None, None] * x + v[1:].T[:, :, None])
    slope = above * (1 - above)
    padded = np.pad(above, ((0, 0), (1, 1), (0, 0)))
    padded[:, 0] = 1
    level = np.maximum(padded[:, :-1] - padded[:, 1:], 1e-300)
    n_items, n_levels, n_nodes = level.shape
    # ∂P_m: step m raises level m and lowers level m − 1.
    by = np.zeros((n_items, n_levels, n_levels, n_nodes))
    for m in range(1, n_levels):
        by[:, m, m], by[:, m, m - 1] = slope[:, m - 1], -slope[:, m - 1]
    by[:, 0] = by[:, 1:].sum(axis=1) * (np.exp(v[0])[:, None, None] * x)
    return level, by, above


def graded_covariance(
    v: Floats, post: Posterior, scores: NDArray[np.int64], weight: Floats
) -> Floats:
    """Give each item's covariance of (ln a, d_1, …), all items' information inverted together.

    J = Σ_j {E[B_j] − Cov(s_j)}, mean and covariance over the posterior of θ_j: s_j the stacked scores
    of the complete data, B_j its block-diagonal curvature.

    Parameters
    ----------
    v : array, shape (levels, items)
    post : Posterior
        The abilities at v, on nodes common to all models.
    scores : array of int, shape (items, models)
        −1 where missing.
    weight : array, shape (models,)

    Returns
    -------
    array, shape (items, levels, levels)
        NaN throughout when J is not positive definite.
    """
    x, pi = post.x, post.pi * weight[:, None]
    level, by, above = graded_levels(v, x)
    n_items, n_levels, n_nodes = level.shape
    hot = (scores[:, None, :] == np.arange(n_levels)[:, None]).astype(np.float64)
    expected = np.einsum("imj,jq->imq", hot, pi, optimize=True)
    size = n_items * n_levels
    at = (np.arange(n_items) * n_levels)[:, None] + np.arange(n_levels)
    information = np.zeros((size, size))
    information[at[:, :, None], at[:, None, :]] = _curvature(v, x, level, by, above, expected)
    # Level −1, a missing score, says nothing: the last entry is 0.
    score = np.pad(by / level[:, None], ((0, 0), (0, 0), (0, 1), (0, 0)))
    step = max(1, _BLOCK // (size * n_nodes))
    for start in range(0, scores.shape[1], step):
        part = slice(start, start + step)
        rows = np.arange(n_items)[:, None]
        s = score.transpose(0, 2, 1, 3)[rows, scores[:, part]]  # (items, models, parameters, nodes)
        s = s.transpose(0, 2, 1, 3).reshape(size, -1, n_nodes)
        s = s - np.einsum("rjq,jq->rj", s, post.pi[part])[:, :, None]
        s = (s * np.sqrt(pi[part])).reshape(size, -1)
        information -= s @ s.T
    try:
        root = np.linalg.inv(np.linalg.cholesky(information))
    except np.linalg.LinAlgError:
        return np.full((n_items, n_levels, n_levels), np.nan)
    cov = root.T @ root
    return np.asarray(cov[at[:, :, None], at[:, None, :]])


def _curvature(
    v: Floats, x: Floats, level: Floats, by: Floats, above: Floats, expected: Floats
) -> Floats:
    """Expected −∂² Σ ln P of every item, shape (items, parameters, parameters)."""
    z = np.exp(v[0])[:, None, None] * x
    slope = above * (1 - above)
    bend = slope * (1 - 2 * above)
    ratio = expected / level
    gain = ratio[:, 1:] - ratio[:, :-1]  # what a rise of each step does to Σ ln P
    block = np.einsum("imq,irmq,ismq->irs", ratio / level, by, by, optimize=True)
    block[:, 0, 0] -= (gain * (slope * z + bend * z * z)).sum(axis=(1, 2))
    mixed, own = (gain * bend * z).sum(axis=2), (gain * bend).sum(axis=2)
    steps = np.arange(1, block.shape[1])
    block[:, 0, 1:] -= mixed
    block[:, 1:, 0] -= mixed
    block[:, steps, steps] -= own
    return np.asarray(block)
