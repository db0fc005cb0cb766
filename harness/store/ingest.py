"""The ingester: whoever holds the store's lock moves all journals into the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from harness.core.errors import StoreError
from harness.store import publish as publishing
from harness.store.layout import Store
from harness.store.load import Loader, Place
from harness.store.lock import locked
from harness.store.packing import unpack_to
from harness.store.schema import connect

# Every look makes a transaction, a text part and a snapshot, so a slow run is looked at rarely and
# a fast one when a slice is full; live progress is read from journal tails, not from here.
PUBLISH_SECONDS = 30.0
LOOK_BYTES = 4 << 20


class SyncReport(Struct, kw_only=True):
    """What one `sync` did.

    Attributes
    ----------
    rows, scores : int
        Samples and scores added.
    runs : int
        Runs that something was added to.
    errors : int
        Lines that could not be read and went into quarantine.
    published : str or None
        The new generation, None when none was due.
    busy : bool
        Another process holds the lock and does the work.
    """

    rows: int = 0
    scores: int = 0
    runs: int = 0
    errors: int = 0
    published: str | None = None
    busy: bool = False


def sync(store: Store, wait: bool = False, publish: bool = True) -> SyncReport:
    """Move everything new from all journals into the database, then publish it.

    Parameters
    ----------
    store : Store
    wait : bool
        Wait while another process is at it; otherwise return at once.
    publish : bool
        Make a new snapshot for readers if anything changed.

    Raises
    ------
    StoreError
        When the database cannot be opened or the disk is full.
    """
    import duckdb

    with locked(store, wait) as held:
        if not held:
            return SyncReport(busy=True)
        try:
            report = _drain_all(store)
            if publish:
                report.published = publishing.publish(store)
        except (OSError, duckdb.Error) as error:
            raise StoreError(
                f"cannot write to store {store.root}: {str(error).splitlines()[0]}; the journals are "
                "whole: free some space, then run `harness store sync`"
            ) from error
        return report


def refresh(store: Store) -> None:
    """Bring the published results up to date where the store can be written.

    A store on read-only media is read as it is; whatever else is wrong shows when it is read.
    """
    with suppress(StoreError, OSError):
        sync(store)


def _drain_all(store: Store) -> SyncReport:
    report = SyncReport()
    with connect(store.database) as con:
        loader = Loader(con, store)
        places = loader.places()
        for run_id in store.run_ids():
            place = places.get(run_id) or Place()
            if not _has_news(store, run_id, place):
                continue
            turns = 0
            with written_journal(store, run_id) as journal:
                for turn in loader.drain(run_id, journal, place):
                    turns = 1
                    report.rows += turn.rows
                    report.scores += turn.scores
                    report.errors += turn.errors
            report.runs += turns
    return report


def _has_news(store: Store, run_id: str, place: Place) -> bool:
    if place.suspect is not None:
        return False
    try:
        return store.journal(run_id).stat().st_size != place.bytes
    except FileNotFoundError:
        # Only wholly ingested journals are packed: one of an unknown run came from elsewhere.
        return place.bytes == 0


@contextmanager
def written_journal(store: Store, run_id: str) -> Iterator[Path]:
    """Give a run's journal as a JSONL file, unpacked for the while if it is packed."""
    path = store.journal(run_id)
    if path.exists():
        yield path
        return
    target = store.root / "unpacked.tmp"
    unpack_to(store.packed_journal(run_id), target)
    try:
        yield target
    finally:
        target.unlink()


class Ingester:
    """Ingests in the background of a run.

    Parameters
    ----------
    store : Store
    every : float
        Seconds between two looks at the journals.

    Attributes
    ----------
    error : Exception or None
        What went wrong at the last look; the run itself goes on, as its journal is whole.
    """

    def __init__(self, store: Store, every: float = 1.0) -> None:
        self.store = store
        self.every = every
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="ingester", daemon=True)
        self._sizes: dict[str, int] = {}
        self._published_at = time.monotonic()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def halt(self) -> None:
        """Stop the thread; what it has not looked at yet waits for a `sync`."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def stop(self) -> SyncReport:
        """Stop the thread, ingest what is left and publish it.

        Raises
        ------
        StoreError
            When what is left cannot be ingested; the journals are whole.
        """
        self.halt()
        return sync(self.store, wait=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _work(self) -> None:
        while not self._stop.wait(self.every):
            try:
                self._look()
                self.error = None
            except Exception as error:  # noqa: BLE001 - a background thread must not end in silence
                self.error = error

    def _look(self) -> None:
        sizes = {
            run_id: path.stat().st_size
            for run_id in self.store.run_ids()
            if (path := self.store.journal(run_id)).exists()
        }
        due = self._publish_due()
        grown = sum(size - self._sizes.get(run_id, 0) for run_id, size in sizes.items())
        if grown >= LOOK_BYTES or due:
            report = sync(self.store, publish=due)
            if not report.busy:
                self._sizes = sizes
                if due:
                    self._published_at = time.monotonic()

    def _publish_due(self) -> bool:
        """Publish every 30 s, and where publishing is slow at most a tenth of the time."""
        now = publishing.current(self.store)
        pause = max(PUBLISH_SECONDS, 10 * now.seconds if now else 0.0)
        return time.monotonic() - self._published_at >= pause
