"""Level ``limits`` has no process namespace: find what a program left running, and kill it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path


def kill_strays(uid: int, job: Path) -> bool:
    """Kill the processes of a box by user, or, where boxes have no user of their own, by their home.

    Parameters
    ----------
    uid : int
        The box's user, when the harness is root.
    job : Path
        The job folder: `HOME` in the environment of everything that was started in the box. A
        program that clears its environment gets away, which is one reason why this level is not fit
        for what a model wrote.

    Returns
    -------
    bool
        False when something was still there after two seconds.
    """
    deadline = time.monotonic() + 2
    while found := _strays(uid, job):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def has_processes(uid: int) -> bool:
    """Tell whether a user has processes, zombies included."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                return True
    return False


def _strays(uid: int, job: Path) -> list[int]:
    mark = b"HOME=" + os.fsencode(job)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            if os.geteuid() == 0:
                mine = entry.stat().st_uid == uid
            else:
                mine = mark in (entry / "environ").read_bytes().split(b"\0")
            if mine:
                found.append(int(entry.name))
    return found
