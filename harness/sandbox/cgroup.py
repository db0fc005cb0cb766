"""One cgroup folder a box: its limits, its counters, and the end of whatever is left in it."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.sandbox.limits import Limits

_PATIENCE = 2.0  # seconds for killed processes to go
_PERIOD_US = 100_000
_V1 = ("memory", "pids", "cpu", "cpuacct")


class Counters(msgspec.Struct, frozen=True):
    """What a box has used so far; None where nobody counted.

    Attributes
    ----------
    cpu_s : float or None
        CPU seconds of all its processes together.
    peak_bytes : int or None
        Most memory held at one time.
    oom_kill : int
        Processes that the kernel killed for memory. The exit code hides them when they were children.
    """

    cpu_s: float | None = None
    peak_bytes: int | None = None
    oom_kill: int = 0


class Parents(msgspec.Struct, frozen=True):
    """Where boxes get their folders: the folder of each controller that this process may write.

    Attributes
    ----------
    version : str
        ``"v1"``, ``"v2"`` or ``"none"``.
    folders : dict
        Controller to folder; one entry, ``"unified"``, for v2.
    """

    version: str
    folders: dict[str, Path]


@functools.cache
def parents() -> Parents:
    """Find the writable cgroup of this process (looked up once)."""
    own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    return find(own, mounts)


def find(own: str, mountinfo: str) -> Parents:
    """Find the folders in which boxes can be made.

    Parameters
    ----------
    own : str
        The text of ``/proc/self/cgroup``; under v1 each controller has its own path.
    mountinfo : str
        The text of ``/proc/self/mountinfo``.

    Returns
    -------
    Parents
        Version ``"none"`` when memory and processes cannot both be limited.
    """
    paths: dict[str, str] = {}
    for line in own.splitlines():
        _, names, path = line.split(":", 2)
        paths.update(dict.fromkeys(names.split(",") if names else ["unified"], path))
    v1: dict[str, Path] = {}
    unified: Path | None = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup":
            for name in set(options.split(",")) & set(_V1) & set(paths):
                v1.setdefault(name, _inside(point, root, paths[name]))
        elif kind == "cgroup2" and "unified" in paths:
            unified = _inside(point, root, paths["unified"])
    if all(name in v1 and _writable(v1[name]) for name in ("memory", "pids")):
        return Parents("v1", {name: path for name, path in v1.items() if _writable(path)})
    if unified is not None and (folder := _v2_parent(unified)) is not None:
        return Parents("v2", {"unified": folder})
    return Parents("none", {})


class Cgroup:
    """The cgroup of one box.

    Parameters
    ----------
    name : str
        Its folder's name; a folder of that name which exists is a dead box's and is emptied first.
    where : Parents, optional
        Where to make it; the process's own by default.
    """

    def __init__(self, name: str, where: Parents | None = None) -> None:
        where = where or parents()
        self.version = where.version
        # Joined v1 controllers (cpu,cpuacct) share one folder.
        self.folders: Mapping[str, Path] = {c: path / name for c, path in where.folders.items()}
        self._each = list(dict.fromkeys(self.folders.values()))

    def make(self, limits: Limits) -> None:
        """Make the folders and write the limits into them."""
        self.remove()
        for folder in self._each:
            folder.mkdir()
        memory = limits.memory_mib * 2**20
        # The box's own two processes (bwrap outside and inside) are not the program's.
        pids = limits.pids + 16
        if self.version == "v1":
            self._write("memory", "memory.limit_in_bytes", memory)
            self._write("memory", "memory.memsw.limit_in_bytes", memory, missing_ok=True)
            self._write("pids", "pids.max", pids)
            self._write("cpu", "cpu.cfs_period_us", _PERIOD_US, missing_ok=True)
            self._write("cpu", "cpu.cfs_quota_us", _PERIOD_US, missing_ok=True)
        else:
            self._write("unified", "memory.max", memory)
            self._write("unified", "memory.swap.max", 0, missing_ok=True)
            self._write("unified", "memory.oom.group", 1, missing_ok=True)
            self._write("unified", "pids.max", pids)
            self._write("unified", "cpu.max", f"{_PERIOD_US} {_PERIOD_US}", missing_ok=True)

    def entrances(self) -> list[Path]:
        """Give the files into which a process writes its id to be in the box."""
        return [folder / "cgroup.procs" for folder in self._each]

    def counters(self) -> Counters:
        """Read what has been used; zeros and None once the folder is gone."""
        if self.version == "v1":
            nanoseconds = self._read("cpuacct", "cpuacct.usage")
            return Counters(
                cpu_s=int(nanoseconds) / 1e9 if nanoseconds else None,
                peak_bytes=_whole(self._read("memory", "memory.max_usage_in_bytes")),
                oom_kill=_field(self._read("memory", "memory.oom_control"), "oom_kill") or 0,
            )
        microseconds = _field(self._read("unified", "cpu.stat"), "usage_usec")
        return Counters(
            cpu_s=None if microseconds is None else microseconds / 1e6,
            peak_bytes=_whole(self._read("unified", "memory.peak")),
            oom_kill=_field(self._read("unified", "memory.events"), "oom_kill") or 0,
        )

    def pids(self) -> set[int]:
        """Give the ids of the processes in it."""
        found: set[int] = set()
        for entrance in self.entrances():
            with contextlib.suppress(OSError):
                found.update(map(int, entrance.read_text(encoding="ascii").split()))
        return found

    def kill(self) -> bool:
        """Kill whatever is left and wait until it is gone.

        Returns
        -------
        bool
            False when something was still there after two seconds.
        """
        deadline = time.monotonic() + _PATIENCE
        pause = 0.001
        while pids := self.pids():
            if self.version == "v2":
                self._write("unified", "cgroup.kill", 1, missing_ok=True)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(0.02, pause * 2)
        return True

    def remove(self) -> bool:
        """Kill what is left and remove the folders; tell whether they are gone."""
        if not any(folder.exists() for folder in self._each):
            return True
        self.kill()
        gone = True
        for folder in self._each:
            gone = _remove(folder) and gone
        return gone

    def _write(
        self, controller: str, name: str, value: object, *, missing_ok: bool = False
    ) -> None:
        path = self.folders.get(controller, Path("/nonexistent")) / name
        # Opened without O_CREAT: a missing control file must not turn into an ordinary one.
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            if missing_ok:
                return
            raise
        try:
            os.write(handle, str(value).encode())
        finally:
            os.close(handle)

    def _read(self, controller: str, name: str) -> str:
        folder = self.folders.get(controller)
        try:
            return (folder / name).read_text(encoding="ascii") if folder else ""
        except OSError:
            return ""


def leftovers(prefix: str) -> set[str]:
    """Give the names of the folders that start with `prefix`, over all controllers."""
    return {
        path.name for folder in parents().folders.values() for path in folder.glob(f"{prefix}*")
    }


def _inside(point: str, root: str, path: str) -> Path:
    """Place a cgroup path below its mount point, which may show only a part of the hierarchy."""
    relative = os.path.relpath(path, root) if path.startswith(root) else path.lstrip("/")
    return Path(point, relative)


def _writable(folder: Path) -> bool:
    """Try it out: the permission bits say nothing about a read-only mount or a lost capability."""
    trial = folder / f"bridge-harness-trial-{os.getpid()}-{time.monotonic_ns()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    return _remove(trial)


def _v2_parent(own: Path) -> Path | None:
    """Find the nearest folder upwards whose children get the memory and process controllers.

    A v2 group that holds processes cannot hand controllers to its children, so the process's own
    group is seldom the answer.
    """
    for folder in (own, *own.parents):
        if not (folder / "cgroup.controllers").exists():
            return None
        try:
            given = (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
        except OSError:
            continue
        if {"memory", "pids"} <= set(given) and _writable(folder):
            return folder
    return None


def _remove(folder: Path) -> bool:
    deadline = time.monotonic() + _PATIENCE
    pause = 0.001
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            # A killed process leaves its group a moment after it is gone from the list.
            if time.monotonic() > deadline:
                return False
            time.sleep(pause)
            pause = min(0.02, pause * 2)
        else:
            return True


def _whole(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _field(text: str, name: str) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return None
