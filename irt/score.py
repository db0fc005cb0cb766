"""Scoring on an existing bank: new models with the items fixed, new items with the models fixed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irt.data import Floats
from irt.joint import Options, fit_joint
from irt.model import Hyper, State

_GRID = np.linspace(-6.0, 6.0, 31)
_GRID_CELLS = 1 << 21
_REACH = 30.0  # no ability is looked for further out than this


@dataclass(frozen=True)
class Scores:
    """Abilities of new models on a bank's scale; the errors take the items as known.

    Parameters
    ----------
    model : tuple
        Names, shape (M,).
    theta, se : arrays, shape (M,)
        Mode of the posterior (MAP), and 1/√(information + 1/σ²).
    eap, eap_sd : arrays, shape (M,)
        Mean and SD of the posterior.
    wle, wle_se : arrays, shape (M,)
        Warm's weighted likelihood estimate, finite for all-right and all-wrong, without a prior.
    n_items : array of int, shape (M,)
        Items answered.
    """

    model: tuple[Hashable, ...]
    theta: Floats
    se: Floats
    eap: Floats
    eap_sd: Floats
    wle: Floats
    wle_se: Floats
    n_items: Any

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping a model."""
        return to_dicts(self)


def to_dicts(record: Any) -> list[dict[str, Any]]:
    """Turn a record of equally long columns into one mapping a row.

    Parameters
    ----------
    record : dataclass
        Tuples and arrays, all of one length.

    Returns
    -------
    list of dict
        Plain Python values.
    """
    columns = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(record).items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def score_models(
    k: Floats,
    n: Floats,
    a: Floats,
    d: Floats,
    *,
    mean: float = 0.0,
    sd: float = 1.0,
    models: tuple[Hashable, ...] | None = None,
) -> Scores:
    """Estimate the ability of models whose items are known, all models at once.

    MAP and EAP have the prior N(mean, sd²); WLE solves Σ a(k − n p) + J/(2 I) = 0 with
    I = Σ n a² p q and J = Σ n a³ p q (1 − 2p) (Warm 1989).

    Parameters
    ----------
    k, n : arrays, shape (I, M)
        Successes and attempts.
    a, d : arrays, shape (I,)
        Discriminations and intercepts.
    mean, sd : float
        The population.
    models : tuple, optional
        Names, shape (M,).

    Returns
    -------
    Scores

    Examples
    --------
    >>> import numpy as np
    >>> one = score_models(np.array([[1.0], [0.0]]), np.ones((2, 1)), np.ones(2), np.zeros(2))
    >>> float(abs(one.theta[0])) < 1e-12, float(abs(one.wle[0])) < 1e-12
    (True, True)
    """
    names = tuple(range(k.shape[1])) if models is None else models
    n_items = np.count_nonzero(n, axis=0)
    if k.shape[1] == 1:  # a single model: its own items only
        asked = n[:, 0] > 0
        k, n, a, d = k[asked], n[asked], a[asked], d[asked]
    theta, information = mode(k, n, a, d, mean=mean, sd=sd)
    se = 1 / np.sqrt(information)
    wle, wle_information = _warm(k, n, a, d, theta)
    # Without an answer the likelihood says nothing, and neither does its estimate.
    silent = n_items == 0
    wle[silent], wle_information[silent] = np.nan, np.nan
    eap, eap_sd = _eap(a @ k, n, a, d, theta, se, mean, sd)
    return Scores(names, theta, se, eap, eap_sd, wle, 1 / np.sqrt(wle_information), n_items)


def mode(
    k: Floats, n: Floats, a: Floats, d: Floats, *, mean: float = 0.0, sd: float = 1.0
) -> tuple[Floats, Floats]:
    """Mode of the posterior of θ for known items.

    Parameters
    ----------
    k, n : arrays, shape (I, M)
    a, d : arrays, shape (I,)
    mean, sd : float
        The population.

    Returns
    -------
    theta, information : arrays, shape (M,)
        The prior's share of the information included.
    """
    right = a @ k

    def slope(theta: Floats) -> tuple[Floats, Floats]:
        p = _probabilities(a, d, theta)
        w = n * p
        g = right - a @ w
        w *= 1 - p
        return g - (theta - mean) / sd**2, (a * a) @ w + sd**-2

    return _roots(slope, np.full(k.shape[1], mean))


