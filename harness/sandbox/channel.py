"""Talking to a program in a box: a request line in, a reply line out, and nothing is trusted.

What the program prints is read at the same time, with caps, so that it can neither block the harness
nor fill its memory. Every request carries an id that cannot be guessed; a line with another id, a
line that nobody asked for, or one that is too long is a *protocol fault*, and so the end of the
program.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import selectors
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.sandbox.box import Box
from harness.sandbox.output import Clipped, Ends, readable
from harness.sandbox.run import Status, code_and_signal, out_of_cpu, verdict_of

LONGEST_REPLY = 2**20  # bytes of one reply line
_ENDLESS = 16  # times the cap of one stream: more in one call is no output but a flood
_LOOK = 0.25  # seconds between two looks at the CPU clock of the whole box
_DEEPEST = 100  # levels of a value: who stores or shows it later goes down into each
_FAREWELL_S = 0.25  # for a program that closed its pipe to end by itself and show its exit code


class Fault(msgspec.Struct, frozen=True):
    """An error inside the box, as the program there tells it: a claim.

    Attributes
    ----------
    name, message, trace : str
        The exception's class, its text, and where it was raised.
    """

    name: str
    message: str
    trace: str


class Line(msgspec.Struct, frozen=True):
    """A reply line, of which every kind of program uses a part.

    Attributes
    ----------
    n : str
        The id of the request.
    value : Any
        What came of it.
    error : Fault or None
        What was raised instead.
    plots : list of str
        PNG images in base64.
    ended : dict
        How a child of the program ended.
    left : str
        What a child has left behind.
    """

    n: str
    value: Any = None
    error: Fault | None = None
    plots: list[str] = []
    ended: dict[str, int] = {}
    left: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request.

    Attributes
    ----------
    status : Status
        ``"ok"``: a proper line came, whatever it says. After anything else the program is dead.
    reason : str or None
        A short machine word for the rest.
    line : Line or None
        The reply.
    stdout, stderr : Clipped
        What was printed since the last request.
    wall_s : float
        Seconds waited.
    """

    status: Status
    reason: str | None
    line: Line | None
    stdout: Clipped
    stderr: Clipped
    wall_s: float


