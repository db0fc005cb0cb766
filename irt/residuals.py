"""Fit statistics from the residuals of single cells, at given abilities; missing cells drop out.

In all of them p = c + (1 − c) σ(aθ + d), e = k − n p and V = n p (1 − p).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, xlogy

from irt._cells import Cells, Floats, curve, make_cells


@dataclass(frozen=True)
class MeanSquares:
    """Infit and outfit; 1 is expected, more is noise, less is too good to be true.

    Attributes
    ----------
    infit, outfit : array
        Mean squares weighted by V, and unweighted.
    z_infit, z_outfit : array
        Made normal by a cube root (Wilson & Hilferty).
    p_infit, p_outfit : array
        Two-sided p values.
    p_infit_bh, p_outfit_bh : array
        Adjusted over all that were tested (Benjamini–Hochberg).
    """

    infit: Floats
    outfit: Floats
    z_infit: Floats
    z_outfit: Floats
    p_infit: Floats
    p_outfit: Floats
    p_infit_bh: Floats
    p_outfit_bh: Floats


@dataclass(frozen=True)
class ResidualCorrelations:
    """Yen's Q3: correlations of two items' residuals over the models that answered both.

    Attributes
    ----------
    q3 : array, shape (items, items)
        1 on the diagonal, NaN where fewer than 4 models answered both.
    n : array, shape (items, items)
        Models that answered both.
    p, p_bh : array, shape (items, items)
        Two-sided p of the distance from −1/(I − 1), which estimated abilities cause (Fisher's z);
        adjusted over the pairs.
    """

    q3: Floats
    n: Floats
    p: Floats
    p_bh: Floats


@dataclass(frozen=True)
class PersonFit:
    """How likely a model's answers are under its own ability.

    Attributes
    ----------
    l_z : array, shape (models,)
        Standardised log likelihood; far below 0 speaks of a contaminated or broken run.
    p, p_bh : array, shape (models,)
        Lower tail, and adjusted over the models. With estimated abilities the spread of l_z is
        below 1 in short tests, so p is then too large: the test errs on the quiet side.
    """

    l_z: Floats
    p: Floats
    p_bh: Floats


@dataclass(frozen=True)
class Bands:
    """Observed rates of each item in groups of ability, beside what the curve predicts.

    Attributes
    ----------
    theta, n, observed, expected, lo, hi : array, shape (items, groups)
        Mean ability, answers, rate, predicted rate, and the band in which the rate falls with the
        asked probability; NaN where a group has no answers.
    inside : array of bool, shape (items, groups)
        Whether the rate lies in the band (true where there are no answers).
    """

    theta: Floats
    n: Floats
    observed: Floats
    expected: Floats
    lo: Floats
    hi: Floats
    inside: NDArray[np.bool_]


def mean_squares(
    k: ArrayLike,
    n: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    theta: ArrayLike,
    *,
    c: ArrayLike | None = None,
    of: str = "items",
) -> MeanSquares:
    """Return infit Σe²/ΣV and outfit mean(e²/V) of items or models (Wright & Masters 1982).

    Parameters
    ----------
    k, n : array, shape (items, models)
        Right answers and answers; n = 0 where missing.
    a, d : array, shape (items,)
        Slopes and intercepts.
    theta : array, shape (models,)
        Abilities.
    c : array or number, optional
        Lower asymptotes.
    of : {"items", "models"}
        Over what the cells are summed up.

    Returns
    -------
    MeanSquares
        One entry an item or a model.
    """
    if of not in ("items", "models"):
        raise ValueError(f"of = {of!r}: it is 'items' or 'models'")
    cells, p = _cells_and_curve(k, n, a, d, theta, c)
    axis = 1 if of == "items" else 0
    v = cells.n * p * (1 - p)
    seen = v > 0
    square = (cells.k - cells.n * p) ** 2
    # The fourth central moment of a binomial count.
    fourth = v * (1 + 3 * (cells.n - 2) * p * (1 - p))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = seen.sum(axis=axis).astype(np.float64)
        outfit = np.where(seen, square / v, 0).sum(axis=axis) / size
        infit = square.sum(axis=axis) / v.sum(axis=axis)
        var_outfit = np.where(seen, fourth / v**2 - 1, 0).sum(axis=axis) / size**2
        var_infit = (fourth - v * v).sum(axis=axis) / v.sum(axis=axis) ** 2
    z_in, z_out = _cube_root(infit, var_infit), _cube_root(outfit, var_outfit)
    p_in, p_out = 2 * ndtr(-np.abs(z_in)), 2 * ndtr(-np.abs(z_out))
    return MeanSquares(
        infit, outfit, z_in, z_out, p_in, p_out, benjamini_hochberg(p_in), benjamini_hochberg(p_out)
    )


def q3(
    k: ArrayLike,
    n: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    theta: ArrayLike,
    *,
    c: ArrayLike | None = None,
) -> ResidualCorrelations:
    """Return the correlations of residual rates k/n − p between items (Yen 1984).

    Parameters
    ----------
    k, n, a, d, theta, c
        As of `mean_squares`.

    Returns
    -------
    ResidualCorrelations
    """
    cells, p = _cells_and_curve(k, n, a, d, theta, c)
    seen = (cells.n > 0).astype(np.float64)
    r = np.divide(cells.k, cells.n, out=np.zeros_like(p), where=cells.n > 0) - p * seen
    both = seen @ seen.T
    with np.errstate(divide="ignore", invalid="ignore"):
        total = r @ seen.T
        cross = r @ r.T - total * total.T / both
        square = (r * r) @ seen.T - total * total / both
        rho = np.where(both >= 4, cross / np.sqrt(square * square.T), np.nan)
        expected = -1 / (len(p) - 1)
        z = (np.arctanh(np.clip(rho, -1, 1)) - np.arctanh(expected)) * np.sqrt(both - 3)
    tail = 2 * ndtr(-np.abs(z))
    np.fill_diagonal(tail, np.nan)
    upper = np.triu_indices(len(p), 1)
    adjusted = np.full_like(tail, np.nan)
    adjusted[upper] = benjamini_hochberg(tail[upper])
    adjusted.T[upper] = adjusted[upper]
    return ResidualCorrelations(rho, both, tail, adjusted)


def person_fit(
    k: ArrayLike,
    n: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    theta: ArrayLike,
    *,
    c: ArrayLike | None = None,
) -> PersonFit:
    """Return l_z = (ℓ − E)/√V of each model (Drasgow, Levine & Williams 1985).

    ℓ = Σ k ln p + (n − k) ln q, E = Σ n(p ln p + q ln q), V = Σ n p q logit²p.

    Parameters
    ----------
    k, n, a, d, theta, c
        As of `mean_squares`.

    Returns
    -------
    PersonFit
    """
    cells, p = _cells_and_curve(k, n, a, d, theta, c)
    q = 1 - p
    with np.errstate(divide="ignore", invalid="ignore"):
        logit = np.log(p) - np.log(q)
        e = cells.k - cells.n * p
        # ℓ − E = Σ (k − np) logit p: no difference of two large sums.
        off = np.where(e != 0, e * logit, 0).sum(axis=0)
        v = np.where(p * q > 0, cells.n * p * q * logit**2, 0).sum(axis=0)
        l_z = np.where(v > 0, off / np.sqrt(v), np.nan)
    tail = ndtr(l_z)
    return PersonFit(l_z, tail, benjamini_hochberg(tail))


def predictive_bands(
    k: ArrayLike,
    n: ArrayLike,
    a: ArrayLike,
    d: ArrayLike,
    theta: ArrayLike,
    *,
    c: ArrayLike | None = None,
    sd: ArrayLike | None = None,
    groups: int = 5,
    level: float = 0.95,
) -> Bands:
    """Compare each item's rate in groups of ability with the band that its curve predicts.

    Models are cut into groups of equal size by ability. The right answers of a group are a sum of
    counts with mean Σ n p and variance Σ n p(1 − p) + n(n − 1) Var p, p averaged over the error of
    the model's ability; the band is normal, widened by half an answer on each side. An item's own
    answers moved the abilities that the groups are cut by: with few items the rates of the groups
    spread more than the bands say.

    Parameters
    ----------
    k, n, a, d, theta, c
        As of `mean_squares`.
    sd : array, shape (models,), optional
        Standard errors of the abilities; 0 without it.
    groups : int
        Number of groups.
    level : float
        Probability of the band.

    Returns
    -------
    Bands
    """
    cells, p = _cells_and_curve(k, n, a, d, theta, c)
    n_models = p.shape[1]
    if not 1 <= groups <= n_models or not 0 < level < 1:
        raise ValueError(f"groups = {groups}, level = {level}: 1 to {n_models}, and inside (0, 1)")
    ability = np.asarray(theta, dtype=np.float64)
    rank = np.empty(n_models, dtype=int)
    rank[np.argsort(ability, kind="stable")] = np.arange(n_models)
    member = np.eye(groups)[rank * groups // n_models]
    asked, right = cells.n @ member, cells.k @ member
    variance = np.zeros_like(p)
    if sd is not None:
        p, variance = _averaged(cells, a, d, ability, np.asarray(sd, dtype=np.float64))
    mean = (cells.n * p) @ member
    spread = cells.n * p * (1 - p) + cells.n * (cells.n - 1) * variance
    half = ndtri(0.5 + level / 2) * np.sqrt(spread @ member) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (cells.n * ability) @ member / asked
        rate, hoped = right / asked, mean / asked
        lo, hi = np.maximum(mean - half, 0) / asked, np.minimum(mean + half, asked) / asked
    inside = (np.abs(right - mean) <= half) | (asked == 0)
    return Bands(at, asked, rate, hoped, lo, hi, inside)


def log_loss(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> float:
    """Return the mean log loss of an answer, −Σ[k ln p + (n − k) ln(1 − p)]/Σn; cells of any shape.

    Examples
    --------
    >>> round(log_loss([1, 0], [1, 1], [0.5, 0.5]), 4)
    0.6931
    """
    right, asked, rate = (np.asarray(x, dtype=np.float64) for x in (k, n, p))
    loss = -(xlogy(right, rate) + xlogy(asked - right, 1 - rate)).sum()
    return float(loss / asked.sum())


def auc(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> float:
    """Return the probability that a right answer had the higher p than a wrong one, ties half.

    NaN when there are no right or no wrong answers.

    Examples
    --------
    >>> auc([1, 1, 0, 0], [1, 1, 1, 1], [0.9, 0.4, 0.4, 0.1])
    0.875
    """
    right, asked, rate = (np.asarray(x, dtype=np.float64).ravel() for x in (k, n, p))
    values, at = np.unique(rate, return_inverse=True)
    ones = np.bincount(at, right, len(values))
    zeros = np.bincount(at, asked - right, len(values))
    pairs = ones.sum() * zeros.sum()
    if pairs == 0:
        return float("nan")
    below = np.cumsum(zeros) - zeros
    return float((ones * (below + zeros / 2)).sum() / pairs)


def hold_out(
    k: ArrayLike, n: ArrayLike, share: float = 0.1, seed: int = 0
) -> tuple[Floats, Floats, Floats, Floats]:
    """Split the cells at random into k, n to fit and k, n to test; a cell goes whole to one side.

    Parameters
    ----------
    k, n : array, shape (items, models)
        Right answers and answers; n = 0 where missing.
    share : float
        Probability that a cell is held out.
    seed : int
        Seed of the split.

    Returns
    -------
    k_fit, n_fit, k_test, n_test : array, shape (items, models)
    """
    if not 0 < share < 1:
        raise ValueError(f"share = {share} is not between 0 and 1")
    right, asked = (np.asarray(x, dtype=np.float64) for x in (k, n))
    out = np.random.default_rng(seed).random(right.shape) < share
    return right * ~out, asked * ~out, right * out, asked * out


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Return p values adjusted for the false discovery rate (Benjamini & Hochberg 1995).

    NaN stays NaN and is not counted.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, float("nan")]).round(3).tolist()
    [0.03, 0.04, 0.04, nan]
    """
    values = np.asarray(p, dtype=np.float64)
    out = np.full_like(values, np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested])]
    raw = values[order] * len(order) / np.arange(1, len(order) + 1)
    out[order] = np.minimum.accumulate(raw[::-1])[::-1]
    return np.minimum(out, 1)


