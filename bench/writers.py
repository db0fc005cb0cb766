"""Several runs write one store under fire, and nothing may be lost or stored twice.

    .venv/bin/python -P bench/writers.py [--writers 4] [--kills 10] [--seconds 20] [--seed 0] [--json]

Real processes: `harness run` with mock models that take their time, `harness store sync` over and
over, and a reader of the published results. Whoever holds the store's lock, in turn a sync or a run,
is the ingester and is killed with SIGKILL at random moments; one run is killed whether it holds it or
not. Prompts are long, so that a run's own ingester has work every few seconds.
Killed runs are resumed at once. At the end the journals are counted with the json module alone and
compared with what the database says.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

_HARNESS = (sys.executable, "-P", "-m", "harness.cli.main")
_DEADLINE = 300.0
_JOURNAL_BYTES = 16 << 20


def main() -> int:
    """Let the processes loose, print what was found, exit 1 for any fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = storm(Path(folder), options.writers, options.kills, options.seconds, options.seed)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:<32} {value}")
    return 1 if found["faults"] or found["reader p95, s"] > 1 else 0


def storm(folder: Path, writers: int, kills: int, seconds: float, seed: int) -> dict[str, Any]:
    """Run everything in `folder`.

    Parameters
    ----------
    folder : Path
        Empty; the store is made in it.
    writers, kills : int
        Runs at the same time, and how often the holder of the lock is killed.
    seconds : float
        How long a run takes at least: its items times the delay of its model.
    seed : int
        Of the moments of killing and the victims.

    Returns
    -------
    dict
        Figures, and ``faults``: one line each, empty when all is well.
    """
    store, rng = folder / "store", random.Random(seed)
    delay = 0.01
    n = int(seconds / delay)
    data = _write_questions(folder / "data", n, _JOURNAL_BYTES // n)
    crew = Crew(store, data, delay)
    for number in range(writers):
        crew.start(number)
    reader = Reader(store)
    reader.start()
    killed = {"run": 0, "sync": 0}
    for number in range(kills):
        crew.syncing = number % 2 == 0
        killed[crew.kill_holder(rng)] += 1
        if number == kills // 2 and (busy := crew.busy()):
            crew.kill(rng.choice(busy))
            killed["run"] += 1
    crew.syncing = True
    crew.finish()
    reader.stop()
    faults = check(store, writers * n) + reader.faults
    return {
        "runs": writers,
        "attempts": writers * n,
        "killed while holding the lock": kills,
        "runs killed, one anyhow": killed["run"],
        "syncs killed": killed["sync"],
        "resumed": crew.resumed,
        "looks of the reader": len(reader.times),
        "reader p95, s": round(statistics.quantiles(reader.times, n=20)[-1], 4),
        "reader longest, s": round(max(reader.times), 4),
        "counts seen on the way": len(set(reader.seen)),
        "faults": faults,
    }


class Crew:
    """The processes that write: one a run, and one that syncs."""

    def __init__(self, store: Path, data: Path, delay: float) -> None:
        self.store, self.data, self.delay = store, data, delay
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.sync: subprocess.Popen[bytes] | None = None
        self.syncing = True
        self.resumed = 0
        (store / "runs").mkdir(parents=True)

    def start(self, number: int) -> None:
        """Start a run of its own model: what one pays for is of no use to the others."""
        model = f"mock:noisy?accuracy=0.{number + 1}&delay={self.delay}"
        self.processes[number] = self._begin(
            "run", "--task", "gsm8k", "--model", model, "--data-root", str(self.data),
            "--batch-size", "8",
        )  # fmt: skip
        _wait_for(lambda: self.run_id(number) is not None)

    def run_id(self, number: int) -> str | None:
        """Find the run of a writer by the model in its first line."""
        for journal in self.store.glob("runs/*/journal.jsonl"):
            with journal.open("rb") as file:
                if f'"model":"mock:noisy?accuracy=0.{number + 1}&'.encode() in file.readline():
                    return journal.parent.name
        return None

    def busy(self) -> list[int]:
        """List the writers at work."""
        return [number for number, process in self.processes.items() if process.poll() is None]

    def kill(self, number: int) -> None:
        """Kill a writer."""
        self.processes[number].kill()
        self.processes[number].wait()

    def kill_holder(self, rng: random.Random) -> str:
        """Wait until one of the crew holds the store's lock, and kill it at a random moment."""
        end = time.monotonic() + _DEADLINE
        while time.monotonic() < end:
            self.mend()
            if (pid := lock_holder(self.store / "store.lock")) is None:
                continue
            time.sleep(rng.random() * 0.05)
            if lock_holder(self.store / "store.lock") != pid:
                continue
            for process in (self.sync, *self.processes.values()):
                if process is not None and process.pid == pid:
                    os.kill(pid, signal.SIGKILL)
                    process.wait()
                    return "sync" if process is self.sync else "run"
        raise SystemExit("nobody took the store's lock")

    def mend(self) -> None:
        """Resume what was killed, and keep one sync going while that is wanted or nobody else works."""
        for number, process in list(self.processes.items()):
            code = process.poll()
            if code == -signal.SIGKILL:
                run_id = self.run_id(number)
                assert run_id is not None
                self.processes[number] = self._begin("resume", run_id)
                self.resumed += 1
            elif code:
                raise SystemExit(f"writer {number} ended with {code}")
        if self.sync is None or self.sync.poll() is not None:
            if self.sync is not None and self.sync.returncode not in (0, -signal.SIGKILL):
                raise SystemExit(f"a sync ended with {self.sync.returncode}")
            self.sync = self._begin("store", "sync") if self.syncing or not self.busy() else None

    def finish(self) -> None:
        """Wait until every run is done."""
        while self.busy() or any(p.returncode for p in self.processes.values()):
            self.mend()
            time.sleep(0.02)
        if self.sync is not None:
            self.sync.wait()

    def _begin(self, *args: str) -> subprocess.Popen[bytes]:
        log = (self.store.parent / "stderr.txt").open("ab")
        with log:
            return subprocess.Popen(
                [*_HARNESS, *args, "--store", str(self.store)],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )


class Reader(threading.Thread):
    """Looks at the published results all the time, as a page would."""

    def __init__(self, store: Path) -> None:
        super().__init__(daemon=True)
        self.store = store
        self.times: list[float] = []
        self.seen: list[int] = []
        self.faults: list[str] = []
        self._over = threading.Event()

    def stop(self) -> None:
        """Look once more, then end."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look every 20 ms; counts may only grow."""
        from harness.store import Store, snapshot
        from harness.store.queries import run_rows, run_totals

        before: dict[str, int] = {}
        _wait_for((self.store / "published" / "current.json").exists)
        over = False
        while not over:
            over = self._over.wait(0.02)
            began = time.monotonic()
            con = snapshot(Store(self.store))
            run_rows(con)
            now = {k: v.counts["n_planned"] - v.counts["open"] for k, v in run_totals(con).items()}
            self.times.append(time.monotonic() - began)
            self.seen.append(sum(now.values()))
            for run_id, count in before.items():
                if now.get(run_id, 0) < count:
                    self.faults.append(f"reader: {run_id} went from {count} to {now.get(run_id)}")
            before = now


def lock_holder(path: Path) -> int | None:
    """Give the process that holds a flock on a file, from the kernel's table of locks."""
    try:
        inode = path.stat().st_ino
    except FileNotFoundError:
        return None
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        # "7: FLOCK ADVISORY WRITE 4711 fe:00:2164592 0 EOF"; a waiter's line has "->" after the number.
        if words[1] == "FLOCK" and words[5].rsplit(":", 1)[-1] == str(inode):
            return int(words[4])
    return None


def check(store: Path, n_planned: int) -> list[str]:
    """Compare journals, database and the store's own check; give the faults."""
    faults = []
    places: Counter[tuple[str, str, int]] = Counter()
    keys: Counter[str] = Counter()
    for line in _journal_lines(store):
        record = json.loads(line)
        if record["type"] == "sample":
            places[record["run_id"], record["item_id"], record["epoch"]] += 1
            keys[record["key"]] += 1
    if len(places) != n_planned or max(places.values()) > 1:
        faults.append(f"journals: {len(places)} of {n_planned}, most {max(places.values())} times")
    if len(keys) != n_planned or max(keys.values()) > 1:
        faults.append(f"keys: {len(keys)} of {n_planned}, most {max(keys.values())} times")
    stored = Counter(_stored(store))
    if stored != places:
        faults.append(f"database: {len(places - stored)} lost, {len(stored - places)} too many")
    verified = subprocess.run([*_HARNESS, "store", "verify", "--store", str(store)],
                              capture_output=True, text=True, check=False)  # fmt: skip
    faults += verified.stdout.splitlines()
    listed = subprocess.run([*_HARNESS, "list", "runs", "--json", "--store", str(store)],
                            capture_output=True, text=True, check=True)  # fmt: skip
    for run in json.loads(listed.stdout):
        if run["status"] != "done" or run["n_scored"] != run["n_planned"]:
            faults.append(f"run {run['run_id']}: {run['status']}, {run['n_scored']} scored")
    return faults


def _journal_lines(store: Path) -> list[bytes]:
    from harness.store.journal import journal_lines

    runs = (store / "runs").iterdir()
    return [line for run in runs for line in journal_lines(run / "journal.jsonl")]


def _stored(store: Path) -> list[tuple[str, str, int]]:
    from harness.store import Store, snapshot

    return snapshot(Store(store)).execute("SELECT run_id, item_id, epoch FROM samples").fetchall()


def _write_questions(root: Path, n: int, length: int) -> Path:
    root.mkdir(parents=True)
    rows = (
        {"question": f"What is {i} + {i}? {f'{i} ' * (length // 5)}", "answer": f"#### {2 * i}"}
        for i in range(n)
    )
    (root / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def _wait_for(true: Any) -> None:
    end = time.monotonic() + _DEADLINE
    while not true():
        if time.monotonic() > end:
            raise SystemExit("waited in vain")
        time.sleep(0.005)


if __name__ == "__main__":
    sys.exit(main())
