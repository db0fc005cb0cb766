"""Whether the statistics keep their promises: coverage and error rates by simulation.

    .venv/bin/python -P bench/coverage.py [--sets 4000] [--slow 400] [--seed 20261130] [--json]

Each row draws data sets whose truth is known, and counts. With 400 sets a true 95 % shows as 93 to
97 % only nine times in ten, so rows take 4,000 (standard error 0.3 points) but for the bootstrap,
which is slow. Some minutes; exit 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.stats.intervals import clustered_mean, estimate
from harness.stats.overall import TaskScores, overall
from harness.stats.pairs import compare_items, sign_flip_p
from harness.stats.ranks import all_pairs, rank_table
from harness.stats.repeats import variance_parts

Rng = np.random.Generator
Check = Callable[[Rng], bool]
NAMES = tuple(f"m{i}" for i in range(8))
EVEN = np.repeat(np.arange(30), 10)
UNEVEN = np.repeat(np.arange(30), np.arange(30) % 14 + 3)


class Row(NamedTuple):
    """One promise: the share counted, and between which bars it must lie."""

    what: str
    sets: int
    share: float
    low: float
    high: float
    cpu_s: float

    @property
    def ok(self) -> bool:
        """Whether the promise is kept."""
        return self.low <= self.share <= self.high


def main() -> int:
    """Count all rows, print a table, exit 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=4000)
    parser.add_argument("--slow", type=int, default=400)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for what, check, low, high, slow in promises():
        row = count(what, check, low, high, options.slow if slow else options.sets, options)
        rows.append(row)
        if not options.json:
            verdict = "ok" if row.ok else "MISSED"
            print(
                f"{what:<66} {row.sets:>5} {100 * row.share:6.2f} % "
                f"[{100 * low:g}, {100 * high:g}] {row.cpu_s:7.1f} s {verdict}",
                flush=True,
            )
    if options.json:
        print(json.dumps([row._asdict() | {"ok": row.ok} for row in rows], indent=1))
    return 0 if all(row.ok for row in rows) else 1


def count(what: str, check: Check, low: float, high: float, sets: int, options: Any) -> Row:
    """Share of the data sets that pass the check."""
    rng = np.random.default_rng(options.seed)
    start = time.process_time()
    hits = sum(check(rng) for _ in range(sets))
    return Row(what, sets, hits / sets, low, high, time.process_time() - start)


def promises() -> list[tuple[str, Check, float, float, bool]]:
    """Every row: what is promised, the check of one data set, its bars, whether it is slow."""
    even, uneven = EVEN.tolist(), UNEVEN.tolist()
    return [
        ("clustered mean, 30 clusters of 10", mean(EVEN, even), 0.93, 0.97, False),
        ("planted fault: its plain error", mean(EVEN, None), 0, 0.8, False),
        ("clustered mean, 30 clusters of 3 to 16", mean(UNEVEN, uneven), 0.92, 0.97, False),
        ("epochs averaged, 60 items of 8", epochs(by_item=True), 0.93, 0.97, False),
        ("planted fault: epochs counted as items", epochs(by_item=False), 0, 0.8, False),
        ("paired difference, 300 items", difference(None, 0), 0.93, 0.97, False),
        ("paired difference, 30 clusters of 10", difference(even, 0.25), 0.93, 0.97, False),
        ("planted fault: its plain error", difference(None, 0.25), 0, 0.93, False),
        ("planted fault: unpaired error", unpaired, 0.97, 1, False),
        ("true ranks all inside, 8 models, 300 items", ranks(0.3, 300, 1), 0.95, 1, False),
        ("the same, clusters of three", ranks(0.3, 300, 3), 0.95, 1, False),
        ("the same, 30 items", ranks(0.3, 30, 1), 0.95, 1, False),
        ("one tier without difference, 8 models, 300 items", tier(300, 1), 0.95, 1, False),
        ("the same, clusters of three", tier(300, 3), 0.95, 1, False),
        ("the same, 30 items", tier(30, 1), 0.95, 1, False),
        ("planted fault: no correction", tier(300, 1, corrected=False), 0, 0.7, False),
        ("sign flips err, 12 items", flips(np.arange(12)), 0.04, 0.06, False),
        ("sign flips err, 30 items", flips(np.arange(30)), 0.04, 0.06, False),
        ("sign flips err, 200 items", flips(np.arange(200)), 0.04, 0.06, False),
        ("sign flips err, 30 clusters of 3 to 16", flips(UNEVEN), 0.04, 0.06, False),
        ("overall, 3 tasks of 300 items, 1 repeat", macro(1, 1, 0), 0.92, 0.97, True),
        ("overall, clusters of 10 (sd .25), 1 repeat", macro(10, 1, 0.25), 0.93, 1, True),
        ("overall, clusters of 10 (sd 0), 1 repeat", macro(10, 1, 0), 0.93, 1, True),
        ("overall, clusters of 10 (sd .25), 4 repeats", macro(10, 4, 0.25), 0.93, 1, True),
        ("the same, clusters alone drawn", macro(10, 4, 0.25, "cluster"), 0.88, 0.97, True),
        ("overall, clusters of 10 (sd 0), 4 repeats", macro(10, 4, 0), 0.93, 1, True),
        ("the same, clusters alone drawn", macro(10, 4, 0, "cluster"), 0.88, 0.97, True),
    ]


