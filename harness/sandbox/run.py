"""One program in one box: start it, feed it, wait, and say how it ended."""

from __future__ import annotations

import importlib
import os
import selectors
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, cast

import msgspec

from harness.core.errors import HarnessError
from harness.sandbox.box import Box, Network
from harness.sandbox.cgroup import Counters
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.levels import Isolation, reach
from harness.sandbox.limits import Limits
from harness.sandbox.output import Clipped, Ends
from harness.sandbox.process import BoxProcess

Status = Literal["ok", "error", "timeout", "memory", "crash", "output_limit", "denied", "harness"]
_ENDLESS = 16  # times the cap of one stream: more is no output but a flood
_NEAR = 0.8  # the kernel's clocks of a process and of a cgroup differ on a busy machine
_LOOK = 0.25  # seconds between two looks at the CPU clock of the whole box
_EMPTY = Clipped("", b"", 0, 0)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended, judged from outside: exit code, signals, limits and counters.

    Attributes
    ----------
    status : str
        ``"ok"`` (exit code 0), ``"error"`` (another exit code, or it could not be started),
        ``"timeout"`` (clock or CPU), ``"memory"`` (the kernel killed something for memory, even
        where the program itself ended well), ``"crash"`` (a signal), ``"output_limit"``,
        ``"denied"`` (killed for a forbidden system call), ``"harness"`` (the box failed, not the
        program).
    reason : str
        A few words; an empty text when all is well.
    exit_code, signal : int or None
        One of them, when the program ran to its end.
    stdout, stderr : Clipped
        What it printed.
    files, refused : dict
        Results by name, and why others were not taken.
    wall_s : float
        Seconds from start to end.
    cpu_s, peak_bytes : float or int, or None
        Of the whole box; None where no cgroup counted.
    oom_kill : int
        Processes killed for memory.
    isolation : Isolation
        What was in force.
    """

    status: Status
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    stdout: Clipped = _EMPTY
    stderr: Clipped = _EMPTY
    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    wall_s: float = 0.0
    cpu_s: float | None = None
    peak_bytes: int | None = None
    oom_kill: int = 0
    isolation: Isolation


def run(
    command: Sequence[str],
    *,
    files: Mapping[str, bytes | Path] | None = None,
    mounts: Mapping[str, Path] | None = None,
    limits: Limits,
    collect: Sequence[str] = (),
    stdin: bytes = b"",
    level: str = "auto",
    env: Mapping[str, str] | None = None,
    network: Network | None = None,
) -> Result:
    """Run a program in a box of its own and take the box away.

    Parameters
    ----------
    command : sequence of str
        The program, by name or path inside, with its arguments; it starts in ``/box``.
    files, mounts, level, env, network
        As of `Box`.
    limits : Limits
        What it may use.
    collect : sequence of str
        Names of results below ``/box``.
    stdin : bytes
        What it reads.

    Returns
    -------
    Result
        Whatever the program does, and whatever names and arguments a model chose.

    Raises
    ------
    SandboxUnavailable
        The level cannot be had here.
    UsageError
        There is no such level.
    """
    isolation = reach(level)
    if isolation.level == "container":
        container = importlib.import_module("harness.sandbox.container")
        return cast(
            "Result",
            container.run(
                command, files=files or {}, mounts=mounts or {}, limits=limits, collect=collect,
                stdin=stdin, env=env or {}, network=network,
            ),
        )  # fmt: skip
    return run_in(
        isolation, command, files=files, mounts=mounts, limits=limits, collect=collect,
        stdin=stdin, env=env, network=network,
    )  # fmt: skip


def run_in(
    isolation: Isolation,
    command: Sequence[str],
    *,
    limits: Limits,
    files: Mapping[str, bytes | Path] | None = None,
    mounts: Mapping[str, Path] | None = None,
    collect: Sequence[str] = (),
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    network: Network | None = None,
) -> Result:
    """Do what `run` does at a level that is already known to work."""
    try:
        with Box(
            limits, files=files, mounts=mounts, level=isolation, env=env, network=network
        ) as box:
            return _watch(box, command, collect, stdin)
    except SandboxUnavailable as error:
        return Result(status="harness", reason=str(error), isolation=isolation)
    except OSError as error:  # the machine has no descriptor or no memory left
        return Result(status="harness", reason=f"the sandbox failed: {error}", isolation=isolation)
    except HarnessError as error:
        return Result(status="error", reason=str(error), isolation=isolation)


class Streams:
    """Feeds stdin and drains stdout and stderr of a process at once, each in bounded memory."""

    def __init__(self, process: BoxProcess, cap: int, stdin: bytes) -> None:
        self._cap = cap
        self._left = memoryview(stdin)
        self._selector = selectors.DefaultSelector()
        self.kept = {process.stdout.fileno(): Ends(cap), process.stderr.fileno(): Ends(cap)}
        for handle in self.kept:
            os.set_blocking(handle, False)
            self._selector.register(handle, selectors.EVENT_READ)
        self._stdin = process.stdin
        if self._stdin is not None:
            os.set_blocking(self._stdin.fileno(), False)
            self._selector.register(self._stdin.fileno(), selectors.EVENT_WRITE)
        self.end = os.pidfd_open(process.pid)
        self._selector.register(self.end, selectors.EVENT_READ)

    def step(self, timeout: float) -> bool:
        """Move what can be moved; tell whether the process has ended."""
        ended = False
        for key, _ in self._selector.select(timeout):
            if key.fd == self.end:
                ended = True
            elif key.fd in self.kept:
                self._take(key.fd)
            else:
                self._feed(key.fd)
        return ended

    def flooded(self) -> bool:
        """Tell whether a stream has brought far more than anybody keeps."""
        return any(ends.total > _ENDLESS * self._cap for ends in self.kept.values())

    def drain(self) -> None:
        """Take what still lies in the pipes of a process that is dead with all its children."""
        for handle in list(self.kept):
            while handle in self._selector.get_map() and self._take(handle):
                pass

    def close(self) -> None:
        """Close what was opened here."""
        self._selector.close()
        os.close(self.end)

    def _take(self, handle: int) -> bool:
        try:
            data = os.read(handle, 65536)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(handle)
            return False
        self.kept[handle].add(data)
        return not self.flooded()

    def _feed(self, handle: int) -> None:
        assert self._stdin is not None
        try:
            sent = os.write(handle, self._left[:65536])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not care to read on
            sent = len(self._left)
        self._left = self._left[sent:]
        if not self._left:
            self._selector.unregister(handle)
            self._stdin.close()


def _watch(box: Box, command: Sequence[str], collect: Sequence[str], stdin: bytes) -> Result:
    limits = box.limits
    begin = time.monotonic()
    process = box.start(command, stdin=bool(stdin))
    streams = Streams(process, limits.output_kib * 1024, stdin)
    out, err = streams.kept.values()
    try:
        stopped = wait_for_end(box, streams, begin + limits.wall_s)
        wall = time.monotonic() - begin
        code = None if stopped else process.wait()
        box.kill()
        streams.drain()
    finally:
        streams.close()
    counters = box.counters()
    began = process.began()
    files, refused = box.collect(collect)
    exit_code, number = code_and_signal(code, box.isolation)
    status, reason = stopped or verdict_of(exit_code, number, began)
    if began == "failed":
        status, reason = "harness", last_line(err.clipped().text) or "the box did not start"
    elif counters.oom_kill:
        status, reason = "memory", f"{counters.oom_kill} processes killed for memory"
    elif spent := out_of_cpu(limits, number, counters.cpu_s, wall):
        status, reason = spent
    elif status == "error" and box.full():
        reason += ", job folder full"
    return Result(
        status=status, reason=reason, exit_code=exit_code, signal=number, stdout=out.clipped(),
        stderr=err.clipped(), files=files, refused=refused, wall_s=wall, cpu_s=counters.cpu_s,
        peak_bytes=counters.peak_bytes, oom_kill=counters.oom_kill, isolation=box.isolation,
    )  # fmt: skip


class Watched(Protocol):
    """What `wait_for_end` looks at: a box, or another place for a program."""

    @property
    def limits(self) -> Limits:
        """What the program may use."""

    def counters(self) -> Counters:
        """Give what it has used so far."""


def wait_for_end(watched: Watched, streams: Streams, deadline: float) -> tuple[Status, str] | None:
    """Wait for the end; give why the program must be stopped when it comes to that.

    Parameters
    ----------
    watched : Watched
        Its limits, and its counters for CPU seconds.
    streams : Streams
        Of the process; fed and drained while waiting.
    deadline : float
        Of `time.monotonic`.
    """
    limits = watched.limits
    look = time.monotonic() + _LOOK
    while True:
        now = time.monotonic()
        if now >= deadline:
            return "timeout", f"{limits.wall_s:g} s on the clock"
        if streams.step(min(deadline, look) - now if look > now else 0):
            return None
        if streams.flooded():
            return "output_limit", f"more than {_ENDLESS * limits.output_kib} KiB printed"
        if time.monotonic() >= look:
            # The kernel's own limit is per process; this one is for all of them together.
            if (watched.counters().cpu_s or 0) > limits.cpu_s + _LOOK:
                return "timeout", f"{limits.cpu_s:g} CPU seconds"
            look = time.monotonic() + _LOOK


def out_of_cpu(
    limits: Limits, number: int | None, seconds: float | None, wall_s: float
) -> tuple[Status, str] | None:
    """Say so when a program was ended for CPU time.

    Parameters
    ----------
    limits : Limits
        Of its box.
    number : int or None
        The signal that ended it. SIGXCPU says it all. A program that ignores it is killed, and
        then only the time that it took tells why.
    seconds : float or None
        CPU seconds; None where nobody counted, and as many cores as there are may have run.
    wall_s : float
        Seconds on the clock.
    """
    used = wall_s * (os.cpu_count() or 1) if seconds is None else seconds
    late = number == signal.SIGKILL and used >= _NEAR * limits.cpu_s
    if late or number == signal.SIGXCPU:
        return "timeout", f"{limits.cpu_s:g} CPU seconds"
    return None


def code_and_signal(code: int | None, isolation: Isolation) -> tuple[int | None, int | None]:
    """Tell exit code and signal apart; bwrap and sh report a signal as 128 and its number."""
    if code is None:
        return None, None
    if code < 0:
        return None, -code
    if isolation.level != "limits" and 128 < code <= 128 + signal.NSIG:
        return None, code - 128
    return code, None


def verdict_of(code: int | None, number: int | None, began: str) -> tuple[Status, str]:
    """Give status and reason of a program that ended by itself.

    Parameters
    ----------
    code, number : int or None
        Exit code or signal, one of them.
    began : str
        As of `BoxProcess.began`.
    """
    if began == "missing":
        return "error", "no such program"
    if number == signal.SIGSYS:
        return "denied", "forbidden system call"
    if number == signal.SIGXFSZ:
        return "error", "file size limit"
    if number is not None:
        names = {int(known): known.name for known in signal.Signals}
        return "crash", names.get(number, f"signal {number}")
    return ("ok", "") if code == 0 else ("error", f"exit code {code}")


def last_line(text: str) -> str:
    """Give the end of what a program said, short enough for one line."""
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""
