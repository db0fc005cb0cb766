"""Attempts as conversations, a line each: material to train on, chosen by score.

A line holds the messages as the conversation kept them: what a model wrote behind a call is not in
it, what a tool gave back is what the model was shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.records import EventRecord, RunStarted, SampleRecord, ScoreRecord
from harness.core.types import Tool
from harness.solvers.grammar import Protocol, find_call, told
from harness.store.journal import read_records
from harness.store.layout import Store, find_run

_Place = tuple[str, int]  # item and repeat


class Trajectory(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt.

    Attributes
    ----------
    run_id, task, model, item_id, epoch, status
    score : float or None
        The valid headline value.
    messages : list of dict
        ``role`` and ``content``, and what a service's tools need besides.
    tools : list of dict
        What was offered, where a service's own tools were called.
    templated : bool
        The first message is the text that the model saw, its chat template applied: a local model
        was asked.
    """

    run_id: str
    task: str
    model: str
    item_id: str
    epoch: int
    status: str
    score: float | None
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []
    templated: bool = False


def trajectories(store: Store, name: str, least: float | None = None) -> Iterator[Trajectory]:
    """Give the attempts of a run as conversations, in the order of its journal.

    Parameters
    ----------
    store : Store
    name : str
        The run; any name that `find_run` knows.
    least : float, optional
        Leave out what scored less, or was not scored. Attempts that a fault ended are left out in
        any case: they show how the harness failed.

    Raises
    ------
    StoreError
        No such run.
    """
    run = _Run(store, find_run(store, name))
    others: dict[str, _Run] = {}
    for place, record in run.samples.items():
        score = run.scores.get(place)
        value = score.value if score else None
        if (least is not None and (value is None or value < least)) or _by_fault(record):
            continue
        source = run
        if record.reused_from is not None:
            if record.reused_from not in others:
                others[record.reused_from] = _Run(store, record.reused_from)
            source = others[record.reused_from]
        messages, tools, templated = _conversation(record, source.events[place])
        yield Trajectory(
            run_id=run.started.run_id, task=run.started.task, model=run.started.model,
            item_id=record.item_id, epoch=record.epoch,
            status=score.status if score and record.status == "unscored" else record.status,
            score=value, messages=messages, tools=tools, templated=templated,
        )  # fmt: skip


def _by_fault(record: SampleRecord) -> bool:
    faults = record.status == "error" and record.error_kind not in (None, "model")
    return faults or record.status == "unavailable"


class _Run:
    """What a journal says, by item and repeat: the latest attempt, its events, its valid score."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.samples: dict[_Place, SampleRecord] = {}
        self.events: dict[_Place, list[EventRecord]] = defaultdict(list)
        self.scores: dict[_Place, ScoreRecord] = {}
        self.started: RunStarted
        for record in read_records(store.journal(run_id)):
            if isinstance(record, RunStarted):
                self.started = record
            elif isinstance(record, SampleRecord):
                place = record.item_id, record.epoch
                self.samples[place] = record
                self.events.pop(place, None)
                self.scores.pop(place, None)
            elif isinstance(record, EventRecord) and record.item_id is not None:
                self.events[record.item_id, record.epoch or 0].append(record)
            elif isinstance(record, ScoreRecord) and not record.scorer.startswith("strategy:"):
                self.scores[record.item_id, record.epoch] = record


def _conversation(
    record: SampleRecord, events: Iterable[EventRecord]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Put the turns behind the prompt; give messages, tools and whether a template was applied."""
    messages = _prompt(record.prompt)
    summary: dict[str, Any] = msgspec.json.decode(record.tool_log) if record.tool_log else {}
    # An agent is always told of its tools, in a turn before the question.
    templated = len(messages) == 1 and ("protocol" in summary or _has_marks(record.prompt))
    if "protocol" not in summary:
        return [*messages, {"role": "assistant", "content": record.output}], [], templated
    protocol: Protocol = summary["protocol"]
    tools = msgspec.convert(summary["tools"], tuple[Tool, ...])
    for event in events:
        if event.kind == "model_call":
            messages.append(_said(event.data, tools, protocol))
        elif event.kind == "tool_call" and not event.data["submitted"]:
            messages.append(_gave_back(event.data, protocol))
        elif event.kind == "told":
            _tell(messages, event.data["text"])
    offered = summary["tools"] if protocol == "tools" else []
    return messages, offered, templated


def _prompt(text: str) -> list[dict[str, Any]]:
    """Read a stored prompt; of a local model it is a text with its template applied."""
    if text.startswith("["):
        try:
            read = msgspec.json.decode(text, type=list[dict[str, Any]])
        except msgspec.DecodeError:
            read = []
        if read and all("role" in message for message in read):
            return read
    return [{"role": "user", "content": text}]


def _has_marks(text: str) -> bool:
    """Tell whether a text holds what chat templates put between turns."""
    return any(mark in text for mark in ("<|", "[INST]", "<start_of_turn>", "<bos>", "<s>"))


def _said(data: Mapping[str, Any], tools: tuple[Tool, ...], protocol: Protocol) -> dict[str, Any]:
    if protocol == "tools":
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": msgspec.json.encode(call["arguments"]).decode(),
                },
            }
            for call in data.get("tool_calls", ())
        ]
        return {
            "role": "assistant",
            "content": data["text"],
            **({"tool_calls": calls} if calls else {}),
        }
    found = find_call(data["text"], tools, protocol, data["turn"])
    end = len(data["text"]) if found is None else found.end
    return {"role": "assistant", "content": data["text"][:end]}


def _gave_back(data: Mapping[str, Any], protocol: Protocol) -> dict[str, Any]:
    call = data["call"]
    if protocol == "tools":
        return {"role": "tool", "tool_call_id": call["id"], "content": data["text"]}
    return {"role": "user", "content": told(call["name"], data["text"], protocol)}


def _tell(messages: list[dict[str, Any]], text: str) -> None:
    """Add what the solver told the model, to the latest message as the solver does."""
    latest = messages[-1]
    if latest["role"] == "assistant":
        messages.append({"role": "user", "content": text})
    else:
        messages[-1] = {**latest, "content": f"{latest['content']}\n\n{text}"}
