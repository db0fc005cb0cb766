"""`harness show sample` tells an agent's story, also of an answer that was used again."""

import json

import pytest

from harness.cli.main import main
from harness.cli.transcript import print_transcript

AGENT = """
from harness import Sample, Task
from harness.core.environment import ToolResult
from harness.core.registry import Entry
from harness.solvers.tools import PYTHON, SUBMIT_ANSWER, gold_call


class Echo:
    tools = (PYTHON, SUBMIT_ANSWER)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def kill(self):
        pass

    def call(self, call, wall_s):
        if call.name == "submit":
            return ToolResult(text="", submitted=call.arguments["answer"])
        return ToolResult(text="\\x1b[2Jforty-two", facts={"cpu_s": 0.5, "peak_bytes": 3 << 20})
"""


def rows():
    """Events as the store gives them."""
    call = {"id": "c", "name": "python", "arguments": {"code": "print(6 * 7)"}}
    made = [
        ("model_call", {"turn": 0, "text": "I count.", "tool_calls": [call], "finish_reason": "tool_calls",
                        "tokens_out": 12}),
        ("tool_call", {"turn": 0, "call": call, "text": "\x1b[2J42", "status": "ok", "wall_s": 0.125,
                       "cpu_s": 0.5, "peak_bytes": 3 << 20}),
        ("told", {"turn": 0, "text": "Submit now."}),
        ("model_call", {"turn": 1, "text": "42", "finish_reason": "stop", "tokens_out": None}),
        ("resumed", {"missing": 1}),
    ]  # fmt: skip
    return [{"kind": kind, "json": json.dumps(data)} for kind, data in made]


def test_a_transcript_is_printed_in_order(capsys):
    print_transcript(rows())
    out = capsys.readouterr().out
    lines = out.splitlines()
    headings = [line[3:].rstrip("─ ") for line in lines if line.startswith("── ")]
    assert headings == [
        "turn 1: model (tool_calls, 12 tokens)",
        "turn 1: python (ok, 0.12 s, 0.50 CPU s, 3 MiB)",
        "turn 1: told",
        "turn 2: model (stop)",
        "resumed",
    ]
    assert "code = print(6 * 7)" in lines
    assert "\\x1b[2J42" in lines  # nothing that a program printed steers the terminal
    assert "\x1b" not in out


@pytest.fixture
def with_agent(monkeypatch):
    from harness.core import registry
    from harness.core.types import Sample

    monkeypatch.setattr(registry, "_decorated", {})
    scope: dict = {}
    exec(AGENT, scope)  # the task of a user's own file

    @registry.task("own/echo", n=1)
    def echo(request):
        return scope["Task"](
            name="own/echo", version="1", samples=[Sample(item_id="a", input="6 * 7", target=("42",))],
            prompt="{{ input }}", scorer="exact", solver="agent", guess=lambda s, rng: "0",
            gold=lambda s: (scope["gold_call"]("python", code="6 * 7"), scope["gold_call"]("submit", answer="42")),
            environment=lambda sample, request: scope["Echo"](),
        )  # fmt: skip


def test_show_sample_prints_it_also_where_the_answer_was_used_again(with_agent, tmp_path, capsys):
    store = str(tmp_path / "s")
    command = ["run", "--task", "own/echo", "--model", "mock:gold", "--store", store, "--json"]
    shown = []
    for _ in range(2):
        assert main([*command, "--sandbox", "full"]) == 0
        run = json.loads(capsys.readouterr().out)["runs"][0]
        assert main(["show", "sample", run["run_id"], "a", "--store", store]) == 0
        shown.append(capsys.readouterr().out)
    assert run["cached"] == 1
    for out in shown:
        assert "turn 1: python (ok" in out
        assert "\\x1b[2Jforty-two" in out
        assert "turn 2: submit (ok" in out
    assert main(["show", "sample", run["run_id"], "a", "--store", store, "--json"]) == 0
    assert [e["kind"] for e in json.loads(capsys.readouterr().out)["events"]] == [
        "model_call", "tool_call", "model_call", "tool_call"
    ]  # fmt: skip


def test_the_level_is_an_option_of_run_and_of_suites(with_agent, tmp_path, capsys):
    store = str(tmp_path / "s")
    suite = tmp_path / "suite.toml"
    suite.write_text('[[run]]\ntask = "own/echo"\nmodel = "mock:gold"\nsandbox = "userns"\n')
    assert main(["run", "-c", str(suite), "--store", store, "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert main(["show", "run", run["run_id"], "--store", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["started"]["config"]["sandbox"] == "userns"
    assert main(["run", "--task", "own/echo", "--model", "mock:gold", "--sandbox", "fulll"]) == 2
    assert "did you mean 'full'" in capsys.readouterr().err
