"""`llm_judge`: a knock-out by a model that reads the programs; nothing is run."""

from __future__ import annotations

from harness.solvers.selection import prompts
from harness.solvers.selection.base import Bench, Options, Pool, Selecting
from harness.solvers.selection.desk import Desk

GROUP = 4


def llm_judge(pool: Pool, bench: Bench, options: Options) -> Selecting:
    """Choose by a knock-out in groups of four, in order of index; a rest of one goes on by itself.

    After a tie or a reply that cannot be read the lowest index goes on. Score: rounds survived by
    rounds played.
    """
    desk = Desk("llm_judge", pool, bench, options)
    valid = [k for k in range(desk.n) if desk.decks[k]]
    survived = dict.fromkeys(valid, 0)
    left, rounds = valid, 0
    while len(left) > 1:
        groups = [left[k : k + GROUP] for k in range(0, len(left), GROUP)]
        left = []
        for group in groups:
            winner: int | None = group[0]
            if len(group) > 1:
                order = desk.shuffled(group, f"round {rounds} group {group[0]}")
                text = prompts.best(bench.rule(), [desk.decks[k] for k in order])
                winner = yield from desk.judge(text, order, ties=(-1, len(order)))
            going_on = group[0] if winner is None else winner
            survived[going_on] += 1
            left.append(going_on)
        rounds += 1
    scores = [survived[k] / max(rounds, 1) if k in survived else -1.0 for k in range(desk.n)]
    return desk.close(scores, rounds=rounds)
