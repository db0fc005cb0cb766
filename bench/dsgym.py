"""What dsgym costs: a cell on a warm kernel, the runnable DAEval items, the memory of a run's process.

    .venv/bin/python -P bench/dsgym.py --data-root DIR [--times 200] [--only run,cell] [--items N] [--json]

The run has a scripted model: for each item whose tables are there it reads them with pandas, prints
`describe()` and hands in the reference, through the whole path of loop, box and scorers. Its memory is
the peak of this process alone; the workers are others. A cell is empty, so all its time is overhead. A
figure over its budget, an item that is not right or a cell that failed makes the exit code 1. Load and
CPU seconds are told beside, since on a busy machine the clock measures the others too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.core.records import EventRecord
from harness.core.types import ToolCall
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.sandbox import reach
from harness.store.journal import read_records
from harness.store.layout import Store
from tasks.dsgym.kernel import Kernel
from tasks.dsgym.rows import Question, daeval, host_file
from tasks.dsgym.task import limits

# Figure: unit and budget.
BUDGETS = {"run": ("s", 240.0), "memory": ("MB", 300.0), "cell": ("ms", 20.0)}
LOOK = """\
<python>
import pandas as pd
for path in {files!r}:
    try:
        table = pd.read_csv(path)
    except UnicodeDecodeError:
        table = pd.read_csv(path, encoding='latin-1')
    print(table.describe())
</python>"""


def runnable(root: Path) -> list[Question]:
    """Give the items whose files are all there."""
    return [
        one for one in daeval(root) if all(host_file(root, file).is_file() for file in one.files)
    ]


def run(root: Path, items: int | None) -> dict[str, float]:
    """Play the runnable items; seconds by the clock and of CPU, the peak of memory, the share right."""
    questions = runnable(root)[:items]
    lines = [
        json.dumps({
            "item_id": one.item_id,
            "turns": [LOOK.format(files=one.files), f"<answer>{one.gold}</answer>"],
        })
        for one in questions
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.jsonl")
        script.write_text("\n".join(lines), encoding="utf-8")
        config = make_config(
            task="dsgym/daeval", model=f"mock:script?file={script}", data_root=str(root),
            ids=tuple(one.item_id for one in questions),
        )  # fmt: skip
        begin = time.perf_counter()
        store = Store.open(Path(folder, "store"))
        done = start(config, store)
        seconds = time.perf_counter() - begin
        records = list(read_records(store.journal(done.run_id)))
    calls = [r.data for r in records if isinstance(r, EventRecord) and r.kind == "tool_call"]
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "n": len(questions),
        "seconds": seconds,
        "accuracy": done.metrics["accuracy"].value or 0.0,
        "cpu_s": own.ru_utime + own.ru_stime,
        "cpu_s_of_cells": sum(call.get("cpu_s") or 0.0 for call in calls),
        "failed": sum(call["status"] != "ok" for call in calls),
        "peak_mb": _peak_mb(),
    }


def cells(root: Path, times: int) -> list[float]:
    """Run empty cells on a kernel that is warm and has a table; milliseconds of each."""
    one = runnable(root)[0]
    data = {file: host_file(root, file) for file in one.files}
    took = []
    with Kernel(level="auto", limits=limits(), data=data) as kernel:
        for number in range(times + 1):
            call = ToolCall(id=str(number), name="python", arguments={"code": ""})
            begin = time.perf_counter()
            result = kernel.call(call, 60.0)
            took.append((time.perf_counter() - begin) * 1000)
            assert result.status == "ok", result
    return took[1:]  # the first starts the worker


def _peak_mb() -> float:
    """Give the peak of this process's resident memory, which no program before it counts in."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kib = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kib) * 1024 / 1e6


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--items", type=int)
    parser.add_argument("--only", default="run,cell")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, float] = {}
    beside: dict[str, str] = {}
    before = os.getloadavg()[0]
    right = True
    if "run" in options.only:  # first, so that its peak is its own
        row = run(options.data_root, options.items)
        found |= {"run": row["seconds"], "memory": row["peak_mb"]}
        right = row["accuracy"] == 1.0 and not row["failed"]
        beside["run"] = (
            f"{row['n']} items, accuracy {row['accuracy']:g}, {row['failed']} cells failed, CPU {row['cpu_s']:.1f} s, "
            f"of cells {row['cpu_s_of_cells']:.1f} s"
        )
    if "cell" in options.only:
        took = cells(options.data_root, options.times)
        found["cell"] = statistics.median(took)
        beside["cell"] = (
            f"median of {len(took)}, p95 {statistics.quantiles(took, n=20, method='inclusive')[-1]:.1f}"
        )
    over = [name for name, value in found.items() if value > BUDGETS[name][1]]
    facts = {
        "level": reach().level, "cores": os.cpu_count(),
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
    }  # fmt: skip
    if options.json:
        print(json.dumps({**facts, "figures": found, "beside": beside, "over": over}))
    else:
        print(", ".join(f"{name} {value}" for name, value in facts.items()))
        for name, value in found.items():
            unit, budget = BUDGETS[name]
            print(f"{name:10}{value:>10.1f} {unit:3} (budget {budget:g})  {beside.get(name, '')}")
    return int(bool(over) or not right)


if __name__ == "__main__":
    sys.exit(main())
