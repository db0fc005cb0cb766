"""Scoring on an existing bank: new models with the items fixed. New items: see `irt.new_items`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irt._cells import sigmoid
from irt._nodes import log_terms, score_and_weight
from irt.data import Floats

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


def to_dicts(record: Any, last: str | None = None) -> list[dict[str, Any]]:
    """Turn a record of equally long columns into one mapping a row.

    Parameters
    ----------
    record : dataclass
        Tuples and arrays, all of one length.
    last : str, optional
        The last field that is such a column; the fields after it are no part of the table.

    Returns
    -------
    list of dict
        Plain Python values.
    """
    names = list(vars(record))
    names = names if last is None else names[: names.index(last) + 1]
    columns = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in ((name, getattr(record, name)) for name in names)
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
    c: Floats | None = None,
    fractional: bool = False,
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
    c : array, shape (I,), optional
        Lower asymptotes.
    fractional : bool
        Scores that are no counts: errors by the sandwich, √J/H with J = Σ a² e² and the prior's
        precision; the posterior's SD in the same ratio.

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
        c = None if c is None else c[asked]
    theta, information = mode(k, n, a, d, mean=mean, sd=sd, c=c)
    se = 1 / np.sqrt(information)
    wle, wle_information = _warm(k, n, a, d, theta, c)
    # Without an answer the likelihood says nothing, and neither does its estimate.
    silent = n_items == 0
    wle[silent], wle_information[silent] = np.nan, np.nan
    eap, eap_sd = _eap(k, n, a, d, theta, se, mean, sd, c)
    wle_se = 1 / np.sqrt(wle_information)
    if fractional:
        ratio = se * np.sqrt(_squared_score(k, n, a, d, theta, c) + sd**-2)
        se, eap_sd = se * ratio, eap_sd * ratio
        wle_se = wle_se**2 * np.sqrt(_squared_score(k, n, a, d, wle, c))
    return Scores(names, theta, se, eap, eap_sd, wle, wle_se, n_items)


def _squared_score(
    k: Floats, n: Floats, a: Floats, d: Floats, theta: Floats, c: Floats | None
) -> Floats:
    """Σ of the squared scores of the cells by θ, shape (M,)."""
    z = np.multiply.outer(a, theta) + d[:, None]
    e, _ = score_and_weight(k, n, z, None if c is None else c[:, None])
    return np.asarray((a * a) @ (e * e))


def mode(
    k: Floats, n: Floats, a: Floats, d: Floats, *, mean: float = 0.0, sd: float = 1.0,
    c: Floats | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Mode of the posterior of θ for known items.

    Parameters
    ----------
    k, n : arrays, shape (I, M)
    a, d : arrays, shape (I,)
    mean, sd : float
        The population.
    c : array, shape (I,), optional
        Lower asymptotes: the posterior may then have several modes, and the highest is looked for.

    Returns
    -------
    theta, information : arrays, shape (M,)
        The prior's share of the information included.
    """
    if c is not None:
        return _mode_guessing(k, n, a, d, c, mean, sd)
    right = a @ k

    def slope(theta: Floats) -> tuple[Floats, Floats]:
        p = _probabilities(a, d, theta)
        w = n * p
        g = right - a @ w
        w *= 1 - p
        return g - (theta - mean) / sd**2, (a * a) @ w + sd**-2

    return _roots(slope, np.full(k.shape[1], mean))


def _mode_guessing(
    k: Floats, n: Floats, a: Floats, d: Floats, c: Floats, mean: float, sd: float
) -> tuple[Floats, Floats]:
    x = mean + sd * np.linspace(-6, 6, 121)
    g, h = log_terms(np.multiply.outer(a, x) + d[:, None], c[:, None])
    height = k.T @ g + n.T @ h - 0.5 * ((x - mean) / sd) ** 2

    def slope(theta: Floats) -> tuple[Floats, Floats]:
        e, w = score_and_weight(k, n, np.multiply.outer(a, theta) + d[:, None], c[:, None])
        return a @ e - (theta - mean) / sd**2, (a * a) @ w + sd**-2

    return _roots(slope, x[np.argmax(height, axis=1)])


def _warm(
    k: Floats, n: Floats, a: Floats, d: Floats, start: Floats, c: Floats | None = None
) -> tuple[Floats, Floats]:
    """Warm's weighted likelihood estimate and its information."""
    right = a @ k

    def guessing(theta: Floats) -> tuple[Floats, Floats]:
        assert c is not None
        z = np.multiply.outer(a, theta) + d[:, None]
        e, w = score_and_weight(k, n, z, c[:, None])
        information = np.maximum((a * a) @ w, 1e-300)
        # J = Σ n P′P″/(PQ); P″/P′ = a(1 − 2σ)
        j = (a**3) @ (w * (1 - 2 * sigmoid(z)))
        return a @ e + j / (2 * information), information

    if c is not None:
        return _roots(guessing, start)

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
    k: Floats, n: Floats, a: Floats, d: Floats, mode: Floats, se: Floats, mean: float, sd: float,
    c: Floats | None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Posterior mean and SD on 31 points over the mode ± 6 of its SDs."""
    right = a @ k
    out = np.empty((2, len(mode)))
    width = max(1, _GRID_CELLS // max(1, len(a) * len(_GRID)))
    for start in range(0, len(mode), width):
        part = slice(start, start + width)
        x = mode[part, None] + se[part, None] * _GRID
        z = np.multiply.outer(a, x) + d[:, None, None]
        log_post = -0.5 * ((x - mean) / sd) ** 2
        if c is None:
            q = np.exp(np.minimum(z, 700.0), out=z)
            q += 1
            softplus = np.einsum("ij,ijq->jq", n[:, part], np.log(q, out=q))
            log_post += right[part, None] * x - softplus
        else:
            g, h = log_terms(z, c[:, None, None])
            log_post += np.einsum("ij,ijq->jq", k[:, part], g)
            log_post += np.einsum("ij,ijq->jq", n[:, part], h)
        weight = np.exp(log_post - log_post.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        out[0, part] = (weight * x).sum(axis=1)
        out[1, part] = np.sqrt((weight * (x - out[0, part, None]) ** 2).sum(axis=1))
    return out[0], out[1]


def shifted(var_lam: Floats, cov: Floats, var_d: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """Covariance of (log a, d + shift) where the shift is a m: θ has another zero.

    Parameters
    ----------
    var_lam, cov, var_d : arrays, shape (I,)
        Of (log a, d).
    shift : array, shape (I,)
        a m, which follows a.

    Returns
    -------
    var_d, cov : arrays, shape (I,)
    """
    return var_d + 2 * shift * cov + shift**2 * var_lam, cov + shift * var_lam


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
