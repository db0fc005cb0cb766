"""Laplace approximation at the polished point: standard errors and joint draws in the fixed gauge.

The covariance is the inverse of the observed arrow, never formed whole: the smaller complement is
inverted, the other side follows by back substitution. Errors are reported after projecting out the
shift and the scale of θ, which the gauge mean(θ) = 0, SD(θ) = 1 fixes; without the projection they
are too wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas, cho_solve, solve_triangular

from irt.data import Floats
from irt.joint import JointResult
from irt.model import chunks
from irt.newton import Arrow, arrow, factor

_ROWS_F64 = 2e10  # I·P² from which the items' variances are summed in float32
_CHUNK = 1 << 21


@dataclass(frozen=True)
class Errors:
    """Covariances in one gauge.

    Parameters
    ----------
    theta : array, shape (P,)
        Variances of θ.
    lam, d, lam_d : arrays, shape (I,)
        Variances of λ = log a and of d, and their covariance.
    """

    theta: Floats
    lam: Floats
    d: Floats
    lam_d: Floats


@dataclass(frozen=True)
class Draws:
    """Joint draws, each standardised by itself: mean(θ) = 0, SD(θ) = 1 where the gauge is free.

    Parameters
    ----------
    theta : array, shape (draws, P)
    a, d : arrays, shape (draws, I)
    """

    theta: Floats
    a: Floats
    d: Floats

    @property
    def b(self) -> Floats:
        """Difficulties −d/a, shape (draws, I)."""
        return -self.d / self.a


class Covariance(Protocol):
    """The inverse of the arrow, seen from one side."""

    def times(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Multiply by the columns of θ: Cov(θ, θ) x, Cov(λ, θ) x, Cov(d, θ) x for x (P, m)."""
        ...

    def variances(self) -> Errors:
        """Give the variances in the engine's gauge."""
        ...

    def deviations(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw deviations of θ (P, n), λ (I, n) and d (I, n)."""
        ...


def covariance(result: JointResult, dtype: Any = None) -> tuple[Covariance, bool]:
    """Invert the observed Hessian at the polished point.

    Parameters
    ----------
    result : JointResult
    dtype : type, optional
        Precision of the sums over items; by default float32 for very large fits only.

    Returns
    -------
    covariance, ok
        Not ok: the observed form had no Cholesky factor and Fisher's was inverted instead.

    Raises
    ------
    ArithmeticError
        When Fisher's form has none either: the point is no maximum.
    """
    fisher = arrow(
        result.state, result.at, result.system.free_items, result.system.free_theta,
        pure_fisher=True,
    )  # fmt: skip
    size, width = result.system.w.shape
    if dtype is None:
        dtype = np.float32 if size * width**2 > _ROWS_F64 else np.float64
    for system, ok in ((result.system, True), (fisher, False)):
        if not system.free_theta.any() or width <= 2 * size:
            lower = factor(system.schur_theta(dtype))
            if lower is not None:
                return ThetaSide(system, lower, dtype), ok
        else:
            lower = factor(system.schur_items())
            if lower is not None:
                return ItemSide(system, lower), ok
    raise ArithmeticError("the joint information has no Cholesky factor, not even in Fisher's form")


@dataclass(frozen=True)
class ThetaSide:
    """Covariance through S, the complement of the models.

    Parameters
    ----------
    system : Arrow
    lower : array, shape (P, P)
        Cholesky factor of S.
    dtype : type
        Precision of the sums over items.
    """

    system: Arrow
    lower: Floats
    dtype: Any = np.float64

    def times(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Multiply by the columns of θ."""
        cx = cho_solve((self.lower, True), x, check_finite=False) * self.system.free_theta[:, None]
        lam, d = self.system.solve_items(*self.system.apply(cx))
        return cx, -lam, -d

    def variances(self) -> Errors:
        """Give the variances in the engine's gauge."""
        system, (size, width) = self.system, self.system.w.shape
        inverse = solve_triangular(
            self.lower, np.eye(width), lower=True, overwrite_b=True, check_finite=False
        )
        theta = np.einsum("ij,ij->j", inverse, inverse) * system.free_theta
        # By the inverse, which is at hand: TRMM takes half the time of a triangular solve.
        inverse = np.asfortranarray(inverse, dtype=self.dtype)
        times = blas.strmm if self.dtype is np.float32 else blas.dtrmm
        m = np.empty((3, size))
        for rows, x in system.white_rows(self.dtype):
            y = times(1.0, inverse, x.T, lower=1, overwrite_b=1)
            u, v = y[:, : len(x) // 2], y[:, len(x) // 2 :]
            for row, (left, right) in enumerate(((u, u), (u, v), (v, v))):
                m[row, rows] = np.einsum("ij,ij->j", left, right)
        return Errors(theta, *_unwhitened(system, 1 + m[0], m[1], 1 + m[2]))

    def deviations(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw deviations: θ from S, then every item given θ."""
        system, (size, width) = self.system, self.system.w.shape
        theta = solve_triangular(
            self.lower, rng.standard_normal((width, n)), lower=True, trans="T", check_finite=False
        )
        theta *= system.free_theta[:, None]
        u, v = system.whiten(*system.apply(theta))
        lam, d = system.unwhiten(
            rng.standard_normal((size, n)) - u, rng.standard_normal((size, n)) - v
        )
        return theta, lam, d


def _unwhitened(system: Arrow, m11: Floats, m12: Floats, m22: Floats) -> tuple[Floats, ...]:
    """Turn the covariance of an item's whitened pair into that of (λ, d)."""
    q = system.l21 / system.l22
    free = system.free_items
    return (
        free * (m11 - 2 * q * m12 + q * q * m22) / system.l11**2,
        free * m22 / system.l22**2,
        free * (m12 - q * m22) / (system.l11 * system.l22),
    )


@dataclass(frozen=True)
class ItemSide:
    """Covariance through T, the complement of the items: for more models than twice the items.

    Parameters
    ----------
    system : Arrow
    lower : array, shape (2 I, 2 I)
        Cholesky factor of T, the λ rows first.
    """

    system: Arrow
    lower: Floats

    def times(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Multiply by the columns of θ."""
        system, size = self.system, len(self.system.a)
        first = x * system.free_theta[:, None] / system.diagonal[:, None]
        items = -cho_solve((self.lower, True), np.vstack(system.apply(first)), check_finite=False)
        back = system.apply_t(items[:size], items[size:])
        return first - back / system.diagonal[:, None], items[:size], items[size:]

    def variances(self) -> Errors:
        """Give the variances in the engine's gauge."""
        system, (size, width) = self.system, self.system.w.shape
        k = cho_solve((self.lower, True), np.eye(2 * size), check_finite=False)
        index, free = np.arange(size), system.free_items
        theta = 1 / system.diagonal
        for columns in chunks(width, 2 * size, _CHUNK):
            x = system.cross_columns(columns)
            y = solve_triangular(self.lower, x, lower=True, check_finite=False)
            theta[columns] += np.einsum("ij,ij->j", y, y) / system.diagonal[columns] ** 2
        return Errors(
            theta * system.free_theta,
            k[index, index] * free,
            k[index + size, index + size] * free,
            k[index + size, index] * free,
        )

    def deviations(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw deviations: the items from T, then every model given the items."""
        system, (size, width) = self.system, self.system.w.shape
        items = solve_triangular(
            self.lower, rng.standard_normal((2 * size, n)), lower=True, trans="T",
            check_finite=False,
        )  # fmt: skip
        items[:size] *= system.free_items[:, None]
        items[size:] *= system.free_items[:, None]
        back = system.apply_t(items[:size], items[size:]) / system.diagonal[:, None]
        theta = rng.standard_normal((width, n)) / np.sqrt(system.diagonal)[:, None] - back
        return theta * system.free_theta[:, None], items[:size], items[size:]


def projected(
    errors: Errors,
    times: Callable[[Floats], tuple[Floats, Floats, Floats]],
    theta: Floats,
    a: Floats,
) -> Errors:
    """Bring variances into the gauge mean(θ) = 0, SD(θ) = 1.

    With t = (θ − m)/s: dθ' = (dθ − mean dθ − t mean(t dθ))/s, dλ' = dλ + mean(t dθ)/s and
    dd' = dd + a mean(dθ) + a m dλ.

    Parameters
    ----------
    errors : Errors
        In the engine's gauge.
    times : callable
        Products of the covariance with θ-side vectors.
    theta, a : arrays
        Abilities (P,) and discriminations (I,) in the engine's gauge.

    Returns
    -------
    Errors
    """
    count = len(theta)
    m, s = float(theta.mean()), float(theta.std())
    t = (theta - m) / s
    weights = np.stack([np.full(count, 1 / count), t / count], axis=1)
    of_theta, of_lam, of_d = times(weights)
    inner = weights.T @ of_theta
    mean_var, scale_var, both = inner[0, 0], inner[1, 1], 0.5 * (inner[0, 1] + inner[1, 0])
    var_theta = (
        errors.theta + mean_var + t * t * scale_var
        - 2 * of_theta[:, 0] - 2 * t * of_theta[:, 1] + 2 * t * both
    ) / s**2  # fmt: skip
    lam = errors.lam + 2 * of_lam[:, 1] / s + scale_var / s**2
    d = (
        errors.d + a * a * mean_var + (a * m) ** 2 * errors.lam
        + 2 * a * of_d[:, 0] + 2 * a * m * errors.lam_d + 2 * a * a * m * of_lam[:, 0]
    )  # fmt: skip
    lam_d = (
        errors.lam_d + a * of_lam[:, 0] + a * m * errors.lam
        + (of_d[:, 1] + a * both + a * m * of_lam[:, 1]) / s
    )  # fmt: skip
    return Errors(np.maximum(var_theta, 0.0), lam, d, lam_d)


def standard_draws(
    result: JointResult, deviations: tuple[Floats, Floats, Floats], *, standardise: bool = True
) -> Draws:
    """Add deviations to the point and standardise each draw by itself.

    Parameters
    ----------
    result : JointResult
    deviations : tuple
        Of θ (P, n), λ (I, n) and d (I, n).
    standardise : bool
        False where anchors fix the gauge.

    Returns
    -------
    Draws
    """
    state = result.state
    theta = (state.theta[:, None] + deviations[0]).T
    a = np.exp(state.lam[:, None] + deviations[1]).T
    d = (state.d[:, None] + deviations[2]).T
    if standardise:
        m = theta.mean(axis=1, keepdims=True)
        s = theta.std(axis=1, keepdims=True)
        theta, d, a = (theta - m) / s, d + a * m, a * s
    return Draws(theta, a, d)
