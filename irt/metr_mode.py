"""METR's method: horizons from one logistic regression a model, on the log of the human minutes.

Kwa et al. 2025 (arXiv 2503.14499): success regressed on log2(minutes), model by model, with a small
L2 penalty on the slope; H_q = 2^((logit q − β0)/β1). Models have nothing in common but the tasks,
and only tasks with known minutes are used: it is here beside the scale of `irt.fit`, to compare.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from irt._metr_cells import Cells, read_cells, run_weights
from irt._metr_fit import fit_draws, fit_lines
from irt._metr_records import BinnedRates, MetrDraws, MetrTrend, horizon_minutes, percentiles
from irt.data import DataError, Floats, Mask, Scores
from irt.trend import as_date

BIN_EDGES = (1.0, 4.0, 16.0, 64.0, 256.0, 960.0, 2880.0)  # minutes
FLOOR = 1e-3  # minutes: the horizon of a model that solves nothing has no logarithm


def state_of_the_art(minutes: Any, dates: Sequence[date]) -> Mask:
    """Choose the models that nothing released up to their day surpasses; ties are kept.

    Parameters
    ----------
    minutes : array, shape (M,)
        Horizons.
    dates : sequence of date, length M

    Returns
    -------
    array of bool, shape (M,)

    Examples
    --------
    >>> days = [date(2024, 1, 1), date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)]
    >>> state_of_the_art([1.0, 2.0, 2.0, 1.5], days).tolist()
    [False, True, True, False]
    """
    values = np.asarray(minutes, dtype=np.float64)
    ordinal = np.array([day.toordinal() for day in dates])
    best = np.array([np.nanmax(values[ordinal <= day], initial=-np.inf) for day in ordinal])
    return np.asarray(values >= best)


@dataclass(frozen=True, eq=False)
class Metr:
    """Lines and horizons of METR's method.

    Parameters
    ----------
    model : tuple
        Names, sorted; shape (P,).
    intercept, slope : arrays, shape (P,)
        β0 and β1 of logit p = β0 + β1 log2(minutes). Without a success both are −inf, without a
        failure they are inf and −inf.
    quantiles : tuple
        Probabilities of success, length Q.
    minutes : array, shape (Q, P)
        Horizons, see `horizon_minutes`.
    flags : tuple of tuples
        `all_zero`, `all_one`, `rising` (slope above 0: long tasks go better than short ones; the
        crossing stands, but is no horizon), `level` (slope 0: no crossing), `not_converged`.
    weights : str
    regularisation : float
    without_minutes, without_runs : tuple
        Items and models left out.
    cells : Cells
        The counted runs.
    """

    model: tuple[Hashable, ...]
    intercept: Floats
    slope: Floats
    quantiles: tuple[float, ...]
    minutes: Floats
    flags: tuple[tuple[str, ...], ...]
    weights: str
    regularisation: float
    without_minutes: tuple[Hashable, ...]
    without_runs: tuple[Hashable, ...]
    cells: Cells

    def horizons(self, q: float = 0.5) -> Floats:
        """Horizons at any probability of success.

        Parameters
        ----------
        q : float

        Returns
        -------
        array, shape (P,)
            In minutes.
        """
        return horizon_minutes(self.intercept, self.slope, q)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping a model, ready for JSON: `h50`, `h80`, ...; None for what is not finite."""
        items, runs = np.count_nonzero(self.cells.n, axis=0), self.cells.n.sum(axis=0)
        return [
            {
                "model": name,
                "intercept": _finite(self.intercept[j]),
                "slope": _finite(self.slope[j]),
            }
            | {f"h{100 * q:g}": _finite(h) for q, h in zip(self.quantiles, column, strict=True)}
            | {"n_items": int(items[j]), "n_runs": float(runs[j]), "flags": list(self.flags[j])}
            for j, (name, column) in enumerate(zip(self.model, self.minutes.T, strict=True))
        ]

    def bootstrap(self, n: int = 1000, seed: int = 42) -> MetrDraws:
        """Resample families, then the tasks of each, then the runs of each model on each.

        Draw i takes numpy's `default_rng(seed + i)`. Families and tasks are drawn for all models
        at once. A task drawn twice counts twice; weights are not renormalised. A draw without a
        success or without a failure is kept, with a horizon of 0 or infinity; METR drops it.

        Parameters
        ----------
        n, seed : int

        Returns
        -------
        MetrDraws

        Raises
        ------
        DataError
            Where only the sum of several fractional scores is known.
        """
        if self.cells.blurred:
            raise DataError(
                f"{self.cells.blurred} cells give the sum of several fractional scores; "
                "to resample runs, give every run a row of its own (n = 1)"
            )
        weight = run_weights(self.cells, self.weights)
        intercept, slope, failed = fit_draws(self.cells, weight, self.regularisation, n, seed)
        notes = (f"{failed} of {n * len(self.model)} fits did not converge",) if failed else ()
        return MetrDraws(self.model, intercept, slope, notes)

    def trend(
        self, dates: Mapping[Any, Any], *, draws: MetrDraws | None = None, level: float = 0.95,
        frontier: bool = True,
    ) -> MetrTrend:  # fmt: skip
        """Ordinary least squares of ln(H50), at least ln(0.001), on the release date in days.

        Parameters
        ----------
        dates : mapping of model to release date
        draws : MetrDraws, optional
            For the interval; the models on the line stay those of the estimate.
        level : float
            Coverage of the interval.
        frontier : bool
            Only the models of `state_of_the_art`; else all dated ones.

        Returns
        -------
        MetrTrend

        Raises
        ------
        DataError
            For a value that is no date, or fewer than two release dates.
        """
        h50 = self.horizons()
        known = np.isfinite(h50)
        days = {name: as_date(dates[name]) for name in self.model if dates.get(name)}
        used = [j for j, name in enumerate(self.model) if known[j] and name in days]
        used.sort(key=lambda j: days[self.model[j]])
        if frontier:
            best = state_of_the_art(h50[used], [days[self.model[j]] for j in used]).tolist()
            used = [j for j, kept in zip(used, best, strict=True) if kept]
        released = tuple(days[self.model[j]] for j in used)
        if len(set(released)) < 2:
            raise DataError(f"no trend: {len(used)} models with {len(set(released))} release dates")
        x = np.array([(day - released[0]).days for day in released], dtype=np.float64)
        y = np.log(np.maximum(h50[used], FLOOR))
        slope = float(_slopes(x, y[None])[0])
        left = y - y.mean() - slope * (x - x.mean())
        spread = float(np.sum((y - y.mean()) ** 2))
        ends = np.full(2, np.nan)
        if draws is not None:
            ends = _doubling_interval(x, draws.horizons()[:, used], level)
        return MetrTrend(
            tuple(self.model[j] for j in used), released, h50[used], slope,
            float(y.mean() - slope * x.mean()),
            1 - float(left @ left) / spread if spread > 0 else float("nan"),
            float(ends[0]), float(ends[1]),
            tuple(name for name in self.model if name not in days),
            tuple(name for name, good in zip(self.model, known, strict=True) if not good),
        )  # fmt: skip

    def binned(self, edges: Sequence[float] = BIN_EDGES) -> BinnedRates:
        """Weighted success rates by human minutes.

        Parameters
        ----------
        edges : sequence of float
            In minutes, ascending; the first and the last bin are open.

        Returns
        -------
        BinnedRates
        """
        cells = self.cells
        number = np.searchsorted(np.asarray(edges), cells.minutes, side="right")
        member = (number == np.arange(len(edges) + 1)[:, None]).astype(np.float64)
        weight = run_weights(cells, self.weights)
        total = member @ (weight * cells.n)
        with np.errstate(invalid="ignore"):
            rate = member @ (weight * cells.k) / total
        return BinnedRates(
            self.model, np.r_[0.0, edges], np.r_[edges, np.inf], rate,
            member @ cells.n, member @ (cells.n > 0).astype(np.float64),
        )  # fmt: skip


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _slopes(x: Floats, y: Floats) -> Floats:
    """Slope of every row of y on x, over what is finite in it; NaN with fewer than two dates."""
    w = np.isfinite(y).astype(np.float64)
    y = np.where(w > 0, y, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = x - (w @ x / w.sum(axis=1))[:, None]
        spread = np.sum(w * centred**2, axis=1)
        return np.where(spread > 1e-9, np.sum(centred * y, axis=1) / spread, np.nan)


def _doubling_interval(x: Floats, horizons: Floats, level: float) -> Floats:
    slopes = _slopes(x, np.log(np.maximum(horizons, FLOOR)))
    low, high = percentiles(slopes, level)
    # Not to grow, or to shrink, is to take for ever.
    return np.array(
        [np.log(2) / s if s > 0 else (s if np.isnan(s) else np.inf) for s in (high, low)]
    )


def metr(
    responses: Any,
    minutes: Any,
    *,
    weights: str = "equal",
    families: Mapping[Any, Hashable] | None = None,
    regularisation: float = 1e-5,
    quantiles: Sequence[float] = (0.5, 0.8),
    scores: Scores = "counts",
) -> Metr:
    """Estimate horizons by METR's method.

    Parameters
    ----------
    responses : Responses or table
        A table has the columns `model`, `item`, `k` and, optionally, `n`; unlike in `irt.fit` a
        cell may stand in several rows, so single runs and counts of them are the same.
    minutes : mapping of item to human minutes, or table
        Items without minutes are left out and listed.
    weights : {"equal", "invsqrt", "runs"}
        Of a run: 1/(runs of the model on the task); divided by the root of the number of tasks
        that the model ran in the family; 1. They sum to 1 for each model, which makes
        the penalty strong.
    families : mapping of item to family, optional
        For "invsqrt" and the bootstrap; without it every task is a family of its own.
    regularisation : float
        λ of the term ½ λ β1²: scikit-learn's `LogisticRegression(C=1/λ)`. METR published with 0.1.
    quantiles : sequence of float
        Probabilities of success.
    scores : {"counts", "fractional"}
        "fractional" allows real numbers 0 <= k <= n in a table: a score y is a success of weight
        y and a failure of weight 1 − y.

    Returns
    -------
    Metr

    Raises
    ------
    DataError
        For data that cannot be used, with the reason.
    ValueError
        For weights that are not there, or λ that is not above 0.

    Examples
    --------
    >>> minutes = {"short": 1.0, "medium": 8.0, "long": 64.0}
    >>> table = {"model": ["m"] * 3, "item": list(minutes), "k": [9, 5, 1], "n": [10, 10, 10]}
    >>> found = metr(table, minutes)
    >>> found.minutes.round(2).tolist()
    [[8.0], [2.15]]
    """
    if not (regularisation > 0 and np.isfinite(regularisation)):
        raise ValueError(f"regularisation = {regularisation} is not above 0")
    if weights == "invsqrt" and families is None:
        raise DataError("weights 'invsqrt' need the families of the items")
    cells = read_cells(responses, minutes, families, scores)
    weight = run_weights(cells, weights)
    intercept, slope, converged = fit_lines(
        np.log2(cells.minutes), (weight * cells.k).T, (weight * (cells.n - cells.k)).T,
        regularisation,
    )  # fmt: skip
    marks = {
        "all_zero": intercept == -np.inf,
        "all_one": intercept == np.inf,
        "rising": slope > 0,
        "level": slope == 0,
        "not_converged": ~converged,
    }
    flags = tuple(
        tuple(name for name, marked in marks.items() if marked[j]) for j in range(len(slope))
    )
    return Metr(
        cells.models, intercept, slope, tuple(quantiles),
        np.stack([horizon_minutes(intercept, slope, q) for q in quantiles]), flags, weights,
        regularisation, cells.without_minutes, cells.without_runs, cells,
    )  # fmt: skip
