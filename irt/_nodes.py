"""The two quadrature rules: one fixed grid for all, or a few nodes about each model's own ability."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from irt._cells import Cells, Floats, sigmoid, softplus
from irt._em import Information, ItemSums, Posterior, posterior_of

# Numbers of one block of (items, models, nodes): about what stays in a core's own cache.
_BLOCK = 1 << 15


def score_and_weight(
    k: Floats, n: Floats, z: Floats, c: Floats | None, kind: Information = "expected"
) -> tuple[Floats, Floats]:
    """Return the score by z and the information of z of cells with k of n right.

    With σ = σ(z), p = c + (1 − c)σ and u = σ/p the score is (k − np)u and the expected (Fisher)
    information n u² p(1 − p); the observed one is less by (k − np) c σ(1 − σ)/p². At c = 0 they
    are k − np and np(1 − p). "larger" takes the larger of the two: a step with it does not overshoot
    where fewer are right than guessing gives.
    """
    s = sigmoid(z)
    if c is None:
        np_ = n * s
        return k - np_, np_ * (1 - s)
    p = c + (1 - c) * s
    # Where σ underflows to 0 at c = 0 the ratio is still 1.
    u = np.divide(s, p, out=np.ones_like(s), where=p > 0)
    np_ = n * p
    e, w = (k - np_) * u, np_ * (1 - p) * u * u
    if kind != "expected":
        less = np.divide((k - np_) * c * s * (1 - s), p * p, out=np.zeros_like(s), where=c > 0)
        w = w - (less if kind == "observed" else np.minimum(less, 0))
    return e, w


def log_terms(z: Floats, c: Floats | None) -> tuple[Floats, Floats]:
    """Return g and h with k ln p + (n − k) ln(1 − p) = k g + n h.

    p = (c + e^z)/(1 + e^z), so g = ln(c + e^z) − ln(1 − c), h = ln(1 − c) − ln(1 + e^z).
    """
    if c is None:
        return z, -softplus(z)
    with np.errstate(divide="ignore"):
        g = np.logaddexp(np.log(c), z) - np.log1p(-c)
    return g, np.log1p(-c) - softplus(z)


def log_likelihood(k: Floats, n: Floats, z: Floats, c: Floats | None = None) -> float:
    """Σ k ln p + (n − k) ln(1 − p) with p = c + (1 − c) σ(z), cells of any shape."""
    g, h = log_terms(z, c)
    return float(np.sum(np.multiply(k, g, out=np.zeros_like(z), where=k > 0) + n * h))


class Grid:
    """Equal steps on [−6, 6] with normal weights, the same for every model.

    Parameters
    ----------
    cells : Cells
        The answers.
    n_nodes : int
        Number of nodes.
    """

    def __init__(self, cells: Cells, n_nodes: int = 61) -> None:
        self.cells = cells
        self.x, self.log_w = normal_grid(n_nodes)
        self.step = float(self.x[1] - self.x[0])
        self._c = cells.c[:, None] if cells.guessing else None

    def _z(self, a: Floats, d: Floats) -> Floats:
        return np.multiply.outer(a, self.x) + d[:, None]

    def posterior(self, a: Floats, d: Floats) -> Posterior:
        """Return the posterior of the abilities given the items: two matrix products."""
        g, h = log_terms(self._z(a, d), self._c)
        common = self.cells.common_n
        asked = self.cells.n.T @ h if common is None else common @ h
        return posterior_of(self.x, self.cells.k.T @ g + (asked + self.log_w))

    def item_sums(self, post: Posterior) -> Callable[[Floats, Floats, Information], ItemSums]:
        """Return the function that gives an item's sums at (a, d): two matrix products, once."""
        pi, common = post.pi * self.cells.counts[:, None], self.cells.common_n
        right = self.cells.k @ pi
        asked = self.cells.n @ pi if common is None else np.outer(common, pi.sum(axis=0))
        powers = np.stack([np.ones_like(self.x), self.x, self.x**2], axis=1)

        def at(a: Floats, d: Floats, kind: Information) -> ItemSums:
            e, w = score_and_weight(right, asked, self._z(a, d), self._c, kind)
            return ItemSums(*(e @ powers[:, :2]).T, *(w @ powers).T)

        return at

    def scores_on(self, post: Posterior, values: Floats, a: Floats, d: Floats) -> Floats:
        """Return Σ_q π values (e·x, e), shape (items, 2, models); values: (models, nodes)."""
        s = sigmoid(self._z(a, d))
        u = np.ones_like(s)
        if self._c is not None:
            p = self._c + (1 - self._c) * s
            u = np.divide(s, p, out=u, where=p > 0)
        flat = post.pi * values
        out = np.empty((len(a), 2, len(flat)))
        for row, weight in enumerate((flat * self.x, flat)):
            right = u @ weight.T if self._c is not None else weight.sum(axis=1)
            out[:, row] = self.cells.k * right - self.cells.n * (s @ weight.T)
        return out

    def expected_sd(self, post: Posterior, a: Floats, d: Floats) -> Floats:
        """Return 1/√(1 + information) of each model, the information averaged over its posterior.

        On a grid too coarse for it the posterior's own SD is that of one or two nodes and says
        nothing; the information does.
        """
        _, w = score_and_weight(np.zeros(1), np.ones(1), self._z(a, d), self._c)
        w *= (a * a)[:, None]
        common = self.cells.common_n
        if common is not None:
            return np.asarray(1 / np.sqrt(1 + post.pi @ (common @ w)))
        return np.asarray(1 / np.sqrt(1 + (post.pi * (self.cells.n.T @ w)).sum(axis=1)))

    def moved(self, mean: float, scale: float) -> None:
        """Stay: the grid does not follow the abilities."""


