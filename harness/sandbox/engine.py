"""An engine process in a box that is started when it is needed and again after it died."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from harness.sandbox.channel import Answer, Channel
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.jobs import JobResult, not_started
from harness.sandbox.limits import Limits
from harness.sandbox.worker import open_channel

_TRIES = 2


class Engine:
    """Holds the one living process of a pool or a driver; its owner asks it under `lock`.

    Parameters
    ----------
    command : sequence of str
        The program; it answers a first request, `greeting`, when it is ready.
    limits : Limits
        Of the box, which is a new one for each process.
    greeting : mapping
        The first request.
    start_s : float
        Seconds until it must be ready.
    longest : int
        Bytes of one reply line.
    **box
        As of `Box`.
    """

    def __init__(
        self,
        command: Sequence[str],
        limits: Limits,
        greeting: Mapping[str, Any],
        *,
        start_s: float,
        longest: int,
        **box: Any,
    ) -> None:
        self.lock = threading.Lock()
        self.closed = False
        self.starts = 0
        self._command = command
        self._limits = limits
        self._greeting = greeting
        self._start_s = start_s
        self._longest = longest
        self._box = box
        self._channel: Channel | None = None
        self._changing = threading.Lock()  # between a start and `close` of another thread

    def ready(self) -> Channel | JobResult:
        """Give a living process, started now if need be, or why there is none.

        One that dies before it is ready was no victim of a job, and is started a second time.
        """
        channel = self._channel
        # What a job says after its reply, or a death between two jobs, is not the next one's fault.
        if channel is not None and channel.alive and not self.closed and channel.early() is None:
            return channel
        answer: Answer | None = None
        for _ in range(_TRIES):
            try:
                channel = self._start()
            except SandboxUnavailable as error:
                return JobResult(status="harness", reason=str(error))
            if channel is None:
                return JobResult(status="harness", reason="closed")
            answer = channel.ask(self._greeting, self._start_s)
            if answer.line is not None and answer.line.error is None:
                return channel
            self.end()
            if self.closed or answer.line is not None:
                break
        assert answer is not None
        return JobResult(status="harness", reason="closed") if self.closed else not_started(answer)

    def end(self) -> None:
        """End the process and take its box away; the next job gets a new one."""
        with self._changing:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def close(self) -> None:
        """End it for good, from any thread; a job under way returns."""
        self.closed = True
        with self._changing:
            if self._channel is not None:
                self._channel.kill()
        with self.lock:
            self.end()

    def _start(self) -> Channel | None:
        self.end()
        with self._changing:
            if self.closed:
                return None
            self._channel = open_channel(
                self._command, self._limits, longest=self._longest, **self._box
            )
            self.starts += 1
            return self._channel
