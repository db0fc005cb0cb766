"""Horizons: the human time of a task that a model solves with a given probability.

H_q = exp(α + β b_q), b_q being a difficulty at which the model solves with probability q. There is
more than one way to say which items are meant; a horizon carries the name of its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from irt.data import DataError, Floats
from irt.fitting import Fit
from irt.link import Link

_WINDOW = 15


def typical_difficulty(theta: Any, a: Any, d: Any, q: float = 0.5) -> Floats:
    """Difficulty that a model solves with probability q on an item of typical discrimination.

    b_q = θ − logit(q)/ā, ā = exp(mean log a); at q = ½ it is θ, whatever the items.

    Parameters
    ----------
    theta : array, shape (..., P)
    a, d : arrays, shape (..., I)
        Discriminations; d is not looked at.
    q : float

    Returns
    -------
    array, shape (..., P)

    Examples
    --------
    >>> float(typical_difficulty(np.array([0.5]), np.array([1.0, 4.0]), np.zeros(2), 0.5)[0])
    0.5
    """
    del d
    typical = np.exp(np.log(np.asarray(a, dtype=np.float64)).mean(axis=-1, keepdims=True))
    return np.asarray(np.asarray(theta, dtype=np.float64) - _logit(q) / typical)


def rolling_difficulty(theta: Any, a: Any, d: Any, q: float = 0.8) -> Floats:
    """BRIDGE's rule: where the rolling chance of success falls through q.

    Items sorted by b; centred rolling mean of the logits over 15 items (cut at the ends, to 8 at
    least, so that BRIDGE's minimum of 5 is always met); its logistic; linear interpolation at each
    falling crossing of q; mean of the crossings. It depends on the pool of items.

    Parameters
    ----------
    theta : array, shape (..., P)
    a, d : arrays, shape (..., I)
        Leading dimensions as those of θ.
    q : float

    Returns
    -------
    array, shape (..., P)
        NaN for a model without a crossing.
    """
    theta, a, d = (np.asarray(x, dtype=np.float64) for x in (theta, a, d))
    if theta.ndim > 1:
        draws = zip(theta, a, d, strict=True)
        return np.stack([rolling_difficulty(*draw, q) for draw in draws])
    b = -d / a
    order = np.argsort(b, kind="stable")
    b = b[order]
    # The mean of a θ + d over a window is a line in θ: no cell is formed before the mean, and the
    # logistic is needed at the crossings only.
    z = np.multiply.outer(theta, _rolling_mean(a[order])) + _rolling_mean(d[order])
    falls = (z[:, :-1] >= _logit(q)) & (z[:, 1:] < _logit(q))
    model, left = np.nonzero(falls)
    before, after = expit(z[model, left]), expit(z[model, left + 1])
    crossing = b[left] + (before - q) / (before - after) * (b[left + 1] - b[left])
    count = np.bincount(model, minlength=len(theta))
    total = np.bincount(model, crossing, minlength=len(theta))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _rolling_mean(x: Floats) -> Floats:
    """Centred mean over the window, cut at the ends."""
    half, index = _WINDOW // 2, np.arange(len(x))
    low, high = np.maximum(0, index - half), np.minimum(len(x), index + half + 1)
    total = np.concatenate([[0.0], np.cumsum(x)])
    return np.asarray((total[high] - total[low]) / (high - low))


def _logit(q: float) -> float:
    if not 0 < q < 1:
        raise ValueError(f"q = {q} is not between 0 and 1")
    return float(np.log(q / (1 - q)))


@dataclass(frozen=True)
class Rule:
    """Which difficulty is meant by "solved with probability q".

    Parameters
    ----------
    label : str
        For tables and figures.
    difficulty : callable
        Of θ, a, d and q.
    """

    label: str
    difficulty: Callable[..., Floats]


RULES = {
    "typical": Rule("item of typical discrimination", typical_difficulty),
    "bridge": Rule("BRIDGE: rolling mean over the items at hand", rolling_difficulty),
}


@dataclass(frozen=True, eq=False)
class Horizons:
    """Horizons of models, in human minutes.

    Parameters
    ----------
    model : tuple
        Names, shape (P,).
    minutes, lo, hi : arrays, shape (P,)
        Estimate and percentile interval over joint draws (NaN where there are none).
    q : float
        Probability of success.
    rule, label : str
        Key and label of the rule.
    level : float
        Coverage of the interval.
    link : str
        Level of the link.
    notes : tuple of str
    log_draws : array, shape (draws, P), or None
        Joint draws of log minutes.
    """

    model: tuple[Hashable, ...]
    minutes: Floats
    lo: Floats
    hi: Floats
    q: float
    rule: str
    label: str
    level: float
    link: str
    notes: tuple[str, ...]
    log_draws: Floats | None

    def to_dicts(self) -> list[dict[str, Any]]:
        """One mapping a model."""
        return [
            {"model": name, "minutes": minutes, "lo": lo, "hi": hi}
            for name, minutes, lo, hi in zip(
                self.model, self.minutes.tolist(), self.lo.tolist(), self.hi.tolist(), strict=True
            )
        ]


def horizons(
    fit: Fit, link: Link, q: float = 0.5, *, rule: str = "typical", level: float = 0.95,
    n: int = 1000, seed: int = 0,
) -> Horizons:  # fmt: skip
    """Read the abilities of a fit as task lengths.

    Parameters
    ----------
    fit : Fit
    link : Link
        Of this fit, see `fit_link`.
    q : float
        Probability of success.
    rule : str
        "typical" (an item of typical discrimination) or "bridge" (rolling mean over all items).
    level : float
        Coverage of the intervals.
    n, seed : int
        Of the joint draws.

    Returns
    -------
    Horizons
        The errors of abilities, items and link are all in the intervals.

    Raises
    ------
    DataError
        For a link that belongs to another fit.
    ValueError
        For a rule that is not there or q or level outside (0, 1).
    """
    if rule not in RULES:
        raise ValueError(f"no horizon rule {rule!r}; there are {', '.join(RULES)}")
    if not 0 < level < 1:
        raise ValueError(f"level = {level} is not between 0 and 1")
    rows = _anchor_rows(fit, link)
    difficulty = RULES[rule].difficulty
    middle = link.log_minutes(difficulty(fit.models.theta, fit.items.a, fit.items.d, q))
    notes = link.notes
    without = [name for name, x in zip(fit.models.model, middle, strict=True) if np.isnan(x)]
    if without:
        some = ", ".join(map(repr, without[:5])) + (", ..." if len(without) > 5 else "")
        notes += (f"{len(without)} models have no crossing of {q:g}: {some}",)
    ends, log_draws = np.full((2, len(middle)), np.nan), None
    if fit.estimate.draw is None:
        notes += (f"method {fit.method!r} gives no joint draws: no intervals",)
    else:
        log_draws = _log_draws(fit, link, rows, partial(difficulty, q=q), n, seed)
        tails = [(1 - level) / 2, (1 + level) / 2]
        lacking = np.isnan(log_draws).mean(axis=0)
        known = (lacking < 1) & ~np.isnan(middle)
        ends[:, known] = np.nanquantile(log_draws[:, known], tails, axis=0)
        partly = int(np.sum(known & (lacking > 0)))
        if partly:
            notes += (f"{partly} intervals leave out draws without a crossing of {q:g}",)
    return Horizons(
        fit.models.model, np.exp(middle), np.exp(ends[0]), np.exp(ends[1]), q, rule,
        RULES[rule].label, level, link.level, notes, log_draws,
    )  # fmt: skip


def _log_draws(
    fit: Fit, link: Link, rows: Any, difficulty: Callable[..., Floats], n: int, seed: int
) -> Floats:
    """Give log H = ȳ + β* (b_q* − b̄*) + e*, all starred from one joint draw."""
    drawn = fit.draws(n, seed)
    # The link's own randomness must not be the abilities': another stream of the same seed.
    rng = np.random.default_rng([seed, 1])
    line = link.draw(-drawn.d[:, rows] / drawn.a[:, rows], rng)
    b_q = difficulty(drawn.theta, drawn.a, drawn.d)
    return np.asarray(line.alpha[:, None] + line.beta[:, None] * b_q)


def _anchor_rows(fit: Fit, link: Link) -> Any:
    place = {key: row for row, key in enumerate(fit.items.item)}
    missing = [key for key in link.anchors if key not in place]
    if missing:
        raise DataError(f"the link belongs to another fit: no item {missing[0]!r} in this one")
    rows = np.array([place[key] for key in link.anchors], dtype=np.intp)
    centroid = float(link.weights @ fit.items.b[rows])
    if abs(centroid - link.centroid) > 1e-9 * max(1.0, abs(link.centroid)):
        raise DataError(
            f"the link belongs to another fit: its anchors have a mean difficulty of "
            f"{link.centroid:.6g}, here it is {centroid:.6g}"
        )
    return rows
