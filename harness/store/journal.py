"""The append-only journal of one run: the truth while the run works.

A line is one record as strict JSON. A record is written with one `write`, so that after `kill -9`
at most the last line is torn; readers stop at the last newline and never see it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.core.errors import StoreError
from harness.core.records import Record, RunStarted, SampleRecord, decoder, encoder
from harness.store.layout import Store
from harness.store.packing import packed_lines, packed_path, unpack_journal
from harness.store.redact import Redactor, cut_texts

SYNC_RECORDS = 20
SYNC_SECONDS = 1.0


class Journal:
    """Writes the records of one run; safe to use from several threads.

    Opening takes the run's lock, unpacks a packed journal, moves a torn last line to
    ``quarantine.jsonl`` and goes on counting `seq` where the file ends.

    Parameters
    ----------
    path : Path
        The journal file, ``runs/<run_id>/journal.jsonl``; its folder is made if need be.
    run_id : str
        The run.

    Raises
    ------
    StoreError
        When another process is writing this run, or the file cannot be written.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._redactor = Redactor()
        self._mutex = threading.Lock()
        self._second = -1
        self._prefix = ""
        self._unsynced = 0
        try:
            self._fd = _open_locked(path, run_id)
        except OSError as error:
            raise _cannot_write(path, error) from error
        try:
            self._length = os.fstat(self._fd).st_size
            self._cut_torn_tail()
            self.seq = _count_lines(self._fd)
        except OSError as error:
            os.close(self._fd)
            raise _cannot_write(path, error) from error
        self._synced_at = time.monotonic()

    def append(self, record: Record) -> int:
        """Write one record; when this returns, `kill -9` cannot lose it.

        Parameters
        ----------
        record : Record
            Its `seq` and `ts` are set here, whatever they were.

        Returns
        -------
        int
            The record's `seq`.

        Raises
        ------
        StoreError
            When the disk is full or fails; the journal then ends with the last whole record.
        """
        with self._mutex:
            record.seq = self.seq
            record.ts = self._now()
            if type(record) is SampleRecord:
                cut_texts(record)
            try:
                line = encoder.encode(record)
                if self._redactor.hits(line):
                    line = self._redactor.encode(record)
            except UnicodeEncodeError:
                line = self._redactor.encode(record)
            self._write(line + b"\n")
            self.seq += 1
            self._unsynced += 1
            if self._unsynced >= SYNC_RECORDS or time.monotonic() - self._synced_at >= SYNC_SECONDS:
                self._sync()
            return record.seq

    def flush(self) -> None:
        """Make everything written so far survive a power cut."""
        with self._mutex:
            self._sync()

    def close(self) -> None:
        """Flush and let go of the run's lock; closing twice is fine."""
        with self._mutex:
            if self._fd < 0:
                return
            try:
                self._sync()
            finally:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _now(self) -> str:
        second, rest = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._prefix}.{rest // 1000:06d}Z"

    def _write(self, line: bytes) -> None:
        if self._fd < 0:
            raise StoreError(f"journal {self.path} is closed")
        try:
            done = os.write(self._fd, line)
            while done < len(line):
                done += os.write(self._fd, line[done:])
        except OSError as error:
            # Half a line must not stay: the next record would be glued to it.
            os.ftruncate(self._fd, self._length)
            raise _cannot_write(self.path, error) from error
        self._length += done

    def _sync(self) -> None:
        if self._unsynced and self._fd >= 0:
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                raise _cannot_write(self.path, error) from error
            self._unsynced = 0
        self._synced_at = time.monotonic()

    def _cut_torn_tail(self) -> None:
        with _mapped(self._fd) as raw:
            end = raw.rfind(b"\n") + 1
            torn = raw[end:]
        if torn:
            quarantine(self.path.parent, [(end, "torn by a crash", torn)])
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)
            self._length = end


def read_records(path: Path) -> Iterator[Record]:
    """Read the whole lines of a journal, written or packed.

    A torn last line is not passed on; lines that cannot be read are left out (the ingester puts
    them into quarantine and reports them).

    Parameters
    ----------
    path : Path
        ``journal.jsonl``; where it was packed, ``journal.parquet`` beside it is read.

    Yields
    ------
    Record
    """
    for line in journal_lines(path):
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError:
            continue


def started(store: Store, run_id: str) -> RunStarted:
    """Read the plan of a run from its journal.

    Raises
    ------
    StoreError
        When the run ended before its plan was written.
    """
    for record in read_records(store.journal(run_id)):
        if isinstance(record, RunStarted):
            return record
    raise StoreError(f"run {run_id} has no plan in its journal")


def journal_lines(path: Path) -> Iterator[bytes]:
    """Read the whole lines of a journal, written or packed, without their newlines."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        if packed_path(path).exists():
            yield from packed_lines(packed_path(path))
        return
    with file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def tail(path: Path, offset: int) -> tuple[list[Record], int]:
    """Read what was written to a journal since the last look.

    Parameters
    ----------
    path : Path
        ``journal.jsonl``.
    offset : int
        Where the last look ended, in bytes; 0 at first.

    Returns
    -------
    records : list of Record
    offset : int
        Where to go on; a torn last line lies behind it.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            raw = file.read()
    except FileNotFoundError:
        return [], offset
    end = raw.rfind(b"\n") + 1
    records = []
    for line in raw[:end].splitlines():
        try:
            records.append(decoder.decode(line))
        except msgspec.DecodeError:
            continue
    return records, offset + end


def quarantine(folder: Path, lines: list[tuple[int, str, bytes]]) -> None:
    """Keep lines that cannot be ingested, each once.

    Parameters
    ----------
    folder : Path
        The run's folder.
    lines : list of (int, str, bytes)
        Byte offset in the journal, reason, the line itself.
    """
    path = folder / "quarantine.jsonl"
    # A crash between this and the commit of the offsets brings the same lines again.
    known = set(path.read_bytes().splitlines()) if path.exists() else set()
    with path.open("ab") as file:
        for byte, reason, line in lines:
            text = line.decode("utf-8", "backslashreplace")
            entry = msgspec.json.encode({"byte": byte, "reason": reason, "line": text})
            if entry not in known:
                file.write(entry + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _open_locked(path: Path, run_id: str) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        if not path.exists() and packed_path(path).exists():
            unpack_journal(path)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StoreError(f"run {run_id} is being written by another process") from error
        # Packing may have removed the file between opening and locking it.
        try:
            if os.path.samestat(os.fstat(fd), path.stat()):
                break
        except FileNotFoundError:
            pass
        os.close(fd)
    # Without the folder's own sync the new file's name may not survive a power cut.
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return fd


@contextmanager
def _mapped(fd: int) -> Iterator[mmap.mmap | bytes]:
    """Look at a file without reading it whole into memory: only its last pages are touched."""
    if not os.fstat(fd).st_size:
        yield b""
        return
    with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as view:
        yield view


def _count_lines(fd: int) -> int:
    """Count lines: as every line had a number of its own, readable or not, this is the next one."""
    n_lines = offset = 0
    while chunk := os.pread(fd, 1 << 20, offset):
        n_lines += chunk.count(b"\n")
        offset += len(chunk)
    return n_lines


def _cannot_write(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write journal {path}: {error.strerror or error}; "
        "free some space or choose another store with --store DIR"
    )
