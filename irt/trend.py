"""Frontier and doubling time: how the horizon of the best models grows with their release dates.

The frontier holds each model that beats the best before it by more than a threshold in log-minutes
(0.163, which is BRIDGE's 0.2 in its own unit of b; in log-minutes it depends on no gauge). Ordinary
least squares of its log-minutes on months gives the slope, and ln 2/slope the doubling time. The
slope in log-minutes is that of the link at hand: no slope of another fit stands in here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from irt.data import DataError, Floats, Mask
from irt.fitting import Fit
from irt.horizon import Horizons, horizons
from irt.link import REGRESSIONS, Link, fit_link, joint_fit

THRESHOLD = 0.163


@dataclass(frozen=True, eq=False)
class Trend:
    """The line through a frontier.

    Parameters
    ----------
    model : tuple
        The frontier, by date; shape (F,).
    dates : tuple of date
    log_minutes : array, shape (F,)
    slope : float
        Log-minutes a month.
    intercept : float
        Log-minutes at month 0 (months are counted as in `month_number`).
    """

    model: tuple[Hashable, ...]
    dates: tuple[date, ...]
    log_minutes: Floats
    slope: float
    intercept: float

    @property
    def doubling(self) -> float:
        """Months in which the horizon doubles."""
        return _doubling(self.slope)


@dataclass(frozen=True, eq=False)
class Doubling:
    """A doubling time and where it comes from.

    Parameters
    ----------
    months, lo, hi : float
        Doubling time and its interval; `hi` is infinite where there may have been no growth, both
        ends are NaN for a method without joint draws.
    slope, slope_lo, slope_hi : float
        Log-minutes a month.
    trend : Trend
        The frontier.
    best : tuple
        Model of the longest horizon among the dated ones.
    best_minutes, best_lo, best_hi : float
        Its horizon.
    q : float
    rule, link, interval : str
        Rule of the horizon, level of the link, kind of the interval.
    level : float
        Coverage of the intervals.
    undated : tuple
        Models of the fit without a release date: not in the frontier.
    unknown : tuple
        Names with a date that are not in the fit.
    notes : tuple of str
    """

    months: float
    lo: float
    hi: float
    slope: float
    slope_lo: float
    slope_hi: float
    trend: Trend
    best: Hashable
    best_minutes: float
    best_lo: float
    best_hi: float
    q: float
    rule: str
    link: str
    interval: str
    level: float
    undated: tuple[Hashable, ...]
    unknown: tuple[Hashable, ...]
    notes: tuple[str, ...]


def as_date(value: Any) -> date:
    """Read a release date.

    Parameters
    ----------
    value : date, datetime or str
        Text in ISO 8601, e.g. "2025-05-14".

    Returns
    -------
    date

    Raises
    ------
    DataError
        For anything else.
    """
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise DataError(f"{value!r} is no date: write it as 2025-05-14") from None


def month_number(day: date) -> int:
    """Number a month: 12·year + month − 1; the day does not count.

    Parameters
    ----------
    day : date

    Returns
    -------
    int

    Examples
    --------
    >>> month_number(date(2025, 1, 31)) - month_number(date(2024, 12, 1))
    1
    """
    return 12 * day.year + day.month - 1


def _by_day(dates: Sequence[date]) -> Iterator[Any]:
    """Give the positions of each day's models, day by day."""
    ordinals = np.array([day.toordinal() for day in dates])
    for day in np.unique(ordinals):
        yield np.flatnonzero(ordinals == day)


def frontier(log_minutes: Any, dates: Sequence[date], threshold: float = THRESHOLD) -> Mask:
    """Choose the models that beat the best before them.

    By release date, those of one day in ascending order; a model is kept when it lies more than
    the threshold above the last one kept.

    Parameters
    ----------
    log_minutes : array, shape (..., M)
        Leading dimensions (draws) are chosen from one by one; NaN is never kept.
    dates : sequence of date, length M
    threshold : float
        In log-minutes.

    Returns
    -------
    array of bool, as log_minutes

    Examples
    --------
    >>> days = [date(2024, 1, 1), date(2024, 1, 1), date(2024, 3, 1), date(2024, 4, 1)]
    >>> frontier([2.0, 1.0, 2.1, 3.0], days).tolist()
    [True, True, False, True]
    """
    values = np.asarray(log_minutes, dtype=np.float64)
    rows = np.atleast_2d(values)
    index, best = np.arange(len(rows)), np.full(len(rows), -np.inf)
    kept = np.zeros(rows.shape, dtype=bool)
    for same_day in _by_day(dates):
        ascending = same_day[np.argsort(rows[:, same_day], axis=1, kind="stable")]
        for column in ascending.T:
            value = rows[index, column]
            better = value > best + threshold
            kept[index, column] = better
            best = np.where(better, value, best)
    return kept.reshape(values.shape)


