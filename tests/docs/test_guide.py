"""The guide's task runs as printed: in a notebook, and as an installed package."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import harness
from harness.core import registry

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/add-a-task.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def block(mark):
    """Give the code block behind a marking comment."""
    return re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", TEXT, re.DOTALL)[1]


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    """Run the task's block as a notebook cell; what it registers is gone after the test."""
    monkeypatch.setattr(registry, "_decorated", {})
    monkeypatch.setenv("HARNESS_STORE", str(tmp_path / "store"))
    names = {}
    exec(compile(block("the task"), str(GUIDE), "exec"), names)
    return names


def test_the_task_is_as_short_as_the_guide_says(notebook):
    lines = [line for line in block("the task").splitlines() if line.strip()]
    assert len(lines) <= 42


@pytest.mark.parametrize(("model", "value"), [("mock:gold", 1.0), ("mock:empty", 0.0)])
def test_gold_scores_one_and_silence_zero(notebook, model, value):
    summary = harness.run(task="roman", model=model).summary()
    assert summary.status == "done"
    assert summary.n_counted == 7
    assert summary.metrics["accuracy"].value == value
    assert summary.unparsed == (7 if model == "mock:empty" else 0)


def test_an_answer_in_words_is_read_and_a_wrong_one_is_wrong(notebook):
    right, wrong = harness.score(
        "roman",
        [
            {"item_id": "y1987", "output": "1987 is written MCMLXXXVII."},
            {"item_id": "y4", "output": "IIII"},
        ],
    )
    assert (right.value, wrong.value, wrong.status) == (1.0, 0.0, "scored")


def test_the_check_prints_three_models(notebook, capsys):
    exec(block("its check"), notebook)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in printed[:2]] == [
        ["mock:gold", "1.0"],
        ["mock:empty", "0.0"],
    ]
    assert printed[2].startswith("mock:random ")


def test_its_audit_finds_only_what_the_guide_says(notebook, capsys):
    exec(block("its audit"), notebook)
    printed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["ok", "gold"] in printed
    assert [line for line in printed if line[0] != "ok"] == [["warn", "no_data"]]


def test_as_a_package_it_is_found_by_its_entry_points(tmp_path):
    (tmp_path / "roman.py").write_text(block("the task"), encoding="utf-8")
    catalogue = block("the catalogue: roman_catalogue.py")
    (tmp_path / "roman_catalogue.py").write_text(catalogue, encoding="utf-8")
    info = tmp_path / "roman-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: roman\nVersion: 0.1\n")
    groups = tomllib.loads(block("the entry points: pyproject.toml"))["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in points.items())
        for group, points in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def call(*args):
        return subprocess.run(
            [sys.executable, "-P", "-m", "harness.cli.main", *args], cwd=tmp_path, text=True,
            capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        ).stdout  # fmt: skip

    listed = {row["name"]: row for row in json.loads(call("list", "tasks", "--json"))}
    assert listed["roman"]["n"] == 7
    done = call("run", "--task", "roman", "--model", "mock:gold", "--store", "store", "--json")
    assert json.loads(done)["runs"][0]["metrics"]["accuracy"]["value"] == 1.0
