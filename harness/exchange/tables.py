"""The journal's records as Parquet tables and back, every value checked on the way in."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.records import SCHEMA, EventRecord, RunFinished, SampleRecord, ScoreRecord
from harness.exchange.container import EVENTS, SAMPLES, SCORES
from harness.exchange.manifest import MOST_ATTEMPTS, Member
from harness.exchange.rejected import Reasons
from harness.store.redact import TEXT_LIMIT

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Row = SampleRecord | ScoreRecord | EventRecord | RunFinished
TABLES = (SAMPLES, SCORES, EVENTS)
TABLE_BYTES = 4 << 30  # of one table, unfolded
_TEXT_BYTES = TEXT_LIMIT + 200  # what the journal cuts, and its mark
_GROUP_ROWS = 5000
_BATCH_ROWS = 256
_ENDED = "run_finished"
_TS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_AGAIN = "ask the sender to write it anew with `harness export submission`"
# Arrow's names; `records` gives them their types. The run's id and the format stand in the manifest.
_COLUMNS = {
    SAMPLES: {
        "seq": "int64", "ts": "string", "item_id": "string", "epoch": "int64", "attempt": "int64",
        "key": "string", "status": "string", "prompt": "string", "output": "string",
        "error_kind": "string", "error": "string", "finish_reason": "string",
        "reasoning": "string", "tool_log": "string", "tokens_in": "int64", "tokens_out": "int64",
        "tokens_reasoning": "int64", "prompt_ids_head": "list<int64>",
        "prompt_truncated": "int64", "choice_logprobs": "list<double>", "latency_ms": "double",
        "peak_mem_bytes": "int64", "cost_usd": "double", "isolation": "string",
        "reused_from": "string",
    },
    SCORES: {
        "seq": "int64", "ts": "string", "item_id": "string", "epoch": "int64", "attempt": "int64",
        "scorer": "string", "scorer_version": "string", "metric": "string", "status": "string",
        "value": "double", "passed": "bool", "answer": "string", "explanation": "string",
        "reason": "string", "judge_variant": "string", "metrics": "map<string, double>",
        "replaces": "int64", "isolation": "string",
    },
    EVENTS: {
        "seq": "int64", "ts": "string", "kind": "string", "item_id": "string", "epoch": "int64",
        "attempt": "int64", "data": "string",
    },
}  # fmt: skip


class Rows(Struct):
    """The records of a run after its plan: in the order of the journal within each kind."""

    samples: list[SampleRecord] = msgspec.field(default_factory=list)
    scores: list[ScoreRecord] = msgspec.field(default_factory=list)
    events: list[EventRecord | RunFinished] = msgspec.field(default_factory=list)

    def in_order(self) -> list[Row]:
        """Give all of them as the journal has them."""
        every: list[Row] = [*self.samples, *self.scores, *self.events]
        return sorted(every, key=lambda record: record.seq)

    def add(self, record: Row) -> None:
        """Put a record where it belongs."""
        if isinstance(record, SampleRecord):
            self.samples.append(record)
        elif isinstance(record, ScoreRecord):
            self.scores.append(record)
        else:
            self.events.append(record)


def write_tables(rows: Rows) -> dict[str, bytes]:
    """Write the three tables, by the names of their members."""
    made: dict[str, Iterable[Row]] = {
        SAMPLES: rows.samples, SCORES: rows.scores, EVENTS: rows.events,
    }  # fmt: skip
    return {name: _write(name, records) for name, records in made.items()}


def read_tables(
    members: dict[str, bytes], run_id: str, said: dict[str, Member], reasons: Reasons
) -> Rows:
    """Read the tables of a submission.

    Parameters
    ----------
    members : dict of str to bytes
    run_id : str
    said : dict of str to Member
        What the manifest says of them.
    reasons : Reasons
        Receives what is wrong; rows that cannot be records are left out then.
    """
    rows = Rows()
    for name in TABLES:
        for record in _read(name, members[name], run_id, said[name], reasons):
            rows.add(record)
    return rows


def _schema(name: str) -> pa.Schema:
    import pyarrow as pa

    nested = {
        "list<int64>": pa.list_(pa.int64()),
        "list<double>": pa.list_(pa.float64()),
        "map<string, double>": pa.map_(pa.string(), pa.float64()),
        "bool": pa.bool_(),
    }
    return pa.schema(
        [(column, nested.get(kind) or pa.type_for_alias(kind)) for column, kind in
         _COLUMNS[name].items()]
    )  # fmt: skip


def _write(name: str, records: Iterable[Row]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, file = _schema(name), io.BytesIO()
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        left = iter(records)
        while rows := [_row(record, schema.names) for record in islice(left, _GROUP_ROWS)]:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return file.getvalue()


def _row(record: Row, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(record, RunFinished):
        end = {"status": record.status, "seconds": record.seconds, "cached": record.cached}
        data = msgspec.json.encode(end).decode()
        return {"seq": record.seq, "ts": record.ts, "kind": _ENDED, "data": data}
    row = {name: getattr(record, name) for name in names}
    if isinstance(record, ScoreRecord):
        row["metrics"] = list(record.metrics.items())
    elif isinstance(record, EventRecord):
        row["data"] = msgspec.json.encode(record.data).decode()
    return row


def _read(name: str, raw: bytes, run_id: str, said: Member, reasons: Reasons) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(raw))
        if _is_wrong_table(name, file, said, reasons):
            return
        n_bytes = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
            n_bytes += batch.nbytes
            if n_bytes > TABLE_BYTES:
                reasons.add("a table is too large", name, "send the run in parts")
                return
            for row in batch.to_pylist():
                record = _record(name, row, run_id, reasons)
                if record is not None:
                    yield record
    except (pa.ArrowException, OSError, ValueError) as error:
        reasons.add("a table cannot be read", f"{name} ({str(error)[:200]})", _AGAIN)


def _is_wrong_table(name: str, file: pq.ParquetFile, said: Member, reasons: Reasons) -> bool:
    """Compare a table's form and size with what they must be, before any row is read."""
    meta = file.metadata
    expected, found = _schema(name), file.schema_arrow
    if not found.equals(expected):
        types = [{field.name: field.type for field in one} for one in (found, expected)]
        names = sorted({*types[0], *types[1]})
        wrong = [n for n in names if types[0].get(n) != types[1].get(n)] or ["their order"]
        reasons.add("the columns of a table are others", f"{name} ({', '.join(wrong)})", _AGAIN)
        return True
    size = sum(
        meta.row_group(g).column(c).total_uncompressed_size
        for g in range(meta.num_row_groups)
        for c in range(meta.num_columns)
    )
    # A run may have many events and retries, yet not without end.
    if size > TABLE_BYTES or meta.num_rows > 20 * MOST_ATTEMPTS:
        where = f"{name} ({meta.num_rows} rows, {size} bytes unfolded)"
        reasons.add("a table is too large", where, "send the run in parts (--ids, --limit)")
        return True
    if meta.num_rows != said.rows:
        where = f"{name} has {meta.num_rows} rows, the manifest says {said.rows}"
        reasons.add("rows are missing or were added", where, _AGAIN)
    return False


