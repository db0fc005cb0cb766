"""Binds a program's life to that of the process that asked for it.

``python -P -m harness.backends.guard PARENT GRACE PROGRAM ARGUMENT…`` runs the program as the leader
of a process group of its own. When standard input closes, or the parent is no longer process
PARENT, the whole group is sent SIGTERM and, GRACE seconds later, SIGKILL. Linux could signal a child
at its parent's death by itself (``PR_SET_PDEATHSIG``), but counts the end of the thread that started
it as that death, and tells the child alone and not what that has started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

POLL_S = 0.2
KILLED_S = 5.0  # a killed process that is still there then waits for a device; nobody can help it


def main(argv: Sequence[str] | None = None) -> int:
    """Run a program until it ends or nobody wants it any more; give its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Parent's process id, seconds of grace, program and arguments.

    Returns
    -------
    int
        As `subprocess.Popen.returncode`, a signal as 128 + its number.
    """
    parent, grace, *command = sys.argv[1:] if argv is None else argv
    # Only the one who asked ends this process: were it to die first, the program would stay.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A function, since what is ignored would be ignored by the program too.
        signal.signal(signum, lambda *_: None)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    while child.poll() is None and _wanted(int(parent)):
        pass
    end_group(child, float(grace))
    code = child.returncode
    return 1 if code is None else code if code >= 0 else 128 - code


def end_group(child: subprocess.Popen[bytes], grace: float) -> None:
    """End a process and all of its group: asked first, then by force.

    Parameters
    ----------
    child : subprocess.Popen
        The leader of its group; it may have ended already.
    grace : float
        Seconds between the two.
    """
    for signum, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, KILLED_S)):
        if not _signal(child.pid, signum):
            return
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            child.poll()  # or it would stay in its group as a zombie
            if not _signal(child.pid, 0):
                return
            time.sleep(0.02)


def _signal(group: int, signum: int) -> bool:
    """Send a signal to a group; False when nobody is left in it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signum)
        return True
    return False


def _wanted(parent: int) -> bool:
    """Wait a moment; tell whether the parent still lives and has not closed our input."""
    closed, _, _ = select.select([sys.stdin], [], [], POLL_S)
    # The second: a process that the parent forked may hold the other end of the pipe open.
    return not closed and os.getppid() == parent


if __name__ == "__main__":
    sys.exit(main())
