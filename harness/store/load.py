"""One turn of the ingester: a slice of a journal becomes rows and a text part, in one transaction.

DuckDB reads the JSON itself, which is about thirty times faster than decoding in Python. Only a
slice that it cannot read, or that does not hold what a journal must hold, is looked at line by line.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import msgspec

from harness.core.records import SCHEMA, decoder
from harness.core.types import STATUSES, ErrorKind
from harness.store.journal import quarantine
from harness.store.layout import Store
from harness.store.schema import sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SLICE_BYTES = 2 << 20
TAIL_BYTES = 4096

# The union of the fields of all record types.
_COLUMNS = {
    "type": "VARCHAR", "seq": "BIGINT", "ts": "TIMESTAMP", "run_id": "VARCHAR",
    "schema": "INTEGER", "item_id": "VARCHAR", "epoch": "INTEGER", "attempt": "INTEGER",
    "key": "VARCHAR", "status": "VARCHAR", "prompt": "VARCHAR", "output": "VARCHAR",
    "error_kind": "VARCHAR", "error": "VARCHAR", "finish_reason": "VARCHAR",
    "reasoning": "VARCHAR", "tool_log": "VARCHAR", "tokens_in": "BIGINT", "tokens_out": "BIGINT",
    "tokens_reasoning": "BIGINT", "prompt_ids_head": "BIGINT[]", "prompt_truncated": "BIGINT",
    "choice_logprobs": "DOUBLE[]", "latency_ms": "DOUBLE", "peak_mem_bytes": "BIGINT",
    "cost_usd": "DOUBLE", "isolation": "VARCHAR", "reused_from": "VARCHAR", "scorer": "VARCHAR",
    "scorer_version": "VARCHAR", "metric": "VARCHAR", "value": "DOUBLE", "passed": "BOOLEAN",
    "answer": "VARCHAR", "explanation": "VARCHAR", "reason": "VARCHAR",
    "judge_variant": "VARCHAR", "metrics": "MAP(VARCHAR, DOUBLE)", "replaces": "BIGINT",
    "kind": "VARCHAR", "data": "JSON", "seconds": "DOUBLE", "cached": "BIGINT",
    "task": "VARCHAR", "task_version": "VARCHAR", "model": "VARCHAR", "is_baseline": "BOOLEAN",
    "strategy": "VARCHAR", "solver": "VARCHAR", "seed": "BIGINT", "errors": "VARCHAR",
    "config": "JSON", "identity": "JSON", "task_info": "JSON", "environment": "JSON",
    "items": "STRUCT(item_id VARCHAR, cluster_id VARCHAR, category VARCHAR, human_minutes DOUBLE, "
    "content_sha256 VARCHAR, public BOOLEAN, canary VARCHAR)[]",
    "epochs": "INTEGER", "n_planned": "BIGINT",
}  # fmt: skip
_READ = (
    "CREATE OR REPLACE TEMP TABLE batch AS SELECT * FROM read_json({file}, "
    "format='newline_delimited', maximum_object_size={size}, columns={{"
    + ", ".join(f"{name}: '{kind}'" for name, kind in _COLUMNS.items())
    + "}})"
)
_ATTEMPT = (
    "item_id IS NOT NULL AND epoch IS NOT NULL AND attempt IS NOT NULL "
    f"AND status IN {STATUSES} AND coalesce(error_kind, 'model') IN {get_args(ErrorKind)}"
)
_WELL_FORMED = f"""
    run_id = getvariable('run') AND ts IS NOT NULL AND
    CASE type
        WHEN 'sample' THEN {_ATTEMPT} AND key IS NOT NULL
        WHEN 'score' THEN {_ATTEMPT} AND scorer IS NOT NULL AND metric IS NOT NULL
        WHEN 'event' THEN kind IS NOT NULL
        WHEN 'run_finished' THEN status IS NOT NULL
        WHEN 'run_started' THEN task IS NOT NULL AND task_version IS NOT NULL
            AND metric IS NOT NULL AND n_planned IS NOT NULL
        ELSE false
    END
