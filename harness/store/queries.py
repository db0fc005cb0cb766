"""Questions that the command line, the statistics and the site ask of a snapshot.

Every function takes a read-only connection (`harness.store.publish.snapshot`) and gives plain
structs or dicts. What counts, and as what, is decided in ``sql/views.sql`` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.store.fits import find_fit, fit_items, fit_models, fits
from harness.store.rows import dicts
from harness.store.texts import (
    StoredAnswer,
    answers_for_keys,
    attempts_with_text,
    sample,
    samples_arrow,
    verdict_shown,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "ItemValue",
    "RunRow",
    "RunTotals",
    "StoredAnswer",
    "Total",
    "Usage",
    "answers_for_keys",
    "attempts",
    "attempts_with_text",
    "counts",
    "equal_keys",
    "find_fit",
    "fit_items",
    "fit_models",
    "fits",
    "human_verdicts",
    "item_repeats",
    "item_values",
    "item_values_of",
    "metrics",
    "run_rows",
    "run_totals",
    "sample",
    "samples_arrow",
    "unchecked_scores",
    "usage",
    "verdict_givers",
    "verdict_shown",
]


class RunRow(Struct, kw_only=True):
    """One run as the tables show it.

    Attributes
    ----------
    run_id, task, version, model, variant : str
        What was run; `variant` is the model's whole identity.
    status : str
        ``running``, what its end said (``done``, ``partial``, ``failed``), ``partial`` when lines of
        its journal could not be read, or ``suspect`` when its journal was changed.
    is_baseline : bool
        A mock: marked wherever it shows.
    errors : str
        What becomes of the model's own errors: ``wrong`` or ``exclude``.
    started, finished : datetime or None
        UTC.
    seconds : float or None
        Wall time since the run was started or last resumed.
    cached : int
        Attempts taken from earlier runs.
    config, environment : str
        As asked for and as found, JSON.
    submitter : str or None
        Whose the run is, where it was imported; None for one that was made in this store.
    """

    run_id: str
    task: str
    version: str
    model: str
    variant: str | None
    status: str
    is_baseline: bool
    strategy: str
    solver: str
    scorer: str
    metric: str
    seed: int
    errors: str
    started: datetime
    finished: datetime | None
    seconds: float | None
    epochs: int
    n_planned: int
    cached: int
    config: str
    environment: str
    submitter: str | None = None


def unchecked_scores(environment: str | None) -> int:
    """Count the scores of an imported run that could not be given again when it came.

    Parameters
    ----------
    environment : str or None
        Of the run, as JSON.

    Examples
    --------
    >>> unchecked_scores('{"imported": {"scores_not_recomputed": {"by a judge": 2, "cut": 1}}}')
    3
    >>> unchecked_scores("{}")
    0
    """
    imported = (msgspec.json.decode(environment) or {}).get("imported") if environment else None
    return sum((imported or {}).get("scores_not_recomputed", {}).values())


class Usage(Struct, kw_only=True):
    """What a run used: tokens and cost of the calls it made itself, and how many it did not make.

    Each is None when no call reported it, and 0 when all answers came from earlier runs.
    """

    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    reused: int


def run_rows(con: DuckDBPyConnection, run_ids: Sequence[str] | None = None) -> list[RunRow]:
    """List runs, oldest first.

    Parameters
    ----------
    con : DuckDBPyConnection
    run_ids : sequence of str or None
        Only these; those that do not exist are left out.
    """
    rows = con.execute(
        """
        SELECT r.run_id, r.task_id AS task, r.version, r.model, r.variant_id AS variant,
            CASE
                WHEN o.suspect IS NOT NULL THEN 'suspect'
                WHEN r.status = 'done' AND e.run_id IS NOT NULL THEN 'partial'
                ELSE r.status
            END AS status,
            r.is_baseline, r.strategy, r.solver, r.scorer, r.metric, r.seed, r.errors, r.started,
            r.finished, r.seconds, r.epochs, r.n_planned, coalesce(r.cached, 0) AS cached,
            r.config_json AS config, r.env_json AS environment, r.submitter
        FROM runs r
        LEFT JOIN ingest_offsets o USING (run_id)
        LEFT JOIN (SELECT DISTINCT run_id FROM ingest_errors) e USING (run_id)
        WHERE $ids IS NULL OR list_contains($ids, r.run_id)
        ORDER BY r.run_id
        """,
        {"ids": None if run_ids is None else list(run_ids)},
    )
    return [RunRow(**row) for row in dicts(rows)]


class Total(Struct, kw_only=True):
    """One metric of a run summed up: enough for a mean's interval.

    Attributes
    ----------
    n_items : int
        Items that count.
    total, total_sq : float
        Sums of their means over epochs, and of the squares of these.
    is_binary : bool
        Every item's mean is 0 or 1.
    n_clusters : int
        Clusters that the items are in; an item without one is one by itself.
    cluster_sq : float
        Sum over clusters of the squared sum of their items' deviations from the mean.
    """

    metric: str
    n_items: int
    total: float
    total_sq: float
    is_binary: bool
    n_clusters: int
    cluster_sq: float


class RunTotals(Struct, kw_only=True):
    """A run in numbers.

    Attributes
    ----------
    counts : dict of str to int
        ``n_planned`` = ``n_scored`` + ``error`` (the model's) + ``error_harness`` (anyone else's) +
        ``timeout`` + ``truncated`` + ``refused`` + ``unscored`` + ``unavailable`` + ``open`` (not
        tried yet). Besides ``n_counted`` (the denominator) and ``no_answer`` (unparsed answers, a
        part of ``error``).
    metrics : list of str
        All metrics: the headline first, the others by name.
    totals : dict of str to Total
        By metric; those that no item counts in are left out, and all of an adaptive run.
    usage : Usage
    adaptive : dict or None
        What an adaptive run has come to (`harness.runner.adaptive_outcome`); then the items that it
        asked are those planned.
    """

    counts: dict[str, int]
    metrics: list[str]
    totals: dict[str, Total]
    usage: Usage
    adaptive: dict[str, Any] | None = None


_COUNTS = (
    "n_scored", "n_counted", "error", "error_harness", "timeout", "truncated", "refused",
    "unscored", "unavailable", "no_answer",
)  # fmt: skip


def run_totals(
    con: DuckDBPyConnection, run_ids: Sequence[str] | None = None
) -> dict[str, RunTotals]:
    """Sum up runs: two queries over narrow tables, however many runs there are.

    Parameters
    ----------
    con : DuckDBPyConnection
    run_ids : sequence of str or None
        Only these; those that do not exist are left out.
    """
    ids = {"ids": None if run_ids is None else list(run_ids)}
    zero = ", ".join(f"coalesce(t.{name}, 0) AS {name}" for name in _COUNTS)
    rows = dicts(
        con.execute(
            f"""
            WITH adaptive AS (
                SELECT run_id, max_by(json, seq) AS outcome FROM events WHERE kind = 'adaptive'
                GROUP BY run_id
            ), planned AS (
                SELECT run_id, metric, outcome,
                    coalesce(CAST(outcome ->> '$.n_asked' AS BIGINT), n_planned) AS n_planned
                FROM runs LEFT JOIN adaptive USING (run_id)
            )
            SELECT r.run_id, r.metric, r.n_planned, r.outcome, {zero},
                r.n_planned - coalesce(t.n_attempts, 0) AS open,
                t.tokens_in, t.tokens_out, t.cost_usd, coalesce(t.reused, 0) AS reused
            FROM planned r LEFT JOIN run_totals t USING (run_id)
            WHERE $ids IS NULL OR list_contains($ids, r.run_id)
            """,
            ids,
        )
    )
    by_run: dict[str, list[dict[str, Any]]] = {row["run_id"]: [] for row in rows}
    for total in dicts(
        con.execute(
            "SELECT * FROM metric_totals WHERE $ids IS NULL OR list_contains($ids, run_id) "
            "ORDER BY run_id, metric",
            ids,
        )
    ):
        by_run[total.pop("run_id")].append(total)
    return {row["run_id"]: _run_totals(row, by_run[row["run_id"]]) for row in rows}


def _run_totals(row: dict[str, Any], totals: list[dict[str, Any]]) -> RunTotals:
    metrics = [row["metric"], *(t["metric"] for t in totals if t["metric"] != row["metric"])]
    return RunTotals(
        counts={name: row[name] for name in ("n_planned", *_COUNTS, "open")},
        metrics=metrics,
        totals={t["metric"]: Total(**t) for t in totals if t["n_items"]},
        usage=Usage(**{name: row[name] for name in Usage.__struct_fields__}),
        adaptive=None if row["outcome"] is None else msgspec.json.decode(row["outcome"]),
    )


def counts(con: DuckDBPyConnection, run_id: str) -> dict[str, int]:
    """Count how the attempts of a run ended: `RunTotals.counts`.

    Raises
    ------
    UsageError
        For an unknown run.
    """
    return _totals_of(con, run_id).counts


def metrics(con: DuckDBPyConnection, run_id: str) -> list[str]:
    """List the metrics of a run: the headline first, the others by name. Errors as for `counts`."""
    return _totals_of(con, run_id).metrics


def usage(con: DuckDBPyConnection, run_id: str) -> Usage:
    """Sum what a run used, retries included, answers of earlier runs left out.

    Errors as for `counts`.
    """
    return _totals_of(con, run_id).usage


def _totals_of(con: DuckDBPyConnection, run_id: str) -> RunTotals:
    found = run_totals(con, [run_id])
    if not found:
        raise UsageError(f"no run {run_id!r} in this store (see `harness list runs`)")
    return found[run_id]


ItemValue = tuple[str, str | None, float, int]
"""An item with its cluster, its mean over epochs, and the number of epochs that count."""


def item_values(con: DuckDBPyConnection, run_id: str, metric: str) -> list[ItemValue]:
    """Give the items that count in one metric of a run, ordered by item."""
    return item_values_of(con, run_id, [metric])[metric]


def item_values_of(
    con: DuckDBPyConnection, run_id: str, metrics: Sequence[str]
) -> dict[str, list[ItemValue]]:
    """Give the items that count, of several metrics with one look at the run.

    Returns
    -------
    dict of str to list of ItemValue
        By metric, empty lists included; ordered by item.
    """
    found: dict[str, list[ItemValue]] = {metric: [] for metric in metrics}
    if not found:
        return found
    rows = con.execute(
        "SELECT metric, item_id, cluster_id, mean, n FROM v_items_scored "
        "WHERE run_id = $run AND list_contains($metrics, metric) ORDER BY item_id",
        {"run": run_id, "metrics": list(found)},
    ).fetchall()
    for metric, *value in rows:
        found[metric].append(tuple(value))
    return found


def human_verdicts(con: DuckDBPyConnection) -> dict[str, int]:
    """Count the answers of each run whose verdict people gave; runs without any are left out."""
    rows = con.execute(
        "SELECT run_id, count(DISTINCT (item_id, epoch)) FROM scores WHERE scorer = 'human' "
        "GROUP BY run_id"
    ).fetchall()
    return dict(rows)


def points_possible(con: DuckDBPyConnection, run_id: str) -> dict[str, float]:
    """Give what each item of a run is worth, as any scorer said that has judged it.

    Also by other runs: a run may hold nothing but refusals of an item.
    """
    rows = con.execute(
        """
        SELECT s.item_id, max(s.value)
        FROM scores s SEMI JOIN (SELECT * FROM samples WHERE run_id = $run) a
            USING (task_id, version, item_id)
        WHERE s.metric = 'points_possible' GROUP BY s.item_id
        """,
        {"run": run_id},
    ).fetchall()
    return dict(rows)


def attempts(con: DuckDBPyConnection, run_id: str) -> list[dict[str, Any]]:
    """List the latest attempt of every item and epoch, without texts (the columns of `v_attempts`)."""
    return dicts(
        con.execute(
            "SELECT * EXCLUDE (text_id, score_seq, policy) FROM v_attempts WHERE run_id = $run "
            "ORDER BY item_id, epoch",
            {"run": run_id},
        )
    )


def verdict_givers(con: DuckDBPyConnection, run_id: str) -> tuple[list[str], list[str] | None]:
    """List what gave the valid verdicts of a run; strategies are left out.

    Returns
    -------
    scorers : list of str
        As ``name (version)``.
    judges : list of str or None
        The variants of who judged, empty where the scorer asked nobody; None without a verdict.
    """
    givers = """
        SELECT DISTINCT scorer || ' (version ' || scorer_version || ')' AS name, judge_variant FROM {}
        WHERE run_id = $run AND NOT starts_with(scorer, 'strategy:')
        """
    # Which verdict is valid has to be looked up only where several have judged.
    rows = con.execute(givers.format("scores"), {"run": run_id}).fetchall()
    if len(rows) > 1:
        rows = con.execute(givers.format("v_scores"), {"run": run_id}).fetchall()
    judges = sorted({judge for _, judge in rows if judge is not None})
    return sorted({name for name, _ in rows}), judges if rows else None


def equal_keys(con: DuckDBPyConnection, a: str, b: str) -> tuple[int, int]:
    """Count the attempts at the same item and repeat in two runs, and those with the same key.

    Returns
    -------
    equal, both : int
    """
    row = con.execute(
        """
        SELECT count(*) FILTER (one.key = two.key), count(*)
        FROM (FROM v_attempts WHERE run_id = $a) one
        JOIN (FROM v_attempts WHERE run_id = $b) two USING (item_id, epoch)
        """,
        {"a": a, "b": b},
    ).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def item_repeats(
    con: DuckDBPyConnection, run_id: str, metric: str
) -> list[tuple[str, str | None, list[float]]]:
    """Give the items that count with the value of each of their repeats.

    Returns
    -------
    list of (item_id, cluster_id, values)
        Ordered by item; values by repeat.
    """
    return con.execute(
        """
        SELECT item_id, any_value(cluster_id), list(counted ORDER BY epoch) FROM v_metric_values
        WHERE run_id = $run AND metric = $metric AND counted IS NOT NULL
        GROUP BY item_id ORDER BY item_id
        """,
        {"run": run_id, "metric": metric},
    ).fetchall()
