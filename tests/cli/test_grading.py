"""`harness export grading`, `harness import grading` and `--judge A,B` on the command line."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.core import registry, resources
from harness.core.types import Message, Score

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/grading.md"
TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.fixture
def say(capsys):
    """Call the program; give exit code, stdout and stderr."""

    def call(*args):
        code = main([str(arg) for arg in args])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture(scope="module")
def sender(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sender")
    args = ["--task", "gsm8k", "--model", "mock:noisy?accuracy=0.5", "--limit", "6"]
    assert main(["run", *args, "--store", str(folder / "store"), "--json"]) == 0
    return folder / "store"


def fill(table, points="1", grader="Ann"):
    with Path(table).open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    with Path(table).open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(row | {"points": points, "grader": grader} for row in rows)


def test_round_trip(say, sender, tmp_path):
    store = ("--store", sender)
    code, out, err = say("export", "grading", "last", "-o", tmp_path / "forms", *store, "--json")
    assert code == 0
    made = json.loads(out)
    assert (made["answers"], made["rows"]) == (6, 6)
    assert "6 answers with 6 criteria to grade" in err
    # The command that it ends with is the next one.
    command = shlex.split(err.partition("then: ")[2])[1:]
    code, out, err = say(*command)
    assert (code, out) == (2, "")
    assert "no grading in it; fill in points and grader" in err
    fill(made["table"])
    code, out, err = say(*command, "--json")
    assert code == 0
    (run,) = json.loads(out)["runs"]
    assert (run["n_new"], run["graders"], run["agreement"]["judges"]) == (6, ["Ann"], ["number"])
    # People gave all points: differences are those of the scorer's verdicts to 1.
    code, out, _ = say("show", "run", "last", *store, "--json")
    shown = json.loads(out)
    accuracy = shown["summary"]["metrics"]["accuracy"]["value"]
    assert 0 < accuracy < 1
    assert shown["agreement"] == run["agreement"]
    whole = shown["agreement"]["pairs"][0]
    assert (whole["scope"], whole["n"], whole["pearson"]["value"]) == ("answers", 6, None)
    assert whole["difference"]["value"] == pytest.approx(1 - accuracy)
    code, out, err = say(*command)
    assert (code, "all 6 gradings are in the store already: nothing to do" in err) == (0, True)
    assert out == ""
    # What people gave is no verdict until they say so.
    code, out, _ = say("show", "run", "last", *store)
    assert ("verdicts of number (version 1)\n" in out, "human" in out) == (True, False)
    code, out, err = say(*command, "--as-verdict")
    assert (code, "6 verdicts are people's now" in err) == (0, True)
    assert ("whole answers" in out, "item gsm8k" in out, "\n item " in out) == (True, False, False)
    code, out, _ = say("show", "run", "last", *store)
    assert "verdicts of human (version 1), judged by human:Ann\n" in out
    assert re.search(r"accuracy +1\.0000", out)
    assert "graded by Ann; compared with what number gave" in out
    # A graded run can be sent: the grades go with it, and nobody can give people's verdicts again.
    sent = tmp_path / "run.zip"
    assert say("export", "submission", "last", "--out", sent, *store)[0] == 0
    theirs = ("--store", tmp_path / "theirs")
    code, _, err = say("import", "submission", sent, *theirs)
    assert (code, "6 scores could not be checked" in err) == (0, True)
    there = json.loads(say("show", "run", "last", *theirs, "--json")[1])
    assert there["agreement"]["pairs"] == shown["agreement"]["pairs"]


def test_a_refused_table_lists_every_reason_and_exits_with_2(say, sender, tmp_path):
    table = tmp_path / "f.csv"
    assert say("export", "grading", "last", "-o", table, "--store", sender)[0] == 0
    fill(table, points="2")
    table.write_text(table.read_text(encoding="utf-8").replace(";h", ";g", 1), encoding="utf-8")
    code, out, err = say("import", "grading", table, "--store", sender, "--json")
    assert code == 2
    refused = json.loads(out)
    assert (refused["outcome"], len(refused["reasons"])) == ("rejected", 2)
    lines = err.strip().splitlines()
    assert "another answer or rubric" in lines[0]
    assert "more points than possible: f.csv:3 (2 of 1), f.csv:4 (2 of 1)" in lines[1]
    assert "nothing was imported" in lines[-1]


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (("export", "grading"), "say which run"),
        (("export", "grading", "last", "--format", "csv"), "no format"),
        (("export", "grading", "nosuch"), "unknown run 'nosuch'"),
        (("import", "grading", "gone.csv"), "cannot read gone.csv"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(say, sender, args, match):
    code, out, err = say(*args, "--store", sender)
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert match in err


@pytest.fixture
def panel(monkeypatch):
    """gsm8k's scorer asks judges: the share of them that say yes."""
    monkeypatch.setattr(registry, "_decorated", {})

    @registry.scorer("number")
    def number(judges):
        def score(sample, output):
            said = [judge([Message("user", "?")], 0).text for judge in judges]
            return Score(value=said.count("yes") / len(said))

        return score


YES, NO = "mock:constant?text=yes", "mock:constant?text=no, never"


