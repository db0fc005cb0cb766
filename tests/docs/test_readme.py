"""The README is true: its commands work, its output is real, its tables are the catalogues."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.backends.catalogue import BACKENDS
from tasks.catalogue import TASKS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [
    (found["mark"], found["language"], found["body"])
    for found in re.finditer(
        r"<!-- (?P<mark>tested(?:: output)?) -->\n```(?P<language>\w+)\n(?P<body>.*?)```\n",
        README,
        re.DOTALL,
    )
]
COMMANDS = [
    line.removeprefix("$ ")
    for mark, language, body in BLOCKS
    for line in body.splitlines()
    if (language == "console" and line.startswith("$ ")) or language == "sh"
]


def shell(command, folder):
    """Run a line as a newcomer's shell would, with the installed program and a store of its own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "HARNESS_STORE": "results"},
    )  # fmt: skip


def table(name):
    """Give the first columns of a marked table: every row without its back-quotes."""
    rows = README.split(f"<!-- table: {name} -->\n", 1)[1].split("\n\n", 1)[0].splitlines()
    return [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in rows[2:]]


def words(line):
    """Take a line of a table apart; a run's name is another every time."""
    return re.sub(r"\b[0-9a-f]{8}$", "RUN", line.strip()).split()


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Run all marked commands in the order of the page; each finds what the ones before left."""
    folder = tmp_path_factory.mktemp("newcomer")
    return {command: shell(command, folder) for command in COMMANDS}


def test_the_page_has_commands_to_run():
    assert sum(command.startswith("harness ") for command in COMMANDS) >= 8
    assert {language for _, language, _ in BLOCKS} == {"console", "sh", "python"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_marked_command_works(command, answers):
    done = answers[command]
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_the_output_shown_is_what_comes(answers):
    body = next(body for mark, _, body in BLOCKS if mark == "tested: output")
    command, *shown = body.splitlines()
    come = answers[command.removeprefix("$ ")].stdout.splitlines()
    come = [words(line) for line in come if line.strip()]
    shown = [words(line) for line in shown if line.strip()]
    assert len(shown) == len(come)
    for ours, real in zip(shown, come, strict=True):
        # Another CPU rounds otherwise, so a real model's score may differ there; a mock's may not.
        real_model = "hf:tiny" in ours
        assert (ours[:4] if real_model else ours) == (real[:4] if real_model else real)


@pytest.mark.parametrize("body", [body for _, language, body in BLOCKS if language == "python"])
def test_every_marked_python_block_works(body, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", body], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, "HARNESS_STORE": "results"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("1.0 ")


def test_the_table_of_tasks_is_the_catalogue():
    listed = {(row[0], row[1], row[2]) for row in table("tasks")}
    assert listed == {(task.name, str(task.n), task.state()[0]) for task in TASKS}


def test_the_table_of_backends_is_the_catalogue():
    listed = {(row[0], row[1]) for row in table("backends")}
    assert listed == {(backend.name, backend.state()[0]) for backend in BACKENDS}


def test_no_address_of_a_package_index_is_written_down():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("*.md")]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    assert not [text for text in texts if re.search(r"(index|extra-index)-url[= ]+http", text)]
