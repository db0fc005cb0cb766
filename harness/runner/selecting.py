"""Strategies that run an item's draws and ask a model: they get a bench, and somebody to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.core.environment import EnvironmentRequest
from harness.core.keys import seed_of, sha256_of
from harness.core.types import GenerateRequest, Message, Output
from harness.runner.judging import Judge
from harness.runner.plan import Plan, Planned

_TRIES = 3
_UNANSWERED = ("error", "timeout", "skipped")


class Selection:
    """Chooses among draws with a strategy that has ``choose``; see `harness.solvers.selection`.

    Parameters
    ----------
    plan : Plan
        Its strategy names who is asked (``selector=SPEC``); by default it is the evaluated model.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._judge = Judge(plan.strategy.selector) if plan.strategy.selector else None  # type: ignore[attr-defined]

    def __call__(self, planned: Planned, texts: Sequence[str]) -> tuple[int, dict[str, Any]]:
        """Choose one of an item's draws.

        Returns
        -------
        index : int
        facts : dict
            What the choice rests on: scores, calls, runs, tokens.
        """
        plan = self._plan
        sample = plan.samples[planned.index]
        request = EnvironmentRequest(
            level=plan.config.sandbox, seed=plan.config.seed, epoch=plan.repeat_of(planned.epoch)
        )
        assert plan.task.bench is not None  # `Plan` saw to it
        tokens = Counter[str]()

        def ask(messages: tuple[Message, ...]) -> str:
            output = self._ask(messages, planned)
            used = {"tokens_in": output.usage.tokens_in, "tokens_out": output.usage.tokens_out}
            tokens.update({name: n for name, n in used.items() if n is not None})
            # A refusal is a reply without a choice.
            return "" if output.finish_reason == "content_filter" else output.text

        with plan.task.bench(sample, request, tuple(texts)) as bench:
            choice = plan.strategy.choose(texts, bench, ask, key=sample.item_id)  # type: ignore[attr-defined]
        selector = self._judge.spec if self._judge else plan.config.model
        facts = {**choice.facts, "scores": list(choice.scores), "selector": selector, **tokens}
        return choice.index, facts

    def close(self) -> None:
        """Let the selector's model go."""
        if self._judge is not None:
            self._judge.close()

    def _ask(self, messages: tuple[Message, ...], planned: Planned) -> Output:
        if self._judge is not None:
            return self._judge(messages, self._plan.config.seed)
        asked = sha256_of([planned.key, list(messages)])
        request = GenerateRequest(
            item_id=asked[:16], messages=messages, generation=self._plan.generation,
            seed=seed_of(asked),
        )  # fmt: skip
        for _ in range(_TRIES):
            output = self._plan.backend.generate([request])[0]
            if output.finish_reason not in _UNANSWERED:
                return output
        raise RuntimeError(f"the selector gave no answer: {output.error or output.finish_reason}")
