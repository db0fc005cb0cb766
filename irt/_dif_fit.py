"""Refits of items for two groups of models with known abilities, all items at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from irt._cells import sigmoid, softplus
from irt.data import Floats

_CAP = 60
_CHUNK = 1 << 17


@dataclass(frozen=True)
class GroupFit:
    """The same items under three models; x = (λ, d, γ, δ), z = exp(λ + δ g) θ + d + γ g.

    Parameters
    ----------
    x : array, shape (I, 4)
        Estimates with free parameters λ, d and γ, and δ from the largest model.
    gamma_se, delta_se : arrays, shape (I,)
    cov : array, shape (I, 3, 3)
        Covariance of (λ, d, γ).
    lr, lr_slope : arrays, shape (I,)
        Twice the gain in log-likelihood by γ, and by δ after it.
    converged : bool
    """

    x: Floats
    gamma_se: Floats
    delta_se: Floats
    cov: Floats
    lr: Floats
    lr_slope: Floats
    converged: bool


def fit_item_groups(
    k: Floats, n: Floats, theta: Floats, focal: Floats, prior: tuple[float, float]
) -> GroupFit:
    """Fit every item with common parameters, with an intercept a group, and with a slope a group.

    Parameters
    ----------
    k, n : arrays, shape (I, P)
    theta : array, shape (P,)
    focal : array, shape (P,)
        1 in the focal group, 0 in the reference group.
    prior : tuple of float
        Mean and SD of λ = log a, in all three models; it keeps slopes finite.

    Returns
    -------
    GroupFit
    """
    parts = [_fit(k[rows], n[rows], theta, focal, prior) for rows in _rows(*k.shape)]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts])

    names = ("x", "gamma_se", "delta_se", "cov", "lr", "lr_slope")
    return GroupFit(
        **{name: joined(name) for name in names}, converged=all(p.converged for p in parts)
    )


def _rows(size: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK // width)
    for start in range(0, size, step):
        yield slice(start, start + step)


def _fit(
    k: Floats, n: Floats, theta: Floats, focal: Floats, prior: tuple[float, float]
) -> GroupFit:
    rate = (k.sum(axis=1) + 0.5) / (n.sum(axis=1) + 1)
    x = np.zeros((len(k), 4))
    x[:, 0], x[:, 1] = prior[0], np.log(rate / (1 - rate))
    heights: list[Floats] = []
    cov: Floats = np.empty((0, 3, 3))
    good, with_gamma = True, x
    for free in (2, 3, 4):
        x, height, information, settled = _scoring(k, n, theta, focal, prior, x, free)
        heights.append(height)
        if free == 3:
            with_gamma, cov = x, np.asarray(np.linalg.inv(information), dtype=np.float64)
        good = good and settled
    # Where one group's slope runs off there is no information on it left: its error is infinite.
    with np.errstate(divide="ignore", invalid="ignore"):
        block = information[:, :3, :3]
        cross = information[:, :3, 3]
        left = information[:, 3, 3] - np.einsum(
            "ia,ia->i", cross, np.linalg.solve(block, cross[:, :, None])[:, :, 0]
        )
        delta_se = np.where(left > 1e-10, 1 / np.sqrt(np.maximum(left, 1e-300)), np.inf)
    found = np.column_stack([with_gamma[:, :3], x[:, 3]])
    return GroupFit(
        found, np.sqrt(cov[:, 2, 2]), delta_se, cov,
        np.maximum(2 * (heights[1] - heights[0]), 0.0),
        np.maximum(2 * (heights[2] - heights[1]), 0.0), good,
    )  # fmt: skip


def _height(
    k: Floats, n: Floats, theta: Floats, focal: Floats, prior: tuple[float, float], x: Floats
) -> tuple[Floats, Floats]:
    """Log posterior of each item, and its logits."""
    z = np.exp(x[:, :1] + x[:, 3:] * focal) * theta + x[:, 1:2] + x[:, 2:3] * focal
    height = (k * z - n * softplus(z)).sum(axis=1)
    return height - 0.5 * ((x[:, 0] - prior[0]) / prior[1]) ** 2, z


def _derivatives(
    e: Floats, w: Floats, theta: Floats, focal: Floats, x: Floats, free: int
) -> tuple[Floats, Floats]:
    """Gradient and Fisher information of the likelihood, from sums over each group."""
    sides = np.stack([1 - focal, focal], axis=1)
    e0, e1 = e @ sides, e @ (theta[:, None] * sides)
    w0, w1, w2 = (w @ (theta[:, None] ** power * sides) for power in range(3))
    a = np.exp(x[:, :1] + x[:, 3:] * np.array([0.0, 1.0]))
    e1, w1, w2 = a * e1, a * w1, a * a * w2
    g = np.stack([e1.sum(axis=1), e0.sum(axis=1), e0[:, 1], e1[:, 1]], axis=1)
    both = [y.sum(axis=1) for y in (w0, w1, w2)]
    f0, f1, f2 = w0[:, 1], w1[:, 1], w2[:, 1]
    rows = [
        [both[2], both[1], f1, f2],
        [both[1], both[0], f0, f1],
        [f1, f0, f0, f1],
        [f2, f1, f1, f2],
    ]
    information = np.moveaxis(np.array(rows), 2, 0)
    return g[:, :free], information[:, :free, :free].copy()


def _scoring(
    k: Floats, n: Floats, theta: Floats, focal: Floats, prior: tuple[float, float],
    x: Floats, free: int,
) -> tuple[Floats, Floats, Floats, bool]:  # fmt: skip
    """Fisher scoring in the first `free` parameters, with every item's step halved by itself."""
    height, z = _height(k, n, theta, focal, prior, x)
    for turn in range(_CAP):
        p = sigmoid(z)
        e, w = k - n * p, n * p * (1 - p)
        g, information = _derivatives(e, w, theta, focal, x, free)
        g[:, 0] -= (x[:, 0] - prior[0]) / prior[1] ** 2
        information[:, 0, 0] += prior[1] ** -2
        # A ridge of no weight: a group's slope that ran off leaves a row of zeros.
        information[:, range(free), range(free)] += 1e-9
        step = np.linalg.solve(information, g[:, :, None])[:, :, 0]
        if turn == _CAP - 1 or bool((np.einsum("iq,iq->i", g, step) < 1e-10).all()):
            break
        step *= np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        scale = np.ones(len(x))
        for _ in range(25):
            new = x.copy()
            new[:, :free] += scale[:, None] * step
            higher, z = _height(k, n, theta, focal, prior, new)
            worse = higher < height - 1e-11 * (1 + np.abs(height))
            if not worse.any():
                break
            scale[worse] /= 2
        x, height = new, higher
    return x, height, information, turn < _CAP - 1
