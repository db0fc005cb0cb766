"""Snapshots: read-only copies of the database for everyone who only reads.

No snapshot ever has another's name: a second connection to a path in one process gets the instance
that is already open, whatever lies at the path now.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.core.errors import StoreError
from harness.store.derive import refresh
from harness.store.layout import Store
from harness.store.load import fsync
from harness.store.schema import check_version, connect, migrations

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEEP = 3
GRACE_SECONDS = 60.0


class Current(msgspec.Struct):
    """What ``current.json`` says.

    Attributes
    ----------
    generation : str
        Zero-padded counter and short content hash.
    file : str
        Name of the snapshot beside it.
    source : str
        Fingerprint of the live file that it was made from.
    seconds : float
        How long making it took; the ingester paces itself by this.
    """

    generation: str
    file: str
    source: str
    seconds: float = 0.0


_open_snapshots: dict[Path, tuple[str, DuckDBPyConnection]] = {}
_mutex = threading.Lock()


def current(store: Store) -> Current | None:
    """Read which snapshot is the newest; None when there is none yet."""
    try:
        return msgspec.json.decode(store.current_file.read_bytes(), type=Current)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise StoreError(
            f"{store.current_file} cannot be read: {error}; remove it and run `harness store sync`"
        ) from error


def publish(store: Store) -> str | None:
    """Publish the live database if it changed; its lock must be held and the file closed.

    Returns
    -------
    str or None
        The new generation; None when nothing has changed since the last one.
    """
    if not store.database.exists():
        return None
    started = time.monotonic()
    left = store.database.with_name("store.duckdb.wal").exists()
    with connect(store.database) as con:
        if refresh(con) or left:
            # A close that finds the disk full does not say so, and a killed ingester leaves a log:
            # asked for by name, folding it into the file succeeds or raises.
            con.execute("CHECKPOINT")
    before, source = current(store), _fingerprint(store.database)
    if before and before.source == source and (store.published / before.file).exists():
        return None
    store.published.mkdir(exist_ok=True)
    new = store.published / "new.tmp"
    shutil.copyfile(store.database, new)
    with new.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    number = int(before.generation.split("-")[0]) + 1 if before else 1
    generation = f"{number:08d}-{digest[:8]}"
    name = f"results-{generation}.duckdb"
    fsync(new)
    new.rename(store.published / name)
    _point_to(store, Current(generation, name, source, time.monotonic() - started))
    _delete_old(store)
    return generation


def snapshot(store: Store) -> DuckDBPyConnection:
    """Connect to the newest snapshot, read-only.

    Each call gives a connection of its own (close it or let it go), all of them over one opened
    database a generation; a connection goes on showing its generation when a newer one appears.

    Raises
    ------
    StoreError
        When nothing was published yet, or a newer or older package wrote it.
    """
    import duckdb

    for last_try in (False, True):
        now = current(store)
        if now is None:
            break
        path = store.published / now.file
        with _mutex:
            generation, con = _open_snapshots.get(store.root.resolve(), ("", None))
            if generation == now.generation and con is not None:
                return con.cursor()
            try:
                con = duckdb.connect(str(path), read_only=True, config={"threads": 2})
            except duckdb.IOException as error:
                if last_try:
                    raise StoreError(f"cannot open snapshot {path}: {error}") from error
                continue  # replaced and removed since current.json was read
            if (version := check_version(con)) < max(migrations()):
                raise StoreError(
                    f"snapshot {path} has schema version {version}, this package reads "
                    f"{max(migrations())}; run `harness store sync` to bring the store up to date"
                )
            # The older instance closes by itself when its last connection is gone.
            _open_snapshots[store.root.resolve()] = (now.generation, con)
            return con.cursor()
    raise StoreError(
        f"store {store.root} has no published results yet; run something, or `harness store sync`"
    )


def _fingerprint(database: Path) -> str:
    stat = database.stat()
    return f"{stat.st_ino}-{stat.st_size}-{stat.st_mtime_ns}"


def _point_to(store: Store, now: Current) -> None:
    new = store.current_file.with_suffix(".tmp")
    new.write_bytes(msgspec.json.encode(now))
    fsync(new)
    new.rename(store.current_file)
    fsync(store.published)


def _delete_old(store: Store) -> None:
    """Keep the last generations, and any whose successor is too young: somebody may be opening it."""
    files = sorted(store.published.glob("results-*.duckdb"))
    for old, successor in pairwise(files[: 1 - KEEP]):
        if time.time() - successor.stat().st_mtime > GRACE_SECONDS:
            old.unlink()
            old.with_name(old.name + ".wal").unlink(missing_ok=True)
