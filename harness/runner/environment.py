"""Where a run ran: versions, machine and commit, without anything that names a person or a host."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

_PROJECT = "bridge-harness"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@cache
def environment() -> dict[str, Any]:
    """Describe this machine and installation, once a process.

    Returns
    -------
    dict
        `python`, `platform`, `hardware` (`cpu`, `cores`, `memory_gib`, `gpus`), `packages` (name to
        version of what the project stands on and is installed) and, in a checkout, `git_commit` and
        `dirty`.
    """
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "hardware": _hardware(),
        "packages": _packages(),
        **_git(),
    }


def _hardware() -> dict[str, Any]:
    """Ask the kernel: importing torch to hear of a GPU would cost every run a second."""
    cpu = None
    with suppress(OSError):
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        cpu = found[1] if found else None
    gpus = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with suppress(OSError):
            found = re.search(r"^Model:\s*(.*)$", path.read_text(), re.MULTILINE)
            gpus += [found[1]] if found else []
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "gpus": gpus,
    }


def _packages() -> dict[str, str]:
    """Give the versions of what the project needs, its extras included, tools left out."""
    needed = requires(_PROJECT) or []
    names = {
        match[0] for line in needed if "extra == 'dev'" not in line and (match := _NAME.match(line))
    }
    found = {}
    for name in sorted(names | {_PROJECT}):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _git() -> dict[str, Any]:
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return {}
    try:
        status = subprocess.run(
            ["git", "-C", str(root), "status", "--porcelain=v2", "--branch", "-uno"],
            capture_output=True, text=True, timeout=10, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return {}
    commit = next((x.split()[-1] for x in status.splitlines() if x.startswith("# branch.oid")), "")
    dirty = any(not line.startswith("#") for line in status.splitlines())
    return {"git_commit": commit, "dirty": dirty}
