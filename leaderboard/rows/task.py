"""Rows of the page Task: what it is, its items by difficulty, categories, ablations, figures of others.

Results are the rows of `leaderboard.rows.board` for this one task; categories those of
`leaderboard.rows.model`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.published import published_figures
from harness.stats.intervals import clustered_mean
from harness.stats.power import mde_paired
from harness.store.difference import flat
from harness.store.queries import run_totals
from harness.store.rows import dicts
from leaderboard.rows.ranks import estimate_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NOTHING = clustered_mean([])
GUESSED_SD = 0.5
"""Spread of the per-item differences of two models that were never compared (`mde_paired`)."""


class TaskFacts(Struct, frozen=True, kw_only=True):
    """What a task is, as its runs have stated it.

    Attributes
    ----------
    n_items, n_clusters, n_categories, n_minutes : int
        Items planned by any run; those with known human minutes.
    n_public, n_canary : int
        Items that lie open on the web, and those that carry a canary, as far as that is stated.
    mde : float or None
        Smallest difference of two models that all items would find with 80 % power, each cluster
        counted as one item.
    protocol : list of (str, str)
        How models are asked and judged: name and value; several values where runs differ.
    stated : list of (str, str)
        The rest of what the task says of itself.
    """

    task: str
    version: str
    benchmark: str | None
    metric: str | None
    higher_is_better: bool | None
    license: str | None
    source: str | None
    dataset_sha256: str | None
    human_time_source: str | None
    n_items: int
    n_clusters: int
    n_categories: int
    n_minutes: int
    n_public: int
    n_canary: int
    mde: float | None
    protocol: list[tuple[str, str]]
    stated: list[tuple[str, str]]


class TaskItem(Struct, frozen=True, kw_only=True):
    """An item with what all models made of it; baselines are left out.

    Attributes
    ----------
    n_models : int
        Subjects with a score on it.
    mean : float or None
        Mean over them.
    difficulty : float or None
        ln((n - k + 1/2) / (k + 1/2)), k the sum of the scores: the log odds of a wrong answer.
    """

    task: str
    version: str
    item: str
    category: str | None
    cluster: str | None
    human_minutes: float | None
    n_models: int
    mean: float | None
    difficulty: float | None


class AblationRow(Struct, frozen=True, kw_only=True):
    """A run without the data that the questions rest on: a score above chance hints at leaks."""

    run_id: str
    model: str
    value: float | None
    lo: float | None
    hi: float | None
    method: str
    n_items: int
    baseline: bool
    flags: tuple[str, ...]


class PublishedRow(Struct, frozen=True, kw_only=True):
    """A figure of others; in no mean, rank or fit."""

    model: str
    metric: str | None
    figure: float | None
    source: str | None
    url: str | None
    citation: str | None
    license: str | None
    note: str | None


def task_facts(con: DuckDBPyConnection, task: str, version: str) -> TaskFacts:
    """Read what a task is.

    Parameters
    ----------
    con : DuckDBPyConnection
    task, version : str
        One of `leaderboard.rows.board.task_versions`.
    """
    chosen = {"task": task, "version": version}
    (row,) = dicts(con.execute(
        """
        SELECT t.task_id AS task, t.version, benchmark, metric, higher_is_better, license, source,
            dataset_sha256, human_time_source, info_json, i.*
        FROM tasks t, (
            SELECT count(*) AS n_items, count(DISTINCT cluster_id)
                    + count(*) FILTER (cluster_id IS NULL) AS n_clusters,
                count(DISTINCT category) AS n_categories, count(human_minutes) AS n_minutes,
                count(*) FILTER (public) AS n_public, count(canary) AS n_canary
            FROM items WHERE task_id = $task AND version = $version
        ) i
        WHERE t.task_id = $task AND t.version = $version
        """,
        chosen,
    ))  # fmt: skip
    info = msgspec.json.decode(row.pop("info_json") or "{}")
    generation = info.pop("generation", None) or {}
    known = {*row, "metric", "benchmark"}
    asked = {f"generation {name}": value for name, value in flat(generation).items()}
    for name in ("prompt_sha256", "scorer_sha256", "judge", "toolset"):
        asked[name] = info.pop(name, None)
    n = row["n_clusters"]
    return TaskFacts(
        **row, mde=mde_paired(n, GUESSED_SD),
        protocol=[*_asked_by_runs(con, chosen), *_said(asked)],
        stated=_said({k: v for k, v in flat(info).items() if k not in known}),
    )  # fmt: skip


def task_items(con: DuckDBPyConnection, task: str, version: str) -> list[TaskItem]:
    """List the items, hardest first; those that nobody answered behind."""
    rows = con.execute(
        """
        SELECT i.item_id, i.category, i.cluster_id, i.human_minutes, coalesce(s.n, 0), s.mean
        FROM items i LEFT JOIN (
            SELECT item_id, count(*) AS n, avg(mean) AS mean
            FROM item_scores
            ANTI JOIN (FROM runs WHERE is_baseline) USING (variant_id)
            WHERE task_id = $task AND version = $version AND NOT adaptive
            GROUP BY item_id
        ) s USING (item_id)
        WHERE i.task_id = $task AND i.version = $version
        ORDER BY s.mean IS NULL, s.mean, i.item_id
        """,
        {"task": task, "version": version},
    ).fetchall()
    return [
        TaskItem(
            task=task, version=version, item=item, category=category, cluster=cluster,
            human_minutes=minutes, n_models=n, mean=mean, difficulty=_log_odds(n, mean),
        )
        for item, category, cluster, minutes, n, mean in rows
    ]  # fmt: skip


def ablations(con: DuckDBPyConnection, task: str, version: str) -> list[AblationRow]:
    """List the runs without the data, newest first."""
    runs = con.execute(
        """
        SELECT run_id, model, metric, is_baseline FROM runs
        WHERE task_id = $task AND version = $version AND config_json ->> '$.no_data' = 'true'
        ORDER BY run_id DESC
        """,
        {"task": task, "version": version},
    ).fetchall()
    totals = run_totals(con, [run[0] for run in runs]) if runs else {}
    rows = []
    for run_id, model, metric, baseline in runs:
        total = totals[run_id].totals.get(metric)
        mean = estimate_of(total) if total else NOTHING
        marks = ("baseline",) if baseline else ()
        rows.append(
            AblationRow(
                run_id=run_id, model=model, value=mean.value, lo=mean.lo, hi=mean.hi,
                method=mean.method, n_items=mean.n_items, baseline=baseline,
                flags=(*marks, *mean.notes),
            )
        )  # fmt: skip
    return rows


def published(con: DuckDBPyConnection, task: str) -> list[PublishedRow]:
    """List what others have published for a task: a table of its own, joined with nothing.

    The project's own table of such figures, then what somebody has put into the store.
    """
    known = [
        PublishedRow(
            model=f.who, metric=f.metric, figure=f.value, source=f.source, url=f.url, citation="",
            license=f.license, note="; ".join(filter(None, [f.condition, f.note])),
        )
        for f in published_figures() if f.task == task
    ]  # fmt: skip
    rows = dicts(con.execute(
        """
        SELECT coalesce(model_name, '') AS model, metric, value AS figure, source, url, citation,
            license, note
        FROM published_results WHERE task_id = $task ORDER BY source, model
        """,
        {"task": task},
    ))  # fmt: skip
    return [*known, *(PublishedRow(**row) for row in rows)]


def _log_odds(n: int, mean: float | None) -> float | None:
    if mean is None:
        return None
    k = n * mean
    return math.log((n - k + 0.5) / (k + 0.5))


def _asked_by_runs(con: DuckDBPyConnection, chosen: dict[str, str]) -> list[tuple[str, str]]:
    """Say how the runs of a task asked, every value that occurs."""
    (row,) = dicts(con.execute(
        """
        SELECT list_sort(list(DISTINCT solver)) AS solver, list_sort(list(DISTINCT scorer)) AS scorer,
            list_sort(list(DISTINCT strategy)) AS strategy,
            list_sort(list(DISTINCT config_json ->> '$.fewshot')) AS "worked examples",
            list_sort(list(DISTINCT errors)) AS "errors count as",
            list_sort(list(DISTINCT config_json ->> '$.system')) AS "system turn"
        FROM runs WHERE task_id = $task AND version = $version
        """,
        chosen,
    ))  # fmt: skip
    return _said({
        name: "; ".join(value for value in values or () if value) for name, values in row.items()
    })  # fmt: skip


def _said(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, _text(value)) for name, value in facts.items() if value not in (None, "", [], {})
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
