"""What aicrypto/ctf costs: making and checking its challenges, playing them all, one step of an agent.

    .venv/bin/python -P bench/aicrypto_ctf.py [--seeds 1] [--threads 2] [--only instances,play,step] [--json]

Instances are made as a run makes them, each in a process of its own, and none is taken that our own
solution has not broken; `--seeds 10` makes those of seeds 0 to 9. Playing is `mock:gold` through the
whole path: every solution is run in a box and scored. A figure over its budget, an instance that is
not made or a game that is not won makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.sandbox import reach
from harness.store.layout import Store
from tasks.aicrypto.ctf.families.catalogue import ITEMS
from tasks.aicrypto.ctf.forge import forge

BUDGETS = {"instances": 60.0, "play": 300.0, "step": 0.050}  # seconds
STATIC, DYNAMIC = "own-ctf-caesar-affine-1", "own-ctf-cbc-flip-1"
COMMAND_S, FEW, MANY, TIMES = 0.02, 5, 55, 5


def instances(seed: int, threads: int) -> dict[str, object]:
    """Make and check all items of a seed; seconds for all, the slowest, and how many tries were needed."""

    def one(item_id: str) -> tuple[float, int, str]:
        begin = time.perf_counter()
        made = forge(item_id, seed, 0)
        return time.perf_counter() - begin, made.tries, item_id

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        rows = list(pool.map(one, ITEMS))
    seconds = time.perf_counter() - begin
    slowest = sorted(rows, reverse=True)[:3]
    return {
        "seed": seed, "n": len(rows), "seconds": round(seconds, 2),
        "tries": sum(tries for _, tries, _ in rows),
        "slowest": {item_id: round(took, 2) for took, _, item_id in slowest},
    }  # fmt: skip


def play(seed: int) -> dict[str, object]:
    """Let gold play every item in its box; seconds and the share of flags that were found."""
    with tempfile.TemporaryDirectory() as folder:
        config = make_config(task="aicrypto/ctf", model="mock:gold", seed=seed)
        begin = time.perf_counter()
        run = start(config, Store.open(Path(folder)))
        seconds = time.perf_counter() - begin
    return {"seed": seed, "n": run.n_planned, "seconds": round(seconds, 2), "status": run.status,
            "accuracy": run.metrics["accuracy"].value}  # fmt: skip


def step(item_id: str) -> float:
    """Take the time of one turn of an agent with a command in it, less that of the command.

    A game of many turns less one of few, so that what a run and its boxes cost once is left out.
    """
    took = []
    for _ in range(TIMES):
        few, many = (_game(item_id, turns) for turns in (FEW, MANY))
        took.append((many - few) / (MANY - FEW) - COMMAND_S)
    return statistics.median(took)


def _game(item_id: str, turns: int) -> float:
    said = {"tool_calls": [{"name": "bash", "arguments": {"command": f"sleep {COMMAND_S}"}}]}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.jsonl")
        script.write_text(json.dumps({"item_id": "*", "turns": [said] * turns}) + "\n")
        config = make_config(
            task="aicrypto/ctf", model=f"mock:script?file={script}", ids=[item_id],
            solver=f"agent?max_turns={turns}&protocol=tools",
        )  # fmt: skip
        begin = time.perf_counter()
        start(config, Store.open(Path(folder, "store")))
        return time.perf_counter() - begin


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default=",".join(BUDGETS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    only = options.only.split(",")
    found: dict[str, list[dict[str, object]]] = {name: [] for name in only}
    if "instances" in only:
        found["instances"] = [instances(seed, options.threads) for seed in range(options.seeds)]
    if "play" in only:
        # Another seed: what was made above is kept for a while, and gold would be given it.
        found["play"] = [play(options.seeds)]
    if "step" in only:
        # What an item costs once has the same few per cent of noise: items are made before.
        for item in (STATIC, DYNAMIC):
            forge(item, 0, 0)
        found["step"] = [
            {"item": item, "seconds": round(step(item), 4)} for item in (STATIC, DYNAMIC)
        ]
    over = [
        name for name, rows in found.items() for row in rows
        if float(str(row["seconds"])) > BUDGETS[name] or row.get("accuracy", 1.0) != 1.0
    ]  # fmt: skip
    if options.json:
        print(json.dumps({"level": reach().level, "figures": found, "over": over}))
    else:
        print(f"level {reach().level}, {options.threads} threads")
        for name, rows in found.items():
            for row in rows:
                told = ", ".join(f"{k} {v}" for k, v in row.items() if k != "seconds")
                print(f"{name:10}{row['seconds']:>10} s  (budget {BUDGETS[name]:g})  {told}")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
