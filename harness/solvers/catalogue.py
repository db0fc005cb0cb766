"""The solvers and strategies that come with the project."""

from __future__ import annotations

from harness.core.registry import Entry

SOLVERS: tuple[Entry, ...] = (
    Entry(
        name="generate",
        target="harness.solvers.generate:Generate",
        summary="ask once for text",
    ),
    Entry(
        name="choose",
        target="harness.solvers.choose:Choose",
        summary="compare the log-probability of every option",
    ),
    Entry(
        name="agent",
        target="harness.solvers.agent:Agent",
        # Raised with every change of the loop, of the grammar or of a generic tool.
        version="1",
        summary="model and tools turn by turn, until it submits or a limit ends it",
    ),
    Entry(
        name="select",
        target="harness.solvers.selection.solver:Select",
        version="1",
        summary="choose one of an item's candidates (by=split_tester|generated_tests|codemonkey|s_star|llm_judge)",
    ),
    Entry(
        name="sizing_loop",
        target="harness.solvers.sizing.loop:SizingLoop",
        version="1",
        summary="designs and their simulation in turns, up to the budget (per_turn=10, until=budget|met)",
    ),
    Entry(
        name="optimiser",
        target="harness.solvers.sizing.optimise:Optimise",
        version="1",
        summary="a search without a model (opt=tpe|random|lhs|ga|anneal|gp)",
    ),
    Entry(
        name="autosizer",
        target="harness.solvers.sizing.autosizer:AutoSizer",
        version="1",
        summary="the model reduces the search space, an optimiser works in it (k=3, opt=auto, spaces=3)",
    ),
    Entry(
        name="clarify",
        target="harness.solvers.clarify:Clarify",
        version="1",
        summary="questions about a description, a user's answers, then the program (max_questions=8)",
    ),
)

STRATEGIES: tuple[Entry, ...] = (
    Entry(
        name="sample",
        target="harness.solvers.strategies:Sample",
        summary="one draw, scored alone",
    ),
    Entry(
        name="generated_tests",
        target="harness.solvers.selection.strategy:generated_tests",
        summary="the draw that agrees with most of a model's own test inputs (n=10)",
    ),
    Entry(
        name="split_tester",
        target="harness.solvers.selection.strategy:split_tester",
        summary="test inputs that split groups of draws which agree so far, then a judge (n=10)",
    ),
    Entry(
        name="codemonkey",
        target="harness.solvers.selection.strategy:codemonkey",
        summary="the model looks at test inputs until it decides among three (n=10)",
    ),
    Entry(
        name="s_star",
        target="harness.solvers.selection.strategy:s_star",
        summary="each disagreement settled by test inputs and a judge, by votes (n=10)",
    ),
    Entry(
        name="llm_judge",
        target="harness.solvers.selection.strategy:llm_judge",
        summary="a knock-out among draws that are only read (n=10)",
    ),
)
