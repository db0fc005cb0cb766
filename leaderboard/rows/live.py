"""Runs that are not in the snapshot yet, read from the ends of their journals.

Journals are opened for reading only and never locked, so a run does not notice. Each look reads a
bounded piece, so that a page does not wait for a long journal: it catches up in a few looks.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from harness.core.records import (
    EventRecord,
    Record,
    RunFinished,
    RunStarted,
    SampleRecord,
    ScoreRecord,
    decoder,
)
from harness.core.status import effective_status, error_kind_of, is_open, value_counted
from harness.core.types import ErrorKind, Status
from harness.stats.intervals import estimate
from harness.store.layout import Store

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LOOK_BYTES = 16 << 20
"""Read at most so much at a look, over all runs together."""

FRESH_SECONDS = 15.0
"""A journal written so short ago is being written, whoever holds its lock."""

_RECENT = 200  # attempts that the speed is taken over
_LOCKS = Path("/proc/locks")

RunState = Literal["running", "stopped", "ended", "unknown"]


class LiveRun(Struct, frozen=True, kw_only=True):
    """A run as its journal says right now.

    Attributes
    ----------
    state : str
        ``running``: a process writes it; ``stopped``: none does, and its end was not written;
        ``ended``: done, and to be published; ``unknown``: it cannot be told here who writes it.
    n_planned, made : int
        Attempts planned; attempts at an item and repeat that are there.
    done : float
        `made` of `n_planned`.
    value, lo, hi : float or None
        Mean of what counts so far, with its 95 % interval (items by themselves).
    others : str
        Statuses other than scored, with their numbers.
    a_minute : float or None
        Attempts a minute, over the last ones.
    minutes_left : float or None
        At that speed.
    last : datetime or None
        When the last record was written, UTC.
    read : float
        Share of the journal read so far.
    """

    run_id: str
    task: str
    model: str
    is_baseline: bool
    state: RunState
    n_planned: int
    made: int
    done: float
    n_scored: int
    n_counted: int
    value: float | None
    lo: float | None
    hi: float | None
    others: str
    a_minute: float | None
    minutes_left: float | None
    started: datetime | None
    last: datetime | None
    read: float


class Ingested(Struct, frozen=True):
    """How much of a run's journal the snapshot holds, and if it saw the run's end."""

    bytes: int
    finished: bool


def ingested(con: DuckDBPyConnection) -> dict[str, Ingested]:
    """Say for each run of a snapshot how far it was read."""
    rows = con.execute(
        "SELECT o.run_id, o.bytes, r.finished IS NOT NULL FROM ingest_offsets o "
        "LEFT JOIN runs r USING (run_id)"
    ).fetchall()
    return {run_id: Ingested(n_bytes, finished) for run_id, n_bytes, finished in rows}


class Tails:
    """The journals of a store's unfinished runs; remembers where the last look ended.

    Safe to use from several threads.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mutex = threading.Lock()
        self._runs: dict[str, _Tail] = {}

    def look(self, known: dict[str, Ingested]) -> list[LiveRun]:
        """Read what is new and give the runs that the snapshot does not show whole, newest first.

        Parameters
        ----------
        known : dict of str to Ingested
            What the snapshot holds.
        """
        with self._mutex:
            sizes = self._sizes(known)
            self._runs = {
                run_id: self._runs.get(run_id) or _Tail(self._store.journal(run_id), run_id)
                for run_id in sorted(sizes, reverse=True)
            }
            left = LOOK_BYTES
            for tail in self._runs.values():
                left -= tail.read(left)
            writers = _locked_inodes()
            return [
                tail.live(writers, sizes[run_id])
                for run_id, tail in self._runs.items()
                if tail.started is not None
            ]

    def _sizes(self, known: dict[str, Ingested]) -> dict[str, int]:
        sizes = {}
        for run_id in self._store.run_ids():
            try:
                size = self._store.journal(run_id).stat().st_size
            except FileNotFoundError:
                continue  # packed: it was ingested whole
            there = known.get(run_id)
            if there is None or not there.finished or there.bytes != size:
                sizes[run_id] = size
        return sizes


