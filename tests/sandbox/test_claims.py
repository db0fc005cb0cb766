"""What a program says of itself, or leaves behind, changes nothing but its own result."""

import select

import msgspec
import pytest

from harness.sandbox import Box, Driver, Job, channel
from harness.sandbox.cgroup import Cgroup, Counters
from harness.sandbox.run import out_of_cpu

pytestmark = pytest.mark.usefixtures("nothing_left")

SAY = """
import json, os, sys, threading
frame = sys._getframe()
while 'request' not in frame.f_locals: frame = frame.f_back
def say(rest): os.write(4, b'{"n": "' + frame.f_locals['request']['n'].encode() + b'", ' + rest + b'}\\n')
"""
WRITER = """
import os, sys
frame = sys._getframe()
while 'writer' not in frame.f_locals: frame = frame.f_back
os.write(frame.f_locals['writer'], b'{"value": %s}')
os._exit(0)
"""
# A line whose value ends whoever handles it later is a protocol fault; the rest are odd, but claims.
LINES = {
    "a number of 5,000 digits": (b'"value": ' + b"1" * 5000, "error"),
    "no number": (b'"value": 1e999', "error"),
    "lists, deep": (b'"value": ' + b"[" * 900 + b"]" * 900, "error"),
    "objects, deep": (b'"value": ' + b'{"a":' * 101 + b"1" + b"}" * 101, "error"),
    "an unknown name, deep": (b'"x": ' + b"[" * 400_000, "error"),
    "half a character": (b'"value": "\\ud800"', "error"),
    "half a character in a name": (b'"value": {"\\udfff": 1}', "error"),
    "no UTF-8": (b'"value": "\xff"', "error"),
    "an error that is none": (b'"error": {"name": 1}', "error"),
    "lists, not so deep": (b'"value": ' + b"[" * 90 + b"]" * 90, "ok"),
    "many lists": (b'"value": [' + b"[]," * 100_000 + b"[]]", "ok"),
}
DEEP = [b"[" * 300 + b"]" * 300, b'{"a":' * 300 + b"1" + b"}" * 300]


@pytest.mark.parametrize("name", LINES)
def test_a_reply_that_would_end_its_reader(new_worker, name):
    line, status = LINES[name]
    it = new_worker()
    reply = it.execute(f"{SAY}say({line!r})\nthreading.Event().wait()", wall_s=30)
    assert (reply.status, reply.reason) == (status, None if status == "ok" else "protocol")
    assert it.alive == (status == "ok")


@pytest.mark.parametrize("end", ["sys.exit(0)", "raise SystemExit", "1 / 0", "pass"])
def test_a_fork_that_runs_out_of_its_cell_does_not_reply_as_well(new_worker, level, end):
    it = new_worker(level)
    code = f"import os, sys\npid = os.fork()\nif pid == 0:\n  {end}\nelse:\n  os.waitpid(pid, 0)"
    assert it.execute(f"{code}\n'parent'").value == "'parent'"
    assert it.execute("6 * 7").value == "42"


@pytest.mark.parametrize("value", DEEP)
def test_a_forked_program_s_value_that_would_end_its_reader(new_pool, value):
    pool = new_pool()
    result = pool.run(WRITER.replace("%s", value.decode()))
    assert (result.status, result.reason, result.value) == ("error", "protocol", None)
    assert pool.run("6 * 7").value == 42


LATE = """
n, go = frame.f_locals['request']['n'], threading.Event()
def late(): go.wait(); os.write(4, (json.dumps({'n': n, 'value': 'late'}) + '\\n').encode())
thread = threading.Thread(target=late); thread.start()
"""


def test_a_reply_to_another_request_is_nobody_s(new_worker):
    """The own reply of the second cell never comes, so that the late line is the only one."""
    it = new_worker()
    assert it.execute(SAY + LATE).status == "ok"
    reply = it.execute("go.set(); thread.join(); threading.Event().wait()", wall_s=30)
    assert (reply.status, reply.reason, reply.value) == ("error", "protocol", None)


ENGINE = b"""
import json, os, threading
replies = open(4, "w")
for line in open(3):
    request = json.loads(line)
    if request["job"]: exec(request["job"])
    print(json.dumps({"n": request["n"], "value": request["job"]}), file=replies, flush=True)
"""
LATER = {
    "says more": "threading.Timer(0.02, os.write, (4, b'{}\\n')).start()",
    "dies": "threading.Timer(0.02, os.abort).start()",
}


@pytest.mark.parametrize("name", LATER)
def test_what_a_job_does_after_its_reply_is_not_the_next_one_s_fault(python, small, level, name):
    with Driver([python, "-u", "m.py"], small, files={"m.py": ENGINE}, level=level) as driver:
        assert driver.run([Job(LATER[name])])[0].status == "ok"
        assert select.select([driver._engine._channel._process.reply], [], [], 20)[0]
        results = driver.run([Job("innocent = 1"), Job("2")])
        assert [(result.status, result.value) for result in results] == [
            ("ok", "innocent = 1"), ("ok", "2"),
        ]  # fmt: skip
        assert driver.starts == 2


def test_no_message_queue_is_left_to_the_next_program(new_pool, isolated):
    """It lies in no folder, so nobody would find it."""
    code = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
        "[libc.mq_open(b'/left', 0o102, 0o600, None), ctypes.get_errno()]"
    )
    assert new_pool(isolated).run(code).value == [-1, 24]  # EMFILE, of mq_open(3)


