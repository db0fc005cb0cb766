"""Limits on what a command may spend: money, time, tokens. They decide when to stop, no answer.

One meter serves all runs of a command: ``--max-cost 5`` is five dollars for the command, not for each
of its tasks. When a limit is reached nothing new is started; what is under way is finished and kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from harness.core.errors import UsageError


class Limits(Struct, frozen=True, kw_only=True):
    """What a command may use; None: as much as it takes.

    Attributes
    ----------
    max_cost : float or None
        US dollars.
    max_time : float or None
        Seconds from the beginning of the first run on; loading its model is not counted.
    max_total_tokens : int or None
        Tokens of prompts and answers together.
    """

    max_cost: float | None = None
    max_time: float | None = None
    max_total_tokens: int | None = None

    def check(self) -> None:
        """Refuse limits that allow nothing.

        Raises
        ------
        UsageError
            For one that is not above 0 (or not a number).
        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"--{name.replace('_', '-')} must be above 0, not {value}")


class Meter:
    """Counts what a command has used.

    Answers of earlier runs cost nothing and are not counted; retries and the judge's calls are.

    Parameters
    ----------
    limits : Limits, optional
    clock : callable
        Seconds that only grow.
    """

    def __init__(
        self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits or Limits()
        self.cost = 0.0
        self.tokens = 0
        self._clock = clock
        self._began: float | None = None
        self._warned = False

    def begin(self) -> None:
        """Start the clock, once."""
        if self._began is None:
            self._began = self._clock()

    def add(self, tokens_in: int | None, tokens_out: int | None, cost: float | None) -> str | None:
        """Count one call.

        Returns
        -------
        str or None
            Once, when a limit cannot be kept since the call did not say what it used: a line for
            the user.
        """
        self.cost += cost or 0.0
        self.tokens += (tokens_in or 0) + (tokens_out or 0)
        blind = []
        if self.limits.max_cost is not None and cost is None:
            blind.append("--max-cost")
        if self.limits.max_total_tokens is not None and None in (tokens_in, tokens_out):
            blind.append("--max-total-tokens")
        if not blind or self._warned:
            return None
        self._warned = True
        return (
            f"{' and '.join(blind)} cannot be kept: a call did not report its tokens, or the model "
            "has no price (see `harness list models`); only what is known is counted"
        )

    def reached(self) -> str | None:
        """Say which limit is reached and how far it got, or None."""
        limits = self.limits
        if limits.max_cost is not None and self.cost >= limits.max_cost:
            return f"--max-cost {limits.max_cost:g} is reached: {self.cost:.4g} USD spent"
        if limits.max_total_tokens is not None and self.tokens >= limits.max_total_tokens:
            return f"--max-total-tokens {limits.max_total_tokens} is reached: {self.tokens} used"
        if limits.max_time is not None and self._began is not None:
            seconds = self._clock() - self._began
            if seconds >= limits.max_time:
                return f"--max-time {limits.max_time:g} is reached: {seconds:.1f} s gone"
        return None
