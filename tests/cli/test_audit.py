"""`harness audit`: exit codes, strict JSON, a table for people, the store it looks at."""

from __future__ import annotations

import json
from pathlib import Path

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


JUDGE = Path(__file__).resolve().parents[2] / "data/aicrypto/proof/judge.jsonl"
OF_JUDGES = ("gold", "gold_path", "empty_answer", "constant_answer", "frequent_answer")


def checks_of(out):
    return {check["name"]: check for check in json.loads(out)["checks"]}


def test_with_the_scripted_judge_our_own_proofs_are_sound(say):
    args = ("audit", "--task", "aicrypto/proof", "--json")
    code, out, _ = say(*args, "--judge", f"mock:script?file={JUDGE}")
    assert (code, json.loads(out)["verdict"]) == (0, "ok")
    assert [checks_of(out)[name]["value"] for name in OF_JUDGES[:3]] == [1, 1, 0]
    # The script has no line for a constant: that no such answer was right is no finding.
    assert checks_of(out)["constant_answer"]["why"].endswith("; 12 could not be graded")


def test_without_a_judge_nothing_is_known_and_the_checks_say_so(say):
    code, out, _ = say("audit", "--task", "aicrypto/proof", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "warn")
    warned = {name: c["why"] for name, c in checks_of(out).items() if c["verdict"] == "warn"}
    assert tuple(warned) == OF_JUDGES
    assert all("none was named (--judge SPEC)" in why for why in warned.values())


def test_a_judge_that_gives_gold_less_or_cannot_be_read_fails_the_task(say, tmp_path):
    for said in ("{}", "no"):
        judge = f"mock:constant?text={said}"
        code, out, _ = say("audit", "--task", "aicrypto/proof", "--judge", judge, "--json")
        found = checks_of(out)
        assert code == 1
        assert {found[name]["verdict"] for name in ("gold", "gold_path")} == {"fail"}
    # The task asks all judges that are named: a second one that says nothing changes no number.
    both = f"mock:script?file={JUDGE},mock:empty"
    assert say("audit", "--task", "aicrypto/proof", "--judge", both)[0] == 0


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
        (["--task", "aicrypto/proof", "--judge", "mock:gold,"], "no judge stands beside a comma"),
        (["--task", "aicrypto/proof", "--judge", "mock:nosuch"], "unknown model 'mock:nosuch'"),
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
