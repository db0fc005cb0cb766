"""Many boxes at once, and harness processes that die: nothing stays."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.sandbox import Box, run, slots, sweep

ROOT = Path(__file__).resolve().parents[2]
# A harness with three boxes, each with a program that left its session and ignores signals.
VICTIM = """
import json, os, sys, time
from pathlib import Path
from harness.sandbox import LIMITS, Box, slots
slots._state = lambda: Path(sys.argv[2])
slots.FIRST_UID = int(sys.argv[3])
slots._CGROUP_PREFIX = sys.argv[4]
code = "trap '' TERM HUP INT; (setsid sleep 1000 &); echo up; sleep 1000"
boxes = [Box(LIMITS["function"], level=sys.argv[1]) for _ in range(3)]
started = [box.start(["sh", "-c", code]) for box in boxes]
for process in started:
    assert process.stdout.read(3) == b"up\\n"
print(json.dumps([box._slot.number for box in boxes]), flush=True)
time.sleep(1000)
"""


def memory():
    """Give the resident memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_hundred_parallel_jobs_leave_nothing(run_python, python, small, isolated, count):
    code = (
        "import os, sys, time\nopen('r.txt', 'w').write(sys.stdin.read())\n"
        "if os.fork() == 0:\n  os.setsid(); time.sleep(1000)\nprint('x' * 200_000)"
    )
    n = 100 if isolated == "full" else 20

    def job(number):
        return run_python(code, level=isolated, stdin=str(number).encode(), collect=["r.txt"])

    job(0)
    before = count()
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(job, range(n)))
    assert [result.status for result in results] == ["ok"] * n
    assert [int(result.files["r.txt"]) for result in results] == list(range(n))
    assert {result.stdout.bytes_total for result in results} == {200_001}
    assert count() == before


def test_memory_of_the_harness_does_not_grow(small, counted, count):
    def job(_):
        assert run(["true"], limits=small, level=counted).status == "ok"

    for number in range(10):
        job(number)
    before, places = memory(), count()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(job, range(200)))
    assert memory() - before < 8 * 2**20
    assert count() == places


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_harness_takes_everything_along_and_the_next_one_clears_up(
    own_place, level, how, count, tmp_path
):
    script = tmp_path / "victim.py"
    script.write_text(VICTIM)
    before = count()
    arguments = [level, str(own_place), str(slots.FIRST_UID), slots._CGROUP_PREFIX]
    victim = subprocess.Popen(
        [sys.executable, "-P", str(script), *arguments], stdout=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        numbers = json.loads(victim.stdout.readline())
        assert len(numbers) == 3
        during = count()
        if level != "userns":  # there root's boxes run as root, and whose they are does not show
            assert during["processes"] > before["processes"] + 6
        assert set(map(str, numbers)) <= set(during["folders"])
        assert sweep() >= 0  # of a living harness nothing is taken
        assert set(map(str, numbers)) <= set(count()["folders"])
    finally:
        victim.send_signal(how)
        victim.wait()
        victim.stdout.close()
    # Level limits has no process namespace: what left its session lives until the sweep.
    if level != "limits":
        deadline = time.monotonic() + 10
        while count()["processes"] > before["processes"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert count()["processes"] == before["processes"]
    sweep()
    assert count() == before


def test_a_harness_without_stdin(level, tmp_path):
    """Its low descriptor numbers are free, and go to pipes and folders."""
    script = tmp_path / "closed.py"
    script.write_text(
        "import os\nos.close(0)\nfrom harness.sandbox import LIMITS, run\n"
        f"r = run(['sh', '-c', 'echo /proc/$$/fd/*; cat'], limits=LIMITS['function'], level={level!r}, stdin=b'in')\n"
        "print(r.status, r.stdout.text, r.reason)"
    )
    done = subprocess.run(
        [sys.executable, "-P", str(script)], capture_output=True, text=True, check=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    status, *handles, last = done.stdout.split()
    assert (status, last) == ("ok", "in")
    assert [int(handle.rpartition("/")[2]) for handle in handles] == [
        0,
        1,
        2,
        3,
    ]  # 3 is the listing


def test_a_slot_is_never_given_twice(own_place):
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: slots.claim(), range(40)))
    try:
        assert len({slot.number for slot in taken}) == 40
        assert len({slot.uid for slot in taken}) == 40
    finally:
        for slot in taken:
            assert slot.clear()
            slot.release()


def test_what_a_dead_box_left_is_cleared_when_its_slot_is_claimed(own_place, count, small):
    slot = slots.claim()
    before_again = slot.number
    (slot.folder / "job" / "deep").mkdir(parents=True)
    (slot.folder / "job" / "deep" / "file").write_text("left")
    (slot.folder / "job" / "deep").chmod(0)
    slot.release()
    # Not level limits: there a slot is passed by while any process of its user is left anywhere.
    with Box(small, level="unshare") as box:
        assert box._slot.number == before_again
        assert [p.name for p in box._slot.job.iterdir()] == []
    assert count()["folders"] == []


def test_a_folder_that_others_could_enter_is_not_used(tmp_path):
    assert not slots._private(tmp_path.parent.parent, os.geteuid() + 1)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert not slots._private(open_to_all, os.geteuid())
    open_to_all.chmod(0o711)
    assert slots._private(open_to_all, os.geteuid())
    link = tmp_path / "link"
    link.symlink_to(open_to_all)
    assert not slots._private(link, os.geteuid())
