"""Run the hostile programs at a level and judge what each of them and the host saw.

A program is a file ``NN_name.py`` beside this one; up to 44, NN is its row in the list of attacks that
the sandbox was built against. It is put into a box and never imported here. Its first lines say what
it does, and, as TOML between ``# /// expect`` and ``# ///``, what must be observed:

=============  ====================================================================================
``seen``       what the program itself reports through `probe.report`; ``"a..b"`` is a range, ``"any"`` all
``status``     of `harness.sandbox.Result`, or a list of several (default ``"ok"``)
``reason``     a part of the reason
``oom``        whether the kernel killed for memory
``peak_mib``   most memory of the box where a cgroup counts
``text``       parts of what is shown of its stdout
``limits``     changes of `LIMITS`
``collect``    names of results asked for; ``files``: those that come, or ``"any"``
``open``       columns in which it is not contained: what is observed must differ
``not_run``    columns in which it is not contained, and not run because it would do harm
``at``         column to other values of the keys above (``seen`` is merged)
=============  ====================================================================================

In no column may a secret of the harness come back. ``python suite.py`` rewrites the table of the guide
from a run of all columns that the machine offers.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  not to be had once the user is dropped
import contextlib
import encodings.ascii
import encodings.idna
import encodings.unicode_escape  # noqa: F401
import importlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from harness.sandbox import LIMITS, SandboxUnavailable, reach, run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
GUIDE = ROOT / "docs/guides/sandbox.md"
COLUMNS = ("full", "full-nocg", "userns", "unshare", "limits", "user:userns", "user:limits")
USER = 54322  # an ordinary user for the columns "user:…"
SECRET = "planted-secret-60417"
SMALL = msgspec.structs.replace(
    LIMITS["function"], wall_s=30, cpu_s=10, memory_mib=256, job_mib=32, job_files=1000,
    file_mib=16, output_kib=64,
)  # fmt: skip
GROUPS = {
    "weak": ("unshare", "limits", "user:limits"),
    "uncounted": ("full-nocg", "limits", "user:userns", "user:limits"),
}
KEYS = {"seen", "status", "reason", "oom", "peak_mib", "text", "limits", "collect", "files"}
# The interpreter of the system: levels without a root of their own cannot see root's environment.
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def programs():
    """Give all programs, by name: their text, title and expectation."""
    return {path.stem: read(path) for path in sorted(HERE.glob("[0-9][0-9]_*.py"))}


def read(path):
    """Read one program; its header must be of the form above and of no other."""
    text = path.read_text(encoding="utf-8")
    match = re.match(
        r"# (?P<title>[^\n]+\.)\n#\n# /// expect\n(?P<toml>(#[^\n]*\n)+?)# ///\n", text
    )
    if match is None:
        raise ValueError(f"{path.name}: no title and expectation at its top")
    lines = [line.removeprefix("#").removeprefix(" ") for line in match["toml"].splitlines()]
    expect = tomllib.loads("\n".join(lines))
    expect["at"] = {
        column: change
        for name, change in expect.get("at", {}).items()
        for column in GROUPS.get(name, (name,))
    }
    for key in ("open", "not_run"):
        names = expect.get(key, [])
        expect[key] = [column for name in names for column in GROUPS.get(name, (name,))]
    unknown = set(expect) - KEYS - {"open", "not_run", "at"}
    unknown |= {key for change in expect["at"].values() for key in set(change) - KEYS}
    unknown |= {*expect["open"], *expect["not_run"], *expect["at"]} - set(COLUMNS)
    if unknown or set(expect["open"]) & set(expect["not_run"]):
        raise ValueError(f"{path.name}: the expectation says {sorted(unknown)}")
    return {"title": match["title"].rstrip("."), "source": text, **expect}


def expected(program, column):
    """Give what must be observed in a column where the program is contained."""
    change = program["at"].get(column, {})
    seen = {**program.get("seen", {}), **change.get("seen", {})}
    plain = {key: program[key] for key in KEYS if key in program}
    return {"status": "ok", **plain, **change, "seen": seen}


def fits(want, got):
    """Compare one value: equal, in a range ``"a..b"``, or ``"any"``."""
    if want == "any":
        return True
    if isinstance(want, str) and (match := re.fullmatch(r"(\d+)\.\.(\d+)", want)):
        return isinstance(got, int) and int(match[1]) <= got <= int(match[2])
    return want == got


def differences(program, column, observed):
    """Say in what way an observation is not what containment looks like."""
    want = expected(program, column)
    found = [f"{name} came back" for name in observed["leaked"]]
    for name, value in want["seen"].items():
        if not fits(value, got := observed["seen"].get(name)):
            found.append(f"{name}: {got!r}, not {value!r}")
    statuses = want["status"] if isinstance(want["status"], list) else [want["status"]]
    if observed["status"] not in statuses:
        found.append(f"status {observed['status']} ({observed['reason']}), not {statuses}")
    if want.get("reason", "") not in observed["reason"]:
        found.append(f"reason {observed['reason']!r}")
    if "oom" in want and want["oom"] != (observed["oom_kill"] > 0):
        found.append(f"{observed['oom_kill']} memory kills")
    if observed["peak_mib"] is not None and not fits(
        want.get("peak_mib", "0..257"), observed["peak_mib"]
    ):
        found.append(f"peak {observed['peak_mib']} MiB")
    found += [
        f"not shown: {part!r}" for part in want.get("text", []) if part not in observed["text"]
    ]
    files = want.get("files", [])
    if files != "any" and sorted(files) != observed["files"]:
        found.append(f"files {observed['files']}, refused {observed['refused']}")
    return found


def outcome(program, column, observed):
    """Give the entry of the table."""
    if column in program["not_run"]:
        return "not contained, not run"
    return "not contained" if differences(program, column, observed) else "contained"


def claim(program, column):
    """Give the entry of the table that the program's header promises."""
    if column in program["not_run"]:
        return "not contained, not run"
    return "not contained" if column in program["open"] else "contained"


