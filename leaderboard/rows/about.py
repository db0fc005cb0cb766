"""Rows of the page About: whose data the tasks of a store are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from harness.store.rows import dicts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Licence(Struct, frozen=True, kw_only=True):
    """A task's licence and where its items come from; empty where its runs did not say."""

    task: str
    version: str
    license: str | None
    source: str | None
    dataset_sha256: str | None


def licences(con: DuckDBPyConnection) -> list[Licence]:
    """List the tasks of a snapshot with the licence of their items."""
    rows = con.execute(
        "SELECT task_id AS task, version, license, source, dataset_sha256 FROM tasks "
        "ORDER BY task_id, version"
    )
    return [Licence(**row) for row in dicts(rows)]
