"""Sizing solvers on a toy bench: what the model is told, how the budget is kept, what a bad reply costs."""

from __future__ import annotations

import json

import pytest

from harness.core.errors import UsageError
from harness.core.types import Generation, Message, Output, Sample, text_of
from harness.solvers.base import Item
from harness.solvers.sizing.autosizer import AutoSizer
from harness.solvers.sizing.base import Evaluated
from harness.solvers.sizing.loop import SizingLoop
from harness.solvers.sizing.optimise import Optimise
from harness.solvers.sizing.report import report
from harness.solvers.sizing.space import Space, SpaceError

pytest.importorskip("optuna")
NAMES = ("a", "b", "c", "d", "e", "f")
BEST = {"a": 8, "b": 1, "c": 6, "d": 3, "e": 9, "f": 0}


class Toy:
    """Six variables of ten values; all is met within a squared distance of 2 from the best point."""

    tools = ()
    isolation = "full"
    goals = "near > 0"

    def __init__(self, budget):
        self.variables = {name: tuple(float(v) for v in range(10)) for name in NAMES}
        self.budget, self.seed, self.tried, self.given = budget, 7, [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def left(self):
        return self.budget - len(self.tried)

    def evaluate(self, designs):
        found = []
        for given in designs:
            good = isinstance(given, dict) and set(given) == set(NAMES)
            design = {n: float(given[n]) for n in NAMES} if good else None
            known = next((one for one in self.tried if design and one.design == design), None)
            if known is None and not self.left:
                break
            if known is None:
                far = sum((design[n] - BEST[n]) ** 2 for n in NAMES) if design else 0
                known = Evaluated(
                    design=design, metrics={"near": 2.5 - far} if design else {}, met=bool(design and far <= 2),
                    worth=(2.5 - far) if design else -1000.0, reason="" if design else "no design",
                )  # fmt: skip
                self.tried.append(known)
                self.given.append(given)
            found.append(known)
        return found

    def answer(self):
        return json.dumps({"designs": self.given})


def solve(solver, budget, reply):
    """Drive a solver by a function from (question, turn) to a reply; give output, bench and questions."""
    bench, questions = Toy(budget), []
    item = Item(
        sample=Sample(item_id="toy", input="THE CIRCUIT"), messages=(Message("user", "THE CIRCUIT"),),
        generation=Generation(), seed=0, environment=lambda: bench,
    )  # fmt: skip
    going = solver(item)
    try:
        request = next(going)
        while True:
            questions.append(text_of(request.messages[-1]))
            answer = reply(questions[-1], request.turn)
            request = going.send(answer if isinstance(answer, Output) else Output(text=answer))
    except StopIteration as stop:
        return stop.value, bench, questions


def designs(*points):
    return json.dumps({"designs": [dict(zip(NAMES, point, strict=True)) for point in points]})


def test_the_loop_shows_what_came_of_every_design_and_ends_with_the_budget():
    turns = [
        designs((0,) * 6, (1,) * 6),
        "nothing",
        designs((8, 1, 6, 3, 9, 0), (2,) * 6, (3,) * 6),
    ]
    output, bench, questions = solve(SizingLoop(per_turn="2"), 5, lambda q, turn: turns[turn])
    assert questions[0].startswith("THE CIRCUIT\n\n5 of 5 simulations are left.")
    assert "up to 2 sizings" in questions[0]
    assert "2. a=1, b=1, c=1, d=1, e=1, f=1 -> near=-140.5: not all met" in questions[1]
    assert "3. not a design: no design" in questions[2]
    assert "2 of 5 simulations are left" in questions[2]
    # The third of the last reply goes beyond what one reply may hold.
    assert len(bench.tried) == 5
    assert [one.met for one in bench.tried] == [False, False, False, True, False]
    assert json.loads(output.text)["designs"][2] == "nothing"
    assert output.work.summary["evaluations"] == 5
    assert output.work.summary["bad_replies"] == 1


def test_the_loop_stops_when_it_is_told_to_and_when_nothing_new_comes():
    best = designs((8, 1, 6, 3, 9, 0))
    _, bench, _ = solve(SizingLoop(), 30, lambda q, turn: best if turn == 0 else '{"stop": true}')
    assert len(bench.tried) == 1
    _, bench, questions = solve(SizingLoop(), 30, lambda q, turn: best)
    assert (len(bench.tried), len(questions)) == (1, 3)
    _, bench, questions = solve(SizingLoop(until="met"), 30, lambda q, turn: best)
    assert (len(bench.tried), len(questions)) == (1, 1)
    # Nobody may stop before anything was tried: such a reply is no design.
    _, bench, questions = solve(SizingLoop(), 3, lambda q, turn: '{"stop": true}')
    assert ([one.design for one in bench.tried], len(questions)) == ([None], 2)


def test_a_fault_of_the_service_ends_it_as_one():
    fault = Output(text="", finish_reason="error", error="502", error_kind="backend")
    output, _, _ = solve(SizingLoop(), 5, lambda q, turn: fault)
    assert (output.finish_reason, output.error, output.error_kind) == ("error", "502", "backend")


@pytest.mark.parametrize("opt", ["random", "lhs", "ga", "anneal", "tpe"])
def test_an_optimiser_asks_no_model_and_keeps_to_the_budget(opt):
    output, bench, questions = solve(Optimise(opt), 25, lambda q, turn: "")
    assert questions == []
    assert len(bench.tried) == 25 == len(json.loads(output.text)["designs"])


def script(spaces, step='{"action": "search", "method": "lhs", "n_samples": 5}'):
    """A model that answers each kind of question in turn."""
    left = list(spaces)

    def reply(question, turn):
        if "how this circuit works" in question:
            return '{"topology": "six in a row"}'
        if "Choose the search space" in question:
            return left.pop(0) if left else "no more"
        return step

    return reply


def space_of(**opened):
    fixed = {name: 5.0 for name in NAMES if name not in opened}
    return json.dumps({"variables_to_optimize": opened, "variables_fixed": fixed})


BAD = space_of(a=[0, 1, 2], b=[7, 8, 9])
GOOD = json.dumps(
    {"variables_to_optimize": {"a": [7, 8, 9], "e": [8, 9]}, "variables_fixed": {"b": 1, "c": 6, "d": 3, "f": 0}}
)  # fmt: skip


def first_hit(bench):
    return next((k for k, one in enumerate(bench.tried, 1) if one.met), None)


def test_a_better_space_after_the_report_finds_what_the_fixed_ones_do_not():
    _, refined, questions = solve(AutoSizer(until="met"), 60, script([BAD, GOOD]))
    _, fixed, _ = solve(AutoSizer(fixed="yes", until="met"), 60, script([BAD, GOOD]))
    _, whole, _ = solve(Optimise("lhs"), 60, script([]))
    assert first_hit(fixed) is None
    assert first_hit(whole) is None
    assert first_hit(refined) <= 20
    told = next(q for q in questions if "Report on the last space" in q)
    assert "a at its highest allowed value 2" in told
    assert 'Your notes on the circuit:\n{"topology": "six in a row"}' in told


def test_a_bad_space_keeps_the_last_one_and_is_counted():
    output, bench, _ = solve(AutoSizer(spaces="2"), 12, script([GOOD, "no space"]))
    assert output.work.summary["bad_replies"] == 1
    assert [one["size"] for one in output.work.summary["spaces"]] == [6, 6]
    assert len(bench.tried) == 6  # all that the space holds
    output, _, _ = solve(AutoSizer(spaces="1"), 8, script(["no space"]))
    assert output.work.summary["spaces"][0]["size"] == 10**6


def test_the_budget_is_never_passed_and_an_unreadable_step_is_the_usual_one():
    for step in ("nonsense", '{"action": "search", "method": "tpe", "n_samples": 1000}'):
        _, bench, _ = solve(AutoSizer(), 17, script([BAD, BAD, BAD], step))
        assert len(bench.tried) <= 17
    _, bench, questions = solve(AutoSizer(), 40, script([BAD, GOOD], '{"action": "stop"}'))
    assert bench.tried == []
    assert sum("Choose the search space" in q for q in questions) == 3
    _, bench, questions = solve(AutoSizer(understanding="no", opt="tpe"), 10, script([BAD]))
    assert not any(
        "how this circuit works" in q or "Decide what comes next" in q for q in questions
    )


def test_a_space_is_read_strictly():
    grid = {"a": (1.0, 2.0, 3.0), "b": (0.15, 0.3)}
    ok = {"variables_to_optimize": {"a": [3, 1]}, "variables_fixed": {"b": 0.3}}
    assert Space.read(ok, grid).values == {"a": (1.0, 3.0), "b": (0.3,)}
    for wrong, why in (
        (None, "no JSON object"),
        ({**ok, "variables_fixed": {}}, "b is neither"),
        ({**ok, "variables_fixed": {"a": 1, "b": 0.3}}, "a is optimised and fixed"),
        ({**ok, "variables_fixed": {"b": 0.3, "z": 1}}, "z is no variable"),
        ({**ok, "variables_fixed": {"b": 0.2}}, "not on its grid"),
        ({**ok, "variables_to_optimize": {"a": ["3"]}}, "no number"),
        ({**ok, "variables_to_optimize": {"a": []}}, "no list of values"),
    ):  # fmt: skip
        with pytest.raises(SpaceError, match=why):
            Space.read(wrong, grid)


def test_a_report_names_edges_frequent_values_and_issues():
    space = Space({"a": (1.0, 2.0), "b": (5.0,)})
    tried = [Evaluated(design={"a": 2.0, "b": 5.0}, worth=0.1 * k, met=True) for k in range(4)]
    tried.append(Evaluated(design=None, reason="no JSON"))
    said = report(space, tried, [0.1, 0.3])
    assert "a at its highest allowed value 2 in 100%" in said
    assert "a: 2 x3" in said
    assert "no JSON (1 times)" in said


def test_parameters_that_are_none_are_refused():
    for wrong in ({"k": "0"}, {"opt": "newton"}, {"until": "dawn"}, {"spaces": "none"}):
        with pytest.raises(ValueError, match=r"above 0|is not one of|invalid literal"):
            AutoSizer(**wrong)
    with pytest.raises(UsageError, match="needs a task with circuits"):
        next(Optimise()(Item(
            sample=Sample(item_id="x", input=""), messages=(Message("user", ""),), generation=Generation(), seed=0,
        )))  # fmt: skip