def _lines(log_minutes: Floats, kept: Mask, months: Floats) -> tuple[Floats, Floats]:
    """Slope and height at the mean month of every row; NaN with fewer than two months."""
    w = kept.astype(np.float64)
    y = np.where(kept, log_minutes, 0.0)
    count = w.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = months - (w @ months / count)[:, None]
        spread = np.sum(w * x * x, axis=1)
        slope = np.where(spread > 1e-9, np.sum(x * y, axis=1) / spread, np.nan)
        height = y.sum(axis=1) / count
    return slope, height - slope * (w @ months) / np.maximum(count, 1)


def trend(
    models: Sequence[Hashable], log_minutes: Any, dates: Sequence[date],
    threshold: float = THRESHOLD,
) -> Trend:  # fmt: skip
    """Fit the line through the frontier.

    Parameters
    ----------
    models : sequence, length M
    log_minutes : array, shape (M,)
    dates : sequence of date, length M
    threshold : float
        In log-minutes.

    Returns
    -------
    Trend

    Raises
    ------
    DataError
        When the frontier lies in fewer than two months.
    """
    values = np.asarray(log_minutes, dtype=np.float64)
    if not len(models) == len(values) == len(dates):
        raise DataError(f"{len(models)} models, {len(values)} horizons, {len(dates)} dates")
    flags = frontier(values, dates, threshold).tolist()
    kept = sorted(
        (i for i, flag in enumerate(flags) if flag), key=lambda i: (dates[i], float(values[i]))
    )
    chosen = tuple(dates[i] for i in kept)
    if len({month_number(day) for day in chosen}) < 2:
        raise DataError(
            f"no trend: of {len(models)} dated models {len(kept)} are on the frontier, "
            "and they lie in fewer than two months"
        )
    x = np.array([[month_number(day) for day in chosen]], dtype=np.float64)
    slope, start = _lines(values[None, kept], np.ones_like(x, dtype=bool), x[0])
    return Trend(
        tuple(models[i] for i in kept), chosen, values[kept], float(slope[0]), float(start[0])
    )


def bootstrap(found: Trend, n: int = 2000, seed: int = 42, level: float = 0.95) -> Floats:
    """BRIDGE's interval of the slope: frontier points resampled.

    It leaves out the errors of abilities, items, link and frontier: it is here for comparison.

    Parameters
    ----------
    found : Trend
    n, seed : int
        Resamples; numpy's `default_rng(seed)`.
    level : float
        Coverage.

    Returns
    -------
    array, shape (2,)
        Ends of the slope's interval, log-minutes a month; resamples in one month are left out.
    """
    months = np.array([month_number(day) for day in found.dates], dtype=np.float64)
    rows = np.random.default_rng(seed).integers(0, len(months), (n, len(months)))
    weights = np.zeros((n, len(months)))
    np.add.at(weights, (np.arange(n)[:, None], rows), 1.0)
    x = months - (weights @ months / len(months))[:, None]
    spread = np.sum(weights * x * x, axis=1)
    good = spread > 1e-9
    slopes = np.sum(weights * x * found.log_minutes, axis=1)[good] / spread[good]
    return np.asarray(np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2]))


def _doubling(slope: float) -> float:
    # A frontier rises by its making: a slope of 0 stands for a draw without one.
    return float("inf") if slope == 0 else float(np.log(2)) / slope


