"""How programs end, at every level that the machine offers: a status and a reason, never an exception."""

import signal
import time
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.sandbox import SandboxUnavailable, reach, run

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_a_program_that_ends_well(run_python, level):
    result = run_python(
        "import sys; print('out'); print('err', file=sys.stderr); open('r.txt', 'w').write('42')",
        level=level, collect=["r.txt", "no.txt"],
    )  # fmt: skip
    assert (result.status, result.reason, result.exit_code, result.signal) == ("ok", "", 0, None)
    assert (result.stdout.text, result.stderr.text) == ("out\n", "err\n")
    assert (result.files, result.refused) == ({"r.txt": b"42"}, {"no.txt": "missing"})
    assert result.isolation.level == level
    assert 0 < result.wall_s < 20


def test_counters_of_the_whole_box(run_python, counted):
    result = run_python(
        "x = bytearray(120_000_000)\nfor i in range(3_000_000): pass",
        level=counted,
    )  # fmt: skip
    assert result.status == "ok"
    assert 120_000_000 < result.peak_bytes < 200_000_000
    assert result.cpu_s > 0.05


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("raise SystemExit(3)", "error", "exit code 3"),
        ("1 / 0", "error", "exit code 1"),
        ("import os; os.kill(os.getpid(), 11)", "crash", "SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "crash", "SIGSEGV"),
        ("import os; os.kill(os.getpid(), 31)", "denied", "forbidden system call"),
        ("import os; os.kill(os.getpid(), 40)", "crash", "signal 40"),
    ],
)
def test_endings(run_python, level, code, status, reason):
    result = run_python(code, level=level)
    assert (result.status, result.reason) == (status, reason)


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(1000)",
        (
            "import signal, time\nfor n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n"
            "  except (OSError, ValueError): pass\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: time.sleep(10)"
        ),
        "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
    ],
    ids=["sleeps", "ignores every signal", "stuck in C"],
)
def test_the_clock_ends_what_does_not_end(run_python, isolated, code):
    result = run_python(code, level=isolated, wall_s=0.6)
    assert (result.status, result.reason) == ("timeout", "0.6 s on the clock")
    assert result.wall_s < 5
    assert (result.exit_code, result.signal) == (None, None)


def test_output_before_the_clock_ran_out_is_kept(run_python, level):
    result = run_python(
        "import time; print('here', flush=True); time.sleep(1000)", level=level, wall_s=1
    )
    assert (result.status, result.stdout.text) == ("timeout", "here\n")


def test_cpu_seconds_of_one_process(run_python, level):
    result = run_python("while True: pass", level=level, cpu_s=1)
    assert (result.status, result.reason) == ("timeout", "1 CPU seconds")


def test_cpu_seconds_of_all_processes_together(run_python, counted):
    code = "import os\nfor i in range(3): os.fork()\nwhile True: pass"
    result = run_python(code, level=counted, cpu_s=1)
    assert (result.status, result.reason) == ("timeout", "1 CPU seconds")
    assert result.cpu_s < 2.5  # four processes with a second each would have used four


def test_memory_step_by_step(run_python, counted):
    result = run_python("x = []\nwhile True: x.append(bytearray(8 << 20))", level=counted)
    assert (result.status, result.oom_kill >= 1) == ("memory", True)
    assert result.peak_bytes == pytest.approx(256 * 2**20, rel=0.02)


def test_memory_of_children_hides_behind_a_good_exit_code(run_python, counted):
    code = (
        "import os, time\nfor i in range(4):\n  if os.fork() == 0:\n"
        "    x = bytearray(150 << 20); time.sleep(0.3); os._exit(0)\n"
        "try:\n  while True: os.wait()\nexcept ChildProcessError: pass\nprint('fine')"
    )
    result = run_python(code, level=counted)
    assert (result.exit_code, result.stdout.text) == (0, "fine\n")
    assert result.status == "memory"


def test_one_great_allocation_fails(run_python, level):
    result = run_python("bytearray(4 << 30)", level=level)
    assert result.status == "error"
    assert "MemoryError" in result.stderr.text


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_stopped_and_both_ends_kept(run_python, level, stream):
    result = run_python(
        f"import sys\nsys.{stream}.write('first')\nwhile True: sys.{stream}.write('x' * 4096)",
        level=level,
    )
    assert (result.status, result.reason) == ("output_limit", "more than 1024 KiB printed")
    kept = getattr(result, stream)
    assert kept.text.startswith("firstxxx")
    assert len(kept.raw) == 65536
    assert kept.bytes_total < 3 * 2**20


