"""What choosing among candidates stands on: the bench that runs them, and how a choice is told.

An algorithm is a generator: it yields questions to a model, is sent the replies as text, and returns a
`Choice`. It knows nothing of the kind of program that it chooses from; that is the bench's business.
No label of the task reaches it: a bench has the rule in words, the candidates, and an engine.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, Protocol, cast

import msgspec
from msgspec import Struct

from harness.core.environment import Environment
from harness.core.errors import UsageError
from harness.core.types import Message

Verdict = Literal["PASS", "VIOLATION", "ERROR"]
Maker = Literal["model", "items"]
MOST_TESTS = 8
"""Layouts of a suite, and layouts made beyond it."""
_BITS: dict[Verdict, int | None] = {"PASS": 0, "VIOLATION": 1, "ERROR": None}


class Pool(Struct, frozen=True, kw_only=True):
    """What is chosen from.

    Attributes
    ----------
    key : str
        The item: from its hash come the orders in which a judge sees candidates.
    candidates : tuple of str
        The programs in the order drawn; an empty text is a candidate without one.
    """

    key: str
    candidates: tuple[str, ...]


class Case(Struct, frozen=True, kw_only=True):
    """A test input that was made for a choice.

    Attributes
    ----------
    name : str
    data : bytes
        The file.
    expected : mapping of str to int
        1 for each category that its maker says is violated; empty where it said nothing.
    intent : str
        What its maker wants of it.
    """

    name: str
    data: bytes
    expected: Mapping[str, int] = msgspec.field(default_factory=dict)
    intent: str = ""


class Fault(Struct, frozen=True):
    """Why a script made nothing usable, in words that its author is shown."""

    text: str


class Outcome(Struct, frozen=True, kw_only=True):
    """What a candidate said of a test input.

    Attributes
    ----------
    verdict : {"PASS", "VIOLATION", "ERROR"}
        No item, any item in any category, or it failed.
    bits : mapping of str to int
        By category of the task, 1 where it fired; empty for a failure.
    unknown : bool
        It fired in a category that the task does not have.
    """

    verdict: Verdict
    bits: Mapping[str, int] = msgspec.field(default_factory=dict)
    unknown: bool = False

    @property
    def bit(self) -> int | None:
        """1 for a violation, 0 for none, None for a failure: it equals nothing."""
        return _BITS[self.verdict]


class Bench(Environment, Protocol):
    """Where candidates of an item are run; an environment without tools for a model to call.

    Attributes
    ----------
    candidates : tuple of str
        The programs, read out of whatever they came in; empty where there is none.
    isolation : str or None
        The level that was in force.
    """

    candidates: tuple[str, ...]
    isolation: str | None

    def rule(self) -> str:
        """Give what the candidates should do, in words, and documentation where there is some."""
        ...

    def how_to_make(self, n: int) -> str:
        """Say how a script must be written that makes `n` test inputs, one or a whole suite."""
        ...

    def suite(self, script: str, seed: int) -> tuple[Case, ...] | Fault:
        """Run a script that makes a suite: at most `MOST_TESTS` inputs, each with what is expected."""
        ...

    def layout(self, script: str, seed: int) -> Case | Fault:
        """Run a script that makes one test input."""
        ...

    def run(self, which: Sequence[int], cases: Sequence[Case]) -> list[list[Outcome]]:
        """Run candidates on test inputs: a list for each candidate of `which`."""
        ...

    def runs(self) -> int:
        """Give how often a candidate was run on an input; what was known was not run again."""
        ...

    def show(self, case: Case) -> str:
        """Write a test input as text for a judge."""
        ...

    def items(self) -> tuple[Case, ...]:
        """Give inputs of our own with what a right program says of each, in place of a model's.

        The only thing here that knows what is right, so only for tests and upper bounds.

        Raises
        ------
        UsageError
            The bench has none.
        """
        ...


class Options(Struct, frozen=True, kw_only=True):
    """How to choose.

    Attributes
    ----------
    maker : {"model", "items"}
        Who makes test inputs; ``items``: the bench, with the right verdicts, an upper bound.
    seed : int
        Base of all seeds; upstream's is 0.
    """

    maker: Maker = "model"
    seed: int = 0

    @classmethod
    def read(cls, maker: str = "model", seed: str = "0") -> Options:
        """Read options as they stand in a SPEC.

        Raises
        ------
        ValueError
        """
        if maker not in ("model", "items"):
            raise ValueError(f"maker={maker} is not one of model, items")
        return cls(maker=cast("Maker", maker), seed=int(seed))


class Question(Struct, frozen=True, kw_only=True):
    """Something to ask a model.

    Attributes
    ----------
    messages : tuple of Message
    picks : dict of int to str
        For a judge's question: the reply that means each candidate shown. Baselines answer by it.
    none : str
        The reply that means none of them.
    """

    messages: tuple[Message, ...]
    picks: dict[int, str] = msgspec.field(default_factory=dict)
    none: str = ""


class Choice(Struct, frozen=True, kw_only=True):
    """What was chosen.

    Attributes
    ----------
    index : int
        The highest score, the lowest index of equal ones.
    scores : tuple of float
        Of every candidate.
    facts : dict
        How it came to it, JSON-ready: `by`, `maker`, `calls`, `engine_runs`, `selector_unreadable`,
        `orders`, `evidence` and what else the algorithm keeps.
    """

    index: int
    scores: tuple[float, ...]
    facts: dict[str, Any] = msgspec.field(default_factory=dict)


Selecting = Generator[Question, str, Choice]


def no_items() -> UsageError:
    """Make the error of a bench that has no inputs of its own."""
    return UsageError("maker=items needs a task whose right program is known: leave maker out")
