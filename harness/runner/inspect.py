"""One stored attempt whole: what was asked, what came back, what it should have been."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.errors import HarnessError, unknown
from harness.core.records import RunStarted
from harness.core.task import make_task
from harness.core.types import Sample
from harness.runner.config import RunConfig
from harness.store import queries
from harness.store.ingest import refresh
from harness.store.journal import read_records
from harness.store.layout import Store
from harness.store.publish import snapshot


def started(store: Store, run_id: str) -> RunStarted:
    """Read the plan of a run from its journal."""
    for record in read_records(store.journal(run_id)):
        if isinstance(record, RunStarted):
            return record
    raise HarnessError(f"run {run_id} has no plan in its journal")


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
        `prompt`, `output`, `reference`, `status`, `scores`, `finish_reason`, `usage`, `files` and
        what else is known. `reference` is None when the task's data are no longer there.

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
    row = queries.sample(snapshot(store), store, run_id, item_id, epoch)
    reference = _reference(run, item_id)
    usage = {k: row.pop(k, None) for k in ("tokens_in", "tokens_out", "tokens_reasoning")}
    scores = row.pop("scores")
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
        "files": [],
    }


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
        "metadata": found.metadata,
    }
