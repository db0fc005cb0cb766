"""Rows of the page Model: a model's variants, scores, categories, quantisations, cost and runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from harness.stats.intervals import Estimate
from harness.stats.pairs import holm_adjusted
from harness.store.rows import dicts
from leaderboard.charts.common import natural_key
from leaderboard.rows.pairs import Paired, paired
from leaderboard.rows.ranks import TaskTable, estimates
from leaderboard.rows.subjects import ItemTable, Key, Subject, item_table, item_tables, subjects
from leaderboard.rows.usage import UNKNOWN, TaskVersion, Used, used

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known of the model itself."""

    family: str | None
    params: int | None
    release_date: date | None
    license: str | None
    source: str | None


class ModelScore(Struct, frozen=True, kw_only=True):
    """A variant on a task, with what it took; columns as in `leaderboard.columns.COLUMNS`."""

    task: str
    version: str
    label: str
    variant_id: str
    strategy: str
    value: float | None
    lo: float | None
    hi: float | None
    method: str
    level: float
    n_items: int
    n_clusters: int
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_ms: float | None
    tokens_per_s: float | None
    memory_gib: float | None
    flags: tuple[str, ...]


class CategoryScore(Struct, frozen=True, kw_only=True):
    """A subject on the items of a category."""

    task: str
    version: str
    category: str
    label: str
    value: float | None
    lo: float | None
    hi: float | None
    method: str
    level: float
    n_items: int
    n_clusters: int
    flags: tuple[str, ...]


class QuantRow(Struct, frozen=True, kw_only=True):
    """A quantised variant against the full one on a task.

    Attributes
    ----------
    label, full : str
    mean_a, mean_b : float or None
        Of the quantised and of the full one, on the shared items.
    diff, diff_lo, diff_hi : float or None
        Quantised less full.
    p_adj : float or None
        Holm's, over all rows of the model.
    gained, lost : int
        Items on which the quantised one is better, and worse.
    """

    task: str
    version: str
    label: str
    full: str
    n_shared: int
    n_clusters: int
    mean_a: float | None
    mean_b: float | None
    diff: float | None
    diff_lo: float | None
    diff_hi: float | None
    p: float | None
    p_adj: float | None
    test: str
    mde: float | None
    gained: int
    lost: int
    flags: tuple[str, ...]


class ModelPage(Struct, frozen=True, kw_only=True):
    """A model whole.

    Attributes
    ----------
    variants : list of Subject
    scores : list of ModelScore
        By task, then variant.
    quantised : list of QuantRow
    run_ids : list of str
        Newest first; those without the data are no answers to the task and left out.
    """

    facts: ModelFacts
    variants: list[Subject]
    scores: list[ModelScore]
    quantised: list[QuantRow]
    run_ids: list[str]


def model_names(con: DuckDBPyConnection) -> list[str]:
    """List the models, baselines last."""
    return list(dict.fromkeys(subject.model_id for subject in subjects(con)))


def model_page(con: DuckDBPyConnection, model: str) -> ModelPage:
    """Read all of a model.

    Parameters
    ----------
    con : DuckDBPyConnection
    model : str
        One of `model_names`.
    """
    variants = [s for s in subjects(con) if s.model_id == model]
    keys = [s.key for s in variants]
    tasks = _tasks(con, keys)
    took = used(con, tuple(tasks))
    scores: list[ModelScore] = []
    pairs: list[tuple[TaskVersion, Subject, Subject, Paired]] = []
    tables = item_tables(con, tasks, keys)
    for task, version in tasks:
        found = tables[task, version]
        for subject, mean in zip(variants, estimates(found.table), strict=True):
            usage = took.get((subject.key, (task, version)))
            if mean.value is not None or usage is not None:
                scores.append(_score(task, version, subject, mean, usage or UNKNOWN))
        pairs += _quantised_on((task, version), variants, found)
    return ModelPage(
        facts=_facts(con, model), variants=variants, scores=scores, quantised=_quant_rows(pairs),
        run_ids=_run_ids(con, keys),
    )  # fmt: skip


def category_scores(
    con: DuckDBPyConnection, task: str, version: str, label: str, key: Key
) -> list[CategoryScore]:
    """Give a subject's score on each category of a task; none where items have no category."""
    found = item_table(con, task, version, [key])
    names = sorted({c for c in found.categories if c}, key=natural_key)
    rows = []
    for name in names:
        chosen = np.array([category == name for category in found.categories])
        codes = np.unique(found.table.clusters[chosen], return_inverse=True)[1].astype(np.int64)
        (mean,) = estimates(TaskTable(found.table.scores[chosen], codes))
        rows.append(CategoryScore(
            task=task, version=version, category=name, label=label, **_numbers(mean),
            flags=mean.notes,
        ))  # fmt: skip
    return rows


