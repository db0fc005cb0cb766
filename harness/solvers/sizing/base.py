"""What sizing solvers share: the bench that counts a budget, and how designs are read and told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, UsageError
from harness.core.types import FinishReason, Output, Request, Step, Work, text_of
from harness.solvers.base import Item, Solving

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```", re.DOTALL)
_UNANSWERED: tuple[FinishReason, ...] = ("error", "timeout", "skipped")
_KEPT = 2000


class Evaluated(Struct, frozen=True, kw_only=True):
    """A design and what came of it.

    Attributes
    ----------
    design : dict of str to float, optional
        None for what was no design.
    metrics : dict of str to float
    met : bool
        All specifications hold.
    worth : float
        The objective J: above 0 exactly where they do.
    reason : str
        Why it is no design, or what could not be measured.
    """

    design: dict[str, float] | None
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    met: bool = False
    worth: float = -1000.0
    reason: str = ""


class SizingBench(Protocol):
    """Where designs are tried: it counts the budget, which no solver can pass.

    Attributes
    ----------
    variables : mapping of str to tuple of float
        The grid of each.
    goals : str
        The specifications in words.
    budget, left : int
    tried : list of Evaluated
        All that used up some of the budget, in order.
    seed : int
        Of item and repeat.
    isolation : str or None
    """

    variables: Mapping[str, tuple[float, ...]]
    goals: str
    budget: int
    tried: list[Evaluated]
    seed: int
    isolation: str | None

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        ...

    def evaluate(self, designs: Sequence[Any]) -> list[Evaluated]:
        """Try designs in order until the budget is used up; one tried before costs nothing.

        What is no design (a text, a wrong name, a value off the grid) uses up one evaluation.
        """
        ...

    def answer(self) -> str:
        """Give what the scorer judges: all designs in order, as they were handed in."""
        ...


class Talk:
    """Questions to the model about one item, each on its own; keeps what was asked and said."""

    def __init__(self, item: Item, work: Work) -> None:
        self.item, self.work = item, work
        self.turn = 0
        self.tokens = {"in": 0, "out": 0}
        self.bad = 0

    def ask(self, text: str) -> Generator[Request, Output, str]:
        """Put the item's prompt with a text after it; a refusal is an empty reply.

        Raises
        ------
        UnansweredError
            No reply came.
        """
        *before, last = self.item.messages
        said = f"{text_of(last)}\n\n{text}" if text else text_of(last)
        messages = (*before, msgspec.structs.replace(last, content=said))
        output = yield self.item.ask(messages, self.turn)
        self.work.steps.append(Step(turn=self.turn, kind="told", data={"text": text}))
        self.turn += 1
        self.tokens["in"] += output.usage.tokens_in or 0
        self.tokens["out"] += output.usage.tokens_out or 0
        if output.finish_reason in _UNANSWERED:
            raise UnansweredError(output)
        return "" if output.finish_reason == "content_filter" else output.text


class UnansweredError(Exception):
    """The model gave no reply: its output says why."""

    def __init__(self, output: Output) -> None:
        super().__init__(output.error or output.finish_reason)
        self.output = output


Solve = Callable[[Item, SizingBench, Talk], Generator[Request, Output, None]]


def on_bench(item: Item, name: str, solve: Solve) -> Solving:
    """Open the item's bench, let `solve` try designs on it, and hand them in.

    What was tried before a fault is kept with it.
    """
    if item.environment is None:
        raise UsageError(f"solver '{name}' needs a task with circuits: ams_sizing/loop or /space")
    work = Work()
    talk = Talk(item, work)
    try:
        with item.environment() as environment:
            if not hasattr(environment, "evaluate"):
                raise UsageError(
                    f"solver '{name}' needs a task with circuits: ams_sizing/loop or /space"
                )
            bench = cast("SizingBench", environment)
            yield from solve(item, bench, talk)
            work.isolation = bench.isolation
            text = bench.answer()
            work.summary |= {
                "evaluations": len(bench.tried), "turns": talk.turn, "bad_replies": talk.bad,
                "tokens": dict(talk.tokens),
            }  # fmt: skip
    except UnansweredError as error:
        ended = _ended(error.output.finish_reason, work, error.output.error)
        ended.error_kind = error.output.error_kind
        return ended
    except UsageError:
        raise
    except HarnessError as error:
        # No isolation, no engine: the message says what to install.
        return _ended("skipped", work, str(error))
    except Exception as error:  # noqa: BLE001  a fault of the harness, transcript and all
        return _ended("error", work, f"{type(error).__name__}: {error}")
    return Output(text=text, work=work)


def read_object(text: str) -> dict[str, Any] | None:
    r"""Read the JSON object of a reply: alone, or in its only fenced block; None where there is none.

    Examples
    --------
    >>> read_object('so:\n```json\n{"a": 1}\n```')
    {'a': 1}
    >>> read_object("no") is None
    True
    """
    blocks = _FENCE.findall(text)
    try:
        found = json.loads(blocks[0] if len(blocks) == 1 else text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_designs(text: str) -> list[Any]:
    """Read the designs of a reply: ``{"designs": [...]}`` or one design; else the text itself, which is none."""
    found = read_object(text)
    if found is None:
        return [text[:_KEPT]]
    if isinstance(found.get("designs"), list):
        return found["designs"] or [text[:_KEPT]]
    return [found]


def table(tried: Sequence[Evaluated]) -> str:
    """Write designs one a line, with what came of them."""
    lines = []
    for number, one in enumerate(tried, 1):
        if one.design is None:
            lines.append(f"{number}. not a design: {one.reason}")
            continue
        sizes = ", ".join(f"{name}={value:g}" for name, value in one.design.items())
        figures = ", ".join(f"{name}={value:.5g}" for name, value in one.metrics.items())
        verdict = "all met" if one.met else one.reason or "not all met"
        lines.append(f"{number}. {sizes} -> {figures or 'no figures'}: {verdict}")
    return "\n".join(lines)


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """Check a solver's parameter.

    Raises
    ------
    ValueError
        It is none of those allowed.
    """
    if value not in allowed:
        raise ValueError(f"{name}={value} is not one of {', '.join(allowed)}")
    return value


def _ended(reason: FinishReason, work: Work, error: str | None) -> Output:
    return Output(
        text="", finish_reason=reason, error=error, work=work,
        error_kind="harness" if reason == "error" else None,
    )  # fmt: skip


__all__ = [
    "Evaluated", "SizingBench", "Talk", "UnansweredError", "choice", "on_bench",
    "read_designs", "read_object", "table",
]  # fmt: skip
