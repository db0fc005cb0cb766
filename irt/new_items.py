"""Scoring on an existing bank: new items with the models fixed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irt.data import Floats
from irt.joint import Options, fit_joint
from irt.model import Hyper, State
from irt.sandwich import item_blocks
from irt.score import se_difficulty, shifted, to_dicts


@dataclass(frozen=True)
class ItemScores:
    """Parameters of new items on a bank's scale.

    Parameters
    ----------
    item : tuple
        Keys, shape (I,).
    a, b, d : arrays, shape (I,)
        Discrimination, difficulty −d/a, intercept.
    se_log_a, se_b, se_d : arrays, shape (I,)
        Standard errors, those of the models' abilities carried through where they were given.
    n_models : array of int, shape (I,)
        Models that answered.
    converged : tuple of bool
        The same value for each item: they are solved together.
    """

    item: tuple[Hashable, ...]
    a: Floats
    b: Floats
    d: Floats
    se_log_a: Floats
    se_b: Floats
    se_d: Floats
    n_models: Any
    converged: tuple[bool, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping an item."""
        return to_dicts(self)


def score_items(
    k: Floats,
    n: Floats,
    theta: Floats,
    hyper: Hyper | None = None,
    *,
    m: float = 0.0,
    s: float = 1.0,
    cov_theta: Floats | None = None,
    items: tuple[Hashable, ...] | None = None,
    fractional: bool = False,
) -> ItemScores:
    """Estimate items whose models are known, all items in one two-parameter Newton.

    Parameters
    ----------
    k, n : arrays, shape (I, P)
        Successes and attempts.
    theta : array, shape (P,)
        Abilities in the gauge of the priors.
    hyper : Hyper, optional
        Priors of log a and d.
    m, s : float
        The result is given for the abilities (θ − m)/s.
    cov_theta : array, shape (P, P), optional
        Covariance of those; adds N Cov Nᵀ to each item's H⁻¹, N = H⁻¹c being how the item follows
        the abilities (the Schur form of the joint fit).
    items : tuple, optional
        Keys.
    fractional : bool
        Scores that are no counts: H⁻¹ J H⁻¹ in the place of H⁻¹, see `irt.sandwich`.

    Returns
    -------
    ItemScores
    """
    size, width = k.shape
    rate = (k.sum(axis=1) + 0.5) / (n.sum(axis=1) + 1)
    hyper = hyper or Hyper()
    start = State(theta, np.full(size, hyper.mu_a), np.log(rate / (1 - rate)), hyper)
    options = Options(start=start, frozen_theta=np.ones(width, dtype=bool), dtype=np.float64)
    result = fit_joint(k, n, options)
    state, system = result.state, result.system
    det = system.h11 * system.h22 - system.h12**2
    var_lam, cov, var_d = system.h22 / det, -system.h12 / det, system.h11 / det
    a, shift = state.a * s, state.a * m
    d = state.d + shift
    w, e = result.at.w, result.at.e
    assert e is not None
    # d' = d + a m: the same items where θ has another zero.
    i_lam, (i_d, i_cov) = var_lam, shifted(var_lam, cov, var_d, shift)
    if fractional:
        q, h = np.asarray(e, dtype=np.float64) ** 2, hyper
        j11 = state.a**2 * (q @ theta**2) + h.sigma_a**-2
        j12, j22 = state.a * (q @ theta), q.sum(axis=1) + h.sigma_d**-2
        var_lam, var_d, cov = item_blocks(system, j11, j12, j22)
    var_d, cov = shifted(var_lam, cov, var_d, shift)
    if cov_theta is not None:
        t = (theta - m) / s
        c1 = a[:, None] ** 2 * w * t - a[:, None] * e
        c2 = a[:, None] * w
        first = i_lam[:, None] * c1 + i_cov[:, None] * c2
        second = i_cov[:, None] * c1 + i_d[:, None] * c2
        first_c = first @ cov_theta
        var_lam = var_lam + np.einsum("ij,ij->i", first_c, first)
        cov = cov + np.einsum("ij,ij->i", first_c, second)
        var_d = var_d + np.einsum("ij,ij->i", second @ cov_theta, second)
    names = tuple(range(size)) if items is None else items
    return ItemScores(
        names, a, -d / a, d, np.sqrt(var_lam), se_difficulty(a, d, var_lam, var_d, cov),
        np.sqrt(var_d), np.count_nonzero(n, axis=1), (result.converged,) * size,
    )  # fmt: skip
