"""The store as the site sees it: the newest snapshot, and answers kept as long as it is the newest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from msgspec import Struct

from harness.core.errors import StoreError
from harness.store.layout import Store
from harness.store.publish import current, snapshot
from leaderboard.rows.live import Tails

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_ANSWERS = 128
"""Answers kept at a time, the ones used last."""

P = ParamSpec("P")
T = TypeVar("T")


class State(Struct, frozen=True):
    """Whether there is anything to show, and what to do where there is not.

    Attributes
    ----------
    kind : str
        ``ready``; ``missing`` (no store), ``empty`` (a store without runs), ``waiting`` (runs, but
        nothing published yet) or ``unreadable`` (a broken snapshot, or another version's).
    what : str
        One sentence; empty when ready.
    command : str
        What to run; empty where nothing helps but waiting or upgrading, which `what` then says.
    """

    kind: Literal["ready", "missing", "empty", "waiting", "unreadable"]
    what: str = ""
    command: str = ""


class Board:
    """One store for reading; safe to use from several threads.

    Parameters
    ----------
    store : Store
        Need not exist: `state` says so.

    Attributes
    ----------
    store : Store
    tails : Tails
        The journals of unfinished runs.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tails = Tails(store)
        self._mutex = threading.Lock()
        self._generation = ""
        self._answers: OrderedDict[Any, Any] = OrderedDict()

    @property
    def generation(self) -> str | None:
        """Name of the newest snapshot; None before the first one."""
        now = current(self.store)
        return now.generation if now else None

    def state(self) -> State:
        """Look at the store: no exception, whatever lies there."""
        import duckdb

        again = f" --store {self.store.root}"
        try:
            if not self.store.runs.is_dir():
                return State(
                    "missing",
                    f"There is no store at {self.store.root} yet; a first run makes it.",
                    f"harness run --task gsm8k --model mock:gold{again}",
                )
            if self.generation is None:
                return self._unpublished(again)
            snapshot(self.store).close()
        except (StoreError, OSError, duckdb.Error) as error:
            return State("unreadable", " ".join(str(error).split()))
        return State("ready")

    def _unpublished(self, again: str) -> State:
        n = len(self.store.run_ids())
        if not n:
            return State(
                "empty",
                f"The store at {self.store.root} holds no runs yet.",
                f"harness run --task gsm8k --model mock:gold{again}",
            )
        runs = "1 run has" if n == 1 else f"{n} runs have"
        return State(
            "waiting",
            f"{runs} been started, and nothing is published yet: a run publishes every half minute "
            "and at its end. The page Runs shows how far it is; after a crash, publish by hand.",
            f"harness store sync{again}",
        )

    def connect(self) -> DuckDBPyConnection:
        """Connect to the newest snapshot, read-only; a connection of its own for every call.

        Raises
        ------
        StoreError
            When there is none, or it cannot be read.
        """
        return snapshot(self.store)

    def ask(
        self,
        query: Callable[Concatenate[DuckDBPyConnection, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Ask the newest snapshot; the same question of the same snapshot is asked once.

        Parameters
        ----------
        query : callable
            Takes a connection, then the other arguments. What it gives is shared: do not change it.
        *args, **kwargs
            Hashable (tuples, not lists).

        Raises
        ------
        StoreError
            As for `connect`.
        """
        key = (query.__module__, query.__qualname__, args, tuple(sorted(kwargs.items())))

        def answer() -> T:
            con = self.connect()
            try:
                return query(con, *args, **kwargs)
            finally:
                con.close()

        return self.keep(key, answer)

    def keep(self, key: Hashable, make: Callable[[], T]) -> T:
        """Make something once a generation.

        Parameters
        ----------
        key : hashable
            Names it, with all that it depends on but the snapshot.
        make : callable
            What it gives is shared: do not change it.
        """
        # Looked up before anything is read: an answer may be newer than its key, never older.
        generation = self.generation or ""
        with self._mutex:
            if generation != self._generation:
                self._generation = generation
                self._answers.clear()
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]  # type: ignore[no-any-return]
        answer = make()
        with self._mutex:
            if generation == self._generation:
                self._answers[key] = answer
                while len(self._answers) > MOST_ANSWERS:
                    self._answers.popitem(last=False)
        return answer
