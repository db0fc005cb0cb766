"""Comparing models by joint draws: differences with intervals, and the chance of each rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irt.data import Floats


@dataclass(frozen=True)
class Comparison:
    """How far one model's ability lies above another's.

    Parameters
    ----------
    difference : float
        θ of the first less θ of the second, as fitted.
    se, lo, hi : float
        SD and percentile interval of the difference over joint draws.
    p_better : float
        Share of draws in which the first is above the second.
    level : float
        Coverage of the interval.
    """

    difference: float
    se: float
    lo: float
    hi: float
    p_better: float
    level: float


def compare_draws(one: Floats, two: Floats, difference: float, level: float = 0.95) -> Comparison:
    """Summarise the difference of two columns of the same joint draws.

    Parameters
    ----------
    one, two : arrays, shape (draws,)
        Abilities drawn together: their errors are correlated.
    difference : float
        The fitted difference.
    level : float
        Coverage.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        For a level that is not between 0 and 1.

    Examples
    --------
    >>> found = compare_draws(np.array([1.0, 2.0, 3.0]), np.array([0.0, 3.0, 1.0]), 0.7)
    >>> found.difference, round(found.p_better, 3)
    (0.7, 0.667)
    """
    if not 0 < level < 1:
        raise ValueError(f"level = {level} is not between 0 and 1")
    gap = one - two
    lo, hi = np.quantile(gap, [(1 - level) / 2, (1 + level) / 2])
    better = float(np.mean(gap > 0))
    return Comparison(difference, float(gap.std()), float(lo), float(hi), better, level)


def rank_shares(theta: Floats) -> Floats:
    """Give the share of draws in which each model has each rank.

    Parameters
    ----------
    theta : array, shape (draws, P)

    Returns
    -------
    array, shape (P, P)
        Row a model, column a rank, the best first; rows and columns sum to 1.

    Examples
    --------
    >>> rank_shares(np.array([[0.0, 1.0], [0.5, 0.2], [0.0, 2.0], [0.1, 3.0]])).tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    draws, count = theta.shape
    order = np.argsort(-theta, axis=1, kind="stable")
    shares = np.zeros((count, count))
    np.add.at(shares, (order, np.broadcast_to(np.arange(count), order.shape)), 1 / draws)
    return shares
