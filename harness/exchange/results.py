"""Everything a store's runs came to, as plain tables in one folder: Parquet, strict JSON or CSV.

Three tables: ``totals`` (a row a run and metric, with its interval), ``item_scores`` (a row an item of
each variant and strategy, over all its runs) and ``scores`` (every verdict, superseded ones included).
``results.json`` names the generation, the version of the code, and what was written.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from harness.runner.summary import Summary, summaries
from harness.store import queries
from harness.store.ingest import refresh
from harness.store.layout import Store
from harness.store.publish import current, snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

SCHEMA = 1
LEVEL = 0.95  # of every interval of a summary
_BATCH_ROWS = 10_000
_SCORES = """
SELECT s.*, r.variant_id, r.strategy AS run_strategy, r.is_baseline,
    r.submitter IS NOT NULL AS imported
FROM scores s JOIN runs r USING (run_id) ORDER BY s.run_id, s.seq, s.metric
"""
_ITEM_SCORES = """
SELECT i.*, v.model, v.is_baseline
FROM item_scores i
LEFT JOIN (
    SELECT variant_id, max(model) AS model, bool_or(is_baseline) AS is_baseline
    FROM runs GROUP BY variant_id
) v USING (variant_id)
ORDER BY i.task_id, i.version, i.variant_id, i.strategy, i.item_id
"""


def write_results(store: Store, out: Path, forms: Sequence[str]) -> dict[str, int]:
    """Write the results of a store into a folder.

    Parameters
    ----------
    store : Store
    out : Path
        The folder; made if need be, files of the same names are replaced.
    forms : sequence of {"parquet", "json", "csv"}

    Returns
    -------
    dict of str to int
        Rows by table.

    Raises
    ------
    StoreError
        Nothing was published yet and nothing can be.
    """
    refresh(store)
    con = snapshot(store)
    now = current(store)
    out.mkdir(parents=True, exist_ok=True)
    written = {
        "totals": _write(out / "totals", _totals(con, store), forms),
        "item_scores": _write(out / "item_scores", _batches(con, _ITEM_SCORES), forms),
        "scores": _write(out / "scores", _batches(con, _SCORES), forms),
    }
    about = {
        "schema": SCHEMA,
        "generation": now.generation if now else None,
        "code_version": version("bridge-harness"),
        "level": LEVEL,
        "tables": {name: {"rows": n, "forms": list(forms)} for name, n in written.items()},
    }
    (out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")
    return written


def _totals(con: DuckDBPyConnection, store: Store) -> Iterator[pa.RecordBatch]:
    """Give a row a run and metric; the first metric of a run is its headline."""
    import pyarrow as pa

    known = {row.run_id: row for row in queries.run_rows(con)}
    totals = queries.run_totals(con)
    code = version("bridge-harness")
    rows: list[dict[str, Any]] = []
    for one in summaries(store):
        # A run that began after the connection was made waits for the next export.
        if one.run_id in known:
            rows += _rows(one, known[one.run_id], totals[one.run_id], code)
    yield pa.RecordBatch.from_pylist(rows, schema=_schema())


def _rows(
    one: Summary, row: queries.RunRow, totals: queries.RunTotals, code: str
) -> Iterator[dict[str, Any]]:
    for place, (name, metric) in enumerate(one.metrics.items()):
        total = totals.totals.get(name)
        yield {
            "run_id": one.run_id, "task_id": one.task, "version": row.version, "model": one.model,
            "variant_id": row.variant, "strategy": one.strategy, "solver": one.solver,
            "is_baseline": one.is_baseline, "imported": one.imported, "submitter": one.submitter,
            "status": one.status, "metric": name, "is_headline": place == 0,
            "value": metric.value, "lo": metric.lo, "hi": metric.hi, "method": metric.method,
            "level": LEVEL, "n_items": total and total.n_items,
            "n_clusters": total and total.n_clusters, "n_planned": one.n_planned,
            "n_scored": one.n_scored, "n_counted": one.n_counted, **one.counts,
            "unparsed": one.unparsed, "open": one.open, "cached": one.cached,
            "errors_policy": one.errors, **one.usage, "seconds": one.seconds,
            "started": one.started, "code_version": code,
        }  # fmt: skip


def _schema() -> pa.Schema:
    """Name the types: a column that is empty in this store must not change its type for it."""
    import pyarrow as pa

    counts = ("n_items", "n_clusters", "n_planned", "n_scored", "n_counted", "error",
              "error_harness", "timeout", "truncated", "refused", "unscored", "unavailable",
              "unparsed", "open", "cached")  # fmt: skip
    return pa.schema([
        *((n, pa.string()) for n in ("run_id", "task_id", "version", "model", "variant_id",
                                     "strategy", "solver")),
        ("is_baseline", pa.bool_()), ("imported", pa.bool_()), ("submitter", pa.string()),
        ("status", pa.string()), ("metric", pa.string()), ("is_headline", pa.bool_()),
        *((n, pa.float64()) for n in ("value", "lo", "hi")), ("method", pa.string()),
        ("level", pa.float64()), *((n, pa.int64()) for n in counts),
        ("errors_policy", pa.string()), ("tokens_in", pa.int64()), ("tokens_out", pa.int64()),
        ("cost_usd", pa.float64()), ("seconds", pa.float64()), ("started", pa.string()),
        ("code_version", pa.string()),
    ])  # fmt: skip


def _batches(con: DuckDBPyConnection, query: str) -> Iterator[pa.RecordBatch]:
    # A cursor of its own: what is asked of the connection meanwhile would end the result.
    yield from con.cursor().sql(query).to_arrow_reader(_BATCH_ROWS)


class _Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


def _write(path: Path, batches: Iterator[pa.RecordBatch], forms: Sequence[str]) -> int:
    """Write a table in every form at once, so that the store is read once."""
    kinds: dict[str, Callable[[Path], _Writer]] = {
        "parquet": _Parquet, "json": _Json, "csv": _Csv,
    }  # fmt: skip
    n = 0
    with ExitStack() as stack:
        writers: list[_Writer] = []
        for form in forms:
            writer = kinds[form](path.with_name(f"{path.name}.{form}"))
            stack.callback(writer.close)
            writers.append(writer)
        for batch in batches:
            n += batch.num_rows
            for writer in writers:
                writer.write(batch)
    return n


class _Parquet:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, batch.schema, compression="zstd")
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Json:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._before = b"["

    def write(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            self._file.write(self._before + b"\n" + msgspec.json.encode(row))
            self._before = b","

    def close(self) -> None:
        self._file.write(b"[]\n" if self._before == b"[" else b"\n]\n")
        self._file.close()


class _Csv:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer: csv.DictWriter[str] | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, batch.schema.names)
            self._writer.writeheader()
        self._writer.writerows(batch.to_pylist())

    def close(self) -> None:
        self._file.close()