def doubling(
    fit: Fit, link: Link, dates: Mapping[Any, Any], q: float = 0.5, *, rule: str = "typical",
    interval: str = "draws", level: float = 0.95, n: int = 1000, seed: int = 0,
) -> Doubling:  # fmt: skip
    """Estimate the doubling time of the horizon at the frontier.

    Parameters
    ----------
    fit : Fit
    link : Link
        Of this fit.
    dates : mapping of model to release date
        Models without one are listed in the result.
    q, rule : float, str
        Which horizon, see `horizons`.
    interval : str
        "draws": joint draws of everything, the frontier chosen anew in each; "bootstrap": BRIDGE's.
    level : float
        Coverage.
    n, seed : int
        Of the joint draws.

    Returns
    -------
    Doubling

    Raises
    ------
    DataError
        For a value that is no date, or a frontier in fewer than two months.
    ValueError
        For an interval that is not there.
    """
    if interval not in ("draws", "bootstrap"):
        raise ValueError(f"no interval {interval!r}; there are draws, bootstrap")
    found = horizons(fit, link, q, rule=rule, level=level, n=n, seed=seed)
    return _from_horizons(found, dates, interval)


def _from_horizons(found: Horizons, dates: Mapping[Any, Any], interval: str) -> Doubling:
    days = {name: as_date(day) for name, day in dates.items() if day is not None and day != ""}
    columns = [j for j, name in enumerate(found.model) if name in days]
    if not columns:
        raise DataError("none of the models has a release date")
    names = tuple(found.model[j] for j in columns)
    released = [days[name] for name in names]
    middle = np.log(found.minutes[columns])
    line = trend(names, middle, released)
    ends, notes = np.full(2, np.nan), found.notes
    if interval == "bootstrap":
        ends = bootstrap(line, level=found.level)
    elif found.log_draws is not None:
        ends, more = _draw_ends(found.log_draws[:, columns], released, found.level)
        notes += more
    best = columns[int(np.nanargmax(middle))]
    present = set(found.model)
    return Doubling(
        line.doubling, _doubling(float(ends[1])), _doubling(float(ends[0])),
        line.slope, float(ends[0]), float(ends[1]), line,
        found.model[best], float(found.minutes[best]), float(found.lo[best]), float(found.hi[best]),
        found.q, found.rule, found.link, interval, found.level,
        tuple(name for name in found.model if name not in days),
        tuple(name for name in days if name not in present), notes,
    )  # fmt: skip


def _draw_ends(
    log_draws: Floats, dates: list[date], level: float
) -> tuple[Floats, tuple[str, ...]]:
    months = np.array([month_number(day) for day in dates], dtype=np.float64)
    slopes = _lines(log_draws, frontier(log_draws, dates), months)[0]
    flat = np.isnan(slopes)
    note = f"in {flat.sum()} of {len(slopes)} draws the frontier lies in one month: no growth there"
    ends = np.quantile(np.where(flat, 0.0, slopes), [(1 - level) / 2, (1 + level) / 2])
    return ends, (note,) if flat.any() else ()


def link_sensitivity(
    fit: Fit,
    minutes: Any,
    dates: Mapping[Any, Any],
    q: float = 0.5,
    *,
    n: int = 1000,
    seed: int = 0,
) -> dict[str, Doubling]:
    """Estimate best horizon and doubling time once for each level of the link.

    Parameters
    ----------
    fit : Fit
    minutes : mapping of item to minutes, or table
    dates : mapping of model to release date
    q : float
    n, seed : int
        Of the joint draws: the same for every level.

    Returns
    -------
    dict
        Level of the link to its result: how far the choice of the level moves the numbers. Level
        "joint" is fitted anew, and only there where the fit is one that it can be part of.
    """
    return {
        level: doubling(one, line, dates, q, n=n, seed=seed)
        for level, (one, line) in all_levels(fit, minutes).items()
    }


def all_levels(fit: Fit, minutes: Any) -> dict[str, tuple[Fit, Link]]:
    """Link a fit at every level.

    Parameters
    ----------
    fit : Fit
        Without minutes in its likelihood.
    minutes : mapping of item to minutes, or table

    Returns
    -------
    dict
        Level to the fit and its link: the fit itself, but for level "joint" another one. That level
        is absent for other methods than "joint", fixed items, and fractional scores.
    """
    found = {level: (fit, fit_link(fit, minutes, level=level)) for level in REGRESSIONS}
    anchored = any("anchor" in flags for flags in fit.items.flags)
    if fit.method == "joint" and not anchored and not fit.responses.fractional:
        again = joint_fit(fit, minutes)
        found["joint"] = (again, fit_link(again, minutes, level="joint"))
    return found
