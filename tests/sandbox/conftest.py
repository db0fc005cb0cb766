"""Levels that this machine offers, and a count of everything that a box could leave behind."""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from harness.sandbox import (
    LEVELS,
    LIMITS,
    ForkPool,
    SandboxUnavailable,
    Worker,
    cgroup,
    reach,
    run,
    slots,
)


def offered(*names):
    """Give those of the levels that work here."""
    found = []
    for name in names:
        try:
            reach(name)
        except SandboxUnavailable:
            continue
        found.append(name)
    return found


def pytest_generate_tests(metafunc):
    """Run a test at every level that the machine offers, as its parameter's name says."""
    kinds = {
        "level": [name for name in LEVELS if name != "container"],
        "isolated": ["full", "full-nocg", "userns"],
        "first_and_last": ["full", "userns"],
        "counted": ["full"],
        "uncounted": ["full-nocg"],
        "ordinary": ["userns"],
    }
    for name, levels in kinds.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, offered(*levels))


@pytest.fixture(scope="session")
def python():
    """A Python that every level can see: the levels without a root of their own drop the user only."""
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


@pytest.fixture(scope="session")
def small():
    """Limits as of the measurements in the specification, shorter on the clock."""
    return msgspec.structs.replace(
        LIMITS["function"], wall_s=20, cpu_s=10, memory_mib=256, job_mib=32, job_files=1000,
        file_mib=16, output_kib=64,
    )  # fmt: skip


@pytest.fixture
def run_python(python, small):
    """Run a piece of Python in a box; limits by name change the small ones."""

    def go(code, *, level="auto", files=None, **options):
        changes = {k: options.pop(k) for k in list(options) if k in small.__struct_fields__}
        limits = msgspec.structs.replace(small, **changes)
        return run(
            [python, "-I", "main.py"], files={"main.py": code.encode(), **(files or {})},
            limits=limits, level=level, **options,
        )  # fmt: skip

    return go


@pytest.fixture(scope="session", autouse=True)
def own_place():
    """Slots, users and cgroups of this test process alone, so that what it leaves can be counted."""
    place = Path(tempfile.mkdtemp(prefix="sandbox-tests-"))
    place.chmod(0o711)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "_state", lambda: place)
        patch.setattr(slots, "FIRST_UID", 1_000_000 + os.getpid() % 10_000 * 2000)
        patch.setattr(slots, "_CGROUP_PREFIX", f"bridge-harness-t{os.getpid()}-")
        yield place
        slots.sweep()  # of a test that failed half-way
    shutil.rmtree(place)


def inventory(place):
    """Count what boxes could leave: processes, mounts, folders, cgroups, descriptors, namespaces."""
    users = range(slots.FIRST_UID, slots.FIRST_UID + 2000)
    processes, spaces = 0, set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            mine = status[1] == str(os.getpid())
            if status[0] != "Z" and (mine or entry.stat().st_uid in users):
                processes += 1
                spaces |= {(entry / "ns" / kind).readlink() for kind in ("mnt", "net", "pid")}
    return {
        "processes": processes,
        "mounts": Path("/proc/mounts").read_text().count(str(place)),
        "folders": sorted(path.name for path in place.iterdir() if path.is_dir()),
        "cgroups": sorted(cgroup.leftovers(slots._CGROUP_PREFIX)),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "namespaces": len(spaces),
    }


@pytest.fixture
def count(own_place):
    """Give `inventory` of this process."""
    return lambda: inventory(own_place)


@pytest.fixture
def nothing_left(count):
    """Fail the test when something is there after it that was not before."""
    before = count()
    yield
    assert count() == before


@pytest.fixture
def without_bwrap(tmp_path, monkeypatch):
    """A machine on which bubblewrap is not installed."""
    for name in ("bash", "prlimit", "setpriv", "unshare", "nsenter", "mount", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    from harness.sandbox import levels

    caches = (levels._attempt, levels._automatic)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def new_worker(small):
    """Start workers with small limits, changed by name; closed at the end of the test."""
    made = []

    def go(level="auto", **options):
        changes = {k: options.pop(k) for k in list(options) if k in small.__struct_fields__}
        limits = msgspec.structs.replace(small, **changes)
        made.append(Worker(limits, level=level, **options))
        return made[-1]

    yield go
    for worker in made:
        worker.close()


@pytest.fixture
def new_pool(small):
    """Start fork pools with small limits, changed by name; closed at the end of the test."""
    made = []

    def go(level="auto", preload=(), **options):
        changes = {k: options.pop(k) for k in list(options) if k in small.__struct_fields__}
        limits = msgspec.structs.replace(small, **changes)
        made.append(ForkPool(preload, limits, level=level, **options))
        return made[-1]

    yield go
    for pool in made:
        pool.close()