def test_more_than_is_kept_but_no_flood_is_well(run_python, level):
    result = run_python("print('a' * 40_000 + 'b' * 40_000 + 'c' * 40_000)", level=level)
    assert result.status == "ok"
    assert result.stdout.bytes_total == 120_001
    assert "[54465 bytes cut]" in result.stdout.text
    assert result.stdout.text.endswith("c\n")


def test_a_child_that_keeps_stdout_open_is_not_waited_for(run_python, level):
    code = "import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(1000)\nprint('done')"
    result = run_python(code, level=level)
    assert (result.status, result.stdout.text) == ("ok", "done\n")
    assert result.wall_s < 10


def test_stdin_is_empty_unless_given(run_python, level):
    code = "import sys; print(len(sys.stdin.buffer.read()))"
    assert run_python(code, level=level).stdout.text == "0\n"
    assert run_python(code, level=level, stdin=b"x" * 3_000_000).stdout.text == "3000000\n"


def test_stdin_that_nobody_reads_does_no_harm(run_python, level):
    result = run_python("import os; os.close(0); print('ok')", level=level, stdin=b"x" * 3_000_000)
    assert (result.status, result.stdout.text) == ("ok", "ok\n")


@pytest.mark.parametrize(
    ("command", "files", "reason"),
    [
        (["nosuchprogram"], {}, "no such program"),
        (["./nosuchfile"], {}, "no such program"),
        (["./junk"], {"junk": bytes(range(256)) * 50}, "exit code"),
        (["./elf"], {"elf": b"\x7fELF" + b"\0" * 60}, "exit code"),
        (["./script"], {"script": b"#!/no/such/interpreter\n"}, "exit code"),
        (["/tmp"], {}, ""),
        ([""], {}, "begins with a program"),
        ([], {}, "begins with a program"),
        (["true", "a\0b"], {}, "NUL byte"),
        (["true", "\ud800"], {}, "cannot be written as bytes"),
        (["true", "x" * 200_000], {}, "too long"),
        (["true"], {"../x": b""}, "leaves the folder"),
        (["true"], {"a": b"", "a/b": b""}, "taken by another"),
        (["cat", "a b\n*?'\"$(id)é"], {"a b\n*?'\"$(id)é": b"fine"}, None),
        (["--version"], {}, "no such program"),
    ],
)  # fmt: skip
def test_bad_input_gives_a_status_and_a_reason(small, isolated, command, files, reason):
    result = run(command, files=files, limits=small, level=isolated)
    if reason is None:
        assert (result.status, result.stdout.text) == ("ok", "fine")
    else:
        assert result.status == "error", result
        assert reason in result.reason


def test_inputs_larger_than_the_box_are_no_fault_of_the_program(small, counted):
    result = run(["true"], files={"big": bytes(40 << 20)}, limits=small, level=counted)
    assert (result.status, "No space left" in result.reason) == ("harness", True)


def test_a_full_folder_is_named(run_python, isolated):
    result = run_python(
        "for i in range(9): open(f'{i}', 'wb').write(b'x' * (4 << 20))", level=isolated
    )
    assert (result.status, result.reason) == ("error", "exit code 1, job folder full")
    assert "Errno 28" in result.stderr.text


def test_deep_and_many_entries_do_not_hinder_the_end(run_python, isolated):
    code = "import os\ntry:\n  while True:\n    os.mkdir('d'); os.chdir('d')\nexcept OSError as e: print(e.errno)"
    assert run_python(code, level=isolated).stdout.text == "28\n"
    code = "n = 0\ntry:\n  while True:\n    open(str(n), 'x').close(); n += 1\nexcept OSError as e: print(n, e.errno)"
    number, errno = run_python(code, level=isolated).stdout.text.split()
    assert (950 < int(number) < 1000, errno) == (True, "28")