def inside(found: Any, truth: float) -> bool:
    return bool(found.lo <= truth <= found.hi)


def mean(groups: NDArray[np.intp], clusters: list[int] | None) -> Check:
    def check(rng: Rng) -> bool:
        shared = rng.normal(0, 0.25, groups.max() + 1)[groups]
        scores = shared + rng.normal(0, 0.5, groups.size)
        return inside(clustered_mean(scores.tolist(), clusters), 0)

    return check


def epochs(by_item: bool) -> Check:
    def check(rng: Rng) -> bool:
        table = rng.normal(0.5, 0.3, (60, 1)) + rng.normal(0, 0.3, (60, 8))
        if not by_item:
            return inside(clustered_mean(table.ravel().tolist()), 0.5)
        parts = variance_parts(table)
        found = clustered_mean(table.mean(axis=1).tolist())
        assert abs((parts.se or 0) - (found.se or 0)) < 1e-12
        return inside(found, 0.5)

    return check


def difference(clusters: list[int] | None, shared_sd: float) -> Check:
    def check(rng: Rng) -> bool:
        item = rng.normal(0.5, 0.3, 300)
        a = item + 0.1 + rng.normal(0, shared_sd, 30)[EVEN] + rng.normal(0, 0.5, 300)
        b = item + rng.normal(0, 0.5, 300)
        return inside(compare_items(a, b, clusters), 0.1)

    return check


def unpaired(rng: Rng) -> bool:
    item = rng.normal(0.5, 0.3, 300)
    a, b = (estimate((item + rng.normal(0, 0.4, 300)).tolist()) for _ in range(2))
    half = 1.96 * ((a.se or 0) ** 2 + (b.se or 0) ** 2) ** 0.5
    return bool(abs((a.value or 0) - (b.value or 0)) <= half)


def answers(rng: Rng, ability: NDArray[np.float64], n: int, size: int) -> NDArray[np.float64]:
    """0/1 scores on items of different difficulty, in clusters that share a part of it."""
    hard = rng.normal(0, 0.15, (n, 1)) + rng.normal(0, 0.1, (n // size, 1)).repeat(size, axis=0)
    return (rng.random((n, len(ability))) < ability + hard).astype(np.float64)


def ranks(spread: float, n: int, size: int) -> Check:
    ability = np.linspace(0.5 - spread / 2, 0.5 + spread / 2, len(NAMES))
    true = {name: len(NAMES) - i for i, name in enumerate(NAMES)}

    def check(rng: Rng) -> bool:
        rows = rank_table(answers(rng, ability, n, size), NAMES, [i // size for i in range(n)])
        return all((r.rank_lo or 9) <= true[r.model] <= (r.rank_hi or 0) for r in rows)

    return check


def tier(n: int, size: int, *, corrected: bool = True) -> Check:
    clusters = [i // size for i in range(n)]

    def check(rng: Rng) -> bool:
        table = answers(rng, np.full(len(NAMES), 0.5), n, size)
        pairs = all_pairs(table, NAMES, clusters)
        if not corrected:
            return bool(np.nanmin(pairs.p) > 0.05)
        return all(row.tier == 1 for row in rank_table(table, NAMES, clusters, pairs=pairs))

    return check


def flips(groups: NDArray[np.intp]) -> Check:
    def check(rng: Rng) -> bool:
        d = rng.normal(0, 0.5, groups.max() + 1)[groups] + rng.normal(0, 0.5, groups.size)
        return (
            sign_flip_p(np.bincount(groups, d).astype(np.float64), int(rng.integers(2**31))) <= 0.05
        )

    return check


def macro(size: int, repeats: int, shared_sd: float, *levels: str) -> Check:
    clusters = [i // size for i in range(300)]

    def check(rng: Rng) -> bool:
        tasks = {}
        for name in "tuv":
            item = rng.normal(0, shared_sd, 300 // size).repeat(size) + rng.normal(0.5, 0.3, 300)
            scores = item[:, None, None] + rng.normal(0, 0.4, (300, 1, repeats))
            tasks[name] = TaskScores(scores=scores, clusters=clusters)
        options = {"levels": levels} if levels else {}
        found = overall(tasks, ["m"], seed=int(rng.integers(2**31)), **options)[0]  # type: ignore[arg-type]
        return inside(found.estimate, 0.5)

    return check


if __name__ == "__main__":
    raise SystemExit(main())
