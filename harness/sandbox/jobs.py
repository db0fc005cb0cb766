"""What came of one job of an engine that does many; shared by `ForkPool` and `Driver`."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.sandbox.channel import Answer, Fault, last_line, shown
from harness.sandbox.output import Clipped
from harness.sandbox.run import Status

_EMPTY = Clipped("", b"", 0, 0)


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one job.

    Attributes
    ----------
    status : Status
        ``"ok"``; ``"error"``: it raised, ended without a result or broke the protocol;
        ``"timeout"``, ``"memory"``, ``"crash"``, ``"output_limit"``, ``"denied"``; ``"harness"``:
        no fault of the job.
    reason : str or None
        A short machine word, where the status needs one.
    value : Any
        What it says of itself, from JSON: a claim.
    error : Fault or None
        What it raised.
    stdout, stderr : Clipped
        What was printed during the job.
    files, refused : dict
        Results by name, and why others were not taken.
    wall_s : float
        Seconds.
    left : str
        What it left behind outside its folder: ``"processes"``, ``"files"``, ``"limits"`` (other
        limits of the engine, or another state of its pipes) or nothing.
    """

    status: Status
    reason: str | None = None
    value: Any = None
    error: Fault | None = None
    stdout: Clipped = _EMPTY
    stderr: Clipped = _EMPTY
    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    wall_s: float = 0.0
    left: str = ""


def no_line(answer: Answer) -> JobResult:
    """Give the result of a job that an engine did not survive."""
    reason = "engine_died" if answer.reason == "worker_died" else answer.reason
    return JobResult(
        status=answer.status, reason=reason, stdout=answer.stdout, stderr=answer.stderr,
        wall_s=answer.wall_s,
    )  # fmt: skip


def not_started(answer: Answer) -> JobResult:
    """Give the result of a job whose engine was never ready; the reason is its last word."""
    error = shown(answer.line.error) if answer.line is not None else None
    why = f"{error.name}: {error.message}" if error else last_line(answer.stderr)
    return JobResult(
        status="harness", reason=why or answer.reason, stdout=answer.stdout, stderr=answer.stderr,
        error=error, wall_s=answer.wall_s,
    )  # fmt: skip
