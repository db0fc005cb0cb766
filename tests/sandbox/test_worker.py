"""Persistent Python in a box: its cells, and every way in which a cell can turn against it."""

import base64
import os
import select
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.sandbox import LIMITS, SandboxUnavailable, Worker, channel, worker

pytestmark = pytest.mark.usefixtures("nothing_left")

# Finds the request's id where our own program keeps it.
FIND = """
import json, os, sys, threading
frame = sys._getframe()
while 'request' not in frame.f_locals: frame = frame.f_back
def forge(value, n=frame.f_locals['request']['n']):
    os.write(4, (json.dumps({'n': n, 'value': value}) + '\\n').encode())
"""
BLOCK = (
    "import signal, time\n"
    "for n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: time.sleep(10)"
)
# (cell, status, reason); the wall is 0.6 s. From the table of the specification, section 6.
ENDS = {
    "wrong id": ("import os; os.write(4, b'{\"n\": \"7\"}\\n')", "error", "protocol"),
    "no JSON": ("import os; os.write(4, b'hello\\n')", "error", "protocol"),
    "JSON of another form": ("import os; os.write(4, b'[1, 2]\\n')", "error", "protocol"),
    "nested without end": ("import os; os.write(4, b'[' * 500_000 + b'\\n')", "error", "protocol"),
    "two forged lines": (
        FIND + "line = json.dumps({'n': frame.f_locals['request']['n']}) + '\\n'\n"
        "os.write(4, line.encode() * 2)", "error", "protocol",
    ),
    "no newline": ("import os\nwhile True: os.write(4, b'x' * 65536)", "error", "protocol"),
    "long line": (
        FIND + "try: forge('x' * 2_000_000)\nfinally: os._exit(0)", "error", "protocol",
    ),
    "closes the pipe": ("import os; os.close(4)", "error", "worker_died"),
    "closes the pipe and stays": (
        "import os, time; os.close(4); time.sleep(1000)", "error", "worker_died"
    ),
    "closes everything": ("import os; os.closerange(0, 100)", "error", "worker_died"),
    "leaves": ("import os; os._exit(3)", "error", "worker_died"),
    "leaves well": ("import os; os._exit(0)", "error", "worker_died"),
    "forks and leaves": (
        "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(1000)\nos._exit(0)",
        "error", "worker_died",
    ),
    "endless loop": ("while True: pass", "timeout", "wall"),
    "all signals blocked": (BLOCK, "timeout", "wall"),
    "stuck in C": ("import re; re.match('(a+)+$', 'a' * 40 + 'b')", "timeout", "wall"),
    "endless stdout": ("while True: print('x' * 4096)", "output_limit", "output"),
    "endless stderr": ("import os\nwhile True: os.write(2, b'x' * 65536)", "output_limit", "output"),
    "aborts": ("import os; os.abort()", "crash", "SIGABRT"),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "crash", "SIGSEGV"),
    "forbidden call": ("import os; os.kill(os.getpid(), 31)", "denied", "forbidden system call"),
}  # fmt: skip


def test_state_values_and_output(new_worker, level):
    it = new_worker(level)
    assert it.isolation.level == level
    assert it.execute("x = 40").value is None
    reply = it.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx + 2")
    assert (reply.status, reply.reason, reply.value) == ("ok", None, "42")
    assert (reply.stdout.text, reply.stderr.text) == ("out\n", "err\n")
    assert it.execute("import os; os.system('echo child')").stdout.text == "child\n"
    assert it.execute("'\\x1b[2J'").value == r"'\x1b[2J'"
    assert it.alive


