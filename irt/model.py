"""The joint model at a point: its state, the sums over all cells, the gradient.

k ~ Binomial(n, p), logit p_ij = a_i θ_j + d_i, λ = log a, with normal priors on θ, λ and d. Arrays of
cells are items × models; a cell that was never tried has k = n = 0 and drops out of every sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irt._joint_link import JointLink
from irt.data import Floats

Array = NDArray[Any]  # float64, or float32 in the passes of a large fit
Step = tuple[Floats, Floats, Floats]  # in θ, λ and d

_CHUNK_CELLS = 1 << 15  # a pass works in the processor's cache
_MAX_EXPONENT: dict[Any, float] = {np.float32: 80.0, np.float64: 700.0}  # exp of more is not finite


@dataclass(frozen=True)
class Hyper:
    """Hyperparameters: θ ~ N(mu_theta, sigma_theta²), log a ~ N(mu_a, sigma_a²), d ~ N(mu_d, sigma_d²).

    Parameters
    ----------
    mu_a, sigma_a, mu_d, sigma_d, mu_theta, sigma_theta : float
        The starting values of the engine are the defaults.
    """

    mu_a: float = 0.0
    sigma_a: float = 0.5
    mu_d: float = 0.0
    sigma_d: float = 3.0
    mu_theta: float = 0.0
    sigma_theta: float = 1.0


@dataclass(frozen=True)
class State:
    """A point of the joint model: θ (P,), λ = log a (I,), d (I,), and the hyperparameters.

    `link` is the line through the anchors' minutes, where these are part of the likelihood.
    """

    theta: Floats
    lam: Floats
    d: Floats
    hyper: Hyper = field(default_factory=Hyper)
    link: JointLink | None = None

    @property
    def a(self) -> Floats:
        """Discriminations exp(λ), shape (I,)."""
        return np.exp(self.lam)

    def standardised(self, m: float, s: float) -> State:
        """Give the same probabilities with θ' = (θ − m)/s."""
        link = None if self.link is None else self.link.standardised(m, s)
        return replace(
            self, theta=(self.theta - m) / s, lam=self.lam + np.log(s), d=self.d + self.a * m,
            link=link,
        )  # fmt: skip

    def moved(self, step: Step, t: float) -> State:
        """Go t times a step in (θ, λ, d)."""
        return replace(
            self,
            theta=self.theta + t * step[0],
            lam=self.lam + t * step[1],
            d=self.d + t * step[2],
        )

    def log_prior(self) -> float:
        """Log prior up to a constant, and what the anchors' minutes say."""
        h = self.hyper
        minutes = 0.0 if self.link is None else self.link.log_density(self.lam, self.d)
        return minutes - 0.5 * float(
            np.sum(((self.theta - h.mu_theta) / h.sigma_theta) ** 2)
            + np.sum(((self.lam - h.mu_a) / h.sigma_a) ** 2)
            + np.sum(((self.d - h.mu_d) / h.sigma_d) ** 2)
        )


@dataclass(frozen=True)
class Pass:
    """Sums over the cells at a state; e = k − n p, w = n p (1 − p).

    Parameters
    ----------
    log_lik : float
        Σ k z − n softplus(z), without the binomial coefficients.
    e0, e1 : arrays, shape (I,)
        Σ_j e and Σ_j θ e.
    w0, w1, w2 : arrays, shape (I,)
        Σ_j w, Σ_j θ w and Σ_j θ² w.
    g, info : arrays, shape (P,)
        Σ_i a e and Σ_i a² w.
    w, e : arrays, shape (I, P)
        The cells; e only where it was asked for.
    """

    log_lik: float
    e0: Floats
    e1: Floats
    w0: Floats
    w1: Floats
    w2: Floats
    g: Floats
    info: Floats
    w: Array
    e: Array | None

    def standardised(self, m: float, s: float) -> Pass:
        """Give the sums at the standardised state: p, and so w and e, are the same there."""
        return replace(
            self,
            e1=(self.e1 - m * self.e0) / s,
            w1=(self.w1 - m * self.w0) / s,
            w2=(self.w2 - 2 * m * self.w1 + m * m * self.w0) / s**2,
            g=self.g * s,
            info=self.info * s**2,
        )