def _cells_and_curve(
    k: ArrayLike, n: ArrayLike, a: ArrayLike, d: ArrayLike, theta: ArrayLike, c: ArrayLike | None
) -> tuple[Cells, Floats]:
    cells = make_cells(k, n, c=c)
    slopes, intercepts, ability = (np.asarray(x, dtype=np.float64) for x in (a, d, theta))
    shapes = (slopes.shape, intercepts.shape, ability.shape)
    n_items, n_models = cells.k.shape
    if shapes != ((n_items,), (n_items,), (n_models,)):
        raise ValueError(
            f"a, d, theta have shapes {shapes}: they must be ({n_items},), ({n_items},), ({n_models},)"
        )
    return cells, curve(slopes, intercepts, cells.c, ability)


def _averaged(
    cells: Cells, a: ArrayLike, d: ArrayLike, theta: Floats, sd: Floats
) -> tuple[Floats, Floats]:
    """Return mean and variance of p over θ ~ N(theta, sd²), by seven Gauss–Hermite nodes."""
    if sd.shape != theta.shape:
        raise ValueError(f"sd has shape {sd.shape}: it must be {theta.shape}")
    slopes, intercepts = (np.asarray(x, dtype=np.float64) for x in (a, d))
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    mean, square = np.zeros_like(cells.k), np.zeros_like(cells.k)
    for t, w in zip(nodes, weights / weights.sum(), strict=True):
        p = curve(slopes, intercepts, cells.c, theta + t * sd)
        mean += w * p
        square += w * p * p
    return mean, np.maximum(square - mean * mean, 0)


def _cube_root(mean_square: Floats, variance: Floats) -> Floats:
    s = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.cbrt(mean_square) - 1) * 3 / s + s / 3)