class _Tail:
    """What was read of one journal."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self.offset = 0
        self.started: RunStarted | None = None
        self.ended = False
        self.last = ""
        self.began = ""
        self.samples: dict[tuple[str, int], tuple[int, Status, ErrorKind | None]] = {}
        self.verdicts: dict[tuple[str, int, int], tuple[Status, float | None, str | None]] = {}
        self.recent: deque[str] = deque(maxlen=_RECENT)

    def read(self, most: int) -> int:
        """Read whole lines, at most so many bytes unless one line is longer; give how many."""
        begun = self.offset
        while most > 0:
            try:
                with self.path.open("rb") as file:
                    file.seek(self.offset)
                    raw = file.read(most)
            except FileNotFoundError:
                break
            end = raw.rfind(b"\n") + 1
            for line in raw[:end].splitlines():
                try:
                    self._take(decoder.decode(line))
                except msgspec.DecodeError:
                    continue  # the ingester puts such lines aside and reports them
            self.offset += end
            if end or len(raw) < most:
                break
            most *= 2
        return self.offset - begun

    def _take(self, record: Record) -> None:
        self.last = record.ts
        if isinstance(record, RunStarted):
            self.started, self.began = record, record.ts
            record.items = []  # not needed here, and most of it
        elif isinstance(record, SampleRecord):
            place = (record.item_id, record.epoch)
            self.samples[place] = (record.attempt, record.status, record.error_kind)
            if record.reused_from is None:
                self.recent.append(record.ts)
        elif isinstance(record, ScoreRecord):
            if self.started is not None and record.metric == self.started.metric:
                place3 = (record.item_id, record.epoch, record.attempt)
                self.verdicts[place3] = (record.status, record.value, record.reason)
        elif isinstance(record, RunFinished):
            self.ended = True
        elif isinstance(record, EventRecord) and record.kind == "resumed":
            self.ended = False

    def live(self, writers: set[int] | None, size: int) -> LiveRun:
        """Sum up what was read."""
        run = self.started
        assert run is not None
        counts: Counter[str] = Counter()
        means: dict[str, list[float]] = {}
        for (item_id, epoch), (attempt, solved, solve_kind) in self.samples.items():
            scored, value, reason = self.verdicts.get((item_id, epoch, attempt), (None, None, None))
            status = effective_status(solved, scored)
            by_score = solved == "unscored" and status == "error"
            kind = error_kind_of(reason) if by_score else solve_kind
            counts["fault" if status == "error" and is_open(status, kind) else status] += 1
            counted = value_counted(status, kind, value, run.errors)
            if counted is not None:
                means.setdefault(item_id, []).append(counted)
        # The mean of items that were chosen by the answers is no score.
        chose = bool(run.config.get("adaptive"))
        mean = estimate([] if chose else [sum(values) / len(values) for values in means.values()])
        state = self._state(writers)
        speed = self._speed() if state in ("running", "unknown") else None
        made = len(self.samples)
        return LiveRun(
            run_id=self.run_id, task=run.task, model=run.model, is_baseline=run.is_baseline,
            state=state, n_planned=run.n_planned, made=made,
            done=made / run.n_planned if run.n_planned else 1.0, n_scored=counts.pop("scored", 0),
            n_counted=sum(map(len, means.values())), value=mean.value, lo=mean.lo, hi=mean.hi,
            others=", ".join(f"{name} {n}" for name, n in sorted(counts.items())),
            a_minute=speed, minutes_left=(run.n_planned - made) / speed if speed else None,
            started=_time(self.began), last=_time(self.last),
            read=min(1.0, self.offset / size) if size else 1.0,
        )  # fmt: skip

    def _speed(self) -> float | None:
        """Attempts a minute."""
        first, last = (_time(self.recent[i]) for i in (0, -1)) if self.recent else (None, None)
        if first is None or last is None or last <= first:
            return None
        return 60 * (len(self.recent) - 1) / (last - first).total_seconds()

    def _state(self, writers: set[int] | None) -> RunState:
        if self.ended:
            return "ended"
        if writers is None:
            return "unknown"
        try:
            written = self.path.stat()
        except FileNotFoundError:
            return "ended"
        # A process in another container holds its lock out of our sight.
        fresh = time.time() - written.st_mtime < FRESH_SECONDS
        return "running" if fresh or written.st_ino in writers else "stopped"


def _locked_inodes() -> set[int] | None:
    """List the files that a process holds a lock on; None where the system does not tell.

    Read, not tried: trying a lock would stand in the way of a run that wants it just then.
    """
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # 1: FLOCK ADVISORY WRITE pid major:minor:inode start end; one that waits has "->" behind "1:".
    return {int(inode) for inode in re.findall(r" FLOCK .*? \w+:\w+:(\d+) ", "\n".join(lines))}


def _time(text: str) -> datetime | None:
    if not text:
        return None
    return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
