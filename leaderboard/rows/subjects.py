"""Who is measured, and on what: variants of models with a strategy, and tables of their item scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from harness.store.rows import dicts
from leaderboard.rows.ranks import Floats, TaskTable

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
    return item_tables(con, [(task, version)], keys)[task, version]


def item_tables(
    con: DuckDBPyConnection, tasks: Sequence[tuple[str, str]], keys: Sequence[Key]
) -> dict[tuple[str, str], ItemTable]:
    """Read item scores of several tasks at once: a query a task would cost three times as much.

    Parameters
    ----------
    con : DuckDBPyConnection
    tasks : sequence of (task, version)
    keys : sequence of (variant, strategy)
        The columns.

    Returns
    -------
    dict of (task, version) to ItemTable
        One for every task, items by name; items that only adaptive runs chose have no scores.
    """
    if not tasks:
        return {}
    chosen = {"tasks": [{"task_id": task, "version": version} for task, version in tasks]}
    named: dict[tuple[str, str], list[tuple[str, str | None, str | None]]] = {
        (task, version): [] for task, version in tasks
    }
    for task, version, item, category, cluster in con.execute(
        """
        SELECT task_id, version, item_id, category, cluster_id
        FROM items SEMI JOIN (SELECT unnest($tasks, recursive := true)) USING (task_id, version)
        ORDER BY task_id, version, item_id
        """,
        chosen,
    ).fetchall():
        named[task, version].append((item, category, cluster))
    filled = _item_scores(con, chosen, sum(map(len, named.values())), keys)
    found, first = {}, 0
    for one, items in sorted(named.items()):
        scores = filled[first : first + len(items)]
        first += len(items)
        found[one] = ItemTable(
            [name for name, _, _ in items], [category for _, category, _ in items],
            TaskTable(scores, _codes(items)),
        )  # fmt: skip
    return found


def _item_scores(
    con: DuckDBPyConnection, chosen: dict[str, Any], n_items: int, keys: Sequence[Key]
) -> Floats:
    """Give the scores of all items of some tasks, by task, version and item; NaN for none."""
    scores = con.execute(
        """
        SELECT n.item, m.subject::INTEGER AS subject, s.mean
        FROM item_scores s
        JOIN (
            SELECT unnest($keys, recursive := true), generate_subscripts($keys, 1) - 1 AS subject
        ) m USING (variant_id, strategy)
        JOIN (
            SELECT task_id, version, item_id,
                row_number() OVER (ORDER BY task_id, version, item_id) - 1 AS item
            FROM items
            SEMI JOIN (SELECT unnest($tasks, recursive := true)) USING (task_id, version)
        ) n USING (task_id, version, item_id)
        WHERE NOT s.adaptive
        """,
        chosen | {"keys": [{"variant_id": v, "strategy": s} for v, s in keys]},
    ).fetchnumpy()
    filled = np.full((n_items, len(keys)), np.nan)
    filled[scores["item"], scores["subject"]] = scores["mean"]
    return filled


def _codes(items: Sequence[tuple[str, str | None, str | None]]) -> NDArray[np.int64]:
    """Number the clusters; an item without one is a cluster by itself."""
    codes: dict[tuple[bool, str], int] = {}
    return np.array(
        [
            codes.setdefault((cluster is None, name if cluster is None else cluster), len(codes))
            for name, _, cluster in items
        ],
        dtype=np.int64,
    )
