"""What is derived from samples and scores, kept up to date run by run.

``sql/views.sql`` says what a run's totals and an item's scores are. Evaluated over a million
attempts these views take seconds, so their rows lie in tables, and a run that changed makes its own
anew: its totals, and the items of its group, which is all runs of one variant, strategy and task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from harness.store.schema import sql

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Attempts looked at together: bounds the memory, whatever the size of the store.
BATCH_ATTEMPTS = 100_000
# What the views read of a run.
_OF_RUNS = ("runs", "samples", "scores")
DERIVED = ("run_totals", "metric_totals", "item_scores")
_GROUP = ("variant_id", "strategy", "task_id", "version")


class _Group(NamedTuple):
    """All runs of one variant, strategy and task, and how many attempts they planned."""

    run_ids: list[str]
    n_planned: int


def refresh(con: DuckDBPyConnection) -> bool:
    """Bring the derived tables up to date.

    Every batch is a transaction of its own, so what a crash leaves undone stays marked as stale.

    Parameters
    ----------
    con : DuckDBPyConnection
        A database that is up to date, open for writing; after an error it is to be closed.

    Returns
    -------
    bool
        Whether anything was stale.
    """
    groups = _stale_groups(con)
    if not groups:
        return False
    row = con.execute("SELECT current_database()").fetchone()
    assert row is not None
    home = row[0]
    for run_ids in _batches(groups):
        _set_aside(con, run_ids, f'"{home}".main')
        con.execute("BEGIN")
        _replace(con, f'"{home}".main')
        con.execute("COMMIT")
        con.execute(f'USE "{home}"')
        con.execute("DETACH aside")
    return True


def _stale_groups(con: DuckDBPyConnection) -> list[_Group]:
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM s.{name}" for name in _GROUP)
    columns = ", ".join(f"s.{name}" for name in _GROUP)
    rows = con.execute(
        f"""
        WITH touched AS (
            SELECT DISTINCT {columns} FROM runs s SEMI JOIN stale_runs USING (run_id)
        )
        SELECT list(r.run_id), sum(r.n_planned) FROM runs r JOIN touched s ON {same}
        GROUP BY {columns} ORDER BY {columns}
        """
    ).fetchall()
    return [_Group(*row) for row in rows]


def _batches(groups: list[_Group]) -> Iterator[list[str]]:
    run_ids: list[str] = []
    n_planned = 0
    for group in groups:
        if run_ids and n_planned + group.n_planned > BATCH_ATTEMPTS:
            yield run_ids
            run_ids, n_planned = [], 0
        run_ids = run_ids + group.run_ids
        n_planned += group.n_planned
    yield run_ids


def _set_aside(con: DuckDBPyConnection, run_ids: list[str], home: str) -> None:
    """Make a database of views that shows some runs only, with the same views over them.

    A filter over the views themselves would not reach all the tables under their windows and joins.
    """
    chosen = ", ".join("'" + run_id.replace("'", "''") + "'" for run_id in run_ids)
    con.execute("ATTACH ':memory:' AS aside")
    con.execute("USE aside")
    for table in _OF_RUNS:
        con.execute(f"CREATE VIEW {table} AS FROM {home}.{table} WHERE run_id IN ({chosen})")
    con.execute(f"CREATE VIEW items AS FROM {home}.items")
    con.execute(sql("views.sql"))


def _replace(con: DuckDBPyConnection, home: str) -> None:
    of_group = " AND ".join(f"d.{name} IS NOT DISTINCT FROM r.{name}" for name in _GROUP)
    con.execute(f"DELETE FROM {home}.item_scores d USING runs r WHERE {of_group}")
    for table in ("run_totals", "metric_totals"):
        con.execute(f"DELETE FROM {home}.{table} WHERE run_id IN (SELECT run_id FROM runs)")
    for table in DERIVED:
        con.execute(f"INSERT INTO {home}.{table} BY NAME SELECT * FROM v_{table} ORDER BY ALL")
    con.execute(f"DELETE FROM {home}.stale_runs WHERE run_id IN (SELECT run_id FROM runs)")
