"""A bench whose candidates have planted behaviours, and models that say what a test wants."""

import re
from types import SimpleNamespace

import pytest

from harness.core.types import text_of
from harness.solvers.selection import ALGORITHMS, Case, Fault, Options, Outcome, Pool
from harness.solvers.selection.base import no_items

_NAMES = re.compile(r"^program (\d+)$", re.MULTILINE)


class FakeBench:
    """Inputs are numbers; a candidate says of each a bit, None (it fails) or "?" (unknown category).

    Scripts are lines: ``suite 0 1 2`` or ``layout 5``, after comments.
    """

    tools = ()
    isolation = "full"

    def __init__(self, behaviours, truth, with_items=False, programs=None):
        self.behaviours, self.truth, self.with_items = behaviours, truth, with_items
        programs = (
            [f"program {k}" for k in range(len(behaviours))] if programs is None else programs
        )
        self.candidates = tuple(programs)
        self.known, self.seeds, self.used = {}, [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def rule(self):
        return "THE RULE"

    def how_to_make(self, n):
        return f"make {n}\n"

    def case(self, number):
        self.used.append(number)
        return Case(name=f"{number}", data=b"%d" % number, expected={"W": self.truth[number]})

    def _numbers(self, script, word):
        lines = [line for line in script.splitlines() if line and not line.startswith("#")]
        if not lines or not lines[0].startswith(word):
            return Fault(f"no {word}: FAULT {len(self.seeds)}")
        return [int(text) for text in lines[0].split()[1:]]

    def suite(self, script, seed):
        self.seeds.append(seed)
        numbers = self._numbers(script, "suite")
        return numbers if isinstance(numbers, Fault) else tuple(map(self.case, numbers))

    def layout(self, script, seed):
        self.seeds.append(seed)
        numbers = self._numbers(script, "layout")
        return numbers if isinstance(numbers, Fault) else self.case(numbers[0])

    def run(self, which, cases):
        return [[self._outcome(k, int(case.data)) for case in cases] for k in which]

    def _outcome(self, k, number):
        bit = self.behaviours[k][number]
        self.known[k, number] = True
        if bit is None:
            return Outcome(verdict="ERROR")
        if bit == "?":
            return Outcome(verdict="VIOLATION", bits={"W": 0}, unknown=True)
        return Outcome(verdict="VIOLATION" if bit else "PASS", bits={"W": bit})

    def runs(self):
        return len(self.known)

    def show(self, case):
        return f"<input {case.name}>"

    def items(self):
        if not self.with_items:
            raise no_items()
        return tuple(self.case(number) for number in range(len(self.truth)))


class FakeToolbox:
    """An environment that has no candidates."""

    tools = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def shown_in(text):
    """The candidates of a question, in the order shown."""
    return [int(number) for number in _NAMES.findall(text)]


def choose(by, bench, model, key="item", **options):
    """Let an algorithm choose; gives the choice and the questions that were asked."""
    asked = []
    algorithm = ALGORITHMS[by](
        Pool(key=key, candidates=bench.candidates), bench, Options(**options)
    )
    try:
        question = next(algorithm)
        while True:
            asked.append(text_of(question.messages[-1]))
            question = algorithm.send(model(asked[-1]))
    except StopIteration as ended:
        return SimpleNamespace(choice=ended.value, asked=asked, facts=ended.value.facts)


def scripted(*replies):
    """A model that says one thing after the other, and then nothing."""
    left = list(replies)
    return lambda _: left.pop(0) if left else ""


@pytest.fixture
def kit():
    return SimpleNamespace(
        FakeBench=FakeBench,
        FakeToolbox=FakeToolbox,
        choose=choose,
        scripted=scripted,
        shown_in=shown_in,
    )
