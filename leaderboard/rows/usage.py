"""What answers cost: tokens, money, time and memory, of one subject on one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from harness.store.rows import dicts
from leaderboard.rows.subjects import GIB, PLAIN, Key

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TaskVersion = tuple[str, str]
Tasks = tuple[TaskVersion, ...]


class Used(Struct, frozen=True, kw_only=True):
    """What the calls took that were made for a task.

    Attributes
    ----------
    tokens_in, tokens_out : int or None
        In all, answers of earlier runs left out.
    cost_usd : float or None
        In all.
    item_usd : float or None
        One item, on average: of one attempt, or of all draws that the strategy chooses from.
    latency_ms : float or None
        Median of a call.
    tokens_per_s : float or None
        Tokens of the answers over the time of their calls: the speed of one answer, not of the
        machine.
    seconds : float or None
        Of these calls.
    memory_gib : float or None
        The highest peak of any call.
    """

    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    item_usd: float | None
    latency_ms: float | None
    tokens_per_s: float | None
    seconds: float | None
    memory_gib: float | None


UNKNOWN = Used(
    tokens_in=None, tokens_out=None, cost_usd=None, item_usd=None, latency_ms=None,
    tokens_per_s=None, seconds=None, memory_gib=None,
)  # fmt: skip


def used(con: DuckDBPyConnection, tasks: Tasks) -> dict[tuple[Key, TaskVersion], Used]:
    """Sum what was used on some tasks, by subject, and task with version.

    A simulated quantisation has no memory and no speed: those measured are the full model's.
    """
    rows = dicts(con.execute(
        f"""
        SELECT r.variant_id, r.strategy, r.task_id, r.version, sum(s.tokens_in) AS tokens_in,
            sum(s.tokens_out) AS tokens_out, sum(s.cost_usd) AS cost_usd,
            avg(s.cost_usd) * any_value(r.draws) AS item_usd, r.simulated,
            median(s.latency_ms) AS latency_ms,
            sum(s.latency_ms) FILTER (s.latency_ms > 0 AND s.tokens_out IS NOT NULL) / 1000
                AS seconds,
            sum(s.tokens_out) FILTER (s.latency_ms > 0) / seconds AS tokens_per_s,
            max(s.peak_mem_bytes) / {GIB} AS memory_gib
        FROM samples s JOIN (
            SELECT r.run_id, r.variant_id, r.strategy, r.task_id, r.version,
                coalesce(v.quant_simulated, false) AS simulated,
                CASE WHEN list_contains($plain, r.strategy) THEN 1 ELSE r.epochs END AS draws
            FROM runs r LEFT JOIN model_variants v USING (variant_id)
            SEMI JOIN (SELECT unnest($tasks, recursive := true)) USING (task_id, version)
            WHERE coalesce(r.config_json ->> '$.no_data', 'false') <> 'true'
        ) r USING (run_id)
        WHERE s.reused_from IS NULL
        GROUP BY r.variant_id, r.strategy, r.task_id, r.version, r.simulated
        """,
        {
            "tasks": [{"task_id": task, "version": version} for task, version in tasks],
            "plain": list(PLAIN),
        },
    ))  # fmt: skip
    found = {}
    for row in rows:
        key = (row.pop("variant_id"), row.pop("strategy")), (row.pop("task_id"), row.pop("version"))
        unknown = ("latency_ms", "tokens_per_s", "seconds", "memory_gib")
        hidden = dict.fromkeys(unknown) if row.pop("simulated") else {}
        found[key] = Used(**(row | hidden))
    return found


def items_of(con: DuckDBPyConnection, tasks: Sequence[TaskVersion]) -> dict[TaskVersion, int]:
    """Count the items of some tasks that any run has planned."""
    rows = con.execute(
        """
        SELECT task_id, version, count(*) FROM items
        SEMI JOIN (SELECT unnest($tasks, recursive := true)) USING (task_id, version)
        GROUP BY task_id, version
        """,
        {"tasks": [{"task_id": task, "version": version} for task, version in tasks]},
    ).fetchall()
    return {(task, version): n for task, version, n in rows}
