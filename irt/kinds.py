"""Models beside the two-parameter one: a lower asymptote for guessing (3PL), and ordered scores (GRM).

Both are fitted with abilities integrated out (`irt.mml`, `irt.graded`); `irt.fit(..., model="3pl")`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from irt._cells import sigmoid
from irt.data import DataError, Floats, Responses
from irt.methods import Estimate, Request, mean_and_sd
from irt.model import Hyper, State
from irt.score import shifted

KINDS = {
    "2pl": "logit p = a (theta - b) = a theta + d",
    "3pl": "p = c + (1 - c) sigma(a (theta - b)), c = 1/choices",
    "grm": "logit P(score >= m) = a (theta - b_m) = a theta + d_m; b, d are the means over m",
}
"""The item models, each with its parameterisation."""

Choices = int | Mapping[Any, int]


def check_kind(model: str, choices: Choices | None, method: str, anchored: bool) -> None:
    """Refuse a model that is not there, or that cannot be fitted in this way.

    Parameters
    ----------
    model : str
        A key of `KINDS`.
    choices : int or mapping, optional
        Of the 3PL only, and needed there.
    method : str
        The two others are fitted by mml.
    anchored : bool

    Raises
    ------
    DataError
    """
    if model not in KINDS:
        raise DataError(f"no model {model!r}; there are {', '.join(KINDS)}")
    if (choices is None) != (model != "3pl"):
        needs = "needs choices=, the number of options" if model == "3pl" else "takes no choices="
        raise DataError(f"model {model!r} {needs} of its items")
    if model != "2pl" and (method not in ("auto", "mml") or anchored):
        raise DataError(f"model {model!r} is fitted by method='mml', without anchors")


def asymptotes(items: tuple[Hashable, ...], choices: Choices) -> Floats:
    """Give each item's lower asymptote, 1/choices.

    Parameters
    ----------
    items : tuple
    choices : int or mapping of item to int
        Options of every item, or of those that have any: the others are not to be guessed.

    Returns
    -------
    array, shape (I,)

    Raises
    ------
    DataError
        For fewer than two options, or items that are not there.
    """
    given = dict.fromkeys(items, choices) if isinstance(choices, int) else dict(choices)
    wrong = [key for key, n in given.items() if not (isinstance(n, int) and n >= 2)]
    if wrong:
        raise DataError(f"item {wrong[0]!r} has {given[wrong[0]]!r} choices: at least 2 are needed")
    unknown = [key for key in given if key not in set(items)]
    if unknown:
        raise DataError(f"{len(unknown)} items with choices are not here: {unknown[:5]}")
    return np.array([1 / given[key] if key in given else 0.0 for key in items])


def graded(responses: Responses, _request: Request) -> Estimate:
    """Fit the graded response model to k of n points, n the same for all items.

    Parameters
    ----------
    responses : Responses
        Counts: a score from 0 to n, one a cell.

    Returns
    -------
    Estimate
        θ is the posterior mean; a and d of an item are its slope and the mean of its intercepts.

    Raises
    ------
    DataError
        For fractional scores, items of different numbers of levels, or a level never given.
    """
    from irt.graded import grm

    asked = responses.n > 0
    points = np.unique(responses.n[asked])
    if responses.fractional or len(points) > 1:
        raise DataError("model 'grm' takes whole scores k of n points, n the same for all items")
    n_levels = int(points[0]) + 1
    scores = np.where(asked, responses.k, -1)
    for level in range(n_levels):
        never = np.flatnonzero(~(scores == level).any(axis=1))
        if never.size:
            raise DataError(
                f"item {responses.items[never[0]]!r}: score {level} was never given "
                f"({never.size} such items): merge its levels, or leave the items out"
            )
    found = grm(scores, n_levels)
    m, s = mean_and_sd(found.theta)
    # (ln a, d_1, …) to (ln a, mean d) and on to the reported gauge
    mean = np.zeros((2, n_levels))
    mean[0, 0], mean[1, 1:] = 1, 1 / (n_levels - 1)
    cov = mean @ found.cov @ mean.T
    var_d, cov_d = shifted(cov[:, 0, 0], cov[:, 0, 1], cov[:, 1, 1], found.a * m)
    d = found.d.mean(axis=1)
    state = State(found.theta, np.log(found.a), d, Hyper())
    standard = state.standardised(m, s)
    se_ok = bool(np.isfinite(found.cov).all())
    notes = (
        () if se_ok else ("the information matrix is not positive definite: no errors of items",)
    )
    return Estimate(
        standard.theta, found.sd / s, standard.a, standard.d, cov[:, 0, 0], var_d, cov_d, Hyper(),
        m, s, _log_lik(scores, found.a, found.d, found.theta), found.converged, found.iterations,
        found.max_change, float("nan"), se_ok, np.zeros(len(d), dtype=bool), notes, state, standard,
        thresholds=(found.b - m) / s, se_thresholds=found.se_b / s,
    )  # fmt: skip


def _log_lik(scores: Floats, a: Floats, d: Floats, theta: Floats) -> float:
    """Σ log P(score) at the posterior means."""
    from irt._graded_louis import graded_levels

    level, _, _ = graded_levels(np.vstack([np.log(a), d.T]), theta)
    index = np.maximum(scores, 0).astype(np.intp)[:, None]
    chosen = np.take_along_axis(level, index, axis=1)[:, 0]
    return float(np.log(chosen[scores >= 0]).sum())


def share_of_points(thresholds: Floats, a: Floats, theta: Floats) -> Floats:
    """Give the expected score as a share of the points, shape (I, P).

    Parameters
    ----------
    thresholds : array, shape (I, levels − 1)
    a : array, shape (I,)
    theta : array, shape (P,)

    Returns
    -------
    array, shape (I, P)
        Σ_m P(score ≥ m)/(levels − 1).
    """
    z = a[:, None, None] * (theta - thresholds[:, :, None])
    return np.asarray(sigmoid(z).mean(axis=1))
