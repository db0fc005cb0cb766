"""A whole run as one file: written, and checked against the task as it is installed here.

The members are ``manifest.json`` (plan, configuration, identity, hashes, counts, totals) and three
Parquet tables with the records of the journal, outputs included; see `harness.exchange.container`.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.records import SCHEMA as RECORD_SCHEMA
from harness.core.records import Record, RunStarted, decoder, encoder
from harness.exchange.container import MANIFEST, read_container, write_container
from harness.exchange.manifest import (
    KIND,
    SCHEMA,
    DataFrom,
    Manifest,
    Member,
    encode_manifest,
    read_manifest,
)
from harness.exchange.planning import local_config, plan_again, plan_elsewhere, task_hashes
from harness.exchange.rejected import Reasons
from harness.exchange.rows import check_attempts, check_rows, check_secrets
from harness.exchange.tables import TABLES, Rows, read_tables, write_tables
from harness.exchange.verdicts import Recomputed, recompute
from harness.runner.config import RunConfig
from harness.runner.history import History
from harness.runner.summary import Summary, summarise
from harness.store import queries
from harness.store.ingest import refresh
from harness.store.journal import read_records
from harness.store.layout import Store, find_run
from harness.store.publish import snapshot
from harness.store.redact import Redactor

# Added on import; they say nothing of the run itself.
MARKS = ("submitter", "imported")
_AGAIN = "ask the sender to write it anew with `harness export submission`"


class Submission(Struct):
    """A submission as it was read; `sha256` is of its file."""

    manifest: Manifest
    rows: Rows
    sha256: str

    def history(self) -> History:
        """Read the rows as a journal."""
        run = self.manifest.run
        return History([run, *self.rows.in_order()], run.run_id)


class Exported(Struct, kw_only=True):
    """What `export_submission` wrote."""

    run_id: str
    file: str
    sha256: str
    bytes: int
    attempts: int
    scores: int


def export_submission(
    store: Store, name: str, out: Path | None = None, submitter: str = "unnamed"
) -> Exported:
    """Write a finished run as one file that others can check; the same run gives the same bytes.

    Parameters
    ----------
    store : Store
    name : str
        The run (see `harness.store.layout.find_run`).
    out : Path, optional
        Where; ``RUN.submission.zip`` in the working folder by default.
    submitter : str
        Whom the file names as its sender.

    Raises
    ------
    UsageError
        No such run, one that has not ended, or one whose task or data are no longer what they were.
    RejectedError
        The file would be refused by whoever imports it; it was not written.
    """
    refresh(store)
    run_id = find_run(store, name)
    run, rows = _read_run(store, run_id)
    manifest = _manifest(store, run, rows, submitter)
    tables = write_tables(rows)
    counts = dict(zip(TABLES, (len(rows.samples), len(rows.scores), len(rows.events)), strict=True))
    members = {
        table: Member(sha256=hashlib.sha256(raw).hexdigest(), bytes=len(raw), rows=counts[table])
        for table, raw in tables.items()
    }
    manifest = msgspec.structs.replace(manifest, members=members)
    read_manifest(encode_manifest(manifest))  # what an import would refuse is not written
    out = out or Path(f"{run_id}.submission.zip")
    config = msgspec.convert(run.config, RunConfig)
    check_submission(Submission(manifest, rows, ""), config.data_root, config.data)
    write_container(out, {MANIFEST: encode_manifest(manifest), **tables})
    with out.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Exported(
        run_id=run_id, file=str(out), sha256=sha256, bytes=out.stat().st_size,
        attempts=len(rows.samples), scores=len(rows.scores),
    )  # fmt: skip


def read_submission(path: Path) -> Submission:
    """Read a submission's file: container, manifest, tables and the hash of each.

    Raises
    ------
    UsageError
        The file cannot be opened.
    RejectedError
        Something in it is not what it must be.
    """
    members, sha256 = read_container(path)
    manifest = read_manifest(members[MANIFEST])
    reasons = Reasons()
    if set(manifest.members) != set(TABLES):
        reasons.add("the manifest names other members", ", ".join(manifest.members), _AGAIN)
        reasons.stop()
    for name, said in manifest.members.items():
        found = hashlib.sha256(members[name]).hexdigest()
        if (found, len(members[name])) != (said.sha256, said.bytes):
            where = f"{name} ({found[:16]}, the manifest says {said.sha256[:16]})"
            reasons.add("the hash of a member is another", where, _AGAIN)
    rows = read_tables(members, manifest.run.run_id, manifest.members, reasons)
    reasons.stop()
    return Submission(manifest, rows, sha256)


def check_submission(
    submission: Submission, data_root: str | None = None, data: str | None = None
) -> Recomputed:
    """Check a submission against the task as it is installed here, and judge its outputs again.

    Parameters
    ----------
    submission : Submission
    data_root, data : str, optional
        Where the benchmark's files or the data set lie here, for a run that used them.

    Returns
    -------
    Recomputed
        How far the scores could be checked.

    Raises
    ------
    RejectedError
        With every reason that was found.
    """
    manifest, rows, reasons = submission.manifest, submission.rows, Reasons()
    check_secrets(manifest, rows, reasons)
    check_rows(manifest, rows, reasons)
    scores = Recomputed(n_equal=0, not_recomputed={})
    config = local_config(manifest, data_root, data, reasons)
    keys = {sample.key for sample in rows.samples}
    plan = plan_again(manifest, config, keys, reasons) if config else None
    if plan is not None:
        check_attempts(plan, rows, reasons)
        scores = recompute(plan, submission.history(), reasons)
    reasons.stop()
    return scores


def counts_of(summary: Summary) -> dict[str, int]:
    """Give the counts that a manifest holds."""
    return {
        "n_planned": summary.n_planned,
        "n_scored": summary.n_scored,
        "n_counted": summary.n_counted,
        **summary.counts,
        "unparsed": summary.unparsed,
        "open": summary.open,
    }


def run_record(store: Store, run_id: str) -> tuple[RunStarted, Rows]:
    """Read a run's journal as its plan, and the rows after it."""
    run: RunStarted | None = None
    rows = Rows()
    for record in read_records(store.journal(run_id)):
        if not isinstance(record, RunStarted):
            rows.add(record)
        else:
            run = record
    if run is None:
        raise UsageError(f"run {run_id} ended before its plan was written: start it anew")
    return run, rows


