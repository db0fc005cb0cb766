"""Many programs over one imported engine: a parent in the box forks a child for each.

Importing a CAD kernel takes seconds, a fork milliseconds. The children of one pool share a user and
a box, so a pool serves the programs of one model and one run only.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.sandbox.channel import LONGEST_REPLY, Answer, Channel, Fault, shown, too_deep
from harness.sandbox.closing import Closing
from harness.sandbox.engine import Engine
from harness.sandbox.jobs import JobResult, no_line
from harness.sandbox.levels import AUTOMATIC, Isolation, reach
from harness.sandbox.limits import Limits
from harness.sandbox.run import verdict_of
from harness.sandbox.worker import python_command

_MARGIN_S = 5.0  # for the parent in the box to end a child, before the parent itself is ended
_TIDY_S = 30.0
_ENGINE_CPU_S = 300.0  # for the import, and for the forks of a whole pool


class _Said(msgspec.Struct):
    value: Any = None
    error: Fault | None = None


class ForkPool(Closing):
    """Runs programs one at a time, each in a child of its own with its own folder.

    A program's value is that of its last expression, which must be JSON. What it gets are the names
    of `setup`, and its arguments as ``args``.

    Parameters
    ----------
    preload : sequence of str
        Modules that the parent imports.
    limits : Limits
        ``wall_s``, ``cpu_s`` and ``memory_mib`` are those of one program (memory beyond what the
        engine has mapped, and of the whole box where there is a cgroup); the rest are the box's.
    setup : str
        Python that the parent runs once, after the imports.
    files, mounts, env, level
        As of `Box`.
    start_s : float
        Seconds until the engine must be imported.
    python : str, optional
        The interpreter, as the box sees it.
    """

    def __init__(
        self,
        preload: Sequence[str],
        limits: Limits,
        *,
        setup: str = "",
        files: Mapping[str, bytes | Path] | None = None,
        mounts: Mapping[str, Path] | None = None,
        level: str | Isolation = "auto",
        env: Mapping[str, str] | None = None,
        start_s: float = 120.0,
        python: str | None = None,
    ) -> None:
        self.limits = limits
        self.isolation = level if isinstance(level, Isolation) else reach(level)
        own_root = self.isolation.level in AUTOMATIC
        greeting = {
            "preload": list(preload),
            "setup": setup,
            "places": ["/box", "/tmp", "/dev/shm"] if own_root else ["."],  # noqa: S108  the box's
        }
        # The kernel counts the CPU seconds of each process from its fork.
        whole = msgspec.structs.replace(limits, cpu_s=limits.cpu_s + _ENGINE_CPU_S)
        self._engine = Engine(
            python_command(self.isolation, "_fork_main.py", python), whole, greeting,
            start_s=start_s, longest=8 * LONGEST_REPLY, files=files, mounts=mounts, env=env,
            level=self.isolation,
        )  # fmt: skip
        self._count = 0

    @property
    def starts(self) -> int:
        """How many parents were started so far."""
        return self._engine.starts

    def run(
        self,
        code: str,
        args: Any = None,
        *,
        wall_s: float | None = None,
        collect: Sequence[str] = (),
    ) -> JobResult:
        """Run a program; after a fault of its own the next one gets a new parent.

        Parameters
        ----------
        code : str
            Python.
        args : JSON
            The program's ``args``.
        wall_s : float, optional
            Seconds; ``limits.wall_s`` by default.
        collect : sequence of str
            Names of results in its folder, which is its working folder and is then removed.

        Raises
        ------
        UsageError
            A file's name or a path that no box can have.
        """
        with self._engine.lock:
            channel = self._engine.ready()
            if isinstance(channel, JobResult):
                return channel
            wall = self.limits.wall_s if wall_s is None else wall_s
            result = self._run(channel, code, args, wall, collect)
            if result.left or result.reason == "protocol" or not channel.alive:
                self._engine.end()
            if self._engine.closed and result.status != "ok":
                return JobResult(status="harness", reason="closed")
            return result

    def close(self) -> None:
        """End the pool, from any thread; a program under way returns."""
        self._engine.close()

    def _run(
        self, channel: Channel, code: str, args: Any, wall_s: float, collect: Sequence[str]
    ) -> JobResult:
        self._count += 1
        folder = f"job-{self._count}"
        request = {
            "code": code,
            "args": args,
            "folder": folder,
            "wall_s": wall_s,
            "longest": LONGEST_REPLY,
            "cpu_s": math.ceil(self.limits.cpu_s),
            "memory_bytes": self.limits.memory_mib * 2**20,
        }
        # A program that forks could else use as much CPU as the clock allows.
        answer = channel.ask(request, wall_s + _MARGIN_S, math.ceil(self.limits.cpu_s) + 1)
        if answer.line is None:
            return no_line(answer)
        files, refused = channel.box.collect([f"{folder}/{name}" for name in collect])
        start = len(folder) + 1
        status, reason, said = self._judged(answer)
        tidied = channel.ask({"tidy": folder}, _TIDY_S, _TIDY_S)
        return JobResult(
            status=status,
            reason=reason,
            value=said.value,
            error=shown(said.error),
            stdout=answer.stdout,
            stderr=answer.stderr,
            files={name[start:]: content for name, content in files.items()},
            refused={name[start:]: why for name, why in refused.items()},
            wall_s=answer.wall_s,
            left="processes" if tidied.line is None else tidied.line.left,
        )

    def _judged(self, answer: Answer) -> tuple[Any, str | None, _Said]:
        """Tell from how the child ended what became of the program."""
        assert answer.line is not None
        ended, nothing = answer.line.ended, _Said()
        number = ended.get("signal")
        if answer.status != "ok":
            return answer.status, answer.reason, nothing
        if "wall" in ended:
            return "timeout", "wall", nothing
        if "long" in ended:
            return "error", "protocol", nothing
        late = ended["cpu_ms"] >= 0.8e3 * math.ceil(self.limits.cpu_s)
        if number == signal.SIGXCPU or (number == signal.SIGKILL and late):
            return "timeout", "cpu", nothing
        if number is not None:
            return *verdict_of(None, number, "ready"), nothing
        try:
            said = msgspec.json.decode(answer.line.value, type=_Said)
        except (msgspec.DecodeError, RecursionError, TypeError):
            # An end of its own making says nothing; a text that is no reply is a forged one.
            silent = not answer.line.value
            return "error", "no_result" if silent else "protocol", nothing
        if too_deep(said.value):
            return "error", "protocol", nothing
        return ("ok" if said.error is None else "error"), None, said
