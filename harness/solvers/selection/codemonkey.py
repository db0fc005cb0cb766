"""`codemonkey`: the best three of a suite, examined by a model in rounds (as in CodeMonkeys)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from harness.solvers.selection import prompts
from harness.solvers.selection.base import MOST_TESTS, Bench, Case, Fault, Options, Pool, Selecting
from harness.solvers.selection.desk import RETRIES, Asking, Desk, Items, code_of, number_in
from harness.solvers.selection.generated_tests import make_base

ROUNDS = MOST_TESTS
SHOWN = 3
READS = 2
"""Times that a reply is asked for which can be read."""
_TAG = re.compile(r"<(decision|generator)>(.*?)</\1>", re.DOTALL)
_OPENED = re.compile(r"<(?:decision|generator)>")


class Reply(Struct, frozen=True):
    """What a model wants next: a candidate by its number as shown, or a layout by its script."""

    kind: Literal["decision", "generator"]
    text: str


class _Made(Struct, frozen=True):
    """A layout, and the script that made it in the end."""

    case: Case
    script: str


def codemonkey(pool: Pool, bench: Bench, options: Options) -> Selecting:
    """Choose among the three best of a suite by up to 8 layouts, one after the other.

    In each round a layout is made and the three are run on it; the model then decides or asks for
    another one. Where no script runs, no reply can be read or nothing is decided, the first of the
    three stands.
    """
    desk = Desk("codemonkey", pool, bench, options)
    items = Items(desk) if options.maker == "items" else None
    base = yield from make_base(desk, items)
    valid = base.whole()
    three = sorted(valid, key=lambda k: (-base.matches(k), k))[:SHOWN]
    if len(three) < 2:
        return desk.close_with(three[0] if three else 0, valid)
    order = desk.shuffled(three, "pick")
    winner = yield from _rounds(desk, order, items)
    return desk.close_with(three[0] if winner is None else winner, valid, finalists=three)


def _rounds(desk: Desk, order: Sequence[int], items: Items | None) -> Asking[int | None]:
    bench = desk.bench
    decks = [desk.decks[k] for k in order]
    rule, how = bench.rule(), bench.how_to_make(1)
    script, evidence = "", list[str]()
    winner: int | None = None
    if items is None:
        script = code_of((yield from desk.ask(prompts.first_probe(rule, how, decks))))
    for number in range(ROUNDS):
        made = yield from _layout(desk, script, number, order, items)
        if made is None:
            break
        said = [row[0] for row in desk.run(order, [made.case]).values()]
        evidence.append(prompts.difference(str(number), bench.show(made.case), said))
        left = ROUNDS - 1 - number
        text = prompts.probe(rule, how, decks, made.script, evidence[-1], left)
        reply = yield from _decision(desk, text, order, last=left == 0)
        if reply is None:
            break
        if reply.kind == "decision":
            winner = order[int(reply.text)]
            break
        script = code_of(reply.text)
    desk.facts |= {"evidence": evidence, "rounds": len(evidence)}
    return winner


def _layout(
    desk: Desk, script: str, number: int, order: Sequence[int], items: Items | None
) -> Asking[_Made | None]:
    """Run the script of a round, and ask up to five times for a better one."""
    if items is not None:
        case = items.splitting(order)
        return None if case is None else _Made(case, "# made by the bench")

    def run(code: str, attempt: int) -> _Made | Fault:
        seed = desk.options.seed + 100 * number + attempt
        made = desk.bench.layout(code, seed) if code else Fault("there was no script in the reply")
        return made if isinstance(made, Fault) else _Made(made, code)

    first = run(script, 0)
    if not isinstance(first, Fault):
        return first
    desk.facts["failed_scripts"] += 1
    decks = [desk.decks[k] for k in order]
    text = prompts.first_probe(desk.bench.rule(), desk.bench.how_to_make(1), decks)
    text += prompts.again(script, first.text)
    return (yield from desk.script(text, lambda code, k: run(code, k + 1), tries=RETRIES))


def _decision(desk: Desk, text: str, order: Sequence[int], *, last: bool) -> Asking[Reply | None]:
    """Ask what comes next; a reply that cannot be read, or asks for more at the end, is none."""
    picks = {k: f"<decision>{place}</decision>" for place, k in enumerate(order)}
    for number in range(READS):
        said = yield from desk.ask(text + (prompts.UNREAD if number else ""), picks)
        reply = read_reply(said, len(order))
        if reply is not None:
            return None if last and reply.kind == "generator" else reply
    desk.facts["selector_unreadable"] += 1
    return None


def read_reply(text: str, n: int) -> Reply | None:
    """Read a reply of exactly one tag; None for any other, and for a number that is no candidate.

    Examples
    --------
    >>> read_reply("<decision> 1 </decision>", 3)
    Reply(kind='decision', text='1')
    >>> read_reply("<decision>1</decision><generator>x</generator>", 3) is None
    True
    """
    found = _TAG.findall(text)
    if len(found) != 1 or len(_OPENED.findall(text)) != 1:
        return None
    kind, body = found[0]
    if kind == "generator":
        return Reply(kind, body) if body.strip() else None
    number = number_in(body)
    return Reply(kind, str(number)) if number is not None and 0 <= number < n else None