def _warm(k: Floats, n: Floats, a: Floats, d: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Warm's weighted likelihood estimate and its information."""
    right = a @ k

    def slope(theta: Floats) -> tuple[Floats, Floats]:
        p = _probabilities(a, d, theta)
        w = n * p
        g = right - a @ w
        w *= 1 - p
        information = np.maximum((a * a) @ w, 1e-300)
        w *= 1 - 2 * p
        return g + (a**3 @ w) / (2 * information), information

    return _roots(slope, start)


def _probabilities(a: Floats, d: Floats, theta: Floats) -> Floats:
    z = np.multiply.outer(-a, theta)
    z -= d[:, None]
    np.exp(np.minimum(z, 700.0, out=z), out=z)
    z += 1
    return np.divide(1.0, z, out=z)


def _roots(
    function: Callable[[Floats], tuple[Floats, Floats]], start: Floats
) -> tuple[Floats, Floats]:
    """Newton on falling functions, kept inside a shrinking bracket; gives the roots and −slopes."""
    theta, low, high = start.copy(), np.full_like(start, -_REACH), np.full_like(start, _REACH)
    for _ in range(100):
        g, slope = function(theta)
        low, high = np.where(g > 0, theta, low), np.where(g < 0, theta, high)
        new = theta + g / slope
        new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
        new = np.where(g == 0, theta, new)
        moved = float(np.abs(new - theta).max(initial=0.0))
        theta = new
        if moved < 1e-9:
            break
    return theta, function(theta)[1]


def _eap(
    right: Floats, n: Floats, a: Floats, d: Floats, mode: Floats, se: Floats, mean: float, sd: float
) -> tuple[Floats, Floats]:
    """Posterior mean and SD on 31 points over the mode ± 6 of its SDs."""
    out = np.empty((2, len(mode)))
    width = max(1, _GRID_CELLS // max(1, len(a) * len(_GRID)))
    for start in range(0, len(mode), width):
        part = slice(start, start + width)
        x = mode[part, None] + se[part, None] * _GRID
        z = np.multiply.outer(a, x) + d[:, None, None]
        q = np.exp(np.minimum(z, 700.0), out=z)
        q += 1
        softplus = np.einsum("ij,ijq->jq", n[:, part], np.log(q, out=q))
        log_post = right[part, None] * x - softplus - 0.5 * ((x - mean) / sd) ** 2
        weight = np.exp(log_post - log_post.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        out[0, part] = (weight * x).sum(axis=1)
        out[1, part] = np.sqrt((weight * (x - out[0, part, None]) ** 2).sum(axis=1))
    return out[0], out[1]


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
    a = state.a
    # d' = d + a m: the same items where θ has another zero.
    var_d = var_d + 2 * a * m * cov + (a * m) ** 2 * var_lam
    cov = cov + a * m * var_lam
    a, d = a * s, state.d + a * m
    if cov_theta is not None:
        t, w, e = (theta - m) / s, result.at.w, result.at.e
        c1 = a[:, None] ** 2 * w * t - (a[:, None] * e if e is not None else 0.0)
        c2 = a[:, None] * w
        first = var_lam[:, None] * c1 + cov[:, None] * c2
        second = cov[:, None] * c1 + var_d[:, None] * c2
        first_c = first @ cov_theta
        var_lam = var_lam + np.einsum("ij,ij->i", first_c, first)
        cov = cov + np.einsum("ij,ij->i", first_c, second)
        var_d = var_d + np.einsum("ij,ij->i", second @ cov_theta, second)
    names = tuple(range(size)) if items is None else items
    return ItemScores(
        names, a, -d / a, d, np.sqrt(var_lam), se_difficulty(a, d, var_lam, var_d, cov),
        np.sqrt(var_d), np.count_nonzero(n, axis=1), (result.converged,) * size,
    )  # fmt: skip


def se_difficulty(a: Floats, d: Floats, var_lam: Floats, var_d: Floats, cov: Floats) -> Floats:
    """Delta-method error of b = −d/a from the covariance of (log a, d).

    Parameters
    ----------
    a, d : arrays, shape (I,)
    var_lam, var_d, cov : arrays, shape (I,)

    Returns
    -------
    array, shape (I,)
        √(var d/a² + b² var λ + 2(b/a) cov(λ, d)) with b = −d/a.
    """
    b = -d / a
    var = var_d / a**2 + b**2 * var_lam + 2 * (b / a) * cov
    return np.asarray(np.sqrt(np.maximum(var, 0.0)), dtype=np.float64)
