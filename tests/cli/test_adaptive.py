"""`fit --bank` and `run --adaptive` on the command line: keys, tables, exit codes, one-line errors."""

from __future__ import annotations

import json

import pytest

import irt
from harness.cli.main import main

MODELS = [f"mock:noisy?accuracy={a}" for a in (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.95)]
TASK = ("--task", "gsm8k", "--store", "store")
KEYS = {
    "bank", "data_hash", "theta", "se", "score", "lo", "hi", "level", "observed", "n_asked",
    "n_answered", "n_bank", "n_task", "n_outside", "n_saved", "target_se", "max_items", "stopped",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store with eight mocks on 24 questions, and a bank of them."""
    made = tmp_path_factory.mktemp("cli")
    models = [word for model in MODELS for word in ("--model", model)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        assert main(["run", *TASK, *models, "--limit", "24"]) == 0
        assert main(["fit", "--bank", "--store", "store", "--baselines", "--out", "out"]) == 0
    return made


@pytest.fixture
def say(capsys, monkeypatch, folder):
    """Call the program in that folder; give exit code, stdout and stderr."""
    monkeypatch.chdir(folder)

    def call(*args):
        code = main([str(arg) for arg in args])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_a_bare_bank_is_called_default_and_lies_in_two_files(say, folder):
    for path in (folder / "store" / "banks" / "default.json", folder / "out" / "bank.json"):
        bank = irt.Bank.from_dict(json.loads(path.read_text()))
        assert len(bank) == 24
        assert {(key[0], key[1]) for key in bank.item} == {("gsm8k", bank.item[0][1])}
    code, out, _ = say("fit", "--store", "store", "--baselines", "--bank", "mine", "--json")
    assert code == 0
    kept = json.loads(out)["bank"]
    assert (kept["name"], kept["n_items"], kept["converged"]) == ("mine", 24, True)
    assert kept["fit_id"] == json.loads(out)["fit_id"]
    assert "a bank" not in say("fit", "--store", "store", "--baselines", "--json")[1]


def test_an_adaptive_run_says_what_it_came_to(say):
    model = "mock:noisy?accuracy=0.55"
    code, out, err = say("run", *TASK, "--model", model, "--adaptive", "--max-items", 6, "--json")
    assert code == 0, err
    (run,) = json.loads(out)["runs"]
    told = run["adaptive"]
    assert set(told) == KEYS
    assert (told["n_asked"], told["max_items"], told["stopped"]) == (6, 6, "max_items")
    assert told["n_saved"] == 18
    (metric,) = run["metrics"].values()
    assert metric["method"] == "irt-adaptive"
    assert (metric["value"], metric["lo"], metric["hi"]) == (told["score"], told["lo"], told["hi"])
    # The task's other items are in no bank: said at once and kept.
    assert told["n_outside"] == told["n_task"] - 24
    assert f"{told['n_outside']} of {told['n_task']} items are not in bank" in err
    code, out, _ = say("show", "run", run["run_id"], "--store", "store")
    assert code == 0
    assert "from 6 of 24 items, 18 saved, stopped at 6 items" in out
    assert "irt-adaptive" in out
    code, out, _ = say("show", "run", run["run_id"], "--store", "store", "--json")
    assert json.loads(out)["summary"]["adaptive"] == told
    code, out, _ = say("resume", run["run_id"], "--store", "store", "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["adaptive"] == told
    code, _, err = say("compare", model, MODELS[2], "--store", "store")
    assert code == 2
    assert "A adaptive" in err


def test_a_dry_run_says_that_it_asks_fewer(say):
    options = ("--model", "mock:gold", "--adaptive", "--max-items", 5, "--dry-run", "--json")
    code, out, _ = say("run", *TASK, *options)
    assert code == 0
    (row,) = json.loads(out)["plan"]
    assert (
        "gsm8k: adaptive, so only as many of these items as it takes, 5 at the most" in row["notes"]
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--adaptive", "--se", "0"), "--se must be above 0"),
        (("--adaptive", "--max-items", "0"), "--max-items must be at least 1"),
        (("--adaptive", "--limit", "5"), "leave --limit out"),
        (("--adaptive", "--bank", "none"), "unknown item bank 'none': did you mean"),
        (("--se", "0.2"), "--se belongs to --adaptive"),
    ],
)
def test_bad_requests_are_one_line_and_exit_2(say, args, message):
    code, out, err = say("run", *TASK, "--model", "mock:gold", *args)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_wrong_bank_for_the_last_task_costs_the_first_nothing(say):
    before = say("list", "runs", "--store", "store", "--json")[1]
    code, _, err = say("run", "-t", "gsm8k,aicrypto/mcq", "--store", "store", "-m", "mock:empty",
                       "--adaptive", "--se", "0.5")  # fmt: skip
    assert code == 2
    assert "aicrypto/mcq: no bank has its items" in err
    assert say("list", "runs", "--store", "store", "--json")[1] == before


def test_a_bank_of_a_file_needs_a_place(say, folder):
    rows = [
        {"subject_id": f"m{m}", "responses": {f"i{i}": int(m > i) for i in range(6)}}
        for m in range(8)
    ]
    (folder / "answers.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    code, _, err = say("fit", "--responses", "answers.jsonl", "--bank")
    assert code == 2
    assert "--store DIR or --out DIR" in err
    code, _, err = say("fit", "--responses", "answers.jsonl", "--bank", "file", "--out", "there",
                       "--method", "joint")  # fmt: skip
    assert code == 0, err
    assert (folder / "there" / "bank.json").is_file()


def test_a_suite_reads_a_banks_file_from_its_own_folder(say, folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "suite.toml").write_text(
        '[[run]]\ntask = "gsm8k"\nmodel = "mock:constant?text=1"\nstore = "../store"\n'
        'adaptive = true\nmax_items = 4\nbank = "../out/bank.json"\n'
    )
    code, out, err = say("run", "-c", "deep/suite.toml", "--json")
    assert code == 0, err
    assert json.loads(out)["runs"][0]["adaptive"]["bank"] == "bank.json"
