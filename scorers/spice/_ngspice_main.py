"""Runs ngspice for one netlist after the other, inside a box. It imports nothing of the harness.

A job comes as a line ``{"n": id, "job": {"netlist": text, "wall_s": seconds}}`` on descriptor 3; what was
printed goes to descriptor 4, the marked lines whole and the end of the rest.
"""

# ruff: noqa: PTH102, PTH123
# Every module that is imported here delays each start: no pathlib.

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from typing import Any

_LOG = 4000


def main() -> None:
    """Carry out one request after the other until the pipe closes."""
    with open(3, encoding="utf-8") as requests, open(4, "w", encoding="utf-8") as replies:
        for number, line in enumerate(requests):
            request = json.loads(line)
            job = request["job"]
            value = "ready" if job is None else _run(job, f"/box/job-{number}")
            replies.write(json.dumps({"n": request["n"], "value": value}) + "\n")
            replies.flush()


def _run(job: dict[str, Any], folder: str) -> dict[str, Any]:
    """Run one netlist in an empty folder; two simulations at once must not fight for threads."""
    os.mkdir(folder)
    with open(f"{folder}/.spiceinit", "w", encoding="ascii") as file:
        file.write("set num_threads=1\n")
    with open(f"{folder}/netlist.sp", "w", encoding="ascii") as file:
        file.write(job["netlist"])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            ["ngspice", "-b", "netlist.sp"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=job["wall_s"], check=False,
        )  # fmt: skip
        code, text = done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as error:
        code, text = None, (error.stdout or b"").decode("utf-8", "replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(folder, ignore_errors=True)
    marked = [line for line in text.splitlines() if line.startswith("@")]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"code": code, "marked": marked, "log": text[-_LOG:], "cpu_s": cpu}


if __name__ == "__main__":
    main()
