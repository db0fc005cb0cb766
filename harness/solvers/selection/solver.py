"""`select`: the model chooses one of an item's candidates by a given algorithm; the answer is its index."""

from __future__ import annotations

from collections import Counter
from typing import cast

import msgspec

from harness.backends.base import Capability
from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.types import (
    FinishReason,
    Message,
    Oracle,
    Output,
    Step,
    Usage,
    Work,
    prompt_text,
    text_of,
)
from harness.solvers.base import Item, Solving
from harness.solvers.selection.algorithms import ALGORITHMS
from harness.solvers.selection.base import Bench, Options, Pool, Question

_MOST_TURNS = 256
_UNANSWERED: tuple[FinishReason, ...] = ("error", "timeout", "skipped")


class Select:
    """Choice among stored candidates.

    Parameters
    ----------
    by : str
        `generated_tests`, `split_tester`, `codemonkey`, `s_star` or `llm_judge`.
    maker, seed : str
        As of `harness.solvers.selection.Options`.
    """

    works_locally = True
    needs_environment = True
    needs: tuple[Capability, ...] = ("generate",)

    def __init__(self, by: str = "split_tester", maker: str = "model", seed: str = "0") -> None:
        if by not in ALGORITHMS:
            raise unknown("way of selecting", by, ALGORITHMS)
        self.by = by
        self.options = Options.read(maker, seed)

    def __call__(self, item: Item) -> Solving:
        """Solve one attempt."""
        if item.environment is None:
            raise UsageError("solver 'select' needs a task with candidates; use --solver generate")
        work = Work()
        try:
            with item.environment() as environment:
                if not hasattr(environment, "candidates"):
                    raise UsageError("solver 'select' needs a task with candidates")
                return (yield from self._choose(item, cast("Bench", environment), work))
        except UsageError:
            raise
        except HarnessError as error:
            # No isolation, no engine: the message says what to install.
            return _ended("skipped", work, error=str(error))
        except Exception as error:  # noqa: BLE001  a fault of the harness, transcript and all
            said = f"{type(error).__name__}: {error}"
            return _ended("error", work, error=said)

    def _choose(self, item: Item, bench: Bench, work: Work) -> Solving:
        """Put the algorithm's questions to the model, and give the index that it returns."""
        pool = Pool(key=item.sample.item_id, candidates=bench.candidates)
        algorithm = ALGORITHMS[self.by](pool, bench, self.options)
        first: tuple[Message, ...] | None = None
        told, turn = Counter[str](), 0
        try:
            question = next(algorithm)
            while True:
                first = question.messages if first is None else first
                output = yield _answerable(item, question).ask(question.messages, turn)
                if output.finish_reason in _UNANSWERED:
                    ended = _ended(output.finish_reason, work, error=output.error)
                    ended.error_kind = output.error_kind
                    return ended
                told += _tokens(output.usage)
                # A refusal is a reply without a number.
                refused = output.finish_reason == "content_filter"
                question = algorithm.send("" if refused else output.text)
                asked = text_of(question.messages[-1])
                work.steps.append(Step(turn=turn, kind="told", data={"text": asked}))
                turn += 1
        except StopIteration as stop:
            choice = stop.value
        work.isolation = bench.isolation
        work.summary |= choice.facts | {"index": choice.index, "selector_tokens": dict(told)}
        return Output(
            text=str(choice.index), work=work, prompt=prompt_text(first) if first else None
        )


def _answerable(item: Item, question: Question) -> Item:
    """Let a baseline answer a judge's question: gold by the right candidate where it is shown."""
    oracle = item.oracle
    if oracle is None:
        return item
    right = oracle.gold[0] if oracle.gold else ""
    gold = next((text for k, text in question.picks.items() if str(k) == right), question.none)
    replies = list(question.picks.values()) or [""]
    told = Oracle(
        # The same at every turn: a baseline finds its turn by number.
        gold=(gold,) * _MOST_TURNS, correct=(), guess=lambda rng: rng.choice(replies),
    )  # fmt: skip
    return msgspec.structs.replace(item, oracle=told)


def _tokens(usage: Usage) -> Counter[str]:
    """Count what the backend reports; what it does not is left out, never guessed."""
    known = {"in": usage.tokens_in, "out": usage.tokens_out, "reasoning": usage.tokens_reasoning}
    return Counter({name: n for name, n in known.items() if n is not None})


def _ended(reason: FinishReason, work: Work, error: str | None) -> Output:
    return Output(
        text="", finish_reason=reason, error=error, work=work,
        error_kind="harness" if reason == "error" else None,
    )  # fmt: skip
