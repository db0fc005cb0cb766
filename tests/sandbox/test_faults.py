"""Planted faults: each fence is taken away, and what the fence's test looks at must then change."""

import os
import signal
import subprocess
import threading

import msgspec

from harness.sandbox import Box, box, bwrap, process, run, slots, spawn
from harness.sandbox.cgroup import Cgroup, Counters

FORKS = (
    "import os, time\nn = 0\ntry:\n  while n < {most}:\n    if os.fork() == 0: time.sleep(1000)\n"
    "    n += 1\nexcept OSError as e: pass\nprint(n)"
)


def forks(run_python, level, most=60):
    return int(run_python(FORKS.format(most=most), level=level).stdout.text)


def test_start_environment_not_emptied(run_python, ordinary, monkeypatch):
    """At level userns ``/proc/1/environ`` is bwrap's own."""
    monkeypatch.setenv("SECRET_API_KEY", "planted-value")
    code = "print('planted-value' in open('/proc/1/environ').read())"
    assert run_python(code, level=ordinary).stdout.text == "False\n"
    real = spawn.subprocess.Popen
    monkeypatch.setattr(spawn.subprocess, "Popen", lambda *a, env, **k: real(*a, env=None, **k))
    assert run_python(code, level=ordinary).stdout.text == "True\n"


def test_clearenv_after_setenv(run_python, isolated, monkeypatch):
    code = "import os; print(os.environ.get('HOME'))"
    assert run_python(code, level=isolated).stdout.text == "/box\n"
    real = box.bwrap_arguments

    def late(*arguments):
        words = real(*arguments)
        words.remove("--clearenv")
        return [*words, "--clearenv"]

    monkeypatch.setattr(box, "bwrap_arguments", late)
    assert run_python(code, level=isolated).stdout.text == "None\n"


def test_no_seccomp(run_python, counted, monkeypatch):
    code = "import ctypes; print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())"
    assert run_python(code, level=counted).stdout.text == "-1 1\n"
    monkeypatch.setattr(box, "filter_bytes", lambda: None)
    assert run_python(code, level=counted).stdout.text.startswith("0 ")


def fill_and_fork(python, small, level):
    """Let one box hold 28 processes; give how many another can then start."""
    code = FORKS.format(most=28).replace("print(n)", "print(n, flush=True); time.sleep(1000)")
    with Box(small, level=level, files={"m.py": code.encode()}) as first:
        holder = first.start([python, "-I", "m.py"])
        assert holder.stdout.read(3) == b"28\n"
        with Box(small, level=level, files={"m.py": FORKS.format(most=28).encode()}) as second:
            process = second.start([python, "-I", "m.py"])
            return int(process.stdout.read())


def test_one_user_for_two_boxes(python, small, counted, monkeypatch):
    """The kernel counts processes per user, over all boxes."""
    assert fill_and_fork(python, small, counted) == 28
    monkeypatch.setattr(slots, "FIRST_UID", 1_999_999)
    monkeypatch.setattr(
        slots.Slot, "uid", property(lambda self: 1_999_999, lambda *_: None), raising=False
    )
    assert fill_and_fork(python, small, counted) < 10


def test_bwraps_uid_in_place_of_setpriv(run_python, uncounted, monkeypatch):
    """The user that bwrap shows inside is still root outside, whom no process limit binds."""
    assert forks(run_python, uncounted) == 31
    real = bwrap.inner_command
    monkeypatch.setattr(box, "inner_command", lambda i, limits, uid, c: real(i, limits, None, c))
    arguments = box.bwrap_arguments
    shown = ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    monkeypatch.setattr(box, "bwrap_arguments", lambda *a: [*shown, *arguments(*a)])
    assert forks(run_python, uncounted) == 60


def test_memory_kills_ignored(run_python, counted, monkeypatch):
    code = (
        "import os, time\nfor i in range(4):\n  if os.fork() == 0:\n"
        "    x = bytearray(150 << 20); time.sleep(0.3); os._exit(0)\n"
        "try:\n  while True: os.wait()\nexcept ChildProcessError: pass"
    )
    assert run_python(code, level=counted).status == "memory"
    real = Cgroup.counters

    def blind(self):
        return type(seen := real(self))(cpu_s=seen.cpu_s, peak_bytes=seen.peak_bytes)

    monkeypatch.setattr(Cgroup, "counters", blind)
    assert run_python(code, level=counted).status == "ok"


def test_job_folder_on_the_hosts_disk(run_python, counted, monkeypatch):
    many = "n = 0\ntry:\n  while n < 1500: open(str(n), 'x').close(); n += 1\nexcept OSError: pass\nprint(n)"
    large = "n = 0\ntry:\n  while n < 5: open(str(n), 'wb').write(b'x' * (15 << 20)); n += 1\nexcept OSError: pass\nprint(n)"
    assert int(run_python(many, level=counted).stdout.text) < 1000
    assert run_python(large, level=counted).stdout.text == "2\n"

    def hand_over(folder, options):
        uid = int(options.rpartition("uid=")[2].partition(",")[0])
        os.chown(folder, uid, uid)

    monkeypatch.setattr(slots, "mount_tmpfs", hand_over)
    assert run_python(many, level=counted).stdout.text == "1500\n"
    assert run_python(large, level=counted).stdout.text == "5\n"


def test_a_polite_signal_in_place_of_sigkill(small, monkeypatch):
    """At level limits, where no end of bwrap takes the program along."""
    code = "trap '' TERM; echo up; while :; do sleep 0.05; done"

    def killed(patience, *patches):
        with Box(small, level="limits") as place:
            started = place.start(["sh", "-c", code])
            assert started.stdout.read(3) == b"up\n"
            with monkeypatch.context() as patch:
                for target, name, value in patches:
                    patch.setattr(target, name, value)
                started.kill()
                return started.wait(patience) is not None

    real = os.killpg
    politely = (process.os, "killpg", lambda group, _: real(group, signal.SIGTERM))
    assert killed(20)
    assert not killed(0.3, politely, (subprocess.Popen, "kill", subprocess.Popen.terminate))


def test_started_from_a_thread_that_ends(small, level, monkeypatch):
    """Without the lasting thread the parent-death signal ends the box with the thread."""

    def alive(direct):
        with Box(small, level=level) as place:
            started = []
            if direct:
                monkeypatch.setattr(spawn, "_thread", _Here)

            def begin():
                started.append(place.start(["cat"], stdin=True))
                started[0].began()

            thread = threading.Thread(target=begin)
            thread.start()
            thread.join()
            return started[0].wait(0.3) is None

    assert alive(direct=False)
    assert not alive(direct=True)


class _Here:
    """Runs what it is given in the calling thread."""

    def submit(self, work):
        value = work()
        return type("Done", (), {"result": lambda self: value})()


def test_a_sum_of_all_is_needed_for_cpu_time(python, small, counted, monkeypatch):
    code = b"import os\nfor i in range(3): os.fork()\nwhile True: pass"

    def go(wall):
        limits = msgspec.structs.replace(small, cpu_s=0.5, wall_s=wall)
        return run([python, "-I", "m.py"], files={"m.py": code}, limits=limits, level=counted)

    assert go(20).reason == "0.5 CPU seconds"
    monkeypatch.setattr(Cgroup, "counters", lambda self: Counters())
    assert go(2).reason == "2 s on the clock"
