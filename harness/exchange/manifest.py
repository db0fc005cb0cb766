"""What a submission says of itself."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from msgspec import Struct

from harness.core.records import SCHEMA as RECORD_SCHEMA
from harness.core.records import RunStarted
from harness.exchange.container import MANIFEST
from harness.exchange.rejected import Reasons
from harness.runner.summary import Metric

KIND = "harness-submission"
SCHEMA = 1
MOST_ATTEMPTS = 5_000_000
_RUN_ID = re.compile(r"\d{8}T\d{12}-[0-9a-f]{8}")
_AGAIN = "ask the sender to write it anew with `harness export submission`"

DataFrom = Literal["own items", "data root", "data set"]


class Member(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file: its hash, length and rows."""

    sha256: str
    bytes: int
    rows: int


class TaskHashes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was asked, as hashes.

    Attributes
    ----------
    content_sha256 : str
        `harness.core.task.Task.content_hash`: name, version, prompt and system turn.
    dataset_sha256 : str or None
        Of the data that the task read, as the task says.
    items_sha256 : str
        Of the planned items in order; each item's own hash stands with it in `run.items`.
    solver_version : str
        Of the solver that is installed where the file was written.
    """

    content_sha256: str
    dataset_sha256: str | None
    items_sha256: str
    prompt_sha256: str
    solver_version: str


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first member of a submission.

    Attributes
    ----------
    kind, schema : str, int
        What this is, and the version of this form.
    record_schema : int
        Version of the journal's records.
    written_by : str
        Version of the package that wrote the file.
    submitter : str
        Who sends it, as they say.
    data_from : str
        What the items were read from. Paths and names of data sets are not taken from a file: who
        imports it says where theirs lie.
    run : RunStarted
        Plan, configuration, identity and environment; secrets redacted, local paths left out.
    task : TaskHashes
    members : dict of str to Member
        The tables.
    counts : dict of str to int
        `n_planned`, `n_scored`, `n_counted`, each other status, `unparsed` and `open`.
    totals : dict of str to Metric
        By metric, the headline first.
    """

    kind: str
    schema: int
    record_schema: int
    written_by: str
    submitter: str
    data_from: DataFrom
    run: RunStarted
    task: TaskHashes
    members: dict[str, Member]
    counts: dict[str, int]
    totals: dict[str, Metric]


class _Head(Struct):
    kind: str = ""
    schema: int = 0
    record_schema: int = 0


def encode_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as JSON that a person can read."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def read_manifest(raw: bytes) -> Manifest:
    """Read a manifest and check what it says of itself.

    Raises
    ------
    RejectedError
        It is none, a newer package wrote it, a field is missing or wrong, or its run could not be
        kept under its name.
    """
    reasons = Reasons()
    try:
        head = msgspec.json.decode(raw, type=_Head)
        if head.kind != KIND:
            reasons.add("the file is no submission", f"{MANIFEST} says {head.kind!r}", _AGAIN)
        elif head.schema > SCHEMA or head.record_schema > RECORD_SCHEMA:
            newer = f"{MANIFEST} (schema {head.schema}, records {head.record_schema})"
            upgrade = "upgrade with pip install -U bridge-harness"
            reasons.add("a newer package wrote the file", newer, upgrade)
        reasons.stop()
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reasons.add("the manifest cannot be read", f"{MANIFEST} ({error})", _AGAIN)
        reasons.stop()
        raise
    _look(manifest, reasons)
    reasons.stop()
    return manifest


def _look(manifest: Manifest, reasons: Reasons) -> None:
    run = manifest.run
    # The id becomes the name of a folder.
    if not _RUN_ID.fullmatch(run.run_id):
        reasons.add("the run's id is none that a run gets", repr(run.run_id[:60]), _AGAIN)
    name = manifest.submitter
    if not name.strip() or len(name) > 200 or not name.isprintable():
        reasons.add("the submitter's name cannot be shown", repr(name[:60]), _AGAIN)
    if not 0 < run.n_planned <= MOST_ATTEMPTS:
        where = f"n_planned {run.n_planned} (1 to {MOST_ATTEMPTS} are allowed)"
        reasons.add("the plan is empty or too large", where, "send the run in parts")
    if run.seq != 0:
        reasons.add("the plan is not the run's first record", f"seq {run.seq}", _AGAIN)
