"""Measure the site at a million attempts: time of every page's script, and the server's memory.

    nice .venv/bin/python -P bench/board.py [--runs 334] [--items 3000] [--store DIR] [--json]

The store is that of bench/store.py, its models taken for contenders; --store DIR uses one that is
there. Every page is opened by Streamlit's own AppTest, cold (modules loaded, nothing asked yet) and
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
    parser.add_argument("--visit", action="store_true", help="the visit alone, by the bench itself")
    options = parser.parse_args()
    if options.visit:
        print(json.dumps(visit()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or Path(folder) / "store"
        if options.store is None:
            make_store(store, options.runs, options.items)
        bars, facts = measure(store)
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


def measure(store: Path) -> tuple[list[Bar], dict[str, float]]:
    """Visit every page in a process of its own, as the server would run."""
    from harness.cli.board import environment

    args = [sys.executable, "-P", __file__, "--visit", "--store", str(store)]
    done = subprocess.run(
        args, env=environment(store), check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    bars, facts = [], {}
    for page, times in found["pages"].items():
        bars.append(Bar(f"{page}, cold", times["cold"], 0.5, "s"))
        bars.append(Bar(f"{page}, warm", times["warm"], 0.1, "s"))
        facts[f"{page}, cold, processor s"] = times["cpu"]
    bars.append(Bar("leaderboard from samples, ratio", found["ratio"], 20, "", most=False))
    bars.append(Bar("memory after every page", found["peak"], 500, "MB"))
    return bars, facts


def visit() -> dict[str, Any]:
    """Open every page cold and then again."""
    import importlib

    import scipy.special  # noqa: F401 - loading it is not the page's time
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    import leaderboard
    from leaderboard import ui
    from leaderboard.app_pages import PAGES

    script = Path(leaderboard.__file__).with_name("script") / "app.py"
    pages: dict[str, dict[str, float]] = {}
    for name in PAGES:
        importlib.import_module(f"leaderboard.pages.{name}")
    board = ui.board()
    board.connect()
    AppTest.from_file(str(script), default_timeout=300).run()  # loads modules, for all visitors
    _ratio_parts(board, warm_up=True)
    for name in PAGES:
        app = AppTest.from_file(str(script), default_timeout=300)
        app._page_hash = "" if name == "leaderboard" else calc_hash(name)  # noqa: SLF001
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
    return {"pages": pages, "peak": peak, "ratio": _ratio_parts(board)}


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
