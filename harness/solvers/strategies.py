"""Strategies: how one answer is made of an item's draws."""

from __future__ import annotations

from collections.abc import Sequence

from harness.solvers.base import Candidate


class Sample:
    """`sample`: one draw, scored alone."""

    n = 1

    def __call__(self, candidates: Sequence[Candidate]) -> int:
        """Take the one there is."""
        return 0
