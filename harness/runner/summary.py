"""What a run came to: counts, metrics with intervals, usage. Always read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from harness.core.errors import HarnessError
from harness.runner.adaptive_outcome import METHOD, Outcome
from harness.runner.repeats import Repeats, repeats_of
from harness.stats.intervals import Estimate, estimate, ratio, wilson
from harness.store import queries
from harness.store.journal import started
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
        or network, or the run has not come to its end. ``failed``: nothing at all could be counted.
    n_planned, n_scored, n_counted : int
        Planned attempts, those with status `scored`, and the denominator.
    counts : dict
        The other statuses; together with `n_scored` and `open` they sum to `n_planned`.
    unparsed, open : int
        Unreadable answers (part of `error`) and attempts not made.
    cached : int
        Attempts answered by earlier runs.
    metrics : dict
        The headline first; with repeats and scores of 0 and 1, ``pass@k`` for every k from 2 on;
        where a scorer says ``points_possible``, the ``scoring_rate``.
    seconds : float or None
        Wall time.
    store : str
        Folder of the store.
    imported, submitter : bool, str or None
        Whether somebody else ran it and sent it (`harness import`), and who.
    unchecked : int
        Scores of an imported run that could not be given again here: they are the sender's word.
    by_people : int
        Answers whose verdict people gave (`harness import grading --as-verdict`).
    adaptive : Outcome or None
        Of an adaptive run: ability, and the estimated score over all items, which is then the only
        metric (its method is ``irt-adaptive``): means over items that were chosen are none.
    repeats : Repeats or None
        The headline's uncertainty from items and from repeats, where items were repeated.
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
    imported: bool = False
    submitter: str | None = None
    unchecked: int = 0
    by_people: int = 0
    notes: list[str] = field(default_factory=list)
    adaptive: Outcome | None = None
    repeats: Repeats | None = None

    @property
    def is_test_model(self) -> bool:
        """Whether it is our own test model, which is no contender."""
        return self.model.split("?")[0] == "hf:tiny"


def summarise(store: Store, run_id: str) -> Summary:
    """Read one run's summary from the published store."""
    found = summaries(store, [run_id])
    if not found:
        raise HarnessError(f"run {run_id} ended before its plan was written: start it anew")
    return found[0]


def summaries(store: Store, run_ids: list[str] | None = None) -> list[Summary]:
    """Read the summaries of some runs, or of all, oldest first."""
    con = snapshot(store)
    totals = queries.run_totals(con, run_ids)
    by_people = queries.human_verdicts(con)
    return [
        msgspec.structs.replace(
            _one(con, store, row, totals[row.run_id]), by_people=by_people.get(row.run_id, 0)
        )
        for row in queries.run_rows(con, run_ids)
    ]


def headline_of(summary: Summary) -> tuple[str, Metric]:
    """Give a run's first metric by name; one without a value where nothing was scored."""
    return next(iter(summary.metrics.items()), ("", Metric(None, None, None, "")))


def _one(con: Any, store: Store, row: queries.RunRow, totals: queries.RunTotals) -> Summary:
    run_id, counts, usage = row.run_id, totals.counts, totals.usage
    metrics: dict[str, Metric] = {}
    notes: list[str] = []
    outcome = None
    if (msgspec.json.decode(row.config) or {}).get("adaptive"):
        if totals.adaptive is not None:
            outcome = msgspec.convert(totals.adaptive, Outcome)
        metrics[row.metric] = _estimated(outcome)
    # A strategy's verdict leads.
    names = () if metrics else sorted(totals.metrics, key=lambda n: n != row.strategy)
    for name, result in _estimates(con, run_id, names, totals.totals).items():
        metrics[name] = Metric(result.value, result.lo, result.hi, result.method)
        if not _is_count(name):
            notes.extend(n for n in result.notes if n not in notes)
    if "points_possible" in metrics:
        metrics = _with_scoring_rate(con, store, run_id, metrics, notes)
    repeats = None
    if row.epochs > 1 and metrics:
        repeats, pass_at_k = repeats_of(con, run_id, next(iter(metrics)))
        metrics |= {k: Metric(e.value, e.lo, e.hi, e.method) for k, e in pass_at_k.items()}
    return Summary(
        run_id=run_id,
        task=row.task,
        model=row.model,
        is_baseline=row.is_baseline,
        status=_status(counts, finished=row.status == "done"),
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
        imported=row.submitter is not None,
        submitter=row.submitter,
        unchecked=queries.unchecked_scores(row.environment),
        notes=notes,
        adaptive=outcome,
        repeats=repeats,
    )


def _estimated(outcome: Outcome | None) -> Metric:
    """Give the headline of an adaptive run; without a value before the first answer."""
    if outcome is None:
        return Metric(None, None, None, METHOD)
    return Metric(outcome.score, outcome.lo, outcome.hi, METHOD)


def _estimates(
    con: Any, run_id: str, names: Sequence[str], totals: Mapping[str, queries.Total]
) -> dict[str, Estimate]:
    """Choose the intervals: a proportion needs its two sums only, anything else every item."""
    found: dict[str, Estimate] = {}
    alone = [name for name in names if _is_proportion(totals.get(name))]
    values = queries.item_values_of(con, run_id, [name for name in names if name not in alone])
    for name in names:
        total = totals.get(name)
        if name in alone and total is not None:
            found[name] = wilson(round(total.total), total.n_items)
        else:
            means = [mean for _, _, mean, _ in values[name]]
            found[name] = estimate(means, [cluster for _, cluster, *_ in values[name]])
        if _is_count(name):
            # How many there were is no sample of anything.
            found[name] = msgspec.structs.replace(found[name], lo=None, hi=None, method="mean")
    return found


def _is_proportion(total: queries.Total | None) -> bool:
    return total is not None and total.is_binary and total.n_clusters == total.n_items


def _is_count(name: str) -> bool:
    """Tell whether a metric counts or describes verdicts and measures nothing of the model."""
    return name.startswith("n_") or name == "spread"


def _with_scoring_rate(
    con: Any, store: Store, run_id: str, metrics: dict[str, Metric], notes: list[str]
) -> dict[str, Metric]:
    """Put points won over points possible behind the headline, in place of the points themselves.

    An item's share is its headline: an answer without a proof and a refusal win nothing, one whose
    grading nobody can read is left out.
    """
    headline, *others = metrics
    shares = queries.item_values(con, run_id, headline)
    # What the task says; of older runs, what any verdict on the item said.
    worth = started(store, run_id).task_info.get("points") or queries.points_possible(con, run_id)
    rate = Metric(None, None, None, "ratio-t")
    if unknown := [item for item, *_ in shares if item not in worth]:
        notes.append(f"no scoring_rate: what {len(unknown)} items are worth is not known")
    else:
        wholes = [worth[item] for item, *_ in shares]
        parts = [share * worth[item] for item, _, share, _ in shares]
        found = ratio(parts, wholes, [cluster for _, cluster, *_ in shares])
        rate = Metric(found.value, found.lo, found.hi, found.method)
    kept = {name: metrics[name] for name in others if name not in ("points", "points_possible")}
    return {headline: metrics[headline], "scoring_rate": rate, **kept}


def _status(counts: dict[str, int], *, finished: bool) -> Literal["done", "partial", "failed"]:
    if counts["n_counted"] == 0 and counts["n_planned"] > counts["unscored"]:
        return "failed"
    if not finished or counts["open"] or counts["error_harness"] or counts["unavailable"]:
        return "partial"
    return "done"
