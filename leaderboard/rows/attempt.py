"""One attempt whole: what was asked, what came back, every verdict, and the turns in between."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.types import Message, Picture, TextPart
from harness.store.layout import Store
from harness.store.queries import sample, verdict_shown

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What steers a terminal, turns the direction of a line or does not show: C0 and C1 but line feed and
# tab, soft hyphen, marks of direction, invisible signs, tags, lone halves. Joiners stay: scripts and
# emoji are made with them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


class ScoreLine(Struct, frozen=True, kw_only=True):
    """One metric of one verdict.

    Attributes
    ----------
    stands : str
        ``yes``; ``replaced`` by a later verdict; ``earlier attempt``.
    seq : int
        Its number in the run's journal; `replaces` is such a number too.
    """

    stands: str
    seq: int
    attempt: int
    metric: str
    value: float | None
    ended: str
    passed: bool | None
    answer: str | None
    reason: str | None
    scorer: str
    scorer_version: str
    judge: str | None
    replaces: int | None
    explanation: str | None


class Turn(Struct, frozen=True, kw_only=True):
    """Something that happened in an attempt.

    Attributes
    ----------
    heading : str
        ``turn 1: model``.
    facts : str
        Why it ended, tokens, seconds.
    texts : tuple of (str, str)
        Name and text.
    """

    heading: str
    facts: str
    texts: tuple[tuple[str, str], ...]


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt whole.

    Attributes
    ----------
    row : dict
        The columns of `v_attempts`.
    prompt : str or None
        As it was sent; None where the texts are not there.
    scores : list of ScoreLine
        All of this item and repeat, oldest first, those of earlier attempts included.
    turns : list of Turn
        Of an answer that was used again: those of the run that paid for it.
    facts : dict
        What the headline's verdict rests on.
    pictures : list of Picture
        What it came with to look at.
    """

    row: dict[str, Any]
    prompt: str | None
    output: str | None
    reasoning: str | None
    error: str | None
    tool_log: str | None
    choice_logprobs: tuple[float, ...]
    scores: list[ScoreLine]
    turns: list[Turn]
    facts: dict[str, Any]
    pictures: list[Picture]

    @property
    def standing(self) -> list[ScoreLine]:
        """The verdicts that count, the headline's first."""
        valid = [s for s in self.scores if s.stands == "yes"]
        return sorted(valid, key=lambda s: s.seq != self.row["score_seq"])


class Choice(Struct, frozen=True, kw_only=True):
    """One option of a choice item: its log-probability, and its share among the options."""

    option: str
    logprob: float
    share: float


def attempt(
    con: DuckDBPyConnection, store: Store, run_id: str, epoch: int, item_id: str
) -> Attempt | None:
    """Read the latest attempt at an item; None where there is none."""
    try:
        row = sample(con, store, run_id, item_id, epoch)
    except UsageError:
        return None
    scores, events = row.pop("scores"), _of_attempt(row)
    facts, pictures = verdict_shown(row, scores)
    long = {name: row.pop(name) for name in ("prompt", "output", "reasoning", "error", "tool_log")}
    logprobs = row.pop("choice_logprobs")
    return Attempt(
        row=row, scores=_score_lines(row, scores), choice_logprobs=tuple(logprobs or ()),
        turns=[_turn(e["kind"], e["json"]) for e in events or _paid_for(con, store, row)],
        facts=facts, pictures=_pictures(pictures),
        **long,
    )  # fmt: skip


