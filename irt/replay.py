"""Adaptive tests replayed on recorded answers: what asking less would have told."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from irt.adaptive import CatResult, CatRules, Session
from irt.bank import Bank
from irt.data import DataError, Floats, Responses
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
