"""A network of one attempt, and the services on it: what a model attacks and never sees from within.

The boxes of an attempt share a network namespace whose only device is its own loopback. Each has its
own files, processes and user, so the server's box shows the model nothing but its port.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from harness.core.errors import UsageError
from harness.sandbox import warden
from harness.sandbox.box import Box
from harness.sandbox.cgroup import Counters
from harness.sandbox.checks import check_command
from harness.sandbox.closing import Closing
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.levels import AUTOMATIC, Isolation, program, reach
from harness.sandbox.limits import LIMITS, Limits
from harness.sandbox.process import BoxProcess, readable
from harness.sandbox.spawn import close_all, pipe, spawn
from harness.sandbox.worker import python_command

CLIENTS = 20
"""Connections to a service at one time; more are refused."""
_READY_S = 60.0
_READS = 16  # of what the bridge says, at one look: a server taken over may write without end
_MOST_DEATHS = 100  # kept of one service, for what kills it may be asked for again and again


class Network(Closing):
    """A network namespace that the boxes of one attempt share; nothing else is in reach from it.

    Parameters
    ----------
    level : str or Isolation
        See `reach`; the boxes that join must have the same.

    Raises
    ------
    SandboxUnavailable
        The level cannot be had, or has no network of its own.
    """

    def __init__(self, level: str | Isolation = "auto") -> None:
        self.isolation = level if isinstance(level, Isolation) else reach(level)
        if self.isolation.level not in AUTOMATIC:
            raise SandboxUnavailable(
                f"sandbox level {self.isolation.level} has no network for a service: "
                f"use one of {', '.join(AUTOMATIC)}"
            )
        user = ["--user", "--map-root-user"] if self.isolation.userns else []
        ready, ready_in = pipe()
        wait, self._alive = pipe()
        try:
            self._holder = spawn(
                [program("unshare"), *user, "--net", "--", *_own_python()],
                descriptors={9: ready_in}, stdin=wait,
            )  # fmt: skip
        except BaseException:
            close_all(ready, self._alive)
            raise
        finally:
            close_all(ready_in, wait)
        self._closed = False
        try:
            if os.read(ready, 1) != b"r":
                said = _said(self._holder.stderr)
                raise SandboxUnavailable(f"no network namespace for a service: {said}")
        except BaseException:
            self.close()
            raise
        finally:
            close_all(ready)

    @property
    def enter(self) -> Sequence[str]:
        """The command line, with its closing ``--``, that runs what follows in the namespace."""
        if self._closed:
            raise SandboxUnavailable("the network is closed")
        user = ["--user", "--preserve-credentials"] if self.isolation.userns else []
        return [program("nsenter"), "--target", str(self._holder.pid), *user, "--net", "--"]

    def close(self) -> None:
        """End it; boxes that are still in it keep it until they end. May be called more than once."""
        self._closed = True
        self._holder.kill()
        self._holder.wait()
        warden.forget(self._holder.pid)
        # Taken out first: closing a number twice would close somebody else's.
        alive, self._alive = self._alive, -1
        close_all(alive, self._holder.stdout, self._holder.stderr)


class Death(msgspec.Struct, frozen=True):
    """An end of a service's program, or of the whole service, that nobody asked for.

    Attributes
    ----------
    reason : str
        A signal's name, ``"memory"``, or ``"service: …"`` when the whole box ended.
    input : str or None
        SHA-256 of what the client had sent, hex: the same input that kills twice is the model's
        doing. None when the whole box ended.
    """

    reason: str
    input: str | None = None


class Service(Closing):
    """A program that listens on a port of a network, in a box of its own.

    Each connection gets a process of the program, with the socket as its input, output and errors.

    Parameters
    ----------
    files : mapping
        What lies in the server's ``/box``, read-only: the challenge and its flag. The model's box
        shows none of it.
    command : sequence of str
        The program with its arguments.
    network : Network
        Where it listens; its level is the service's.
    port : int
        On 127.0.0.1 of that network.
    limits : Limits, optional
        Of the whole box, except ``output_kib``: what one connection may be sent before it is cut.
        ``LIMITS["server"]`` by default.
    clients : int
        Connections at one time.
    env, mounts : mapping
        As of `Box`.

    Raises
    ------
    SandboxUnavailable
        The box cannot be made.
    UsageError
        A port, name or path that cannot be had.
    """

    def __init__(
        self,
        files: Mapping[str, bytes | Path],
        command: Sequence[str],
        *,
        network: Network,
        port: int = 1337,
        limits: Limits | None = None,
        clients: int = CLIENTS,
        env: Mapping[str, str] | None = None,
        mounts: Mapping[str, Path] | None = None,
    ) -> None:
        check_command(command)
        if not 1 <= port <= 65535:
            raise UsageError(f"port {port} of a service: give a number from 1 to 65535")
        self.port = port
        self.network = network
        self._limits = limits or LIMITS["server"]
        words = (port, clients, self._limits.output_kib * 1024)
        bridge = python_command(network.isolation, "_bridge_main.py")
        self._command = [*bridge, *map(str, words), *command]
        # Output to a socket is held back by Python, and a client would wait for it forever.
        self._env = {"PYTHONUNBUFFERED": "1", **(env or {})}
        self._files, self._mounts = dict(files), mounts
        self._lock = threading.RLock()
        self._deaths: list[Death] = []
        self._ready, self._dead, self._why = False, False, ""
        self._rest = b""
        self._box: Box
        self._process: BoxProcess
        self._start()

    @property
    def isolation(self) -> Isolation:
        """What is in force around the server."""
        return self._box.isolation

    @property
    def alive(self) -> bool:
        """Whether it still serves; a program that dies takes only its own connection along."""
        with self._lock:
            self._listen(0)
            return not self._dead

    @property
    def deaths(self) -> tuple[Death, ...]:
        """What died, and of which input, over all restarts."""
        with self._lock:
            self._listen(0)
            return tuple(self._deaths)

    def wait_ready(self, timeout: float = _READY_S) -> None:
        """Wait until it listens.

        Parameters
        ----------
        timeout : float
            Seconds at most.

        Raises
        ------
        SandboxUnavailable
            It ended instead, with the reason (the port may be taken), or took too long.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            while not self._ready and not self._dead:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise SandboxUnavailable(f"the service is not ready after {timeout:g} s")
                self._listen(left)
            if self._dead:
                raise SandboxUnavailable(f"the service did not start: {self._why}")

    def restart(self) -> None:
        """Take the box away and start a new one on the same port; `wait_ready` is the caller's."""
        with self._lock:
            self._listen(0)
            self._box.close()
            self._start()

    def counters(self) -> Counters:
        """Read what the server has used; see `Box.counters`."""
        return self._box.counters()

    def close(self) -> None:
        """End it and remove its box; may be called more than once."""
        with self._lock:
            if not self._dead:
                self._listen(0)
            self._dead = True
            self._box.close()

    def _start(self) -> None:
        self._ready, self._dead, self._why = False, False, ""
        self._rest = b""
        self._box = Box(
            self._limits, files=self._files, mounts=self._mounts, env=self._env,
            level=self.network.isolation, network=self.network,
        )  # fmt: skip
        try:
            self._process = self._box.start(self._command, pipes=True)
        except BaseException:
            self._box.close()
            raise

    def _listen(self, timeout: float) -> None:
        """Take what the bridge says, a bounded part of it; at most one wait."""
        for _ in range(_READS):
            if self._dead or not readable(self._process.reply, timeout):
                return
            timeout = 0
            data = os.read(self._process.reply, 65536)
            if not data:
                self._died()
                return
            *lines, rest = (self._rest + data).split(b"\n")
            self._rest = rest[-65536:]
            for line in lines:
                self._hear(line)

    def _hear(self, line: bytes) -> None:
        # A program that was taken over may write here too: what makes no sense is passed over.
        try:
            said = msgspec.json.decode(line, type=_Said)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return
        self._ready = self._ready or said.ready
        if said.signal and len(self._deaths) < _MOST_DEATHS:
            self._deaths.append(Death(_signal(said.signal), said.input))

    def _died(self) -> None:
        self._dead = True
        self._process.end()
        code = self._process.wait() or 0
        number = -code if code < 0 else code - 128
        ended = _signal(number) if number > 0 else f"exit code {code}"
        ended = "memory" if self.counters().oom_kill else ended
        self._why = _said(self._process.stderr) or ended
        if self._ready:
            self._deaths.append(Death(f"service: {ended}"))


class _Said(msgspec.Struct):
    ready: bool = False
    signal: Annotated[int, msgspec.Meta(ge=0, le=64)] = 0
    input: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _said(stderr: object) -> str:
    """Give the last line of what a process that has ended wrote to its errors."""
    read = getattr(stderr, "read", None)
    lines = read(65536).decode(errors="replace").strip().splitlines() if read else []
    return lines[-1][:300] if lines else ""


def _own_python() -> list[str]:
    """Give the command line of the holder: its text, for an ordinary user may not see our files."""
    own = sys.executable if os.access(sys.executable, os.X_OK) else program("python3")
    script = Path(__file__).with_name("_network_main.py").read_text(encoding="utf-8")
    return [own, "-I", "-S", "-c", script]