def observe(column, place, names=None):
    """Run every program, or those of some names, in one column, several at once.

    `place` is a folder that other users can enter: a file with the secret goes into it.
    """
    isolation = reach(column.removeprefix("user:"))
    # Open to all, so that nothing but the read-only mount keeps a program from writing.
    (place / "data").mkdir(exist_ok=True)
    (place / "data" / "rows.csv").write_text("1,2\n")
    (place / "data").chmod(0o777)
    (place / "data" / "rows.csv").chmod(0o666)
    (place / "secret.txt").write_text(SECRET)
    abstract = f"hostile-{os.getpid()}-{column}"
    todo = {
        name: program
        for name, program in ALL.items()
        if column not in program["not_run"] and (names is None or name in names)
    }
    # An ordinary user's limit of processes counts the harness and all its boxes together.
    threads = 3 if column == "user:limits" else 8
    os.environ["PLANTED_API_KEY"] = SECRET
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        ThreadPoolExecutor(threads) as pool,
    ):
        unix.bind(f"\0{abstract}")
        unix.listen(100)
        hints = {
            "file": str(place / "secret.txt"), "port": tcp.getsockname()[1],
            "abstract": abstract, "harness": os.getpid(),
        }  # fmt: skip

        def go(name):
            return _observe_one(todo[name], column, isolation, hints, place)

        order = sorted(todo, key=_turn)
        found = dict(zip(order, pool.map(go, order), strict=True))
    del os.environ["PLANTED_API_KEY"]
    return {name: found.get(name) for name in names or ALL}


def _turn(name):
    """Put first what waits for the clock, beside the others.

    Last go those that use up processes: at level limits dead ones count against the next box of the
    same user until the machine's first process has buried them.
    """
    program = ALL[name]
    return program.get("limits", {}).get("wall_s", 99), "made" in program.get("seen", {})


def _observe_one(program, column, isolation, hints, place):
    limits = msgspec.structs.replace(SMALL, **expected(program, column).get("limits", {}))
    own_root = isolation.level in ("full", "full-nocg", "userns")
    result = run(
        [PYTHON, "-E", "-s", "-S", "-B", "main.py"],
        files={
            "main.py": program["source"].encode(), "probe.py": PROBE,
            "hints.json": json.dumps(hints).encode(),
        },
        mounts={"/data": place / "data"} if own_root else {},
        limits=limits, collect=program.get("collect", []), level=isolation.level,
    )  # fmt: skip
    bytes_back = result.stdout.raw + result.stderr.raw + b"".join(result.files.values())
    marks = {"the secret": SECRET}
    if own_root:
        marks["a path of the host"] = str(place)
    seen = {}
    with contextlib.suppress(ValueError, StopIteration):
        lines = result.stdout.raw.splitlines()
        seen = json.loads(next(line for line in lines if line.startswith(b'{"seen": ')))["seen"]
    return {
        "seen": seen, "status": result.status, "reason": result.reason,
        "oom_kill": result.oom_kill, "text": result.stdout.text, "stderr": result.stderr.text[-600:],
        "peak_mib": None if result.peak_bytes is None else result.peak_bytes >> 20,
        "files": sorted(result.files), "refused": result.refused,
        "leaked": [name for name, mark in marks.items() if mark.encode() in bytes_back],
    }  # fmt: skip


