"""`s_star`: for each layout of the suite that divides the candidates, a duel of its two sides (S*)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from harness.solvers.selection import prompts
from harness.solvers.selection.base import (
    MOST_TESTS,
    Bench,
    Case,
    Fault,
    Options,
    Pool,
    Selecting,
)
from harness.solvers.selection.desk import Asking, Desk, Items
from harness.solvers.selection.generated_tests import make_base

TIE = 2


def shares(n: int, total: int = MOST_TESTS) -> list[int]:
    """Share further layouts out among `n` duels: evenly, the first ones get what is left over.

    Examples
    --------
    >>> shares(3), shares(10)
    ([3, 3, 2], [1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    """
    each, more = divmod(total, n) if n else (0, 0)
    return [each + (k < more) for k in range(n)]


def s_star(pool: Pool, bench: Bench, options: Options) -> Selecting:
    """Choose by duels: each side of a layout sends its best, and the winner's side gets a vote.

    Eight further layouts are shared by the duels; those that separate the two are shown to the judge
    beside the first one. A tie is a decision without a vote. Score: votes by decisions.
    """
    desk = Desk("s_star", pool, bench, options)
    items = Items(desk) if options.maker == "items" else None
    base = yield from make_base(desk, items)
    valid = base.whole()
    divided = [t for t in range(len(base.cases)) if len({base.patterns[k][t] for k in valid}) > 1]
    votes = dict.fromkeys(valid, 0)
    duels: list[dict[str, Any]] = []
    for t, share in zip(divided, shares(len(divided)), strict=True):
        sides = [[k for k in valid if base.patterns[k][t] == bit] for bit in (0, 1)]
        pair = [min(side, key=lambda k: (-base.scores[k], k)) for side in sides]
        order = desk.shuffled(pair, f"duel {t}")
        further = yield from _further(desk, base.cases[t], order, share, items)
        winner = yield from _duel(desk, order, [base.cases[t], *further])
        for k in sides[pair.index(winner)] if winner is not None else ():
            votes[k] += 1
        duels.append({"layout": t, "pair": pair, "further": len(further), "winner": winner})
    scores = [votes[k] / max(len(duels), 1) if k in votes else -1.0 for k in range(desk.n)]
    return desk.close(scores, duels=duels, shares=shares(len(divided)))


def _further(
    desk: Desk, case: Case, order: Sequence[int], share: int, items: Items | None
) -> Asking[list[Case]]:
    """Make further layouts, one call each; keep those on which the two differ."""
    bench, kept = desk.bench, list[Case]()
    decks = [desk.decks[k] for k in order]
    text = prompts.between(bench.rule(), bench.how_to_make(1), decks, bench.show(case))
    for number in range(share):
        made: Case | None
        if items is not None:
            made = items.splitting(order)
        else:
            run = partial(_run, bench, desk.options.seed + number)
            made = yield from desk.script(text, run, tries=1)
        if made is not None:
            verdicts = {row[0].verdict for row in desk.run(order, [made]).values()}
            kept += [made] if len(verdicts) > 1 else []
    return kept


def _run(bench: Bench, seed: int, code: str, _: int) -> Case | Fault:
    return bench.layout(code, seed)


def _duel(desk: Desk, order: Sequence[int], cases: Sequence[Case]) -> Asking[int | None]:
    said = list(desk.run(order, cases).values())
    evidence = [
        prompts.difference(str(t), desk.bench.show(case), [row[t] for row in said])
        for t, case in enumerate(cases)
    ]
    text = prompts.duel(desk.bench.rule(), [desk.decks[k] for k in order], evidence)
    return (yield from desk.judge(text, order, ties=(TIE,)))