"""
_HAS_TEXT = (
    "type = 'sample' OR (type = 'score' AND (explanation IS NOT NULL OR length(answer) > 200)) "
    "OR (type = 'event' AND length(data) > 1000)"
)
# What stays out of the database: one row a record that has anything long, by its seq.
_TEXTS = f"""
    SELECT seq AS text_id,
        CASE WHEN type = 'sample' THEN coalesce(prompt, '') END AS prompt,
        CASE WHEN type = 'sample' THEN coalesce(output, '') END AS output,
        reasoning, tool_log, prompt_ids_head, coalesce(prompt_truncated, 0) AS prompt_truncated,
        choice_logprobs, error, explanation,
        CASE WHEN length(answer) > 200 THEN answer END AS answer,
        CASE WHEN type = 'event' THEN CAST(data AS VARCHAR) END AS data
    FROM batch WHERE {_HAS_TEXT} ORDER BY seq
"""


class Place(msgspec.Struct):
    """How far a run is ingested.

    Attributes
    ----------
    bytes : int
        Offset in its journal.
    sha_tail : str
        Hash of the last 4 KiB before that.
    next_seq : int
        The `seq` that the next record should have.
    parts : int
        Text parts written.
    suspect : str or None
        Why nothing more is taken from it.
    """

    bytes: int = 0
    sha_tail: str = ""
    next_seq: int = 0
    parts: int = 0
    suspect: str | None = None


class Loaded(msgspec.Struct):
    """What a turn brought: rows of samples and of scores, and lines that could not be read."""

    rows: int = 0
    scores: int = 0
    errors: int = 0


class _Line(NamedTuple):
    byte: int
    seq: int
    raw: bytes


class Loader:
    """Moves journals into a database.

    Parameters
    ----------
    con : DuckDBPyConnection
        Open for writing, schema up to date.
    store : Store
        Its lock must be held.
    """

    def __init__(self, con: DuckDBPyConnection, store: Store) -> None:
        self.con = con
        self.store = store
        self._slice = store.root / "slice.tmp"
        self._start = sql("start.sql")
        self._ingest = sql("ingest.sql")

    def places(self) -> dict[str, Place]:
        """Give how far every known run is ingested."""
        rows = self.con.execute(
            "SELECT run_id, bytes, sha_tail, next_seq, parts, suspect FROM ingest_offsets"
        ).fetchall()
        return {row[0]: Place(*row[1:]) for row in rows}

    def drain(self, run_id: str, journal: Path, place: Place) -> Iterator[Loaded]:
        """Load everything new of a journal, one transaction for at most 2 MiB.

        Parameters
        ----------
        run_id : str
        journal : Path
            The journal in its JSONL form.
        place : Place
            Where to go on; moved along.

        Yields
        ------
        Loaded
            One a turn, after its commit.
        """
        try:
            if fault := _moved(journal, place):
                self._suspect(run_id, place, fault)
                return
            # What is written meanwhile waits for the next look: following a live journal line by
            # line would make a transaction and a text part of every few records.
            end = journal.stat().st_size
            while (
                place.suspect is None
                and place.bytes < end
                and (raw := read_slice(journal, place.bytes))
            ):
                yield self._turn(run_id, journal, place, raw)
        finally:
            self._slice.unlink(missing_ok=True)

    def _turn(self, run_id: str, journal: Path, place: Place, raw: bytes) -> Loaded:
        import duckdb

        con = self.con
        # Before the transaction: a slice that cannot be read would abort it.
        bad = self._fill_batch(run_id, place, raw)
        if fault := self._set_task(run_id):
            self._suspect(run_id, place, fault)
            return Loaded(errors=1)
        con.execute("BEGIN")
        try:
            if place.bytes == 0:
                con.execute(self._start)
            con.execute(self._ingest)
            for byte, reason, _ in bad:
                con.execute("INSERT INTO ingest_errors VALUES (?, ?, ?)", [run_id, byte, reason])
            if bad:
                quarantine(self.store.run_dir(run_id), bad)
            new = self._write_texts(run_id, journal, place, raw)
            con.execute(
                "INSERT INTO ingest_slices VALUES (?, ?, ?, ?)",
                [run_id, place.bytes, len(raw), hashlib.sha256(raw).hexdigest()],
            )
            self._save(run_id, new)
            rows, scores = self._one(
                "SELECT count(*) FILTER (type = 'sample'), count(*) FILTER (type = 'score') FROM batch"
            )
            con.execute("COMMIT")
        except BaseException:
            # A failed commit has ended the transaction already.
            with suppress(duckdb.TransactionException):
                con.execute("ROLLBACK")
            raise
        place.bytes, place.sha_tail = new.bytes, new.sha_tail
        place.next_seq, place.parts = new.next_seq, new.parts
        return Loaded(rows, scores, len(bad))

    def _fill_batch(self, run_id: str, place: Place, raw: bytes) -> list[tuple[int, str, bytes]]:
        """Make the table `batch` of a slice's good lines; give the bad ones."""
        import duckdb

        self.con.execute("SET VARIABLE run = ?", [run_id])
        try:
            self._read(raw)
            if self._is_sound(place, raw.count(b"\n")):
                return []
        except duckdb.Error:
            pass  # broken JSON or a wrong type: found below, line by line
        lines, bad = _decode_lines(run_id, place, raw)
        # msgspec and DuckDB do not refuse quite the same: halve until the refused stand alone.
        for line in _refused(self._accepts, lines):
            bad.append((line.byte, "the database cannot read it", line.raw))
            lines.remove(line)
        lines, repeated = _in_order(lines, place.next_seq)
        self._read(b"".join(line.raw + b"\n" for line in lines))
        return sorted(bad + repeated)

    def _read(self, raw: bytes) -> None:
        self._slice.write_bytes(raw)
        file = str(self._slice).replace("'", "''")
        self.con.execute(_READ.format(file=f"'{file}'", size=max(len(raw), 1 << 16)))

    def _is_sound(self, place: Place, n_lines: int) -> bool:
        rows, sound, distinct, first, last = self._one(
            f"SELECT count(*), count(*) FILTER ({_WELL_FORMED}), count(DISTINCT seq), min(seq), "
            "max(seq) FROM batch"
        )
        in_order = first == place.next_seq and last == first + rows - 1 and distinct == rows
        return bool(rows == sound == n_lines and in_order)

    def _accepts(self, lines: list[_Line]) -> bool:
        import duckdb

        try:
            self._read(b"".join(line.raw + b"\n" for line in lines))
        except duckdb.Error:
            return False
        rows, sound = self._one(f"SELECT count(*), count(*) FILTER ({_WELL_FORMED}) FROM batch")
        return bool(rows == sound == len(lines))

    def _set_task(self, run_id: str) -> str | None:
        """Tell the script which task the run is of; give a fault if nobody knows."""
        row = self.con.execute(
            "SELECT task_id, version, 0 FROM runs WHERE run_id = $run UNION ALL "
            "(SELECT task, task_version, schema FROM batch WHERE type = 'run_started' ORDER BY seq) "
            "LIMIT 1",
            {"run": run_id},
        ).fetchone()
        if row is None:
            return "the journal does not begin with a readable run_started"
        if row[2] > SCHEMA:
            return (
                f"the journal has record format {row[2]}, this package knows up to {SCHEMA}; "
                "upgrade with pip install -U bridge-harness, then run `harness store rebuild`"
            )
        self.con.execute("SET VARIABLE task = ?", [row[0]])
        self.con.execute("SET VARIABLE version = ?", [row[1]])
        return None

    def _write_texts(self, run_id: str, journal: Path, place: Place, raw: bytes) -> Place:
        """Write the turn's text part, if it has texts, and give the place that follows."""
        end = place.bytes + len(raw)
        last, n_texts = self._one(f"SELECT max(seq), count(*) FILTER ({_HAS_TEXT}) FROM batch")
        following = Place(
            bytes=end,
            sha_tail=tail_hash(journal, end),
            next_seq=place.next_seq if last is None else last + 1,
            parts=place.parts,
        )
        if n_texts:
            # The number comes from the same transaction: a turn that is done again after a crash
            # replaces the part that it left behind.
            part = self.store.run_dir(run_id) / f"text-{place.parts:03d}.parquet"
            new = part.with_suffix(".tmp")
            name = str(new).replace("'", "''")
            self.con.execute(f"COPY ({_TEXTS}) TO '{name}' (FORMAT parquet, COMPRESSION zstd)")
            fsync(new)
            new.rename(part)
            following.parts += 1
        return following

    def _save(self, run_id: str, place: Place) -> None:
        self.con.execute("DELETE FROM ingest_offsets WHERE run_id = ?", [run_id])
        self.con.execute(
            "INSERT INTO ingest_offsets VALUES (?, ?, ?, ?, ?, ?)",
            [run_id, place.bytes, place.sha_tail, place.next_seq, place.parts, place.suspect],
        )

    def _suspect(self, run_id: str, place: Place, why: str) -> None:
        if place.suspect is None:
            place.suspect = why
            self._save(run_id, place)

    def _one(self, query: str) -> tuple[Any, ...]:
        row = self.con.execute(query).fetchone()
        assert row is not None
        return row