def _pictures(shown: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Read the pictures of a verdict; one that is none (of a run from elsewhere) is left out."""
    found = []
    for one in shown:
        with contextlib.suppress(msgspec.ValidationError):
            found.append(msgspec.convert(one, Picture))
    return found


def _of_attempt(row: dict[str, Any]) -> list[dict[str, Any]]:
    events = row.pop("events")
    return [event for event in events if event["attempt"] in (None, row["attempt"])]


def _paid_for(con: DuckDBPyConnection, store: Store, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Find the events of an answer that was used again: they stand in the run that paid."""
    if row["reused_from"] is None:
        return []
    try:
        paid = sample(con, store, row["reused_from"], row["item_id"], row["epoch"])
    except UsageError:  # that run is not in the store
        return []
    return _of_attempt(paid) if paid["key"] == row["key"] else []


def _score_lines(row: dict[str, Any], scores: Sequence[dict[str, Any]]) -> list[ScoreLine]:
    """Mark the verdicts that stand: the latest of the latest attempt, a strategy's by itself."""

    def series(score: Mapping[str, Any]) -> tuple[int, bool]:
        return score["attempt"], score["scorer"].startswith("strategy:")

    last: dict[tuple[int, bool], int] = {}
    for score in scores:
        last[series(score)] = max(score["seq"], last.get(series(score), -1))

    def stands(score: Mapping[str, Any]) -> str:
        if score["attempt"] != row["attempt"]:
            return "earlier attempt"
        return "yes" if score["seq"] == last[series(score)] else "replaced"

    return [
        ScoreLine(
            stands=stands(s), ended=s["status"], judge=s["judge_variant"],
            **{name: s[name] for name in (
                "seq", "attempt", "metric", "value", "passed", "answer", "reason", "scorer",
                "scorer_version", "replaces", "explanation",
            )},
        )
        for s in scores
    ]  # fmt: skip


def _turn(kind: str, text: str | None) -> Turn:
    data: dict[str, Any] = msgspec.json.decode(text) if text else {}
    number = data.get("turn")
    before = f"turn {number + 1}: " if isinstance(number, int) else ""
    if kind == "model_call":
        calls = [("calls", _call(call)) for call in data.get("tool_calls") or ()]
        texts = [("said", str(data.get("text") or "")), *calls, ("error", data.get("error") or "")]
        facts = [data.get("finish_reason"), _some(data.get("tokens_out"), "tokens"),
                 _some(data.get("latency_ms"), "ms")]  # fmt: skip
        return _made(f"{before}model", facts, texts)
    if kind == "tool_call":
        call, peak = data.get("call") or {}, data.get("peak_bytes")
        facts = [
            data.get("status"), data.get("reason"), _some(data.get("wall_s"), "s"),
            _some(data.get("cpu_s"), "CPU s"), f"{peak / 2**20:.0f} MiB" if peak else None,
        ]  # fmt: skip
        texts = [("called", _call(call)), ("gave back", str(data.get("text") or ""))]
        return _made(f"{before}tool {call.get('name', '')}", facts, texts)
    if kind == "told":
        return _made(f"{before}told", [], [("told", str(data.get("text") or ""))])
    rest = [("", msgspec.json.format(msgspec.json.encode(data)).decode())] if data else []
    return _made(kind.replace("_", " "), [], rest)


def _made(heading: str, facts: Sequence[Any], texts: Sequence[tuple[str, str]]) -> Turn:
    kept = tuple((name, text) for name, text in texts if text)
    return Turn(heading=heading, facts=", ".join(str(f) for f in facts if f), texts=kept)


def _some(value: float | None, unit: str) -> str | None:
    return (
        None if value is None else f"{value:,.4g} {unit}" if value < 1e4 else f"{value:,.0f} {unit}"
    )


def _call(call: Mapping[str, Any]) -> str:
    """Write a call with its arguments, each as the text that it is."""
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return f"{call.get('name')}: {arguments}"
    lines = [
        f"{name} = {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in arguments.items()
    ]
    return "\n".join([f"{call.get('name')}:", *lines])


def messages(prompt: str) -> list[tuple[str, str]] | None:
    """Split a stored prompt into turns, role and text; None where it is one bare text.

    Examples
    --------
    >>> messages('[{"role":"system","content":"Be brief."},{"role":"user","content":"2+2?"}]')
    [('system', 'Be brief.'), ('user', '2+2?')]
    >>> messages("[1]") is None
    True
    """
    if not prompt.startswith('[{"role":'):
        return None
    try:
        found = msgspec.json.decode(prompt, type=list[Message])
    except msgspec.DecodeError:
        return None
    return [(turn.role, _said(turn)) for turn in found]


def _said(turn: Message) -> str:
    parts = [turn.content] if isinstance(turn.content, str) else [
        part.text if isinstance(part, TextPart) else f"[{part.media_type}: {part.source[:200]}]"
        for part in turn.content
    ]  # fmt: skip
    parts += [_call({"name": call.name, "arguments": call.arguments}) for call in turn.tool_calls]
    return "\n".join(part for part in parts if part)


def visible(text: str) -> str:
    r"""Write control and invisible characters as escapes, so that a text shows what it is.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    >>> visible("two\nlines\t")
    'two\nlines\t'
    """

    def escape(found: re.Match[str]) -> str:
        code = ord(found[0])
        return (
            f"\\x{code:02x}"
            if code < 256
            else f"\\u{code:04x}"
            if code < 65536
            else f"\\U{code:08x}"
        )

    return _HIDDEN.sub(escape, text)


def choices(logprobs: Sequence[float]) -> list[Choice]:
    """Give the options with their shares, exp(logprob) over its sum.

    Examples
    --------
    >>> [(c.option, round(c.share, 2)) for c in choices([math.log(0.3), math.log(0.1)])]
    [('0', 0.75), ('1', 0.25)]
    """
    if not logprobs:
        return []
    top = max(logprobs)
    weights = [math.exp(value - top) if top > -math.inf else 1.0 for value in logprobs]
    return [
        Choice(option=str(i), logprob=value, share=weight / sum(weights))
        for i, (value, weight) in enumerate(zip(logprobs, weights, strict=True))
    ]


def show_command(store: Store, run_id: str, epoch: int, item_id: str) -> str:
    """Give the command that prints the attempt, its reference too."""
    words = ["harness", "show", "sample", run_id, item_id]
    words += ["--epoch", str(epoch)] if epoch else []
    return shlex.join([*words, "--store", str(store.root)])
