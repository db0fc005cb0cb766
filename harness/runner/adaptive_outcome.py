"""What an adaptive run has come to: ability, and the score that all items would have given."""

from __future__ import annotations

from msgspec import Struct

METHOD = "irt-adaptive"


class Outcome(Struct, frozen=True, kw_only=True):
    """An adaptive run in numbers, journaled after every batch.

    Attributes
    ----------
    bank, data_hash : str
        The item bank, and the hash of the answers that it was fitted to.
    theta, se : float
        Ability on the bank's scale with its standard error, the bank's own error included.
    score, lo, hi : float or None
        Estimated score over the task's items in the bank (observed where asked, predicted where
        not), with the interval for what running all of them would give; None before an answer.
    level : float
        Coverage of the interval.
    observed : float or None
        Mean over the items asked. They were chosen, so it is no estimate of the score.
    n_asked, n_answered : int
        Items asked, and those whose answer counts.
    n_bank, n_task : int
        The task's items in the bank, and all.
    n_outside : int
        The task's items that the bank does not know, or knows with other content: the estimate
        says nothing of them.
    n_saved : int
        Items of the bank that were not asked.
    target_se : float or None
    max_items : int or None
    stopped : str or None
        ``se``, ``max_items`` or ``exhausted`` (no items left); None while the run is not at its end.
    """

    bank: str
    data_hash: str
    theta: float
    se: float
    score: float | None
    lo: float | None
    hi: float | None
    level: float
    observed: float | None
    n_asked: int
    n_answered: int
    n_bank: int
    n_task: int
    n_outside: int
    n_saved: int
    target_se: float | None
    max_items: int | None
    stopped: str | None

    def line(self) -> str:
        """Say it in a line.

        Returns
        -------
        str
        """
        why = {
            "se": f"stopped at the standard error {self.target_se or 0:g}",
            "max_items": f"stopped at {self.max_items} items",
            "exhausted": "stopped with no items left",
            None: "not at its end",
        }[self.stopped]
        text = (
            f"adaptive, bank {self.bank}: ability {self.theta:+.2f} ± {self.se:.2f} (SE) from "
            f"{self.n_answered} of {self.n_bank} items, {self.n_saved} saved, {why}"
        )
        if self.n_outside:
            text += f"; {self.n_outside} of the task's {self.n_task} items are outside the estimate"
        return text
