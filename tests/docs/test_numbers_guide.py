"""The page on what a number means: every figure of its example is recomputed."""

import doctest
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/what-a-number-means.md"


def test_every_figure_of_the_worked_example():
    done = doctest.testfile(str(GUIDE), module_relative=False)
    assert done.attempted > 20
    assert done.failed == 0
