"""The ways of choosing, by name."""

from __future__ import annotations

from collections.abc import Callable

from harness.solvers.selection.base import Bench, Options, Pool, Selecting
from harness.solvers.selection.codemonkey import codemonkey
from harness.solvers.selection.generated_tests import generated_tests
from harness.solvers.selection.llm_judge import llm_judge
from harness.solvers.selection.s_star import s_star
from harness.solvers.selection.split_tester import split_tester

Algorithm = Callable[[Pool, Bench, Options], Selecting]

ALGORITHMS: dict[str, Algorithm] = {
    "generated_tests": generated_tests,
    "split_tester": split_tester,
    "codemonkey": codemonkey,
    "s_star": s_star,
    "llm_judge": llm_judge,
}
