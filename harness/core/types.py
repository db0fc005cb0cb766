"""The records that travel through a run: samples, messages, requests, outputs and scores.

All are msgspec structs: cheap to make, strict to decode. Words and meanings are those of the README.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Literal

import msgspec
from msgspec import Struct

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal[
    "stop", "length", "content_filter", "tool_calls", "timeout", "skipped", "error"
]
Status = Literal["scored", "unscored", "error", "timeout", "truncated", "refused", "unavailable"]
ErrorKind = Literal["model", "harness", "engine", "network"]

STATUSES: tuple[Status, ...] = (
    "scored", "unscored", "error", "timeout", "truncated", "refused", "unavailable",
)  # fmt: skip


class TextPart(Struct, frozen=True, tag="text"):
    """Text inside a message of several parts."""

    text: str


class ImagePart(Struct, frozen=True, tag="image"):
    """An image: a file path or a ``data:`` address, with its media type."""

    source: str
    media_type: str = "image/png"


class AudioPart(Struct, frozen=True, tag="audio"):
    """A sound: a file path or a ``data:`` address, with its media type."""

    source: str
    media_type: str = "audio/wav"


Part = TextPart | ImagePart | AudioPart


class Tool(Struct, frozen=True):
    """A tool that a model is offered; `parameters` is the JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """A tool that a model wants called.

    Attributes
    ----------
    id : str
        By which the answer names the call.
    name : str
        As the model wrote it; it need not be a tool that was offered.
    arguments : dict or str
        The raw text where the model wrote no JSON object.
    fault : str or None
        Why `arguments` is raw text, fit to be told to the model.
    """

    id: str
    name: str
    arguments: dict[str, Any] | str
    fault: str | None = None

    @classmethod
    def read(cls, call_id: str, name: str, arguments: object) -> ToolCall:
        """Make a call of what a model wrote, whatever that is; blank or null is no arguments.

        Examples
        --------
        >>> ToolCall.read("c1", "add", '{"a": 2}')
        ToolCall(id='c1', name='add', arguments={'a': 2}, fault=None)
        >>> ToolCall.read("c2", "add", "a=2").arguments, ToolCall.read("c3", "now", "").arguments
        ('a=2', {})
        """
        if isinstance(arguments, dict):
            return cls(call_id, name, arguments)
        # What cannot be written as UTF-8 (half a character) could not be stored either.
        text = "" if arguments is None else str(arguments)
        text = text.encode("utf-8", "backslashreplace").decode()
        try:
            value = msgspec.json.decode(text) if text.strip() else None
        except (ValueError, RecursionError) as error:
            return cls(call_id, name, text, f"the arguments are no JSON: {error}")
        if value is None:
            return cls(call_id, name, {})
        if not isinstance(value, dict):
            return cls(call_id, name, text, "the arguments are no JSON object")
        if _is_deep(value):
            return cls(call_id, name, text, f"the arguments are nested over {_DEEPEST} levels deep")
        return cls(call_id, name, value)


_DEEPEST = 100  # what is read at the edge of Python's recursion limit cannot be written again


def _is_deep(value: object, left: int = _DEEPEST) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left == 0 or any(_is_deep(one, left - 1) for one in inner)


