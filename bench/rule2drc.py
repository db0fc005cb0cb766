"""What judging decks costs: `python bench/rule2drc.py [--mutants]`.

A deck runs on one thread, so its seconds on the clock are at least its CPU seconds, and near them on a quiet machine. Upstream's
way, a process a layout, is measured in the same run for the ratio. Bars: 5 ms a layout after start-up, the 51 own tasks within
3 minutes on 2 cores, 13,921 layouts of 1,000 tasks within 30 CPU minutes by extrapolation from over 2,000.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from harness.core.resources import data
from harness.core.task import TaskRequest, make_task
from harness.core.types import Sample
from scorers.drc.klayout import KlayoutEngine
from scorers.drc.regions import RegionsEngine
from scorers.drc.verdict import verdict

TASKS, LAYOUTS = 1_000, 13_921  # upstream's


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Give the seconds on the clock, and the result."""
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def layouts_of(sample: Sample) -> list[bytes]:
    """Give an item's layouts."""
    return [row["gds"] for row in sample.metadata["layouts"]]


def right(engine: Any, sample: Sample, deck: str) -> bool:
    """Tell whether a deck is right."""
    about = sample.metadata
    run = engine.run(deck, layouts_of(sample), key=sample.item_id)
    return verdict(run, about["categories"], [row["labels"] for row in about["layouts"]]).success


def upstream_way(deck: str, layout: bytes) -> None:
    """Start a process for one layout, as upstream does."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "d.drc").write_text(deck)
        (root / "l.gds").write_bytes(layout)
        names = {"input": root / "l.gds", "output": root / "o.lyrdb"}
        given = [text for name, path in names.items() for text in ("-rd", f"{name}={path}")]
        subprocess.run(["klayout", "-b", "-r", str(root / "d.drc"), *given], check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--mutants", action="store_true", help="run every wrong deck too (10 minutes)"
    )
    asked = parser.parse_args()
    samples = list(make_task("rule2drc/script", TaskRequest()).samples)
    first = samples[0]
    deck, few = first.target[0], layouts_of(first)

    engine = KlayoutEngine()
    many = engine.run(deck, few * 143, key="many", audit=False)  # over 2,000 layouts
    each = mean(run.seconds for run in many.runs)
    start = many.seconds - sum(run.seconds for run in many.runs)
    print(
        f"start-up {start:.2f} s; after it {1000 * each:.2f} ms a layout over {len(many.runs)} (bar 5)"
    )
    alone, _ = timed(lambda: list(map(partial(upstream_way, deck), few[:3])))
    print(f"a process a layout: {1000 * alone / 3:.0f} ms, {alone / 3 / each:.0f} times as much")

    with ThreadPoolExecutor(2) as pool:
        wall, good = timed(lambda: list(pool.map(lambda s: right(engine, s, s.target[0]), samples)))
    print(
        f"{len(samples)} own tasks with audit, two at once: {sum(good)} right, {wall:.0f} s (bar 180)"
    )
    fresh = KlayoutEngine()
    runs = [fresh.run(s.target[0], layouts_of(s), key=s.item_id) for s in samples]
    of_layouts = [one.seconds for run in runs for one in run.runs]
    per_task = (sum(run.seconds for run in runs) - sum(of_layouts)) / len(runs)
    total = TASKS * per_task + LAYOUTS * mean(of_layouts)
    print(f"upstream's {TASKS:,} tasks, {LAYOUTS:,} layouts: {total / 60:.0f} minutes of one core (bar 30): "
          f"{per_task:.2f} s a task with its audit, {1000 * mean(of_layouts):.2f} ms a layout")  # fmt: skip

    with closing(RegionsEngine()) as ours:
        wall, good = timed(lambda: [right(ours, s, s.target[0]) for s in samples])
    print(f"engine=regions: {sum(good)} right in {wall:.1f} s")

    if asked.mutants:
        by_id = {s.item_id: s for s in samples}
        rows = [
            json.loads(line) for line in data("rule2drc/mutants.jsonl").read_text().splitlines()
        ]
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda r: right(engine, by_id[r["problem_id"]], r["deck"]), rows))
        alive = [
            f"{r['problem_id']} {r['name']}" for r, good in zip(rows, found, strict=True) if good
        ]
        print(f"{len(rows)} wrong decks, {len(alive)} taken for right: {alive}")


if __name__ == "__main__":
    main()
