"""One engine process, many jobs: what does not survive a job is started again for the rest.

The engine reads a line ``{"n": id, "job": …}`` from descriptor 3 and writes ``{"n": id, "value": …}``
to descriptor 4, or ``"error": {"name", "message", "trace"}`` in place of the value. Its first job is
``null``: it answers when it is ready.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.sandbox.channel import LONGEST_REPLY, shown
from harness.sandbox.closing import Closing
from harness.sandbox.engine import Engine
from harness.sandbox.jobs import JobResult, no_line
from harness.sandbox.levels import Isolation, reach
from harness.sandbox.limits import Limits


class Job(msgspec.Struct, frozen=True):
    """One piece of work.

    Attributes
    ----------
    job : Any
        What the engine is told, as JSON.
    collect : tuple of str
        Names of its results below ``/box``. A name of its own for each job, or the result of an
        earlier one may be taken for it.
    """

    job: Any
    collect: tuple[str, ...] = ()


class Driver(Closing):
    """Gives jobs to an engine one after the other.

    Parameters
    ----------
    command : sequence of str
        The engine with its driver script, which lies in `files`.
    limits : Limits
        ``wall_s`` is that of one job; ``cpu_s`` counts over a process's life.
    files, mounts, env, level
        As of `Box`; each process gets a new box.
    start_s : float
        Seconds until the engine must be ready.
    """

    def __init__(
        self,
        command: Sequence[str],
        limits: Limits,
        *,
        files: Mapping[str, bytes | Path] | None = None,
        mounts: Mapping[str, Path] | None = None,
        level: str | Isolation = "auto",
        env: Mapping[str, str] | None = None,
        start_s: float = 60.0,
    ) -> None:
        self.limits = limits
        self.isolation = level if isinstance(level, Isolation) else reach(level)
        self._engine = Engine(
            command, limits, {"job": None}, start_s=start_s, longest=LONGEST_REPLY, files=files,
            mounts=mounts, env=env, level=self.isolation,
        )  # fmt: skip

    @property
    def starts(self) -> int:
        """How many processes were started so far."""
        return self._engine.starts

    def run(
        self, jobs: Sequence[Job], *, wall_s: float | None = None, budget_s: float | None = None
    ) -> list[JobResult]:
        """Do the jobs in order.

        Parameters
        ----------
        jobs : sequence of Job
            The work.
        wall_s : float, optional
            Seconds for one job; ``limits.wall_s`` by default.
        budget_s : float, optional
            Seconds for all of them, starts included; what has not begun by then is a ``"timeout"``
            with reason ``"budget"``.

        Returns
        -------
        list of JobResult
            One for each job: of one that hung or killed the engine its status, and of those after
            it what a new process says.

        Raises
        ------
        UsageError
            A file's name or a path that no box can have.
        """
        deadline = None if budget_s is None else time.monotonic() + budget_s
        wall = self.limits.wall_s if wall_s is None else wall_s
        with self._engine.lock:
            return [self._run(job, wall, deadline) for job in jobs]

    def close(self) -> None:
        """End the engine, from any thread; a job under way returns."""
        self._engine.close()

    def _run(self, job: Job, wall_s: float, deadline: float | None) -> JobResult:
        over = JobResult(status="timeout", reason="budget")
        if deadline is not None and time.monotonic() >= deadline:
            return over
        channel = self._engine.ready()
        if isinstance(channel, JobResult):
            return channel
        if deadline is not None:
            wall_s = min(wall_s, deadline - time.monotonic())
            if wall_s <= 0:
                return over
        answer = channel.ask({"job": job.job}, wall_s)
        if self._engine.closed and answer.line is None:
            return JobResult(status="harness", reason="closed")
        files, refused = channel.box.collect(job.collect)
        if answer.line is None:
            return msgspec.structs.replace(no_line(answer), files=files, refused=refused)
        error = shown(answer.line.error)
        failed = answer.status == "ok" and error is not None
        return JobResult(
            status="error" if failed else answer.status,
            reason=answer.reason,
            value=answer.line.value,
            error=error,
            stdout=answer.stdout,
            stderr=answer.stderr,
            files=files,
            refused=refused,
            wall_s=answer.wall_s,
        )
