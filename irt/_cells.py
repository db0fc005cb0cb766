"""The answers that the engines read, checked once, and the item curve that they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def sigmoid(z: Floats) -> Floats:
    """Return σ(z) = 1/(1 + e^−z); the exponential may overflow, the result is then exactly 0."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-z)))


def softplus(z: Floats) -> Floats:
    """Return ln(1 + e^z) without overflow, to an absolute error of one rounding."""
    return np.asarray(np.maximum(z, 0) + np.log(1 + np.exp(-np.abs(z))))


@dataclass(frozen=True)
class Cells:
    """Checked answers: k right of n, items in rows, models in columns.

    Attributes
    ----------
    k, n : array, shape (items, models)
        Right answers and answers; n = 0 where missing.
    counts : array, shape (models,)
        How many models have this pattern of answers.
    c : array, shape (items,)
        Lower asymptote of each item's curve.
    common_n : array, shape (items,), or None
        The number of answers of an item where it is the same for every model: two of four matrix
        products are then saved.
    """

    k: Floats
    n: Floats
    counts: Floats
    c: Floats
    common_n: Floats | None

    @property
    def guessing(self) -> bool:
        """Whether any curve has a lower asymptote."""
        return bool(self.c.any())


def make_cells(
    k: ArrayLike, n: ArrayLike, counts: ArrayLike | None = None, c: ArrayLike | None = None
) -> Cells:
    """Check the answers and lay them out for the engines.

    Parameters
    ----------
    k, n : array, shape (items, models)
        Right answers and answers; n = 0 where missing.
    counts : array, shape (models,), optional
        Multiplicity of each column; one each without it.
    c : array, shape (items,) or a number, optional
        Lower asymptote of each item's curve, 0 without it.

    Raises
    ------
    ValueError
        When shapes disagree, a number is not finite, k is not between 0 and n, a multiplicity is
        not positive, c is not in [0, 1) or an item has no answer at all.
    """
    right = np.ascontiguousarray(k, dtype=np.float64)
    asked = np.ascontiguousarray(n, dtype=np.float64)
    if right.ndim != 2 or right.shape != asked.shape or not right.size:
        raise ValueError(
            f"k has shape {right.shape} and n {asked.shape}: both must be (items, models)"
        )
    n_items, n_models = right.shape
    weight = np.ones(n_models) if counts is None else np.array(counts, dtype=np.float64)
    floor = np.zeros(n_items) if c is None else np.array(c, dtype=np.float64)
    floor = np.broadcast_to(floor, (n_items,)) if floor.ndim == 0 else floor
    if weight.shape != (n_models,) or floor.shape != (n_items,):
        raise ValueError(
            f"counts has shape {weight.shape} and c {floor.shape}: they must be ({n_models},) "
            f"and ({n_items},)"
        )
    bad = ~(np.isfinite(right) & np.isfinite(asked) & (right >= 0) & (right <= asked))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(
            f"item {i}, model {j}: k = {right[i, j]}, n = {asked[i, j]}: k must be between 0 and n"
        )
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError("counts must be positive: leave out patterns that nobody has")
    if not ((floor >= 0) & (floor < 1)).all():
        raise ValueError("c must be in [0, 1)")
    empty = np.flatnonzero(asked.sum(axis=1) == 0)
    if empty.size:
        raise ValueError(f"item {empty[0]} has no answers: leave it out")
    common = asked[:, 0].copy() if (asked == asked[:, :1]).all() else None
    return Cells(right, asked, weight, np.ascontiguousarray(floor), common)


def curve(a: Floats, d: Floats, c: Floats, theta: Floats) -> Floats:
    """Return the probability of a right answer, c + (1 − c) σ(aθ + d).

    Parameters
    ----------
    a, d, c : array, shape (items,)
        Slopes, intercepts, lower asymptotes.
    theta : array, shape (points,)
        Abilities.

    Returns
    -------
    array, shape (items, points)
    """
    s = sigmoid(np.multiply.outer(a, theta) + d[:, None])
    return np.asarray(c[:, None] + (1 - c[:, None]) * s)
