"""How much a program in a box may use, by the kind of work it does."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a box may use; a task may change them, and the values are stored with the attempt.

    Attributes
    ----------
    wall_s : float
        Seconds on the clock; enforced by whoever waits for the program (`run`, a worker).
    cpu_s : float
        CPU seconds of one process over its whole life, and of the whole box in `run`.
    memory_mib : int
        Memory of the whole box; per process where there is no cgroup.
    pids : int
        Processes and threads.
    job_mib, job_files : int
        Bytes and entries of the job folder; the temporary folder and shared memory have
        ``job_mib`` each.
    file_mib : int
        Size of one file.
    nofile : int
        Open descriptors of one process.
    output_kib : int
        What is kept of stdout and of stderr, each.
    """

    wall_s: float
    cpu_s: float
    memory_mib: int
    pids: int
    job_mib: int
    job_files: int
    file_mib: int
    nofile: int
    output_kib: int


LIMITS: dict[str, Limits] = {
    "function": Limits(
        wall_s=10, cpu_s=8, memory_mib=512, pids=32, job_mib=16, job_files=256,
        file_mib=16, nofile=64, output_kib=256,
    ),
    "cell": Limits(
        wall_s=60, cpu_s=500, memory_mib=2048, pids=64, job_mib=256, job_files=4096,
        file_mib=256, nofile=256, output_kib=256,
    ),
    "shell": Limits(
        wall_s=180, cpu_s=180, memory_mib=2048, pids=128, job_mib=256, job_files=4096,
        file_mib=256, nofile=256, output_kib=256,
    ),
    "server": Limits(
        wall_s=3600, cpu_s=3600, memory_mib=512, pids=64, job_mib=16, job_files=256,
        file_mib=16, nofile=256, output_kib=1024,
    ),
    "engine": Limits(
        wall_s=300, cpu_s=300, memory_mib=2048, pids=64, job_mib=256, job_files=4096,
        file_mib=256, nofile=256, output_kib=1024,
    ),
}  # fmt: skip
"""Defaults of the kinds of work: a batch of functions, a Python cell, a line of shell, a server, an engine."""