def test_results_that_are_no_files(run_python, level):
    code = (
        "import os, socket\nos.symlink('/etc/passwd', 'link'); os.mkfifo('fifo'); os.mkdir('folder', 0)\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('socket'); f = open('big', 'w'); f.truncate(16 << 20)\n"
        "open('one', 'w'); os.link('one', 'two'); os.symlink('/', 'root')\n"
    )
    names = [
        "link",
        "fifo",
        "folder",
        "socket",
        "one",
        "root/etc/passwd",
        "../../etc/passwd",
        "no\0",
    ]
    result = run_python(code, level=level, collect=[*names, "big"])
    assert result.status == "ok", result.stderr.text
    assert list(result.files) == ["big"]
    assert sorted(result.refused) == sorted(names)


def test_a_level_that_does_not_exist_is_the_callers_mistake(small):
    with pytest.raises(UsageError, match="did you mean 'full'"):
        run(["true"], limits=small, level="ful")


def test_container_is_looked_up_when_asked_for(small, monkeypatch):
    from harness.sandbox import levels

    levels._attempt.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SandboxUnavailable, match="container is not part"):
        run(["true"], limits=small, level="container")
    levels._attempt.cache_clear()


def test_the_harness_is_to_blame_when_the_box_does_not_start(small, level, monkeypatch):
    from harness.sandbox import box

    reach(level)
    monkeypatch.setattr(
        box, "inner_command", lambda *_: ["/bin/sh", "-c", "echo broken >&2; exit 1"]
    )
    result = run(["true"], limits=small, level=level)
    assert (result.status, result.reason) == ("harness", "broken")


def test_interrupting_the_harness_leaves_nothing(run_python, level):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_python("import time; time.sleep(1000)", level=level)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begin < 10


def test_nothing_of_the_harness_shows(run_python, isolated, monkeypatch):
    monkeypatch.setenv("SECRET_API_KEY", "planted-value-7315")
    code = (
        "import os, glob\nprint(sorted(os.environ))\nfound = []\n"
        "for path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):\n"
        "  try: found.append(open(path, 'rb').read())\n  except OSError: pass\n"
        "print(b'planted-value' in b''.join(found), b'bridge-harness' in b''.join(found))\n"
        "for p in ('/etc/passwd', '/etc/shadow', '/home', '/var', '/sys', '/run', '/srv'):\n"
        "  assert not os.path.exists(p), p\n"
        "print(sorted(os.listdir('/proc/self/fd')))"
    )
    names = ["HOME", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONHASHSEED"]
    out = run_python(code, level=isolated).stdout.text.splitlines()
    assert out == [str(names), "False False", "['0', '1', '2', '3']"]  # 3 is the listing itself


def test_the_answers_of_an_installed_harness_do_not_show(run_python, isolated):
    from harness.sandbox.bwrap import hidden

    code = f"import os\nfor path in {hidden()!r}:\n  print(os.listdir(path))"
    result = run_python(code, level=isolated)
    assert set(result.stdout.text.split()) <= {"[]"}
    assert len(result.stdout.text.split()) == len(hidden())


def test_mounts_are_read_only(run_python, isolated, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("1,2\n")
    tmp_path.chmod(0o755)
    code = (
        "print(open('/data/rows.csv').read().strip(), open('/opt/deep/rows.csv').read().strip(), "
        "open('/box/in/rows.csv').read().strip())\n"
        "for path in ('/data/x', '/opt/x', '/x', '/usr/x', '/etc/x', '/data/rows.csv', '/box/in/x'):\n"
        "  try: open(path, 'w'); print('wrote', path)\n"
        "  except OSError as e: print(e.errno, end=' ')\n"
    )
    folder = tmp_path / "data"
    mounts = {"/data": folder, "/opt/deep": folder, "/box/in": folder}
    result = run_python(code, level=isolated, mounts=mounts)
    assert result.stdout.text == "1,2 1,2 1,2\n30 30 30 30 30 30 30 ", result.stderr.text
    assert [path.name for path in folder.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("inside", ["data", "/", "/box", "/a/../b", "/a//b", "/proc", "/a\0"])
def test_mounts_that_no_box_can_have(small, isolated, inside, tmp_path):
    result = run(["true"], mounts={inside: tmp_path}, limits=small, level=isolated)
    assert (result.status, "absolute path of its own" in result.reason) == ("error", True)


def test_a_mount_whose_folder_is_not_there(small, isolated):
    result = run(["true"], mounts={"/data": Path("/nowhere/x")}, limits=small, level=isolated)
    assert (result.status, "is not there" in result.reason) == ("error", True)
