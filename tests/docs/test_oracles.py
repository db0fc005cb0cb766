"""Every oracle that is claimed names a test that is there."""

import ast
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
ORACLES = tomllib.loads((TESTS / "oracles.toml").read_text(encoding="utf-8"))["oracle"]
AT_LEAST = 20


def test_there_are_enough_and_no_test_stands_twice():
    named = [oracle["test"] for oracle in ORACLES]
    assert len(named) == len(set(named)) >= AT_LEAST


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle["test"].split("::")[1])
def test_each_says_what_against_what_how_near_and_where(oracle):
    assert set(oracle) == {"what", "source", "tolerance", "test"}
    assert all(isinstance(text, str) and text.strip() for text in oracle.values())
    path, _, name = oracle["test"].partition("::")
    tree = ast.parse((TESTS.parent / path).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert len(found) == 1, f"{path} has no test {name}"
    asserts = [node for node in ast.walk(found[0]) if isinstance(node, ast.Assert | ast.Call)]
    assert asserts, f"{name} checks nothing"