def offered():
    """Give the columns that this machine offers."""
    found = []
    for column in COLUMNS:
        user, _, level = column.rpartition(":")
        if user and os.geteuid() != 0:
            continue
        with contextlib.suppress(SandboxUnavailable):
            reach(level)
            found.append(column)
    return found


def observe_as_user(column):
    """Do what `observe` does in a process of an ordinary user; also say what it left there."""
    done = subprocess.run(
        [sys.executable, "-P", str(HERE / "suite.py"), column], capture_output=True, text=True,
        check=False, cwd=ROOT, timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PLANTED_API_KEY": SECRET},
    )  # fmt: skip
    shutil.rmtree(f"/tmp/bridge-harness-{USER}", ignore_errors=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def _as_user(column):
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        Path(folder).chmod(0o711)
        found = observe(column, Path(folder))
    slots = importlib.import_module("harness.sandbox.slots")
    left = sorted(path.name for path in slots._state().iterdir() if path.suffix != ".lock")
    # The harness's own warden ends with it.
    own = (os.getpid(), importlib.import_module("harness.sandbox.warden")._process.pid)
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if entry.name.isdigit() and entry.stat().st_uid == USER and state != "Z":
                left += [entry.name] * (int(entry.name) not in own)
    print(json.dumps({"observed": found, "left": left}))


def table(columns):
    """Lay out the table: a row a program, an entry a column."""
    signs = {
        "contained": "contained", "not contained": "**not contained**",
        "not contained, not run": "not contained (not run)",
    }  # fmt: skip
    heads = [column.replace("user:", "") + " (user)" * ("user:" in column) for column in COLUMNS]
    lines = ["| program | what it does | " + " | ".join(heads) + " |"]
    lines.append("|---" * (len(COLUMNS) + 2) + "|")
    for name, program in ALL.items():
        entries = [signs[columns[column][name]] for column in COLUMNS]
        lines.append(
            f"| `{name}` | {program['title'].replace('|', '/')} | " + " | ".join(entries) + " |"
        )
    return "\n".join(lines)


def committed(text=None):
    """Read the table of the guide back: column to program to entry."""
    text = GUIDE.read_text(encoding="utf-8") if text is None else text
    found = {column: {} for column in COLUMNS}
    for line in text.splitlines():
        if match := re.match(r"\| `(\d\d_\w+)` \|", line):
            cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
            for column, cell in zip(COLUMNS, cells[2:], strict=True):
                found[column][match[1]] = re.sub(r" \((not run)\)", r", \1", cell)
    return found


def rewrite():
    """Run everything and write the table of the guide; columns not offered here stay as they are."""
    columns = committed()
    for column in offered():
        if column.startswith("user:"):
            found = observe_as_user(column)["observed"]
        else:
            with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
                Path(folder).chmod(0o711)
                found = observe(column, Path(folder))
        columns[column] = {name: outcome(p, column, found[name]) for name, p in ALL.items()}
        for name, program in ALL.items():
            if columns[column][name] != claim(program, column):
                said = differences(program, column, found[name])
                print(column, name, columns[column][name], said, found[name]["stderr"])
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition("<!-- table -->\n")
    after = rest.partition("<!-- end of table -->")[2]
    GUIDE.write_text(
        f"{before}<!-- table -->\n{table(columns)}\n<!-- end of table -->{after}", encoding="utf-8"
    )


ALL = programs()
PROBE = (HERE / "probe.py").read_bytes()

if __name__ == "__main__":
    if len(sys.argv) > 1:
        _as_user(sys.argv[1])
    else:
        rewrite()
