"""`split_tester`: tests that split clusters of equal behaviour, and a judge among the best three."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5
from random import Random

from harness.solvers.selection import prompts
from harness.solvers.selection.base import (
    MOST_TESTS,
    Bench,
    Case,
    Fault,
    Options,
    Outcome,
    Pool,
    Selecting,
)
from harness.solvers.selection.desk import Asking, Desk, Items, expected_in
from harness.solvers.selection.generated_tests import Base, make_base

EARLY_STOP = 1
"""Attempts in a row that failed or split nothing, after which no more are made."""
SHOWN = 3
"""Representatives of a cluster, and candidates that the judge sees."""


class Extra:
    """The layouts beyond the suite: what is expected of them and what valid candidates said."""

    def __init__(self, valid: Sequence[int]) -> None:
        self.cases: list[Case] = []
        self.expected: list[int] = []
        self.outcomes: dict[int, list[Outcome]] = {k: [] for k in valid}

    def add(self, case: Case, expected: int, said: Mapping[int, list[Outcome]]) -> None:
        """Take a layout."""
        self.cases.append(case)
        self.expected.append(expected)
        for k, outcomes in said.items():
            self.outcomes[k] += outcomes

    def bits(self, k: int) -> list[int | None]:
        """Give a candidate's bits, None where it failed."""
        return [one.bit for one in self.outcomes[k]]


def split_tester(pool: Pool, bench: Bench, options: Options) -> Selecting:
    """Choose by tests made to tell apart what the suite could not (Rule2DRC, arXiv 2605.15669).

    The cluster of at least two with the largest share of matched bits times size is split next, at
    most 8 times; one attempt that fails or splits nothing ends it.
    """
    desk = Desk("split_tester", pool, bench, options)
    items = Items(desk) if options.maker == "items" else None
    base = yield from make_base(desk, items)
    valid = [k for k in base.whole() if base.scores[k] >= 0]
    extra = Extra(valid)
    if len(valid) < 2:
        return desk.close_with(valid[0] if valid else 0, valid)
    yield from _split(desk, base, extra, valid, items)
    finalists = sorted(valid, key=lambda k: (-_agreement(base, extra, k), k))[:SHOWN]
    order = desk.shuffled(finalists, "pick")
    evidence = _evidence(bench, base, extra, order)
    text = prompts.pick(bench.rule(), [desk.decks[k] for k in order], evidence)
    winner = yield from desk.judge(text, order)
    return desk.close_with(
        finalists[0] if winner is None else winner, valid, finalists=finalists, evidence=evidence
    )


def _split(
    desk: Desk, base: Base, extra: Extra, valid: Sequence[int], items: Items | None
) -> Asking[None]:
    idle = 0
    steps: list[dict[str, object]] = []
    while len(extra.cases) < MOST_TESTS and idle < EARLY_STOP:
        cluster = next_cluster(base, extra, valid)
        if cluster is None:
            break
        shown = representatives(cluster, len(steps), desk.options.seed)
        made = yield from _layout(desk, shown, cluster, items)
        broken = False
        if made is not None:
            case, expected = made
            extra.add(case, expected, desk.run(valid, [case]))
            broken = len({extra.outcomes[k][-1].bit for k in cluster}) > 1
        idle = 0 if broken else idle + 1
        step = {"cluster": cluster, "shown": shown, "made": made is not None, "broken": broken}
        steps.append(step)
    desk.facts |= {
        "extra_tests": len(extra.cases),
        "steps": steps,
        "extra_pattern": {str(k): extra.bits(k) for k in valid},
        "extra_expected": extra.expected,
    }


def next_cluster(base: Base, extra: Extra, valid: Sequence[int]) -> list[int] | None:
    """Find the cluster to split: the largest share of matched bits times size.

    Of equal ones the larger, then the one with the smallest index; None where all stand alone.
    """
    clusters: dict[tuple[int | None, ...], list[int]] = {}
    for k in valid:
        clusters.setdefault((*base.patterns[k], *extra.bits(k)), []).append(k)

    def rank(members: list[int]) -> tuple[int, int, int]:
        # Everyone has as many bits, so matched bits stand for their share.
        matched = _agreement(base, extra, members[0])
        return matched * len(members), len(members), -members[0]

    return max((m for m in clusters.values() if len(m) > 1), key=rank, default=None)


def representatives(cluster: Sequence[int], step: int, seed: int) -> list[int]:
    """Draw up to three of a cluster, in order of their index; the same ones every time."""
    if len(cluster) <= SHOWN:
        return sorted(cluster)
    names = "|".join(["rand_reps", str(step), *map(str, cluster)])
    drawn = int(md5(names.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    return sorted(Random(seed + drawn).sample(list(cluster), SHOWN))


def _layout(
    desk: Desk, shown: Sequence[int], cluster: Sequence[int], items: Items | None
) -> Asking[tuple[Case, int] | None]:
    """Get one layout with what is expected of it."""
    if items is not None:
        case = items.splitting(cluster)
        return None if case is None else (case, int(any(case.expected.values())))
    bench = desk.bench

    def run(code: str, _: int) -> tuple[Case, int] | Fault:
        expected = expected_in(code)
        if expected is None:
            return Fault("its first line is neither '# EXPECTED: PASS' nor '# EXPECTED: VIOLATION'")
        made = bench.layout(code, desk.options.seed)
        return made if isinstance(made, Fault) else (made, expected)

    text = prompts.split(bench.rule(), bench.how_to_make(1), [desk.decks[k] for k in shown])
    return (yield from desk.script(text, run))


def _agreement(base: Base, extra: Extra, k: int) -> int:
    """Count the bits that are as expected; a failure matches nothing."""
    pairs = zip(extra.bits(k), extra.expected, strict=True)
    return base.matches(k) + sum(bit == expected for bit, expected in pairs)


def _evidence(bench: Bench, base: Base, extra: Extra, order: Sequence[int]) -> list[str]:
    """Write every layout on which the finalists differ, with what each said of it."""
    told = []
    rows = {k: [*base.outcomes[k], *extra.outcomes[k]] for k in order}
    for t, case in enumerate([*base.cases, *extra.cases]):
        said = [rows[k][t] for k in order]
        if any(_differ(said[0], one) for one in said[1:]):
            told.append(prompts.difference(str(t), bench.show(case), said))
    return told


def _differ(one: Outcome, other: Outcome) -> bool:
    return (one.verdict, dict(one.bits)) != (other.verdict, dict(other.bits))
