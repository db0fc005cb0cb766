"""`generated_tests`: one suite for all candidates, the share of it that each gets right."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from harness.solvers.selection import prompts
from harness.solvers.selection.base import (
    MOST_TESTS,
    Bench,
    Case,
    Options,
    Outcome,
    Pool,
    Selecting,
)
from harness.solvers.selection.desk import Asking, Desk, Items


class Base(Struct, frozen=True):
    """A suite and what all candidates said of it: the base of the further ways of choosing.

    Attributes
    ----------
    cases : tuple of Case
        Empty where no suite came about.
    outcomes : dict of int to list of Outcome
        By candidate; of one without a program nothing.
    scores : list of float
    patterns : list of list of (int or None)
        A bit for each layout, None for a failure.
    expected : list of int
        The bits as the maker has them.
    """

    cases: tuple[Case, ...]
    outcomes: dict[int, list[Outcome]]
    scores: list[float]
    patterns: list[list[int | None]]
    expected: list[int]

    def whole(self) -> list[int]:
        """Give the candidates that ran on every layout, those without a program left out."""
        return [k for k in self.outcomes if None not in self.patterns[k]]

    def matches(self, k: int) -> int:
        """Count the layouts on which a candidate says what was expected."""
        pairs = zip(self.patterns[k], self.expected, strict=True)
        return sum(bit == expected for bit, expected in pairs)


def make_base(desk: Desk, items: Items | None) -> Asking[Base]:
    """Make a suite and run all candidates on it.

    With `items` the suite is the bench's own. Without a suite every candidate with a program scores 0.
    """
    bench = desk.bench
    made: tuple[Case, ...] | None
    if items is not None:
        made = items.suite()
    else:
        text = prompts.suite(bench.rule(), bench.how_to_make(MOST_TESTS))
        made = yield from desk.script(text, lambda code, _: bench.suite(code, desk.options.seed))
    cases = made or ()
    have = [k for k in range(desk.n) if desk.decks[k]]
    outcomes = desk.run(have, cases)
    patterns = [[one.bit for one in outcomes.get(k, [])] for k in range(desk.n)]
    expected = [int(any(case.expected.values())) for case in cases]
    scores = [score(outcomes[k], cases) if k in outcomes else -1.0 for k in range(desk.n)]
    desk.facts |= {
        "tests": len(cases),
        "base_scores": scores,
        "pattern": patterns,
        "expected_pattern": expected,
        "intents": [case.intent for case in cases],
    }
    return Base(cases, outcomes, scores, patterns, expected)


def score(outcomes: Sequence[Outcome], cases: Sequence[Case]) -> float:
    """Give the share of layouts on which all categories are as expected.

    -1 where one fails or fires in an unknown category; 0 without layouts.

    Examples
    --------
    >>> case = Case(name="a", data=b"", expected={"W": 1})
    >>> right = Outcome(verdict="VIOLATION", bits={"W": 1})
    >>> wrong = Outcome(verdict="PASS", bits={"W": 0})
    >>> score([right, wrong], [case, case]), score([Outcome(verdict="ERROR")], [case])
    (0.5, -1.0)
    """
    if any(one.verdict == "ERROR" or one.unknown for one in outcomes):
        return -1.0
    pairs = zip(outcomes, cases, strict=True)
    right = sum(dict(one.bits) == dict(case.expected) for one, case in pairs)
    return right / len(cases) if cases else 0.0


def generated_tests(pool: Pool, bench: Bench, options: Options) -> Selecting:
    """Choose by a suite of tests that the model writes.

    One script makes up to 8 layouts with what is expected of each; up to five times it is written
    again. Score: share of layouts on which all categories match (Rule2DRC, arXiv 2605.15669).
    """
    desk = Desk("generated_tests", pool, bench, options)
    items = Items(desk) if options.maker == "items" else None
    base = yield from make_base(desk, items)
    return desk.close(base.scores)
