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
)

STRATEGIES: tuple[Entry, ...] = (
    Entry(
        name="sample",
        target="harness.solvers.strategies:Sample",
        summary="one draw, scored alone",
    ),
)
