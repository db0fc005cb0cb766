"""`optimiser`: a search over the grid without a model, the baseline of every sizing solver."""

from __future__ import annotations

from collections.abc import Generator

from harness.backends.base import Capability
from harness.core.types import Output, Request
from harness.solvers.base import Item, Solving
from harness.solvers.sizing.base import SizingBench, Talk, choice, on_bench
from harness.solvers.sizing.optimisers import OPTIMISERS
from harness.solvers.sizing.space import Space


class Optimise:
    """A search without a model.

    Parameters
    ----------
    opt : {"tpe", "random", "lhs", "ga", "anneal", "gp"}
    """

    works_locally = True
    needs_environment = True
    needs: tuple[Capability, ...] = ()

    def __init__(self, opt: str = "tpe") -> None:
        self.opt = choice("opt", opt, list(OPTIMISERS))

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt; no request is made."""
        return (yield from on_bench(item, "optimiser", self._search))

    def _search(
        self, item: Item, bench: SizingBench, talk: Talk
    ) -> Generator[Request, Output, None]:
        del item, talk
        yield from ()
        Space.whole(bench.variables).search(self.opt, bench, bench.left, bench.seed)
