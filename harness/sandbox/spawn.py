"""Starting processes so that they die with the harness, from any thread.

The kernel's parent-death signal, on which ``bwrap --die-with-parent`` stands, fires when the
*thread* that started the process ends. So every process is started by one thread that lives as long
as the harness.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

from harness.sandbox import warden
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.levels import program

_FIRST_FREE = 10  # descriptors below are those that the launcher gives to the program
_FOR_A_START = 9  # three streams of which each may be a pipe, one for errors, one to spare
_lock = threading.Lock()
_starter: ThreadPoolExecutor | None = None


def spawn(
    command: Sequence[str],
    *,
    descriptors: dict[int, int] | None = None,
    keep: Sequence[int] = (),
    entrances: Sequence[str] = (),
    folder: int | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    env: dict[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program through a two-line launcher.

    Parameters
    ----------
    command : sequence of str
        The program, by full path, with its arguments.
    descriptors : dict
        Number in the program (below 10) to descriptor here.
    keep : sequence of int
        Descriptors that the program gets under their own number.
    entrances : sequence of str
        Files into which the launcher writes its own id first: cgroups.
    folder : int, optional
        Handle of the working folder.
    stdin, stdout, stderr : int
        As of `subprocess.Popen`.
    env : dict, optional
        The whole environment; empty by default.

    Raises
    ------
    SandboxUnavailable
        The harness is ending, or the machine cannot start a process.
    """
    moves = dict(descriptors or {})
    passed = [*moves.values(), *keep]
    script = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; '
    if folder is not None:
        script += f"cd /proc/self/fd/{folder} || exit 125; exec {folder}<&-; "
        passed.append(folder)
    for inside, here in moves.items():
        script += f"exec {inside}<&{here} {here}<&-; "
    words = ["launcher", *entrances, "--", *command]

    def begin() -> subprocess.Popen[bytes]:
        _find_room()
        lifeline = warden.lifeline()
        known = f'echo "+ $$" >&{lifeline} || exit 125; exec {lifeline}>&-; '
        return subprocess.Popen(
            [program("bash"), "-c", f'{known}{script}exec "$@"', *words],
            stdin=stdin, stdout=stdout, stderr=stderr, bufsize=0, env=env or {},
            cwd="/", pass_fds=[*passed, lifeline], start_new_session=True,
        )  # fmt: skip

    try:
        future = _thread().submit(begin)
        try:
            return future.result()
        except BaseException:
            # Interrupted while it was being started: nobody will know of it.
            future.add_done_callback(_end)
            raise
    except (OSError, RuntimeError) as error:
        raise SandboxUnavailable(f"the sandbox cannot start a process: {error}") from error


def _find_room() -> None:
    """Find out whether there are as many descriptors as a start takes.

    Popen leaks those that it has where it runs out in the middle of opening them.

    Raises
    ------
    OSError
    """
    held: list[int] = []
    try:
        held.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_FOR_A_START))
    finally:
        close_all(*held)


def pipe() -> tuple[int, int]:
    """Make a pipe whose descriptors are out of the launcher's way: (read, write)."""
    read, write = os.pipe()
    return high(read), high(write)


def in_memory(content: bytes) -> int:
    """Give a descriptor from which `content` can be read to its end; never a file on disk."""
    handle = high(os.memfd_create("sandbox", os.MFD_CLOEXEC))
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def close_all(*handles: int | IO[bytes] | None) -> None:
    """Close descriptors and files, whether or not they are still open."""
    for handle in handles:
        with contextlib.suppress(OSError):
            if isinstance(handle, int):
                os.close(handle)
            elif handle is not None:
                handle.close()


def high(handle: int) -> int:
    """Move a descriptor out of the launcher's way, above the program's own numbers."""
    if handle >= _FIRST_FREE:
        return handle
    moved = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    os.close(handle)
    return moved


def _end(future: Future[subprocess.Popen[bytes]]) -> None:
    if future.exception() is None:
        popen = future.result()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()
        warden.forget(popen.pid)
        close_all(popen.stdin, popen.stdout, popen.stderr)


def _thread() -> ThreadPoolExecutor:
    global _starter  # noqa: PLW0603  one a process, and a new one after a fork
    with _lock:
        if _starter is None:
            _starter = ThreadPoolExecutor(1, thread_name_prefix="sandbox-starter")
        return _starter


def _forget() -> None:
    """Leave the thread behind that a fork did not copy."""
    global _starter, _lock
    _starter, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
