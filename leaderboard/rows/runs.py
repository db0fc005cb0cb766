"""Rows of the page Runs: every published run, one run whole, and in what two of them differ."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.errors import StoreError
from harness.core.records import RunStarted
from harness.stats.intervals import Estimate
from harness.store.difference import diff_runs, flat
from harness.store.journal import started
from harness.store.layout import Store
from harness.store.queries import RunRow, RunTotals, run_rows, run_totals, unchecked_scores
from leaderboard.rows.ranks import estimate_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

STATUSES = (
    "n_scored", "error", "error_harness", "timeout", "truncated", "refused", "unscored",
    "unavailable", "open",
)  # fmt: skip
"""What the planned attempts of a run are split into, without rest and without overlap."""


# What reaches answers or verdicts, with the values that need not be said.
_OPTIONS: dict[str, Any] = {
    "limit": None, "first": None, "ids": None, "epochs": 1, "seed": 0, "solver": None,
    "strategy": None, "fewshot": 0, "system": None, "chat_template": "auto", "no_data": False,
    "max_tokens": None, "temperature": None, "top_p": None, "stop": None, "dtype": "auto",
    "on_long": "error", "errors": "wrong", "sandbox": "auto", "data_root": None, "data": None,
    "judge": None,
}  # fmt: skip


class RunListRow(Struct, frozen=True, kw_only=True):
    """One run; columns as in `leaderboard.columns.COLUMNS`.

    Attributes
    ----------
    status : str
        ``done``, ``partial``, ``failed`` or ``suspect`` as on the command line; ``unfinished``: it
        has not written its end, and the snapshot cannot tell whether it still goes on.
    value, lo, hi : float or None
        The headline metric with its 95 % interval.
    """

    run_id: str
    task: str
    version: str
    model: str
    status: str
    baseline: bool
    metric: str
    value: float | None
    lo: float | None
    hi: float | None
    method: str
    strategy: str
    solver: str
    n_planned: int
    n_scored: int
    n_counted: int
    error: int
    error_harness: int
    timeout: int
    truncated: int
    refused: int
    unscored: int
    unavailable: int
    no_answer: int
    open: int
    reused: int
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    seconds: float | None
    started: datetime
    finished: datetime | None
    flags: tuple[str, ...]


class StatusCount(Struct, frozen=True, kw_only=True):
    """How many attempts of a run ended in a way."""

    status: str
    n: int
    share: float


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that a run says of itself."""

    group: str
    name: str
    value: Any


class DifferenceRow(Struct, frozen=True, kw_only=True):
    """One fact that is not the same in two runs."""

    group: str
    name: str
    a: str
    b: str


def run_list(con: DuckDBPyConnection) -> list[RunListRow]:
    """List the runs of a snapshot, newest first."""
    totals = run_totals(con)
    rows = []
    for run in reversed(run_rows(con)):
        found = totals[run.run_id]
        # A strategy's verdict leads, as on the command line.
        metric = run.strategy if run.strategy in found.totals else run.metric
        total = found.totals.get(metric)
        mean = estimate_of(total) if total else _adaptive(found)
        rows.append(RunListRow(
            run_id=run.run_id, task=run.task, version=run.version, model=run.model,
            status=_status(run.status, found.counts), baseline=run.is_baseline, metric=metric,
            value=mean.value if mean else None, lo=mean.lo if mean else None,
            hi=mean.hi if mean else None, method=mean.method if mean else "",
            strategy=run.strategy, solver=run.solver, seconds=run.seconds, started=run.started,
            finished=run.finished, flags=_flags(run, mean),
            reused=found.usage.reused, tokens_in=found.usage.tokens_in,
            tokens_out=found.usage.tokens_out, cost_usd=found.usage.cost_usd,
            **{name: found.counts[name] for name in (
                "n_planned", "n_counted", "no_answer", *STATUSES
            )},
        ))  # fmt: skip
    return rows


def _status(said: str, counts: dict[str, int]) -> str:
    if said == "suspect":
        return said
    if said == "running":
        return "unfinished"
    if counts["n_counted"] == 0 and counts["n_planned"] > counts["unscored"]:
        return "failed"
    left = counts["open"] or counts["error_harness"] or counts["unavailable"]
    return "partial" if left or said != "done" else "done"


