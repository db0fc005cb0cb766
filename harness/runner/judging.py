"""Models as judges: what a scorer gets that declares a parameter ``judge`` or ``judges``.

A judge is no part of an attempt's key, as no scorer is: another judge judges the same answers again
and no model is called for them. Each verdict carries which judges gave it.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from harness.backends.base import Backend, LoadOptions, ModelIdentity, load, preview, require
from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.models import card_of
from harness.core.registry import find
from harness.core.spec import only, parse_model, parse_spec
from harness.core.task import Scorer
from harness.core.types import GenerateRequest, Generation, Message, Output, Sample, Score

NO_JUDGE = "no_judge"
_MAX_TOKENS = 512
_TRIES = 3
# A comma parts two SPECs where another ``backend:`` follows; any other belongs to an option's value.
_BETWEEN = re.compile(r",\s*(?=[A-Za-z][\w.-]*:(?!//))")


class Ask(Protocol):
    """What a scorer sees of a judge."""

    @property
    def spec(self) -> str:
        """Its model SPEC."""
        ...

    def __call__(self, messages: Sequence[Message], seed: int) -> Output:
        """Ask once; an answer that cannot be read is the scorer's to call ``unscored``."""
        ...


class Call(Struct, frozen=True, kw_only=True):
    """Which judge was called, by its SPEC, and what the call used; None where that is not known."""

    judge: str
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    cost_usd: float | None


class Judge:
    """A model that is loaded at the first question, so that planning costs no weights.

    Parameters
    ----------
    spec : str
        Model SPEC. Beside the backend's own options it may have ``temperature=T`` (0 by default: the
        same question then has the same answer, whatever the seed) and ``max_tokens=N`` (512).

    Raises
    ------
    UsageError
        An unknown model, one that cannot generate, or an option that cannot be read.
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec
        model = parse_model(spec)
        self._asked = {k: v for k, v in model.args.items() if k in ("temperature", "max_tokens")}
        self._drawing = _drawing(self._asked, spec)
        if self._asked:
            rest = {k: v for k, v in model.args.items() if k not in self._asked}
            self._model = str(msgspec.structs.replace(model, args=rest))
        else:
            self._model = spec
        seen = preview(self._model)
        require(seen, "generate", "--judge")
        seen.close()
        self._card = card_of(self._model)
        self._backend: Backend | None = None
        self._calls = threading.local()  # a thread that scores asks for its own calls only

    def __call__(self, messages: Sequence[Message], seed: int) -> Output:
        """Ask once; a fault of the network or engine is tried again.

        Raises
        ------
        RuntimeError
            When no answer comes: a fault of the harness, so `resume` judges again.
        """
        backend = self.open()
        room = backend.context_length
        longest = self._drawing.max_tokens
        if room is not None:
            longest = min(longest, room // 2)
        request = GenerateRequest(
            # A mock answers by item: the same question is the same item.
            item_id=sha256_of(list(messages))[:16],
            messages=tuple(messages),
            generation=msgspec.structs.replace(self._drawing, max_tokens=longest),
            seed=seed,
        )
        for _ in range(_TRIES):
            output = backend.generate([request])[0]
            self._count(output)
            if output.finish_reason not in ("error", "timeout", "skipped"):
                return output
        raise RuntimeError(
            f"the judge {self.spec} gave no answer: {output.error or output.finish_reason}"
        )

    def open(self) -> Backend:
        """Load the model now, if it is not loaded."""
        if self._backend is None:
            self._backend = load(self._model, LoadOptions())
        return self._backend

    def close(self) -> None:
        """Let the model go; safe to call twice."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    @property
    def identity(self) -> ModelIdentity:
        """Exactly which model judges, and how it is asked where its SPEC says so."""
        identity = self.open().identity
        if not self._asked:
            return identity
        return msgspec.structs.replace(identity, args={**identity.args, **self._asked})

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
                judge=self.spec,
                tokens_in=counts[0],
                tokens_out=counts[1],
                tokens_reasoning=counts[2],
                cost_usd=self._card.cost(*counts),
            )
        )


