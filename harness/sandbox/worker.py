"""Persistent Python in a box: cells that share their variables, as in a notebook."""

from __future__ import annotations

import base64
import binascii
import functools
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import HarnessError
from harness.sandbox.box import Box, Network
from harness.sandbox.cgroup import Counters
from harness.sandbox.channel import Answer, Channel, Fault, last_line, shown
from harness.sandbox.closing import Closing
from harness.sandbox.levels import AUTOMATIC, Isolation, reach
from harness.sandbox.limits import Limits
from harness.sandbox.output import Clipped, readable
from harness.sandbox.run import Status

_START_S = 120.0  # for the interpreter and its preloaded modules, on a busy machine
_TRIES = 2
_EMPTY = Clipped("", b"", 0, 0)
_PNG = b"\x89PNG\r\n\x1a\n"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a cell.

    Attributes
    ----------
    status : Status
        ``"ok"``; ``"error"``: it raised, the worker died of it, or it broke the protocol;
        ``"timeout"``, ``"memory"``, ``"crash"``, ``"output_limit"``, ``"denied"``; ``"harness"``:
        no fault of the cell. Whether the worker lived through it, `Worker.alive` tells.
    value : str or None
        ``repr`` of the cell's last expression.
    stdout, stderr : Clipped
        What was printed since the cell before.
    error : Fault or None
        What the cell raised.
    plots : tuple of bytes
        PNG images of the figures that were open at its end.
    wall_s : float
        Seconds.
    reason : str or None
        A short machine word, where the status needs one: ``"wall"``, ``"cpu"``, ``"oom_kill"``,
        ``"output"``, ``"protocol"``, ``"worker_died"``, ``"closed"``, a signal's name.
    """

    status: Status
    value: str | None = None
    stdout: Clipped = _EMPTY
    stderr: Clipped = _EMPTY
    error: Fault | None = None
    plots: tuple[bytes, ...] = ()
    wall_s: float = 0.0
    reason: str | None = None


class Worker(Closing):
    """A Python process in a box that runs cells one after the other and keeps their state.

    The process is started at once, and the first cell waits until it is ready. One that dies before
    that was no victim of a cell, and is started a second time. One that is killed afterwards loses
    its state and is not started again: its owner must know.

    Parameters
    ----------
    limits : Limits
        ``wall_s`` is that of one cell; ``cpu_s`` counts over the worker's life.
    mounts, files, env, level, network
        As of `Box`.
    preload : sequence of str
        Modules to import before the first cell.
    python : str, optional
        The interpreter, as the box sees it; the harness's own where it can be shown.

    Raises
    ------
    SandboxUnavailable
        The level cannot be had, or the box cannot be made.
    UsageError
        A name or a path that no box can have.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        mounts: Mapping[str, Path] | None = None,
        files: Mapping[str, bytes | Path] | None = None,
        preload: Sequence[str] = (),
        level: str | Isolation = "auto",
        env: Mapping[str, str] | None = None,
        network: Network | None = None,
        python: str | None = None,
    ) -> None:
        self.limits = limits
        self._preload = tuple(preload)
        self.isolation = level if isinstance(level, Isolation) else reach(level)
        self._box: dict[str, Any] = {
            "mounts": mounts, "files": files, "env": env, "network": network,
        }  # fmt: skip
        self._command = python_command(self.isolation, "_worker_main.py", python)
        self._lock = threading.Lock()
        self._closed = False
        self._ready = False
        self._failure: Reply | None = None
        self._channel = self._start()

    @property
    def alive(self) -> bool:
        """Whether it can run another cell, as far as is known."""
        return self._channel.alive and not self._closed

    def execute(self, code: str, wall_s: float | None = None) -> Reply:
        """Run a cell.

        Parameters
        ----------
        code : str
            Python; the value of a last expression is given back.
        wall_s : float, optional
            Seconds for this cell; ``limits.wall_s`` by default.

        Returns
        -------
        Reply
            Whatever the cell does, and also when the worker is dead or closed.
        """
        with self._lock:
            failed = self._failed_start()
            if failed is not None:
                return failed
            if self._closed:
                return Reply(status="harness", reason="closed")
            if not self._channel.alive:
                return Reply(status="error", reason="worker_died")
            wall = self.limits.wall_s if wall_s is None else wall_s
            answer = self._channel.ask({"code": code}, wall)
            return self._closed_reply(answer) if self._closed else _reply(answer)

    def collect(self, names: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Read results from ``/box``, also of a worker that was killed; see `Box.collect`."""
        with self._lock:
            return self._channel.box.collect(names)

    def counters(self) -> Counters:
        """Read what it has used since its start; its last ones once closed, see `Box.counters`."""
        return self._channel.box.counters()

    def wait_ready(self) -> Reply | None:
        """Wait until it is ready for a cell; None when it is, or else why it never will be."""
        with self._lock:
            return self._failed_start()

    def close(self) -> None:
        """End it and take its box away, from any thread; a cell under way returns."""
        self._closed = True
        self._channel.kill()
        with self._lock:
            self._channel.close()

    def _start(self) -> Channel:
        channel = open_channel(self._command, self.limits, level=self.isolation, **self._box)
        self._greeting = channel.post({"preload": self._preload})
        return channel

    def _failed_start(self) -> Reply | None:
        for left in reversed(range(_TRIES)):
            if self._closed:
                return Reply(status="harness", reason="closed")
            if self._ready or self._failure is not None:
                return self._failure
            answer = self._channel.wait(self._greeting, _START_S)
            if answer.line is not None and answer.line.error is None:
                self._ready = True
                return None
            if answer.line is not None:  # a module that is missing will be missing again
                break
            if left and not self._closed:
                self._channel.close()
                try:
                    self._channel = self._start()
                except HarnessError as error:
                    self._failure = Reply(status="harness", reason=str(error))
        self._channel.close()
        self._failure = _not_started(answer)
        return self._failure

    @staticmethod
    def _closed_reply(answer: Answer) -> Reply:
        return Reply(
            status="harness", reason="closed", stdout=answer.stdout, stderr=answer.stderr,
            wall_s=answer.wall_s,
        )  # fmt: skip


def open_channel(
    command: Sequence[str], limits: Limits, *, longest: int | None = None, **box: Any
) -> Channel:
    """Start a program in a new box; what goes wrong leaves nothing behind.

    Parameters
    ----------
    command : sequence of str
        The program.
    limits : Limits
        Of the box.
    longest : int, optional
        Bytes of one reply line.
    **box
        As of `Box`.
    """
    made = Box(limits, **box)
    try:
        return Channel(made, command) if longest is None else Channel(made, command, longest)
    except BaseException:
        made.close()
        raise


def python_command(isolation: Isolation, script: str, python: str | None = None) -> list[str]:
    """Give the command line for one of our programs that run in the box.

    Parameters
    ----------
    isolation : Isolation
        Where it will run.
    script : str
        A file beside this one; its text is the argument, for the box does not show the harness.
    python : str, optional
        The interpreter.
    """
    python = python or _interpreter(isolation)
    # No site of the user and no folder of the program before ours; the environment is the box's own.
    return [python, "-s", "-P", "-c", _source(script)]


@functools.cache
def _source(script: str) -> str:
    return Path(__file__).with_name(script).read_text(encoding="utf-8")


def _interpreter(isolation: Isolation) -> str:
    own = sys.executable
    if isolation.level in AUTOMATIC or os.geteuid() != 0:
        return own
    # Levels without a root of their own change the user, who may not reach the harness's Python, and
    # `unshare` puts the job folder where the host has /tmp.
    folders = {*Path(own).parents, *Path(own).resolve().parents}
    reached = all(folder.stat().st_mode & 1 for folder in folders)
    covered = isolation.level == "unshare" and Path("/tmp") in folders  # noqa: S108
    system = Path("/usr/bin/python3")
    return own if (reached and not covered) or not system.exists() else str(system)


def _not_started(answer: Answer) -> Reply:
    """Give the reply of a worker that was never ready."""
    error = shown(answer.line.error) if answer.line is not None else None
    why = f"{error.name}: {error.message}" if error else last_line(answer.stderr)
    return Reply(
        status="harness", reason=why or answer.reason, stdout=answer.stdout, stderr=answer.stderr,
        error=error, wall_s=answer.wall_s,
    )  # fmt: skip


def _reply(answer: Answer) -> Reply:
    line, status, reason = answer.line, answer.status, answer.reason
    if line is None:
        return Reply(
            status=status, reason=reason, stdout=answer.stdout, stderr=answer.stderr,
            wall_s=answer.wall_s,
        )  # fmt: skip
    error = shown(line.error)
    if status == "ok" and error is not None:
        status = "error"
    return Reply(
        status=status,
        value=None if line.value is None else readable(str(line.value).encode()),
        stdout=answer.stdout,
        stderr=answer.stderr,
        error=error,
        plots=tuple(image for text in line.plots if (image := _image(text)) is not None),
        wall_s=answer.wall_s,
        reason=reason,
    )


def _image(text: str) -> bytes | None:
    """Decode a plot; what is no PNG was not drawn by the worker."""
    try:
        image = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return image if image.startswith(_PNG) else None
