"""Where a run ran: versions, machine and commit, without anything that names a person or a host."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("bridge-harness", "duckdb", "jinja2", "msgspec", "torch", "transformers")


@cache
def environment() -> dict[str, Any]:
    """Describe this machine and installation, once a process.

    Returns
    -------
    dict
        `python`, `platform`, `cpus`, `packages` (name to version) and, in a checkout, `git_commit`
        and `dirty`.
    """
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        **_git(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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