def _read_run(store: Store, run_id: str) -> tuple[RunStarted, Rows]:
    """Read a run that may be sent: ended, whole, and no key or token in it."""
    row = next(iter(queries.run_rows(snapshot(store), [run_id])), None)
    run, rows = run_record(store, run_id)
    if row is None or row.status not in ("done", "partial"):
        state = "not stored yet" if row is None else row.status
        raise UsageError(
            f"run {run_id} is {state}, only one that has ended can be sent: harness resume {run_id}"
        )
    redactor = Redactor()
    clean = Rows()
    for record in rows.in_order():
        clean.add(_clean(redactor, record))
    return _clean(redactor, run), clean


def _clean(redactor: Redactor, record: Any) -> Any:
    """Redact a record again: keys that the journal did not know may be known by now."""
    line = encoder.encode(record)
    cleaned: Record = decoder.decode(redactor.encode(record)) if redactor.hits(line) else record
    return cleaned


def _manifest(store: Store, run: RunStarted, rows: Rows, submitter: str) -> Manifest:
    config = msgspec.convert(run.config, RunConfig)
    data_from: DataFrom = (
        "data root" if config.data_root else "data set" if config.data else "own items"
    )
    summary = summarise(store, run.run_id)
    sent = msgspec.structs.replace(
        run,
        # Paths name people and machines.
        config=run.config | {"data_root": None, "data": None},
        environment={k: v for k, v in run.environment.items() if k not in MARKS},
    )
    plan = plan_elsewhere(run, config, {sample.key for sample in rows.samples})
    return Manifest(
        kind=KIND, schema=SCHEMA, record_schema=RECORD_SCHEMA,
        written_by=version("bridge-harness"),
        submitter=str(run.environment.get("submitter") or submitter),
        data_from=data_from, run=sent, task=task_hashes(plan), members={},
        counts=counts_of(summary), totals=summary.metrics,
    )  # fmt: skip
