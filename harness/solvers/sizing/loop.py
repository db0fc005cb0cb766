"""`sizing_loop`: the model proposes designs and sees what came of all of them, until the budget is used up."""

from __future__ import annotations

from collections.abc import Generator

from harness.backends.base import Capability
from harness.core.types import Output, Request
from harness.solvers.base import Item, Solving
from harness.solvers.sizing.base import (
    SizingBench,
    Talk,
    choice,
    on_bench,
    read_designs,
    read_object,
    table,
)

_IDLE = 2
"""Replies in a row without a new design, after which no further is asked for."""


class SizingLoop:
    """A loop of model and simulator.

    Parameters
    ----------
    per_turn : int
        Designs that one reply may hold; what comes after them is not tried.
    until : {"budget", "met"}
        Whether to go on for a better design once all specifications are met.
    """

    works_locally = True
    needs_environment = True
    needs: tuple[Capability, ...] = ("generate",)

    def __init__(self, per_turn: str = "10", until: str = "budget") -> None:
        self.per_turn = int(per_turn)
        if self.per_turn < 1:
            raise ValueError(f"per_turn must be above 0, not {per_turn}")
        self.until = choice("until", until, ("budget", "met"))

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt."""
        return (yield from on_bench(item, "sizing_loop", self._go_on))

    def _go_on(
        self, item: Item, bench: SizingBench, talk: Talk
    ) -> Generator[Request, Output, None]:
        idle = 0
        while bench.left and idle < _IDLE:
            most = min(self.per_turn, bench.left)
            reply = yield from talk.ask(self._told(bench, most))
            found = read_object(reply)
            if found is not None and found.get("stop") is True and bench.tried:
                return
            before = len(bench.tried)
            results = bench.evaluate(read_designs(reply)[:most])
            talk.bad += sum(one.design is None for one in results)
            idle = idle + 1 if len(bench.tried) == before else 0
            if self.until == "met" and any(one.met for one in bench.tried):
                return

    def _told(self, bench: SizingBench, most: int) -> str:
        history = f"Tried so far:\n{table(bench.tried)}\n\n" if bench.tried else ""
        stop = (
            'Once you cannot do better, reply {"stop": true}. ' if any(one.met for one in bench.tried) else ""
        )  # fmt: skip
        return (
            f"{history}{bench.left} of {bench.budget} simulations are left. {stop}Reply with JSON alone: "
            f'{{"designs": [...]}} with up to {most} sizings, each an object with a value for every variable.'
        )
