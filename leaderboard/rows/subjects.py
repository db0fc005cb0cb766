"""Who is measured, and on what: variants of models with a strategy, and tables of their item scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from harness.store.rows import dicts
from leaderboard.rows.ranks import TaskTable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PLAIN = ("single", "sample")
"""Strategies that need no name: one output, one answer."""

GIB = 2**30
Key = tuple[str, str]
"""Variant and strategy."""


class Subject(Struct, frozen=True, kw_only=True):
    """A variant of a model with a strategy.

    Attributes
    ----------
    label : str
        Model, precision, quantisation, and the strategy where it is not a plain one; one each.
    model : str
        As it was asked for last.
    model_id : str
        What its variants and quantisations have in common.
    full : bool
        Not quantised.
    simulated : bool
        Quantised in simulation: nothing measured of its memory or speed means anything.
    bits, weight_gib : float or None
        Of the weights; `weight_gib` is None for a simulated one.
    """

    label: str
    model: str
    model_id: str
    variant: str
    variant_id: str
    strategy: str
    backend: str
    revision: str
    full: bool
    simulated: bool
    baseline: bool
    bits: float | None
    weight_gib: float | None
    n_runs: int

    @property
    def key(self) -> Key:
        """Variant and strategy."""
        return self.variant_id, self.strategy


class ItemTable(Struct, frozen=True, eq=False):
    """Scores of some subjects on the items of a task.

    Attributes
    ----------
    items : list of str
        Names, inside the task and version.
    categories : list of str or None
        One an item.
    table : TaskTable
        Scores, shape (n_items, n_subjects), and clusters.
    """

    items: list[str]
    categories: list[str | None]
    table: TaskTable


def subjects(con: DuckDBPyConnection) -> list[Subject]:
    """List all, by model, those that are not quantised first; runs without the data are an ablation and make none."""
    from leaderboard.charts.common import natural_key

    rows = dicts(con.execute(
        """
        SELECT r.variant_id, r.strategy, max_by(r.model, r.run_id) AS model,
            bool_or(r.is_baseline) AS baseline, count(*) AS n_runs,
            coalesce(any_value(v.model_id), max_by(r.model, r.run_id)) AS model_id,
            any_value(v.backend) AS backend, any_value(v.revision) AS revision,
            any_value(v.dtype) AS dtype, nullif(any_value(v.quant_scheme), '') AS scheme,
            coalesce(bool_or(v.quant_simulated), false) AS simulated,
            any_value(v.bits_w) AS bits, any_value(v.weight_bytes) AS weight_bytes
        FROM runs r LEFT JOIN model_variants v USING (variant_id)
        WHERE coalesce(r.config_json ->> '$.no_data', 'false') <> 'true'
        GROUP BY r.variant_id, r.strategy
        """
    ))  # fmt: skip
    found = [_subject(row) for row in rows]
    twice = {label for label, n in Counter(s.label for s in found).items() if n > 1}
    found = [
        replace(s, label=f"{s.label} #{(s.variant_id or '')[:8]}") if s.label in twice else s
        for s in found
    ]
    return sorted(
        found, key=lambda s: (s.baseline, natural_key(s.model_id), not s.full, natural_key(s.label))
    )


def _subject(row: dict[str, Any]) -> Subject:
    quantisation = " ".join(filter(None, (row["scheme"], "simulated" * row["simulated"])))
    variant = " ".join(filter(None, (row["dtype"], quantisation)))
    plain = row["strategy"] in PLAIN
    weight = row["weight_bytes"]
    return Subject(
        label=" ".join(filter(None, (row["model"], variant, "" if plain else row["strategy"]))),
        model=row["model"], model_id=row["model_id"], variant=variant,
        variant_id=row["variant_id"], strategy=row["strategy"], backend=row["backend"] or "",
        revision=row["revision"] or "", full=not row["scheme"], simulated=row["simulated"],
        baseline=row["baseline"], bits=row["bits"], n_runs=row["n_runs"],
        weight_gib=None if weight is None or row["simulated"] else weight / GIB,
    )  # fmt: skip


def item_table(con: DuckDBPyConnection, task: str, version: str, keys: Sequence[Key]) -> ItemTable:
    """Read item scores of a task; items that only adaptive runs chose are left out."""
    chosen = {"task": task, "version": version}
    items = con.execute(
        """
        SELECT item_id, category, dense_rank() OVER (
            ORDER BY cluster_id, CASE WHEN cluster_id IS NULL THEN item_id END
        ) - 1
        FROM items WHERE task_id = $task AND version = $version ORDER BY item_id
        """,
        chosen,
    ).fetchall()
    scores = con.execute(
        """
        SELECT n.item, m.subject::INTEGER AS subject, s.mean
        FROM (SELECT * FROM item_scores WHERE task_id = $task AND version = $version) s
        JOIN (
            SELECT item_id, row_number() OVER (ORDER BY item_id) - 1 AS item
            FROM items WHERE task_id = $task AND version = $version
        ) n USING (item_id)
        JOIN (
            SELECT unnest($keys, recursive := true), generate_subscripts($keys, 1) - 1 AS subject
        ) m USING (variant_id, strategy)
        WHERE NOT s.adaptive
        """,
        chosen | {"keys": [{"variant_id": v, "strategy": s} for v, s in keys]},
    ).fetchnumpy()
    filled = np.full((len(items), len(keys)), np.nan)
    filled[scores["item"], scores["subject"]] = scores["mean"]
    clusters = np.array([row[2] for row in items], dtype=np.int64)
    return ItemTable(
        [row[0] for row in items], [row[1] for row in items], TaskTable(filled, clusters)
    )
