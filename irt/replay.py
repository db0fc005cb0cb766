"""Adaptive tests replayed on recorded answers: what asking less would have told."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irt.adaptive import CatResult, CatRules, Session
from irt.bank import Bank
from irt.data import DataError, Floats, Responses
from irt.fitting import Fit
from irt.fitting import fit as fit_again
from irt.score import mode


@dataclass(frozen=True)
class Simulated:
    """An adaptive test replayed on recorded answers.

    Parameters
    ----------
    model : hashable
    asked : tuple
        Keys in the order asked.
    result : CatResult
        The score is over the items that the model has answers to.
    theta_all, score_all : float
        Ability (mode) and score from all of its answers.
    """

    model: Hashable
    asked: tuple[Hashable, ...]
    result: CatResult
    theta_all: float
    score_all: float

    @property
    def score_z(self) -> float:
        """Error of the estimated score in units of its stated error; NaN where nothing was unseen."""
        r = self.result
        return (r.score - self.score_all) / r.score_se if r.score_se > 0 else float("nan")


def simulate(bank: Bank, responses: Any, rules: CatRules | None = None) -> tuple[Simulated, ...]:
    """Replay an adaptive test for models whose answers are known.

    Parameters
    ----------
    bank : Bank
        Fitted without these models, or the replay flatters it.
    responses : Responses or long table
        Only items that a model answered are offered to it.
    rules : CatRules, optional

    Returns
    -------
    tuple of Simulated
        One a model.

    Raises
    ------
    DataError
        For answers to items that the bank does not have, or a model without answers.
    """
    data = responses if isinstance(responses, Responses) else Responses.from_table(responses)
    bank.check(data.items)
    k, n = data.on_items(bank.item)
    return tuple(
        _replay(bank, name, k[:, j], n[:, j], rules or CatRules())
        for j, name in enumerate(data.models)
    )


def widening(
    fit: Fit, *, asked: int = 25, folds: int = 4, models: int = 80, seed: int = 0
) -> float:
    """Measure how much larger errors of a score are than the model says.

    Models are left out in turn, the items fitted without them, and their tests replayed: √ of the
    mean of `Simulated.score_z`², at least 1. Answers that hang together beyond ability make it more.

    Parameters
    ----------
    fit : Fit
    asked : int
        Length of the tests; at most half of the items that a model answered.
    folds : int
    models : int
        Tests replayed at the most.
    seed : int
        Of the partition.

    Returns
    -------
    float
        1 where there are fewer than two models a fold, or nothing was left to be told.
    """
    data = fit.responses
    n_models = len(data.models)
    if n_models < 2 * folds:
        return 1.0
    fold = np.random.default_rng(seed).permutation(n_models) % folds
    every = np.ones(len(data.items), dtype=bool)
    z: list[float] = []
    for left_out in range(folds):
        out = fold == left_out
        try:
            bank = Bank.of(fit_again(data.subset(every, ~out), fit.method))
        except DataError:  # too little is left to place anything
            continue
        k, n = data.subset(every, out).on_items(bank.item)
        for j in np.flatnonzero((n > 0).sum(axis=0) >= 2)[: -(-models // folds)]:
            most = min(asked, int(np.count_nonzero(n[:, j])) // 2)
            z.append(_replay(bank, j, k[:, j], n[:, j], CatRules(max_items=most)).score_z)
    found = np.array([one for one in z if np.isfinite(one)])
    return max(1.0, float(np.sqrt(np.mean(found**2)))) if len(found) else 1.0


def _replay(bank: Bank, model: Hashable, k: Floats, n: Floats, rules: CatRules) -> Simulated:
    answered = n > 0
    if not answered.any():
        raise DataError(f"model {model!r} has no answer to an item of the bank")
    part, k, n = bank.subset(answered), k[answered], n[answered]
    session = Session(part, rules, n)
    asked: list[Hashable] = []
    while batch := session.next_batch():
        for key in batch:
            row = part.place[key]
            session.record(key, k[row], n[row])
            asked.append(key)
    theta, _ = mode(k[:, None], n[:, None], part.a, part.d, mean=part.mean, sd=part.sd)
    return Simulated(model, tuple(asked), session.result(), float(theta[0]), float(np.mean(k / n)))