def read_slice(path: Path, offset: int) -> bytes:
    """Read whole lines from an offset on: at most 2 MiB, or one line if that is longer."""
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(SLICE_BYTES)
        while b"\n" not in raw and (more := file.read(SLICE_BYTES)):
            raw += more
    return raw[: raw.rfind(b"\n") + 1]


def tail_hash(path: Path, offset: int) -> str:
    """Hash the last 4 KiB before an offset."""
    start = max(0, offset - TAIL_BYTES)
    with path.open("rb") as file:
        file.seek(start)
        return hashlib.sha256(file.read(offset - start)).hexdigest()


def fsync(path: Path) -> None:
    """Make a file or folder survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _moved(journal: Path, place: Place) -> str | None:
    """Tell whether a journal still begins with what was read from it."""
    if journal.stat().st_size < place.bytes:
        return f"the journal is shorter than the {place.bytes} bytes that were read from it"
    if place.bytes and tail_hash(journal, place.bytes) != place.sha_tail:
        return f"the journal was changed before byte {place.bytes}"
    return None


def _decode_lines(
    run_id: str, place: Place, raw: bytes
) -> tuple[list[_Line], list[tuple[int, str, bytes]]]:
    """Part a slice's lines into records of this run and, with the reason, bad lines."""
    good: list[_Line] = []
    bad: list[tuple[int, str, bytes]] = []
    byte = place.bytes
    for line in raw[:-1].split(b"\n"):
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            bad.append((byte, str(error), line))
        else:
            if record.run_id == run_id:
                good.append(_Line(byte, record.seq, line))
            else:
                bad.append((byte, f"belongs to run {record.run_id}", line))
        byte += len(line) + 1
    return good, bad


def _in_order(
    lines: list[_Line], next_seq: int
) -> tuple[list[_Line], list[tuple[int, str, bytes]]]:
    """Take out lines that are there a second time."""
    good: list[_Line] = []
    repeated: list[tuple[int, str, bytes]] = []
    for line in lines:
        if line.seq < next_seq:
            repeated.append((line.byte, f"seq {line.seq} was there before", line.raw))
        else:
            next_seq = line.seq + 1
            good.append(line)
    return good, repeated


def _refused(accepts: Callable[[list[_Line]], bool], lines: list[_Line]) -> list[_Line]:
    if not lines or accepts(lines):
        return []
    if len(lines) == 1:
        return lines
    half = len(lines) // 2
    return _refused(accepts, lines[:half]) + _refused(accepts, lines[half:])
