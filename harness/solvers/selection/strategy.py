"""The ways of choosing as strategies: of an item's own draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.core.types import Message
from harness.solvers.selection.algorithms import ALGORITHMS
from harness.solvers.selection.base import Bench, Choice, Options, Pool

Ask = Callable[[tuple[Message, ...]], str]


class Selector:
    """A strategy that runs candidates and asks a model.

    Parameters
    ----------
    by : str
        Name of the algorithm.
    n : int
        Candidates that are drawn.
    selector : str
        SPEC of the model that is asked; the evaluated one by default.
    maker, seed : str
        As of `Options`.

    Attributes
    ----------
    n : int
    selector : str
        Empty: the evaluated model.
    """

    def __init__(
        self, by: str, n: str = "10", selector: str = "", maker: str = "model", seed: str = "0"
    ) -> None:
        if int(n) < 1:
            raise ValueError(f"n={n}: at least one candidate is drawn")
        self.by, self.n, self.selector = by, int(n), selector
        self.options = Options.read(maker, seed)

    def choose(self, candidates: Sequence[str], bench: Bench, ask: Ask, key: str = "") -> Choice:
        """Choose one of the draws.

        Parameters
        ----------
        candidates : sequence of str
            What was drawn, as texts.
        bench : Bench
            Of these candidates, entered.
        ask : callable
            Messages -> the reply's text, empty where none came.
        key : str
            The item.
        """
        algorithm = ALGORITHMS[self.by](
            Pool(key=key, candidates=tuple(candidates)), bench, self.options
        )
        try:
            question = next(algorithm)
            while True:
                question = algorithm.send(ask(question.messages))
        except StopIteration as ended:
            chosen: Choice = ended.value
            return chosen


def generated_tests(
    n: str = "10", selector: str = "", maker: str = "model", seed: str = "0"
) -> Selector:
    """Make the strategy `generated_tests`; see `Selector`."""
    return Selector("generated_tests", n, selector, maker, seed)


def split_tester(
    n: str = "10", selector: str = "", maker: str = "model", seed: str = "0"
) -> Selector:
    """Make the strategy `split_tester`; see `Selector`."""
    return Selector("split_tester", n, selector, maker, seed)


def codemonkey(
    n: str = "10", selector: str = "", maker: str = "model", seed: str = "0"
) -> Selector:
    """Make the strategy `codemonkey`; see `Selector`."""
    return Selector("codemonkey", n, selector, maker, seed)


def s_star(n: str = "10", selector: str = "", maker: str = "model", seed: str = "0") -> Selector:
    """Make the strategy `s_star`; see `Selector`."""
    return Selector("s_star", n, selector, maker, seed)


def llm_judge(n: str = "10", selector: str = "", maker: str = "model", seed: str = "0") -> Selector:
    """Make the strategy `llm_judge`; see `Selector`."""
    return Selector("llm_judge", n, selector, maker, seed)
