"""Mocks: models whose scores are known beforehand. They prove the plumbing and are the baselines.

All are pure functions of the item, the turn and the attempt's seed: neither time nor order matters.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from harness.backends.base import Capability, LoadOptions, ModelIdentity
from harness.backends.catalogue import CAPABILITIES
from harness.core.errors import UsageError, unknown
from harness.core.keys import unit_of, units_of
from harness.core.spec import ModelSpec, only
from harness.core.types import (
    ChoiceRequest,
    GenerateRequest,
    Message,
    Oracle,
    Output,
    ToolCall,
    Usage,
    text_of,
)

_FAULTS = ("fail", "truncate", "refuse", "delay")
_OPTIONS = {
    "gold": set(),
    "empty": set(),
    "constant": {"text"},
    "random": set(),
    "noisy": {"accuracy"},
    "script": {"file"},
}  # type: dict[str, set[str]]

Answer = Callable[[GenerateRequest], str | Message]
EVERY_ITEM = "*"


class Mock:
    """A mock model; see `load` for its SPECs."""

    capabilities: frozenset[Capability] = CAPABILITIES["mock"]
    is_baseline = True
    batch_size = 32
    context_length = None

    def __init__(self, spec: ModelSpec, options: LoadOptions) -> None:
        name = spec.name
        if name not in _OPTIONS:
            raise unknown("model", f"mock:{name}", (f"mock:{n}" for n in _OPTIONS))
        only(spec.args, _OPTIONS[name] | set(_FAULTS), f"mock:{name}")
        self._faults = {k: _share(spec.args[k], k) for k in _FAULTS if k in spec.args}
        self._accuracy = _share(spec.args.get("accuracy", "0.5"), "accuracy")
        self._answer: Answer = getattr(self, f"_{name}")
        self._name = name
        args = dict(spec.args)
        if name == "script":
            self._replies, args["file"] = _read_script(spec.args.get("file"))
        self._text = spec.args.get("text", "C")
        self.identity = ModelIdentity(
            backend="mock", name=name, revision=spec.revision or "", args=args
        )
        if options.batch_size:
            self.batch_size = options.batch_size

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Output]:
        """Answer each request; planted faults strike by the hash of item, turn and seed."""
        outputs = []
        for request in requests:
            output = _said(request, self._answer(request))
            outputs.append(self._spoil(request, output) if self._faults else output)
        return outputs

    def loglikelihood(self, requests: Sequence[ChoiceRequest]) -> list[Output]:
        """Give the preferred continuation 0 and each other one -10 minus a hash in [0, 1)."""
        outputs = []
        for request in requests:
            preferred = self._preferred(request)
            noise = units_of(len(request.continuations), request.item_id, request.seed)
            logprobs = tuple(
                0.0 if j in preferred else -10.0 - unit for j, unit in enumerate(noise)
            )
            output = Output(text="", choice_logprobs=logprobs, usage=Usage(_words(request)))
            outputs.append(self._spoil(request, output) if self._faults else output)
        return outputs

    def describe(self) -> dict[str, Any]:
        """Say that this is a baseline and which."""
        return {"backend": "mock", "name": self._name, "baseline": True}

    def close(self) -> None:
        """Nothing to free."""

    def _gold(self, request: GenerateRequest) -> str | Message:
        gold = _oracle(request).gold
        return gold[request.turn] if request.turn < len(gold) else ""

    def _empty(self, _request: GenerateRequest) -> str:
        return ""

    def _constant(self, _request: GenerateRequest) -> str:
        return self._text

    def _random(self, request: GenerateRequest) -> str | Message:
        return _oracle(request).guess(Random(request.seed))

    def _noisy(self, request: GenerateRequest) -> str | Message:
        gold = self._gold(request)
        if unit_of("noisy", request.item_id, request.seed) < self._accuracy:
            return gold
        rng = Random(request.seed)
        for _ in range(64):
            text = _oracle(request).guess(rng)
            if text != gold:
                return text
        return ""

    def _script(self, request: GenerateRequest) -> str | Message:
        replies = self._scripted(request)
        return replies[request.turn] if request.turn < len(replies) else ""

    def _scripted(self, request: GenerateRequest | ChoiceRequest) -> list[str | Message]:
        return self._replies.get(request.item_id, self._replies.get(EVERY_ITEM, []))

    def _preferred(self, request: ChoiceRequest) -> tuple[int, ...]:
        oracle = _oracle(request)
        n = len(request.continuations)
        if self._name == "gold":
            return oracle.correct
        if self._name == "random":
            return (Random(request.seed).randrange(n),)
        if self._name == "noisy":
            if unit_of("noisy", request.item_id, request.seed) < self._accuracy:
                return oracle.correct
            wrong = [j for j in range(n) if j not in oracle.correct]
            return (Random(request.seed).choice(wrong),) if wrong else ()
        wanted = (
            self._text
            if self._name == "constant"
            else "".join(map(_text, self._scripted(request) if self._name == "script" else []))
        )
        return tuple(j for j, c in enumerate(request.continuations) if c.strip() == wanted.strip())

    def _spoil(self, request: GenerateRequest | ChoiceRequest, output: Output) -> Output:
        turn = request.turn if isinstance(request, GenerateRequest) else 0
        draw = unit_of("fault", request.item_id, turn, request.seed)
        if self._faults.get("delay"):
            time.sleep(self._faults["delay"])
        for fault in ("fail", "truncate", "refuse"):
            share = self._faults.get(fault, 0.0)
            if draw < share:
                return _FAULTY[fault](output)
            draw -= share
        return output


def load(spec: ModelSpec, options: LoadOptions) -> Mock:
    """Make a mock from its SPEC.

    ``mock:gold`` says what a perfect model would; ``mock:empty`` nothing; ``mock:constant?text=C``
    always the same; ``mock:random`` a well-formed guess; ``mock:noisy?accuracy=0.6`` gold with that
    probability, else a wrong guess; ``mock:script?file=F.jsonl`` the given replies, a line an item:
    ``{"item_id": …, "turns": […]}``, each turn a text or ``{"text": …, "tool_calls": [{"name": …,
    "arguments": {…}}]}``, nothing where they end; ``"item_id": "*"`` stands for all items that have
    no line (``"output": "…"`` is one turn, or a list). All take ``fail``, ``truncate``,
    ``refuse`` (shares) and ``delay`` (seconds a request).

    Raises
    ------
    UsageError
        Unknown mock, unknown option, a share outside [0, 1], an unreadable script.
    """
    return Mock(spec, options)


def _failed(output: Output) -> Output:
    return Output(text="", finish_reason="error", error="planted fault", error_kind="network",
                  usage=output.usage)  # fmt: skip


def _truncated(output: Output) -> Output:
    if output.choice_logprobs is not None:
        return output  # no text, so no end that could be cut
    return Output(text=output.text[: len(output.text) // 2], finish_reason="length",
                  usage=output.usage)  # fmt: skip


def _refused(output: Output) -> Output:
    return Output(text="", finish_reason="content_filter", usage=output.usage)


_FAULTY = {"fail": _failed, "truncate": _truncated, "refuse": _refused}


def _oracle(request: GenerateRequest | ChoiceRequest) -> Oracle:
    if request.oracle is None:
        raise UsageError("this mock reads the reference, and the request carries none")
    return request.oracle


def _words(request: GenerateRequest | ChoiceRequest) -> int:
    """Count words: the mock's tokens."""
    return sum(len(text_of(m).split()) for m in request.messages)


