"""`harness export results`: the store's runs as CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.output import note, print_json
from harness.core.errors import StoreError, UsageError, unknown
from harness.store.layout import Store

_FORMATS = ("csv", "json", "parquet")


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("export", help=line)(export)


def export(
    what: Annotated[str, typer.Argument(help="results: a row a run; samples: a row an attempt.")],
    form: Annotated[str, typer.Option("--format", help="csv, json or parquet.")] = "csv",
    out: Annotated[Path | None, typer.Option(help="File; stdout by default.")] = None,
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
) -> int:
    """Write what the store holds, with every count and interval, in one file."""
    if what not in ("results", "samples"):
        raise unknown("export", what, ("results", "samples"))
    if form not in _FORMATS:
        raise unknown("format", form, _FORMATS)
    if form == "parquet" and out is None:
        raise UsageError("Parquet is binary: name a file with --out FILE")
    from harness.runner.lifecycle import all_runs

    opened = Store.open(store, create=False)
    summaries = all_runs(opened)
    rows = [_flat(s) for s in summaries] if what == "results" else _attempts(opened)
    try:
        _write(rows, form, out)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from error
    note(f"{len(rows)} rows written" + (f" to {out}" if out else ""))
    return 0


def _flat(summary: Any) -> dict[str, Any]:
    """Lay one run flat: its headline metric with interval, every count in a column of its own."""
    name, metric = next(iter(summary.metrics.items()), ("", None))
    return {
        "run_id": summary.run_id, "task": summary.task, "model": summary.model,
        "is_baseline": summary.is_baseline, "solver": summary.solver,
        "strategy": summary.strategy, "status": summary.status, "metric": name,
        "value": metric and metric.value, "lo": metric and metric.lo, "hi": metric and metric.hi,
        "method": metric and metric.method, "n_planned": summary.n_planned,
        "n_scored": summary.n_scored, "n_counted": summary.n_counted, **summary.counts,
        "unparsed": summary.unparsed, "open": summary.open, "cached": summary.cached,
        "errors_policy": summary.errors, **summary.usage, "seconds": summary.seconds,
        "started": summary.started,
    }  # fmt: skip


def _attempts(store: Store) -> list[dict[str, Any]]:
    from harness.store import queries
    from harness.store.publish import snapshot

    con = snapshot(store)
    return [row for run in queries.run_rows(con, None) for row in queries.attempts(con, run.run_id)]


def _write(rows: list[dict[str, Any]], form: str, out: Path | None) -> None:
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), out)
        return
    if form == "json" and out is None:
        print_json(rows)
        return
    if form == "json" and out is not None:
        import msgspec

        out.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
        return
    file = out.open("w", newline="") if out else sys.stdout
    try:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
    finally:
        if out:
            file.close()
