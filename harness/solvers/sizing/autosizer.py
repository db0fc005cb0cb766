"""`autosizer`: the model reduces the search space, an optimiser works in it, a report leads to the next space.

After the solver of the paper (AutoSizer, ICML 2026) in our own words: an outer loop of understanding,
space and report, an inner loop in which the model chooses how to search.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from harness.backends.base import Capability
from harness.core.types import Output, Request
from harness.solvers.base import Item, Solving
from harness.solvers.sizing.base import SizingBench, Talk, choice, on_bench, read_object, table
from harness.solvers.sizing.optimisers import OPTIMISERS
from harness.solvers.sizing.report import report
from harness.solvers.sizing.space import Space, SpaceError

_GAIN = 1e-3
"""A best objective that grows by less than this share of itself is a plateau."""
_MANY = 20
_STEPS = 50
UNDERSTAND = """\
Before any simulation, say how this circuit works. Reply with JSON alone:
{"topology": "…", "variables": {"NAME": "which transistors or parts it sets"}, \
"effects": {"METRIC": "which variables move it, and how"}, "insights": ["…"]}"""
GROUP = """\
There are many variables. Group those that should move together. Reply with JSON alone:
{"groups": [["NAME", "NAME"], ["NAME"]], "reason": "…"}"""
SPACE = """\
Choose the search space for an optimiser that will try {left} designs: about {k} variables with the values \
that are worth trying, all others fixed. Values must be on the grids. Reply with JSON alone:
{{"variables_to_optimize": {{"NAME": [value, value]}}, "variables_fixed": {{"NAME": value}}}}"""
INNER = """\
{left} of {budget} simulations are left. Decide what comes next in the present space. Methods: {methods}.
Reply with JSON alone: {{"action": "search", "method": "NAME", "n_samples": number}}, or {{"action": "stop"}} \
where this space holds nothing better."""


class AutoSizer:
    """Search-space reduction with an optimiser inside.

    Parameters
    ----------
    k : int
        Variables that a space should open.
    opt : {"auto", "tpe", "random", "lhs", "ga", "anneal", "gp"}
        How to search; ``auto``: the model chooses at each step.
    patience : int
        Steps without a better design after which the space is left.
    spaces : int
        Spaces, at most.
    understanding : {"yes", "no"}
        Whether the model is first asked how the circuit works.
    fixed : {"no", "yes"}
        ``yes``: the first space is never changed (for ablations).
    until : {"budget", "met"}
        Whether to go on for a better design once all specifications are met.
    """

    works_locally = True
    needs_environment = True
    needs: tuple[Capability, ...] = ("generate",)

    def __init__(
        self, k: str = "3", opt: str = "auto", patience: str = "2", spaces: str = "3",
        understanding: str = "yes", fixed: str = "no", until: str = "budget",
    ) -> None:  # fmt: skip
        self.k, self.patience, self.spaces = int(k), int(patience), int(spaces)
        if min(self.k, self.patience, self.spaces) < 1:
            raise ValueError("k, patience and spaces must be above 0")
        self.opt = choice("opt", opt, ["auto", *OPTIMISERS])
        self.understanding = choice("understanding", understanding, ("yes", "no")) == "yes"
        self.fixed = choice("fixed", fixed, ("no", "yes")) == "yes"
        self.until = choice("until", until, ("budget", "met"))

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt."""
        return (yield from on_bench(item, "autosizer", self._outer))

    def _outer(
        self, item: Item, bench: SizingBench, talk: Talk
    ) -> Generator[Request, Output, None]:
        del item
        notes = yield from self._understood(bench, talk)
        space, said = Space.whole(bench.variables), ""
        used: list[dict[str, Any]] = []
        for number in range(1 if self.fixed else self.spaces):
            space = yield from self._space(bench, talk, space, f"{notes}{said}")
            bests = yield from self._inner(bench, talk, space, notes, number)
            used.append({"size": space.size, "bests": bests})
            if not bench.left or self._ended(bench):
                break
            said = f"Report on the last space:\n{report(space, bench.tried, bests)}\n\n"
        talk.work.summary["spaces"] = used

    def _understood(self, bench: SizingBench, talk: Talk) -> Generator[Request, Output, str]:
        """Ask how the circuit works; what is said stands before the later questions."""
        if not self.understanding:
            return ""
        notes = (yield from talk.ask(UNDERSTAND)).strip()
        talk.bad += read_object(notes) is None
        if len(bench.variables) > _MANY:
            notes = f"{notes}\n{(yield from talk.ask(f'{notes}{chr(10)}{GROUP}')).strip()}"
        return f"Your notes on the circuit:\n{notes}\n\n"

    def _space(
        self, bench: SizingBench, talk: Talk, last: Space, before: str
    ) -> Generator[Request, Output, Space]:
        """Ask for a space; a reply that is none keeps the last one, and is counted."""
        reply = yield from talk.ask(before + SPACE.format(left=bench.left, k=self.k))
        try:
            return Space.read(read_object(reply), bench.variables)
        except SpaceError:
            talk.bad += 1
            return last

    def _inner(
        self, bench: SizingBench, talk: Talk, space: Space, notes: str, number: int
    ) -> Generator[Request, Output, list[float]]:
        """Search a space step by step until it gets no better; give the best J after each step."""
        bests: list[float] = []
        idle = 0
        usual = max(5, bench.budget // 6)
        for step in range(_STEPS):
            if (
                not bench.left
                or idle >= self.patience
                or len(space.known(bench.tried)) >= space.size
            ):
                break
            method, count = self.opt, usual
            if self.opt == "auto" and space.size > 1:
                chosen = yield from self._chosen(bench, talk, notes, usual)
                if chosen is None:
                    break
                method, count = chosen
            method = "random" if method == "auto" else method
            seed = bench.seed + 1000 * number + step
            space.search(method, bench, min(count, bench.left), seed)
            best = max((one.worth for one in bench.tried), default=-1000.0)
            better = not bests or best - bests[-1] > _GAIN * abs(bests[-1])
            idle = 0 if better else idle + 1
            bests.append(best)
            if self._ended(bench):
                break
        return bests

    def _chosen(
        self, bench: SizingBench, talk: Talk, notes: str, usual: int
    ) -> Generator[Request, Output, tuple[str, int] | None]:
        """Ask how to go on; None to leave the space. An unreadable reply means the usual step by `tpe`."""
        history = f"Tried so far:\n{table(bench.tried)}\n\n" if bench.tried else ""
        question = INNER.format(left=bench.left, budget=bench.budget, methods=", ".join(OPTIMISERS))
        found = read_object((yield from talk.ask(notes + history + question)))
        if found is not None and found.get("action") == "stop":
            return None
        method = (found or {}).get("method")
        count = (found or {}).get("n_samples")
        if method not in OPTIMISERS or type(count) is not int or count < 1:
            talk.bad += 1
            return "tpe", usual
        return str(method), count

    def _ended(self, bench: SizingBench) -> bool:
        return self.until == "met" and any(one.met for one in bench.tried)
