"""A harness that is killed, or interrupted, at the worst moment: nothing runs on, nothing is left."""

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.sandbox import Box, Network, holder, network, slots, spawn, warden

ROOT = Path(__file__).resolve().parents[2]
# A harness whose bwrap has started a child when the harness is killed: the moment at which the real
# one has not yet told the kernel that it dies with its parent.
VICTIM = """
import os, sys, time
from pathlib import Path
from harness.sandbox import LIMITS, Box, reach, slots
slots._state = lambda: Path(sys.argv[2])
slots.FIRST_UID = int(sys.argv[3])
slots._CGROUP_PREFIX = sys.argv[4]
isolation = reach(sys.argv[1])
os.environ["PATH"] = sys.argv[5] + ":" + os.environ["PATH"]
Box(LIMITS["function"], level=isolation).start(["true"])
time.sleep(1000)
"""
BWRAP = """#!/bin/sh
sleep 1000 &
echo $$ $! > {said}
kill -9 $PPID
wait
"""


def state(pid):
    """Give the parent and the process group of a process that has not ended, or None."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else (int(fields[1]), int(fields[2]))


@pytest.fixture
def kill_while_it_starts(own_place, tmp_path):
    """Give the two processes that a killed harness's bwrap consisted of."""

    def go(level, source=VICTIM):
        said = tmp_path / "said"
        tmp_path.chmod(0o755)
        (tmp_path / "bwrap").write_text(BWRAP.format(said=said))
        (tmp_path / "bwrap").chmod(0o755)
        arguments = [level, str(own_place), str(slots.FIRST_UID), slots._CGROUP_PREFIX, tmp_path]
        done = subprocess.run(
            [sys.executable, "-P", "-c", source, *map(str, arguments)], cwd=ROOT, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.returncode == -9, done.stderr.decode()
        return [int(pid) for pid in said.read_text().split()]

    return go


def gone(pids, patience):
    deadline = time.monotonic() + patience
    while any(map(state, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(state, pids))


def test_a_harness_killed_while_a_box_starts_leaves_nothing_running(
    isolated, kill_while_it_starts, count
):
    before = count()
    assert gone(kill_while_it_starts(isolated), 20)
    slots.sweep()
    assert count() == before


def test_without_the_warden_it_would_run_on(isolated, kill_while_it_starts):
    """A planted fault: a warden that does nothing."""
    blind = "from harness.sandbox import warden\nwarden._SCRIPT = 'while read -r x; do :; done'\n"
    pids = kill_while_it_starts(isolated, blind + VICTIM)
    try:
        assert not gone(pids, 0.3)
    finally:
        slots.sweep()  # by its cgroup, where there is one
        for pid in filter(state, pids):
            os.kill(pid, 9)


def test_bwraps_own_processes_are_one_group_and_the_program_is_none_of_it(small, isolated):
    """So one kill ends both at once, and the program's kill of its own group reaches neither."""
    with Box(small, level=isolated) as box:
        process = box.start(["sleep", "1000"])
        assert process.began() == "ready"
        processes = {int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()}
        children = {
            pid: seen[0] for pid in processes if (seen := state(pid)) and seen[0] != os.getpid()
        }
        inner = next(pid for pid, parent in children.items() if parent == process.pid)
        own = next(pid for pid, parent in children.items() if parent == inner)
        assert [state(pid)[1] for pid in (process.pid, inner)] == [process.pid] * 2
        assert state(own)[1] == own


def test_a_group_that_has_ended_is_forgotten(small, level, monkeypatch):
    """Its number may be another's by the time the harness ends."""
    forgotten = []
    monkeypatch.setattr(warden, "forget", forgotten.append)
    with Box(small, level=level) as box:
        process = box.start(["true"])
        process.wait()
        assert forgotten == [process.pid]
    assert forgotten.count(process.pid) == 1


def test_a_warden_that_was_ended_is_replaced(small, level, nothing_left):
    warden._process.kill()
    warden._process.wait()
    with Box(small, level=level) as box:
        assert box.start(["echo", "here"]).stdout.read() == b"here\n"


class _Interrupted:
    """Stands for the starting thread: the caller is interrupted while it waits for it."""

    def __init__(self, real):
        self.real = real

    def submit(self, work):
        future = self.real.submit(work)
        future.exception()  # it has started
        result = future.result

        def interrupted(timeout=None):
            future.result = result
            raise KeyboardInterrupt

        future.result = interrupted
        return future


@pytest.mark.usefixtures("nothing_left")
def test_interrupted_while_a_program_is_being_started(small, level, monkeypatch):
    box = Box(small, level=level)
    real = spawn._thread()
    with monkeypatch.context() as patch:
        patch.setattr(spawn, "_thread", lambda: _Interrupted(real))
        with pytest.raises(KeyboardInterrupt):
            box.start(["sleep", "1000"])
    box.close()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("step", ["clear", "release"])
def test_a_close_that_was_interrupted_can_be_taken_again(small, level, monkeypatch, step):
    box = Box(small, level=level)
    box.start(["sleep", "1000"])
    with monkeypatch.context() as patch:

        def interrupt(self):
            raise KeyboardInterrupt

        patch.setattr(slots.Slot, step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            box.close()
    box.close()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(("module", "make"), [(holder, Box), (network, Network)])
def test_interrupted_while_a_namespace_is_being_made(small, ordinary, monkeypatch, module, make):
    class Os:
        def __getattr__(self, name):
            return getattr(os, name)

        def read(self, *_):
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "os", Os())
    with pytest.raises(KeyboardInterrupt):
        make(small, level=ordinary) if make is Box else make(ordinary)


@pytest.mark.usefixtures("nothing_left")
def test_looking_at_a_box_while_another_thread_closes_it(small, counted):
    faults = []

    def look(box, ready):
        try:
            while not (closed := box._slot is None):
                assert box.counters().cpu_s is not None
                box.collect(["a", "b"])
                box.full()
                ready.set()
            assert closed
            assert box.counters().cpu_s > 0
        except BaseException as error:  # noqa: BLE001  a thread's fault is told by the test
            faults.append(error)

    for _ in range(8):
        box, ready = Box(small, level=counted, files={"a": b"x" * 100_000}), threading.Event()
        box.start(["true"]).wait()
        thread = threading.Thread(target=look, args=(box, ready))
        thread.start()
        assert ready.wait(20)
        box.close()
        thread.join()
    assert faults == []


@pytest.mark.usefixtures("nothing_left")
def test_a_machine_without_a_free_descriptor_is_the_harness_s_fault(run_python, level):
    run_python("pass", level=level)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    spare = []
    try:
        with contextlib.suppress(OSError):
            while True:
                spare.append(os.open("/dev/null", os.O_RDONLY))
        for handle in spare[-6:]:
            os.close(handle)
        result = run_python("pass", level=level)
    finally:
        for handle in spare[:-6]:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert result.status == "harness", result
    assert "Too many open files" in result.reason
