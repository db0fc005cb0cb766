"""Bringing two separate fits onto one scale through common items, and finding items that drifted.

A linear change θ₁ = A θ₂ + B takes a₂ to a₂/A and b₂ to A b₂ + B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.optimize import least_squares

from irt.data import DataError, Floats, Mask

LinkMethod = Literal["mean_mean", "mean_sigma", "haebara", "stocking_lord"]
_METHODS = get_args(LinkMethod)

# Abilities at which characteristic curves are compared, weighted by the normal density.
_POINTS = np.linspace(-4.0, 4.0, 41)
_WEIGHTS = np.exp(-0.5 * _POINTS**2) / np.exp(-0.5 * _POINTS**2).sum()


@dataclass(frozen=True)
class Scale:
    """θ₁ = A θ₂ + B.

    Parameters
    ----------
    slope, intercept : float
        A and B.
    drifted : array of bool, shape (anchors,)
        Anchors left out because their difficulty moved.
    z : array, shape (anchors,)
        Robust z of the differences of difficulty.
    """

    slope: float
    intercept: float
    drifted: Mask
    z: Floats

    def items(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Bring items of the second fit to the scale of the first.

        Parameters
        ----------
        a, b : arrays

        Returns
        -------
        a, b : arrays
        """
        return a / self.slope, self.slope * b + self.intercept

    def abilities(self, theta: Floats) -> Floats:
        """Bring abilities of the second fit to the scale of the first.

        Parameters
        ----------
        theta : array

        Returns
        -------
        array
        """
        return self.slope * theta + self.intercept


def equate(
    a1: Floats,
    b1: Floats,
    a2: Floats,
    b2: Floats,
    method: LinkMethod = "stocking_lord",
    *,
    drift: float | None = 1.645,
) -> Scale:
    """Find the scale change between two fits from their common items.

    mean/mean: A = mean a₂/mean a₁ (Loyd & Hoover 1980); mean/sigma: A = SD b₁/SD b₂ (Marco 1977);
    both B = mean b₁ − A mean b₂. Haebara (1980) makes the items' curves agree, Stocking & Lord (1983)
    the test's curve. Drift is the robust z of b₁ − (A b₂ + B) after mean/sigma on medians:
    (difference − median)/(0.74 IQR) (Huynh & Meyer 2010).

    Parameters
    ----------
    a1, b1, a2, b2 : arrays, shape (anchors,)
        The common items in both fits.
    method : {"stocking_lord", "haebara", "mean_sigma", "mean_mean"}
    drift : float, optional
        Anchors with a larger |z| are left out; None keeps all.

    Returns
    -------
    Scale

    Raises
    ------
    DataError
        For a method that is not there, fewer than two common items, or difficulties without spread.
    """
    if method not in _METHODS:
        raise DataError(f"no method of equating {method!r}; there are {', '.join(_METHODS)}")
    arrays = [np.asarray(x, dtype=np.float64) for x in (a1, b1, a2, b2)]
    if len({x.shape for x in arrays}) > 1 or arrays[0].ndim != 1 or len(arrays[0]) < 2:
        raise DataError("linking needs at least two common items, their a and b from both fits")
    if min(arrays[1].std(), arrays[3].std()) == 0:
        raise DataError("the common items all have one difficulty: the scale cannot be found")
    z = drift_z(arrays[1], arrays[3])
    drifted = np.zeros(len(z), dtype=bool) if drift is None else np.abs(z) > drift
    if np.count_nonzero(~drifted) < 2:
        raise DataError("fewer than two common items are left after those that drifted")
    a1, b1, a2, b2 = (x[~drifted] for x in arrays)
    slope, intercept = _moments(a1, b1, a2, b2, sigma=method != "mean_mean")
    if method in ("haebara", "stocking_lord"):
        whole = method == "stocking_lord"
        slope, intercept = _curves(a1, b1, a2, b2, (slope, intercept), whole_test=whole)
    return Scale(slope, intercept, drifted, z)


def drift_z(b1: Floats, b2: Floats) -> Floats:
    """Robust z of how far each common item moved between two fits.

    Parameters
    ----------
    b1, b2 : arrays, shape (anchors,)

    Returns
    -------
    array, shape (anchors,)
        (difference − median)/(0.74 IQR), the second fit brought to the first by the ratio of the
        quartile ranges; 0 everywhere when nothing moved.
    """
    slope = _iqr(b1) / max(_iqr(b2), 1e-300)
    difference = b1 - slope * b2
    difference = difference - np.median(difference)
    spread = 0.74 * _iqr(difference)
    scale = max(spread, 1e-9 * (1 + float(np.abs(b1).max())))
    return np.asarray(difference / scale, dtype=np.float64)


def _iqr(x: Floats) -> float:
    low, high = np.quantile(x, [0.25, 0.75])
    return float(high - low)


def _moments(a1: Floats, b1: Floats, a2: Floats, b2: Floats, *, sigma: bool) -> tuple[float, float]:
    slope = float(b1.std() / b2.std() if sigma else a2.mean() / a1.mean())
    return slope, float(b1.mean() - slope * b2.mean())


def _curves(
    a1: Floats,
    b1: Floats,
    a2: Floats,
    b2: Floats,
    start: tuple[float, float],
    *,
    whole_test: bool,
) -> tuple[float, float]:
    def curve(a: Floats, b: Floats) -> Floats:
        z = a[:, None] * (_POINTS - b[:, None])
        return np.asarray(1 / (1 + np.exp(-np.clip(z, -700, 700))), dtype=np.float64)

    target = curve(a1, b1)

    def residuals(x: Floats) -> Floats:
        gap = target - curve(a2 / np.exp(x[0]), np.exp(x[0]) * b2 + x[1])
        if whole_test:
            gap = gap.sum(axis=0)
        return np.asarray((gap * np.sqrt(_WEIGHTS)).ravel(), dtype=np.float64)

    # log A keeps the slope positive
    first = [np.log(start[0]), start[1]]
    found = least_squares(residuals, first, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    return float(np.exp(found.x[0])), float(found.x[1])
