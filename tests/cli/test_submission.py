"""`harness export submission|results` and `harness import submission` on the command line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.cli.main import main


@pytest.fixture(scope="module")
def sender(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sender")
    args = ["--task", "gsm8k", "--model", "mock:gold", "--limit", "6"]
    assert main(["run", *args, "--store", str(folder / "store"), "--json"]) == 0
    return folder / "store"


@pytest.fixture
def say(capsys):
    """Call the program; give exit code, stdout and stderr."""

    def call(*args):
        code = main([str(arg) for arg in args])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture
def file(say, sender, tmp_path):
    path = tmp_path / "run.zip"
    code, out, err = say(
        "export", "submission", "last", "--out", path, "--submitter", "Ada", "--store", sender
    )
    assert (code, out) == (0, "")
    assert "6 attempts and 6 scores written" in err
    return path


def test_a_run_is_sent_imported_and_shown_as_such(say, file, tmp_path):
    store = ("--store", tmp_path / "mine")
    code, out, err = say("import", "submission", file, *store)
    assert code == 0
    assert "imported from Ada" in out
    assert "6 scores were given again here" in err
    assert "imported from Ada" in say("list", "runs", *store)[1]
    (run,) = json.loads(say("list", "runs", "--json", *store)[1])
    assert (run["imported"], run["submitter"], run["n_scored"]) == (True, "Ada", 6)
    shown = json.loads(say("show", "run", "last", "--json", *store)[1])
    assert shown["summary"]["imported"]
    assert shown["started"]["environment"]["imported"]["scores_recomputed"] == 6
    assert "submitter: Ada" in say("show", "run", "last", *store)[1]
    assert say("store", "verify", *store)[0] == 0
    code, out, err = say("import", "submission", file, *store)
    assert (code, out) == (0, "")
    assert "is in the store already: nothing to do" in err


def test_json_of_an_import(say, file, tmp_path):
    store = ("--store", tmp_path / "mine")
    found = json.loads(say("import", "submission", file, "--json", *store)[1])
    assert (found["outcome"], found["submitter"]) == ("imported", "Ada")
    assert found["scores"] == {"n_equal": 6, "not_recomputed": {}}
    assert found["summary"]["metrics"]["accuracy"]["value"] == 1.0
    again = json.loads(say("import", "submission", file, "--json", *store)[1])
    assert (again["outcome"], again["scores"]) == ("here already", None)


def test_a_refused_file_exits_1_with_a_line_a_reason(say, file, tmp_path):
    raw = bytearray(file.read_bytes())
    raw += b"more"
    file.write_bytes(raw)
    store = ("--store", tmp_path / "mine")
    code, out, err = say("import", "submission", file, *store)
    assert (code, out) == (1, "")
    *reasons, last = err.splitlines()
    assert reasons
    assert all(line.startswith("harness: ") for line in reasons)
    assert last.endswith(f"is refused ({len(reasons)}): nothing was imported")
    code, out, _ = say("import", "submission", file, "--json", *store)
    assert (code, json.loads(out)["outcome"]) == (1, "rejected")
    assert json.loads(out)["reasons"]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("import", "Missing command"),
        ("import submision x", "No such command"),
        ("import submission", "Missing argument"),
        ("import submission none.zip --store {store}", "cannot read none.zip"),
        ("export submission --store {store}", "say which run"),
        ("export submission nowhere --store {store}", "unknown run 'nowhere'"),
        ("export submission last --format csv --store {store}", "no format"),
        ("export results last --store {store}", "takes no run"),
    ],
)
def test_a_slip_of_the_user_exits_2(say, sender, command, text):
    code, out, err = say(*command.format(store=sender).split())
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_all_tables_go_into_a_folder(say, sender, tmp_path):
    code, out, err = say("export", "results", "--out", tmp_path / "out", "--store", sender)
    assert (code, out) == (0, "")
    assert "6 rows of scores" in err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"results.json"} | {
        f"{table}.{form}"
        for table in ("totals", "item_scores", "scores")
        for form in ("parquet", "json")
    }
    assert pq.read_table(tmp_path / "out" / "totals.parquet").num_rows == 1
    say("export", "results", "--out", tmp_path / "csv", "--format", "csv", "--store", sender)
    assert (tmp_path / "csv" / "totals.csv").read_text().startswith("run_id,")
    assert not (tmp_path / "csv" / "totals.json").exists()


def test_the_guide_does_what_it_says(say, tmp_path, monkeypatch):
    guide = Path(__file__).resolve().parents[2] / "docs/guides/submissions.md"
    ((_, block),) = re.findall(r"<!-- (tested) -->\n```sh\n(.*?)```", guide.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_STORE", raising=False)
    told = [say(*shlex.split(line, comments=True)[1:]) for line in block.splitlines()]
    assert [code for code, _, _ in told] == [0] * 6
    assert "nothing to do" in told[3][2]
    assert "(baseline, imported from Example Lab)" in told[4][1]
    assert (tmp_path / "tables" / "totals.parquet").exists()
