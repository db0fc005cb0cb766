"""Rows of a result as dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def dicts(result: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Fetch all rows of a result, each by its column names."""
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
