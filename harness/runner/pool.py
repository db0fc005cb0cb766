"""Calls that wait for a server, side by side: threads that nobody has to wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class Calls(Generic[A, R]):
    """Up to `limit` calls under way at once.

    A `ThreadPoolExecutor` is joined when the interpreter ends, so one request that hangs would keep
    a stopped run alive until it times out. These threads are daemons: stopping waits for nobody.

    Parameters
    ----------
    call : callable
        What is called in a thread; it must not touch what the main thread uses.
    limit : int
        Most calls at once; threads are made as they are needed. Further ones wait their turn.

    Examples
    --------
    >>> calls = Calls(lambda x: x * x, limit=2)
    >>> calls.start(3)
    >>> [(argument, future.result()) for argument, future in calls.ended()]
    [(3, 9)]
    >>> calls.stop()
    """

    def __init__(self, call: Callable[[A], R], limit: int) -> None:
        self._call = call
        self.limit = limit
        self._work: SimpleQueue[tuple[Future[R], A] | None] = SimpleQueue()
        self._under_way: dict[Future[R], A] = {}
        self._n_threads = 0

    @property
    def free(self) -> int:
        """How many more may be started."""
        return self.limit - len(self._under_way)

    @property
    def n_under_way(self) -> int:
        """How many are started and not yet handed back."""
        return len(self._under_way)

    @property
    def under_way(self) -> Iterable[Future[R]]:
        """The calls that are started and not yet handed back."""
        return self._under_way

    @property
    def arguments(self) -> list[A]:
        """What the calls that are not yet handed back were started with."""
        return list(self._under_way.values())

    def start(self, argument: A) -> None:
        """Start a call, or let it wait for a thread."""
        future: Future[R] = Future()
        self._under_way[future] = argument
        self._work.put((future, argument))
        if self._n_threads < min(self.limit, len(self._under_way)):
            self._n_threads += 1
            threading.Thread(target=self._serve, name="harness-call", daemon=True).start()

    def ended(self, *, block: bool = True) -> Iterator[tuple[A, Future[R]]]:
        """Wait until at least one call has ended (unless told not to); give each that has, once."""
        done = (
            wait(self._under_way, return_when=FIRST_COMPLETED).done
            if block
            else {future for future in self._under_way if future.done()}
        )
        for future in [f for f in self._under_way if f in done]:  # in the order of starting
            yield self._under_way.pop(future), future

    def drop(self, timeout: float) -> None:
        """Forget the calls that have not begun, and give the others so many seconds to end."""
        with suppress(Empty):
            while True:
                work = self._work.get_nowait()
                if work is not None:
                    del self._under_way[work[0]]
        wait(self._under_way, timeout)

    def stop(self) -> None:
        """Let the threads go; those that hang in a call end with the process at the latest."""
        for _ in range(self._n_threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            future, argument = work
            try:
                future.set_result(self._call(argument))
            except BaseException as error:  # noqa: BLE001  raised again in the main thread
                future.set_exception(error)
            # A thread that waits for work must not keep the last request and answer alive.
            del work, future, argument


def wait_for_one(*pools: Calls[Any, Any] | None) -> None:
    """Wait until a call of any of the pools has ended; None stands for a pool that is not there."""
    under_way = [future for pool in pools if pool is not None for future in pool.under_way]
    wait(under_way, return_when=FIRST_COMPLETED)
