"""Questions that the command line, the statistics and the site ask of a snapshot.

Every function takes a read-only connection (`harness.store.publish.snapshot`) and gives plain
structs or dicts. What counts, and as what, is decided in ``sql/views.sql`` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harness.core.errors import UsageError
from harness.store.rows import dicts
from harness.store.texts import (
    StoredAnswer,
    answers_for_keys,
    attempts_with_text,
    sample,
    samples_arrow,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "RunRow",
    "StoredAnswer",
    "Total",
    "Usage",
    "answers_for_keys",
    "attempts",
    "attempts_with_text",
    "counts",
    "item_values",
    "metrics",
    "run_rows",
    "sample",
    "samples_arrow",
    "totals",
    "usage",
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
            r.config_json AS config, r.env_json AS environment
        FROM runs r
        LEFT JOIN ingest_offsets o USING (run_id)
        LEFT JOIN (SELECT DISTINCT run_id FROM ingest_errors) e USING (run_id)
        WHERE $ids IS NULL OR list_contains($ids, r.run_id)
        ORDER BY r.run_id
        """,
        {"ids": None if run_ids is None else list(run_ids)},
    )
    return [RunRow(**row) for row in dicts(rows)]


def counts(con: DuckDBPyConnection, run_id: str) -> dict[str, int]:
    """Count how the attempts of a run ended.

    Returns
    -------
    dict of str to int
        ``n_planned`` = ``n_scored`` + ``error`` (the model's) + ``error_harness`` (anyone else's) +
        ``timeout`` + ``truncated`` + ``refused`` + ``unscored`` + ``unavailable`` + ``open`` (not
        tried yet). Besides ``n_counted`` (the denominator) and ``no_answer`` (unparsed answers, a
        part of ``error``).

    Raises
    ------
    UsageError
        For an unknown run.
    """
    rows = dicts(
        con.execute(
            """
            SELECT
                any_value(r.n_planned) AS n_planned,
                count(*) FILTER (a.status = 'scored') AS n_scored,
                count(a.counted) AS n_counted,
                count(*) FILTER (a.status = 'error' AND coalesce(a.error_kind, 'model') = 'model')
                    AS error,
                count(*) FILTER (a.status = 'error' AND coalesce(a.error_kind, 'model') <> 'model')
                    AS error_harness,
                count(*) FILTER (a.status = 'timeout') AS timeout,
                count(*) FILTER (a.status = 'truncated') AS truncated,
                count(*) FILTER (a.status = 'refused') AS refused,
                count(*) FILTER (a.status = 'unscored') AS unscored,
                count(*) FILTER (a.status = 'unavailable') AS unavailable,
                count(*) FILTER (a.status = 'error' AND a.reason = 'no_answer') AS no_answer,
                any_value(r.n_planned) - count(a.item_id) AS open
            FROM runs r LEFT JOIN v_attempts a ON a.run_id = r.run_id AND a.run_id = $run
            WHERE r.run_id = $run
            GROUP BY r.run_id
            """,
            {"run": run_id},
        )
    )
    if not rows:
        raise UsageError(f"no run {run_id!r} in this store (see `harness list runs`)")
    return rows[0]


def item_values(
    con: DuckDBPyConnection, run_id: str, metric: str
) -> list[tuple[str, str | None, float, int]]:
    """Give the items that count, with their mean over epochs.

    Returns
    -------
    list of (item_id, cluster_id, mean, n_epochs)
        Ordered by item.
    """
    return con.execute(
        "SELECT item_id, cluster_id, mean, n FROM v_items_scored "
        "WHERE run_id = $run AND metric = $metric ORDER BY item_id",
        {"run": run_id, "metric": metric},
    ).fetchall()


class Total(Struct, kw_only=True):
    """One metric of a run summed up: enough for a proportion's interval.

    Attributes
    ----------
    n_items : int
        Items that count.
    total : float
        Sum of their means over epochs.
    binary : bool
        Every item's mean is 0 or 1.
    clustered : bool
        Some items share a cluster.
    """

    metric: str
    n_items: int
    total: float
    binary: bool
    clustered: bool


def totals(con: DuckDBPyConnection, run_id: str) -> dict[str, Total]:
    """Sum up every metric of a run in one query; metrics that no item counts in are left out."""
    rows = con.execute(
        """
        SELECT metric, count(*) AS n_items, sum(mean) AS total, bool_and(mean IN (0, 1)) AS binary,
            count(DISTINCT cluster_id) < count(cluster_id) AS clustered
        FROM v_items_scored WHERE run_id = $run GROUP BY metric
        """,
        {"run": run_id},
    )
    return {row["metric"]: Total(**row) for row in dicts(rows)}


def metrics(con: DuckDBPyConnection, run_id: str) -> list[str]:
    """List the metrics of a run: the headline first, the others by name."""
    rows = con.execute(
        """
        SELECT metric FROM (
            SELECT metric FROM runs WHERE run_id = $run
            UNION SELECT metric FROM scores WHERE run_id = $run
        )
        ORDER BY metric <> (SELECT metric FROM runs WHERE run_id = $run), metric
        """,
        {"run": run_id},
    ).fetchall()
    return [name for (name,) in rows]


def usage(con: DuckDBPyConnection, run_id: str) -> Usage:
    """Sum what a run used, retries included, answers of earlier runs left out."""
    rows = con.execute(
        """
        WITH own AS (SELECT * FROM samples WHERE run_id = $run)
        SELECT
            CASE WHEN bool_and(reused_from IS NOT NULL) THEN 0
                ELSE sum(tokens_in) FILTER (reused_from IS NULL) END AS tokens_in,
            CASE WHEN bool_and(reused_from IS NOT NULL) THEN 0
                ELSE sum(tokens_out) FILTER (reused_from IS NULL) END AS tokens_out,
            CASE WHEN bool_and(reused_from IS NOT NULL) THEN 0
                ELSE sum(cost_usd) FILTER (reused_from IS NULL) END AS cost_usd,
            count(reused_from) AS reused
        FROM own
        """,
        {"run": run_id},
    )
    return Usage(**dicts(rows)[0])


def attempts(con: DuckDBPyConnection, run_id: str) -> list[dict[str, Any]]:
    """List the latest attempt of every item and epoch, without texts (the columns of `v_attempts`)."""
    return dicts(
        con.execute(
            "SELECT * EXCLUDE (text_id, score_seq, policy) FROM v_attempts WHERE run_id = $run "
            "ORDER BY item_id, epoch",
            {"run": run_id},
        )
    )