LOOP = "while True: pass"
DEAF = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n" + LOOP


def test_a_worker_s_endless_loop_is_a_timeout_at_every_level(new_worker, level):
    reply = new_worker(level, cpu_s=1).execute(LOOP, wall_s=60)
    assert (reply.status, reply.reason) == ("timeout", "cpu")


def test_a_worker_that_is_deaf_to_the_warning(new_worker, uncounted):
    reply = new_worker(uncounted, cpu_s=1).execute(DEAF, wall_s=60)
    assert (reply.status, reply.reason) == ("timeout", "cpu")


def test_the_kernel_s_clock_of_a_process_may_run_before_the_cgroup_s(
    run_python, new_worker, counted, monkeypatch
):
    """On a busy machine the kernel counts whole ticks for a process that had a part of each."""
    real = Cgroup.counters

    def slow(self):
        return msgspec.structs.replace(real(self), cpu_s=0.3)

    monkeypatch.setattr(Cgroup, "counters", slow)
    result = run_python(LOOP, level=counted, cpu_s=1, wall_s=60)
    assert (result.status, result.reason) == ("timeout", "1 CPU seconds")
    assert new_worker(counted, cpu_s=1).execute(LOOP).reason == "cpu"


def test_all_processes_of_a_box_together_get_one_core(small, counted):
    """Read back, because a busy machine gives nobody more than one anyway."""
    with Box(small, level=counted) as box:
        folders = box._cgroup.folders
        if box.isolation.cgroup == "v2":
            period, quota = (folders["unified"] / "cpu.max").read_text().split()
        else:
            names = ("cpu.cfs_period_us", "cpu.cfs_quota_us")
            period, quota = ((folders["cpu"] / name).read_text() for name in names)
        assert int(period) == int(quota) > 0


def test_two_busy_cores_use_up_a_second_in_half_of_one(small, monkeypatch):
    """Where nobody counts CPU seconds, the clock has to tell why a program was killed."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    limits = msgspec.structs.replace(small, cpu_s=10)
    timeout = ("timeout", "10 CPU seconds")
    assert out_of_cpu(limits, 9, None, 5.2) == timeout
    assert out_of_cpu(limits, 9, None, 3.9) is None
    assert out_of_cpu(limits, 9, 9.9, 5.0) == timeout
    assert out_of_cpu(limits, 9, 0.1, 50.0) is None
    assert out_of_cpu(limits, 24, 0.1, 0.1) == timeout  # SIGXCPU
    assert out_of_cpu(limits, 11, 9.9, 9.9) is None


def test_counters_of_a_worker(new_worker, counted, uncounted):
    it = new_worker(counted)
    it.execute("1")
    idle = it.counters()
    it.execute("x = bytearray(100_000_000)\nfor i in range(3_000_000): pass")
    busy = it.counters()
    assert busy.cpu_s > idle.cpu_s + 0.05
    assert busy.peak_bytes > idle.peak_bytes + 90_000_000
    assert busy.oom_kill == 0
    it.close()
    assert it.counters().cpu_s >= busy.cpu_s
    assert new_worker(uncounted).counters() == Counters()


SWAP = """
import os, socket
os.mkdir("d")
for name in ("d/r", "d/passwd"): open(name, "w").write("own")
def file(): open("new", "w").write("own")
def link(): os.symlink("/etc/passwd", "new")
def fifo(): os.mkfifo("new")
def twice(): os.link("d/r", "new")
def door():
  with socket.socket(socket.AF_UNIX) as s: s.bind("new")
if os.fork() == 0:
  while True:
    for make in (file, link, fifo, twice, door):
      make(); os.rename("new", "r")
    os.rename("d", "away"); os.symlink("/etc", "d"); os.unlink("d"); os.rename("away", "d")
"""


def test_results_that_change_their_kind_while_they_are_read(new_worker, level):
    it = new_worker(level)
    assert it.execute(SWAP).status == "ok"
    found, refused = [], set()
    for _ in range(1500):
        files, why = it.collect(["r", "d/r", "d/passwd"])
        found += files.values()
        refused |= set(why.values())
    assert {b"own"} <= set(found) <= {b"own", b""}  # an empty one is a file that is being written
    assert "a symlink" in refused
    assert it.execute("1").status == "ok"


ZOMBIES = """
import os
ready, told = os.pipe()
for _ in range(25):
    if os.fork() == 0:
        os.setsid()
        os.write(told, b"x")
        os.read(ready, 0)
        import time; time.sleep(1000)
for _ in range(25): os.read(ready, 1)
"""
FORKS = "import os, time\nfor n in range(28):\n  if os.fork() == 0: time.sleep(1000)\nprint('all')"


@pytest.mark.usefixtures("counted")
def test_processes_that_nobody_has_buried_are_not_the_next_box_s(run_python):
    """At level limits only; the others have a process namespace, which takes its dead along."""
    for _ in range(2):
        assert run_python(ZOMBIES, level="limits").status == "ok"
        assert run_python(FORKS, level="limits").stdout.text == "all\n"


def test_a_value_of_the_harness_s_own_making_is_never_too_deep():
    assert not channel.too_deep({"a": [{"b": [1, 2, None]}], "c": "[[[["})
    assert channel.too_deep(msgspec.json.decode("[" * 101 + "]" * 101))
