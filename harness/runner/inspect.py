"""One stored attempt whole: what was asked, what came back, what it should have been."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.records import RunStarted, SampleRecord, ScoreRecord
from harness.core.task import make_task
from harness.core.types import Sample
from harness.runner.config import RunConfig
from harness.store import queries
from harness.store.ingest import refresh
from harness.store.journal import read_records, started
from harness.store.layout import Store
from harness.store.publish import snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def whole_sample(store: Store, run_id: str, item_id: str, epoch: int = 0) -> dict[str, Any]:
    """Give one attempt as ``harness show sample --json`` prints it.

    Parameters
    ----------
    store : Store
    run_id, item_id : str
    epoch : int

    Returns
    -------
    dict
        `prompt`, `output`, `reference`, `status`, `scores`, `finish_reason`, `usage`, `facts` (what
        the verdict rests on), `files` (the pictures it came with, ``data`` as base64) and what else
        is known. `reference` is None when the task's data are no longer there.

    Raises
    ------
    UsageError
        No such item in that run.
    """
    refresh(store)
    run = started(store, run_id)
    known = [item["item_id"] for item in run.items]
    if item_id not in known:
        raise unknown("item", item_id, known, f"in run {run_id}")
    con = snapshot(store)
    row = queries.sample(con, store, run_id, item_id, epoch)
    row["events"] = _of_attempt(row) or _paid_for(con, store, row)
    reference = _reference(run, item_id)
    usage = {k: row.pop(k, None) for k in ("tokens_in", "tokens_out", "tokens_reasoning")}
    scores = row.pop("scores")
    facts, pictures = queries.verdict_shown(row, scores)
    text = {k: row.pop(k, None) for k in ("prompt", "output")}
    return {
        "run_id": run_id,
        "item_id": item_id,
        **text,
        "reference": reference,
        "status": row.pop("status"),
        "finish_reason": row.pop("finish_reason", None),
        "usage": usage,
        **row,
        "scores": scores,
        "facts": facts,
        "files": [
            {name: one[name] for name in ("name", "media_type", "caption", "data")}
            for one in pictures
        ],
    }


def _of_attempt(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [e for e in row["events"] if e["attempt"] in (None, row["attempt"])]


def _paid_for(con: DuckDBPyConnection, store: Store, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Find the transcript of an answer that was used again: it stands in the run that paid."""
    if row["reused_from"] is None:
        return []
    try:
        paid = queries.sample(con, store, row["reused_from"], row["item_id"], row["epoch"])
    except UsageError:  # that run has been taken out of the store
        return []
    return _of_attempt(paid) if paid["key"] == row["key"] else []


def _reference(run: RunStarted, item_id: str) -> Any:
    config = msgspec.convert(run.config, RunConfig)
    try:
        task = make_task(config.task, config.task_request())
    except HarnessError:
        return None
    found: Sample | None = next((s for s in task.samples if s.item_id == item_id), None)
    if found is None:
        return None
    return {
        "target": list(found.target),
        "correct": list(found.correct),
        "choices": list(found.choices),
        "gold": task.gold(found),
        "metadata": named_files(found.metadata),
    }


def named_files(metadata: Any) -> Any:
    """Name the files that an item holds by size and hash; whoever wants their bytes has the data.

    Examples
    --------
    >>> named_files({"gds": b"", "layer": [1, 0]})["gds"]["bytes"]
    0
    """
    if isinstance(metadata, bytes):
        return {"bytes": len(metadata), "sha256": hashlib.sha256(metadata).hexdigest()}
    if isinstance(metadata, dict):
        return {name: named_files(value) for name, value in metadata.items()}
    if isinstance(metadata, list | tuple):
        return [named_files(value) for value in metadata]
    return metadata


def unavailable(store: Store, run_id: str) -> list[tuple[str, int]]:
    """Give the reasons why items of a run could not be asked or judged, the most frequent first.

    Reasons that differ in the item alone are one: what stands before the first ": " is left out
    where it is the item's name.
    """
    reasons: Counter[str] = Counter()
    for record in read_records(store.journal(run_id)):
        if isinstance(record, SampleRecord | ScoreRecord) and record.status == "unavailable":
            said = record.error if isinstance(record, SampleRecord) else record.explanation
            reasons[(said or "no reason given").removeprefix(f"{record.item_id}: ")] += 1
    return reasons.most_common()
