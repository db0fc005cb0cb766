"""What a solver and a strategy are.

A solver is a generator: it yields requests, is sent their outputs, and returns the attempt's
output. The runner collects the requests of many attempts into batches, so an agent loop and a
single question are written the same way and batched alike.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from msgspec import Struct

from harness.backends.base import Capability
from harness.core.environment import Environment
from harness.core.types import (
    ChoiceRequest,
    GenerateRequest,
    Generation,
    Message,
    Oracle,
    Output,
    Request,
    Sample,
    Status,
    Tool,
)

Solving = Generator[Request, Output, Output]


class Item(Struct, frozen=True, kw_only=True):
    """One attempt as a solver sees it; the reference is not part of it.

    Attributes
    ----------
    sample : Sample
        The item without `target`, `correct` and `metadata`.
    messages : tuple of Message
        The rendered prompt.
    generation : Generation
        How to draw.
    seed : int
        The attempt's own seed.
    continuations : tuple of str
        The options whose log-probability may be compared.
    oracle : Oracle or None
        Passed on to baselines, None for every real model.
    environment : callable or None
        Makes the attempt's tools; None where the task has none.
    calls_tools : bool
        The model's service takes tools and gives back calls.
    """

    sample: Sample
    messages: tuple[Message, ...]
    generation: Generation
    seed: int
    continuations: tuple[str, ...] = ()
    oracle: Oracle | None = None
    environment: Callable[[], Environment] | None = None
    calls_tools: bool = False

    def ask(
        self,
        messages: tuple[Message, ...] | None = None,
        turn: int = 0,
        tools: tuple[Tool, ...] = (),
    ) -> GenerateRequest:
        """Make a request for text from this item (or from a longer conversation about it)."""
        return GenerateRequest(
            item_id=self.sample.item_id,
            messages=self.messages if messages is None else messages,
            generation=self.generation,
            seed=self.seed,
            turn=turn,
            oracle=self.oracle,
            tools=tools,
        )

    def compare(self) -> ChoiceRequest:
        """Make a request for the log-probability of every continuation."""
        return ChoiceRequest(
            item_id=self.sample.item_id,
            messages=self.messages,
            continuations=self.continuations,
            seed=self.seed,
            oracle=self.oracle,
        )


class Solver(Protocol):
    """From an item to an output, by way of requests.

    A solver that runs tools between its requests says ``works_locally = True``: it is then moved
    on in a thread, so that it holds up no other. One that cannot do without the task's tools says
    ``needs_environment = True`` besides.
    """

    needs: tuple[Capability, ...]

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt: yield requests, return its output."""
        ...


class Candidate(Struct, frozen=True, kw_only=True):
    """One of an item's draws, as a strategy sees it: never the reference, never the score."""

    text: str
    answer: str | None
    status: Status


class Strategy(Protocol):
    """How many outputs are drawn for a repeat of an item, and which of them is the answer.

    One that runs the draws and asks a model has ``choose`` and ``selector`` instead of being called:
    see `harness.solvers.selection.Selector`.
    """

    n: int

    def __call__(self, candidates: Sequence[Candidate]) -> int:
        """Choose: the index of the draw that stands as the answer."""
        ...
