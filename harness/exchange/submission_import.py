"""A submission into a store: checked whole, then written as a journal like any run's."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from harness.core.errors import StoreError
from harness.core.records import RunStarted, encoder
from harness.core.task import make_task
from harness.exchange.rejected import Reasons
from harness.exchange.submission import (
    MARKS,
    Submission,
    check_submission,
    counts_of,
    read_submission,
    run_record,
)
from harness.exchange.verdicts import Recomputed
from harness.runner.config import RunConfig
from harness.runner.summary import Metric, Summary, summarise
from harness.store.care import pack_run, verify
from harness.store.ingest import sync
from harness.store.layout import Store
from harness.store.load import fsync

_LOCAL = ("data_root", "data", "judge")
_AGAIN = "ask the sender to write it anew with `harness export submission`"


class Imported(Struct, kw_only=True):
    """What importing a file came to.

    Attributes
    ----------
    run_id : str
    outcome : {"imported", "here already"}
        ``here already``: this very run is in the store; nothing was done.
    submitter : str
    sha256 : str
        Of the file.
    scores : Recomputed or None
        How far the scores were checked; None when nothing was imported.
    summary : Summary
    """

    run_id: str
    outcome: Literal["imported", "here already"]
    submitter: str
    sha256: str
    scores: Recomputed | None
    summary: Summary


def import_submission(
    path: Path, store: Store, data_root: str | None = None, data: str | None = None
) -> Imported:
    """Check a submission and keep it as an imported run, or refuse it with every reason.

    Parameters
    ----------
    path : Path
    store : Store
    data_root, data : str, optional
        Where the benchmark's files or the data set lie here, for a run that used them.

    Raises
    ------
    UsageError
        The file cannot be opened.
    RejectedError
        The file is refused; the store is as it was.
    StoreError
        The store cannot be written.
    """
    submission = read_submission(path)
    manifest = submission.manifest
    run_id = manifest.run.run_id
    if _is_here(submission, store):
        sync(store, wait=True)
        return Imported(
            run_id=run_id, outcome="here already", submitter=manifest.submitter,
            sha256=submission.sha256, scores=None, summary=summarise(store, run_id),
        )  # fmt: skip
    scores = check_submission(submission, data_root, data)
    started = _marked(submission, scores, data_root, data)
    try:
        # On the store's own disk, so that the checked journal takes its place in one step.
        with tempfile.TemporaryDirectory(prefix="import-", dir=store.root) as folder:
            staged = Store.open(folder)
            _write_journal(staged, started, submission)
            _compare_totals(staged, submission)
            _take_over(staged, store, run_id)
    except OSError as error:
        raise StoreError(
            f"cannot write to store {store.root}: {error.strerror or error}"
        ) from error
    sync(store, wait=True)
    pack_run(store, run_id)
    return Imported(
        run_id=run_id, outcome="imported", submitter=manifest.submitter,
        sha256=submission.sha256, scores=scores, summary=summarise(store, run_id),
    )  # fmt: skip


def _is_here(submission: Submission, store: Store) -> bool:
    """Tell whether the store has this very run; refuse another one under its name."""
    run = submission.manifest.run
    if run.run_id not in store.run_ids():
        return False
    here, rows = run_record(store, run.run_id)
    marks = here.environment.get("imported") or {}
    if marks.get("sha256") == submission.sha256:
        return True
    same = rows.in_order() == submission.rows.in_order() and _told(here) == _told(run)
    if not same:
        reasons = Reasons()
        remedy = "whichever is right, the store keeps the one it has: import into another --store"
        reasons.add("a run of this id with other content is in the store", run.run_id, remedy)
        reasons.stop()
    return True


def _told(run: RunStarted) -> RunStarted:
    """Give a plan's record without what an import adds or changes."""
    return msgspec.structs.replace(
        run,
        config=run.config | dict.fromkeys(_LOCAL),
        environment={k: v for k, v in run.environment.items() if k not in MARKS},
    )


def _marked(
    submission: Submission, scores: Recomputed, data_root: str | None, data: str | None
) -> RunStarted:
    """Make the first record: the sender's, marked as imported, with the data as they lie here."""
    manifest = submission.manifest
    # What is loaded or asked later on is for the one who imports to name, never for a file: scoring
    # again with a judge would send it texts and a key.
    config = manifest.run.config | dict.fromkeys(_LOCAL)
    if manifest.data_from == "data root":
        config["data_root"] = data_root and str(Path(data_root).absolute())
    elif manifest.data_from == "data set":
        config["data"] = data
    local = msgspec.convert(config, RunConfig)
    # Licence and source are shown from here: a file cannot say what may be shown of a task.
    info = make_task(local.task, local.task_request()).info
    return msgspec.structs.replace(
        manifest.run,
        config=config,
        task_info=manifest.run.task_info | info,
        environment={
            **manifest.run.environment,
            "submitter": manifest.submitter,
            "imported": {
                "sha256": submission.sha256,
                "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "by": version("bridge-harness"),
                "scores_recomputed": scores.n_equal,
                "scores_not_recomputed": scores.not_recomputed,
            },
        },
    )


def _write_journal(staged: Store, started: RunStarted, submission: Submission) -> None:
    path = staged.journal(started.run_id)
    path.parent.mkdir()
    with path.open("wb") as file:
        for record in (started, *submission.rows.in_order()):
            file.write(encoder.encode(record) + b"\n")
    fsync(path)


def _compare_totals(staged: Store, submission: Submission) -> None:
    """Ingest the journal apart, and compare what it comes to with what the manifest says."""
    import duckdb

    manifest, run_id, reasons = submission.manifest, submission.manifest.run.run_id, Reasons()
    try:
        sync(staged, wait=True)
    except StoreError as error:
        if not isinstance(error.__cause__, duckdb.DataError):
            raise
        reasons.add("a value cannot be stored", str(error.__cause__).splitlines()[0], _AGAIN)
        reasons.stop()
    for fault in verify(staged):
        reasons.add("the rows make no sound store", fault, _AGAIN)
    reasons.stop()
    summary = summarise(staged, run_id)
    found = counts_of(summary)
    for name in sorted({*found, *manifest.counts}):
        said = manifest.counts.get(name)
        if said != found.get(name):
            where = f"{name} {said}, from the rows {found.get(name)}"
            reasons.add("a count is not what the rows say", where, _AGAIN)
    for name in sorted({*summary.metrics, *manifest.totals}):
        mine, theirs = summary.metrics.get(name), manifest.totals.get(name)
        if not _is_same(mine, theirs):
            where = f"{name} {_short(theirs)}, from the rows {_short(mine)}"
            reasons.add("a total is not what the rows say", where, _AGAIN)
    reasons.stop()


def _is_same(one: Metric | None, two: Metric | None) -> bool:
    if one is None or two is None or one.method != two.method:
        return one is two
    pairs = ((one.value, two.value), (one.lo, two.lo), (one.hi, two.hi))
    return all(a == b or (a is not None and b is not None and abs(a - b) <= 1e-9) for a, b in pairs)


def _short(metric: Metric | None) -> str:
    return "none" if metric is None else f"{metric.value} [{metric.lo}, {metric.hi}]"


def _take_over(staged: Store, store: Store, run_id: str) -> None:
    """Move the checked journal into the store: its folder appears whole or not at all."""
    new = staged.root / "new"
    new.mkdir()
    staged.journal(run_id).rename(new / "journal.jsonl")
    fsync(new)
    new.rename(store.run_dir(run_id))
    fsync(store.runs)
