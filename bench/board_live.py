"""Measure whether a run is slowed by the site that shows it, and how soon a run that goes on shows.

    .venv/bin/python -P bench/board_live.py [--repeats 5] [--n 30000] [--json]

The same run, of a mock over N questions, with nobody on the site and with the page Runs open in
Chromium, which asks anew every three seconds; in turns, so that a change of the machine meets both. The
server runs all the time. Compared are the medians, of the run's wall time and of its processor time: a
tenth more is allowed, or as much as the longest run that nobody looked at took more than their median,
which is the noise. Where other programs have the cores, wall time says little. A run that keeps one core
busy, as here, is the worst case: one that waits for a model has time to spare.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

_HARNESS = (sys.executable, "-P", "-m", "harness.cli.main")
PORT = 8598
SHOWS_WITHIN = 10.0
MOST_SLOWER = 1.1


class Run(NamedTuple):
    """What a run took, in seconds; `shown` after so many it was on the page (None: nobody looked)."""

    wall: float
    cpu: float
    shown: float | None = None


class Bar(NamedTuple):
    """A figure beside the most that is allowed."""

    name: str
    value: float
    most: float
    unit: str


def main() -> int:
    """Measure, print a table, exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--n", type=int, default=30_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bars, facts = measure(Path(folder), options.n, options.repeats)
    if options.json:
        print(json.dumps({"bars": [b._asdict() for b in bars], "facts": facts}, indent=2))
    else:
        for bar in bars:
            mark = "ok  " if bar.value <= bar.most else "MISS"
            print(f"{mark} {bar.name:<52} {bar.value:8.3f} <= {bar.most:g} {bar.unit}")
        for name, value in facts.items():
            print(f"     {name:<52} {value:8.3f}")
    return 0 if all(bar.value <= bar.most for bar in bars) else 1


def measure(folder: Path, n: int, repeats: int) -> tuple[list[Bar], dict[str, float]]:
    """Run in turns, alone and looked at."""
    store, data = folder / "store", write_data(folder / "data", n)
    alone: list[Run] = []
    seen: list[Run] = []
    with site(store) as address, window() as page:
        run(store, data)  # compiles and fills caches; not counted
        for turn in range(repeats):
            for watched in (False, True) if turn % 2 else (True, False):
                shutil.rmtree(store)
                if watched:
                    page.goto(f"{address}/runs")
                    page.get_by_text("Script time").wait_for()
                    seen.append(run(store, data, page))
                else:
                    page.goto("about:blank")
                    alone.append(run(store, data))
                print(f"{'seen' if watched else 'alone'}: {(seen if watched else alone)[-1]}",
                      file=sys.stderr)  # fmt: skip
    shown = [one.shown for one in seen if one.shown is not None]
    assert len(shown) == repeats
    return summed(alone, seen, max(shown))


def summed(alone: list[Run], seen: list[Run], latest: float) -> tuple[list[Bar], dict[str, float]]:
    """Give the ratios of the medians, and what they are made of."""
    bars = [Bar("a run shows on the site, the latest of all", latest, SHOWS_WITHIN, "s")]
    facts: dict[str, float] = {}
    for name in ("wall", "cpu"):
        one, other = ([getattr(r, name) for r in runs] for runs in (alone, seen))
        middle = statistics.median(one)
        noise = max(one) / middle
        bars.append(Bar(f"run looked at, {name} time against alone",
                        statistics.median(other) / middle, max(MOST_SLOWER, noise), ""))  # fmt: skip
        facts |= {
            f"alone, {name} s, median": middle, f"alone, {name} s, least": min(one),
            f"alone, {name} s, most": max(one),
            f"looked at, {name} s, median": statistics.median(other),
        }  # fmt: skip
    return bars, facts


def write_data(root: Path, n: int) -> Path:
    """Write n questions in upstream's layout."""
    rng = random.Random(0)
    root.mkdir()
    with (root / "test.jsonl").open("w") as file:
        for _ in range(n):
            words = " ".join(f"w{rng.randrange(1000)}" for _ in range(60))
            row = {"question": words, "answer": f"#### {rng.randrange(1000)}"}
            file.write(json.dumps(row) + "\n")
    return root


def run(store: Path, data: Path, page: Any = None) -> Run:
    """Run all questions into a new store; with a page, wait until it shows there."""
    command = ["run", "--task", "gsm8k", "--model", "mock:constant?text=C", "--data-root", str(data),
               "--store", str(store), "--json"]  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen([*_HARNESS, *command], stdout=subprocess.DEVNULL)
    shown = None
    if page is not None:
        # Whether it still runs or has just ended: it is on the page.
        page.get_by_text(re.compile("Running now: 1|All runs")).wait_for(timeout=120_000)
        shown = time.perf_counter() - began
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"harness {' '.join(command)} failed")
    return Run(wall, usage.ru_utime + usage.ru_stime, shown)


@contextmanager
def site(store: Path) -> Iterator[str]:
    """Serve the site over a store that need not be there yet; give its address."""
    from harness.cli.board import ADDRESS, command, environment

    address = f"http://{ADDRESS}:{PORT}"
    server = subprocess.Popen(
        command(PORT, browser=False), env=environment(store), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


@contextmanager
def window() -> Iterator[Any]:
    """Open a window of Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(120_000)
        yield page
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
