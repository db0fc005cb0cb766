"""Forked children over one engine: each ending told apart, and no child reaches the next."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.sandbox import SandboxUnavailable, forkpool

pytestmark = pytest.mark.usefixtures("nothing_left")

# Finds the pipe on which the child's own result is told, and says something else there.
WRITER = """
import os, sys
frame = sys._getframe()
while 'writer' not in frame.f_locals: frame = frame.f_back
writer = frame.f_locals['writer']
"""
# (program, status, reason); the wall is 0.6 s, one CPU second a program.
ENDS = {
    "raises": ("1 / 0", "error", None),
    "syntax": ("def f(:", "error", None),
    "sys.exit": ("import sys; sys.exit(3)", "error", None),
    "leaves": ("import os; os._exit(0)", "error", "no_result"),
    "leaves badly": ("import os; os._exit(3)", "error", "no_result"),
    "no JSON": ("object()", "error", None),
    "no text": ("'\\ud800'", "error", None),
    "no number": ("float('nan')", "error", None),
    "one allocation": ("bytearray(8 << 30)", "error", None),
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", "crash", "SIGSEGV"),
    "aborts": ("import os; os.abort()", "crash", "SIGABRT"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "crash", "SIGKILL"),
    "forbidden call": ("import os; os.kill(os.getpid(), 31)", "denied", "forbidden system call"),
    "sleeps": ("import time; time.sleep(1000)", "timeout", "wall"),
    "ignores signals": (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: time.sleep(10)",
        "timeout", "wall",
    ),
    "stops itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout", "wall"),
    "child in its group": ("import os, time\nif os.fork() == 0: time.sleep(1000)\n1", "ok", None),
}  # fmt: skip
# These end the pool as well; the program after them gets a new one.
FAULTS = {
    "own session": (
        "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n  os.setsid(); os.write(w, b'x'); time.sleep(1000)\nos.read(r, 1); 1",
        "ok", None, "processes",
    ),
    "double fork": (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  time.sleep(1000)\nos.wait(); 1",
        "ok", None, "processes",
    ),
    "file in /box": ("open('../left', 'w').write('x')", "ok", None, "files"),
    "file in /tmp": ("open('/tmp/left', 'w').write('x')", "ok", None, "files"),
    "file in shared memory": ("open('/dev/shm/left', 'w').write('x')", "ok", None, "files"),
    "changed file": ("import os; os.rename('../given.txt', '../gone.txt'); 1", "ok", None, "files"),
    "System V memory": (
        "import ctypes; ctypes.CDLL(None).shmget(77, 4096, 0o1600) >= 0", "ok", None, "files"
    ),
    "too deep to remove": (
        "import os\nfor i in range(900): os.mkdir('d'); os.chdir('d')\n1", "ok", None, "files"
    ),
    "the parent's limits": (
        "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (9, 9)); 1",
        "ok", None, "limits",
    ),
    "a stdout that does not wait": ("import os; os.set_blocking(1, False); 1", "ok", None, "limits"),
    "the parent's priority": ("import os; os.setpriority(0, os.getppid(), 19); 1", "ok", None, "limits"),
    "endless result": (
        WRITER + "while True: os.write(writer, b'x' * 65536)", "error", "protocol", ""
    ),
    "forged junk": (WRITER + "os.write(writer, b'junk'); os._exit(0)", "error", "protocol", ""),
    "forged, then its own": (WRITER + "os.write(writer, b'{}')\n1", "error", "protocol", ""),
    "kills the parent": ("import os; os.kill(os.getppid(), 9)", "crash", "SIGKILL", ""),
    "endless stdout": ("while True: print('x' * 4096)", "output_limit", "output", ""),
}  # fmt: skip


def test_programs_over_a_setup(new_pool, level):
    pool = new_pool(level, preload=("decimal",), setup="seen = []\ndef double(x): return 2 * x")
    result = pool.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\ndouble(args)", 21)
    assert (result.status, result.reason, result.value) == ("ok", None, 42)
    assert (result.stdout.text, result.stderr.text) == ("out\n", "err\n")
    assert pool.run("seen.append(1); len(seen)").value == 1
    assert pool.run("seen.append(1); len(seen)").value == 1  # the other one's is not there
    assert pool.run("import sys; 'decimal' in sys.modules").value is True
    assert pool.run("{'a': [1, 2.5, None, 'x']}").value == {"a": [1, 2.5, None, "x"]}
    assert pool.run("2 ** 200").value == 2**200
    assert pool.run("x = 1").value is None


@pytest.mark.parametrize("name", ENDS)
def test_endings_are_told_apart_and_the_pool_lives_on(new_pool, name):
    code, status, reason = ENDS[name]
    pool = new_pool()
    assert pool.run("1").value == 1
    result = pool.run(code, wall_s=0.6 if status == "timeout" else 30)
    assert (result.status, result.reason, result.left) == (status, reason, "")
    assert pool.run("6 * 7").value == 42
    assert pool.starts == 1


@pytest.mark.parametrize("name", FAULTS)
def test_what_ends_the_pool(new_pool, name):
    code, status, reason, left = FAULTS[name]
    pool = new_pool(files={"given.txt": b"1"})
    assert pool.run("open('../given.txt').read()").value == "1"
    result = pool.run(code, wall_s=30)
    assert (result.status, result.reason, result.left) == (status, reason, left)
    # A Python that lies below /tmp on the host shows there, too.
    result = pool.run("import os; [open('../given.txt').read(), os.path.exists('/tmp/left')]")
    assert result.value == ["1", False]
    assert pool.starts == 2


def test_errors_have_name_message_and_trace(new_pool):
    error = new_pool().run("def f(): return {}['a']\nf()").error
    assert (error.name, error.message) == ("KeyError", "'a'")
    assert 'File "<program>", line 2, in <module>' in error.trace
    assert "fork_main" not in error.trace
    assert "<string>" not in error.trace


@pytest.mark.parametrize("what", ["fd/4", "mem", "fd/3", "environ"])
def test_a_child_cannot_open_what_is_the_parents(new_pool, isolated, what):
    result = new_pool(isolated).run(f"import os; open(f'/proc/{{os.getppid()}}/{what}', 'rb')")
    assert (result.status, result.error.name) == ("error", "PermissionError")


def test_a_child_holds_neither_pipe_of_the_parent(new_pool):
    value = new_pool().run("import os; sorted(map(int, os.listdir('/proc/self/fd')))").value
    assert value[:3] == [0, 1, 2]
    assert len(value) == 5  # the pipe for its result, and the list's own
    pipes = "import os; len({os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n > '2'})"
    assert new_pool().run(f"try:\n  {pipes}\nexcept OSError: pass\n1").value == 1


def test_each_has_its_own_folder_and_results_come_out_of_it(new_pool, isolated):
    pool = new_pool(isolated)
    write = (
        "import os\nopen('r.txt', 'w').write(str(args))\nos.symlink('/etc', 'l')\nos.listdir('.')"
    )
    for number in range(2):
        result = pool.run(write, number, collect=["r.txt", "l", "no.txt", "../given"])
        assert sorted(result.value) == ["l", "r.txt"]
        assert result.files == {"r.txt": str(number).encode()}
        assert result.refused == {
            "l": "a symlink", "no.txt": "missing", "../given": "leaves the folder",
        }  # fmt: skip
    assert pool.starts == 1
    code = "import os, tempfile; [os.environ['HOME'] == os.getcwd(), tempfile.gettempdir() == os.getcwd()]"
    assert pool.run(code).value == [True, True]


def test_memory_of_a_program_not_of_the_engine(new_pool, counted):
    pool = new_pool(counted, memory_mib=128, setup="engine = bytearray(40 << 20)")
    grow = "x = []\nwhile True: x.append(bytearray(4 << 20))"
    result = pool.run(grow)
    assert (result.status, result.error and result.error.name) in (
        ("error", "MemoryError"), ("memory", None),
    )  # fmt: skip
    # Many small programs are more than one may be; the kernel takes a child, never the engine.
    result = pool.run("import os\nfor i in range(3): os.fork()\n" + grow)
    assert result.status == "memory"
    assert pool.run("len(engine)").value == 40 << 20


def test_cpu_of_one_program(new_pool, counted):
    pool = new_pool(counted, cpu_s=1)
    for _ in range(2):  # each has its own second
        result = pool.run("while True: pass", wall_s=30)
        assert (result.status, result.reason) == ("timeout", "cpu")
    assert pool.starts == 1
    result = pool.run("import os\nfor i in range(3): os.fork()\nwhile True: pass", wall_s=30)
    assert (result.status, result.reason) == ("timeout", "cpu")
    assert pool.run("6 * 7").value == 42


def test_an_engine_that_is_missing_is_the_harness_s_fault(new_pool):
    pool = new_pool(preload=("no_such_engine",))
    for _ in range(2):
        result = pool.run("1")
        assert (result.status, result.reason) == (
            "harness", "ModuleNotFoundError: No module named 'no_such_engine'",
        )  # fmt: skip
    assert new_pool(setup="import os; os._exit(1)").run("1").status == "harness"


def test_without_the_hiding_a_child_could_speak_for_the_parent(new_pool, ordinary, monkeypatch):
    """A planted fault: where harness and box have one user, the parent's pipe can be opened."""
    real = forkpool.python_command

    def open_to_all(*arguments):
        *words, source = real(*arguments)
        assert "_libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)" in source
        return [*words, source.replace("_libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)", "pass")]

    monkeypatch.setattr(forkpool, "python_command", open_to_all)
    code = "import os; os.write(os.open(f'/proc/{os.getppid()}/fd/4', os.O_WRONLY), b'junk\\n')"
    result = new_pool(ordinary).run(code)
    assert (result.status, result.reason) == ("error", "protocol")


def test_many_threads_share_one_pool(new_pool):
    pool = new_pool()
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda n: pool.run("args * 2", n).value, range(30)))
    assert found == [2 * n for n in range(30)]
    assert pool.starts == 1


def test_closing_from_another_thread(new_pool):
    pool = new_pool()
    pool.run("1")
    running = threading.Event()
    with ThreadPoolExecutor(1) as threads:

        def go():
            running.set()
            return pool.run("while True: pass", wall_s=60)

        job = threads.submit(go)
        running.wait()
        pool.close()
        result = job.result(timeout=20)
    assert (result.status, result.reason) == ("harness", "closed")
    assert pool.run("1").reason == "closed"


def test_a_box_that_cannot_be_made_is_told(new_pool, monkeypatch):
    from harness.sandbox import worker

    def refuse(*arguments, **options):
        raise SandboxUnavailable("no room")

    monkeypatch.setattr(worker, "Box", refuse)
    result = new_pool().run("1")
    assert (result.status, result.reason) == ("harness", "no room")
