"""The arrow-shaped system of a Newton step, and its solution.

In (θ, λ, d) the negative Hessian of the joint model is an arrow: diagonal in θ (D), 2 × 2 blocks per
item (H), cross terms between a model and an item (c1 with λ, c2 with d). So either side can be
eliminated: the smaller one is solved for, by Cholesky, or by conjugate gradients where even that is
large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import blas, cho_solve, cholesky

from irt.data import Floats, Mask
from irt.model import Array, Pass, State, Step, chunks

_CHUNK = 1 << 17  # rows that stay in the cache between being made and being multiplied
_LEAST_RANK = 512  # of an update by SYRK, or the time goes into reading the complement again


@dataclass(frozen=True)
class Arrow:
    """The negative Hessian at a state, with the operations that its shape allows.

    Parameters
    ----------
    diagonal : array, shape (P,)
        D, the θ part.
    l11, l21, l22 : arrays, shape (I,)
        Cholesky factors of the items' 2 × 2 blocks.
    a, theta, w, e :
        What the cross terms c1 = a² w θ − a e and c2 = a w are made of; e is None in the Fisher
        form.
    free_items, free_theta : arrays of bool
        What moves; a frozen part has no rows in the system.
    fisher : array of bool, shape (I,)
        Items whose observed block is not positive definite and was replaced by the Fisher one.
    h11, h12, h22 : arrays, shape (I,)
        The blocks themselves.
    """

    diagonal: Floats
    h11: Floats
    h12: Floats
    h22: Floats
    l11: Floats
    l21: Floats
    l22: Floats
    a: Floats
    theta: Floats
    w: Array
    e: Array | None
    free_items: Mask
    free_theta: Mask
    fisher: Mask
    _factors: dict[Any, Floats | None] = field(default_factory=dict, repr=False)

    def apply(self, x: Floats) -> tuple[Floats, Floats]:
        """Multiply θ-side vectors by the cross terms.

        Parameters
        ----------
        x : array, shape (P, m)

        Returns
        -------
        c1 @ x, c2 @ x : arrays, shape (I, m)
        """
        x = x * self.free_theta[:, None]
        m = x.shape[1]
        both = self.w @ np.hstack([self.theta[:, None] * x, x]).astype(self.w.dtype)
        a = self.a[:, None]
        y1 = a * a * both[:, :m]
        if self.e is not None:
            y1 = y1 - a * (self.e @ x.astype(self.e.dtype))
        return y1 * self.free_items[:, None], a * both[:, m:] * self.free_items[:, None]

    def apply_t(self, y1: Floats, y2: Floats) -> Floats:
        """Multiply item-side vectors (I, m) by the transposed cross terms, giving (P, m)."""
        m = y1.shape[1]
        a = (self.a * self.free_items)[:, None]
        y1, y2 = a * y1, a * y2
        both = self.w.T @ np.hstack([self.a[:, None] * y1, y2]).astype(self.w.dtype)
        x = self.theta[:, None] * both[:, :m] + both[:, m:]
        if self.e is not None:
            x = x - self.e.T @ y1.astype(self.e.dtype)
        return np.asarray(x * self.free_theta[:, None], dtype=np.float64)

    def whiten(self, y1: Floats, y2: Floats) -> tuple[Floats, Floats]:
        """Apply L⁻¹ of the items' blocks to item-side vectors (I, m)."""
        u = y1 / self.l11[:, None]
        return u, (y2 - self.l21[:, None] * u) / self.l22[:, None]

    def unwhiten(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Apply L⁻ᵀ of the items' blocks to item-side vectors (I, m); frozen items give 0."""
        y2 = v / self.l22[:, None] * self.free_items[:, None]
        y1 = (u - self.l21[:, None] * y2) / self.l11[:, None] * self.free_items[:, None]
        return y1, y2

    def solve_items(self, y1: Floats, y2: Floats) -> tuple[Floats, Floats]:
        """Apply the inverse of the items' blocks to item-side vectors (I, m)."""
        return self.unwhiten(*self.whiten(y1, y2))

    def white_rows(self, dtype: Any) -> Iterator[tuple[slice, Array]]:
        """Give U over V, the whitened cross terms, shape (2 × items, P), some items at a time.

        What is given lies in one workspace: it holds until the next is asked for.
        """
        size, width = self.w.shape
        work: Array | None = None
        for rows in chunks(size, 2 * width, max(_CHUNK, _LEAST_RANK * width)):
            count = rows.stop - rows.start
            if work is None:
                work = np.empty((2 * count, width), dtype=dtype)
            x = work[: 2 * count]
            self._white(rows, x[:count], x[count:])
            yield rows, x

    def _white(self, rows: slice, u: Array, v: Array) -> None:
        w, free, dtype = self.w[rows], self.free_items[rows], u.dtype
        a, l11 = self.a[rows], self.l11[rows]
        np.multiply(w, (self.theta * self.free_theta).astype(dtype), out=u)
        if self.e is None:
            u *= (free * a * a / l11).astype(dtype)[:, None]
        else:
            u *= a.astype(dtype)[:, None]
            u -= self.e[rows] * self.free_theta
            u *= (free * a / l11).astype(dtype)[:, None]
        np.multiply(w, (free * a / self.l22[rows]).astype(dtype)[:, None], out=v)
        if not self.free_theta.all():
            v *= self.free_theta
        v -= u * (self.l21[rows] / self.l22[rows]).astype(dtype)[:, None]

    def schur_theta(self, dtype: Any) -> Floats:
        """S = diag(D) − UᵀU − VᵀV, shape (P, P); only the lower triangle is right."""
        width = self.w.shape[1]
        s = np.zeros((width, width), dtype=dtype, order="F")
        syrk = blas.ssyrk if dtype is np.float32 else blas.dsyrk
        for _, x in self.white_rows(dtype):
            s = syrk(-1.0, x.T, beta=1.0, c=s, lower=1, overwrite_c=1)
        full = s.astype(np.float64)
        full[np.diag_indices(width)] += np.where(self.free_theta, self.diagonal, 1.0)
        return full

    def factor_theta(self, dtype: Any) -> Floats | None:
        """Cholesky factor of S (None if there is none), kept for a later step with this system."""
        if dtype not in self._factors:
            self._factors[dtype] = factor(self.schur_theta(dtype))
        return self._factors[dtype]

    def cross_columns(self, columns: slice) -> Floats:
        """Give c1 over c2 for some models, shape (2 I, models), frozen parts zero."""
        w = self.w[:, columns].astype(np.float64)
        a = (self.a * self.free_items)[:, None]
        free = self.free_theta[columns]
        c1 = a * self.a[:, None] * w * self.theta[columns]
        if self.e is not None:
            c1 -= a * self.e[:, columns]
        return np.vstack([c1, a * w]) * free

    def schur_items(self) -> Floats:
        """T = H − C D⁻¹ Cᵀ, shape (2 I, 2 I), the λ rows first; only the lower triangle is right."""
        size, width = self.w.shape
        t = np.zeros((2 * size, 2 * size), order="F")
        for columns in chunks(width, 2 * size, max(_CHUNK, _LEAST_RANK * 2 * size)):
            x = self.cross_columns(columns) / np.sqrt(self.diagonal[columns])
            t = blas.dsyrk(-1.0, x, beta=1.0, c=t, lower=1, overwrite_c=1)
        index = np.arange(size)
        t[index, index] += np.where(self.free_items, self.h11, 1.0)
        t[index + size, index + size] += np.where(self.free_items, self.h22, 1.0)
        t[index + size, index] += np.where(self.free_items, self.h12, 0.0)
        return t


def arrow(
    state: State, at: Pass, free_items: Mask, free_theta: Mask, *, pure_fisher: bool = False
) -> Arrow:
    """Build the negative Hessian: observed where the pass kept its residuals, else Fisher's.

    For steps, Fisher's form takes the observed curvature in λ where that is larger (which keeps it
    positive definite): an item whose best slope is negative else overshoots, back and forth, and
    alone holds up the whole fit (29 iterations on BRIDGE instead of 13).

    Parameters
    ----------
    state : State
    at : Pass
        The sums at that state.
    free_items, free_theta : arrays of bool
        What moves.
    pure_fisher : bool
        Fisher's form as it stands, residuals or not.

    Returns
    -------
    Arrow
        Blocks that are not positive definite in the observed form are Fisher's.
    """
    h, a = state.hyper, state.a
    h11 = a * a * at.w2 + h.sigma_a**-2
    h12 = a * at.w1
    h22 = at.w0 + h.sigma_d**-2
    fisher = np.zeros(len(a), dtype=bool)
    e = None if pure_fisher else at.e
    observed, observed12 = h11 - a * at.e1, h12
    if e is None and not pure_fisher:
        h11 = np.maximum(h11, observed)
    if state.link is not None:
        safe = state.link.curvature(state.lam, state.d, observed=False)
        whole = state.link.curvature(state.lam, state.d, observed=True)
        observed, observed12 = observed + whole[0], h12 + whole[1]
        h11, h12, h22 = h11 + safe[0], h12 + safe[1], h22 + safe[2]
    if e is not None:
        fisher = ~((observed > 0) & (observed * h22 > observed12 * observed12))
        h11, h12 = np.where(fisher, h11, observed), np.where(fisher, h12, observed12)
    l11 = np.sqrt(h11)
    l21 = h12 / l11
    return Arrow(
        at.info + h.sigma_theta**-2, h11, h12, h22, l11, l21, np.sqrt(h22 - l21 * l21),
        a, state.theta, at.w, _cleared(e, fisher), free_items, free_theta, fisher,
    )  # fmt: skip


def _cleared(e: Array | None, fisher: Mask) -> Array | None:
    """An item in Fisher's form has no residuals in its cross terms either."""
    if e is not None and fisher.any():
        e = e.copy()
        e[fisher] = 0
    return e


def factor(system: Floats) -> Floats | None:
    """Cholesky factor (lower) of a matrix given by its lower triangle; None if there is none."""
    try:
        lower: Floats = cholesky(system, lower=True, overwrite_a=False, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return lower if np.isfinite(lower[-1, -1]) else None


def solve(system: Arrow, g: Step, dtype: Any, direct_limit: int) -> Step | None:
    """Solve the arrow system for a gradient.

    Parameters
    ----------
    system : Arrow
    g : tuple
        Gradient in θ, λ and d.
    dtype : type
        Precision in which the complement is summed.
    direct_limit : int
        Up to this size of the smaller complement it is formed and factored; above, conjugate
        gradients work on the models' complement without forming it.

    Returns
    -------
    tuple or None
        The Newton step; None where the matrix is not positive definite.
    """
    g_theta = g[0] * system.free_theta
    g_items = (g[1] * system.free_items, g[2] * system.free_items)
    size, width = system.w.shape
    if not system.free_theta.any():
        y1, y2 = system.solve_items(g_items[0][:, None], g_items[1][:, None])
        return np.zeros(width), y1[:, 0], y2[:, 0]
    if min(width, 2 * size) <= direct_limit and width > 2 * size:
        return _solve_items_side(system, g_theta, g_items)
    y1, y2 = system.solve_items(g_items[0][:, None], g_items[1][:, None])
    r = g_theta - system.apply_t(y1, y2)[:, 0]
    if width <= direct_limit:
        lower = system.factor_theta(dtype)
        step = None if lower is None else cho_solve((lower, True), r, check_finite=False)
    else:
        step = _conjugate_gradients(system, r)
    if step is None:
        return None
    c1, c2 = system.apply(step[:, None])
    y1, y2 = system.solve_items(g_items[0][:, None] - c1, g_items[1][:, None] - c2)
    return step, y1[:, 0], y2[:, 0]


def _solve_items_side(
    system: Arrow, g_theta: Floats, g_items: tuple[Floats, Floats]
) -> Step | None:
    """Eliminate θ: right where models outnumber items."""
    lower = factor(system.schur_items())
    if lower is None:
        return None
    c1, c2 = system.apply((g_theta / system.diagonal)[:, None])
    rhs = np.concatenate([g_items[0] - c1[:, 0], g_items[1] - c2[:, 0]])
    step = cho_solve((lower, True), rhs, check_finite=False)
    size = len(system.a)
    back = system.apply_t(step[:size, None], step[size:, None])[:, 0]
    return (g_theta - back) / system.diagonal, step[:size], step[size:]


def _times_schur(system: Arrow, x: Floats) -> Floats:
    """S x for vectors (P, m), without S."""
    y1, y2 = system.solve_items(*system.apply(x))
    return system.diagonal[:, None] * x - system.apply_t(y1, y2)


def _conjugate_gradients(
    system: Arrow, r: Floats, tol: float = 1e-3, cap: int = 60
) -> Floats | None:
    """Solve S x = r, preconditioned by D, with the two directions of the gauge deflated.

    Shift and scale of θ are what the data do not say: there S has the prior only, and plain
    conjugate gradients would spend their steps on them (deflation as in Saad et al. 2000).
    """
    free = system.free_theta
    z = np.stack([free.astype(np.float64), system.theta * free], axis=1)
    sz = _times_schur(system, z)
    coarse = z.T @ sz
    if not (coarse[0, 0] > 0 and np.linalg.det(coarse) > 0):
        return None
    x = z @ np.linalg.solve(coarse, z.T @ r)
    goal = tol * float(np.sqrt(r @ (r / system.diagonal)))
    r = r - sz @ np.linalg.solve(coarse, z.T @ r)
    p, last = np.zeros_like(r), np.inf
    for _ in range(cap):
        y = r / system.diagonal
        rho = float(r @ y)
        if np.sqrt(rho) <= goal:
            break
        p = y - z @ np.linalg.solve(coarse, sz.T @ y) + (rho / last) * p
        sp = _times_schur(system, p[:, None])[:, 0]
        curvature = float(p @ sp)
        if curvature <= 0:
            return None
        x = x + (rho / curvature) * p
        r = r - (rho / curvature) * sp
        last = rho
    return x