def test_errors_of_a_cell_do_not_end_it(new_worker):
    it = new_worker()
    it.execute("kept = 1")
    reply = it.execute("def f():\n    return 1 / 0\nf()")
    assert (reply.status, reply.reason) == ("error", None)
    assert (reply.error.name, reply.error.message) == ("ZeroDivisionError", "division by zero")
    frames = [line for line in reply.error.trace.splitlines() if line.startswith("  File")]
    assert frames == [
        '  File "<cell 2>", line 3, in <module>', '  File "<cell 2>", line 2, in f',
    ]  # fmt: skip
    assert "return 1 / 0" in reply.error.trace
    for code, name in [
        ("import sys; sys.exit(3)", "SystemExit"),
        ("def f(:", "SyntaxError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("f = lambda: f()\nf()", "RecursionError"),
        ("bytearray(8 << 30)", "MemoryError"),
        ("input()", "EOFError"),
        ("x = '\ud800'", "UnicodeEncodeError"),
        ("class E(Exception):\n  def __str__(self): raise E\nraise E", "E"),
        ("class R:\n  def __repr__(self): raise KeyError\nR()", "KeyError"),
    ]:
        reply = it.execute(code)
        assert (code, reply.status, reply.error.name) == (code, "error", name)
    assert it.execute("1\0").status == "error"
    assert it.execute("(" * 5000 + ")" * 5000).status == "error"
    assert it.execute("kept").value == "1"


def test_great_requests_and_great_values(new_worker):
    it = new_worker(output_kib=64)
    assert it.execute(f"len({'x' * 3_000_000!r})").value == "3000000"
    value = it.execute("'a' * 1_000_000 + 'b'").value
    assert len(value) < 70_000
    assert value.startswith("'aaa")
    assert value.endswith("ab'")
    assert "characters cut]" in value
    assert it.execute("'\U0001f600' * 1_000_000").status == "ok"
    reply = it.execute("print('h' * 100_000 + 't'); 7")
    assert (reply.value, reply.stdout.bytes_total, reply.stdout.bytes_cut) == ("7", 100_002, 34_466)
    assert reply.stdout.text.endswith("ht\n")


def test_what_was_printed_before_the_clock_ran_out_is_kept(new_worker, isolated):
    it = new_worker(isolated)
    it.execute("1")
    reply = it.execute("print('here')\nwhile True: pass", wall_s=0.5)
    assert (reply.status, reply.reason, reply.stdout.text) == ("timeout", "wall", "here\n")
    assert reply.wall_s < 5
    assert not it.alive
    assert it.execute("1").reason == "worker_died"


@pytest.mark.parametrize("name", ENDS)
def test_a_cell_that_turns_against_its_worker(new_worker, name):
    code, status, reason = ENDS[name]
    it = new_worker()
    assert it.wait_ready() is None
    reply = it.execute(code, wall_s=0.6 if status == "timeout" else 30)
    assert (reply.status, reply.reason, reply.value) == (status, reason, None)
    assert not it.alive
    after = it.execute("1")
    assert (after.status, after.reason) == ("error", "worker_died")
    assert new_worker().execute("6 * 7").value == "42"  # the next sample is not touched


@pytest.mark.parametrize("name", ["wrong id", "no newline", "forks and leaves", "endless loop"])
def test_the_same_at_every_level(new_worker, isolated, name):
    code, status, reason = ENDS[name]
    it = new_worker(isolated)
    assert it.wait_ready() is None
    reply = it.execute(code, wall_s=0.6 if status == "timeout" else 30)
    assert (reply.status, reply.reason) == (status, reason)


def test_a_forged_reply_is_a_claim_and_its_surplus_a_fault(new_worker):
    it = new_worker()
    reply = it.execute(FIND + "forge('all is well')\nthreading.Event().wait()")
    assert (reply.status, reply.value) == ("ok", "all is well")
    # The cell still sits there and reads nothing, so the next one meets the wall.
    assert it.execute("1", wall_s=0.4).reason == "wall"
    it = new_worker()
    assert (
        it.execute(FIND + "forge('first')\nthreading.Event().wait(0.5)\n'second'").value == "first"
    )
    assert select.select([it._channel._process.reply], [], [], 20)[0]
    assert it.execute("1").reason == "protocol"
    assert not it.alive


def test_a_thread_that_writes_later(new_worker):
    it = new_worker()
    waits = "go = threading.Event()\ndef late(): go.wait(); forge('late')\nt = threading.Thread(target=late); t.start()"
    assert it.execute(FIND + waits).status == "ok"
    assert it.execute("go.set(); t.join(); 'own'").reason == "protocol"
    it = new_worker()
    assert it.execute(FIND + "threading.Timer(0.05, forge, ['early']).start()").status == "ok"
    assert select.select([it._channel._process.reply], [], [], 20)[0]
    reply = it.execute("print('never run')")
    assert (reply.reason, reply.stdout.text) == ("protocol", "")


def test_ids_that_can_be_guessed_would_let_a_late_line_through(new_worker, monkeypatch):
    """A planted fault: with it the line of the cell before passes for the reply."""
    monkeypatch.setattr(channel.secrets, "token_hex", lambda size: "1")
    it = new_worker()
    waits = "go = threading.Event()\ndef late(): go.wait(); forge('late')\nt = threading.Thread(target=late); t.start()"
    it.execute(FIND + waits)
    assert it.execute("go.set(); t.join(); threading.Event().wait()", wall_s=20).value == "late"


def test_without_a_cap_an_endless_reply_would_be_taken_in(new_worker, monkeypatch):
    """A planted fault: the reply pipe read without its cap."""
    code = "import os, threading\nfor i in range(64): os.write(4, b'x' * 65536)\nthreading.Event().wait()"
    assert new_worker().execute(code, wall_s=30).reason == "protocol"
    real = worker.open_channel
    monkeypatch.setattr(worker, "open_channel", lambda *a, **k: real(*a, longest=2**30, **k))
    assert new_worker().execute(code, wall_s=0.6).reason == "wall"


def test_a_stolen_request(new_worker):
    it = new_worker()
    steal = FIND + "forge('done')\nstolen = os.read(3, 65536)\nthreading.Event().wait()"
    assert it.execute(steal).value == "done"
    reply = it.execute("1", wall_s=0.5)
    assert (reply.status, reply.reason) == ("timeout", "wall")
    it = new_worker()
    half = FIND + "forge('done')\nos.read(3, 5)"  # the rest is no JSON
    it.execute(half)
    assert it.execute("1", wall_s=20).reason in ("worker_died", "protocol")


def test_a_request_that_nobody_reads_meets_the_wall(new_worker):
    it = new_worker()
    assert it.execute(FIND + "forge('done')\nthreading.Event().wait()").value == "done"
    reply = it.execute("x" * 3_000_000, wall_s=0.5)
    assert (reply.status, reply.reason) == ("timeout", "wall")


def test_a_reply_before_the_request_was_read(new_worker):
    it = new_worker()
    hasty = (
        "forge('done')\nhead = os.read(3, 4096).decode()\n"
        "forge('hasty', head.split('\"')[3])\nthreading.Event().wait()"
    )
    assert it.execute(FIND + hasty).value == "done"
    reply = it.execute("x" * 3_000_000)
    assert (reply.status, reply.reason, reply.value) == ("error", "protocol", None)


def test_a_thread_that_prints_without_end_does_not_hold_the_reply(new_worker):
    it = new_worker(output_kib=1024)
    code = (
        "import threading, time\nlines = 0\ndef spam():\n  global lines\n"
        "  while True: print('x' * 1000); lines += 1; time.sleep(0.0001)\n"
        "threading.Thread(target=spam, daemon=True).start()\n'done'"
    )
    assert it.execute(code).value == "'done'"
    reply = it.execute("before = lines\nwhile lines == before: time.sleep(0.001)\n'again'")
    assert (reply.value, reply.stdout.bytes_total > 0) == ("'again'", True)


def test_memory(new_worker, counted):
    it = new_worker(counted)
    it.execute("kept = 1")
    child = (
        "import os\npid = os.fork()\nif pid == 0:\n  x = []\n  while True: x.append(bytearray(8 << 20))\n"
        "os.waitpid(pid, 0)[1]"
    )
    reply = it.execute(child)
    assert (reply.status, reply.reason) == ("memory", "oom_kill")
    if it.alive:  # the kernel took the child only
        assert it.execute("kept").value == "1"
        reply = it.execute("x = []\nwhile True: x.append(bytearray(8 << 20))")
        assert (reply.status, reply.reason) == ("memory", "oom_kill")
    assert not it.alive


def test_cpu_seconds_count_over_its_life(new_worker, counted):
    it = new_worker(counted, cpu_s=1)
    reply = it.execute("while True: pass")
    assert (reply.status, reply.reason) == ("timeout", "cpu")
    it = new_worker(counted, cpu_s=1)
    reply = it.execute("import os\nfor i in range(3): os.fork()\nwhile True: pass")
    assert (reply.status, reply.reason) == ("timeout", "cpu")


def test_files_go_in_and_come_out(new_worker, isolated, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "a.csv").write_text("1,2\n")
    it = new_worker(isolated, files={"helper.py": b"answer = 42"}, mounts={"/data": tmp_path})
    assert it.execute("import helper; helper.answer").value == "42"
    assert it.execute("open('/data/a.csv').read()").value == r"'1,2\n'"
    it.execute("open('r.txt', 'w').write('kept')")
    it.execute("import os; os._exit(0)")
    assert it.collect(["r.txt", "no"]) == ({"r.txt": b"kept"}, {"no": "missing"})


def test_only_its_four_pipes_are_open_and_no_child_gets_the_last_two(new_worker, isolated):
    it = new_worker(isolated)
    assert it.execute("import os; sorted(map(int, os.listdir('/proc/self/fd')))[:5]").value == (
        "[0, 1, 2, 3, 4]"
    )
    assert (
        it.execute("import os; len(os.listdir('/proc/self/fd'))").value == "6"
    )  # and the list's own
    code = "import subprocess; subprocess.run(['ls', '/proc/self/fd'], close_fds=False, stdout=-1).stdout.split()"
    assert it.execute(code).value == "[b'0', b'1', b'2', b'3']"  # 3: the list's own


def test_the_cells_are_the_main_module(new_worker):
    it = new_worker()
    it.execute("import pickle, inspect\nclass P: pass\ndef f(): return 1")
    assert it.execute("type(pickle.loads(pickle.dumps(P()))) is P").value == "True"
    assert it.execute("inspect.getsource(f)").value == "'def f(): return 1'"
    assert it.execute("__name__").value == "'__main__'"
    assert it.execute("[n for n in dir() if not n.startswith('__')]").value == (
        "['P', 'f', 'inspect', 'pickle']"
    )


def test_plots_are_captured():
    pytest.importorskip("matplotlib")
    with Worker(LIMITS["cell"]) as it:
        code = (
            "import matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2), dpi=100)\nplt.plot([1, 2])\n"
            "plt.show()\nplt.figure(figsize=(1, 1), dpi=50)\nNone"
        )
        reply = it.execute(code)
        assert (reply.status, reply.stderr.text) == ("ok", "")
        # The header of a PNG holds its width and height at byte 16.
        assert [struct.unpack(">II", plot[16:24]) for plot in reply.plots] == [(300, 200), (50, 50)]
        assert it.execute("1").plots == ()
        reply = it.execute("for i in range(3): plt.figure(figsize=(40, 40), dpi=100); plt.imshow(__import__('numpy').random.rand(900, 900))")  # fmt: skip
        assert (reply.status, reply.plots) == ("ok", ())
        assert "too large" in reply.stderr.text


def test_what_is_no_image_is_no_plot(new_worker):
    it = new_worker()
    forged = base64.b64encode(b"<svg>").decode()
    line = (
        "os.write(4, (json.dumps({'n': frame.f_locals['request']['n'], 'plots': ['"
        + forged + "', '!']}) + '\\n').encode())\nthreading.Event().wait()"
    )  # fmt: skip
    assert it.execute(FIND + line).plots == ()


def test_preloaded_modules(new_worker):
    it = new_worker(preload=("decimal", "json.tool"))
    assert it.execute("import sys; {'decimal', 'json.tool'} <= set(sys.modules)").value == "True"
    reply = new_worker(preload=("no_such_module",)).execute("1")
    assert (reply.status, reply.reason) == (
        "harness", "ModuleNotFoundError: No module named 'no_such_module'",
    )  # fmt: skip


def test_one_that_dies_before_its_first_reply_is_started_once_more(new_worker, monkeypatch):
    real, commands = worker.open_channel, []

    def failing(times):
        def start(command, limits, **box):
            commands.append(command)
            words = ["sh", "-c", "echo broken >&2; exit 1"] if len(commands) <= times else command
            return real(words, limits, **box)

        return start

    monkeypatch.setattr(worker, "open_channel", failing(1))
    assert new_worker().execute("6 * 7").value == "42"
    assert len(commands) == 2
    commands.clear()
    monkeypatch.setattr(worker, "open_channel", failing(9))
    it = new_worker()
    for _ in range(2):
        reply = it.execute("6 * 7")
        assert (reply.status, reply.reason) == ("harness", "broken")
    assert len(commands) == 2
    assert not it.alive


def test_bad_input_raises_before_anything_is_there(small):
    with pytest.raises(UsageError, match="leaves the folder"):
        Worker(small, files={"../x": b""})
    with pytest.raises(UsageError, match="unknown sandbox level"):
        Worker(small, level="none")


def test_a_box_that_cannot_start_its_program_leaves_nothing(small, monkeypatch):
    def refuse(*arguments, **options):
        raise SandboxUnavailable("no process")

    monkeypatch.setattr(worker.Box, "start", refuse)
    with pytest.raises(SandboxUnavailable, match="no process"):
        Worker(small)


def test_closing_from_another_thread(new_worker):
    it = new_worker()
    it.wait_ready()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(it.execute, "while True: pass")
        while not it._lock.locked():
            time.sleep(0.001)
        it.close()
        reply = running.result(timeout=20)
    assert (reply.status, reply.reason) == ("harness", "closed")
    assert it.execute("1").reason == "closed"
    it.close()


def test_many_threads(new_worker):
    shared = new_worker()
    shared.execute("n = 0")
    started = threading.Barrier(4)

    def each(number):
        started.wait()
        own = new_worker()
        for _ in range(25):
            assert shared.execute("n += 1").status == "ok"
            assert own.execute(f"print({number}); {number} + 1").value == str(number + 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(each, range(4)))
    assert shared.execute("n").value == "100"


def test_many_workers_leave_neither_descriptors_nor_memory(new_worker, small):
    def one(number):
        with Worker(small) as it:
            # Every third one is killed in the middle of its cell.
            code = "while True: print('x' * 4096)" if number % 3 == 0 else f"{number} + 1"
            reply = it.execute(code)
            assert reply.status == "output_limit" or reply.value == str(number + 1)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(8)))
        before = resident()
        list(pool.map(one, range(60)))
        assert resident() - before < 8 * 2**20


def test_a_child_program_of_the_harness_gets_no_pipe_of_a_worker(new_worker):
    import subprocess

    new_worker().wait_ready()
    code = "import os; print(len(os.listdir('/proc/self/fd')))"
    out = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout
    assert int(out) == 4  # three and the list's own
