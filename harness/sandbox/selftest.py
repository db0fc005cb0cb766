"""A few seconds in which the sandbox shows that it holds: what `harness doctor` runs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.sandbox.levels import Isolation
from harness.sandbox.limits import LIMITS
from harness.sandbox.run import Result, run_in
from harness.sandbox.worker import Worker

_LIMITS = msgspec.structs.replace(LIMITS["function"], wall_s=10, memory_mib=256)
_PYTHON = ("python3", "-I", "-S", "-c")
# The address is one of documentation (RFC 5737): nothing is there, and a box must not even try.
_CONNECT = """
import socket
try:
    socket.create_connection(("192.0.2.1", 80), 2)
except OSError as error:
    print(error.errno)
"""
_UNREACHABLE = 101  # of errno(3)


class Probe(msgspec.Struct, frozen=True):
    """One thing that was tried.

    Attributes
    ----------
    name : str
    ok : bool
    why : str
        What was seen.
    """

    name: str
    ok: bool
    why: str


def self_test(isolation: Isolation) -> list[Probe]:
    """Run a program, a cell of Python and three that must fail.

    Parameters
    ----------
    isolation : Isolation
        From `reach`.
    """
    tests: dict[str, Callable[[Isolation], tuple[bool, str]]] = {
        "empty program": _empty,
        "Python cell": _cell,
        "memory limit": _memory,
        "network refused": _network,
        "file hidden": _file,
    }
    found = []
    for name, test in tests.items():
        begin = time.perf_counter()
        ok, why = test(isolation)
        found.append(Probe(name, ok, f"{why}, {(time.perf_counter() - begin) * 1000:.0f} ms"))
    return found


def _empty(isolation: Isolation) -> tuple[bool, str]:
    result = run_in(isolation, ["/bin/true"], limits=_LIMITS)
    return result.status == "ok", result.reason or "ran"


def _cell(isolation: Isolation) -> tuple[bool, str]:
    worker = Worker(_LIMITS, level=isolation)
    try:
        worker.execute("x = 6 * 7")
        reply = worker.execute("x")
    finally:
        worker.close()
    return reply.value == "42", reply.reason or f"6 * 7 = {reply.value}"


def _memory(isolation: Isolation) -> tuple[bool, str]:
    # More than memory and address space allow, so that every level must stop it.
    code = f"x = bytearray({5 * _LIMITS.memory_mib} << 20); print(len(x))"
    result = run_in(isolation, [*_PYTHON, code], limits=_LIMITS)
    refused = result.status == "memory" or "MemoryError" in result.stderr.text
    return refused, _seen(result, f"{5 * _LIMITS.memory_mib} MiB refused at 256", refused)


def _network(isolation: Isolation) -> tuple[bool, str]:
    result = run_in(isolation, [*_PYTHON, _CONNECT], limits=_LIMITS)
    refused = result.stdout.text.strip() == str(_UNREACHABLE)
    return refused, _seen(result, "no route out", refused)


def _file(isolation: Isolation) -> tuple[bool, str]:
    """Plant a file that everybody on the machine may read, and look for it from within."""
    handle, name = tempfile.mkstemp()
    try:
        os.fchmod(handle, 0o644)
        os.write(handle, b"planted")
        result = run_in(isolation, ["cat", "--", str(Path(name).resolve())], limits=_LIMITS)
    finally:
        os.close(handle)
        Path(name).unlink()
    hidden = result.exit_code == 1 and "planted" not in result.stdout.text
    return hidden, _seen(result, "a file of the machine is not there", hidden)


def _seen(result: Result, well: str, ok: bool) -> str:
    return well if ok else f"not contained: {result.status} {result.reason}".strip()
