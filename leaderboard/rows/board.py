"""Rows of the page Leaderboard: every model on one task, or over several, with its rank interval.

A row is a variant of a model with a strategy, over all its runs of a task and version. Runs without the
data are an ablation and no answers to it; adaptive runs chose their items, so their mean is no score. Scores come from `item_scores`, counts from
`run_totals`. Ranks are those among all models of the chosen tasks, whatever a page then filters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from harness.stats.intervals import Estimate
from harness.stats.ranks import Standing
from harness.store.queries import unchecked_scores
from harness.store.rows import dicts
from leaderboard.rows.ranks import TaskTable, estimates, over_tasks, pairs_of, standings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Tasks = tuple[tuple[str, str], ...]
"""Pairs of task and version."""

COUNTS = (
    "n_planned", "n_scored", "n_counted", "error", "error_harness", "timeout", "truncated",
    "refused", "unscored", "unavailable", "no_answer",
)  # fmt: skip
_WANTED = "(SELECT unnest($tasks, recursive := true), generate_subscripts($tasks, 1) - 1 AS task)"
USAGE = ("tokens_in", "tokens_out", "cost_usd")


class TaskVersion(Struct, frozen=True, kw_only=True):
    """A task that has runs.

    Attributes
    ----------
    task, version : str
    label : str
        The task's name; with its version where that is not the newest.
    newest : bool
        Whether this is the version of its newest run.
    n_models : int
        Models with a score; baselines are none.
    """

    task: str
    version: str
    label: str
    newest: bool
    n_models: int


class BoardRow(Struct, frozen=True, kw_only=True):
    """One model on the chosen tasks; columns as in `leaderboard.columns.COLUMNS`.

    Attributes
    ----------
    rank_lo, rank_hi, tier : int or None
        None for a baseline, and for a model without a score on every chosen task.
    value, se, lo, hi : float or None
        Mean score with its 95 % interval, made by `method`.
    n_tasks : int
        Of the chosen tasks, those that the model ran.
    n_runs : int
        Runs behind the row; counts, tokens and cost are over all of them.
    latency_ms : float or None
        Median; None for a simulated quantisation.
    flags : tuple of str
        ``baseline``, ``partial``, ``test model``, ``simulated``, ``imported`` (somebody else's
        runs are in it), ``scores unchecked`` (some of theirs could not be given again here), and the notes of the interval.
    """

    rank_lo: int | None
    rank_hi: int | None
    tier: int | None
    model: str
    variant: str
    variant_id: str
    strategy: str
    backend: str
    quantisation: str
    baseline: bool
    value: float | None
    se: float | None
    lo: float | None
    hi: float | None
    method: str
    level: float
    n_items: int
    n_clusters: int
    n_tasks: int
    n_runs: int
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
    cost_usd: float | None
    tokens_in: int | None
    tokens_out: int | None
    latency_ms: float | None
    bits: float | None
    date: datetime
    flags: tuple[str, ...]


class TaskCell(Struct, frozen=True, kw_only=True):
    """One model on one of the chosen tasks, for the table of all tasks at a glance."""

    task: str
    value: float | None
    lo: float | None
    hi: float | None
    rank_lo: int | None
    rank_hi: int | None


class Standings(Struct, frozen=True):
    """The whole board.

    Attributes
    ----------
    rows : list of BoardRow
        By tier, then falling score, then name; unranked ones behind. Inside a tier the order says
        nothing.
    cells : list of list of TaskCell
        For each row its tasks, in the order asked for.
    """

    rows: list[BoardRow]
    cells: list[list[TaskCell]]


def task_versions(con: DuckDBPyConnection) -> list[TaskVersion]:
    """List what was run, by name, newest version first."""
    rows = con.execute(
        """
        SELECT r.task_id, r.version, max(r.run_id) AS last,
            count(DISTINCT (r.variant_id, r.strategy)) FILTER (t.n_counted > 0 AND NOT r.is_baseline)
        FROM runs r LEFT JOIN run_totals t USING (run_id)
        GROUP BY r.task_id, r.version ORDER BY r.task_id, last DESC
        """
    ).fetchall()
    found: list[TaskVersion] = []
    for task, version, _, n in rows:
        newest = not found or found[-1].task != task
        label = task if newest else f"{task} (version {version})"
        found.append(TaskVersion(
            task=task, version=version, label=label, newest=newest, n_models=n
        ))  # fmt: skip
    return found


def board(con: DuckDBPyConnection, tasks: Tasks) -> Standings:
    """Rank every model that ran one of some tasks.

    Parameters
    ----------
    con : DuckDBPyConnection
    tasks : tuple of (task, version)
        With several, the score is the mean over them, each with the same weight, of the models that
        ran all; others are shown without a number.
    """
    groups = _groups(con, tasks)
    if not groups:
        return Standings([], [])
    keys = list(groups)
    tables = _tables(con, tasks, keys)
    baseline = np.array([groups[key]["baseline"] for key in keys])
    by_task = [estimates(table) for table in tables]
    pairs = [pairs_of(table, baseline) for table in tables]
    ranks = [standings([p], means, baseline) for p, means in zip(pairs, by_task, strict=True)]
    means, overall = by_task[0], ranks[0]
    if len(tasks) > 1:
        means = over_tasks(by_task)
        overall = standings(pairs, means, baseline)
    latency = _latency(con, tasks)
    rows = [
        _row(key, groups[key], means[k], overall[k], latency.get(key)) for k, key in enumerate(keys)
    ]
    cells = [
        [_cell(task, by_task[t][k], ranks[t][k]) for t, (task, _) in enumerate(tasks)]
        for k in range(len(keys))
    ]
    order = sorted(range(len(rows)), key=lambda k: _place(rows[k]))
    return Standings([rows[k] for k in order], [cells[k] for k in order])


def labels(rows: Sequence[BoardRow]) -> list[str]:
    """Name rows for a chart, each differently: variant and strategy where the model is not enough.

    Returns
    -------
    list of str
        In the order of the rows.
    """
    found = [row.model for row in rows]
    for part in ("variant", "strategy", "variant_id"):
        twice = {name for name, n in Counter(found).items() if n > 1}
        found = [
            f"{name} {getattr(row, part)}".strip() if name in twice else name
            for name, row in zip(found, rows, strict=True)
        ]
    return found


_Key = tuple[str, str]


def _groups(con: DuckDBPyConnection, tasks: Tasks) -> dict[_Key, dict[str, Any]]:
    """Sum the runs of each variant and strategy."""
    counts = ", ".join(f"coalesce(t.{name}, 0) AS {name}" for name in COUNTS[1:])
    runs = dicts(con.execute(
        f"""
        SELECT r.variant_id, r.strategy, r.task_id, r.version, r.model, r.is_baseline, r.started,
            r.n_planned, {counts}, r.n_planned - coalesce(t.n_attempts, 0) AS open,
            t.tokens_in, t.tokens_out, t.cost_usd, v.backend, v.dtype, v.quant_scheme, v.bits_w,
            coalesce(v.quant_simulated, false) AS simulated,
            r.status <> 'done' OR e.run_id IS NOT NULL AS unfinished,
            r.submitter IS NOT NULL AS imported,
            CASE WHEN r.submitter IS NOT NULL THEN r.env_json END AS environment
        FROM runs r
        LEFT JOIN run_totals t USING (run_id)
        LEFT JOIN model_variants v USING (variant_id)
        LEFT JOIN (SELECT DISTINCT run_id FROM ingest_errors) e USING (run_id)
        SEMI JOIN {_WANTED} USING (task_id, version)
        ANTI JOIN v_adaptive_runs USING (run_id)
        WHERE coalesce(r.config_json ->> '$.no_data', 'false') <> 'true'
        ORDER BY r.run_id
        """,
        {"tasks": _pairs(tasks)},
    ))  # fmt: skip
    groups: dict[_Key, dict[str, Any]] = {}
    for run in runs:
        group = groups.setdefault((run["variant_id"], run["strategy"]), _new_group())
        for name in (*COUNTS, "open"):
            group[name] += run[name]
        for name in USAGE:
            if run[name] is not None:
                group[name] = (group[name] or 0) + run[name]
        group["runs"].append(run)
        group["baseline"] |= run["is_baseline"]
    return groups


def _new_group() -> dict[str, Any]:
    zeros = dict.fromkeys((*COUNTS, "open"), 0)
    return {**zeros, **dict.fromkeys(USAGE), "runs": [], "baseline": False}


def _tables(con: DuckDBPyConnection, tasks: Tasks, keys: Sequence[_Key]) -> list[TaskTable]:
    """Read the item scores as numbers: names of items are not needed here, and are most of the work."""
    numbered = f"""
        SELECT i.task_id, i.version, i.item_id, i.cluster_id, w.task,
            row_number() OVER (PARTITION BY w.task ORDER BY i.item_id) - 1 AS item
        FROM items i JOIN {_WANTED} w USING (task_id, version)
    """
    chosen = {"tasks": _pairs(tasks)}
    items = con.execute(
        f"""
        SELECT task::INTEGER AS task, item::INTEGER AS item, dense_rank() OVER (
            PARTITION BY task ORDER BY cluster_id, CASE WHEN cluster_id IS NULL THEN item END
        )::INTEGER - 1 AS cluster
        FROM ({numbered}) ORDER BY task, item
        """,
        chosen,
    ).fetchnumpy()
    scores = con.execute(
        f"""
        SELECT n.task::INTEGER AS task, n.item::INTEGER AS item, m.model::INTEGER AS model, s.mean
        FROM item_scores s JOIN ({numbered}) n USING (task_id, version, item_id)
        JOIN (
            SELECT unnest($models, recursive := true), generate_subscripts($models, 1) - 1 AS model
        ) m USING (variant_id, strategy)
        WHERE NOT s.adaptive
        """,
        chosen | {"models": [{"variant_id": v, "strategy": s} for v, s in keys]},
    ).fetchnumpy()
    tables = []
    for t in range(len(tasks)):
        of_task = scores["task"] == t
        clusters = items["cluster"][items["task"] == t].astype(np.int64)
        filled = np.full((len(clusters), len(keys)), np.nan)
        filled[scores["item"][of_task], scores["model"][of_task]] = scores["mean"][of_task]
        answered = ~np.isnan(filled).all(axis=1)
        tables.append(TaskTable(filled[answered], _dense(clusters[answered])))
    return tables


def _dense(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _latency(con: DuckDBPyConnection, tasks: Tasks) -> dict[_Key, float]:
    rows = con.execute(
        f"""
        SELECT r.variant_id, r.strategy, median(s.latency_ms)
        FROM samples s JOIN (
            FROM runs SEMI JOIN {_WANTED} USING (task_id, version)
        ) r USING (run_id)
        GROUP BY ALL HAVING count(s.latency_ms) > 0
        """,
        {"tasks": _pairs(tasks)},
    ).fetchall()
    return {(variant, strategy): value for variant, strategy, value in rows}


def _pairs(tasks: Tasks) -> list[dict[str, str]]:
    return [{"task_id": task, "version": version} for task, version in tasks]


def _row(
    key: _Key, group: dict[str, Any], mean: Estimate, standing: Standing, latency: float | None
) -> BoardRow:
    last = group["runs"][-1]
    simulated = last["simulated"]
    quantisation = " ".join(filter(None, (last["quant_scheme"], "simulated" * simulated)))
    marks = {
        "baseline": group["baseline"],
        "partial": _is_partial(group["runs"]),
        "test model": last["model"].split("?")[0] == "hf:tiny",
        "simulated": simulated,
        "imported": any(run["imported"] for run in group["runs"]),
        "scores unchecked": any(unchecked_scores(run["environment"]) for run in group["runs"]),
    }
    return BoardRow(
        rank_lo=standing.rank_lo, rank_hi=standing.rank_hi, tier=standing.tier,
        model=last["model"], variant=" ".join(filter(None, (last["dtype"], quantisation))),
        variant_id=key[0], strategy=key[1], backend=last["backend"] or "",
        quantisation=quantisation, baseline=group["baseline"], value=mean.value, se=mean.se,
        lo=mean.lo, hi=mean.hi, method=mean.method, level=mean.level, n_items=mean.n_items,
        n_clusters=mean.n_clusters, n_tasks=len({(r["task_id"], r["version"]) for r in group["runs"]}),
        n_runs=len(group["runs"]), latency_ms=None if simulated else latency, bits=last["bits_w"],
        date=max(run["started"] for run in group["runs"]),
        flags=(*(name for name, is_so in marks.items() if is_so), *mean.notes),
        **{name: group[name] for name in (*COUNTS, "open", *USAGE)},
    )  # fmt: skip


def _is_partial(runs: Sequence[dict[str, Any]]) -> bool:
    """Tell whether something was left open that no later run of as many attempts has made up for."""
    open_: dict[tuple[str, str], int] = {}
    for run in runs:
        task = (run["task_id"], run["version"])
        if run["unfinished"] or run["open"] or run["error_harness"] or run["unavailable"]:
            open_[task] = max(open_.get(task, 0), run["n_planned"])
        elif run["n_planned"] >= open_.get(task, 0):
            open_.pop(task, None)
    return bool(open_)


def _cell(task: str, mean: Estimate, standing: Standing) -> TaskCell:
    return TaskCell(
        task=task, value=mean.value, lo=mean.lo, hi=mean.hi, rank_lo=standing.rank_lo,
        rank_hi=standing.rank_hi,
    )  # fmt: skip


def _place(row: BoardRow) -> tuple[Any, ...]:
    from leaderboard.charts.common import natural_key

    return (
        row.tier is None, row.tier or 0, row.baseline, row.value is None, -(row.value or 0.0),
        natural_key(row.model), row.variant, row.strategy,
    )  # fmt: skip
