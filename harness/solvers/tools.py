"""Generic tools of an agent: Python that keeps its state, a shell, files, and the submission.

`Workbench` is an environment of them. All of them work in one box that lives as long as the attempt,
so a file that one makes is there for the others.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from harness.core.environment import SandboxLevel, ToolResult
from harness.core.types import Message, Tool, ToolCall

if TYPE_CHECKING:
    from harness.sandbox import Counters, Limits
    from harness.sandbox.box import Network
    from harness.sandbox.worker import Reply, Worker

SUBMIT = "submit"
ENDING = (SUBMIT, "answer")
"""Names of tools that may end the work: taken even when the time is used up, or in a last reply."""


def _tool(name: str, description: str, **parameters: str) -> Tool:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, description, schema)


PYTHON = _tool(
    "python",
    "Runs Python and gives back what it prints and the value of the last expression. Variables and "
    "files stay from one call to the next.",
    code="The program.",
)
BASH = _tool(
    "bash",
    "Runs a line of shell and gives back its output and exit code. Files stay from one call to the "
    "next, in the same folder as Python's; variables and the current folder do not.",
    command="The command.",
)
CREATE_FILE = _tool(
    "create_file",
    "Writes a text file, in place of one of the same name.",
    path="Relative to the working folder.",
    content="The whole text.",
)
SUBMIT_ANSWER = _tool(SUBMIT, "Hands in the final answer and ends the work.", answer="The answer.")
TOOLS: dict[str, Tool] = {tool.name: tool for tool in (PYTHON, BASH, CREATE_FILE, SUBMIT_ANSWER)}

# What is run in the worker. The names live in a scope of their own: the model's are not touched.
_SHELL = """
import os, signal, subprocess
process = subprocess.Popen(['bash', '-c', command], stdin=subprocess.DEVNULL, start_new_session=True)
try:
    process.wait(wall)
    value = process.returncode
except subprocess.TimeoutExpired:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    value = 'timeout'
"""
_WRITE = """
import os
os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
with open(path, 'w', encoding='utf-8', newline='') as file:
    value = file.write(content)
