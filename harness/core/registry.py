"""Where tasks, backends, solvers, scorers and strategies are found.

Each installed package may offer one entry point in a group (``harness.tasks``, …) that leads to a
static catalogue: a tuple of `Entry`. Listing reads catalogues only; the code behind an entry is
imported when it is used. Within a process the decorators register directly:

>>> @strategy("first", summary="the first draw")
... def first(candidates):
...     return 0
>>> find("strategies", "first").name
'first'
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar

from msgspec import Struct

from harness.core.errors import HarnessError, UsageError, unknown

Kind = Literal["tasks", "backends", "solvers", "scorers", "strategies"]
_SINGULAR: dict[Kind, str] = {
    "tasks": "task", "backends": "backend", "solvers": "solver", "scorers": "scorer",
    "strategies": "strategy",
}  # fmt: skip
F = TypeVar("F", bound=Callable[..., Any])


class Need(Struct, frozen=True):
    """Something an entry cannot work without.

    Attributes
    ----------
    kind : {"package", "program"}
        A Python module or a program on PATH.
    name : str
        Its name.
    install : str
        The command that brings it.
    unless : str
        A switch that makes it needless, as ``engine=regions``.
    """

    kind: Literal["package", "program"]
    name: str
    install: str
    unless: str = ""

    def missing(self) -> bool:
        """Tell whether it is not there; imports nothing."""
        if self.kind == "program":
            return shutil.which(self.name) is None
        return importlib.util.find_spec(self.name) is None


class Entry(Struct, frozen=True, kw_only=True):
    """One line of a catalogue.

    Attributes
    ----------
    name : str
        What a user types.
    target : str or callable
        ``"package.module:object"``, or the object itself when a decorator registered it.
    version : str
        Changes when its results may change; part of keys and rows.
    group : str
        For tasks: running the group's name runs all of it.
    n : int
        For tasks: number of own items.
    needs : tuple of Need
        What must be installed.
    needs_data : bool
        For tasks: there are no own items, `--data-root` is a must.
    untested : str
        Why nobody has run it yet, or empty; shown as its state.
    summary : str
        One line for lists.
    """

    name: str
    target: str | Callable[..., Any]
    version: str = "1"
    group: str = ""
    n: int = 0
    needs: tuple[Need, ...] = ()
    needs_data: bool = False
    untested: str = ""
    summary: str = ""

    def load(self) -> Callable[..., Any]:
        """Import and return the object behind the entry.

        Raises
        ------
        HarnessError
            When the plug-in is broken, naming it.
        """
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        try:
            loaded: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        except Exception as error:
            # Whatever importing foreign code may raise, a syntax error included.
            raise HarnessError(f"cannot load {self.name!r} from {self.target}: {error}") from error
        return loaded

    def state(self, args: Mapping[str, str] | None = None) -> tuple[str, str]:
        """Give (state, why): ``ready``, ``untested`` or ``unavailable`` with what would mend it.

        Parameters
        ----------
        args : mapping, optional
            The switches it is asked for with (`--arg`); some needs go with one.
        """
        given = {f"{name}={value}" for name, value in (args or {}).items()}
        for need in self.needs:
            if need.unless not in given and need.missing():
                return "unavailable", f"{need.name} is missing: {need.install}"
        if self.needs_data:
            return "unavailable", "has no own items: give --data-root DIR"
        if self.untested:
            return "untested", self.untested
        return "ready", ""


_decorated: dict[str, dict[str, Entry]] = {}
_scanned: dict[str, dict[str, Entry]] = {}


def _scan(kind: Kind) -> dict[str, Entry]:
    """Read the catalogues of all installed packages, once a process."""
    if kind not in _scanned:
        found: dict[str, Entry] = {}
        homes: dict[str, str] = {}
        for point in entry_points(group=f"harness.{kind}"):
            try:
                catalogue: list[Entry] = [*point.load()]
                if strangers := [e for e in catalogue if not isinstance(e, Entry)]:
                    raise TypeError(f"its catalogue holds {strangers[0]!r}, which is no Entry")
            except Exception as error:
                raise HarnessError(
                    f"plug-in {point.name!r} ({point.value}) is broken: {error}"
                ) from error
            for entry in catalogue:
                if entry.name in found:
                    raise HarnessError(
                        f"{_SINGULAR[kind]} {entry.name!r} is offered twice: by {homes[entry.name]} "
                        f"and by {point.value}; uninstall one of the two packages"
                    )
                found[entry.name], homes[entry.name] = entry, point.value
        _scanned[kind] = found
    return _scanned[kind]


def entries(kind: Kind) -> dict[str, Entry]:
    """Give all known entries of a kind by name, decorated ones first."""
    return {**_scan(kind), **_decorated.get(kind, {})}


def find(kind: Kind, name: str) -> Entry:
    """Look one entry up.

    Raises
    ------
    UsageError
        For an unknown name, with the nearest valid ones.
    """
    local = _decorated.get(kind, {})
    if name in local:
        return local[name]
    known = _scan(kind)
    if name in known:
        return known[name]
    raise unknown(_SINGULAR[kind], name, {**known, **local}, f"see `harness list {kind}`")


def listing(kind: Kind) -> list[dict[str, Any]]:
    """List all entries of a kind, sorted by name, as `harness list KIND --json` prints them.

    Returns
    -------
    list of dict
        `name`, `state` (``ready``, ``untested`` or ``unavailable``), `why`, `summary`; for tasks
        also `group` and `n`, the number of own items.
    """
    rows = []
    for entry in sorted(entries(kind).values(), key=lambda e: e.name):
        state, why = entry.state()
        row: dict[str, Any] = {"name": entry.name}
        if kind == "tasks":
            row |= {"group": entry.group, "n": entry.n}
        rows.append(row | {"state": state, "why": why, "summary": entry.summary})
    return rows


def expand_tasks(names: Iterable[str]) -> list[Entry]:
    """Turn task and group names into tasks, in order, each once.

    A group's tasks that have no own items are included; the runner skips them with a line.

    Raises
    ------
    UsageError
        For a name that is neither.
    """
    known = entries("tasks")
    chosen: dict[str, Entry] = {}
    for name in names:
        if name in known:
            chosen[name] = known[name]
            continue
        members = [e for e in known.values() if e.group == name]
        if not members:
            groups = {e.group for e in known.values() if e.group}
            raise unknown("task", name, {*known, *groups}, "see `harness list tasks`")
        chosen.update({e.name: e for e in members})
    if not chosen:
        raise UsageError("no task given: --task NAME[,NAME…] (see `harness list tasks`)")
    return list(chosen.values())


def register(kind: Kind, entry: Entry) -> None:
    """Add an entry in this process; a later one of the same name replaces it (notebooks)."""
    _decorated.setdefault(kind, {})[entry.name] = entry


def _decorator(kind: Kind) -> Callable[..., Callable[[F], F]]:
    def decorate(name: str, **fields: Any) -> Callable[[F], F]:
        def mark(function: F) -> F:
            register(kind, Entry(name=name, target=function, **fields))
            return function

        return mark

    decorate.__doc__ = f"Register the decorated object under `name` among the {kind}."
    return decorate


task = _decorator("tasks")
backend = _decorator("backends")
solver = _decorator("solvers")
scorer = _decorator("scorers")
strategy = _decorator("strategies")
