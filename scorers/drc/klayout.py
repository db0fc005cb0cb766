"""Running a deck in KLayout: one process for all layouts of a task, in a box.

The deck runs inside our driver's process, so nothing that the driver says is believed: a layout passed
when the parent finds a fresh report of it under a name that the deck could not know before.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from harness.core.errors import HarnessError
from harness.sandbox import LIMITS, Driver, Isolation, Job, JobResult, reach, run
from scorers.drc.report import BadReportError, read_report
from scorers.drc.results import DeckRun, LayoutRun, LayoutStatus

INSTALL = "apt-get install klayout"
START_S, LAYOUT_S, WALL_S = 20.0, 1.0, 10.0
"""Seconds of a deck: 20 + 1 a layout in all, 10 for one layout (own; upstream gives 120 for each)."""
AUDITED = 3
_LIMITS = msgspec.structs.replace(LIMITS["engine"], wall_s=WALL_S, file_mib=32, output_kib=64)
_DRIVER = Path(__file__).with_name("driver.rb")
_COMMAND = ("klayout", "-b", "-r", "/box/driver.rb")
_TRIES = 3
_CACHED = 128
_ENDED: dict[str, LayoutStatus] = {
    "timeout": "timeout", "memory": "crash", "crash": "crash", "output_limit": "error",
    "denied": "error", "error": "error",
}  # fmt: skip


@cache
def klayout_version() -> str:
    """Ask the program for its version, ``KLayout 0.28.5``.

    Raises
    ------
    HarnessError
        It is not there, with the command that brings it.
    """
    found = run(["klayout", "-v"], limits=_LIMITS)
    if found.status != "ok" or not found.stdout.text.strip():
        raise HarnessError(f"klayout is missing: {INSTALL}")
    return found.stdout.text.strip()


class KlayoutEngine:
    """KLayout in boxes; safe to use from several threads.

    Parameters
    ----------
    sandbox : str or Isolation
        The level of isolation asked for.
    """

    name = "klayout"

    def __init__(self, sandbox: str | Isolation = "auto") -> None:
        self.isolation = sandbox if isinstance(sandbox, Isolation) else reach(sandbox)
        self._done: dict[str, DeckRun] = {}
        self._drivers: set[Driver] = set()
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """What the program says of itself."""
        return klayout_version()

    def run(self, deck: str, layouts: Sequence[bytes], *, key: str, audit: bool = True) -> DeckRun:
        """Run a deck on layouts.

        Parameters
        ----------
        deck : str
            Ruby; a model's.
        layouts : sequence of bytes
            GDS files.
        key : str
            The item: by it the layouts are put in an order that says nothing.
        audit : bool
            Run three of them in fresh processes as well; another result there shows a deck whose
            verdict depends on what it saw before.

        Raises
        ------
        RuntimeError
            The sandbox failed, several times.
        HarnessError
            KLayout is not there.
        """
        deck = deck.replace("\r\n", "\n")
        parts = [deck, self.version, key, audit, msgspec.to_builtins(_LIMITS)]
        digest = hashlib.sha256(msgspec.json.encode(parts))
        for layout in layouts:
            digest.update(hashlib.sha256(layout).digest())
        known = self._done.get(digest.hexdigest())
        if known is not None:
            return known
        done = self._run(deck, layouts, key, audit)
        with self._lock:
            self._done[digest.hexdigest()] = done
            if len(self._done) > _CACHED:
                del self._done[next(iter(self._done))]
        return done

    def close(self) -> None:
        """End what runs, from any thread."""
        with self._lock:
            drivers = list(self._drivers)
        for driver in drivers:
            driver.close()

    def _run(self, deck: str, layouts: Sequence[bytes], key: str, audit: bool) -> DeckRun:
        began = time.monotonic()
        order = list(range(len(layouts)))
        Random(hashlib.sha256(key.encode()).digest()).shuffle(order)
        apart = order[-AUDITED:] if audit and len(order) > 1 else []
        for _ in range(_TRIES):
            jobs = [_job(layouts[i], fork=k < len(apart)) for k, i in enumerate([*apart, *order])]
            results, starts = self._drive(deck, jobs)
            if all(result.status != "harness" for result in results):
                break
        else:
            why = next(r.reason for r in results if r.status == "harness")
            raise RuntimeError(f"klayout could not be run: {why}")
        runs = [
            _layout_run(i, job, result)
            for i, job, result in zip([*apart, *order], jobs, results, strict=True)
        ]
        alone, together = runs[: len(apart)], runs[len(apart) :]
        together.sort(key=lambda run: run.index)
        return DeckRun(
            runs=tuple(together),
            engine="klayout",
            version=self.version,
            stateful=any(_differ(one, together[one.index]) for one in alone),
            starts=starts,
            seconds=round(time.monotonic() - began, 3),
            isolation=msgspec.to_builtins(self.isolation),
        )

    def _drive(self, deck: str, jobs: Sequence[Job]) -> tuple[list[JobResult], int]:
        budget = START_S + LAYOUT_S * len(jobs)
        limits = msgspec.structs.replace(_LIMITS, cpu_s=budget + START_S)
        files: dict[str, bytes | Path] = {"driver.rb": _DRIVER, "deck.drc": deck.encode()}
        with Driver(_COMMAND, limits, files=files, level=self.isolation) as driver:
            with self._lock:
                self._drivers.add(driver)
            try:
                return driver.run(jobs, budget_s=budget), driver.starts
            finally:
                with self._lock:
                    self._drivers.discard(driver)


def _job(layout: bytes, *, fork: bool) -> Job:
    # A deck that could guess the name of a later report could write it ahead of time.
    name = f"{secrets.token_hex(16)}.lyrdb"
    told = {"gds": base64.b64encode(layout).decode(), "report": f"/box/{name}", "fork": fork}
    return Job(told, (name,))


def _layout_run(index: int, job: Job, result: JobResult) -> LayoutRun:
    """Say what a layout came to, from the report; what the driver says can only make it fail."""
    seconds = round(result.wall_s, 4)

    def failed(status: LayoutStatus, message: str) -> LayoutRun:
        return LayoutRun(index=index, status=status, message=message[:500], seconds=seconds)

    if result.status != "ok":
        told = f"{result.error.name}: {result.error.message}" if result.error else result.reason
        return failed(_ENDED.get(result.status, "error"), told or result.status)
    said: Any = result.value if isinstance(result.value, dict) else {}
    if said.get("status") == "crash":
        return failed("crash", "the process ended")
    if said.get("status") != "ok":
        return failed("error", f"{said.get('class', 'error')}: {said.get('message', '')}")
    (name,) = job.collect
    if name not in result.files:
        return failed("no_report", result.refused.get(name, "no report was written"))
    try:
        counts, markers = read_report(result.files[name])
    except BadReportError as error:
        return failed("bad_report", str(error))
    return LayoutRun(index=index, status="ok", counts=counts, seconds=seconds, markers=markers)


def _differ(alone: LayoutRun, together: LayoutRun) -> bool:
    """Tell whether a layout's result depends on what ran before; a slow machine is no difference."""
    if "timeout" in (alone.status, together.status):
        return False

    def bits(run: LayoutRun) -> tuple[str, dict[str, int]]:
        return run.status, {name: n for name, n in run.counts.items() if n}

    return bits(alone) != bits(together)