def full_of(quantised: Subject, among: Sequence[Subject]) -> Subject | None:
    """Choose what a quantised variant is compared with: not quantised, and as alike as there is."""
    alike = [s for s in among if s.full and s.strategy == quantised.strategy]
    return max(
        alike,
        key=lambda s: (
            s.backend == quantised.backend, s.revision == quantised.revision, s.n_runs
        ),
        default=None,
    )  # fmt: skip


def _score(task: str, version: str, subject: Subject, mean: Estimate, usage: Used) -> ModelScore:
    return ModelScore(
        task=task, version=version, label=subject.label, variant_id=subject.variant_id,
        strategy=subject.strategy, **_numbers(mean), tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out, cost_usd=usage.cost_usd, latency_ms=usage.latency_ms,
        tokens_per_s=usage.tokens_per_s, memory_gib=usage.memory_gib,
        flags=(*_marks(subject), *mean.notes),
    )  # fmt: skip


def _quantised_on(
    task: TaskVersion, variants: Sequence[Subject], found: ItemTable
) -> list[tuple[TaskVersion, Subject, Subject, Paired]]:
    answered = [not np.isnan(column).all() for column in found.table.scores.T]
    there = [s for s, is_there in zip(variants, answered, strict=True) if is_there]
    place = {s.key: i for i, s in enumerate(variants)}
    pairs = []
    for subject in there:
        full = None if subject.full else full_of(subject, there)
        if full is not None:
            one = paired(*task, found, place[subject.key], place[full.key])
            pairs.append((task, subject, full, one))
    return pairs


def _quant_rows(
    pairs: Sequence[tuple[TaskVersion, Subject, Subject, Paired]],
) -> list[QuantRow]:
    tests = holm_adjusted([one.test for *_, one in pairs])
    return [
        QuantRow(
            task=task, version=version, label=subject.label, full=full.label,
            n_shared=test.n_items, n_clusters=test.n_clusters, mean_a=test.a, mean_b=test.b,
            diff=test.diff, diff_lo=test.lo, diff_hi=test.hi, p=test.p, p_adj=test.p_adj,
            test=test.test, mde=test.mde, gained=one.gained, lost=one.lost,
            flags=(*(("simulated",) if subject.simulated else ()), *test.notes),
        )
        for ((task, version), subject, full, one), test in zip(pairs, tests, strict=True)
    ]  # fmt: skip


def _numbers(mean: Estimate) -> dict[str, Any]:
    names = ("value", "lo", "hi", "method", "level", "n_items", "n_clusters")
    return {name: getattr(mean, name) for name in names}


def _marks(subject: Subject) -> tuple[str, ...]:
    marks = {"baseline": subject.baseline, "simulated": subject.simulated}
    return tuple(name for name, is_so in marks.items() if is_so)


def _tasks(con: DuckDBPyConnection, keys: Sequence[Key]) -> list[TaskVersion]:
    return con.execute(
        """
        SELECT DISTINCT task_id, version FROM runs
        SEMI JOIN (SELECT unnest($keys, recursive := true)) USING (variant_id, strategy)
        ORDER BY task_id, version DESC
        """,
        {"keys": [{"variant_id": v, "strategy": s} for v, s in keys]},
    ).fetchall()


def _run_ids(con: DuckDBPyConnection, keys: Sequence[Key]) -> list[str]:
    rows = con.execute(
        """
        SELECT run_id FROM runs
        SEMI JOIN (SELECT unnest($keys, recursive := true)) USING (variant_id, strategy)
        WHERE coalesce(config_json ->> '$.no_data', 'false') <> 'true'
        ORDER BY run_id DESC
        """,
        {"keys": [{"variant_id": v, "strategy": s} for v, s in keys]},
    ).fetchall()
    return [run_id for (run_id,) in rows]


def _facts(con: DuckDBPyConnection, model: str) -> ModelFacts:
    rows = dicts(con.execute(
        "SELECT family, params, release_date, license, source FROM models "
        "WHERE model_id = $model LIMIT 1",
        {"model": model},
    ))  # fmt: skip
    empty = dict.fromkeys(("family", "params", "release_date", "license", "source"))
    return ModelFacts(**(rows[0] if rows else empty))
