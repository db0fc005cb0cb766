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
)

STRATEGIES: tuple[Entry, ...] = (
    Entry(
        name="sample",
        target="harness.solvers.strategies:Sample",
        summary="one draw, scored alone",
    ),
)
