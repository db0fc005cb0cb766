"""For all tests: in CI nothing is skipped in silence."""

import os
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MAY_SKIP = [
    entry["files"]
    for entry in tomllib.loads((HERE / "external.toml").read_text(encoding="utf-8"))["external"]
]


def forbid_skip(report):
    """Turn a skip that tests/external.toml does not name into a failure, where CI is set."""
    path = report.nodeid.split("::")[0]
    if (
        os.environ.get("CI")
        and report.skipped
        and not hasattr(report, "wasxfail")
        and not any(fnmatch(path, pattern) for pattern in MAY_SKIP)
    ):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{path} was skipped in CI and is not in tests/external.toml: {reason}"


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
