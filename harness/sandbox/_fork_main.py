"""What runs in the box of a `ForkPool`: imports the engine once and forks a child for each program.

It imports nothing of the harness. The children have its user, so it hides its memory and its pipes
from them, reads nothing that they wrote, and looks after each one for what it left behind.
"""

# ruff: noqa: PTH100, PTH102, PTH109, PTH123, SIM105
# Every module that is imported here delays each start: no pathlib, no contextlib.

from __future__ import annotations

import ast
import contextlib
import ctypes
import fcntl
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import traceback
import types
from typing import Any

_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36  # prctl(2)
_GRACE_S = 0.2  # for helpers of a program that are just ending, such as a resource tracker
_LONGEST_TEXT = 8 * 1024
_libc = ctypes.CDLL(None)
_scope: dict[str, Any] = {}


def main() -> None:
    """Carry out one request after the other until the pipe closes."""
    for handle in (3, 4):
        os.set_inheritable(handle, False)
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.getcwd())
    module = types.ModuleType("__main__")
    _scope.update({"__name__": "__main__", "__builtins__": __builtins__})
    module.__dict__.update(_scope)
    sys.modules["__main__"] = module
    _libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # children cannot open /proc/<this>/fd or mem
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of children become ours, to be seen
    places: list[str] = []
    before: set[tuple[Any, ...]] = set()
    own: list[Any] = []
    with open(3, encoding="utf-8", closefd=False) as requests:
        for line in requests:
            request = json.loads(line)
            reply: dict[str, Any] = {"n": request["n"]}
            if "preload" in request:
                reply["error"] = _prepared(request["preload"], request["setup"])
                places = request["places"]
                before, own = _seen(places), _own_limits()
            elif "tidy" in request:
                reply["left"] = _left(request["tidy"], places, before)
                if not reply["left"] and _own_limits() != own:
                    reply["left"] = "limits"
            else:
                reply |= _job(request)
            _send(4, json.dumps(reply).encode() + b"\n")


def _prepared(names: list[str], setup: str) -> dict[str, str] | None:
    try:
        for name in names:
            importlib.import_module(name)
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), _scope)  # noqa: S102
        sys.modules["__main__"].__dict__.update(_scope)
    except BaseException as error:  # noqa: BLE001  whatever an import raises is told
        return _told(error)
    return None


def _job(request: dict[str, Any]) -> dict[str, Any]:
    """Fork, wait, and tell how the child ended and, untouched, what it said."""
    os.mkdir(request["folder"])
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            _child(request, writer)
        finally:
            os._exit(70)
    os.close(writer)
    said, why = _heard(reader, pid, request["wall_s"], request["longest"])
    os.close(reader)
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    _, state, usage = os.wait4(pid, 0)
    ended = {why: 1} if why else {}
    ended["signal" if os.WIFSIGNALED(state) else "code"] = (
        os.WTERMSIG(state) if os.WIFSIGNALED(state) else os.WEXITSTATUS(state)
    )
    ended["cpu_ms"] = int((usage.ru_utime + usage.ru_stime) * 1000)
    return {"value": said.decode("utf-8", "backslashreplace"), "ended": ended}


def _heard(reader: int, pid: int, wall_s: float, longest: int) -> tuple[bytes, str]:
    """Read what the child says until it ends; give that and why it was stopped."""
    deadline = time.monotonic() + wall_s
    said = bytearray()
    end = os.pidfd_open(pid)
    os.set_blocking(reader, False)
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(end, select.POLLIN)
    try:
        while True:
            rest = deadline - time.monotonic()
            if rest <= 0:
                return bytes(said), "wall"
            ready = {handle for handle, _ in poll.poll(rest * 1000)}
            # Read once more after the end was seen: it may have spoken last.
            if reader in ready and not _read(reader, said, longest):
                poll.unregister(reader)
            if len(said) > longest:
                return b"", "long"
            if end in ready:
                if reader not in ready:
                    _read(reader, said, longest)
                return bytes(said), ""
    finally:
        os.close(end)


