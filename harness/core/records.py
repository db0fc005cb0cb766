"""The journal's records: what is written, once and for all, about every attempt.

Every record holds `seq` (0, 1, 2, … without a gap), `ts` (UTC) and `run_id`; sample, score and error
records also hold the item, epoch and attempt, which together with the run are their identity.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from harness.core.types import ErrorKind, FinishReason, Status

SCHEMA = 1


class _Record(Struct, kw_only=True, tag_field="type", omit_defaults=True):
    seq: int
    ts: str
    run_id: str


class RunStarted(_Record, tag="run_started"):
    """The whole configuration of a run: enough to plan it again after anything.

    Attributes
    ----------
    schema : int
        Version of the record format.
    task, task_version, model : str
        What is run.
    config : dict
        Everything that was asked for (`RunConfig`), so that `resume` needs nothing else.
    identity : dict
        The model as the backend describes it.
    task_info : dict
        Licence, source, metric, hashes of data, prompt and scorer.
    environment : dict
        Versions, machine, git commit.
    items : list of dict
        The planned items in order: `item_id`, `cluster_id`, `category`, `human_minutes`,
        `content_sha256`.
    epochs : int
        Repeats of each item.
    n_planned : int
        Attempts planned: items times epochs (times the draws of a strategy).
    """

    schema: int
    task: str
    task_version: str
    model: str
    is_baseline: bool
    strategy: str
    solver: str
    scorer: str
    metric: str
    seed: int
    errors: str
    config: dict[str, Any]
    identity: dict[str, Any]
    task_info: dict[str, Any]
    environment: dict[str, Any]
    items: list[dict[str, Any]]
    epochs: int
    n_planned: int


class SampleRecord(_Record, tag="sample"):
    """One attempt as solved. ``unscored`` means: a whole output that waits for its score.

    `tool_log` is the JSON of `Work.summary`; each call is an event of its own (kind ``tool_call``).
    """

    schema: int
    item_id: str
    epoch: int
    attempt: int
    key: str
    status: Status
    prompt: str = ""
    output: str = ""
    error_kind: ErrorKind | None = None
    error: str | None = None
    finish_reason: FinishReason | None = None
    reasoning: str | None = None
    tool_log: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_reasoning: int | None = None
    prompt_ids_head: tuple[int, ...] = ()
    prompt_truncated: int = 0
    choice_logprobs: tuple[float, ...] | None = None
    latency_ms: float | None = None
    peak_mem_bytes: int | None = None
    cost_usd: float | None = None
    isolation: str | None = None
    reused_from: str | None = None


class ScoreRecord(_Record, tag="score"):
    """One verdict on one attempt; `metrics` are further values of the same verdict.

    `replaces` is the `seq` of the score that this one supersedes (rescoring).
    """

    schema: int
    item_id: str
    epoch: int
    attempt: int
    scorer: str
    scorer_version: str
    metric: str
    status: Status
    value: float | None
    passed: bool | None = None
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None
    judge_variant: str | None = None
    metrics: dict[str, float] = {}
    replaces: int | None = None
    isolation: str | None = None


class EventRecord(_Record, tag="event"):
    """Something worth keeping that is no verdict: a model call of an agent, a resume, a warning.

    What a verdict rests on (kind ``judged``) and shows (kind ``picture``, its bytes as base64) are
    events of the attempt too; ``score`` in their data is the `seq` of the verdict.
    """

    schema: int
    kind: str
    item_id: str | None = None
    epoch: int | None = None
    attempt: int | None = None
    data: dict[str, Any] = {}


class RunFinished(_Record, tag="run_finished"):
    """The end of a run: ``done``, or ``partial`` when something was left open; wall seconds."""

    schema: int
    status: str
    seconds: float
    cached: int = 0


Record = RunStarted | SampleRecord | ScoreRecord | EventRecord | RunFinished

decoder = msgspec.json.Decoder(Record)
encoder = msgspec.json.Encoder()