class Judges:
    """The judges of a run: opened, closed and counted together.

    Parameters
    ----------
    text : str
        Model SPECs, comma-separated (see `split_judges`).

    Attributes
    ----------
    each : tuple of Judge
        In the order given.

    Raises
    ------
    UsageError
        As for `Judge`, and for one that is named twice.
    """

    def __init__(self, text: str) -> None:
        self.each = tuple(Judge(spec) for spec in split_judges(text))

    def open(self) -> None:
        """Load all of them now; where one cannot be loaded, none stays loaded."""
        try:
            for judge in self.each:
                judge.open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the models go; safe to call twice."""
        for judge in self.each:
            judge.close()

    @property
    def identities(self) -> list[ModelIdentity]:
        """Exactly which models judge."""
        return [judge.identity for judge in self.each]

    @property
    def variant_id(self) -> str:
        """Short content ids of their identities, joined by ``+``."""
        return "+".join(identity.variant_id for identity in self.identities)

    @property
    def max_connections(self) -> int:
        """How many verdicts may be under way at once: each of them asks every judge."""
        return min(judge.max_connections for judge in self.each)

    def take_calls(self) -> list[Call]:
        """Give the calls made in this thread since it was asked last, judge by judge."""
        return [call for judge in self.each for call in judge.take_calls()]


def split_judges(text: str) -> list[str]:
    """Take comma-separated model SPECs apart.

    A comma parts two of them only where another ``backend:`` follows; one inside an option's value
    stays, and is written ``%2C`` where what follows it looks like the start of a SPEC.

    Raises
    ------
    UsageError
        For one that is named twice (how often a judge is asked is the scorer's to say), and for a
        comma that nothing stands before or after.

    Examples
    --------
    >>> split_judges("openai:one?omit=temperature,seed, mock:constant?text=yes")
    ['openai:one?omit=temperature,seed', 'mock:constant?text=yes']
    """
    specs = _BETWEEN.split(text)
    for spec in specs:
        if not spec.strip(", ") or spec.lstrip()[0] == "," or spec.rstrip()[-1] == ",":
            raise UsageError(
                f"--judge {text!r}: no judge stands beside a comma: name one there, or leave it out "
                "(inside an option's value write %2C)"
            )
        if specs.count(spec) > 1:
            raise UsageError(f"--judge names {spec!r} twice: each judge is named once")
    return specs


def join_judges(specs: Sequence[str]) -> str | None:
    """Write model SPECs as one text; None for no judge.

    Raises
    ------
    UsageError
        For one whose value has a comma that would part it.
    """
    text = ",".join(specs)
    if specs and split_judges(text) != [one for spec in specs for one in split_judges(spec)]:
        raise UsageError(f"cannot tell the judges of {text!r} apart: write a comma in one as %2C")
    return text or None


def build_scorer(text: str, judges: Sequence[Ask] = (), sandbox: str = "auto") -> Scorer:
    """Make the scorer that a SPEC names, with what its factory has parameters for.

    A parameter ``judges`` receives all judges as a tuple, a parameter ``judge`` the one there is.
    Without a judge, a factory that gives the parameter no default cannot work: every answer is then
    ``unscored``, reason ``no_judge``. A parameter ``sandbox`` receives the level of isolation asked
    for.

    Raises
    ------
    UsageError
        As `harness.core.task.build` does, and for several judges of a scorer that asks one.
    """
    spec = parse_spec(text)
    factory = find("scorers", spec.name).load()
    parameters = inspect.signature(factory).parameters
    name = next((name for name in ("judges", "judge") if name in parameters), "")
    only(spec.args, set(parameters) - {name, "sandbox"}, f"{spec.name!r}")
    if name == "judge" and len(judges) > 1:
        raise UsageError(
            f"scorer {spec.name!r} asks one judge, and --judge names {len(judges)}: leave one"
        )
    given: dict[str, Any] = dict(spec.args)
    if "sandbox" in parameters:
        given["sandbox"] = sandbox
    if judges and name:
        given[name] = tuple(judges) if name == "judges" else judges[0]
    elif name and parameters[name].default is inspect.Parameter.empty:
        return _unjudged
    try:
        made: Scorer = factory(**given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot make {text!r}: {error}") from error
    return made


def wants_judge(text: str) -> bool:
    """Tell whether the scorer that a SPEC names takes a judge, or several."""
    factory = find("scorers", parse_spec(text).name).load()
    return not {"judge", "judges"}.isdisjoint(inspect.signature(factory).parameters)


def _drawing(asked: dict[str, str], spec: str) -> Generation:
    """Read how a judge is to be asked; greedily where its SPEC does not say."""
    name, what = "temperature", "number"
    try:
        temperature = float(asked.get(name, "0"))
        name, what = "max_tokens", "whole number"
        longest = int(asked.get(name, _MAX_TOKENS))
    except ValueError as error:
        raise UsageError(f"--judge {spec!r}: {name}={asked[name]} is no {what}") from error
    if not 0 <= temperature <= 100:
        raise UsageError(f"--judge {spec!r}: temperature must lie between 0 and 100")
    if longest < 1:
        raise UsageError(f"--judge {spec!r}: max_tokens must be at least 1")
    return Generation(max_tokens=longest, temperature=temperature)


def _unjudged(sample: Sample, output: Output) -> Score:
    del sample, output
    return Score(
        value=None, status="unscored", reason=NO_JUDGE, explanation="no judge: give --judge SPEC"
    )