"""
_MARGIN_S = 2.0  # for a shell line to be ended inside the box, so that the box need not be
_LOST = "[The earlier process is gone, and its variables and files with it.]\n"


class Workbench:
    """An environment of generic tools in one box.

    Parameters
    ----------
    level : SandboxLevel
        The isolation asked for (`EnvironmentRequest.level`).
    tools : sequence of str
        Names from `TOOLS`, in the order that the model sees.
    limits : Limits, optional
        Of the box, and ``wall_s`` of one call; ``LIMITS["cell"]`` by default.
    files : mapping
        What lies in the working folder from the start: name to bytes or to a path on the host.
    mounts : mapping
        Path inside to path on the host, read-only.
    preload : sequence of str
        Modules that are imported before the first call.
    network : Network, optional
        Of a service that the model may talk to (`harness.sandbox.Network`); made for this attempt
        alone and ended by whoever made it.
    keep : sequence of str
        Names of files that outlive their box: when a call loses it, they stay as they then were,
        for `collect`. The next box does not have them.
    """

    def __init__(
        self,
        *,
        level: SandboxLevel = "auto",
        tools: Sequence[str] = tuple(TOOLS),
        limits: Limits | None = None,
        files: Mapping[str, bytes | Path] | None = None,
        mounts: Mapping[str, Path] | None = None,
        preload: Sequence[str] = (),
        network: Network | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        self.tools: tuple[Tool, ...] = tuple(TOOLS[name] for name in tools)
        self._level = level
        self._limits = limits
        self._files = dict(files or {})
        self._mounts = dict(mounts or {})
        self._preload = tuple(preload)
        self._network = network
        self._keep = tuple(keep)
        self._kept: dict[str, bytes] = {}
        self._worker: Worker | None = None
        self._isolation: Mapping[str, Any] | None = None
        self._lost = False
        self._cpu_s = 0.0
        self._killed = False
        self._lock = threading.Lock()  # between a call that starts a worker and `kill`

    def __enter__(self) -> Self:
        """Find the isolation; the box is started by the first call that needs it."""
        from harness.sandbox import LIMITS, reach

        self._isolation = msgspec.to_builtins(reach(self._level))
        self._limits = self._limits or LIMITS["cell"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the box."""
        self._drop()

    def call(self, call: ToolCall, wall_s: float) -> ToolResult:
        """Carry out a call; see `harness.core.environment.Environment`."""
        given = dict(call.arguments) if isinstance(call.arguments, dict) else {}
        if call.name == SUBMIT:
            return ToolResult(
                text="Submitted.", submitted=str(given["answer"]), isolation=self._isolation
            )
        if call.name == "create_file":
            path = PurePosixPath(given["path"])
            if path.is_absolute() or ".." in path.parts or not path.name:
                return self._refused(f"{given['path']!r} does not lie in the working folder.")
            scope = {"path": str(path), "content": given["content"]}
            return self._run(_in_scope(_WRITE, scope), wall_s, done=f"{path} is written.")
        if call.name == "bash":
            wall = min(wall_s, self._wall_s)
            scope = {"command": given["command"], "wall": max(wall - _MARGIN_S, wall / 2)}
            return self._run(_in_scope(_SHELL, scope), wall_s, line=True)
        return self._run(given["code"], wall_s)

    def collect(self, names: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Read files of the working folder; see `harness.sandbox.Box.collect`."""
        worker = self._worker
        if worker is None:  # no call was made yet, or the box is gone with its files
            files, refused = dict[str, bytes](), dict.fromkeys(names, "missing")
        else:
            files, refused = worker.collect(names)
        for name in names:
            if name in self._kept and refused.get(name) == "missing":
                files[name] = self._kept[name]
                del refused[name]
        return files, refused

    def kill(self) -> None:
        """End the box at once, from any thread."""
        with self._lock:
            self._killed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    @property
    def _wall_s(self) -> float:
        assert self._limits is not None  # set on entering
        return self._limits.wall_s

    def _run(
        self, code: str, wall_s: float, *, line: bool = False, done: str | None = None
    ) -> ToolResult:
        worker = self._started()
        if worker is None:
            return ToolResult(text="stopped", status="harness", reason="stopped")
        reply = worker.execute(code, min(wall_s, self._wall_s))
        text = _LOST if self._lost else ""
        self._lost = not worker.alive
        used = self._used(worker)
        if self._lost:
            if self._keep:
                self._kept |= worker.collect(self._keep)[0]
            self._drop()
        status, reason = reply.status, reply.reason
        if line and reply.value == "'timeout'":
            status, reason = "timeout", "wall"
        shown = _shown(reply, line=line) if done is None or status != "ok" else done
        if status == "timeout":
            shown += "[The time limit was reached.]\n"
        elif status not in ("ok", "error") or (
            status == "error" and reply.error is None and not line
        ):
            shown += f"[Ended: {reason or status}.]\n"
        facts = {
            "bytes_out": reply.stdout.bytes_total + reply.stderr.bytes_total,
            "bytes_cut": reply.stdout.bytes_cut + reply.stderr.bytes_cut,
            **used,
        }
        return ToolResult(
            text=text + shown, status=status, reason=reason, isolation=self._isolation, facts=facts
        )

    def _used(self, worker: Worker) -> dict[str, float | int | None]:
        """Give what the box has used, CPU since the call before; nothing where it cannot tell."""
        counters = getattr(worker, "counters", None)
        if counters is None:
            return {}
        now: Counters = counters()
        cpu = None if now.cpu_s is None else round(now.cpu_s - self._cpu_s, 4)
        self._cpu_s = 0.0 if self._lost else now.cpu_s or 0.0
        return {"cpu_s": cpu, "peak_bytes": now.peak_bytes, "oom_kill": now.oom_kill}

    def _started(self) -> Worker | None:
        from harness.sandbox.worker import Worker

        with self._lock:
            if self._killed:
                return None
            if self._worker is None:
                assert self._limits is not None  # set on entering
                self._worker = Worker(
                    self._limits, mounts=self._mounts, files=self._files, preload=self._preload,
                    level=self._level, network=self._network,
                )  # fmt: skip
            return self._worker

    def _drop(self) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _refused(self, text: str) -> ToolResult:
        return ToolResult(
            text=text, status="denied", reason="bad_arguments", isolation=self._isolation
        )


def _in_scope(program: str, scope: Mapping[str, Any]) -> str:
    """Write a program as one expression that leaves no name behind; its value is ``value``."""
    return f"(lambda scope: (exec({program!r}, scope), scope['value'])[1])({dict(scope)!r})"


def _shown(reply: Reply, *, line: bool) -> str:
    """Put together what the model sees of a reply: both streams, the value, the error."""
    parts = [reply.stdout.text]
    if reply.stderr.text:
        parts.append(f"[stderr]\n{reply.stderr.text}")
    if line and reply.value not in (None, "'timeout'"):
        parts.append(f"[exit code {reply.value}]")
    elif not line and reply.value is not None:
        parts.append(reply.value if not reply.stdout.text else f"[value]\n{reply.value}")
    if reply.error is not None and not line:
        error = reply.error
        parts.append(f"[error]\n{error.trace or f'{error.name}: {error.message}'}")
    if reply.plots:
        parts.append(f"[{len(reply.plots)} plots, which cannot be shown]")
    text = "".join(part if part.endswith("\n") else f"{part}\n" for part in parts if part)
    return text or "[no output]\n"


def gold_call(tool: str, text: str = "", **arguments: Any) -> Message:
    """Make a turn of gold that calls a tool: one call a turn, written by the solver's protocol.

    Examples
    --------
    >>> gold_call("submit", answer="42").tool_calls[0].arguments
    {'answer': '42'}
    """
    return Message("assistant", text, tool_calls=(ToolCall("gold", tool, arguments),))


def checked(call: ToolCall, tool: Tool | None, known: Mapping[str, Tool]) -> ToolCall | ToolResult:
    """Check a call against its tool: give it with its values in the types asked for, or a refusal.

    Text protocols write every value as text, so a number is read where the schema asks for one.
    """
    if tool is None:
        return _wrong(f"There is no tool {call.name!r}; there are: {', '.join(known)}.")
    if not isinstance(call.arguments, dict):
        return _wrong(f"Not run: {call.fault or 'the arguments cannot be read'}.")
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    arguments = dict(call.arguments)
    for name in tool.parameters.get("required", ()):
        if name not in arguments:
            return _wrong(f"Not run: {tool.name} needs the argument {name!r}.")
    for name, value in arguments.items():
        if name not in properties:
            return _wrong(f"Not run: {tool.name} has no argument {name!r}.")
        wanted = properties[name].get("type")
        if wanted == "string" and not isinstance(value, str):
            arguments[name] = msgspec.json.encode(value).decode()
        elif wanted in _READ and not isinstance(value, _READ[wanted]):
            try:
                arguments[name] = msgspec.convert(value, _READ[wanted], strict=False)
            except msgspec.ValidationError:
                return _wrong(f"Not run: the argument {name!r} of {tool.name} must be a {wanted}.")
    return msgspec.structs.replace(call, arguments=arguments)


_READ: dict[str, type] = {"integer": int, "number": float, "boolean": bool}


def _wrong(text: str) -> ToolResult:
    return ToolResult(text=text, status="denied", reason="bad_call")


def cut_middle(text: str, most: int) -> str:
    r"""Cut the middle out of a text of more than `most` bytes (UTF-8), and say how much.

    Cuts at white space where there is some near, so that a number is whole or gone.

    Examples
    --------
    >>> cut_middle("1 2 3 4 5 6 7 8 9 10", 8)
    '1 2\n[13 bytes cut]\n10'
    """
    raw = text.encode("utf-8", "backslashreplace")
    if len(raw) <= most:
        return text
    head = _until_space(raw[: most // 2])
    tail = _until_space(raw[len(raw) - most // 2 :][::-1])[::-1]
    cut = len(raw) - len(head) - len(tail)
    shown = (head.decode(errors="ignore").rstrip(), tail.decode(errors="ignore").lstrip())
    return f"{shown[0]}\n[{cut} bytes cut]\n{shown[1]}"


_NEAR = 200  # bytes


def _until_space(raw: bytes) -> bytes:
    at = max(raw.rfind(mark) for mark in (b" ", b"\n", b"\t", b","))
    return raw[: at + 1] if at >= max(len(raw) - _NEAR, 0) else raw
