"""What METR's method reports besides its lines: draws, a trend, rates by length of task."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from irt.data import Floats


def horizon_minutes(intercept: Any, slope: Any, q: float = 0.5) -> Floats:
    """Minutes at which a line crosses a probability: 2^((logit q − β0)/β1).

    Parameters
    ----------
    intercept, slope : arrays
        β0 and β1, the latter a unit of log2(minutes); infinite intercepts stand for models without
        a success (−inf) or without a failure (inf).
    q : float

    Returns
    -------
    array
        0 without a success, infinite without a failure, NaN for a level line.

    Raises
    ------
    ValueError
        For a q outside (0, 1).

    Examples
    --------
    >>> horizon_minutes([3.0, -np.inf], [-1.0, -np.inf]).tolist()
    [8.0, 0.0]
    """
    if not 0 < q < 1:
        raise ValueError(f"q = {q} is not between 0 and 1")
    b0, b1 = (np.asarray(x, dtype=np.float64) for x in (intercept, slope))
    line = np.isfinite(b0) & np.isfinite(b1) & (b1 != 0)
    with np.errstate(over="ignore"):  # a nearly level line may cross beyond all numbers
        crossing = np.exp2((np.log(q / (1 - q)) - np.where(line, b0, 0)) / np.where(line, b1, 1))
    ends = np.where(b0 == np.inf, np.inf, np.where(b0 == -np.inf, 0.0, np.nan))
    return np.where(line, crossing, ends)


@dataclass(frozen=True, eq=False)
class MetrDraws:
    """Bootstrap draws of the lines of METR's method.

    Parameters
    ----------
    model : tuple
        Names, shape (P,).
    intercept, slope : arrays, shape (draws, P)
        As in `Metr`; NaN in a draw that holds none of the model's tasks.
    notes : tuple of str
    """

    model: tuple[Hashable, ...]
    intercept: Floats
    slope: Floats
    notes: tuple[str, ...]

    def horizons(self, q: float = 0.5) -> Floats:
        """Horizons in every draw.

        Parameters
        ----------
        q : float

        Returns
        -------
        array, shape (draws, P)
            In minutes, as `horizon_minutes` gives them.
        """
        return horizon_minutes(self.intercept, self.slope, q)

    def interval(self, q: float = 0.5, level: float = 0.95) -> Floats:
        """Percentile interval of the horizons.

        Parameters
        ----------
        q : float
            Probability of success.
        level : float
            Coverage.

        Returns
        -------
        array, shape (2, P)
            Its ends, each the horizon of one draw; NaN where no draw has one.
        """
        return np.stack([percentiles(column, level) for column in self.horizons(q).T], axis=1)


def percentiles(draws: Floats, level: float) -> Floats:
    """Percentile interval of order statistics: nothing is interpolated, a draw may be infinite.

    Parameters
    ----------
    draws : array, shape (n,)
        NaN is left out.
    level : float
        Coverage.

    Returns
    -------
    array, shape (2,)
        NaN where nothing is left.

    Raises
    ------
    ValueError
        For a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"level = {level} is not between 0 and 1")
    known = np.sort(draws[~np.isnan(draws)])
    if not len(known):
        return np.full(2, np.nan)
    # 0.025 of 1,000 draws is the 25th: rounding must not make it the 26th.
    rank = np.ceil(np.round(np.array([(1 - level) / 2, (1 + level) / 2]) * len(known), 6))
    return np.asarray(known[np.maximum(rank.astype(np.intp) - 1, 0)])


@dataclass(frozen=True, eq=False)
class MetrTrend:
    """The line through the horizons of dated models, by days.

    Parameters
    ----------
    model : tuple
        The models on it, by date; shape (F,).
    dates : tuple of date
    minutes : array, shape (F,)
        Their horizons at one half.
    slope, intercept : float
        ln(minutes) a day, and at the first date.
    r2 : float
    lo, hi : float
        Percentile interval of the doubling time, days; NaN without draws. `hi` is infinite where
        there may have been no growth.
    undated, without_horizon : tuple
        Models left out: no release date; a horizon that is infinite or NaN.
    """

    model: tuple[Hashable, ...]
    dates: tuple[date, ...]
    minutes: Floats
    slope: float
    intercept: float
    r2: float
    lo: float
    hi: float
    undated: tuple[Hashable, ...]
    without_horizon: tuple[Hashable, ...]

    @property
    def doubling_days(self) -> float:
        """Days in which the horizon doubles: ln 2/slope, negative where it shrinks."""
        return float(np.log(2)) / self.slope if self.slope else float("inf")


@dataclass(frozen=True, eq=False)
class BinnedRates:
    """Success rates by human minutes.

    Parameters
    ----------
    model : tuple
        Names, shape (P,).
    lower, upper : arrays, shape (B,)
        Ends of the bins in minutes, the lower one in the bin.
    rate : array, shape (B, P)
        Weighted mean score; NaN without a run.
    n_runs, n_items : arrays of float, shape (B, P)
    """

    model: tuple[Hashable, ...]
    lower: Floats
    upper: Floats
    rate: Floats
    n_runs: Floats
    n_items: Floats
