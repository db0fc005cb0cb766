"""`engine=regions`: decks of a documented subset, without the program KLayout.

The language is read by ourselves, the geometry is KLayout's own (the package ``klayout``, which may be
of another version than the program: 0.28.5 and 0.30.12 differ in what shields two edges of overlapping
layers from each other, by one bit of `separation` on 300 random layouts). A deck is a model's, and its
numbers can make a kernel work for ever, so this runs in a box as well.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from harness.sandbox import LIMITS, ForkPool, Isolation, reach
from scorers.drc.results import DeckRun, LayoutRun, LayoutStatus, Marker, UnsupportedError

KIT = Path(__file__).parent / "kit"
WALL_S = 60.0
_LIMITS = msgspec.structs.replace(LIMITS["engine"], wall_s=WALL_S, cpu_s=WALL_S, memory_mib=1024)
_TRIES = 3
_ENDED: dict[str, LayoutStatus] = {"timeout": "timeout"}


class RegionsEngine:
    """The interpreter in a box; safe to use from several threads, one deck at a time.

    Parameters
    ----------
    sandbox : str or Isolation
        The level of isolation asked for.
    """

    name = "regions"

    def __init__(self, sandbox: str | Isolation = "auto") -> None:
        self.isolation = sandbox if isinstance(sandbox, Isolation) else reach(sandbox)
        self._pool: ForkPool | None = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """Of the interpreter and of the package behind it."""
        try:
            return f"regions 1, klayout.db {version('klayout')}"
        except PackageNotFoundError:
            return "regions 1, klayout.db missing"

    def run(
        self, deck: str, layouts: Sequence[bytes], *, key: str = "", audit: bool = True
    ) -> DeckRun:
        """Run a deck on layouts, each by itself: nothing is carried from one to the next.

        Raises
        ------
        UnsupportedError
            The deck uses what the subset does not have; with its line.
        RuntimeError
            The sandbox failed, several times.
        """
        del key, audit
        args = {"deck": deck, "layouts": [base64.b64encode(data).decode() for data in layouts]}
        for _ in range(_TRIES):
            result = self._open().run("drc_kit.subset.run(**args)", args)
            if result.status != "harness":
                break
        else:
            raise RuntimeError(f"the interpreter could not be run: {result.reason}")
        if result.status == "ok":
            said = msgspec.convert(result.value, _Said)
            if said.unsupported is not None:
                raise UnsupportedError(said.unsupported)
            runs = [one.run(index) for index, one in enumerate(said.layouts)]
        else:
            why = f"{result.status}: {result.reason or ''}"
            status = _ENDED.get(result.status, "crash")
            runs = [LayoutRun(index=i, status=status, message=why) for i in range(len(layouts))]
        return DeckRun(
            runs=tuple(runs), engine="regions", version=self.version, starts=1,
            seconds=round(result.wall_s, 3), isolation=msgspec.to_builtins(self.isolation),
        )  # fmt: skip

    def close(self) -> None:
        """End its process; the next deck starts it again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _open(self) -> ForkPool:
        with self._lock:
            if self._pool is None:
                self._pool = ForkPool(
                    ("drc_kit.subset",),
                    _LIMITS,
                    setup="import drc_kit.subset",
                    files={f"drc_kit/{file.name}": file for file in sorted(KIT.glob("*.py"))},
                    level=self.isolation,
                )
            return self._pool


class _Layout(msgspec.Struct):
    status: LayoutStatus
    counts: dict[str, int]
    markers: tuple[Marker, ...]
    message: str

    def run(self, index: int) -> LayoutRun:
        return LayoutRun(
            index=index, status=self.status, counts=self.counts, markers=self.markers,
            message=self.message,
        )  # fmt: skip


class _Said(msgspec.Struct):
    unsupported: str | None
    layouts: list[_Layout]
