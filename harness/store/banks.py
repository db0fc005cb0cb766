"""Banks of calibrated items in the store: what an adaptive run measures a new model with.

A bank is made with a fit (`harness.store.fits.keep_fit` writes both at once) and read from snapshots.
Nothing here computes: numbers go in and out as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.errors import unknown
from harness.store.rows import dicts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TABLES = ("irt_banks", "irt_bank_items")


class BankRow(Struct, kw_only=True):
    """A bank without its items.

    Attributes
    ----------
    name : str
    fit_id : str
        The fit that it was made with.
    method, gauge, data_hash : str
        How it was fitted, what fixes the scale, and the hash of the fitted cells.
    converged : bool
    mean, sd : float
        The population's ability: the prior of a new model.
    widen : float
        How much larger errors of a score are than the model says, measured on models left out.
    n_items : int
    created : datetime
        UTC.
    """

    name: str
    fit_id: str
    method: str
    gauge: str
    data_hash: str
    converged: bool
    mean: float
    sd: float
    widen: float
    n_items: int
    created: datetime


class BankItem(Struct, kw_only=True):
    """An item of a bank: logit p = a (theta - b) = a theta + d.

    Attributes
    ----------
    task_id, version : str or None
        None for an item of a file.
    category, content_sha256 : str or None
        As the item was when it was answered.
    cov : float
        Covariance of log a and d.
    """

    name: str
    task_id: str | None
    version: str | None
    item_id: str
    category: str | None
    content_sha256: str | None
    a: float
    b: float
    d: float
    se_log_a: float
    se_b: float
    se_d: float
    cov: float


class StoredBank(Struct):
    """A bank whole."""

    bank: BankRow
    items: list[BankItem]

    def rows(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Give the rows of `TABLES`."""
        return (
            [msgspec.structs.asdict(self.bank)],
            [msgspec.structs.asdict(item) for item in self.items],
        )


def banks(con: DuckDBPyConnection) -> list[BankRow]:
    """List all banks, the one made last at the end."""
    return [BankRow(**row) for row in dicts(con.execute("FROM irt_banks ORDER BY created, name"))]


def find_bank(con: DuckDBPyConnection, name: str) -> StoredBank:
    """Find a bank by its name.

    Raises
    ------
    UsageError
        No such bank.
    """
    known = {row.name: row for row in banks(con)}
    if name not in known:
        raise unknown("item bank", name, known, "`harness fit --bank NAME` makes one")
    items = con.execute(
        "FROM irt_bank_items WHERE name = ? ORDER BY task_id, version, item_id", [name]
    )
    return StoredBank(known[name], [BankItem(**row) for row in dicts(items)])


def newest_bank_of(con: DuckDBPyConnection, task_id: str) -> str | None:
    """Name the bank made last that has items of a task, whatever its version."""
    row = con.execute(
        "SELECT max_by(name, (created, name)) FROM irt_banks SEMI JOIN "
        "(FROM irt_bank_items WHERE task_id = ?) i USING (name)",
        [task_id],
    ).fetchone()
    return None if row is None else row[0]


def item_contents(
    con: DuckDBPyConnection, tasks: Sequence[str]
) -> dict[tuple[str, str, str], tuple[str | None, str | None]]:
    """Give category and content hash of all items of some tasks, by task, version and item."""
    rows = con.execute(
        "SELECT task_id, version, item_id, category, content_sha256 FROM items "
        "WHERE list_contains($tasks, task_id)",
        {"tasks": list(tasks)},
    ).fetchall()
    return {(task, version, item): (category, sha) for task, version, item, category, sha in rows}


def item_costs(
    con: DuckDBPyConnection, task_id: str, version: str
) -> dict[str, tuple[float | None, float | None, float | None]]:
    """Give what an attempt at each item has cost so far: mean over the calls of all models.

    Answers that were reused cost nothing and are left out.

    Returns
    -------
    dict of item_id to (US dollars, tokens, seconds)
        Each None where no attempt said it.
    """
    rows = con.execute(
        """
        SELECT item_id, avg(cost_usd), avg(tokens_in + tokens_out), avg(latency_ms) / 1000
        FROM samples WHERE task_id = $task AND version = $version AND reused_from IS NULL
        GROUP BY item_id
        """,
        {"task": task_id, "version": version},
    ).fetchall()
    return {item: (dollars, tokens, seconds) for item, dollars, tokens, seconds in rows}
