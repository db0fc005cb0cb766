"""`harness audit`: exit codes, strict JSON, a table for people, the store it looks at."""

from __future__ import annotations

import json

import pytest

from harness.cli.main import main
from harness.core import registry
from harness.core.task import Task
from harness.core.types import Sample
from harness.runner.audit import CHECKS

NAMES = [check.__name__ for check in CHECKS] + ["no_data_scores", "shortcuts", "solved"]


@pytest.fixture
def say(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_STORE", raising=False)

    def run(*args):
        code = main(args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def broken(monkeypatch):
    """A task whose gold is wrong."""
    monkeypatch.setattr(registry, "_decorated", {})

    @registry.task("broken")
    def _make(request):
        samples = [Sample(item_id=f"b{k}", input=f"Item {k}?", target=(str(k),)) for k in range(3)]
        return Task(name="broken", version="1", samples=samples, prompt="{{ input }}",
                    gold=lambda s: "wrong", guess=lambda s, rng: "?", scorer="exact")  # fmt: skip


def test_json_is_one_object_with_the_fields_of_the_contract(say, tmp_path):
    code, out, _ = say("audit", "--task", "gsm8k", "--json")
    assert code == 0
    found = json.loads(out)
    assert list(found) == ["task", "verdict", "checks"]
    assert found["task"] == "gsm8k"
    assert [check["name"] for check in found["checks"]] == NAMES
    assert all(list(check) == ["name", "verdict", "value", "why"] for check in found["checks"])
    assert found["verdict"] == max(
        (check["verdict"] for check in found["checks"]), key=["ok", "warn", "fail"].index
    )
    assert list(tmp_path.iterdir()) == []  # no store is made by looking


def test_several_tasks_are_an_object_a_line_and_one_failure_is_exit_1(say, broken):
    code, out, _ = say("audit", "--task", "aicrypto/mcq,broken", "--task", "gsm8k", "--json")
    assert code == 1
    verdicts = {row["task"]: row["verdict"] for row in map(json.loads, out.splitlines())}
    assert verdicts["broken"] == "fail"
    assert set(verdicts) == {"aicrypto/mcq", "broken", "gsm8k"}
    assert all(v != "fail" for task, v in verdicts.items() if task != "broken")


def test_people_get_a_table(say, broken):
    code, out, _ = say("audit", "-t", "broken")
    assert code == 1
    assert out.startswith("broken: fail")
    row = next(line for line in out.splitlines() if line.strip().startswith("gold "))
    assert row.split()[:3] == ["gold", "fail", "0"]
    assert "3 of 3 (100.0 %): b0, b1, b2" in row


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--task", "gsm8"], "unknown task 'gsm8': did you mean 'gsm8k'?"),
        (["--task", "gsm8k", "--arg", "x=1"], "--arg"),
        (["--task", "gsm8k", "--data-root", "nowhere"], "--data-root"),
        ([], "--task"),
    ],
)
def test_a_wrong_request_is_exit_2_in_one_line(say, args, error):
    code, out, err = say("audit", *args)
    assert code == 2
    assert out == ""
    assert error in err
    assert len(err.splitlines()) == 1


def test_a_store_that_is_named_must_be_there(say):
    code, _, err = say("audit", "--task", "gsm8k", "--store", "nowhere")
    assert code == 1
    assert "no store at nowhere" in err


def test_a_folder_of_the_default_name_need_not_be_a_store(say, tmp_path):
    (tmp_path / "results").mkdir()
    code, out, _ = say("audit", "--task", "gsm8k", "--json")
    assert code == 0
    assert json.loads(out)["checks"][-1]["why"] == "skipped: there is no store"


def test_the_default_store_is_looked_at(say):
    assert say("run", "--task", "gsm8k", "--model", "mock:gold", "--limit", "2")[0] == 0
    _, out, _ = say("audit", "--task", "gsm8k", "--json")
    solved = json.loads(out)["checks"][-1]
    assert solved["why"] == "skipped: the store holds 0 models, 3 are needed"


@pytest.mark.parametrize("arg", ["shuffle=off", "shuffle=on"])
def test_switches_and_seed_reach_the_task(say, arg):
    args = ("audit", "--task", "aicrypto/mcq", "--arg", arg, "--json")
    whys = [
        {c["name"]: c["why"] for c in json.loads(say(*args, "--seed", seed)[1])["checks"]}
        for seed in ("1", "2")
    ]
    same = whys[0]["letter_balance"] == whys[1]["letter_balance"]
    assert same == (arg == "shuffle=off")
