"""For all tests: in CI nothing is skipped in silence."""

import os
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXTERNAL = tomllib.loads((HERE / "external.toml").read_text(encoding="utf-8"))
MAY_SKIP = [entry["files"] for entry in EXTERNAL["external"]]


def forbid_skip(report):
    """Turn a skip into a failure where CI is set, unless what it needs cannot be had there."""
    path = report.nodeid.split("::")[0]
    if not os.environ.get("CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    if not any(fnmatch(path, pattern) for pattern in MAY_SKIP):
        why = "was skipped in CI and is not in tests/external.toml"
    elif any(fnmatch(path, pattern) for pattern in EXTERNAL["fails_in_ci"]):
        why = "was skipped in CI, where what it needs must be installed"
    else:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{path} {why}: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Look at the report of a test."""
    report = yield
    forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Look at the report of a file, which a call on its top level may skip whole."""
    report = yield
    forbid_skip(report)
    return report
