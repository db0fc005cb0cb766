"""`choose`: compare the log-probability of every option (request type ``multiple_choice``)."""

from __future__ import annotations

from harness.backends.base import Capability
from harness.core.errors import UsageError
from harness.solvers.base import Item, Solving


class Choose:
    """Ask for the log-probability of each option; the scorer takes the largest.

    It is another question than asking for an answer in words, so the two never share a column:
    the solver is part of a run's identity.
    """

    needs: tuple[Capability, ...] = ("loglikelihood",)

    def __call__(self, item: Item) -> Solving:
        """Yield the one request and return its output."""
        if not item.continuations:
            raise UsageError("solver 'choose' needs a task with options; use --solver generate")
        return (yield item.compare())
