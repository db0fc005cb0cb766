"""Which isolation works on this machine, found by starting a program in it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Literal, cast, get_args

import msgspec

from harness.core.errors import HarnessError, unknown
from harness.sandbox import cgroup
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.seccomp import filter_bytes

Level = Literal["full", "full-nocg", "userns", "container", "unshare", "limits"]

LEVELS: tuple[Level, ...] = get_args(Level)
AUTOMATIC: tuple[Level, ...] = ("full", "full-nocg", "userns")
"""Levels fit for what a model wrote that are taken without being asked for by name."""
_INSTALL = "install it with: sudo apt-get install bubblewrap"
_lock = threading.RLock()


class Isolation(msgspec.Struct, frozen=True):
    """What was in force around a program; stored with the attempt.

    Attributes
    ----------
    level : str
        See the table in the guide; `full` is the strongest.
    uid : int
        The user id that the program sees as its own.
    userns, seccomp : bool
        Whether it ran in a user namespace, and under the filter of system calls.
    cgroup : str
        ``"v1"``, ``"v2"`` or ``"none"`` (then memory is limited per process only).
    net : str
        ``"none"``: its own loopback only; ``"private"``: a network shared with a service of the
        same attempt; ``"shared"``: the machine's.
    kernel, bwrap_version : str
        Versions; an empty text where bubblewrap has no part in it.
    missing : tuple of str
        What keeps the machine from a better level, or the level from being complete.
    """

    level: Level
    uid: int
    userns: bool
    seccomp: bool
    cgroup: str
    net: str
    kernel: str
    bwrap_version: str
    missing: tuple[str, ...] = ()


def reach(requested: str = "auto") -> Isolation:
    """Find the isolation that works here; tried once a process by starting a program in it.

    Parameters
    ----------
    requested : str
        A level, or ``"auto"`` for the best one that is fit for what a model wrote.

    Returns
    -------
    Isolation

    Raises
    ------
    UsageError
        There is no such level.
    SandboxUnavailable
        It does not work here; the message says why and what to install.
    """
    if requested != "auto" and requested not in LEVELS:
        raise unknown("sandbox level", requested, ["auto", *LEVELS])
    # Under a lock, so that many threads that begin at once do not all try.
    with _lock:
        found = _automatic() if requested == "auto" else _attempt(cast("Level", requested))
    if isinstance(found, str):
        raise SandboxUnavailable(found)
    return found


@functools.cache
def _automatic() -> Isolation | str:
    reasons: list[str] = []
    for level in AUTOMATIC:
        found = _attempt(level)
        if isinstance(found, Isolation):
            return msgspec.structs.replace(found, missing=(*found.missing, *reasons))
        reasons.append(f"{level}: {found}")
    why = "; ".join(reasons)
    hint = "" if shutil.which("bwrap") else f"; {_INSTALL}"
    return f"no sandbox for a model's programs works here ({why}){hint}"


@functools.cache
def _attempt(level: Level) -> Isolation | str:
    """Give the isolation, or why it cannot be had."""
    if level == "container":
        return _container()
    if lacking := _lacking(level):
        hint = f"; {_INSTALL}" if "bubblewrap" in lacking else ""
        return f"sandbox level {level} needs {', '.join(lacking)}{hint}"
    isolation = _plan(level)
    failure = _trial(isolation)
    return isolation if failure is None else f"sandbox level {level} does not start here: {failure}"


def _lacking(level: Level) -> list[str]:
    """List what the level stands on and is not there."""
    root = os.geteuid() == 0
    lacking = []
    if level in ("full", "full-nocg", "unshare") and not root:
        lacking.append("root")
    if level == "full" and cgroup.parents().version == "none":
        lacking.append("a writable cgroup")
    programs = {"bash": "bash", "prlimit": "util-linux"}
    if level in AUTOMATIC:
        programs["bwrap"] = "bubblewrap"
    if level != "userns":
        programs["setpriv"] = "util-linux"
    if level in ("userns", "unshare"):
        programs["unshare"] = programs["nsenter"] = "util-linux"
    lacking += sorted({package for name, package in programs.items() if not shutil.which(name)})
    return lacking


def _plan(level: Level) -> Isolation:
    root = os.geteuid() == 0
    bwrap = level in AUTOMATIC
    seccomp = bwrap and filter_bytes() is not None
    # A level keeps its name's promise only: full-nocg leaves the cgroup alone even where there is one.
    with_cgroup = level == "full" or (level in ("userns", "unshare") and root)
    missing = [] if seccomp else ["a filter of system calls"]
    if level == "userns" and root:
        missing.append("an ordinary user (outside, the program's user is root)")
    return Isolation(
        level=level,
        uid=65534 if level == "userns" else os.geteuid(),
        userns=level == "userns",
        seccomp=seccomp,
        cgroup=cgroup.parents().version if with_cgroup else "none",
        net="shared" if level == "limits" else "none",
        kernel=platform.release(),
        bwrap_version=_bwrap_version() if bwrap else "",
        missing=tuple(missing),
    )


def _trial(isolation: Isolation) -> str | None:
    """Start a program in it; give what went wrong."""
    from harness.sandbox.limits import LIMITS
    from harness.sandbox.run import run_in

    try:
        result = run_in(isolation, ["/bin/true"], limits=LIMITS["function"])
    except (HarnessError, OSError) as error:
        return str(error)
    return None if result.status == "ok" else result.reason


def _bwrap_version() -> str:
    said = subprocess.run(
        ["bwrap", "--version"], capture_output=True, text=True, check=False, timeout=20
    )
    return said.stdout.split()[-1] if said.stdout.split() else ""


def _container() -> Isolation | str:
    if importlib.util.find_spec("harness.sandbox.container") is None:
        return "sandbox level container is not part of this installation"
    module = importlib.import_module("harness.sandbox.container")
    try:
        return cast("Isolation", module.reach())
    except SandboxUnavailable as error:
        return str(error)


def program(name: str) -> str:
    """Give the full path of a program of the host, because boxes start with an empty environment."""
    return shutil.which(name) or str(Path("/usr/bin") / name)