def _adaptive(found: RunTotals) -> Estimate | None:
    """Give the estimated score of an adaptive run, whose items were chosen; None for any other."""
    outcome = found.adaptive
    if outcome is None:
        return None
    return Estimate(
        value=outcome["score"], se=None, lo=outcome["lo"], hi=outcome["hi"], method="irt-adaptive",
        level=outcome["level"], n_items=outcome["n_answered"], n_clusters=outcome["n_answered"],
        notes=("adaptive",),
    )  # fmt: skip


def _flags(run: RunRow, mean: Estimate | None) -> tuple[str, ...]:
    marks = {
        "baseline": run.is_baseline,
        "test model": run.model.split("?")[0] == "hf:tiny",
        "imported": run.submitter is not None,
        "scores unchecked": unchecked_scores(run.environment) > 0,
    }
    return (*(name for name, is_so in marks.items() if is_so), *(mean.notes if mean else ()))


def status_counts(run: RunListRow) -> list[StatusCount]:
    """Split the planned attempts of a run by how they ended; they sum to all that were planned."""
    names = {"n_scored": "scored", "error_harness": "fault of harness, engine or network"}
    return [
        StatusCount(
            status=names.get(name, name), n=getattr(run, name),
            share=getattr(run, name) / run.n_planned if run.n_planned else 0.0,
        )
        for name in STATUSES
    ]  # fmt: skip


def facts(store: Store, run_id: str) -> list[Fact]:
    """List what a run says of itself in its journal; nothing where the journal is not there."""
    try:
        run = started(store, run_id)
    except StoreError:
        return []
    parts: Sequence[tuple[str, dict[str, Any]]] = (
        ("task", {"name": run.task, "version": run.task_version, **run.task_info}),
        ("model", run.identity),
        ("configuration", run.config),
        ("judging", {"scorer": run.scorer, "metric": run.metric, "errors": run.errors}),
        ("environment", run.environment),
    )
    return [
        Fact(group=group, name=name, value=value)
        for group, named in parts
        for name, value in flat(named).items()
        if value not in (None, "", [], {})
    ]


def differences(con: DuckDBPyConnection, store: Store, a: str, b: str) -> list[DifferenceRow]:
    """Say in what two runs differ; items and keys first.

    Raises
    ------
    StoreError
        When a journal has no plan.
    """
    found = diff_runs(con, store, a, b)
    same = f"{found.equal_keys} of {found.n_attempts}"
    counted: list[tuple[str, object, object]] = [
        ("items planned", found.n_items_a, found.n_items_b),
        ("shared items", found.n_shared, found.n_shared),
        ("shared items with other content", len(found.other_content), len(found.other_content)),
        ("attempts with the same key", same, same),
    ]
    return [
        *(DifferenceRow(group="items", name=n, a=str(x), b=str(y)) for n, x, y in counted),
        *(
            DifferenceRow(group=d.group, name=d.name, a=_text(d.a), b=_text(d.b))
            for d in found.differences
        ),
    ]


def resume_command(store: Store, run_id: str) -> str:
    """Give the command that goes on with a run."""
    return shlex.join(["harness", "resume", run_id, "--store", str(store.root)])


def reproduce_command(run: RunStarted, store: Store) -> str:
    """Give the command that makes a run again from nothing.

    Parameters
    ----------
    run : RunStarted
        Its first record: what was asked for stands in `config`.
    store : Store
    """
    words = [
        "harness",
        "run",
        "--task",
        run.task,
        "--model",
        str(run.config.get("model", run.model)),
    ]
    for name, usual in _OPTIONS.items():
        value, option = run.config.get(name), f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, list):
            words += [part for one in value for part in (option, str(one))]
        elif value not in (None, usual):
            words += [option, str(value)]
    for name, value in (run.config.get("args") or {}).items():
        words += ["--arg", f"{name}={value}"]
    return shlex.join([*words, "--fresh", "--store", str(store.root)])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
