"""`harness export results|samples|submission|grading|trajectories|site`: what the store holds."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli.grading import export_forms
from harness.cli.output import note, print_json
from harness.core.errors import StoreError, UsageError, unknown
from harness.store.layout import Store

_WHAT = ("results", "samples", "submission", "grading", "trajectories", "site")
_FORMATS = ("csv", "json", "parquet")


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("export", help=line)(export)


def export(
    what: Annotated[
        str,
        typer.Argument(
            help="results: a row a run, or with a folder as --out all tables; samples: a row an "
            "attempt; submission RUN: one file that others can check and import; grading RUN: forms for "
            "people who grade; trajectories RUN: attempts as conversations, a JSON line each; site DIR: "
            "a folder of pages that opens from disk."
        ),
    ],
    run: Annotated[
        str | None,
        typer.Argument(
            help="For submission, grading, trajectories: the run; for site: the folder."
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="csv, json or parquet [csv; a folder: parquet and json]."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File, for results and grading also a folder [stdout; for grading .].",
        ),
    ] = None,
    with_model: Annotated[
        bool, typer.Option("--with-model", help="For grading: tell graders which model it was.")
    ] = False,
    min_score: Annotated[
        float | None,
        typer.Option("--min-score", help="For trajectories: leave out what scored less [all]."),
    ] = None,
    submitter: Annotated[
        str, typer.Option(help="For submission: who sends it, as the file will say.")
    ] = "unnamed",
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="For site: pages without a header, for frames.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="For submission, grading, site: strict JSON on stdout.")
    ] = False,
) -> int:
    """Write what the store holds, with every count and interval."""
    if what not in _WHAT:
        raise unknown("export", what, _WHAT)
    if form is not None and form not in _FORMATS:
        raise unknown("format", form, _FORMATS)
    if what == "submission":
        return _submission(run, form, out, submitter, store, json)
    if what == "grading":
        return export_forms(run, form, out, with_model, store, json)
    if what == "trajectories":
        return _trajectories(run, form, out, min_score, store)
    if what == "site":
        return _site(run, form, out, store, embed, json)
    if run is not None:
        raise UsageError(f"export {what} takes no run: it writes all of them")
    if form == "parquet" and out is None:
        raise UsageError("Parquet is binary: name a file with --out FILE")
    opened = Store.open(store, create=False)
    try:
        if what == "results" and out is not None and (out.is_dir() or not out.suffix):
            return _folder(opened, out, form)
        return _file(opened, what, form or "csv", out)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from error


def _submission(
    run: str | None, form: str | None, out: Path | None, submitter: str, store: str | None,
    json: bool,
) -> int:  # fmt: skip
    from harness.exchange.rejected import RejectedError
    from harness.exchange.submission import export_submission

    if run is None or form is not None:
        raise UsageError("say which run, and no format: harness export submission RUN --out FILE")
    try:
        made = export_submission(Store.open(store, create=False), run, out, submitter)
    except RejectedError as refused:
        for reason in refused.reasons:
            note(f"harness: {reason}")
        note(f"harness: run {run} would be refused everywhere; nothing was written")
        return 1
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from error
    if json:
        print_json(made)
    note(f"{made.attempts} attempts and {made.scores} scores written to {made.file} "
         f"(sha256 {made.sha256[:16]}…)")  # fmt: skip
    return 0


def _trajectories(
    run: str | None, form: str | None, out: Path | None, least: float | None, store: str | None
) -> int:
    import msgspec

    from harness.exchange.trajectories import trajectories

    if run is None or form not in (None, "json"):
        raise UsageError(
            "say which run; it is JSON lines: harness export trajectories RUN --out FILE"
        )
    lines = [
        msgspec.json.encode(one) + b"\n"
        for one in trajectories(Store.open(store, create=False), run, least)
    ]
    if out is None:
        sys.stdout.buffer.writelines(lines)
    else:
        try:
            out.write_bytes(b"".join(lines))
        except OSError as error:
            raise StoreError(f"cannot write {out}: {error.strerror}") from error
    note(f"{len(lines)} attempts written")
    return 0


def _site(
    folder: str | None, form: str | None, out: Path | None, store: str | None, embed: bool,
    json: bool,
) -> int:  # fmt: skip
    from harness.core.errors import MissingPackageError
    from harness.store.ingest import refresh

    if folder is None or form is not None or out is not None:
        raise UsageError("name the folder, and no format and no --out: harness export site DIR")
    try:
        from leaderboard.site.export import export_site
    except ModuleNotFoundError as error:
        # A broken module of our own is a fault, not a missing package.
        if error.name is None or error.name.partition(".")[0] in ("leaderboard", "harness"):
            raise
        raise MissingPackageError(
            "the static site", error.name, "pip install 'bridge-harness[board]'"
        ) from error
    opened = Store.open(store, create=False)
    refresh(opened)
    made = export_site(opened, Path(folder), embed=embed)
    if json:
        print_json(made)
    pages = sum(name.endswith(".html") for name in made.files)
    note(f"{pages} pages and {len(made.tables)} tables of snapshot {made.generation or 'none'} "
         f"written to {folder}; open {Path(folder) / 'index.html'}")  # fmt: skip
    return 0


def _folder(store: Store, out: Path, form: str | None) -> int:
    from harness.exchange.results import write_results

    written = write_results(store, out, (form,) if form else ("parquet", "json"))
    note(", ".join(f"{n} rows of {name}" for name, n in written.items()) + f" written to {out}")
    return 0


def _file(store: Store, what: str, form: str, out: Path | None) -> int:
    from harness.runner.lifecycle import all_runs

    summaries = all_runs(store)
    rows = [_flat(s) for s in summaries] if what == "results" else _attempts(store)
    _write(rows, form, out)
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
        "started": summary.started, "imported": summary.imported, "submitter": summary.submitter,
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
