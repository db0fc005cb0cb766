"""What a run came to: counts, metrics with intervals, usage. Always read from the store."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from harness.stats.intervals import Estimate, estimate
from harness.store import queries
from harness.store.layout import Store
from harness.store.publish import snapshot

_COUNTS = ("error", "error_harness", "timeout", "truncated", "refused", "unscored", "unavailable")


class Metric(Struct, frozen=True):
    """A value with its interval and the method that made it."""

    value: float | None
    lo: float | None
    hi: float | None
    method: str


class Summary(Struct, kw_only=True):
    """One run in numbers, in the form of ``harness run --json``.

    Attributes
    ----------
    status : {"done", "partial", "failed"}
        ``partial``: something planned is open, unavailable or fell to a fault of harness, engine
        or network. ``failed``: nothing at all could be counted.
    n_planned, n_scored, n_counted : int
        Planned attempts, those with status `scored`, and the denominator.
    counts : dict
        The other statuses; together with `n_scored` and `open` they sum to `n_planned`.
    unparsed, open : int
        Unreadable answers (part of `error`) and attempts not made.
    cached : int
        Attempts answered by earlier runs.
    metrics : dict
        The headline first.
    seconds : float or None
        Wall time.
    store : str
        Folder of the store.
    """

    run_id: str
    task: str
    model: str
    is_baseline: bool
    status: Literal["done", "partial", "failed"]
    n_planned: int
    n_scored: int
    n_counted: int
    counts: dict[str, int]
    unparsed: int
    open: int
    cached: int
    metrics: dict[str, Metric]
    usage: dict[str, Any]
    seconds: float | None
    store: str
    solver: str = ""
    strategy: str = ""
    errors: str = "wrong"
    started: str = ""
    notes: list[str] = field(default_factory=list)


def summarise(store: Store, run_id: str) -> Summary:
    """Read one run's summary from the published store."""
    return summaries(store, [run_id])[0]


def summaries(store: Store, run_ids: list[str] | None = None) -> list[Summary]:
    """Read the summaries of some runs, or of all, oldest first."""
    con = snapshot(store)
    return [_one(con, store, row) for row in queries.run_rows(con, run_ids)]


def _one(con: Any, store: Store, row: queries.RunRow) -> Summary:
    run_id = row.run_id
    counts = queries.counts(con, run_id)
    metrics: dict[str, Metric] = {}
    notes: list[str] = []
    names = queries.metrics(con, run_id)
    for name in sorted(names, key=lambda n: n != row.strategy):  # a strategy's verdict leads
        values = queries.item_values(con, run_id, name)
        result = _estimate(values)
        metrics[name] = Metric(result.value, result.lo, result.hi, result.method)
        notes.extend(n for n in result.notes if n not in notes)
    usage = queries.usage(con, run_id)
    return Summary(
        run_id=run_id,
        task=row.task,
        model=row.model,
        is_baseline=row.is_baseline,
        status=_status(counts),
        n_planned=counts["n_planned"],
        n_scored=counts["n_scored"],
        n_counted=counts["n_counted"],
        counts={name: counts[name] for name in _COUNTS},
        unparsed=counts["no_answer"],
        open=counts["open"],
        cached=row.cached,
        metrics=metrics,
        usage={
            "tokens_in": usage.tokens_in,
            "tokens_out": usage.tokens_out,
            "cost_usd": usage.cost_usd,
        },
        seconds=row.seconds,
        store=str(store.root),
        solver=row.solver,
        strategy=row.strategy,
        errors=row.errors,
        started=row.started.isoformat(),
        notes=notes,
    )


def _estimate(values: list[tuple[str, str | None, float, int]]) -> Estimate:
    clusters = [v[1] if v[1] is not None else f"\x00{v[0]}" for v in values]
    clustered = len(set(clusters)) < len(clusters)
    return estimate([v[2] for v in values], clusters if clustered else None)


def _status(counts: dict[str, int]) -> Literal["done", "partial", "failed"]:
    if counts["n_counted"] == 0 and counts["n_planned"] > counts["unscored"]:
        return "failed"
    if counts["open"] or counts["error_harness"] or counts["unavailable"]:
        return "partial"
    return "done"
