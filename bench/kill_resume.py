"""Kill a run with SIGKILL at random moments, resume it, and compare with an unbroken run.

    .venv/bin/python -P bench/kill_resume.py [--kills 10] [--data-root DIR] [--n 1319]

Each time: rows, statuses, values and outputs must equal those of the unbroken run, every planned key
must stand exactly once among the journal's samples, and `harness store verify` must find nothing.
Without `--data-root` a file of N generated questions in the layout of GSM8K is used.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

_HARNESS = (sys.executable, "-P", "-m", "harness.cli.main")
_MODEL = "mock:noisy?accuracy=0.6&delay=0.001"


def main() -> int:
    """Kill, resume, compare; exit 1 at the first difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--n", type=int, default=1319)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = options.data_root or write_questions(Path(folder) / "data", options.n)
        n = sum(1 for line in (root / "test.jsonl").open() if line.strip())
        whole = Path(folder) / "whole"
        subprocess.run(command(root, whole), check=True, stdout=subprocess.DEVNULL)
        expected = rows_of(whole)
        print(f"unbroken: {len(expected)} rows, {summary_of(whole)}")
        for number in range(options.kills):
            broken = Path(folder) / f"broken-{number}"
            journaled = kill_at(command(root, broken), broken, rng.randrange(2, 2 * n))
            verdict = resume_and_compare(broken, expected, whole)
            print(f"kill {number}: after {journaled} samples; {verdict or 'equal, nothing twice'}")
            if verdict:
                return 1
    return 0


def command(root: Path, store: Path) -> list[str]:
    """The run that is killed."""
    return [
        *_HARNESS, "run", "--task", "gsm8k", "--model", _MODEL, "--data-root", str(root),
        "--store", str(store), "--batch-size", "8",
    ]  # fmt: skip


def kill_at(args: list[str], store: Path, lines: int) -> int:
    """Start a run, kill it once its journal has so many lines; give the samples journaled."""
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while process.poll() is None and count_lines(store) < lines:
        if time.monotonic() > deadline:
            break
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return sum(r["type"] == "sample" for r in records(store))


def count_lines(store: Path) -> int:
    """Count the newlines of the journal so far."""
    return sum(path.read_bytes().count(b"\n") for path in store.glob("runs/*/journal.jsonl"))


def resume_and_compare(store: Path, expected: list[Any], whole: Path) -> str:
    """Resume and compare with the unbroken run; give the difference or an empty text."""
    (run,) = (path.name for path in (store / "runs").iterdir())
    done = subprocess.run([*_HARNESS, "resume", run, "--store", str(store)],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode:
        return f"resume failed: {done.stderr}"
    keys = Counter(r["key"] for r in records(store) if r["type"] == "sample")
    if max(keys.values()) > 1 or len(keys) != len(expected):
        return f"{len(keys)} keys, the most frequent stands {max(keys.values())} times"
    if rows_of(store) != expected:
        return "rows differ"
    if summary_of(store) != summary_of(whole):
        return f"summary differs: {summary_of(store)}"
    care = subprocess.run([*_HARNESS, "store", "verify", "--store", str(store)],
                          capture_output=True, text=True, check=False)  # fmt: skip
    return care.stdout if care.returncode else ""


def records(store: Path) -> list[dict[str, Any]]:
    """Read the whole lines of the journal, packed or not."""
    from harness.store.journal import journal_lines
    from harness.store.layout import Store

    opened = Store(store)
    lines = [x for run in opened.run_ids() for x in journal_lines(opened.journal(run))]
    return [json.loads(line) for line in lines]


def rows_of(store: Path) -> list[Any]:
    """Read what the store holds of every attempt, without times and run id."""
    from harness.runner.api import Run
    from harness.store.layout import Store

    opened = Store(store)
    (run_id,) = opened.run_ids()
    table = Run(run_id, opened).samples()
    kept = ["item_id", "epoch", "attempt", "status", "score_value", "answer", "prompt", "output"]
    return sorted(tuple(row.values()) for row in table.select(kept).to_pylist())


def summary_of(store: Path) -> str:
    """The run's metrics and counts, to the last digit."""
    from harness.runner.lifecycle import all_runs
    from harness.store.layout import Store

    (one,) = all_runs(Store(store))
    return f"{one.metrics} {one.counts} {one.n_counted} of {one.n_planned}"


def write_questions(root: Path, n: int) -> Path:
    """Write n short questions in GSM8K's layout."""
    root.mkdir(parents=True)
    with (root / "test.jsonl").open("w") as file:
        for i in range(n):
            file.write(json.dumps({"question": f"What is {i} + {i}?", "answer": f"#### {2 * i}"}))
            file.write("\n")
    return root


if __name__ == "__main__":
    sys.exit(main())
