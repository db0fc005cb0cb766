"""A program that runs in a box."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import IO

import msgspec

from harness.sandbox import warden
from harness.sandbox.spawn import close_all

_PATIENCE = 2.0  # seconds for a killed process to go


class BoxProcess:
    """Like `subprocess.Popen`, for a program in a box.

    Attributes
    ----------
    pid : int
        The outermost process; killing it with SIGKILL ends the program and all its children.
    stdin : file or None
        Unbuffered; only when asked for.
    stdout, stderr : file
        Unbuffered.
    closed : bool
        Whether `close` was called.
    request, reply : int
        Descriptors of the parent's ends of the program's 3 (read) and 4 (write); -1 without pipes.
    """

    def __init__(
        self, popen: subprocess.Popen[bytes], ready: int, info: int, request: int, reply: int
    ) -> None:
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._popen = popen
        self._ready = ready
        self._info = info
        self._said = ""
        self._ended = False
        self.closed = False
        self.pid = popen.pid
        self.stdin: IO[bytes] | None = popen.stdin
        self.stdout: IO[bytes] = popen.stdout
        self.stderr: IO[bytes] = popen.stderr
        self.request = request
        self.reply = reply

    def began(self, timeout: float | None = None) -> str:
        """Wait until the program is about to run, or cannot.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most; after that the answer is ``"failed"``.

        Returns
        -------
        str
            ``"ready"``; ``"missing"`` when there is no such program; ``"failed"`` when the box did
            not come up, which is never the program's fault.
        """
        if not self._said:
            if self._ready < 0 or not readable(self._ready, timeout):
                return "failed"
            with contextlib.suppress(OSError):
                answer = os.read(self._ready, 1)
                self._said = {b"r": "ready", b"n": "missing"}.get(answer, "failed")
        return self._said or "failed"

    def poll(self) -> int | None:
        """Give the exit code when it has ended; negative for a signal."""
        code = self._popen.poll()
        if code is not None:
            self._known_to_end()
        return code

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end; None when `timeout` seconds have passed first."""
        try:
            code = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self._known_to_end()
        return code

    def kill(self) -> None:
        """Kill it and everything it started; SIGKILL, because a program may ignore the rest."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._popen.kill()

    def end(self) -> None:
        """Kill it and wait until the last of its children is gone."""
        self.kill()
        self.wait()
        # The kernel ends a process namespace after bwrap is gone, and its first process last.
        first = self._first_inside()
        deadline = time.monotonic() + _PATIENCE
        pause = 0.0005
        while first and _is_bwrap(first) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(0.02, pause * 2)

    def close(self) -> None:
        """Do what `end` does and close every descriptor."""
        self.closed = True
        self.end()
        close_all(self.stdin, self.stdout, self.stderr)
        # Taken out first: closing a number twice would close somebody else's.
        mine = (self._ready, self._info, self.request, self.reply)
        self._ready = self._info = self.request = self.reply = -1
        close_all(*(handle for handle in mine if handle >= 0))

    def _known_to_end(self) -> None:
        if not self._ended:
            self._ended = True
            warden.forget(self.pid)

    def _first_inside(self) -> int | None:
        """Read, once, what ``bwrap --info-fd`` said: the host's id of the namespace's first process."""
        info, self._info = self._info, -1
        if info < 0:
            return None
        try:
            said = os.read(info, 4096)
            return int(msgspec.json.decode(said)["child-pid"]) if said else None
        except (OSError, ValueError, KeyError):
            return None
        finally:
            os.close(info)


def readable(handle: int, timeout: float | None = None) -> bool:
    """Wait until something, or the end, can be read from a descriptor; False after `timeout` seconds.

    Unlike `select` it takes descriptors above 1,023, which a harness with many connections has.
    """
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if timeout is None else timeout * 1000))


def _is_bwrap(pid: int) -> bool:
    """Tell whether the process is there and still itself: its number may have been given away."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")
    except (OSError, ValueError):
        return False
    return name.endswith("(bwrap") and rest.split()[0] not in "ZX"
