"""Does the database say what the journals say? One line a fault."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from harness.core.errors import StoreError
from harness.core.types import STATUSES, ErrorKind
from harness.store.ingest import written_journal
from harness.store.layout import Store
from harness.store.load import Loader, Place, tail_hash
from harness.store.lock import locked
from harness.store.schema import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_OF_ATTEMPT = "run_id, task_id, version, item_id, epoch, attempt"
# Of what is derived, all but sums whose last digit depends on the order of adding.
_DERIVED = {
    "run_totals": "* EXCLUDE (cost_usd)",
    "metric_totals": "* EXCLUDE (total, total_sq, cluster_sq), round(total, 6)",
    "item_scores": "* EXCLUDE (k, mean), round(k, 9), round(mean, 9)",
}


def _not_as_the_view(table: str, columns: str) -> str:
    """Compare a derived table with its view; what is stale waits for the next publish."""
    rows = f"SELECT {columns} FROM {{}} WHERE NOT EXISTS (FROM stale_runs)"
    stored, said = rows.format(table), rows.format(f"v_{table}")
    return f"""SELECT 'derived table {table}: ' || count(*) || ' rows are not what the samples and '
        || 'scores say; run `harness store rebuild`'
    FROM (({stored} EXCEPT ALL {said}) UNION ALL ({said} EXCEPT ALL {stored}))
    HAVING count(*) > 0"""


# Each query gives one text column: a fault a row.
_CHECKS = (
    f"""SELECT 'run ' || run_id || ': item ' || item_id || ' epoch ' || epoch || ' attempt '
        || attempt || ' is there ' || count(*) || ' times'
    FROM samples GROUP BY {_OF_ATTEMPT} HAVING count(*) > 1""",
    f"""SELECT 'run ' || run_id || ': score ' || seq || ' (' || metric || ') of item ' || item_id
        || ' is there ' || count(*) || ' times'
    FROM scores GROUP BY {_OF_ATTEMPT}, metric, seq HAVING count(*) > 1""",
    f"""SELECT DISTINCT 'run ' || run_id || ': score ' || seq || ' of item ' || item_id || ' epoch '
        || epoch || ' attempt ' || attempt || ' has no sample'
    FROM scores ANTI JOIN samples USING ({_OF_ATTEMPT})""",
    f"""SELECT 'run ' || run_id || ': item ' || item_id || ' has the unknown status ' || status
    FROM samples WHERE status NOT IN {STATUSES}""",
    f"""SELECT 'run ' || run_id || ': item ' || item_id || ' has the unknown error kind '
        || error_kind
    FROM samples WHERE error_kind NOT IN {get_args(ErrorKind)}""",
    f"""SELECT 'run ' || run_id || ': score ' || seq || ' has the unknown status ' || status
    FROM scores WHERE status NOT IN {STATUSES}""",
    """SELECT 'run ' || s.run_id || ': item ' || s.item_id || ' is stored under task ' || s.task_id
        || ' ' || s.version || ', the run is of ' || r.task_id || ' ' || r.version
    FROM samples s JOIN runs r USING (run_id)
    WHERE (s.task_id, s.version) IS DISTINCT FROM (r.task_id, r.version)""",
    """SELECT DISTINCT 'run ' || run_id || ': has samples but no row of its own'
    FROM samples ANTI JOIN runs USING (run_id)""",
    """SELECT DISTINCT 'run ' || run_id || ': item ' || item_id || ' is no item of task ' || task_id
        || ' ' || version
    FROM samples ANTI JOIN items USING (task_id, version, item_id)""",
    """SELECT 'task ' || task_id || ' ' || version || ': item ' || item_id || ' is there '
        || count(*) || ' times'
    FROM items GROUP BY task_id, version, item_id HAVING count(*) > 1""",
    """SELECT 'run ' || run_id || ': is there ' || count(*) || ' times'
    FROM runs GROUP BY run_id HAVING count(*) > 1""",
    "SELECT 'run ' || run_id || ': ' || suspect FROM ingest_offsets WHERE suspect IS NOT NULL",
    """SELECT 'run ' || run_id || ': the line at byte ' || byte || ' could not be read: ' || reason
    FROM ingest_errors""",
    *(_not_as_the_view(table, columns) for table, columns in _DERIVED.items()),
)


def verify(store: Store) -> list[str]:
    """Compare the database with journals and text parts.

    Found are: rows that are missing, doubled or changed in what identifies them, moved offsets, a
    changed byte anywhere in what was ingested, texts that are gone, unknown statuses, scores
    without their sample, samples under another task than their run's, lines in quarantine.

    Returns
    -------
    list of str
        One line a fault, in a fixed order; empty when the store is sound.

    Raises
    ------
    StoreError
        When the database cannot be opened at all.
    """
    with locked(store, wait=True):
        if not store.database.exists():
            runs = store.run_ids()
            return [f"{len(runs)} runs but no database; run `harness store sync`"] if runs else []
        with connect(store.database) as con:
            faults = []
            for query in _CHECKS:
                faults += sorted(fault for (fault,) in con.execute(query).fetchall())
            places = Loader(con, store).places()
            for run_id in sorted(places):
                if places[run_id].suspect is None:
                    found = _check_journal(con, store, run_id, places[run_id])
                    found += _check_texts(con, store, run_id)
                    faults += [f"run {run_id}: {fault}" for fault in found]
            return faults


def _check_journal(con: DuckDBPyConnection, store: Store, run_id: str, place: Place) -> list[str]:
    if not (store.journal(run_id).exists() or store.packed_journal(run_id).exists()):
        return ["its journal is gone"]
    slices = con.execute(
        "SELECT byte, bytes, sha256 FROM ingest_slices WHERE run_id = ? ORDER BY byte", [run_id]
    ).fetchall()
    try:
        with written_journal(store, run_id) as journal:
            faults, n_lines = _check_bytes(journal, place, slices)
    except StoreError as error:
        return [str(error)]
    row = con.execute(
        """SELECT (SELECT count(*) FROM samples WHERE run_id = $run)
            + (SELECT count(DISTINCT seq) FROM scores WHERE run_id = $run)
            + (SELECT count(*) FROM events WHERE run_id = $run)
            + (SELECT count(*) FROM ingest_errors WHERE run_id = $run)""",
        {"run": run_id},
    ).fetchone()
    assert row is not None
    if row[0] != n_lines:
        faults.append(f"{n_lines} lines were read from the journal, {row[0]} are stored")
    return faults


def _check_bytes(
    journal: Path, place: Place, slices: list[tuple[int, int, str]]
) -> tuple[list[str], int]:
    """Read again what was ingested; give the faults and the number of lines."""
    faults = []
    size = journal.stat().st_size
    if size < place.bytes:
        faults.append(f"the journal has {size} bytes, {place.bytes} were read from it")
    elif place.bytes and tail_hash(journal, place.bytes) != place.sha_tail:
        faults.append(f"the journal does not match the hash noted at byte {place.bytes}")
    end = n_lines = 0
    with journal.open("rb") as file:
        for byte, length, sha256 in slices:
            if byte != end:
                faults.append(
                    f"what was read from the journal has a hole or overlap at byte {byte}"
                )
            file.seek(byte)
            raw = file.read(length)
            n_lines += raw.count(b"\n")
            end = byte + length
            if hashlib.sha256(raw).hexdigest() != sha256:
                faults.append(f"the journal was changed between bytes {byte} and {end}")
    if end != place.bytes:
        faults.append(f"the journal was read up to byte {end}, but the offset says {place.bytes}")
    return faults, n_lines


def _check_texts(con: DuckDBPyConnection, store: Store, run_id: str) -> list[str]:
    import duckdb

    paths = [str(path) for path in store.texts(run_id)]
    stored = "SELECT text_id FROM samples WHERE run_id = $run"
    params: dict[str, object] = {"run": run_id}
    if paths:
        stored += " EXCEPT SELECT text_id FROM read_parquet($paths)"
        params["paths"] = paths
    try:
        row = con.execute(f"SELECT count(*), min(text_id) FROM ({stored})", params).fetchone()
    except duckdb.Error as error:
        return [f"its text parts cannot be read: {str(error).splitlines()[0]}"]
    assert row is not None
    if row[0]:
        return [f"{row[0]} samples have no text (the first is text_id {row[1]})"]
    return []
