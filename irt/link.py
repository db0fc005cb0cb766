"""The link to human minutes: log h = α + β b + ε over items whose human time is known.

With it a difficulty, and so an ability, reads as a task length. Logarithms are natural; what the
link predicts for an item is a median (the mean is exp(τ²/2) times as long).

There are three levels: "ols" and "weighted" regress on the difficulties of a finished fit; "joint" takes
the minutes into the likelihood, so that they also help to place their items (`irt.fit` with
`human_minutes` and `link="joint"`).

The link's own error is not had by regressing anew on every joint draw of b: drawn difficulties
scatter about the estimates as those do about the truth, so the slope is flattened a second time and
95 % intervals of horizons cover .62 to .73. `Link.draw` keeps the slope's estimate with its error
and takes from the draws only the anchors' centroid.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from irt._joint_link import TAU_FLOOR
from irt.data import DataError, Floats
from irt.fitting import Fit, fit
from irt.minutes import read_minutes
from irt.prepare import Excluded

MIN_ANCHORS = 3
_FEW_MODELS = 20  # with 8 the slope came out at .4 to .95 of the truth, with 40 at .92 (simulated)
_NAMED = 5
_MEDIANS = (0.01, 10_000.0)  # outside, minutes are probably hours or seconds
_CAP = 500


@dataclass(frozen=True)
class Prediction:
    """Human minutes of items: the median, and an interval for one item's time.

    Parameters
    ----------
    median, lo, hi : arrays
        Minutes.
    level : float
        Coverage of [lo, hi].
    """

    median: Floats
    lo: Floats
    hi: Floats
    level: float


@dataclass(frozen=True)
class LinkDraws:
    """Draws of the link that belong to joint draws of abilities: log minutes = α* + β* b*.

    Parameters
    ----------
    alpha, beta : arrays, shape (draws,)
    """

    alpha: Floats
    beta: Floats


@dataclass(frozen=True, eq=False)
class Link:
    """A regression of log minutes on difficulty.

    Parameters
    ----------
    level : str
        How it was estimated: a key of `LEVELS`.
    alpha, beta, tau : float
        Intercept, slope (log-minutes a unit of b), SD of ε.
    se_alpha, se_beta : float
    r2 : float
        Share of the (weighted) variance of log minutes explained.
    n_anchors : int
    centroid, mean_log : float
        (Weighted) mean difficulty and mean log minutes of the anchors: the line goes through them.
    se_mean : float
        Error of `mean_log`; it does not correlate with the slope's.
    anchors : tuple
        Keys of the items regressed on.
    weights : array, shape (n_anchors,)
        Of the anchors, summing to 1.
    notes : tuple of str
        What to know before the minutes are believed.
    """

    level: str
    alpha: float
    beta: float
    tau: float
    se_alpha: float
    se_beta: float
    r2: float
    n_anchors: int
    centroid: float
    mean_log: float
    se_mean: float
    anchors: tuple[Hashable, ...]
    weights: Floats
    notes: tuple[str, ...] = ()

    def log_minutes(self, b: Any) -> Floats:
        """Place difficulties (or abilities) on the scale of log human minutes.

        Parameters
        ----------
        b : array or float

        Returns
        -------
        array
            α + β b.
        """
        return np.asarray(self.alpha + self.beta * np.asarray(b, dtype=np.float64))

    def predict(self, b: Any, se_b: Any = 0.0, *, level: float = 0.95) -> Prediction:
        """Predict the human minutes of items.

        Parameters
        ----------
        b, se_b : arrays or floats
            Difficulties and their standard errors.
        level : float
            Coverage of the intervals.

        Returns
        -------
        Prediction
            log ĥ ± z √(τ² + β² se_b² + xᵀΣx), Σ being the covariance of (α, β).
        """
        b, se_b = np.asarray(b, dtype=np.float64), np.asarray(se_b, dtype=np.float64)
        middle = self.log_minutes(b)
        line = self.se_mean**2 + (b - self.centroid) ** 2 * self.se_beta**2
        half = _z(level) * np.sqrt(self.tau**2 + self.beta**2 * se_b**2 + line)
        return Prediction(np.exp(middle), np.exp(middle - half), np.exp(middle + half), level)

    def draw(self, b: Floats, rng: np.random.Generator) -> LinkDraws:
        """Draw the link along with the anchors' difficulties.

        The slope and the height at the centroid are drawn from their regression's posterior
        (Student's t, one variance for both); where the centroid lies comes from the joint draw.

        Parameters
        ----------
        b : array, shape (draws, n_anchors)
            Difficulties of the anchors, from the joint draw that the abilities come from.
        rng : Generator

        Returns
        -------
        LinkDraws
        """
        count, freedom = len(b), self.n_anchors - 2
        spread = np.sqrt(freedom / rng.chisquare(freedom, count))
        beta = self.beta + spread * rng.standard_normal(count) * self.se_beta
        height = self.mean_log + spread * rng.standard_normal(count) * self.se_mean
        return LinkDraws(height - beta * (b @ self.weights), beta)


@dataclass(frozen=True)
class _Line:
    weights: Floats
    tau: float
    scale: float  # variance of an anchor whose weight is 1/n
    notes: tuple[str, ...] = ()


def _slope(b: Floats, y: Floats, w: Floats) -> tuple[float, float]:
    """Slope and intercept of weighted least squares; weights sum to 1."""
    centre, height = float(w @ b), float(w @ y)
    beta = float(w @ ((b - centre) * (y - height)) / (w @ (b - centre) ** 2))
    return beta, height - beta * centre


def _ols(b: Floats, y: Floats, _se_b: Floats | None) -> _Line:
    """Level (a): ordinary least squares on the estimates of b, as BRIDGE does."""
    w = np.full(len(b), 1 / len(b))
    beta, alpha = _slope(b, y, w)
    rest = y - alpha - beta * b
    variance = float(rest @ rest) / (len(b) - 2)
    return _Line(w, float(np.sqrt(variance)), variance)


def _weighted(b: Floats, y: Floats, se_b: Floats | None) -> _Line:
    """Level (b): weights 1/(τ² + β² se_b²), iterated with τ² = mean(ε̂² − β² se_b²), floored."""
    if se_b is None or not np.isfinite(se_b).all():
        raise DataError("level 'weighted' needs the standard error of every anchor's difficulty")
    w = np.full(len(b), 1 / len(b))
    beta, alpha = _slope(b, y, w)
    for _ in range(_CAP):
        rest = y - alpha - beta * b
        tau2 = max(float(np.mean(rest**2 - beta**2 * se_b**2)), TAU_FLOOR**2)
        precision = 1 / (tau2 + beta**2 * se_b**2)
        w, old = precision / precision.sum(), beta
        beta, alpha = _slope(b, y, w)
        if abs(beta - old) <= 1e-12 * abs(beta):
            break
    else:
        raise DataError("the weights of level 'weighted' do not settle: use level='ols'")
    floored = tau2 == TAU_FLOOR**2
    notes = (f"tau stands at its floor of {TAU_FLOOR} log-minutes",) if floored else ()
    return _Line(w, float(np.sqrt(tau2)), len(b) / float(precision.sum()), notes)


Regression = Callable[[Floats, Floats, Floats | None], _Line]
REGRESSIONS: dict[str, Regression] = {"ols": _ols, "weighted": _weighted}
LEVELS = (*REGRESSIONS, "joint")


def regress(
    b: Any, minutes: Any, se_b: Any = None, *, level: str = "ols",
    anchors: tuple[Hashable, ...] | None = None,
) -> Link:  # fmt: skip
    """Regress log minutes on difficulty.

    Parameters
    ----------
    b, minutes : arrays, shape (A,)
        Difficulties and human minutes of the anchors.
    se_b : array, shape (A,), optional
        Standard errors of b; level "weighted" needs them.
    level : str
        "ols" (BRIDGE's) or "weighted" (anchors of uncertain difficulty count less); level "joint"
        is no regression on given difficulties.
    anchors : tuple, optional
        Keys, for messages; by default the rows' numbers from 1.

    Returns
    -------
    Link

    Raises
    ------
    DataError
        For fewer than three anchors, minutes that are missing or not positive (named), or
        difficulties that are not finite or all the same.
    ValueError
        For a level that is not there.

    Examples
    --------
    >>> found = regress([-1.0, 0.0, 1.0, 2.0], [1.0, 4.0, 16.0, 64.0])
    >>> round(float(found.predict(3.0).median)), round(found.r2, 6)
    (256, 1.0)
    """
    if level not in REGRESSIONS:
        raise ValueError(f"no regression {level!r}; there are {', '.join(REGRESSIONS)}")
    b, minutes = np.asarray(b, dtype=np.float64), np.asarray(minutes, dtype=np.float64)
    se_b = None if se_b is None else np.asarray(se_b, dtype=np.float64)
    anchors = anchors or tuple(range(1, len(b) + 1))
    notes = _checked(b, minutes, anchors)
    y = np.log(minutes)
    line = REGRESSIONS[level](b, y, se_b)
    w, count = line.weights, len(b)
    beta, alpha = _slope(b, y, w)
    centre, height = float(w @ b), float(w @ y)
    notes += _void(beta)
    total = float(w @ (y - height) ** 2)
    se_mean = float(np.sqrt(line.scale / count))
    se_beta = se_mean / float(np.sqrt(w @ (b - centre) ** 2))
    return Link(
        level, alpha, beta, line.tau, float(np.hypot(se_mean, centre * se_beta)), se_beta,
        1 - float(w @ (y - alpha - beta * b) ** 2) / total if total > 0 else float("nan"),
        count, centre, height, se_mean, anchors, w, notes + line.notes,
    )  # fmt: skip


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level = {level} is not between 0 and 1")
    return float(ndtri((1 + level) / 2))


def _named(keys: list[Any]) -> str:
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(map(repr, keys[:_NAMED])) + more


def _void(beta: float) -> tuple[str, ...]:
    if beta > 0:
        return ()
    return (f"the slope is {beta:.3g}: harder items took people no longer, a horizon is void",)


def _checked(b: Floats, minutes: Floats, anchors: tuple[Hashable, ...]) -> tuple[str, ...]:
    """Refuse anchors that cannot be regressed on; give the notes on the others."""
    if not len(b) == len(minutes) == len(anchors):
        raise DataError(f"{len(b)} difficulties, {len(minutes)} minutes, {len(anchors)} anchors")
    notes = _checked_minutes(minutes, anchors)
    adrift = [key for key, value in zip(anchors, b, strict=True) if not np.isfinite(value)]
    if adrift:
        raise DataError(f"{len(adrift)} items have no finite difficulty: {_named(adrift)}")
    if np.ptp(b) <= 1e-12 * max(1.0, float(np.abs(b).max())):
        raise DataError(
            f"the {len(b)} items with minutes are all of difficulty {b[0]:.6g}: no slope: "
            f"{_named(list(anchors))}"
        )
    return notes


def _checked_minutes(minutes: Floats, anchors: tuple[Hashable, ...]) -> tuple[str, ...]:
    wrong = [key for key, h in zip(anchors, minutes, strict=True) if not 0 < h < np.inf]
    if wrong:
        raise DataError(
            f"{len(wrong)} items have minutes that are missing or not positive: {_named(wrong)}; "
            "leave out items whose human time is not known"
        )
    if len(anchors) < MIN_ANCHORS:
        raise DataError(
            f"a link needs {MIN_ANCHORS} items with human minutes, here are {len(anchors)}: "
            f"{_named(list(anchors)) or 'none'}"
        )
    median = float(np.median(minutes))
    if _MEDIANS[0] <= median <= _MEDIANS[1]:
        return ()
    return (f"the median of the human minutes is {median:g}: are they in minutes?",)


@dataclass(frozen=True)
class Anchors:
    """The items of a fit whose human minutes are known.

    Parameters
    ----------
    rows : array of int, shape (A,)
        Among the fit's items.
    minutes : dict
        By item, in the fit's order, so that the order of what was given changes no bit.
    notes : tuple of str
    """

    rows: NDArray[np.intp]
    minutes: dict[Hashable, float]
    notes: tuple[str, ...]


def check_level(level: str) -> None:
    """Refuse a level of the link that is not there.

    Raises
    ------
    ValueError
    """
    if level not in LEVELS:
        raise ValueError(f"no link level {level!r}; there are {', '.join(LEVELS)}")


def choose_anchors(minutes: Any, items: Iterable[Hashable], excluded: Excluded) -> Anchors:
    """Find the items of a fit whose minutes are given.

    Parameters
    ----------
    minutes : mapping of item to minutes, or table
    items : iterable
        The items of the fit.
    excluded : Excluded
        What it left out: these are listed in the notes.

    Returns
    -------
    Anchors

    Raises
    ------
    DataError
        For items that the fit does not know, minutes that are missing or not positive, or fewer
        than three anchors.
    """
    given = read_minutes(minutes)
    place = {key: row for row, key in enumerate(items)}
    left_out = {key for key, _ in excluded.items}
    unknown = [key for key in given if key not in place and key not in left_out]
    if unknown:
        raise DataError(f"{len(unknown)} items with minutes are not in the fit: {_named(unknown)}")
    keys = sorted((key for key in given if key in place), key=place.__getitem__)
    known = {key: given[key] for key in keys}
    notes = _checked_minutes(np.array(list(known.values())), tuple(keys))
    lost = [key for key in given if key in left_out]
    if lost:
        notes += (f"{len(lost)} items with minutes were left out of the fit: {_named(lost)}",)
    return Anchors(np.array([place[key] for key in keys], dtype=np.intp), known, notes)


def fit_link(fit: Fit, minutes: Any, *, level: str = "ols") -> Link:
    """Link a fit to human minutes.

    Parameters
    ----------
    fit : Fit
    minutes : mapping of item to minutes, or table
        Of a table the columns `item` and `human_minutes` (or `minutes`) are read. Only the
        items named here are anchors.
    level : str
        "ols" or "weighted", see `regress`; "joint" only where the fit was made with these minutes.

    Returns
    -------
    Link
        Items that the fit left out are listed in its notes.

    Raises
    ------
    DataError
        For items that the fit does not know, given twice, or what `regress` refuses; for level
        "joint" where the minutes were not part of the fit.
    ValueError
        For a level that is not there.
    """
    check_level(level)
    chosen = choose_anchors(minutes, fit.items.item, fit.verdict.excluded)
    known = np.array(list(chosen.minutes.values()))
    if level == "joint":
        within = fit.estimate.link
        if within is None or not (
            np.array_equal(within.rows, chosen.rows)
            and np.array_equal(within.log_minutes, np.log(known))
        ):
            raise DataError(
                "link='joint' is part of the fit, and these minutes were none of this one's: "
                "irt.fit(..., human_minutes=..., link='joint'), or irt.link.joint_fit"
            )
        return link_of_joint(fit, chosen)
    link = regress(
        fit.items.b[chosen.rows], known, fit.items.se_b[chosen.rows], level=level,
        anchors=tuple(chosen.minutes),
    )  # fmt: skip
    # `regress` has the same to say of the minutes.
    return replace(link, notes=tuple(dict.fromkeys((*link.notes, *chosen.notes))))


def joint_fit(found: Fit, minutes: Any) -> Fit:
    """Fit the same answers again, with human minutes in the likelihood (level "joint").

    Parameters
    ----------
    found : Fit
        By method "joint", without fixed items.
    minutes : mapping of item to minutes, or table

    Returns
    -------
    Fit
        With a link of level "joint".

    Raises
    ------
    DataError
        As `fit_link` and `irt.fit` do.
    """
    chosen = choose_anchors(minutes, found.items.item, found.verdict.excluded)
    again = fit(found.responses, found.method, human_minutes=chosen.minutes, link="joint")
    return replace(again, link=link_of_joint(again, chosen))


def link_of_joint(fit: Fit, chosen: Anchors) -> Link:
    """Report the line that was estimated along with abilities and difficulties.

    Its errors are those of a regression on what the answers alone say of the difficulties, weights
    1/(τ² + β² var b): the marginal likelihood's.

    Parameters
    ----------
    fit : Fit
        With minutes in its likelihood.
    chosen : Anchors
        These minutes.

    Returns
    -------
    Link
    """
    line = fit.estimate.link
    assert line is not None
    b, y, count = fit.items.b[line.rows], line.log_minutes, len(line.rows)
    precision = 1 / (line.tau**2 + line.beta**2 * line.var_b)
    w = precision / precision.sum()
    centre, se_mean = float(w @ b), float(precision.sum()) ** -0.5
    rest, total = y - line.alpha - line.beta * b, float(w @ (y - w @ y) ** 2)
    notes: tuple[str, ...] = (
        "the difficulties already know the minutes: R² does not test the link",
    )
    if len(fit.models) < _FEW_MODELS:
        flat = f"with fewer than {_FEW_MODELS} models level 'joint' makes the slope too flat"
        notes += (f"{flat}: prefer 'weighted'",)
    if line.tau == TAU_FLOOR:
        notes += (f"tau stands at its floor of {TAU_FLOOR} log-minutes",)
    se_beta = se_mean / float(np.sqrt(w @ (b - centre) ** 2))
    return Link(
        "joint", line.alpha, line.beta, line.tau, float(np.hypot(se_mean, centre * se_beta)),
        se_beta, 1 - float(w @ rest**2) / total if total > 0 else float("nan"), count, centre,
        line.alpha + line.beta * centre, se_mean, tuple(chosen.minutes), w,
        chosen.notes + _void(line.beta) + notes,
    )  # fmt: skip
