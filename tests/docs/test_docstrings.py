"""Every public name says what it is, and the public surface grows on purpose only."""

import ast
from pathlib import Path

import pytest

import harness
import scorers

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path.relative_to(ROOT)
    for package in ("harness", "scorers", "tasks", "irt", "leaderboard")
    for path in (ROOT / package).rglob("*.py")
    if "_data" not in path.parts and (path.name == "__init__.py" or not path.name.startswith("_"))
)
HARNESS = {
    "Generation", "Message", "Output", "Run", "Sample", "Score", "Task", "TaskRequest",
    "backend", "run", "score", "scorer", "solver", "strategy", "task", "tasks",
}  # fmt: skip
SCORERS = {"SCORERS", "extract_number", "read_choice", "remove_reasoning"}


def is_public(node):
    """Tell whether a definition is one that others may use; setters speak through their getter."""
    setter = any(
        isinstance(mark, ast.Attribute) and mark.attr in ("setter", "deleter")
        for mark in node.decorator_list
    )
    return not node.name.startswith("_") and not setter


def undocumented(source):
    """Give the public names of a module without a docstring: itself, classes, functions, methods."""
    module = ast.parse(source)
    missing = [] if ast.get_docstring(module) else ["the module"]
    waiting = [("", module)]
    while waiting:
        prefix, parent = waiting.pop()
        for node in parent.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not is_public(node):
                continue
            if not ast.get_docstring(node):
                missing.append(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                waiting.append((f"{prefix}{node.name}.", node))
    return sorted(missing)


def test_the_check_sees_what_is_missing():
    source = """
class A:
    def named(self): ...
    def _inner(self): ...
    class B:
        "Documented."
        def deep(self): ...
def f():
    "Documented."
    def inside(): ...
"""
    assert undocumented(source) == ["A", "A.B.deep", "A.named", "the module"]


def test_there_are_files_to_look_at():
    assert {"harness/__init__.py", "scorers/number.py", "tasks/gsm8k/task.py"} <= set(
        map(str, FILES)
    )


@pytest.mark.parametrize("file", FILES, ids=str)
def test_every_public_name_has_a_docstring(file):
    assert undocumented((ROOT / file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("module", "names"), [(harness, HARNESS), (scorers, SCORERS)])
def test_the_public_surface_is_this(module, names):
    assert set(module.__all__) == names
    for name in names:
        value = getattr(module, name)
        assert isinstance(value, tuple) or value.__doc__
