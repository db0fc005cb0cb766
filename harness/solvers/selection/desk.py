"""What all algorithms do: ask and count, try again, run, and close with a choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from hashlib import sha256
from random import Random
from typing import Any, TypeVar

from harness.core.types import Message
from harness.solvers.selection import prompts
from harness.solvers.selection.base import (
    MOST_TESTS,
    Bench,
    Case,
    Choice,
    Fault,
    Options,
    Outcome,
    Pool,
    Question,
)

RETRIES = 5
"""Times that a script is written again, with what came of the last one."""
T = TypeVar("T")
Asking = Generator[Question, str, T]
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?:python|py)?[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL
)
_EXPECTED = re.compile(r"#[ \t]*EXPECTED:[ \t]*(PASS|VIOLATION)[ \t]*")
_WHOLE = re.compile(r"-?[0-9]{1,4}")


class Desk:
    """One choice under way: what it has asked and run so far."""

    def __init__(self, by: str, pool: Pool, bench: Bench, options: Options) -> None:
        self.pool, self.bench, self.options = pool, bench, options
        self.decks = bench.candidates
        self.n = len(self.decks)
        self.facts: dict[str, Any] = {
            "by": by, "maker": options.maker, "calls": 0, "engine_runs": 0,
            "selector_unreadable": 0, "failed_scripts": 0, "orders": [],
        }  # fmt: skip
        self._runs_before = bench.runs()

    def ask(self, text: str, picks: dict[int, str] | None = None, none: str = "") -> Asking[str]:
        """Ask a question, and count it."""
        self.facts["calls"] += 1
        messages = (Message("system", prompts.SYSTEM), Message("user", text))
        return (yield Question(messages=messages, picks=picks or {}, none=none))

    def shuffled(self, which: Sequence[int], step: str) -> list[int]:
        """Put candidates into the order in which a judge sees them: by the item's hash, and stored."""
        order = list(which)
        Random(sha256(f"{self.pool.key}\x1f{step}".encode()).digest()).shuffle(order)
        self.facts["orders"].append(order)
        return order

    def script(
        self, text: str, run: Callable[[str, int], T | Fault], tries: int = RETRIES + 1
    ) -> Asking[T | None]:
        """Ask for a script and run it; after a failure ask again, showing it and what came of it."""
        more = ""
        for number in range(tries):
            said = yield from self.ask(text + more)
            code = code_of(said)
            made = run(code, number) if code else Fault("there was no script in the reply")
            if not isinstance(made, Fault):
                return made
            self.facts["failed_scripts"] += 1
            more = prompts.again(code, made.text)
        return None

    def judge(
        self, text: str, order: Sequence[int], ties: Sequence[int] = ()
    ) -> Asking[int | None]:
        """Ask for one of the candidates shown, in their order, or for one of the numbers of a tie.

        Returns
        -------
        int or None
            The candidate; None for a tie and for a reply that is not one number as asked for, which
            is counted.
        """
        picks = {candidate: str(place) for place, candidate in enumerate(order)}
        said = yield from self.ask(text, picks, none=str(ties[0]) if ties else "")
        place = number_in(said)
        if place is not None and 0 <= place < len(order):
            return order[place]
        if place not in ties:
            self.facts["selector_unreadable"] += 1
        return None

    def run(self, which: Sequence[int], cases: Sequence[Case]) -> dict[int, list[Outcome]]:
        """Run candidates, by index."""
        return dict(zip(which, self.bench.run(which, cases), strict=True))

    def close(self, scores: Sequence[float], **facts: Any) -> Choice:
        """Take the candidate of the highest score, the lowest index of equal ones."""
        self.facts["engine_runs"] = self.bench.runs() - self._runs_before
        index = max(range(self.n), key=lambda k: (scores[k], -k))
        return Choice(
            index=index, scores=tuple(scores), facts=self.facts | facts | {"scores": list(scores)}
        )

    def close_with(self, winner: int, valid: Sequence[int], **facts: Any) -> Choice:
        """Close with 1 for the winner, 0 for the others that are valid, -1 for the rest."""
        scores = [float(k == winner) if k == winner or k in valid else -1.0 for k in range(self.n)]
        return self.close(scores, **facts)


class Items:
    """Test inputs of our own in place of a model's: those that tell candidates apart come first."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._left = list(desk.bench.items())
        # All at once: an engine that has to be started for each candidate is started once for it.
        desk.run([k for k in range(desk.n) if desk.decks[k]], self._left)

    def suite(self) -> tuple[Case, ...]:
        """Take a whole suite."""
        taken, self._left = self._left[:MOST_TESTS], self._left[MOST_TESTS:]
        return tuple(taken)

    def splitting(self, which: Sequence[int]) -> Case | None:
        """Take one on which some of these candidates differ, else the next one."""
        found = self._desk.run(which, self._left)
        rows = list(zip(*found.values(), strict=True))
        best = next((t for t, row in enumerate(rows) if len({one.verdict for one in row}) > 1), 0)
        return self._left.pop(best) if self._left else None


def code_of(reply: str) -> str:
    r"""Give the script in a reply: its first block of Python, else all of it.

    Examples
    --------
    >>> code_of("Here:\n```python\nx = 1\n```\n"), code_of(" x = 1 ")
    ('x = 1\n', 'x = 1')
    """
    found = _FENCE.search(reply)
    return found[1] if found else reply.strip()


def expected_in(script: str) -> int | None:
    """Read what a script expects of its layout, from its first line: 1 for a violation.

    Examples
    --------
    >>> expected_in("# EXPECTED: VIOLATION"), expected_in("import pya")
    (1, None)
    """
    first = script.lstrip().splitlines()[:1]
    found = _EXPECTED.fullmatch(first[0].strip()) if first else None
    return int(found[1] == "VIOLATION") if found else None


def number_in(reply: str) -> int | None:
    """Read a reply that is one number and nothing else.

    Examples
    --------
    >>> number_in(" 2 "), number_in("Candidate 2 is right.")
    (2, None)
    """
    return int(reply) if _WHOLE.fullmatch(reply.strip()) else None
