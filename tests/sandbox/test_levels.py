"""Levels: the best that works, refusals that say what to do, and ordinary users."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.sandbox import LIMITS, SandboxUnavailable, levels, reach
from harness.sandbox.bwrap import bwrap_arguments, hidden, inner_command, interpreter

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = """
import os, sys
import encodings.ascii, encodings.unicode_escape  # cannot be imported once the user is dropped
from harness.sandbox import LIMITS, box, files, holder, run, reach, warden
import json, multiprocessing, concurrent.futures.thread
os.setgroups([]); os.setgid(54321); os.setuid(54321)
isolation = reach()
assert (isolation.level, isolation.uid, isolation.userns, isolation.cgroup) == ("userns", 65534, True, "none")
try:
    reach("full")
except Exception as error:
    assert "needs root" in str(error), error
code = b'''
import os
n = 0
try:
  while True:
    if os.fork() == 0:
      import time; time.sleep(1000)
    n += 1
except OSError as e:
  print(n, e.errno, os.getuid())
  open("r.txt", "w").write("result")
'''
python = "/usr/bin/python3"
result = run([python, "main.py"], files={"main.py": code, "a/b.txt": b"in"}, limits=LIMITS["function"],
             collect=["r.txt", "a/b.txt"])
print(result.stdout.text.strip(), result.files, os.listdir(f"/tmp/bridge-harness-54321/sandbox"))
full = run([python, "-c", "open('x', 'wb').write(b'x' * (15 << 20)); open('y', 'wb').write(b'x' * (5 << 20))"],
           limits=LIMITS["function"])
print(full.status, full.reason)
print(run([python, "-c", "import os; os.fork() or os.setsid(); import time; time.sleep(100)"],
          limits=LIMITS["function"].__class__(**{**{f: getattr(LIMITS["function"], f) for f in
          LIMITS["function"].__struct_fields__}, "wall_s": 0.5})).status)
print(run([python, "-c", "print(1)"], limits=LIMITS["function"], level="limits").stdout.text.strip())
left = [p for p in os.listdir("/proc") if p.isdigit() and os.path.exists(f"/proc/{p}/exe") and p != str(os.getpid())]
mine = [p for p in os.listdir("/proc") if p.isdigit() and os.stat(f"/proc/{p}").st_uid == 54321
        and open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[0] != "Z"
        and int(p) not in (os.getpid(), warden._process.pid)]
print("left", mine)
"""


def test_auto_takes_the_best_that_is_fit(level):
    best = reach()
    assert best.level in levels.AUTOMATIC
    assert levels.LEVELS.index(best.level) <= levels.LEVELS.index(level) or level == "container"


def test_root_with_everything_gets_full(counted):
    found = reach()
    assert (found.level, found.userns, found.seccomp, found.net) == ("full", False, True, "none")
    assert found.cgroup in ("v1", "v2")
    assert found.missing == ()
    assert found.bwrap_version[0].isdigit()
    assert found.kernel == os.uname().release


def test_it_is_tried_once(level):
    assert reach(level) is reach(level)


def test_no_such_level():
    with pytest.raises(UsageError, match="unknown sandbox level 'ful'"):
        reach("ful")


@pytest.mark.usefixtures("without_bwrap")
def test_without_bubblewrap_it_refuses_and_says_how_to_install_it():
    with pytest.raises(SandboxUnavailable, match="sudo apt-get install bubblewrap") as refusal:
        reach()
    assert "\n" not in str(refusal.value)
    assert refusal.value.exit_code == 1
    for name in ("full", "full-nocg", "userns"):
        with pytest.raises(SandboxUnavailable, match=r"needs .*bubblewrap"):
            reach(name)


@pytest.mark.usefixtures("without_bwrap")
def test_weak_levels_must_be_asked_for_by_name():
    assert reach("limits").level == "limits"
    assert reach("limits").net == "shared"


def test_an_ordinary_user_gets_userns(counted, ordinary, tmp_path):
    script = tmp_path / "ordinary.py"
    script.write_text(ORDINARY)
    done = subprocess.run(
        [sys.executable, "-P", str(script)], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SECRET": "planted"}, timeout=60,
    )  # fmt: skip
    shutil.rmtree("/tmp/bridge-harness-54321")
    assert done.returncode == 0, done.stderr
    processes, full, stopped, limited, left = done.stdout.splitlines()
    # One of the 32 is the program, one is bwrap's first process inside.
    assert processes == "30 11 65534 {'r.txt': b'result', 'a/b.txt': b'in'} ['0.lock']"
    assert full == "error exit code 1, job folder full"
    assert (stopped, limited, left) == ("timeout", "1", "left []")


def arguments(isolation, env=None, mounts=None):
    env = env or {"PATH": "/usr/bin"}
    return bwrap_arguments(isolation, LIMITS["function"], Path("/j"), mounts or {}, env, 9)


def test_the_command_line_obeys_the_recipe(isolated):
    isolation = reach(isolated)
    words = arguments(isolation, {"A": "1"}, {"/data/deep": ROOT, "/box/in": ROOT})
    assert words.index("--clearenv") < words.index("--setenv")
    assert words.index("/box") < words.index("/box/in")
    assert words.index("/tmp") < words.index("/data/deep")
    at = words.index("/data")
    assert words[at - 3 : at + 1] == ["--perms", "0755", "--dir", "/data"]
    assert words[-2:] == ["--seccomp", "9"]
    assert words[words.index("--remount-ro", words.index("--setenv")) + 1] == "/"
    assert ("--unshare-user" in words) == (isolated == "userns")
    assert ("--disable-userns" in words) == (isolated == "userns")
    assert ("CAP_SETUID" in words) == (isolated != "userns")
    for word in ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
                 "--die-with-parent"):  # fmt: skip
        assert word in words


def test_the_address_space_is_a_backstop_only_where_a_cgroup_counts(counted, uncounted):
    limits = LIMITS["function"]
    with_cgroup = inner_command(reach(counted), limits, 1, ["true"])
    without = inner_command(reach(uncounted), limits, 1, ["true"])
    assert f"--as={4 * 512 * 2**20}" in with_cgroup
    assert f"--as={512 * 2**20}" in without


def test_the_harness_and_its_answers_are_hidden():
    for path in hidden():
        assert any(Path(path).is_relative_to(folder) for folder in ["/usr", *interpreter()])
        assert Path(path).name.startswith(("harness", "tasks", "scorers", "irt", "leaderboard",
                                           "bridge_harness", "data"))  # fmt: skip


def test_limits_of_the_specification():
    rows = {
        name: (x.wall_s, x.cpu_s, x.memory_mib, x.pids, x.job_mib, x.job_files, x.output_kib)
        for name, x in LIMITS.items()
    }
    assert rows["function"] == (10, 8, 512, 32, 16, 256, 256)
    assert rows["cell"] == (60, 500, 2048, 64, 256, 4096, 256)
    assert rows["shell"][2:] == (2048, 128, 256, 4096, 256)
    assert rows["server"][2:] == (512, 64, 16, 256, 1024)
    assert rows["engine"][2:] == (2048, 64, 256, 4096, 1024)
