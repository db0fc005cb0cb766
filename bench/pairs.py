"""Time of all paired tests of a table, of the bootstrap, and against a loop over pairs.

    .venv/bin/python -P bench/pairs.py [--models 40] [--items 3000] [--repeats 5] [--json]

CPU time (user and system, all threads), the median of the repeats. The loop fits statsmodels'
regression of each pair's differences on a constant, as one would by hand; both give the same
numbers, which is checked before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from harness.stats.overall import TaskScores, overall
from harness.stats.pairs import compare_items, holm
from harness.stats.ranks import all_pairs, rank_table

_BARS = {"all pairs, complete": 1.0, "all pairs, complete, clusters of 3": 1.0}  # CPU s
_TASKS = 7


def main() -> int:
    """Measure, print a table, exit 1 when a bar is missed or the numbers differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table, names, clusters = make_table(options.models, options.items)
    looped, apart = against_loop(table, names, clusters)
    holes = np.where(np.random.default_rng(2).random(table.shape) < 0.1, np.nan, table)
    p = np.random.default_rng(3).random(options.models * (options.models - 1) // 2)
    tasks = {f"t{i}": TaskScores(scores=np.roll(table, i, axis=0)) for i in range(_TASKS)}
    grouped = {
        name: TaskScores(scores=task.scores, clusters=clusters) for name, task in tasks.items()
    }
    work: dict[str, Callable[[], object]] = {
        "all pairs, complete": lambda: all_pairs(table, names),
        "all pairs, complete, clusters of 3": lambda: all_pairs(table, names, clusters),
        "all pairs, 10 % missing": lambda: all_pairs(holes, names),
        "all pairs, 10 % missing, clusters of 3": lambda: all_pairs(holes, names, clusters),
        "Holm alone": lambda: holm(p),
        "rank table": lambda: rank_table(table, names),
        "one comparison of two models": lambda: compare_items(table[:, 0], table[:, 1]),
        f"overall, {_TASKS} tasks, 1,000 draws": lambda: overall(tasks, names),
        f"overall, {_TASKS} tasks, clusters of 3": lambda: overall(grouped, names),
    }
    seconds = {what: cpu(call, options.repeats) for what, call in work.items()}
    ratio = looped / seconds["all pairs, complete, clusters of 3"]
    late = [what for what, bar in _BARS.items() if seconds[what] > bar]
    figures = {
        "models": options.models, "items": options.items, "cpu_s": seconds, "loop_cpu_s": looped,
        "ratio": ratio, "max_abs_diff": apart, "missed": late,
    }  # fmt: skip
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        print(f"{options.models} models x {options.items} items, {p.size} pairs")
        for what, spent in seconds.items():
            bar = f"  bar {_BARS[what]} s" if what in _BARS else ""
            print(f"{what:<42} {spent:9.4f} CPU s{bar}")
        print(f"{'loop of regressions, clusters of 3, Holm':<42} {looped:9.4f} CPU s (once)")
        print(f"ratio {ratio:.0f}; standard errors and p values apart by {apart:.1e} at most")
    return 1 if late or apart > 1e-10 else 0


def make_table(models: int, items: int) -> tuple[NDArray[np.float64], list[str], list[int]]:
    """0/1 scores of models that differ a little, on items of different difficulty."""
    rng = np.random.default_rng(1)
    chance = np.linspace(0.4, 0.6, models) + rng.normal(0, 0.2, (items, 1))
    table = (rng.random((items, models)) < chance).astype(np.float64)
    return table, [f"m{i}" for i in range(models)], [i // 3 for i in range(items)]


def against_loop(
    table: NDArray[np.float64], names: list[str], clusters: list[int]
) -> tuple[float, float]:
    """CPU seconds of one loop over all pairs, and how far its numbers are from ours."""
    found = all_pairs(table, names, clusters)
    groups, constant = np.array(clusters), np.ones(len(table))
    start = time.process_time()
    errors, p = [], []
    rows, columns = np.triu_indices(len(names), 1)
    for i, j in zip(rows, columns, strict=True):
        fit = sm.OLS(table[:, i] - table[:, j], constant).fit(
            cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
        )
        errors.append(fit.bse[0])
        p.append(fit.pvalues[0])
    adjusted = multipletests(p, method="holm")[1]
    spent = time.process_time() - start
    apart = max(
        float(np.abs(found.se[rows, columns] - errors).max()),
        float(np.abs(found.p_adj[rows, columns] - adjusted).max()),
    )
    return spent, apart


def cpu(call: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return statistics.median(spent)


if __name__ == "__main__":
    raise SystemExit(main())