def chunks(size: int, width: int, cells: int) -> Iterator[slice]:
    """Cut `size` rows of `width` into slices of about so many cells."""
    rows = max(1, cells // max(1, width))
    for start in range(0, size, rows):
        yield slice(start, min(size, start + rows))


def cells_pass(
    k: Array,
    n: Array,
    state: State,
    dtype: Any,
    *,
    keep_e: bool = False,
    store: Any = None,
) -> Pass:
    """Go once over all cells.

    Parameters
    ----------
    k, n : arrays, shape (I, P)
        Successes and attempts.
    state : State
        Where to evaluate.
    dtype : type
        Precision of the arithmetic.
    keep_e : bool
        Whether the residuals are kept (for the observed Hessian).
    store : type, optional
        Precision in which w and e are kept; by default `dtype`.

    Returns
    -------
    Pass
        All sums in float64.
    """
    size, width = k.shape
    a = state.a
    right = np.stack([state.theta, np.ones(width)]).astype(dtype)
    powers = np.stack([np.ones(width), state.theta, state.theta**2], axis=1).astype(dtype)
    left = -np.stack([a, state.d], axis=1).astype(dtype)
    sums = np.empty((size, 5))
    linear = np.empty((size, 4))
    g, info = np.zeros(width), np.zeros(width)
    w_all = np.empty((size, width), dtype=store or dtype)
    e_all = np.empty((size, width), dtype=store or dtype) if keep_e else None
    log_lik = 0.0
    # One workspace for all chunks: memory that is new each time costs a quarter of a short fit.
    work = np.empty((2, min(size, max(1, _CHUNK_CELLS // width)), width), dtype=dtype)
    for rows in chunks(size, width, _CHUNK_CELLS):
        kc = k[rows].astype(dtype, copy=False)
        nc = n[rows].astype(dtype, copy=False)
        q, log_q = work[:, : len(kc)]
        np.matmul(left[rows], right, out=q)
        np.minimum(q, _MAX_EXPONENT[dtype], out=q)
        np.exp(q, out=q)
        q += 1  # 1/p
        np.log(q, out=log_q)
        log_lik -= float(np.vdot(nc, log_q))
        np.divide(nc, q, out=log_q)  # n p
        w = np.divide(log_q, q, out=q)
        np.subtract(log_q, w, out=w)
        e = np.subtract(kc, log_q, out=log_q)
        sums[rows, :2] = e @ powers[:, :2]
        sums[rows, 2:] = w @ powers
        linear[rows, :2] = kc @ powers[:, :2]
        linear[rows, 2:] = nc @ powers[:, :2]
        ac = a[rows].astype(dtype)
        g += ac @ e
        info += (ac * ac) @ w
        w_all[rows] = w
        if e_all is not None:
            e_all[rows] = e
    # (k − n) z, the part of the log-likelihood that is linear in the parameters
    log_lik += float(a @ (linear[:, 1] - linear[:, 3]) + state.d @ (linear[:, 0] - linear[:, 2]))
    e0, e1, w0, w1, w2 = sums.T.copy()
    return Pass(log_lik, e0, e1, w0, w1, w2, g, info, w_all, e_all)


def gradient(state: State, at: Pass) -> Step:
    """Gradient of the log posterior in θ (P,), λ (I,) and d (I,)."""
    h = state.hyper
    theta = at.g - (state.theta - h.mu_theta) / h.sigma_theta**2
    lam = state.a * at.e1 - (state.lam - h.mu_a) / h.sigma_a**2
    d = at.e0 - (state.d - h.mu_d) / h.sigma_d**2
    if state.link is not None:
        of_lam, of_d = state.link.gradient(state.lam, state.d)
        lam, d = lam + of_lam, d + of_d
    return theta, lam, d
