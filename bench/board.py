"""Measure the site at a million attempts: time of every page's script, and the server's memory.

    nice .venv/bin/python -P bench/board.py [--runs 334] [--items 3000] [--store DIR] [--json]

The store is that of bench/store.py, its models taken for contenders; --store DIR uses one that is
there. Scale and Horizon are opened once more over a fit of the size of BRIDGE's (176 models, 1,019 items,
86,000 answers, 685 known human minutes, 36 release dates), of simulated answers. Every page is opened by Streamlit's own AppTest, cold (modules loaded, nothing asked yet) and
then again; the times are those that the pages print. Times are wall time, so on a busy machine they
say little: the processor time of the cold opening stands beside.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
WARM = 5


class Bar(NamedTuple):
    """A figure beside its bar; `most` tells whether the bar is the most or the least allowed."""

    name: str
    value: float
    bar: float
    unit: str
    most: bool = True

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of its bar."""
        return self.value <= self.bar if self.most else self.value >= self.bar


def main() -> int:
    """Measure every page, print a table, exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=334)
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--visit", nargs="?", const="", help="the visit alone, by the bench itself")
    options = parser.parse_args()
    if options.visit is not None:
        print(json.dumps(visit(options.visit.split())))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or Path(folder) / "store"
        if options.store is None:
            make_store(store, options.runs, options.items)
        bars, facts = measure(store)
        fitted = measure_fit(make_fit(Path(folder)))
        bars, facts = bars + fitted[0], facts | fitted[1]
    if options.json:
        print(json.dumps({"bars": [b._asdict() for b in bars], "facts": facts}, indent=2))
    else:
        for bar in bars:
            mark, limit = "ok  " if bar.met else "MISS", "<=" if bar.most else ">="
            print(f"{mark} {bar.name:<44} {bar.value:10.3f} {limit} {bar.bar:g} {bar.unit}")
        for name, value in facts.items():
            print(f"     {name:<44} {value:10.3f}")
    return 0 if all(bar.met for bar in bars) else 1


def make_store(root: Path, n_runs: int, n_items: int) -> None:
    """Write, ingest and publish the runs of bench/store.py, as runs of models that are ranked."""
    from harness.store import Store, sync
    from harness.store.publish import publish
    from harness.store.schema import connect

    spec = importlib.util.spec_from_file_location("bench_store", HERE / "store.py")
    assert spec is not None
    assert spec.loader is not None
    made: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    made.write_journals(root, n_runs, n_items)
    store = Store.open(root)
    sync(store, publish=False)
    with connect(store.database) as con:
        con.execute("UPDATE runs SET is_baseline = false, model = replace(model, 'mock:', 'hf:')")
    publish(store)


def make_fit(folder: Path) -> Path:
    """Simulate answers of a two-parameter logistic model and fit them into a store of their own."""
    import numpy as np

    rng = np.random.default_rng(0)
    theta, b, a = rng.normal(size=176), rng.normal(0, 1.5, 1019), rng.lognormal(0, 0.4, 1019)
    right = rng.random((176, 1019)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    asked = rng.random((176, 1019)) < 0.482
    answers = folder / "answers.jsonl"
    with answers.open("w") as file:
        for m in range(176):
            of_model = {f"i{i}": int(right[m, i]) for i in np.flatnonzero(asked[m])}
            file.write(json.dumps({"subject_id": f"m{m}", "responses": of_model}) + "\n")
    minutes, dates, store = folder / "minutes.csv", folder / "dates.csv", folder / "fitted"
    lines = [f"i{i},{np.exp(2 + 1.5 * b[i] + rng.normal()):.4f}" for i in range(685)]
    minutes.write_text("item,human_minutes\n" + "\n".join(lines) + "\n")
    lines = [f"m{m},{2021 + m // 9}-{1 + m % 9:02d}-15" for m in range(36)]
    dates.write_text("model,release_date\n" + "\n".join(lines) + "\n")
    fit = ["fit", "--responses", str(answers), "--human-minutes", str(minutes)]
    fit += ["--release-dates", str(dates), "--store", str(store)]
    subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli.main", *fit], check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return store


def measure(store: Path) -> tuple[list[Bar], dict[str, float]]:
    """Visit every page in a process of its own, as the server would run."""
    found = visited(store)
    bars, facts = page_bars(found, "")
    bars += [Bar(name, value, limit, "s") for name, (value, limit) in found["samples"].items()]
    bars.append(Bar("leaderboard from samples, ratio", found["ratio"], 20, "", most=False))
    bars.append(Bar("memory after every page", found["peak"], 500, "MB"))
    return bars, facts


def measure_fit(store: Path) -> tuple[list[Bar], dict[str, float]]:
    """Visit the pages of a fit."""
    return page_bars(visited(store, "scale", "horizon"), " with a fit")


def visited(store: Path, *pages: str) -> dict[str, Any]:
    """Run `visit` in a process of its own; without pages for all of them."""
    from harness.cli.board import environment

    args = [sys.executable, "-P", __file__, "--visit", " ".join(pages)]
    done = subprocess.run(
        args, env=environment(store), check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def page_bars(found: dict[str, Any], what: str) -> tuple[list[Bar], dict[str, float]]:
    """Hold the times of pages against their bars."""
    bars, facts = [], {}
    for page, times in found["pages"].items():
        bars.append(Bar(f"{page}{what}, cold", times["cold"], 0.5, "s"))
        bars.append(Bar(f"{page}{what}, warm", times["warm"], 0.1, "s"))
        facts[f"{page}{what}, cold, processor s"] = times["cpu"]
    return bars, facts


def visit(only: list[str]) -> dict[str, Any]:
    """Open pages cold and then again: all, or only some."""
    import importlib

    import scipy.special  # noqa: F401 - loading it is not the page's time

    import leaderboard
    from leaderboard import ui
    from leaderboard.app_pages import PAGES

    script = Path(leaderboard.__file__).with_name("script") / "app.py"
    pages: dict[str, dict[str, float]] = {}
    for name in PAGES:
        importlib.import_module(f"leaderboard.pages.{name}")
    board = ui.board()
    board.connect()
    _app(script, "leaderboard").run()  # loads modules, for all visitors
    if not only:
        _ratio_parts(board, warm_up=True)
    for name in only:
        _app(script, name).run()  # this store has no other page that would load what they need
    for name in only or PAGES:
        app = _app(script, name)
        board._answers.clear()  # noqa: SLF001
        cpu = time.process_time()
        app.run()
        cpu = time.process_time() - cpu
        assert not app.exception, (name, app.exception)
        cold = _seconds(app)
        warm = [_seconds(app.run()) for _ in range(WARM)]
        pages[name] = {"cold": cold, "cpu": cpu, "warm": statistics.median(warm)}
        print(name, pages[name], file=sys.stderr)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if only:
        return {"pages": pages}
    return {"pages": pages, "peak": peak, "samples": samples(board), "ratio": _ratio_parts(board)}


def samples(board: Any) -> dict[str, tuple[float, float]]:
    """Time what the page Samples asks for, each of it once and never before; with its bar."""
    from leaderboard.rows.attempt import attempt
    from leaderboard.rows.samples import Wanted, asker, find_key, listed, place_of
    from leaderboard.rows.samples import runs_with_samples as all_runs

    con, store = board.connect(), board.store
    runs = all_runs(con)
    first = runs[len(runs) // 2]
    one = [r for r in runs if (r.task, r.model) == (first.task, first.model)]
    row = con.execute(
        "SELECT key FROM samples WHERE run_id = ? ORDER BY item_id DESC LIMIT 1", [first.run_id]
    ).fetchone()

    def whole() -> None:
        run_id, epoch, item_id = place_of(find_key(con, row[0].hex) or "") or ("", 0, "")
        assert attempt(con, store, run_id, epoch, item_id) is not None

    timed: dict[str, tuple[Callable[[], object], float]] = {
        "a page of the list": (lambda: listed(asker(con), store, runs, Wanted(), 500_000), 0.2),
        "a whole sample by its key": (whole, 0.1),
        "search in the texts of a model on a task":
            (lambda: listed(asker(con), store, one, Wanted(text="the"), 0), 0.5),
    }  # fmt: skip
    found = {}
    for name, (what, bar) in timed.items():
        began = time.perf_counter()
        what()
        found[name] = (time.perf_counter() - began, bar)
    return found


def _app(script: Path, name: str) -> Any:
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    app = AppTest.from_file(str(script), default_timeout=300)
    app._page_hash = "" if name == "leaderboard" else calc_hash(name)  # noqa: SLF001
    return app


def _seconds(app: Any) -> float:
    return float(app.caption[-1].value.split()[2])


def _ratio_parts(board: Any, *, warm_up: bool = False) -> float:
    """Compare the rows of the leaderboard with the same rows over the view that reads samples."""
    from leaderboard.rows.board import board as rows
    from leaderboard.rows.board import task_versions

    con = board.connect()
    con.execute("SET memory_limit = '2GB'")
    tasks = tuple((t.task, t.version) for t in task_versions(con))
    began = time.process_time()
    rows(con, tasks)
    ours = time.process_time() - began
    if warm_up:
        return ours
    began = time.process_time()
    con.execute("CREATE TEMP TABLE slow AS SELECT * FROM v_item_scores")
    return (time.process_time() - began + ours) / ours


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
