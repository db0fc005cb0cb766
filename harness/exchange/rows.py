"""Are the rows of a submission those of its plan: each there once, with its key and one status?"""

from __future__ import annotations

from collections import Counter
from typing import get_args

from harness.core.records import EventRecord, RunFinished, SampleRecord, ScoreRecord, encoder
from harness.core.status import effective_status, error_kind_of, is_open
from harness.core.types import FinishReason, Message, Output, Sample, Score, Status
from harness.exchange.manifest import Manifest, encode_manifest
from harness.exchange.rejected import Reasons
from harness.exchange.tables import Rows
from harness.runner.history import History
from harness.runner.plan import Plan, Planned
from harness.runner.writing import sample_record
from harness.store.redact import Redactor

_AGAIN = "ask the sender to write it anew with `harness export submission`"
_JUDGED = ("unscored", "truncated")
# What a score can say.
_GIVEN = ("scored", "unscored", "error", "timeout", "unavailable")


def check_rows(manifest: Manifest, rows: Rows, reasons: Reasons) -> None:
    """Check what needs no task: identities, statuses, references, the run's end."""
    _check_order(rows, reasons)
    if manifest.run.config.get("adaptive"):
        # Its score is an estimate that follows from a bank, and the rows alone do not give it.
        remedy = "have the model asked all items, without --adaptive"
        reasons.add("an adaptive run rests on an item bank", manifest.run.run_id, remedy)
    solved_as = _solved_as()
    attempts: Counter[tuple[str, int, int]] = Counter()
    solved: dict[tuple[str, int, int], Status] = {}
    for sample in rows.samples:
        at = (sample.item_id, sample.epoch, sample.attempt)
        attempts[at] += 1
        solved[at] = sample.status
        if sample.finish_reason is None or sample.status != solved_as[sample.finish_reason]:
            where = f"{_place(sample)}: {sample.status}, ended by {sample.finish_reason}"
            reasons.add("a status is not what the answer's end says", where, _AGAIN)
        if (sample.error_kind is not None) != (sample.status == "error"):
            reasons.add("an error's kind and its status do not agree", _place(sample), _AGAIN)
    for at, n in attempts.items():
        if n > 1:
            reasons.add("an attempt stands twice", f"item {at[0]} epoch {at[1]}", _AGAIN)
    for score in rows.scores:
        _check_score(score, manifest, solved, reasons)
    ends = [event for event in rows.events if isinstance(event, RunFinished)]
    if not ends or ends[-1].status not in ("done", "partial"):
        reasons.add("the run has not ended", manifest.run.run_id, "have it finished with `harness "
                    "resume` and exported again")  # fmt: skip
    elif ends[-1].status == "done":
        _check_whole(manifest, rows, reasons)


def check_attempts(plan: Plan, rows: Rows, reasons: Reasons) -> None:
    """Compare every attempt and its key with the plan that follows from the installed task."""
    items = [sample.item_id for sample in plan.samples]
    keys = {(items[planned.index], planned.epoch): planned.key for planned in plan.attempts}
    for sample in rows.samples:
        key = keys.get((sample.item_id, sample.epoch))
        if key is None:
            reasons.add("a row is none of the plan's", _place(sample), _AGAIN)
        elif key != sample.key:
            remedy = "its prompt, model or parameters are not what the manifest says: refuse it"
            reasons.add("the key of an attempt is another", _place(sample), remedy)


def check_secrets(manifest: Manifest, rows: Rows, reasons: Reasons) -> None:
    """Find what looks like a key or a token; the patterns are those of the journal."""
    redactor = Redactor({})
    remedy = "tell the sender to revoke it and to export the run again"
    text = encode_manifest(manifest).decode()
    if redactor.text(text) != text:
        reasons.add("a secret stands in the manifest", manifest.run.run_id, remedy)
    for record in rows.in_order():
        line = encoder.encode(record)
        if redactor.hits(line) and redactor.text(line.decode()) != line.decode():
            reasons.add("a secret stands in a row", _place(record), remedy)


def _check_order(rows: Rows, reasons: Reasons) -> None:
    seen: set[int] = set()
    for kind in (rows.samples, rows.scores, rows.events):
        last = 0
        for record in kind:
            if record.seq in seen:
                reasons.add("two rows have one seq", f"seq {record.seq}", _AGAIN)
            elif record.seq < last:
                reasons.add("rows are out of order", f"seq {record.seq}", _AGAIN)
            seen.add(record.seq)
            last = record.seq


def _check_score(
    score: ScoreRecord,
    manifest: Manifest,
    solved: dict[tuple[str, int, int], Status],
    reasons: Reasons,
) -> None:
    status = solved.get((score.item_id, score.epoch, score.attempt))
    of_strategy = score.scorer.startswith("strategy:")
    if status is None:
        reasons.add("a score has no attempt", _place(score), _AGAIN)
    elif not of_strategy and status not in _JUDGED:
        reasons.add("a score judges an attempt without an answer", _place(score), _AGAIN)
    strategy = manifest.run.strategy
    expected = (f"strategy:{strategy}", strategy) if of_strategy else (None, manifest.run.metric)
    if score.metric != expected[1] or (of_strategy and score.scorer != expected[0]):
        where = f"{_place(score)}: {score.scorer}, {score.metric}"
        reasons.add("a score is of another metric than the run's", where, _AGAIN)
    try:
        Score(value=score.value, status=score.status, metrics=score.metrics)  # type: ignore[arg-type]
    except ValueError as error:
        reasons.add("a score is none", f"{_place(score)} ({error})", _AGAIN)
    if score.status not in _GIVEN:
        reasons.add("a score has a status that none can have", _place(score), _AGAIN)
    if score.replaces is not None and not 0 < score.replaces < score.seq:
        reasons.add("a score replaces none before it", _place(score), _AGAIN)


def _check_whole(manifest: Manifest, rows: Rows, reasons: Reasons) -> None:
    """A run that says it is done has tried everything, and nothing fell to a fault but the model's."""
    history = History([manifest.run, *rows.in_order()], manifest.run.run_id)
    missing = manifest.run.n_planned - len(history.samples)
    if missing > 0:
        where = f"{missing} of {manifest.run.n_planned} attempts"
        reasons.add("rows are missing of a run that is done", where, _AGAIN)
    for record in history.samples.values():
        score = history.scores.get(history.place(record))
        kind = error_kind_of(score.reason) if score else record.error_kind
        if is_open(effective_status(record.status, score.status if score else None), kind):
            reasons.add("an attempt of a run that is done is open", _place(record), _AGAIN)


def _solved_as() -> dict[FinishReason, Status]:
    """Ask the writer of journals which status belongs to each way that an answer ends."""
    sample = Sample(item_id="", input="")
    turn = (Message("user", ""),)
    return {
        end: sample_record("", Planned(0, 0, ""), sample, Output(text="", finish_reason=end), turn, 1).status
        for end in get_args(FinishReason)
    }  # fmt: skip


def _place(record: SampleRecord | ScoreRecord | EventRecord | RunFinished) -> str:
    item = getattr(record, "item_id", None)
    if item is None:
        return f"seq {record.seq}"
    return f"item {item} epoch {getattr(record, 'epoch', 0)}"