class Message(Struct, frozen=True, omit_defaults=True):
    """One turn of a conversation.

    Defaults are left out where a message is written, so one without tools keeps its key.

    Attributes
    ----------
    role : Role
        ``tool``: what a tool gave back, one turn for each call.
    content : str or tuple of Part
    tool_calls : tuple of ToolCall
        What an assistant's turn called.
    tool_call_id : str or None
        The call that a ``tool`` turn answers.
    native : str or None
        From `Output.native`, for an assistant's turn.
    """

    role: Role
    content: str | tuple[Part, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    native: str | None = None


class Sample(Struct, frozen=True, kw_only=True):
    """One item of a task.

    Attributes
    ----------
    item_id : str
        Stable name of the item within its task and version.
    input : str or tuple of Message
        What is asked, before the task's prompt template is applied.
    target : tuple of str
        The reference answers; never shown to a model.
    choices : tuple of str
        The options of a choice item, in the order shown.
    correct : tuple of int
        0-based positions in `choices` of the right options.
    cluster_id : str or None
        Items that share a source share a cluster; None means that the item stands alone.
    category : str or None
        A label for breakdowns.
    metadata : dict
        Anything a scorer or a reader may want (source, option order, year, …).
    """

    item_id: str
    input: str | tuple[Message, ...]
    target: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    correct: tuple[int, ...] = ()
    cluster_id: str | None = None
    category: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class Generation(Struct, frozen=True, kw_only=True):
    """How an answer is drawn. Temperature 0 is greedy; `stop` strings are cut from the text."""

    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()


class Oracle(Struct, frozen=True):
    """What only a baseline (mock) may see: the reference in a model's own form.

    Attributes
    ----------
    gold : tuple of str or Message
        What a perfect model would say, turn by turn; a message where it calls a tool.
    correct : tuple of int
        Right positions of a choice item.
    guess : callable
        Draws a well-formed answer at random.
    """

    gold: tuple[str | Message, ...]
    correct: tuple[int, ...]
    guess: Callable[[Random], str | Message]


class GenerateRequest(Struct, frozen=True, kw_only=True):
    """A request for text (`generate_until`): messages in, one output back.

    `seed` is derived from the attempt's key, so that a draw depends on nothing but its key; `turn`
    counts the model calls of one attempt from 0. `tools` are what the model may call: only for a
    backend with the capability ``tools``.
    """

    item_id: str
    messages: tuple[Message, ...]
    generation: Generation
    seed: int = 0
    turn: int = 0
    oracle: Oracle | None = None
    tools: tuple[Tool, ...] = ()


class ChoiceRequest(Struct, frozen=True, kw_only=True):
    """A request for log-probabilities (`multiple_choice`): one context, all its continuations."""

    item_id: str
    messages: tuple[Message, ...]
    continuations: tuple[str, ...]
    seed: int = 0
    oracle: Oracle | None = None


Request = GenerateRequest | ChoiceRequest


class Usage(Struct, frozen=True):
    """Tokens as counted by the backend; None where it does not say (never an estimate).

    `tokens_out` is all that was generated, the `tokens_reasoning` among it included.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None


class Step(Struct, frozen=True, kw_only=True):
    """Something that happened between two model calls of an attempt, for the transcript.

    Attributes
    ----------
    turn : int
        The model call that it followed, from 0.
    kind : {"tool_call", "told"}
        A tool that ran, or something that the solver said to the model.
    data : dict
        JSON-ready.
    """

    turn: int
    kind: Literal["tool_call", "told"]
    data: dict[str, Any]


class Work(Struct, kw_only=True):
    """What an attempt did on this machine beside asking the model.

    Attributes
    ----------
    steps : list of Step
        In order.
    isolation : str or None
        The level that was in force.
    peak_bytes : int or None
        The largest memory that any call took, where measured.
    summary : dict
        How it went in short (turns, seconds, what ended it), JSON-ready; stored with the attempt
        and kept when its answer is used again.
    """

    steps: list[Step] = msgspec.field(default_factory=list)
    isolation: str | None = None
    peak_bytes: int | None = None
    summary: dict[str, Any] = msgspec.field(default_factory=dict)


class Output(Struct, kw_only=True):
    """What came back for one attempt.

    Attributes
    ----------
    text : str
        The answer after stop strings were cut.
    finish_reason : FinishReason
        Why it ended; ``skipped``: not asked at all (`--on-long skip`).
    tool_calls : tuple of ToolCall
        The tools that the model wants called, in its order. None stand behind a stop string.
    native : str or None
        JSON that the same backend needs with this turn when the conversation goes on: a service's
        signed thoughts, say. Only beside `tool_calls`.
    prompt : str or None
        The text as the model saw it, where it differs from the messages (chat template).
    prompt_token_ids_head : tuple of int
        The first 16 token ids of the prompt.
    prompt_truncated : int
        Tokens cut from the prompt (0 unless `--on-long truncate`).
    choice_logprobs : tuple of float or None
        Natural log-probability of each continuation, in the order asked.
    choice_greedy : tuple of bool or None
        Whether each token of a continuation is the likeliest one (lm-eval's ``is_greedy``).
    token_logprobs : tuple of float or None
        Natural log-probability of each token of `text` (what a stop string cut off is left out).
    error, error_kind : str or None
        What went wrong and whose fault it is, for ``finish_reason="error"``.
    latency_s : float or None
        Wall seconds of the call that brought it (a batch's time is shared evenly).
    work : Work or None
        What a solver that runs tools did; scorers do not see it.
    epoch : int
        The repeat that it answers, from 0, as its environment was told; for scorers of items that
        are drawn anew for each repeat.
    """

    text: str
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    native: str | None = None
    prompt: str | None = None
    prompt_token_ids_head: tuple[int, ...] = ()
    prompt_truncated: int = 0
    choice_logprobs: tuple[float, ...] | None = None
    choice_greedy: tuple[bool, ...] | None = None
    token_logprobs: tuple[float, ...] | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    latency_s: float | None = None
    work: Work | None = None
    epoch: int = 0

    def as_message(self) -> Message:
        """Give the assistant's turn that a conversation goes on from.

        Examples
        --------
        >>> Output(text="4").as_message() == Message("assistant", "4")
        True
        """
        return Message("assistant", self.text, tool_calls=self.tool_calls, native=self.native)


class Picture(Struct, frozen=True, kw_only=True):
    """Something to look at that a verdict comes with.

    Attributes
    ----------
    name : str
        Its heading.
    media_type : str
        ``image/svg+xml``, ``image/png``; ``application/vnd.vegalite+json``: a whole Vega-Lite
        specification with its data in it; ``application/vnd.plotly.v1+json``: a figure of plotly, for
        what is turned in three dimensions.
    data : bytes
        Its content; whatever a model wrote is escaped in it.
    caption : str
    """

    name: str
    media_type: Literal[
        "image/svg+xml",
        "image/png",
        "application/vnd.vegalite+json",
        "application/vnd.plotly.v1+json",
    ]
    data: bytes
    caption: str = ""


class Score(Struct, frozen=True, kw_only=True):
    """A scorer's verdict on one output.

    Attributes
    ----------
    value : float or None
        The headline value; None when the output could not be judged.
    passed : bool or None
        Whether it counts as solved, where that is defined.
    status : {"scored", "unscored", "error", "timeout", "unavailable"}
        ``unscored``: the judge was unreadable, nothing is known. ``error``: the model's answer was
        unreadable (reason ``no_answer``) or its work failed, ``timeout``: its work did not end; both
        count as wrong. ``unavailable``: what would judge it is not there, `explanation` says what
        would bring it.
    answer : str or None
        The answer as extracted.
    explanation : str or None
        Why, for a reader.
    reason : str or None
        A short machine word for a status other than ``scored``.
    metrics : dict of str to float
        Further named values. An attempt without an answer counts 0 in each of them, unless its name
        has a colon (``criterion:ID``): then it is of some items only.
    facts : dict
        What was measured on the way, JSON-ready: kept beside the verdict, in no figure.
    pictures : tuple of Picture
        A handful, kept beside the verdict.
    isolation : str or None
        The level of isolation that was in force where the answer was run.

    Raises
    ------
    ValueError
        For a value, metric or fact that is not finite: JSON has no NaN, and a score must not become
        null without a word. For a status ``scored`` without a value: it would leave the
        denominator unseen. For an error or timeout that is worth something: both count as wrong.
    """

    value: float | None
    passed: bool | None = None
    status: Literal["scored", "unscored", "error", "timeout", "unavailable"] = "scored"
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None
    metrics: dict[str, float] = msgspec.field(default_factory=dict)
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    pictures: tuple[Picture, ...] = ()
    isolation: str | None = None

    def __post_init__(self) -> None:
        if self.value is None and self.status == "scored":
            raise ValueError("a score without a value needs status='unscored' and a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"score value is not finite: {self.value}")
        for name, value in self.metrics.items():
            if not math.isfinite(value):
                raise ValueError(f"metric {name!r} is not finite: {value}")
        if self.status in ("error", "timeout") and self.value:
            raise ValueError(f"a score with status {self.status!r} is worth 0, not {self.value}")
        if self.facts and not _is_finite(self.facts):
            raise ValueError("a number among the facts is not finite")

    @classmethod
    def no_answer(cls, explanation: str) -> Score:
        """Score of an answer that could not be read: wrong, and counted as unparsed."""
        return cls(
            value=0.0, passed=False, status="error", reason="no_answer", explanation=explanation
        )


def _is_finite(fact: object) -> bool:
    if isinstance(fact, float):
        return math.isfinite(fact)
    inner = fact.values() if isinstance(fact, dict) else fact
    return not isinstance(inner, Iterable) or isinstance(inner, str) or all(map(_is_finite, inner))


def text_of(message: Message) -> str:
    """Give the text of a message, its other parts named in brackets."""
    if isinstance(message.content, str):
        return message.content
    return "".join(
        part.text if isinstance(part, TextPart) else f"[{part.media_type}]"
        for part in message.content
    )


def prompt_text(messages: Sequence[Message]) -> str:
    """Write messages as one text for storage: the bare text of a lone user turn, else JSON.

    Examples
    --------
    >>> prompt_text((Message("user", "2+2?"),))
    '2+2?'
    >>> prompt_text((Message("system", "Be brief."), Message("user", "2+2?")))
    '[{"role":"system","content":"Be brief."},{"role":"user","content":"2+2?"}]'
    """
    if len(messages) == 1 and messages[0].role == "user":
        content = messages[0].content
        if isinstance(content, str):
            return content
    return msgspec.json.encode(messages).decode()
