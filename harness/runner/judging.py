"""A model as judge: what a scorer gets that declares a parameter ``judge``.

The judge is no part of an attempt's key, as no scorer is: another judge judges the same answers again
and no model is called for them. Each verdict carries which judge gave it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from harness.backends.base import Backend, LoadOptions, ModelIdentity, load, preview, require
from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.models import card_of
from harness.core.registry import find
from harness.core.spec import only, parse_spec
from harness.core.task import Scorer, build
from harness.core.types import GenerateRequest, Generation, Message, Output, Sample, Score

NO_JUDGE = "no_judge"
_MAX_TOKENS = 512
_TRIES = 3


class Ask(Protocol):
    """What a scorer sees of its judge."""

    def __call__(self, messages: Sequence[Message], seed: int) -> Output:
        """Ask once; an answer that cannot be read is the scorer's to call ``unscored``."""
        ...


class Call(Struct, frozen=True, kw_only=True):
    """What one call of the judge used; None where that is not known."""

    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    cost_usd: float | None


class Judge:
    """A model that is loaded at the first question, so that planning costs no weights.

    Parameters
    ----------
    spec : str
        Model SPEC.

    Raises
    ------
    UsageError
        An unknown model, or one that cannot generate.
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec
        seen = preview(spec)
        require(seen, "generate", "--judge")
        seen.close()
        self._card = card_of(spec)
        self._backend: Backend | None = None
        self._calls = threading.local()  # a thread that scores asks for its own calls only

    def __call__(self, messages: Sequence[Message], seed: int) -> Output:
        """Ask once, greedily; a fault of the network or engine is tried again.

        Raises
        ------
        RuntimeError
            When no answer comes: a fault of the harness, so `resume` judges again.
        """
        backend = self.open()
        room = backend.context_length
        longest = _MAX_TOKENS if room is None else min(_MAX_TOKENS, room // 2)
        request = GenerateRequest(
            # A mock answers by item: the same question is the same item.
            item_id=sha256_of(list(messages))[:16],
            messages=tuple(messages),
            generation=Generation(max_tokens=longest),
            seed=seed,
        )
        for _ in range(_TRIES):
            output = backend.generate([request])[0]
            self._count(output)
            if output.finish_reason not in ("error", "timeout", "skipped"):
                return output
        raise RuntimeError(f"the judge gave no answer: {output.error or output.finish_reason}")

    def open(self) -> Backend:
        """Load the model now, if it is not loaded."""
        if self._backend is None:
            self._backend = load(self.spec, LoadOptions())
        return self._backend

    def close(self) -> None:
        """Let the model go; safe to call twice."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    @property
    def identity(self) -> ModelIdentity:
        """Exactly which model judges."""
        return self.open().identity

    @property
    def max_connections(self) -> int:
        """How many questions it takes at once (1 unless it answers over HTTP)."""
        limit: int = getattr(self.open(), "max_connections", 1)
        return limit

    def take_calls(self) -> list[Call]:
        """Give the calls made in this thread since it was asked last."""
        calls: list[Call] = self._calls.__dict__.pop("made", [])
        return calls

    def _count(self, output: Output) -> None:
        usage = output.usage
        counts = (usage.tokens_in, usage.tokens_out, usage.tokens_reasoning)
        self._calls.__dict__.setdefault("made", []).append(
            Call(
                tokens_in=counts[0],
                tokens_out=counts[1],
                tokens_reasoning=counts[2],
                cost_usd=self._card.cost(*counts),
            )
        )


def build_scorer(text: str, judge: Ask | None = None) -> Scorer:
    """Make the scorer that a SPEC names, with a judge where its factory has a parameter ``judge``.

    Without a judge, a factory that gives the parameter no default cannot work: every answer is then
    ``unscored``, reason ``no_judge``.

    Raises
    ------
    UsageError
        As `harness.core.task.build` does.
    """
    spec = parse_spec(text)
    factory = find("scorers", spec.name).load()
    parameter = inspect.signature(factory).parameters.get("judge")
    if parameter is None:
        made: Scorer = build("scorers", text)
        return made
    known = set(inspect.signature(factory).parameters) - {"judge"}
    only(spec.args, known, f"{spec.name!r}")
    given: dict[str, Any] = dict(spec.args)
    if judge is not None:
        given["judge"] = judge
    elif parameter.default is inspect.Parameter.empty:
        return _unjudged
    try:
        made = factory(**given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot make {text!r}: {error}") from error
    return made


def wants_judge(text: str) -> bool:
    """Tell whether the scorer that a SPEC names takes a judge."""
    factory = find("scorers", parse_spec(text).name).load()
    return "judge" in inspect.signature(factory).parameters


def _unjudged(sample: Sample, output: Output) -> Score:
    del sample, output
    return Score(
        value=None, status="unscored", reason=NO_JUDGE, explanation="no judge: give --judge SPEC"
    )