def _read(reader: int, said: bytearray, longest: int) -> bool:
    while len(said) <= longest:
        try:
            data = os.read(reader, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        said += data
    return True


def _child(request: dict[str, Any], writer: int) -> None:
    """Run the program: own group, own folder, own limits."""
    os.setsid()
    os.close(3)
    os.close(4)
    _libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)
    folder = os.path.abspath(request["folder"])
    os.chdir(folder)
    os.environ["HOME"] = os.environ["TMPDIR"] = folder
    # When the box runs out of memory, the program goes and not the engine. At level userns /proc is
    # read-only; there the address space, limited below, is what ends a program.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
        f.write("1000")
    with open("/proc/self/statm", encoding="ascii") as file:
        engine = int(file.read().split()[0]) * resource.getpagesize()
    _limit(resource.RLIMIT_AS, engine + request["memory_bytes"])
    # The signal that warns, and by default ends it, tells that it was the CPU limit.
    _limit(resource.RLIMIT_CPU, request["cpu_s"], more=1)
    reply = _evaluated(request["code"], request["args"])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001, S110  a program may have closed or replaced it
            pass
    _send(writer, json.dumps(reply).encode())
    os._exit(0)


def _limit(kind: int, most: int, more: int = 0) -> None:
    _, hard = resource.getrlimit(kind)
    top = most + more if hard == resource.RLIM_INFINITY else min(most + more, hard)
    resource.setrlimit(kind, (min(most, top), top))


def _evaluated(code: str, args: Any) -> dict[str, Any]:
    """Give the value of the last expression, which must be JSON, or the error."""
    scope = sys.modules["__main__"].__dict__
    scope["args"] = args
    try:
        tree: Any = compile(code, "<program>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<program>", "exec", dont_inherit=True), scope)  # noqa: S102
        value = None
        if last is not None:
            expression = ast.Expression(last.value)
            value = eval(compile(expression, "<program>", "eval", dont_inherit=True), scope)  # noqa: S307
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except BaseException as error:  # noqa: BLE001  sys.exit is an error of the program
        return {"value": None, "error": _told(error)}
    return {"value": value, "error": None}


def _told(error: BaseException) -> dict[str, str]:
    """Tell of an error without the frames of this file; even its text may raise."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
        trace = trace.tb_next
    try:
        lines = traceback.format_exception(type(error), error, trace, limit=-30)
        texts = (type(error).__name__, str(error), "".join(lines))
    except BaseException:  # noqa: BLE001  a hostile __str__
        texts = (type(error).__name__, "", "")
    names = ("name", "message", "trace")
    return {
        name: text[-_LONGEST_TEXT:].encode("utf-8", "backslashreplace").decode()
        for name, text in zip(names, texts, strict=True)
    }


def _left(folder: str, places: list[str], before: set[tuple[Any, ...]]) -> str:
    """Say what the last child left outside its folder, which is removed."""
    deadline = time.monotonic() + _GRACE_S
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    return "processes"
                time.sleep(0.005)
        except ChildProcessError:
            break
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        return "files"
    return "" if _seen(places) == before else "files"


def _own_limits() -> list[Any]:
    """List what a child may change of this process, and so of its later children.

    It has our user, and shares the state of our open files: whether stdout blocks, for one.
    """
    kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    limits: list[Any] = [resource.getrlimit(kind) for kind in kinds]
    flags = [fcntl.fcntl(handle, fcntl.F_GETFL) for handle in (0, 1, 2)]
    return [*limits, *flags, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0),
            os.sched_getscheduler(0)]  # fmt: skip


def _seen(places: list[str]) -> set[tuple[Any, ...]]:
    """List every file, and every piece of shared memory, that one child could leave to the next."""
    found: set[tuple[Any, ...]] = set()
    for kind in ("shm", "sem", "msg"):
        try:
            with open(f"/proc/sysvipc/{kind}", encoding="ascii") as file:
                found.add((kind, len(file.readlines())))
        except OSError:
            pass
    todo = list(places)
    while todo:
        place = todo.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    mark: tuple[Any, ...] = (entry.path, info.st_mode, info.st_ino)
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        mark += (info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                    found.add(mark)
        except OSError as error:
            found.add((place, error.errno))
    return found


def _send(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


if __name__ == "__main__":
    main()
