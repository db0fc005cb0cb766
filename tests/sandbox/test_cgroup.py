"""Cgroups: found under both versions, limits written, nothing left."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from harness.sandbox import LIMITS, cgroup
from harness.sandbox.cgroup import Cgroup, Parents, find

OWN_V1 = "4:memory:/deep/er\n3:pids:/\n2:cpu,cpuacct:/shared\n0::/\n"


def mountinfo(root, *rows):
    lines = [
        f"1 0 0:1 {top} {root}/{point} rw - {kind} none rw,{options}"
        for top, point, kind, options in rows
    ]
    return "\n".join(lines) + "\n"


def test_v1_each_controller_has_its_own_path(tmp_path):
    for folder in ("memory/deep/er", "pids", "cpu/shared"):
        (tmp_path / folder).mkdir(parents=True)
    text = mountinfo(
        tmp_path, ("/", "memory", "cgroup", "memory"), ("/", "pids", "cgroup", "pids"),
        ("/", "cpu", "cgroup", "cpu,cpuacct"),
    )  # fmt: skip
    found = find(OWN_V1, text)
    assert found.version == "v1"
    assert found.folders == {
        "memory": tmp_path / "memory/deep/er", "pids": tmp_path / "pids",
        "cpu": tmp_path / "cpu/shared", "cpuacct": tmp_path / "cpu/shared",
    }  # fmt: skip


def test_v1_a_mount_that_shows_only_a_part(tmp_path):
    (tmp_path / "memory/er").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    text = mountinfo(
        tmp_path, ("/deep", "memory", "cgroup", "memory"), ("/", "pids", "cgroup", "pids")
    )
    assert find(OWN_V1, text).folders["memory"] == tmp_path / "memory/er"


def test_without_memory_there_is_none(tmp_path):
    (tmp_path / "pids").mkdir()
    assert find(OWN_V1, mountinfo(tmp_path, ("/", "pids", "cgroup", "pids"))).version == "none"


def v2_tree(tmp_path):
    """A slice that hands controllers down, and a scope below it that does not."""
    scope = tmp_path / "slice" / "scope"
    scope.mkdir(parents=True)
    for folder, given in (
        (tmp_path, "cpu memory pids"),
        (scope.parent, "memory pids"),
        (scope, ""),
    ):
        (folder / "cgroup.controllers").write_text("cpu memory pids")
        (folder / "cgroup.subtree_control").write_text(given)
    return find(
        "0::/slice/scope\n", mountinfo(tmp_path.parent, ("/", tmp_path.name, "cgroup2", ""))
    )


def test_v2_the_nearest_folder_that_hands_controllers_down(tmp_path):
    found = v2_tree(tmp_path)
    assert (found.version, found.folders) == ("v2", {"unified": tmp_path / "slice"})


def test_v2_limits_and_counters(tmp_path, monkeypatch):
    where = v2_tree(tmp_path)
    folder = tmp_path / "slice" / "box"
    files = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max"]
    make = Path.mkdir

    def with_files(path, *args, **options):
        make(path, *args, **options)
        for name in files:
            (path / name).write_text("")

    monkeypatch.setattr(Path, "mkdir", with_files)
    group = Cgroup("box", where)
    group.make(msgspec.structs.replace(LIMITS["function"], memory_mib=256, pids=32))
    written = {name: (folder / name).read_text() for name in files}
    assert written == {
        "memory.max": str(256 * 2**20), "memory.swap.max": "0", "memory.oom.group": "1",
        "pids.max": "48", "cpu.max": "100000 100000",
    }  # fmt: skip
    (folder / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (folder / "memory.peak").write_text("4096\n")
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 3\n")
    counters = group.counters()
    assert (counters.cpu_s, counters.peak_bytes, counters.oom_kill) == (1.5, 4096, 3)


def test_a_missing_control_file_is_an_error_and_not_a_new_file(tmp_path):
    group = Cgroup("box", Parents("v1", {"memory": tmp_path, "pids": tmp_path}))
    with pytest.raises(FileNotFoundError):
        group.make(LIMITS["function"])
    assert not (tmp_path / "box" / "memory.limit_in_bytes").exists()


def test_a_dead_boxs_group_is_emptied_before_it_is_used(counted):
    name = f"bridge-harness-test-{os.getpid()}"
    group = Cgroup(name)
    group.make(LIMITS["function"])
    sleeper = subprocess.Popen(["sleep", "1000"])
    for entrance in group.entrances():
        entrance.write_text(str(sleeper.pid))
    assert group.pids() == {sleeper.pid}
    again = Cgroup(name)
    again.make(LIMITS["function"])
    assert sleeper.wait(10) == -9
    assert again.pids() == set()
    assert again.remove()
    assert cgroup.leftovers(name) == set()
    assert again.counters() == cgroup.Counters()
