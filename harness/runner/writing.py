"""The journal's records of a run's attempts and verdicts, made and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.core.records import SCHEMA, EventRecord, SampleRecord, ScoreRecord
from harness.core.types import (
    ErrorKind,
    Message,
    Output,
    Sample,
    Score,
    Status,
    Work,
    prompt_text,
)
from harness.runner.plan import Plan, Planned
from harness.store.queries import StoredAnswer

_SOLVED_AS: dict[str, Status] = {
    "length": "truncated",
    "content_filter": "refused",
    "timeout": "timeout",
    "skipped": "unavailable",
    "error": "error",
}
_REUSED = tuple(name for name in StoredAnswer.__struct_fields__ if name != "run_id")


def failed(error: Exception, kind: ErrorKind) -> Output:
    """Make the output of a call that raised."""
    return Output(
        text="", finish_reason="error", error=f"{type(error).__name__}: {error}", error_kind=kind
    )


def sample_record(
    run_id: str,
    planned: Planned,
    sample: Sample,
    output: Output,
    messages: tuple[Message, ...],
    attempt: int,
) -> SampleRecord:
    """Make the journal's record of one attempt."""
    status: Status = _SOLVED_AS.get(output.finish_reason, "unscored")
    usage = output.usage
    latency = output.latency_s
    work = output.work
    return SampleRecord(
        seq=0,
        ts="",
        run_id=run_id,
        schema=SCHEMA,
        item_id=sample.item_id,
        epoch=planned.epoch,
        attempt=attempt,
        key=planned.key,
        status=status,
        prompt=output.prompt if output.prompt is not None else prompt_text(messages),
        output=output.text,
        error_kind=(output.error_kind or "model") if status == "error" else None,
        error=output.error,
        finish_reason=output.finish_reason,
        reasoning=output.reasoning,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_reasoning=usage.tokens_reasoning,
        prompt_ids_head=output.prompt_token_ids_head,
        prompt_truncated=output.prompt_truncated,
        choice_logprobs=output.choice_logprobs,
        latency_ms=None if latency is None else round(latency * 1e3, 3),
        tool_log=None if work is None else msgspec.json.encode(work.summary).decode(),
        peak_mem_bytes=None if work is None else work.peak_bytes,
        isolation=None if work is None else work.isolation,
    )


def output_of(record: SampleRecord, plan: Plan) -> Output:
    """Make the output again that a stored record of a plan holds, for scoring without a call."""
    return Output(
        text=record.output,
        finish_reason=record.finish_reason or "stop",
        reasoning=record.reasoning,
        choice_logprobs=record.choice_logprobs,
        epoch=plan.repeat_of(record.epoch),
    )


def score_record(
    plan: Plan, record: SampleRecord, score: Score, replaces: int | None = None
) -> ScoreRecord:
    """Make the journal's record of one verdict."""
    return ScoreRecord(
        seq=0,
        ts="",
        run_id=record.run_id,
        schema=SCHEMA,
        item_id=record.item_id,
        epoch=record.epoch,
        attempt=record.attempt,
        scorer=str(plan.scorer_spec),
        scorer_version=plan.scorer_entry.version,
        metric=plan.task.metric,
        status=score.status,
        value=score.value,
        passed=score.passed,
        answer=score.answer,
        explanation=score.explanation,
        reason=score.reason,
        judge_variant=plan.judges.variant_id if plan.judges else None,
        metrics=dict(score.metrics),
        replaces=replaces,
        isolation=score.isolation,
    )


def score_events(record: SampleRecord, score: Score, seq: int) -> Iterator[EventRecord]:
    """Make the events of what a verdict rests on and shows; `seq` is that of its record."""
    if score.facts:
        yield event(record.run_id, "judged", {"score": seq, "facts": score.facts}, about=record)
    for picture in score.pictures:
        shown = {"score": seq, **msgspec.to_builtins(picture)}
        yield event(record.run_id, "picture", shown, about=record)


def event(
    run_id: str, kind: str, data: Mapping[str, object], about: SampleRecord | None = None
) -> EventRecord:
    """Make the journal's record of something worth keeping that is no verdict.

    Parameters
    ----------
    run_id, kind : str
    data : mapping
        JSON-ready.
    about : SampleRecord, optional
        The attempt it belongs to.
    """
    made = EventRecord(seq=0, ts="", run_id=run_id, schema=SCHEMA, kind=kind, data=dict(data))
    if about is not None:
        made.item_id, made.epoch, made.attempt = about.item_id, about.epoch, about.attempt
    return made


def call_facts(turn: int, output: Output) -> dict[str, object]:
    """Say of one model call within an attempt what was answered, why it ended and what it took."""
    latency = output.latency_s
    called = {"tool_calls": msgspec.to_builtins(output.tool_calls)} if output.tool_calls else {}
    return {
        "turn": turn,
        "text": output.text,
        **called,
        "finish_reason": output.finish_reason,
        "error": output.error,
        "tokens_in": output.usage.tokens_in,
        "tokens_out": output.usage.tokens_out,
        "tokens_reasoning": output.usage.tokens_reasoning,
        "latency_ms": None if latency is None else round(latency * 1e3, 3),
    }


def transcript(
    record: SampleRecord, calls: Sequence[Output], work: Work | None
) -> Iterator[EventRecord]:
    """Make the events of an attempt's turns: each model call and what followed it."""
    steps = list(work.steps) if work else []
    for turn, output in enumerate(calls):
        yield event(record.run_id, "model_call", call_facts(turn, output), about=record)
        while steps and (steps[0].turn <= turn or turn == len(calls) - 1):
            step = steps.pop(0)
            yield event(record.run_id, step.kind, {"turn": step.turn, **step.data}, about=record)


def reused_record(
    run_id: str, planned: Planned, sample: Sample, answer: StoredAnswer
) -> SampleRecord:
    """Make the record of an answer that an earlier run paid for."""
    fields = {name: getattr(answer, name) for name in _REUSED}
    return SampleRecord(
        seq=0,
        ts="",
        run_id=run_id,
        schema=SCHEMA,
        item_id=sample.item_id,
        epoch=planned.epoch,
        attempt=1,
        key=planned.key,
        reused_from=answer.run_id,
        **fields,
    )