def _share(text: str, key: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (0.0 <= value <= 1.0 or (key == "delay" and value >= 0.0)):
        raise UsageError(f"mock option {key}={text} must be a number between 0 and 1")
    return value


def _said(request: GenerateRequest, turn: str | Message) -> Output:
    """Make the output of a turn, its calls as a service with tools would give them."""
    text = _text(turn)
    if isinstance(turn, str) or not turn.tool_calls:
        return Output(text=text, usage=Usage(_words(request), len(text.split())))
    if not request.tools:
        raise UsageError("this mock is to call tools, and the solver offers none to a service: "
                         "give --solver 'agent?protocol=tools', or a script of texts")  # fmt: skip
    calls = tuple(
        msgspec.structs.replace(call, id=f"call-{request.turn}-{k}")
        for k, call in enumerate(turn.tool_calls)
    )
    written = len(text.split()) + sum(len(str(call.arguments).split()) for call in calls)
    return Output(text=text, finish_reason="tool_calls", tool_calls=calls,
                  usage=Usage(_words(request), written))  # fmt: skip


def _text(turn: str | Message) -> str:
    return turn if isinstance(turn, str) else text_of(turn)


def _read_script(file: str | None) -> tuple[dict[str, list[str | Message]], str]:
    """Read given replies; the second value, the file's sha256, stands in the identity."""
    if not file:
        raise UsageError('mock:script needs ?file=F.jsonl with lines {"item_id": …, "turns": […]}')
    try:
        raw = Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read script {file}: {error.strerror}") from error
    replies: dict[str, list[str | Message]] = {}
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=_Reply)
        except msgspec.DecodeError as error:
            raise UsageError(f"{file}:{number}: {error}") from error
        if (row.turns is None) == (row.output is None):
            raise UsageError(f"{file}:{number}: give `turns` (or `output`) to {row.item_id!r}")
        turns = [row.output] if isinstance(row.output, str) else row.output or row.turns or []
        replies[row.item_id] = [turn if isinstance(turn, str) else _message(turn) for turn in turns]
    return replies, hashlib.sha256(raw).hexdigest()


class _ScriptedCall(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)


class _ScriptedTurn(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    tool_calls: list[_ScriptedCall] = []


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    item_id: str
    turns: list[str | _ScriptedTurn] | None = None
    output: str | list[str] | None = None


def _message(turn: _ScriptedTurn) -> Message:
    calls = tuple(ToolCall.read("", call.name, call.arguments) for call in turn.tool_calls)
    return Message("assistant", turn.text, tool_calls=calls)
