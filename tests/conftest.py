"""For all tests: in CI nothing is skipped in silence, and the oracles are counted."""

import gc
import os
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
# Programs, not modules: importing them starts them.
collect_ignore = ["fixtures/fake_vllm.py", "sandbox/fake_docker.py"]
EXTERNAL = tomllib.loads((HERE / "external.toml").read_text(encoding="utf-8"))
# The same examples every time, and no test fails because the machine is busy.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
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


def pytest_collection_finish():
    """Let the collector pass over what stays to the end anyway: walking through it takes seconds."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Say how many checks rest on a source that is not the project, and how they went."""
    listed = HERE / "oracles.toml"
    if not listed.exists():
        return
    oracles = tomllib.loads(listed.read_text(encoding="utf-8"))["oracle"]
    named = {oracle["test"] for oracle in oracles}
    went = {
        outcome: {
            report.nodeid.split("[")[0]
            for report in terminalreporter.stats.get(outcome, ())
            if getattr(report, "when", "call") == "call" or outcome == "skipped"
        }
        & named
        for outcome in ("passed", "failed", "skipped")
    }
    # A test of many parameters passed when none of them failed.
    passed = went["passed"] - went["failed"]
    terminalreporter.write_line(
        f"oracles: {len(oracles)} independent checks, {len(passed)} passed, "
        f"{len(went['failed'])} failed, {len(went['skipped'] - passed)} skipped in this run"
    )
