"""Sandwich covariance H⁻¹ J H⁻¹ for fractional scores, where k is no binomial count.

The mean of a score is taken to be p (quasi-binomial, Papke & Wooldridge 1996), its variance is not:
J is the arrow of squared residuals, with the priors' precisions, so that it is H on average where
the scores are right or wrong after all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irt.data import Floats
from irt.joint import JointResult
from irt.laplace import Errors
from irt.newton import Arrow, factor


@dataclass(frozen=True)
class Sandwich:
    """Covariance of the polished point under misspecified variances.

    Parameters
    ----------
    system : Arrow
        The observed information.
    cov_theta : array, shape (P, P)
    cov_lam, cov_d : arrays, shape (I, P)
        Covariances of λ and d with θ.
    errors : Errors
        Variances.
    result : JointResult
        Where it was taken.
    inverse : array, shape (P, P)
        S⁻¹, the model-based covariance of θ.
    """

    system: Arrow
    cov_theta: Floats
    cov_lam: Floats
    cov_d: Floats
    errors: Errors
    result: JointResult
    inverse: Floats

    def times(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Multiply by the columns of θ: Cov(θ, θ) x, Cov(λ, θ) x, Cov(d, θ) x for x (P, m)."""
        return self.cov_theta @ x, self.cov_lam @ x, self.cov_d @ x

    def variances(self) -> Errors:
        """Give the variances in the engine's gauge."""
        return self.errors

    def deviations(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Draw deviations: each cell's residual with a random sign, solved as a Newton step."""
        system, state, e = self.system, self.result.state, self.result.at.e
        assert e is not None
        (size, width), h, a = e.shape, state.hyper, state.a
        g_theta = rng.standard_normal((width, n)) / h.sigma_theta
        g_lam = rng.standard_normal((size, n)) / h.sigma_a
        g_d = rng.standard_normal((size, n)) / h.sigma_d
        for draw in range(n):
            signed = np.where(rng.integers(0, 2, size=e.shape, dtype=np.int8), e, -e)
            g_theta[:, draw] += a @ signed
            g_lam[:, draw] += a * (signed @ state.theta)
            g_d[:, draw] += signed.sum(axis=1)
        g_theta *= system.free_theta[:, None]
        g_lam *= system.free_items[:, None]
        g_d *= system.free_items[:, None]
        theta = self.inverse @ (g_theta - system.apply_t(*system.solve_items(g_lam, g_d)))
        c1, c2 = system.apply(theta)
        lam, d = system.solve_items(g_lam - c1, g_d - c2)
        return theta, lam, d


def sandwich(result: JointResult) -> Sandwich:
    """Compute the sandwich at the polished point.

    Parameters
    ----------
    result : JointResult
        With its residuals; all of (I, P) is held several times over, in float64.

    Returns
    -------
    Sandwich

    Raises
    ------
    ArithmeticError
        When the observed information has no Cholesky factor.
    """
    system, state, e = result.system, result.state, result.at.e
    assert e is not None
    lower = factor(system.schur_theta(np.float64))
    if lower is None:
        raise ArithmeticError("the observed information has no Cholesky factor: no sandwich errors")
    root = np.linalg.inv(np.tril(lower))
    inverse = root.T @ root * np.outer(system.free_theta, system.free_theta)
    size, h, a = len(state.lam), state.hyper, state.a[:, None]
    free = system.free_items[:, None] * system.free_theta
    q = np.asarray(e, dtype=np.float64) ** 2
    cross = system.cross_columns(slice(None))
    n1, n2 = system.solve_items(cross[:size], cross[size:])
    j1, j2 = a * a * q * state.theta * free, a * q * free
    j11 = a * a * (q @ state.theta**2)[:, None] + h.sigma_a**-2
    j12 = a * (q @ state.theta)[:, None]
    j22 = q.sum(axis=1)[:, None] + h.sigma_d**-2
    # what is left of the items' scores once they follow the abilities
    r1, r2 = j1 - j11 * n1 - j12 * n2, j2 - j12 * n1 - j22 * n2
    mixed = j1.T @ n1 + j2.T @ n2
    meat = n1.T @ (j11 * n1 + j12 * n2) + n2.T @ (j12 * n1 + j22 * n2) - mixed - mixed.T
    meat[np.diag_indices_from(meat)] += (a[:, 0] ** 2) @ q + h.sigma_theta**-2
    cov_theta = inverse @ meat @ inverse
    b1, b2 = system.solve_items(r1, r2)
    cov_lam = b1 @ inverse - n1 @ cov_theta
    cov_d = b2 @ inverse - n2 @ cov_theta
    own = item_blocks(system, j11[:, 0], j12[:, 0], j22[:, 0])
    n1_c, n2_c = n1 @ inverse, n2 @ inverse

    def total(block: Floats, x: Floats, y: Floats, n_x: Floats, n_y: Floats, n_xc: Floats,
              n_yc: Floats) -> Floats:  # fmt: skip
        """Var(h_x − N_x dθ, h_y − N_y dθ) with h = H⁻¹ s and Cov(h, dθ) = b S⁻¹."""
        return np.asarray(
            block - np.einsum("ij,ij->i", x, n_yc) - np.einsum("ij,ij->i", y, n_xc)
            + np.einsum("ij,ij->i", n_x @ cov_theta, n_y), dtype=np.float64,
        )  # fmt: skip

    errors = Errors(
        np.diag(cov_theta).copy(),
        total(own[0], b1, b1, n1, n1, n1_c, n1_c),
        total(own[1], b2, b2, n2, n2, n2_c, n2_c),
        total(own[2], b1, b2, n1, n2, n1_c, n2_c),
    )
    return Sandwich(system, cov_theta, cov_lam, cov_d, errors, result, inverse)


def item_blocks(
    system: Arrow, j11: Floats, j12: Floats, j22: Floats
) -> tuple[Floats, Floats, Floats]:
    """Compute H⁻¹ J H⁻¹ of each item, the abilities known.

    Parameters
    ----------
    system : Arrow
        With the items' H.
    j11, j12, j22 : arrays, shape (I,)
        The items' J.

    Returns
    -------
    var_lam, var_d, cov : arrays, shape (I,)
    """
    det = system.h11 * system.h22 - system.h12**2
    i11, i12, i22 = system.h22 / det, -system.h12 / det, system.h11 / det
    i11, i12, i22 = (x * system.free_items for x in (i11, i12, i22))
    return (
        i11 * i11 * j11 + 2 * i11 * i12 * j12 + i12 * i12 * j22,
        i12 * i12 * j11 + 2 * i12 * i22 * j12 + i22 * i22 * j22,
        i11 * i12 * j11 + (i11 * i22 + i12 * i12) * j12 + i12 * i22 * j22,
    )
