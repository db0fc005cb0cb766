"""Choosing one of several candidate programs without their labels: by tests that a model writes."""

from harness.solvers.selection.algorithms import ALGORITHMS
from harness.solvers.selection.base import (
    Bench,
    Case,
    Choice,
    Fault,
    Options,
    Outcome,
    Pool,
    Question,
    Selecting,
)
from harness.solvers.selection.strategy import Selector

__all__ = [
    "ALGORITHMS", "Bench", "Case", "Choice", "Fault", "Options", "Outcome", "Pool", "Question",
    "Selecting", "Selector",
]  # fmt: skip
