"""The warden: one small process that ends what a killed harness leaves running.

bwrap dies with its parent, but only once it has told the kernel so. A harness that is killed while a
box is being started would leave one that waits forever, or a program that nobody watches. So each
process group is made known to a process outside every box, which waits for the end of the harness,
however that happens, and then kills those that are still known.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import subprocess

from harness.sandbox.levels import program

_FIRST_FREE = 10  # descriptors below are those that the launcher gives to the program
_SCRIPT = (
    "declare -A groups; while read -r what group; do "
    'if [ "$what" = + ]; then groups[$group]=1; else unset "groups[$group]"; fi; done; '
    'for group in "${!groups[@]}"; do kill -KILL -- "-$group"; done'
)
_process: subprocess.Popen[bytes] | None = None
_lifeline = -1


def lifeline() -> int:
    """Give the descriptor on which a launcher makes its own group known, as ``+ GROUP``.

    The launcher must do so before it starts anything, and then close its copy: the warden waits for
    the end of this pipe. Called by the one thread that starts processes.
    """
    global _process, _lifeline  # noqa: PLW0603  one a process, and a new one after a fork
    if _process is None or _process.poll() is not None:
        _close()
        read, write = os.pipe()
        try:
            _process = subprocess.Popen(
                [program("bash"), "-c", _SCRIPT], stdin=read, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, env={}, cwd="/", start_new_session=True,
            )  # fmt: skip
            _lifeline = fcntl.fcntl(write, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
        finally:
            os.close(read)
            os.close(write)
        os.set_blocking(_lifeline, False)
    return _lifeline


def forget(group: int) -> None:
    """Say that a group has ended, before its number can be another's."""
    with contextlib.suppress(OSError):
        os.write(_lifeline, f"- {group}\n".encode())


def _close() -> None:
    global _lifeline
    handle, _lifeline = _lifeline, -1
    if handle >= 0:
        os.close(handle)


@atexit.register
def _end() -> None:
    _close()
    if _process is not None:
        _process.wait()


def _leave() -> None:
    """In a fork: the warden is the parent's, whose end it must see."""
    global _process  # noqa: PLW0603
    _close()
    _process = None


os.register_at_fork(after_in_child=_leave)
