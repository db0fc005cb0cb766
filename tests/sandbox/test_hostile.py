"""Every hostile program at every level that the machine offers, as root and as an ordinary user."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.sandbox import box, channel, slots, spawn, sweep
from harness.sandbox.cgroup import Cgroup

ROOT = Path(__file__).resolve().parents[2]
# A harness as a run starts it: 20 threads, each waiting for a program that leaves its session,
# ignores signals and has children. It says when all of them run.
RUNNING = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from harness.sandbox import LIMITS, box, run, slots
slots._state = lambda: Path(sys.argv[2])
slots.FIRST_UID = int(sys.argv[3])
slots._CGROUP_PREFIX = sys.argv[4]
code = "trap '' TERM HUP INT; (setsid sleep 1000 &); sleep 1000"
def job(_):
    return run(["sh", "-c", code], limits=LIMITS["engine"], level=sys.argv[1])
def say():
    while len(begun := [p for b in list(box._open_boxes) for p in b._processes]) < 20:
        time.sleep(0.01)
    print(*(process.began() for process in begun), flush=True)
threading.Thread(target=say).start()
with ThreadPoolExecutor(20) as pool:
    print(list(pool.map(job, range(20))), flush=True)
"""


def load():
    """Give the module beside the programs, which is a script of its own as well."""
    path = Path(__file__).parent / "hostile" / "suite.py"
    spec = importlib.util.spec_from_file_location("hostile_suite", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


suite = load()


@pytest.fixture
def place():
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def wrong(column, observed):
    """Give what does not agree with the programs' headers, with all that helps to see why."""
    return {
        name: (suite.outcome(program, column, seen), suite.differences(program, column, seen), seen)
        for name, seen in observed.items()
        if (program := suite.ALL[name]) and seen is not None
        if suite.outcome(program, column, seen) != suite.claim(program, column)
    }


@pytest.mark.parametrize("column", suite.offered())
def test_every_program_and_the_table_of_the_guide(column, place, count):
    before = count()
    if column.startswith("user:"):
        answer = suite.observe_as_user(column)
        observed = answer["observed"]
        assert answer["left"] == []
    else:
        observed = suite.observe(column, place)
    assert not wrong(column, observed)
    assert count() == before
    outcomes = {
        name: suite.outcome(suite.ALL[name], column, seen) for name, seen in observed.items()
    }
    assert suite.committed()[column] == outcomes


def test_there_is_a_program_for_every_known_attack():
    rows = [int(name[:2]) for name in suite.ALL]
    assert set(rows) >= set(range(1, 45))
    assert len(rows) >= 75
    assert list(suite.committed()["full"]) == list(suite.ALL)


def test_full_contains_everything():
    assert {suite.claim(program, "full") for program in suite.ALL.values()} == {"contained"}


HEADER = "# Does something.\n#\n# /// expect\n# {}\n# ///\npass\n"


@pytest.mark.parametrize(
    "line",
    [
        "sean = { errno = 1 }",
        'open = ["fool"]',
        'at.fool.status = "ok"',
        'at.full.open = ["full"]',
        'open = ["weak"]\n# not_run = ["limits"]',
        "seen = {",
    ],
)
def test_headers_are_read_strictly(tmp_path, line):
    program = tmp_path / "01_x.py"
    program.write_text(HEADER.format("seen = { errno = 1 }"))
    assert suite.read(program)["seen"] == {"errno": 1}
    program.write_text(HEADER.format(line))
    with pytest.raises(ValueError):
        suite.read(program)
    program.write_text("pass\n")
    with pytest.raises(ValueError, match="no title"):
        suite.read(program)


def test_the_table_is_read_back_as_it_is_written():
    entries = ["contained", "not contained", "not contained, not run"]
    columns = {
        column: {name: entries[(i + k) % 3] for i, name in enumerate(suite.ALL)}
        for k, column in enumerate(suite.COLUMNS)
    }
    assert suite.committed(suite.table(columns)) == columns


def no_filter(patch):
    patch.setattr(box, "filter_bytes", lambda: None)


def environment_not_emptied(patch):
    real = spawn.subprocess.Popen
    patch.setattr(spawn.subprocess, "Popen", lambda *a, env, **k: real(*a, env=None, **k))


def job_folder_on_disk(patch):
    def hand_over(folder, options):
        uid = int(options.rpartition("uid=")[2].partition(",")[0])
        os.chown(folder, uid, uid)

    patch.setattr(slots, "mount_tmpfs", hand_over)


def blind_to_memory_kills(patch):
    real = Cgroup.counters

    def blind(self):
        return type(seen := real(self))(cpu_s=seen.cpu_s, peak_bytes=seen.peak_bytes)

    patch.setattr(Cgroup, "counters", blind)


def other_arguments(patch, change):
    real = box.bwrap_arguments
    patch.setattr(box, "bwrap_arguments", lambda *arguments: change(real(*arguments)))


def network_shared(patch):
    other_arguments(patch, lambda words: [word for word in words if word != "--unshare-net"])


def processes_shared(patch):
    other_arguments(patch, lambda words: [word for word in words if word != "--unshare-pid"])


def data_writable(patch):
    def change(words):
        words[words.index("/data", words.index("--ro-bind")) - 2] = "--bind"
        return words

    other_arguments(patch, change)


FAULTS = [
    # 31_x32 is not among them: a kernel without that way in refuses it too.
    ("full", no_filter, ["31_keyrings", "31_user_namespace", "58_clone3"]),
    ("userns", environment_not_emptied, ["22_every_process"]),
    ("full", job_folder_on_disk, ["16_many_files", "17_empty_files", "18_nested_folders"]),
    ("full", blind_to_memory_kills, ["06_memory_of_children"]),
    ("full", network_shared, ["27_abstract_socket", "27_loopback_of_the_host"]),
    ("full", processes_shared, ["22_every_process"]),
    ("full", data_writable, ["24_data", "79_data_through_links"]),
]


@pytest.mark.parametrize(
    ("column", "fault", "names"), [case for case in FAULTS if case[0] in suite.offered()]
)
def test_a_fence_that_is_taken_away_shows(column, fault, names, place, monkeypatch):
    assert not wrong(column, suite.observe(column, place, names))
    fault(monkeypatch)
    assert sorted(wrong(column, suite.observe(column, place, names))) == names


def test_a_reply_without_a_cap_shows(new_worker, isolated, monkeypatch):
    """4 MiB and no end of the line: with the cap of 1 MiB it ends at once, without it by the clock."""
    code = "import os, time\nfor _ in range(64): os.write(4, b'x' * 65536)\ntime.sleep(1000)"
    reply = new_worker(isolated).execute(code, wall_s=20)
    assert (reply.status, reply.reason) == ("error", "protocol")
    monkeypatch.setattr(channel.Channel.__init__, "__defaults__", (1 << 40,))
    assert new_worker(isolated).execute(code, wall_s=1).status == "timeout"


def descendants(pid):
    """Give the processes below one, each with the moment of its start: a number may be given again."""
    parents, started = {}, {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
                started[int(entry.name)] = fields[19]
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {(one, started[one]) for one in found - {pid}}


def alive(processes):
    """Give those that have not ended."""
    found = set()
    for pid, begin in processes:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if fields[19] == begin and fields[0] not in "ZX":
                found.add(pid)
    return found


def test_a_harness_killed_in_the_middle_of_twenty_jobs(isolated, own_place, tmp_path, count):
    script = tmp_path / "running.py"
    script.write_text(RUNNING)
    before = count()
    arguments = [isolated, str(own_place), str(slots.FIRST_UID), slots._CGROUP_PREFIX]
    victim = subprocess.Popen(
        [sys.executable, "-P", str(script), *arguments], stdout=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert victim.stdout.readline().split() == [b"ready"] * 20
        below = descendants(victim.pid)
        assert len(below) >= 60  # bwrap outside, bwrap inside and the program, 20 times
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
    deadline = time.monotonic() + 20
    while alive(below) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive(below) == set()
    assert sweep() >= 20
    assert count() == before
