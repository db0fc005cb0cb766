"""What each way of choosing among decks comes to on the own pools, beside oracle, random and first.

    python bench/selection.py [--engine klayout|regions] [--pools N] [--judge right|silent]

No model is asked. Layouts come from the items' own (maker=items), with what a right deck says of them, so the figures
are bounds and no result: `right` is a judge that picks a right deck whenever it sees one, `silent` one whose replies
cannot be read, so that every fallback is taken. With engine=regions decks outside its part of the language fail,
which makes choosing easier.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from harness.core.environment import EnvironmentRequest
from harness.core.task import TaskRequest
from harness.core.types import Sample
from harness.solvers.selection import ALGORITHMS, Bench, Choice, Options, Pool, Question
from scorers.drc.choice import floor_and_ceiling
from tasks.rule2drc.select import environment, select

JUDGES = ("right", "silent")


def reply(question: Question, right: set[int], judge: str) -> str:
    """Say what a judge of this kind says."""
    if judge == "silent":
        return ""
    return next((text for k, text in question.picks.items() if k in right), question.none)


def choose(by: str, judge: str, bench: Bench, sample: Sample) -> Choice:
    """Let a way of choosing run to its end."""
    right = {k for k, success in enumerate(sample.metadata["success"]) if success}
    pool = Pool(key=sample.item_id, candidates=bench.candidates)
    algorithm = ALGORITHMS[by](pool, bench, Options(maker="items"))
    try:
        question = next(algorithm)
        while True:
            question = algorithm.send(reply(question, right, judge))
    except StopIteration as ended:
        choice: Choice = ended.value
        return choice


def row(name: str, judge: str, values: list[float], facts: list[dict[str, Any]]) -> str:
    """Write a line of the table: mean and population standard deviation over the pools."""
    said = f"{name:<16} {judge:<7} {statistics.fmean(values):6.3f} {statistics.pstdev(values):6.3f}"
    if facts:
        counts = ("calls", "selector_unreadable", "extra_tests")
        said += "".join(
            f" {statistics.fmean(f.get(name, 0) for f in facts):7.2f}" for name in counts
        )
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("klayout", "regions"), default="klayout")
    parser.add_argument("--pools", type=int, default=None)
    parser.add_argument("--judge", choices=JUDGES, default=None)
    given = parser.parse_args()
    judges = (given.judge,) if given.judge else JUDGES
    samples = list(select(TaskRequest(args={"engine": given.engine})).samples)[: given.pools]
    plain: dict[str, list[float]] = {}
    found: dict[tuple[str, str], list[tuple[float, dict[str, Any]]]] = {}
    missed, runs, began = [], 0, time.monotonic()
    for sample in samples:
        success = sample.metadata["success"]
        for name, value in floor_and_ceiling(success).items():
            plain.setdefault(name, []).append(value)
        # One bench for all: what was run once is known.
        with environment(sample, EnvironmentRequest(), engine=given.engine) as bench:
            for by in ALGORITHMS:
                for judge in judges:
                    choice = choose(by, judge, bench, sample)
                    value = float(success[choice.index])
                    found.setdefault((by, judge), []).append((value, choice.facts))
                    if by == "split_tester" and judge == "right" and value < max(success):
                        missed.append(sample.item_id)
            runs += bench.runs()
    print(f"{len(samples)} pools, engine {given.engine}, maker=items, {runs} engine runs, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    print(f"{'':<16} {'judge':<7} {'mean':>6} {'std':>6} {'calls':>7} {'unread':>7} {'extra':>7}")
    for name, values in plain.items():
        print(row(name, "", values, []))
    for (by, judge), rows in found.items():
        print(row(by, judge, [value for value, _ in rows], [facts for _, facts in rows]))
    print("split_tester with a right judge misses the oracle on:", ", ".join(missed) or "no pool")


if __name__ == "__main__":
    main()
