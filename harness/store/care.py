"""Care of a store: is it sound, make it anew, make it small."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from harness.core.errors import StoreError
from harness.store.checks import verify
from harness.store.derive import DERIVED
from harness.store.ingest import written_journal
from harness.store.layout import Store
from harness.store.load import Loader, Place, fsync
from harness.store.lock import locked
from harness.store.packing import pack
from harness.store.publish import snapshot
from harness.store.schema import check_version, connect, table_names

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Compacted", "Rebuilt", "compact", "pack_run", "rebuild", "verify"]

PACK_BYTES = 1 << 20
_FROM_JOURNALS = (
    "models", "model_variants", "tasks", "items", "runs", "samples", "scores", "events",
    "ingest_errors",
)  # fmt: skip
# How a turn cuts a journal differs from one ingest to the next; derived rows follow at the next publish.
_BOOKKEEPING = ("schema_meta", "ingest_offsets", "ingest_slices", "stale_runs", *DERIVED)
_ORDER = {
    "samples": "run_id, text_id", "scores": "run_id, metric, seq", "events": "run_id, seq",
    "item_scores": "ALL", "run_totals": "ALL", "metric_totals": "ALL",
}  # fmt: skip


class Compacted(Struct, kw_only=True):
    """What `compact` did: size of the database before and after in bytes, and the runs packed."""

    bytes_before: int
    bytes_after: int
    packed: list[str]


class Rebuilt(Struct, kw_only=True):
    """What `rebuild` did.

    Attributes
    ----------
    runs, rows : int
        Runs and samples in the new database.
    differences : list of str
        One line for each table in which the old database differed; empty when it was the same.
    """

    runs: int
    rows: int
    differences: list[str]


def rebuild(store: Store) -> Rebuilt:
    """Make the database anew from the journals, compare it with the old one and take its place.

    Returns
    -------
    Rebuilt

    Raises
    ------
    StoreError
        When the old database has runs whose journals are gone, or a newer package wrote it.
    """
    with locked(store, wait=True):
        _sweep(store)
        new = store.root / "rebuild.duckdb"
        readable = _check_old(store)
        with connect(new) as con:
            loader = Loader(con, store)
            old_texts: list[Path] = []
            for run_id in store.run_ids():
                # New parts get new numbers, so that at any moment all texts are there, some twice.
                old_texts += store.texts(run_id)
                place = Place(parts=_next_part(store, run_id))
                with written_journal(store, run_id) as journal:
                    for _ in loader.drain(run_id, journal, place):
                        pass
            n_runs, n_rows = _count(con, "runs"), _count(con, "samples")
            if readable:
                differences = _compare_and_carry(con, store.database)
            elif store.database.exists():
                differences = ["the old database could not be read"]
            else:
                differences = []
        _swap_database(store, new)
        for path in old_texts:
            path.unlink()
        return Rebuilt(runs=n_runs, rows=n_rows, differences=differences)


def compact(store: Store) -> Compacted:
    """Rewrite the database without its holes, and pack the journals of finished runs.

    Raises
    ------
    StoreError
        When the copy does not hold the same number of rows; the old file then stays.
    """
    with locked(store, wait=True):
        _sweep(store)
        new = store.root / "compact.duckdb"
        connect(store.database).close()  # brings it up to date and folds a killed writer's log in
        before = store.database.stat().st_size
        with connect(new) as con:
            con.execute(f"ATTACH '{_quoted(store.database)}' AS old (READ_ONLY)")
            for table in table_names(con):
                if table != "schema_meta":
                    order = f" ORDER BY {_ORDER[table]}" if table in _ORDER else ""
                    con.execute(f"INSERT INTO {table} SELECT * FROM old.{table}{order}")
                    if _count(con, table) != _count(con, f"old.{table}"):
                        raise StoreError(f"table {table} was not copied whole; nothing was changed")
            con.execute("DETACH old")
            finished = con.execute(
                "SELECT run_id, bytes FROM runs JOIN ingest_offsets USING (run_id) "
                "WHERE status <> 'running' AND suspect IS NULL ORDER BY run_id"
            ).fetchall()
        _swap_database(store, new)
        packed = [
            run_id
            for run_id, size in finished
            if _size(store.journal(run_id)) == size and pack(store, run_id)
        ]
        return Compacted(
            bytes_before=before, bytes_after=store.database.stat().st_size, packed=packed
        )


def pack_run(store: Store, run_id: str, least: int = PACK_BYTES) -> bool:
    """Pack the journal of a run that is finished and wholly published; smaller ones stay as lines.

    Parameters
    ----------
    store : Store
    run_id : str
    least : int
        Leave journals below so many bytes alone: packing them would save nothing worth the time.

    Returns
    -------
    bool
        Whether it was packed.
    """
    size = _size(store.journal(run_id))
    if size < least:
        return False
    published = snapshot(store).execute(
        "SELECT bytes FROM runs JOIN ingest_offsets USING (run_id) "
        "WHERE run_id = ? AND status <> 'running' AND suspect IS NULL",
        [run_id],
    )
    with locked(store, wait=True):
        return published.fetchone() == (size,) and pack(store, run_id)


def _sweep(store: Store) -> None:
    """Remove what a rebuild or compaction left behind that was cut short."""
    for path in (*store.root.glob("rebuild.duckdb*"), *store.root.glob("compact.duckdb*")):
        path.unlink()


def _check_old(store: Store) -> bool:
    """Tell whether the old database can be read; refuse what a rebuild would lose."""
    import duckdb

    if not store.database.exists():
        return False
    try:
        con = duckdb.connect(str(store.database))
    except duckdb.Error:
        return False
    with con:
        if check_version(con) == 0:
            return False
        known = {run_id for (run_id,) in con.execute("SELECT run_id FROM runs").fetchall()}
    gone = sorted(known - set(store.run_ids()))
    if gone:
        raise StoreError(
            f"{len(gone)} runs are in the database but have no journal, so a rebuild would lose "
            f"them (the first is {gone[0]}); put their folders back under {store.runs}"
        )
    connect(store.database).close()
    return True


def _compare_and_carry(con: DuckDBPyConnection, old: Path) -> list[str]:
    """Compare what comes from journals, and take along what does not (others' figures, fits)."""
    con.execute(f"ATTACH '{_quoted(old)}' AS old (READ_ONLY)")
    differences = []
    for table in table_names(con):
        if table in _FROM_JOURNALS:
            only_old = _count(con, f"(FROM old.{table} EXCEPT ALL FROM {table})")
            only_new = _count(con, f"(FROM {table} EXCEPT ALL FROM old.{table})")
            if only_old or only_new:
                differences.append(
                    f"{table}: {only_old} rows were only in the old database, "
                    f"{only_new} only in the journals"
                )
        elif table not in _BOOKKEEPING:
            con.execute(f"INSERT INTO {table} SELECT * FROM old.{table}")
    con.execute("DETACH old")
    return differences


def _next_part(store: Store, run_id: str) -> int:
    numbers = [int(path.stem.removeprefix("text-")) for path in store.texts(run_id)]
    return max(numbers, default=-1) + 1


def _swap_database(store: Store, new: Path) -> None:
    # A log left beside the old file would be replayed into the new one.
    store.database.with_name("store.duckdb.wal").unlink(missing_ok=True)
    fsync(new)
    new.replace(store.database)
    fsync(store.root)


def _count(con: DuckDBPyConnection, table: str) -> int:
    row = con.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
