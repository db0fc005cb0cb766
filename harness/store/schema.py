"""The database's tables: numbered, forward-only migrations and the views over them."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import StoreError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SQL = Path(__file__).parent / "sql"
# One thread and little memory, because the ingester lives inside a run.
_HEADER_BYTES = 3 * 4096  # DuckDB writes three header blocks before any data
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "400MB",
    "autoinstall_known_extensions": False,
}


def migrations() -> dict[int, Path]:
    """Give the migration files by the version that each leads to."""
    return {
        int(path.name[:4]): path
        for path in sorted(_SQL.iterdir())
        if re.fullmatch(r"\d{4}_\w+\.sql", path.name)
    }


def sql(name: str) -> str:
    """Read one of the package's SQL files."""
    return (_SQL / name).read_text(encoding="utf-8")


def connect(path: Path) -> DuckDBPyConnection:
    """Open a database for writing, brought up to this package's version.

    Parameters
    ----------
    path : Path
        The live database (its lock must be held) or a copy of it.

    Raises
    ------
    StoreError
        When it cannot be opened, or a newer package wrote it.
    """
    import duckdb

    _remove_unborn(path)
    try:
        con = duckdb.connect(str(path), config=_CONFIG)
    except duckdb.Error as error:
        raise StoreError(
            f"cannot open store database {path}: {str(error).splitlines()[0]}; "
            "if it is damaged, `harness store rebuild` makes it anew from the journals"
        ) from error
    try:
        migrate(con)
    except BaseException:
        con.close()
        raise
    return con


def _remove_unborn(path: Path) -> None:
    """Remove a database that a full disk stopped while it was made: it holds nothing yet."""
    if path.exists() and path.stat().st_size < _HEADER_BYTES:
        path.unlink()
        path.with_name(path.name + ".wal").unlink(missing_ok=True)


def version_of(con: DuckDBPyConnection) -> int:
    """Read a database's schema version; 0 for an empty one."""
    import duckdb

    try:
        row = con.execute("SELECT version FROM schema_meta").fetchone()
    except duckdb.CatalogException:
        return 0
    return int(row[0]) if row else 0


def check_version(con: DuckDBPyConnection) -> int:
    """Refuse a database that a newer package wrote; give its version otherwise.

    Raises
    ------
    StoreError
        Naming both versions and the command that would upgrade.
    """
    version, ours = version_of(con), max(migrations())
    if version > ours:
        raise StoreError(
            f"the store has schema version {version}, this package knows up to {ours}; "
            "upgrade with pip install -U bridge-harness"
        )
    return version


def migrate(con: DuckDBPyConnection) -> None:
    """Bring a database to the newest version and its views to the package's text.

    A database that is up to date is not written to, so that its file stays as it is.

    Raises
    ------
    StoreError
        When a newer package wrote it.
    """
    version = check_version(con)
    for number, path in migrations().items():
        if number <= version:
            continue
        con.execute("BEGIN")
        if version == 0:
            con.execute(
                "CREATE TABLE schema_meta "
                "(version INTEGER, created TIMESTAMP, duckdb_version VARCHAR, views_sha256 VARCHAR)"
            )
            con.execute(
                "INSERT INTO schema_meta SELECT 0, ?, version(), ''",
                [datetime.now(UTC).replace(tzinfo=None)],
            )
        con.execute(path.read_text(encoding="utf-8"))
        con.execute("UPDATE schema_meta SET version = ?", [number])
        con.execute("COMMIT")
        version = number
    views = sql("views.sql")
    digest = hashlib.sha256(views.encode()).hexdigest()
    if con.execute("SELECT views_sha256 FROM schema_meta").fetchone() != (digest,):
        con.execute("BEGIN")
        con.execute(views)
        # What was derived by the old text is no longer what the views say.
        con.execute(
            "INSERT INTO stale_runs SELECT run_id FROM runs ANTI JOIN stale_runs USING (run_id)"
        )
        con.execute("UPDATE schema_meta SET views_sha256 = ?", [digest])
        con.execute("COMMIT")


def table_names(con: DuckDBPyConnection) -> list[str]:
    """List the tables, bookkeeping included, in alphabetical order."""
    rows = con.execute(
        "SELECT table_name FROM duckdb_tables() "
        "WHERE database_name = current_database() AND NOT temporary ORDER BY table_name"
    ).fetchall()
    return [name for (name,) in rows]
