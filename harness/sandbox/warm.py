"""Workers that are started before they are needed."""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.core.errors import HarnessError
from harness.sandbox.closing import Closing
from harness.sandbox.levels import reach
from harness.sandbox.limits import Limits
from harness.sandbox.worker import Worker


class WarmWorkers(Closing):
    """Keeps workers ready; each is given out once and never comes back.

    A worker that one attempt has used could carry something over to the next one, so whoever takes
    a worker closes it, and another is started in its place.

    Parameters
    ----------
    n : int
        How many wait at a time; at most one for each core, because more would only slow each
        other down.
    limits : Limits
        Of each worker.
    **worker
        As of `Worker`.

    Raises
    ------
    SandboxUnavailable
        The level cannot be had.
    """

    def __init__(self, n: int, limits: Limits, **worker: Any) -> None:
        self.n = max(0, min(n, os.cpu_count() or 1))
        self._limits = limits
        self._how = {**worker, "level": reach(worker.get("level", "auto"))}
        self._lock = threading.Lock()
        self._waiting: deque[Worker] = deque()
        self._coming = 0
        self._closed = False
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="sandbox-warm")
        self._fill()

    def take(self) -> Worker:
        """Give a worker that nobody has used; its taker closes it.

        Raises
        ------
        SandboxUnavailable
            None waits and none can be started.
        HarnessError
            The pool is closed.
        """
        taken = None
        dead: list[Worker] = []
        with self._lock:
            if self._closed:
                raise HarnessError("the pool of sandbox workers is closed")
            while self._waiting and taken is None:
                first = self._waiting.popleft()
                if first.alive:
                    taken = first
                else:
                    dead.append(first)
        for worker in dead:
            worker.close()
        self._fill()
        return taken or Worker(self._limits, **self._how)

    def wait_full(self) -> int:
        """Wait until as many are ready as it keeps, or cannot be had; give how many wait."""
        self._starter.submit(int).result()
        with self._lock:
            waiting = list(self._waiting)
        return sum(worker.wait_ready() is None for worker in waiting)

    def close(self) -> None:
        """End those that wait; what was taken is its taker's."""
        with self._lock:
            self._closed = True
        self._starter.shutdown(cancel_futures=True)
        with self._lock:
            left, self._waiting = list(self._waiting), deque()
        for worker in left:
            worker.close()

    def _fill(self) -> None:
        with self._lock:
            while not self._closed and len(self._waiting) + self._coming < self.n:
                self._coming += 1
                self._starter.submit(self._add)

    def _add(self) -> None:
        worker = None
        try:
            worker = Worker(self._limits, **self._how)
        except HarnessError:
            pass  # whoever takes one next is told, by his own attempt to start it
        finally:
            with self._lock:
                self._coming -= 1
                keep = worker is not None and not self._closed
                if keep and worker is not None:
                    self._waiting.append(worker)
        if worker is not None and not keep:
            worker.close()