class Channel:
    """A program in a box and the pipes to it; used by one thread at a time, except `kill`.

    Parameters
    ----------
    box : Box
        Its own; closed with the channel.
    command : sequence of str
        The program, which reads requests from descriptor 3 and writes replies to descriptor 4.
    longest : int
        Bytes of one reply line.
    """

    def __init__(self, box: Box, command: Sequence[str], longest: int = LONGEST_REPLY) -> None:
        self.box = box
        self.alive = True
        self._longest = longest
        self._begin = time.monotonic()
        self._process = process = box.start(command, pipes=True)
        self._end = os.pidfd_open(process.pid)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._end, selectors.EVENT_READ)
        self._cap = box.limits.output_kib * 1024
        printed = (process.stdout.fileno(), process.stderr.fileno())
        self._streams = {handle: Ends(self._cap) for handle in printed}
        for handle in (*self._streams, process.reply):
            os.set_blocking(handle, False)
            self._selector.register(handle, selectors.EVENT_READ)
        os.set_blocking(process.request, False)
        self._left = b""  # of the request, not taken by the pipe so far
        self._got = bytearray()  # of the reply
        self._kills = 0

    def post(self, request: Mapping[str, Any]) -> str:
        """Send a request and do not wait; give its id."""
        number = secrets.token_hex(8)
        self._left = json.dumps({"n": number, **request}).encode() + b"\n"
        self._feed()
        if self._left:
            self._selector.register(self._process.request, selectors.EVENT_WRITE)
        return number

    def ask(self, request: Mapping[str, Any], wall_s: float, cpu_s: float | None = None) -> Answer:
        """Send a request and wait for its reply.

        Parameters
        ----------
        request : mapping
            What goes into the line, as JSON.
        wall_s : float
            Seconds to wait at most.
        cpu_s : float, optional
            CPU seconds of the whole box for this request; by default its limit counts over its life.
        """
        begin = time.monotonic()
        early = self.early()
        if early is not None:
            return self._answer(early, None, begin)
        return self.wait(self.post(request), wall_s, cpu_s)

    def wait(self, number: str, wall_s: float, cpu_s: float | None = None) -> Answer:
        """Wait for the reply to a request that was posted."""
        begin = time.monotonic()
        status: tuple[Status, str | None] = ("ok", None)
        line = None
        most = self.box.limits.cpu_s if cpu_s is None else self._cpu_s() + cpu_s
        failed = self._until_line(begin + wall_s, most)
        if failed is None:
            # Whatever it printed before it replied lies in the pipes: that much and no more.
            for handle in self._streams:
                self._take(handle, _waiting(handle))
            # A reply to a request that was not yet read to its end is no honest one.
            line = None if self._left else self._line(number)
            failed = ("error", "protocol") if line is None else self._flooded()
        if failed is not None:
            status, line = failed, None
        elif (kills := self.box.counters().oom_kill) > self._kills:
            # Of a child: the program itself lives, and has a word on it or none.
            self._kills = kills
            status = ("memory", "oom_kill")
        return self._answer(status, line, begin)

    def kill(self) -> None:
        """Kill the program, from any thread; a wait under way returns."""
        self._process.kill()

    def close(self) -> None:
        """End the program and take its box away."""
        if self._end >= 0:
            self._selector.close()
            os.close(self._end)
            self._end = -1
        self.alive = False
        self.box.close()

    def printed(self) -> tuple[Clipped, Clipped]:
        """Give what the program has printed since the last time, and forget it."""
        out, err = (ends.clipped() for ends in self._streams.values())
        self._streams = {handle: Ends(self._cap) for handle in self._streams}
        return out, err

    def _answer(self, status: tuple[Status, str | None], line: Line | None, begin: float) -> Answer:
        if line is None:
            self.alive = False
            self.box.kill()
            for handle in self._streams:
                self._take(handle, _waiting(handle))
        out, err = self.printed()
        return Answer(
            status=status[0], reason=status[1], line=line, stdout=out, stderr=err,
            wall_s=time.monotonic() - begin,
        )  # fmt: skip

    def early(self) -> tuple[Status, str | None] | None:
        """See that nothing was said before it was asked for, and that somebody is there."""
        try:
            data = os.read(self._process.reply, 1)
        except BlockingIOError:
            return ("error", "protocol") if self._got else None
        return ("error", "protocol") if data else self._ending()

    def _cpu_s(self) -> float:
        return self.box.counters().cpu_s or 0.0

    def _until_line(self, deadline: float, cpu_s: float) -> tuple[Status, str | None] | None:
        """Move bytes until a whole line is there; give why none will come."""
        look = time.monotonic() + _LOOK
        while True:
            now = time.monotonic()
            if now >= deadline:
                return "timeout", "wall"
            if now >= look:
                # The kernel's own limit is per process; this one is for all of them together.
                if self._cpu_s() > cpu_s + _LOOK:
                    return "timeout", "cpu"
                look = now + _LOOK
            ended = False
            for key, _ in self._selector.select(min(deadline, look) - now):
                if key.fd in self._streams:
                    self._take(key.fd, 65536)
                elif key.fd == self._process.request:
                    self._feed()
                    if not self._left:
                        self._selector.unregister(key.fd)
                ended = ended or key.fd == self._end
            gone = not self._hear()
            if flooded := self._flooded():
                return flooded
            if b"\n" in self._got:
                return None
            if len(self._got) > self._longest:
                return "error", "protocol"
            if gone or ended:
                # Ended before it was heard, so that nothing more can have come.
                return self._ending()

    def _flooded(self) -> tuple[Status, str | None] | None:
        over = any(ends.total > _ENDLESS * self._cap for ends in self._streams.values())
        return ("output_limit", "output") if over else None

    def _hear(self) -> bool:
        """Take what has come of the reply; False when no more can come."""
        try:
            while len(self._got) <= self._longest:
                data = os.read(self._process.reply, 65536)
                if not data:
                    return False
                self._got += data
        except BlockingIOError:
            pass
        return True

    def _line(self, number: str) -> Line | None:
        """Read the one line that is there; None when it is not what it should be."""
        raw, _, more = bytes(self._got).partition(b"\n")
        self._got.clear()
        self._hear()  # a second line, when it came along with the first
        if more or self._got or len(raw) > self._longest:
            return None
        try:
            line = msgspec.json.decode(raw, type=Line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        return line if line.n == number and not too_deep(line.value) else None

    def _feed(self) -> None:
        try:
            self._left = self._left[os.write(self._process.request, self._left) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it is dead, or listens no more: waiting for it will show
            self._left = b""

    def _take(self, handle: int, most: int) -> None:
        """Read at most so many bytes of a stream."""
        while most > 0:
            try:
                data = os.read(handle, most)
            except BlockingIOError:
                return
            if not data:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(handle)
                return
            self._streams[handle].add(data)
            most -= len(data)

    def _ending(self) -> tuple[Status, str | None]:
        """Judge, from outside, a program that will not speak again."""
        code = self._process.wait(_FAREWELL_S)
        exit_code, number = code_and_signal(code, self.box.isolation)
        counters = self.box.counters()
        if counters.oom_kill > self._kills:
            return "memory", "oom_kill"
        life = time.monotonic() - self._begin
        if out_of_cpu(self.box.limits, number, counters.cpu_s, life):
            return "timeout", "cpu"
        if number is not None:
            return verdict_of(exit_code, number, "ready")
        return "error", "worker_died"


def shown(fault: Fault | None) -> Fault | None:
    """Give an error so that its text can do no harm to a terminal or a page."""
    if fault is None:
        return None
    return Fault(*(readable(text.encode()) for text in (fault.name, fault.message, fault.trace)))


def too_deep(value: Any) -> bool:
    """Tell whether a value from JSON is nested so deep that it could end whoever handles it.

    Examples
    --------
    >>> too_deep([{"a": [1]}]), too_deep(msgspec.json.decode("[" * 200 + "]" * 200))
    (False, True)
    """
    level = [value]
    for _ in range(_DEEPEST):
        lists = (item for item in level if isinstance(item, list | dict))
        below = (item.values() if isinstance(item, dict) else item for item in lists)
        level = [item for items in below for item in items]
        if not level:
            return False
    return True


def last_line(output: Clipped) -> str:
    """Give the last line of what was printed: of a program that does not start, the reason."""
    lines = output.text.strip().splitlines()
    return lines[-1][:300] if lines else ""


def _waiting(handle: int) -> int:
    """Give how many bytes can be read from a pipe right now."""
    answer = fcntl.ioctl(handle, termios.FIONREAD, b"\0\0\0\0")
    count: int = struct.unpack("i", answer)[0]
    return count
