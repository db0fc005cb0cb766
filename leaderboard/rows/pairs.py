"""Two subjects on the items that both answered: one row a task, and the items that differ."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from harness.stats.pairs import PairTest, compare_items
from leaderboard.rows.subjects import ItemTable


class Flip(Struct, frozen=True, kw_only=True):
    """An item on which the two are not equal.

    Attributes
    ----------
    better : str
        ``A`` or ``B``.
    """

    task: str
    version: str
    item: str
    category: str | None
    better: str
    mean_a: float
    mean_b: float


class Paired(Struct, frozen=True):
    """A pair of subjects on a task.

    Attributes
    ----------
    test : PairTest
    flips : list of Flip
        Of the shared items, by name.
    only_a, only_b : int
        Items that count for one only; they are left out.
    """

    test: PairTest
    flips: list[Flip]
    only_a: int
    only_b: int

    @property
    def gained(self) -> int:
        """Items on which A is better."""
        return sum(flip.better == "A" for flip in self.flips)

    @property
    def lost(self) -> int:
        """Items on which B is better."""
        return len(self.flips) - self.gained


def paired(task: str, version: str, found: ItemTable, a: int = 0, b: int = 1) -> Paired:
    """Compare two columns of a table of item scores."""
    x, y = found.table.scores[:, a], found.table.scores[:, b]
    there = ~np.isnan(x), ~np.isnan(y)
    # Codes of all items of the task: one by itself has a code of its own.
    test = compare_items(x, y, found.table.clusters.tolist())
    flips = [
        Flip(
            task=task, version=version, item=found.items[i], category=found.categories[i],
            better="A" if x[i] > y[i] else "B", mean_a=float(x[i]), mean_b=float(y[i]),
        )
        for i in np.flatnonzero(there[0] & there[1] & (x != y))
    ]  # fmt: skip
    return Paired(test, flips, int((there[0] & ~there[1]).sum()), int((there[1] & ~there[0]).sum()))