class Adaptive:
    """Gauss–Hermite nodes about the mode of each model's posterior, placed anew at every call.

    Nodes θ̂_j + √2 sd_j t_q with weights ω_q e^{t_q²} √2 sd_j L_j φ (Naylor & Smith 1982; Liu &
    Pierce 1994), sd_j = 1/√(1 + information at θ̂_j).

    Parameters
    ----------
    cells : Cells
        The answers.
    theta : array, shape (models,)
        Where to look for the modes first.
    n_nodes : int
        Number of nodes of a model.
    """

    def __init__(self, cells: Cells, theta: Floats, n_nodes: int = 7) -> None:
        self.cells = cells
        self.theta = theta
        self._c = cells.c[:, None, None] if cells.guessing else None
        self._t, omega = np.polynomial.hermite.hermgauss(n_nodes)
        self._log_omega = np.log(omega) + self._t**2

    def posterior(self, a: Floats, d: Floats) -> Posterior:
        """Return the posterior of the abilities given the items, on nodes about its modes."""
        cells = self.cells
        self.theta, sd = modes(cells, a, d, self.theta, close=0.05)
        x = self.theta[:, None] + np.sqrt(2) * sd[:, None] * self._t
        # k z is linear in x: only what is not needs the nodes one by one.
        log_joint = np.zeros_like(x)
        if self._c is None:
            log_joint += (a @ cells.k)[:, None] * x + (d @ cells.k)[:, None]
        for rows, z in self._blocks(a, d, x):
            c = None if self._c is None else self._c[rows]
            g, h = log_terms(z, c)
            log_joint += np.einsum("ij,ijq->jq", cells.n[rows], h)
            if c is not None:
                log_joint += np.einsum("ij,ijq->jq", cells.k[rows], g)
        # √2 sd · φ(x): the Jacobian of the nodes and the population, N(0, 1).
        log_joint += self._log_omega - 0.5 * x * x + (np.log(sd) - 0.5 * np.log(np.pi))[:, None]
        return posterior_of(x, log_joint)

    def item_sums(self, post: Posterior) -> Callable[[Floats, Floats, Information], ItemSums]:
        """Return the function that gives an item's sums at (a, d)."""
        pi = post.pi * self.cells.counts[:, None]
        powers = np.stack([pi, pi * post.x, pi * post.x**2], axis=-1).reshape(-1, 3)

        def at(a: Floats, d: Floats, kind: Information) -> ItemSums:
            out = np.empty((5, len(a)))
            for rows, z in self._blocks(a, d, post.x):
                c = None if self._c is None else self._c[rows]
                k, n = self.cells.k[rows, :, None], self.cells.n[rows, :, None]
                e, w = score_and_weight(k, n, z, c, kind)
                out[:2, rows] = (e.reshape(len(e), -1) @ powers[:, :2]).T
                out[2:, rows] = (w.reshape(len(w), -1) @ powers).T
            return ItemSums(*out)

        return at

    def scores_on(self, post: Posterior, values: Floats, a: Floats, d: Floats) -> Floats:
        """Return Σ_q π values (e·x, e), shape (items, 2, models); values: (models, nodes)."""
        flat = post.pi * values
        weight = np.stack([flat * post.x, flat])
        out = np.empty((len(a), 2, len(flat)))
        for rows, z in self._blocks(a, d, post.x):
            c = None if self._c is None else self._c[rows]
            k, n = self.cells.k[rows, :, None], self.cells.n[rows, :, None]
            e, _ = score_and_weight(k, n, z, c)
            out[rows] = np.einsum("ijq,sjq->isj", e, weight)
        return out

    def moved(self, mean: float, scale: float) -> None:
        """Follow the abilities to (θ − mean)/scale, where the next search for modes starts."""
        self.theta = (self.theta - mean) / scale

    def _blocks(self, a: Floats, d: Floats, x: Floats) -> Iterator[tuple[slice, Floats]]:
        step = max(1, _BLOCK // x.size)
        for at in range(0, len(a), step):
            rows = slice(at, at + step)
            yield rows, a[rows, None, None] * x + d[rows, None, None]


def normal_grid(n_nodes: int) -> tuple[Floats, Floats]:
    """Return equal steps on [−6, 6] and the logs of their normal weights, which sum to 1."""
    x = np.linspace(-6.0, 6.0, n_nodes)
    log_w = -0.5 * x * x
    return x, log_w - np.log(np.exp(log_w).sum())


def modes(
    cells: Cells, a: Floats, d: Floats, theta: Floats, close: float, max_iter: int = 50
) -> tuple[Floats, Floats]:
    """Find the mode of each model's posterior under N(0, 1) by clipped Fisher scoring.

    Parameters
    ----------
    cells : Cells
        The answers.
    a, d : array, shape (items,)
        Slopes and intercepts.
    theta : array, shape (models,)
        Start.
    close : float
        Stop when the last step was within this share of the standard error.

    Returns
    -------
    theta, se : array, shape (models,)
        Modes and 1/√(1 + expected information).
    """
    for _ in range(max_iter):
        score, information = _ability_sums(cells, a, d, theta, "larger")
        step = np.clip((score - theta) / (information + 1), -1, 1)
        theta, se = theta + step, 1 / np.sqrt(information + 1)
        if (np.abs(step) < close * se).all():
            break
    if cells.guessing:
        se = 1 / np.sqrt(_ability_sums(cells, a, d, theta, "expected")[1] + 1)
    return theta, se


def _ability_sums(
    cells: Cells, a: Floats, d: Floats, theta: Floats, kind: Information
) -> tuple[Floats, Floats]:
    """Return score and information of each ability, by blocks that stay in the cache."""
    score, information = np.zeros_like(theta), np.zeros_like(theta)
    rows_at_once = max(1, _BLOCK // len(theta))
    for at in range(0, len(a), rows_at_once):
        rows = slice(at, at + rows_at_once)
        c = cells.c[rows, None] if cells.guessing else None
        z = np.multiply.outer(a[rows], theta) + d[rows, None]
        e, w = score_and_weight(cells.k[rows], cells.n[rows], z, c, kind)
        score += a[rows] @ e
        information += (a[rows] * a[rows]) @ w
    return score, information