@pytest.mark.parametrize("given", [[f"{YES},{NO}"], [f"{YES}, {NO}"], [YES, NO]])
def test_judges_on_the_command_line(say, panel, tmp_path, given):
    ask = ["--task", "gsm8k", "--model", "mock:gold", "--first", "2", "--store", tmp_path]
    judges = [part for text in given for part in ("--judge", text)]
    code, out, _ = say("run", *ask, *judges, "--json")
    assert code == 0
    assert json.loads(out)["runs"][0]["metrics"]["accuracy"]["value"] == 0.5
    code, out, _ = say("rescore", "last", "--store", tmp_path, "--judge", YES, "--json")
    assert (code, json.loads(out)["after"]["headline"]["value"]) == (0, 1.0)


def test_judges_in_a_suite_with_paths_of_its_folder(say, panel, tmp_path, monkeypatch):
    (tmp_path / "suite").mkdir()
    for name in ("yes", "no"):
        (tmp_path / f"suite/{name}.jsonl").write_text(
            json.dumps({"item_id": "*", "output": name}) + "\n", encoding="utf-8"
        )
    (tmp_path / "suite/s.toml").write_text(
        '[defaults]\ntask = "gsm8k"\nmodel = "mock:gold"\nfirst = 2\n'
        '[[run]]\njudge = "mock:script?file=yes.jsonl,mock:script?file=no.jsonl"\n'
        '[[run]]\njudge = ["mock:script?file=yes.jsonl", "mock:constant?text=yes"]\nseed = 1\n'
    )
    monkeypatch.chdir(tmp_path)
    code, out, err = say("run", "-c", "suite/s.toml", "--store", tmp_path / "store", "--json")
    assert code == 0, err
    runs = json.loads(out)["runs"]
    assert [run["metrics"]["accuracy"]["value"] for run in runs] == [0.5, 1.0]


@pytest.mark.parametrize("judge", [f"{YES},", f"{YES}, ", f",{YES}", f"{YES},,{NO}", ","])
def test_a_comma_without_a_judge_is_said_in_a_line(say, panel, tmp_path, judge):
    ask = ["--task", "gsm8k", "--model", "mock:gold", "--first", "2", "--store", tmp_path / "s"]
    code, out, err = say("run", *ask, "--judge", judge)
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert "no judge stands beside a comma" in err


# The guide


def blocks(mark):
    return re.findall(rf"<!-- {mark} -->\n```\w+\n(.*?)```", TEXT, re.DOTALL)


def test_the_guides_round_trip_is_true(say, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_STORE", str(tmp_path / "results"))
    (commands,) = blocks("tested")
    told = []
    for line in commands.splitlines():
        args = shlex.split(line, comments=True)
        if not args:
            continue
        if args[:2] == ["harness", "import"] and len(told) == 2:
            (table,) = (tmp_path / "forms").glob("*.csv")
            with table.open(encoding="utf-8-sig") as file:
                head = file.readline().strip()
            assert head == blocks("the columns")[0].strip()
            fill(table)
        args = [part for arg in args for part in (sorted(map(str, tmp_path.glob(arg))) if "*" in arg else [arg])]  # fmt: skip
        code, out, err = say(*args[1:])
        assert code == 0, (line, err)
        told.append((out, err))
        for promise in re.findall(r"# … (.+)$", line):
            assert promise in out + err, line
    assert len(told) == 7


def test_the_guides_scorer_works(say, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_decorated", {})
    (code,) = blocks("a scorer of judges")
    names = {}
    exec(compile(code, str(GUIDE), "exec"), names)
    ask = ["--task", "gsm8k", "--model", "mock:gold", "--first", "2", "--store", tmp_path]
    registry.register("scorers", registry.Entry(name="number", target=names["panel"]))
    ended, out, _ = say("run", *ask, "--judge", "mock:constant?text=yes,mock:empty", "--json")
    assert (ended, json.loads(out)["runs"][0]["metrics"]["accuracy"]["value"]) == (0, 0.5)


def test_show_run_says_how_far_judges_agree_with_one_another(say, tmp_path):
    script = resources.data("aicrypto/proof/judge.jsonl").read_text(encoding="utf-8")
    zeros = re.sub(r"(: )\d+(?=[,}])", r"\g<1>0", script)
    judges = []
    for name, text in (("one", script), ("same", script), ("none", zeros)):
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
        judges.append(f"mock:script?file={tmp_path / name}.jsonl")
    store = ("--store", tmp_path / "store")

    def among(model, chosen):
        task = ("--task", "aicrypto/proof", "--limit", "6", "--model", model)
        assert say("run", *task, "--judge", ",".join(chosen), *store, "--json")[0] == 0
        return json.loads(say("show", "run", "last", *store, "--json")[1])["judges_agreement"]

    # Two that give the same points agree wholly; full points and none are 1 apart, and no order.
    mixed = among("mock:noisy?accuracy=0.5", judges[:2])
    (pair,) = mixed["pairs"]
    assert (pair["agreement"]["pearson"], mixed["alpha"]) == (pytest.approx(1), pytest.approx(1))
    assert pair["agreement"]["mean_abs_difference"] == 0
    (pair,) = among("mock:gold", [judges[0], judges[2]])["pairs"]
    assert (pair["agreement"]["n"], pair["agreement"]["mean_abs_difference"]) == (6, 1.0)
    assert pair["agreement"]["pearson"] is None
    assert (pair["a"], pair["b"]) == (judges[0], judges[2])
    assert "between judges Krippendorff's alpha" in say("show", "run", "last", *store)[1]
    # One judge asked once agrees with nobody.
    assert among("mock:gold", judges[:1]) is None
