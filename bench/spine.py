"""Measure the spine's budgets: start-up, cost a sample, memory, bytes stored.

    .venv/bin/python -P bench/spine.py [--repeats 5] [--n 10000] [--json]

Each figure is CPU time (user and system) of a child process, the median of the repeats; the cost a
sample is the difference between a run of N samples and a run of one, so the fixed cost is out of it.
Machines are shared and noisy: beside each time stands its ratio to a yardstick measured in the same
minute, a JSON round trip of the same records by the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

_WORDS = [
    a + b for a in ("ba", "co", "di", "fu", "ga", "lo", "mi", "pe") for b in ("r", "lt", "n", "sk")
]
_HARNESS = (sys.executable, "-P", "-m", "harness.cli.main")


class Cost(NamedTuple):
    """What one child process took."""

    cpu_s: float
    peak_mb: float


class Bar(NamedTuple):
    """A figure beside its budget."""

    name: str
    value: float
    budget: float
    unit: str


def main() -> int:
    """Measure everything, print a table, exit 1 when a budget is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bars, facts = measure(Path(folder), options.n, options.repeats)
    if options.json:
        print(json.dumps({"bars": [b._asdict() for b in bars], "facts": facts}, indent=2))
    else:
        for bar in bars:
            mark = "ok  " if bar.value <= bar.budget else "MISS"
            print(f"{mark} {bar.name:<44} {bar.value:9.3f} of {bar.budget:g} {bar.unit}")
        for name, value in facts.items():
            print(f"     {name:<44} {value:9.3f}")
    return 0 if all(bar.value <= bar.budget for bar in bars) else 1


def measure(folder: Path, n: int, repeats: int) -> tuple[list[Bar], dict[str, float]]:
    """Measure all bars in `folder`."""
    few, many = write_data(folder / "few", 1), write_data(folder / "many", n)
    start = [
        Bar("harness --help, CPU", _median(repeats, "--help"), 0.15, "s"),
        Bar("harness list tasks, CPU", _median(repeats, "list", "tasks"), 0.25, "s"),
    ]
    generate = ("run", "--task", "gsm8k", "--model", "mock:constant?text=C")
    choose = ("run", "--task", "aicrypto/mcq", "--model", "mock:constant?text=C",
              "--solver", "choose")  # fmt: skip
    bars, facts = [], {"JSON round trip of one record, µs": yardstick()}
    for name, command, budget in (("generate", generate, 0.15), ("four-choice", choose, 0.25)):
        one = [run_once(folder, command, few) for _ in range(repeats)]
        all_ = [run_once(folder, command, many) for _ in range(repeats)]
        fixed = statistics.median(c.cpu_s for c, _ in one)
        total = statistics.median(c.cpu_s for c, _ in all_)
        each = (total - fixed) / (n - 1) * 1e3
        stored = (all_[-1][1] - one[-1][1]) / (n - 1)
        bars += [
            Bar(f"1 {name} sample, CPU", fixed, 1.0, "s"),
            Bar(f"{name} sample beyond the fixed cost, CPU", each, budget, "ms"),
            Bar(f"{n} {name} samples, peak memory", max(c.peak_mb for c, _ in all_), 150, "MB"),
            Bar(f"{name} sample, stored beyond the prompt", stored - prompt_bytes(name), 400, "B"),
        ]
        facts[f"{name}: ratio to a JSON round trip"] = (
            each * 1e3 / facts["JSON round trip of one record, µs"]
        )
        facts[f"{name}: all bytes stored a sample"] = stored
    return start + bars, facts


def write_data(root: Path, n: int) -> Path:
    """Write n questions of 60 words and n of 40 words with 4 choices of 5, in upstream's layouts."""
    rng = random.Random(0)
    mcqs = root / "data" / "mcqs"
    mcqs.mkdir(parents=True)

    def words(k: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(k))

    with (root / "test.jsonl").open("w") as file:
        for _ in range(n):
            row = {"question": words(60), "answer": f"#### {rng.randrange(1000)}"}
            file.write(json.dumps(row) + "\n")
    rows = [
        {"id": i, "question": words(40), "choice": [f"{words(5)} {j}" for j in range(4)],
         "answer": [rng.randrange(4)], "label": "math"}
        for i in range(n)
    ]  # fmt: skip
    (mcqs / "aicrypto_mcqs.json").write_text(json.dumps(rows))
    return root


def prompt_bytes(name: str) -> float:
    """Mean bytes of a prompt as sent (UTF-8, system turn included), from the tasks themselves."""
    from harness.backends.base import load
    from harness.core.types import prompt_text
    from harness.runner.config import make_config
    from harness.runner.plan import make_plan

    with tempfile.TemporaryDirectory() as folder:
        root = write_data(Path(folder) / "some", 200)
        task, solver = ("gsm8k", None) if name == "generate" else ("aicrypto/mcq", "choose")
        config = make_config(task=task, model="mock:empty", data_root=root, solver=solver)
        plan = make_plan(config, load("mock:empty"))
        return statistics.mean(len(prompt_text(m).encode()) for m in plan.messages)


def run_once(folder: Path, command: tuple[str, ...], data_root: Path) -> tuple[Cost, int]:
    """Run into a fresh store; give its cost and the bytes of everything it left there."""
    store = folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    cost = child(*command, "--data-root", str(data_root), "--store", str(store), "--json")
    size = sum(f.stat().st_size for f in store.rglob("*") if f.is_file())
    return cost, size


def child(*args: str) -> Cost:
    """Run `harness ARGS` and give its CPU seconds and peak memory."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    pid = subprocess.Popen([*_HARNESS, *args], stdout=subprocess.DEVNULL, env=environment).pid
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"harness {' '.join(args)} failed")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def yardstick() -> float:
    """CPU µs of a JSON round trip of one attempt's record, by the standard library."""
    record: dict[str, Any] = {
        "item_id": "test-0001", "epoch": 0, "key": "f" * 64, "status": "unscored",
        "prompt": " ".join(_WORDS * 2), "output": "C", "tokens_in": 60, "tokens_out": 1,
    }  # fmt: skip
    began, n = time.process_time(), 20_000
    for _ in range(n):
        json.loads(json.dumps(record))
    return (time.process_time() - began) / n * 1e6


def _median(repeats: int, *args: str) -> float:
    child(*args)  # the first start compiles and is not counted
    return statistics.median(child(*args).cpu_s for _ in range(repeats))


if __name__ == "__main__":
    sys.exit(main())