def _record(name: str, row: dict[str, Any], run_id: str, reasons: Reasons) -> Row | None:
    where = f"{name} seq {row['seq']}"
    if not _is_sound(row, where, reasons):
        return None
    given = {key: value for key, value in row.items() if value is not None}
    given |= {"run_id": run_id, "schema": SCHEMA}
    try:
        if name == SAMPLES:
            return msgspec.convert(given | {"type": "sample"}, SampleRecord)
        if name == SCORES:
            given["metrics"] = dict(given.get("metrics", ()))
            return msgspec.convert(
                {"value": None, **given, "type": "score"}, ScoreRecord
            )  # a value that is not there is a fact, no default
        data = msgspec.json.decode(given.get("data", "{}"), type=dict[str, Any])
        if given["kind"] == _ENDED:
            end = {**data, **{k: given[k] for k in ("seq", "ts", "run_id", "schema")}}
            return msgspec.convert(end | {"type": _ENDED}, RunFinished)
        return msgspec.convert(given | {"data": data, "type": "event"}, EventRecord)
    except (msgspec.DecodeError, RecursionError, KeyError) as error:
        reasons.add("a row is no record", f"{where} ({error})", _AGAIN)
        return None


def _is_sound(row: dict[str, Any], where: str, reasons: Reasons) -> bool:
    """Check what the types do not: times, lengths, and that every number is one."""
    faults = []
    if row["seq"] is None or row["seq"] < 1 or not _TS.fullmatch(row["ts"] or ""):
        faults.append(("a row has no place in the journal", f"{where}, ts {row['ts']!r}"))
    metrics = row.get("metrics") or ()
    if len({key for key, _ in metrics}) != len(metrics):
        faults.append(("a metric stands twice in a row", where))
    for column, value in row.items():
        if not _is_finite(value):
            faults.append(("a number is not finite", f"{where} column {column}"))
        if isinstance(value, str) and len(value.encode()) > _TEXT_BYTES:
            faults.append(("a text is longer than a journal keeps", f"{where} column {column}"))
    for what, place in faults:
        reasons.add(what, place, _AGAIN)
    return not faults


def _is_finite(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
