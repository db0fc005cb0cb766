"""The command line as a person or a script meets it: exit codes, one-line errors, strict JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.cli.main import VERBS, main
from harness.core import registry

CLI = [sys.executable, "-P", "-m", "harness.cli.main"]
SCRIPT = [str(Path(sys.executable).with_name("harness"))]
GOLD = ["--task", "gsm8k", "--model", "mock:gold"]
COUNTS = ["error", "error_harness", "timeout", "truncated", "refused", "unscored", "unavailable"]


def strict(text: str):
    """Parse JSON that has no NaN and no Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_STORE", raising=False)
    return tmp_path


@pytest.fixture
def say(here, capsys):
    """Run a command in this process; give exit code, stdout and stderr."""

    def run(*args: str) -> tuple[int, str, str]:
        code = main(args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> Path:
    """A store with a good run, one with planted faults and one that failed."""
    store = tmp_path_factory.mktemp("cli") / "store"
    for model in (
        "mock:gold",
        "mock:noisy?accuracy=0.5&truncate=0.2&refuse=0.1",
        "mock:gold?fail=1",
    ):
        main(["run", "--task", "gsm8k", "--model", model, "--limit", "12", "--store", str(store)])
    return store


# --- usage errors: exit 2, one line, the nearest name, nothing half-run ---


@pytest.mark.parametrize(
    ("command", "match"),
    [
        ("rum", "did you mean 'run'"),
        ("run --task gsm8 --model mock:gold", "did you mean 'gsm8k'"),
        ("run --task gsm8k,aicrypt --model mock:gold", "did you mean 'aicrypto'"),
        ("run --task , --model mock:gold", "no task given"),
        ("run --task gsm8k --model mock:golf", "did you mean 'mock:gold'"),
        ("run --task gsm8k --model mok:gold", "did you mean 'mock'"),
        ("run --task gsm8k --model gold", "write backend:name"),
        ("run --task gsm8k --model hf:tin", "did you mean 'hf:tiny'"),
        ("run --task gsm8k --model mock:noisy?acuracy=1", "it takes accuracy"),
        ("run --task gsm8k --modle mock:gold", "--model"),
        ("run --task gsm8k", "--model"),
        ("run --task gsm8k --model mock:gold --limit many", "--limit"),
        ("run --task gsm8k --model mock:gold --limit 0", "--limit must be at least 1"),
        ("run --task gsm8k --model mock:gold --limit 1 --first 1", "not both"),
        ("run --task gsm8k --model mock:gold --ids own-gsm8k-01", "did you mean 'own-gsm8k-0"),
        ("run --task gsm8k --model mock:gold --ids=", "--ids names no item"),
        ("run --task gsm8k --model mock:gold --solver generat", "did you mean 'generate'"),
        ("run --task gsm8k --model mock:gold --solver choose", "use --solver generate"),
        ("run --task gsm8k --model mock:gold --strategy sampel", "did you mean 'sample'"),
        ("run --task gsm8k --model mock:gold --strategy sample?n=2", "unknown option 'n'"),
        ("run --task gsm8k --model mock:gold --on-long skipp", "did you mean 'skip'"),
        ("run --task gsm8k --model mock:gold --errors wrnog", "did you mean 'wrong'"),
        ("run --task gsm8k --model mock:gold --arg shuffle", "write k=v"),
        ("run --task aicrypto/mcq --model mock:gold --arg shufle=on", "it takes .*shuffle"),
        ("run --task aicrypto/mcq --model mock:gold --arg shuffle=no", "not one of on, off"),
        ("run --task gsm8k --model mock:gold --data-root nowhere", "nowhere is not a folder"),
        ("run --task gsm8k --model mock:gold --data-root .", "cannot read"),
        ("run --task gsm8k --model mock:gold more", "extra argument"),
        ("list", "what"),
        ("list task", "did you mean 'tasks'"),
        ("show tsak gsm8k", "did you mean 'task'"),
        ("show task gsm8", "did you mean 'gsm8k'"),
        ("export reslts", "did you mean 'results'"),
        ("export results --format cvs", "did you mean 'csv'"),
        ("export results --format parquet", "--out"),
        ("store snyc", "did you mean 'sync'"),
        ("score --task gsm8k --predictions none.jsonl", "cannot read none.jsonl"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(say, here, command, match):
    code, out, err = say(*command.split())
    assert code == 2
    assert out == ""
    assert re.search(match, err)
    assert err.count("\n") == 1
    assert list(here.glob("results/runs/*")) == []


GOOD = '{"question": "1+1?", "answer": "#### 2"}\n'


@pytest.mark.parametrize(
    ("text", "place", "field"),
    [
        (GOOD + '{"question": "1+1?"}\n', "test.jsonl:2", "'answer' is missing"),
        (GOOD + "\n" + '{"question": 3, "answer": "#### 2"}\n', "test.jsonl:3", "'question'"),
        (GOOD + '{"question": "1+1?", "answer": "two"}\n', "test.jsonl:2", "'answer'"),
        (GOOD * 2 + '{"question": "1+1?", "ans', "test.jsonl:3", "not valid JSON"),
        (GOOD + "\xff\n", "test.jsonl:2", "not valid JSON"),
        ("", "test.jsonl", "no rows"),
    ],
)
def test_a_broken_data_file_names_place_and_field(say, here, text, place, field):
    (here / "test.jsonl").write_text(text)
    # The sound task is named first: it must not be run either.
    code, out, err = say("run", *GOLD, "--task", "aicrypto/mcq", "--data-root", str(here))
    assert code == 2
    assert out == ""
    assert place in err
    assert field in err
    assert err.count("\n") == 1
    assert list(here.glob("results/runs/*")) == []


@pytest.mark.parametrize(
    ("model", "more", "match"),
    [
        ("mock:nobody", (), "unknown model"),
        ("hf:tny", (), "unknown model"),
        ("hf:tiny", ("--max-tokens", "600"), "leaves no room for a prompt"),
        ("hf:tiny", ("--dtype", "fp12"), "unknown dtype"),
    ],
)
def test_a_wrong_word_for_the_last_model_costs_the_first_one_nothing(say, here, model, more, match):
    code, _, err = say("run", *GOLD, "--model", model, *more)
    assert code == 2
    assert match in err
    assert not (here / "results").exists()


def test_predictions_are_checked_by_line(say, here):
    (here / "p.jsonl").write_text('{"item_id": "own-gsm8k-001", "output": "1"}\n{"item_id": "x"}\n')
    code, out, err = say("score", "--task", "gsm8k", "--predictions", "p.jsonl")
    assert (code, out) == (2, "")
    assert "p.jsonl:2" in err
    assert "output" in err
    (here / "p.jsonl").write_text('{"item_id": "own-gsm8k-01", "output": "1"}\n')
    code, out, err = say("score", "--task", "gsm8k", "--predictions", "p.jsonl")
    assert (code, out) == (2, "")
    assert "did you mean" in err


# --- exit 1: failed or partial ---


@pytest.mark.parametrize("place", ["file/store", "/proc/store"])
def test_a_store_that_cannot_be_written_is_found_before_any_call(say, here, place):
    (here / "file").write_text("")
    # An item would take a minute: had it been called, the test would be killed for its time.
    code, out, err = say(
        "run", "--task", "gsm8k", "--model", "mock:gold?delay=60", "--store", place
    )
    assert (code, out) == (1, "")
    assert "cannot write to store" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["list runs", "show run last", "resume last", "export results"])
def test_where_there_is_no_store_nothing_is_made(say, here, command):
    code, out, err = say(*command.split(), "--store", "none")
    assert (code, out) == (1, "")
    assert "no store at none" in err
    assert not (here / "none").exists()


@pytest.mark.parametrize(
    ("model", "code"), [("mock:gold", 0), ("mock:empty", 0), ("mock:gold?fail=0.3", 1)]
)
def test_partial_runs_exit_1_and_wrong_answers_do_not(say, model, code):
    assert say("run", "--task", "gsm8k", "--model", model, "--limit", "20")[0] == code


def test_a_scorer_that_falls_over_makes_score_exit_1(say, here, monkeypatch):
    (here / "p.jsonl").write_text('{"item_id": "own-gsm8k-001", "output": "1"}\n')
    monkeypatch.setattr(registry, "_decorated", {})
    registry.scorer("number")(lambda: lambda sample, output: 1 / 0)
    code, out, err = say("score", "--task", "gsm8k", "--predictions", "p.jsonl")
    assert code == 1
    row = strict(out)
    assert (row["value"], row["status"]) == (None, "error")
    assert "ZeroDivisionError" in err


# --- machine output ---


def test_run_json(say):
    code, out, err = say("run", "--task", "aicrypto/mcq,gsm8k", "--model", "mock:gold",
                         "--model", "mock:gold?fail=1", "--limit", "4", "--json")  # fmt: skip
    found = strict(out)
    assert code == 1
    assert "\x1b" not in out + err
    assert found["schema"] == 1
    assert [r["status"] for r in found["runs"]] == ["done", "done", "failed", "failed"]
    for run in found["runs"]:
        assert {"run_id", "task", "model", "n_planned", "n_scored", "n_counted", "cached",
                "seconds", "store"} <= run.keys()  # fmt: skip
        assert list(run["counts"]) == COUNTS
        assert run["n_planned"] == run["n_scored"] + sum(run["counts"].values())
        assert set(run["usage"]) == {"tokens_in", "tokens_out", "cost_usd"}
        (metric,) = run["metrics"].values()
        assert set(metric) == {"value", "lo", "hi", "method"}
    assert found["runs"][0]["metrics"]["accuracy"]["value"] == 1.0
    assert found["runs"][2]["metrics"]["accuracy"]["value"] is None


@pytest.mark.parametrize(
    "what", ["tasks", "backends", "solvers", "scorers", "strategies", "models", "runs"]
)
def test_list_json(say, filled, what):
    code, out, _ = say("list", what, "--json", "--store", str(filled))
    rows = strict(out)
    assert code == 0
    assert rows
    for row in rows:
        if what == "runs":
            assert {"run_id", "status", "metrics", "n_planned"} <= row.keys()
        else:
            assert row["name"]
            assert row["state"] in ("ready", "unavailable", "untested")
        if what == "tasks":
            assert {"group", "n", "why"} <= row.keys()
    if what == "runs":
        assert [row["status"] for row in rows] == ["done", "done", "failed"]


def test_the_catalogue_counts_its_own_items(say):
    rows = {row["name"]: row["n"] for row in strict(say("list", "tasks", "--json")[1])}
    data = Path(__file__).parents[2] / "data"
    assert rows["gsm8k"] == len((data / "gsm8k" / "own.jsonl").read_text().splitlines())
    assert rows["aicrypto/mcq"] == len(json.loads((data / "aicrypto" / "mcq.json").read_text()))


def test_show_json(say, filled):
    store = ["--store", str(filled), "--json"]
    task = strict(say("show", "task", "gsm8k", "--json")[1])
    assert {"name", "version", "prompt", "scorer", "license", "first_item"} <= task.keys()
    run = strict(say("show", "run", "last", *store)[1])
    assert run["summary"]["status"] == "failed"
    runs = strict(say("list", "runs", *store)[1])
    items = run["started"]["items"]
    assert len(items) == 12
    for one in runs:
        code, out, _ = say("show", "sample", one["run_id"], items[0], *store)
        shown = strict(out)
        assert code == 0
        assert {"prompt", "output", "reference", "status", "scores", "finish_reason", "usage",
                "files"} <= shown.keys()  # fmt: skip
    code, out, err = say("show", "sample", "last", "own-gsm8k-1", *store)
    assert (code, out) == (2, "")
    assert "did you mean" in err


def test_the_same_shown_to_people(say, filled):
    store = ["--store", str(filled)]
    item = strict(say("show", "run", "last", *store, "--json")[1])["started"]["items"][0]
    for command in (["list", "tasks"], ["list", "runs", *store], ["show", "task", "aicrypto/mcq"],
                    ["show", "run", "last", *store], ["show", "sample", "last", item, *store]):  # fmt: skip
        code, out, err = say(*command)
        assert (code, err) == (0, "")
        assert "\x1b" not in out
    assert "mock:gold (baseline)" in say("list", "runs", *store)[1]


def test_score_json_lines(say, here):
    lines = [{"item_id": "own-gsm8k-001", "output": "#### 180"},
             {"item_id": "own-gsm8k-002", "output": "no idea"}]  # fmt: skip
    (here / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, err = say("score", "--task", "gsm8k", "--predictions", "p.jsonl")
    rows = [strict(line) for line in out.splitlines()]
    assert code == 0
    for row in rows:
        assert list(row) == ["item_id", "value", "passed", "status", "answer", "explanation",
                             "metrics"]  # fmt: skip
    # 0.8 x (9 x 24 + 3 x 3) = 180, by the question of the first item
    assert [(r["value"], r["status"]) for r in rows] == [(1.0, "scored"), (0.0, "error")]
    assert "50.0" in err


def test_export(say, here, filled):
    store = ["--store", str(filled)]
    runs = strict(say("export", "results", "--format", "json", *store)[1])
    table = list(csv.DictReader(io.StringIO(say("export", "results", *store)[1])))
    assert [row["run_id"] for row in table] == [row["run_id"] for row in runs]
    assert set(COUNTS) <= set(table[0])
    assert [row["value"] for row in runs][0::2] == [1.0, None]
    attempts = strict(say("export", "samples", "--format", "json", *store)[1])
    assert len(attempts) == 36
    for what, n in (("results", 3), ("samples", 36)):
        code, out, _ = say("export", what, "--format", "parquet", "--out", f"{what}.pq", *store)
        assert (code, out) == (0, "")
        assert pq.read_table(here / f"{what}.pq").num_rows == n
        assert say("export", what, "--format", "json", "--out", f"{what}.json", *store)[0] == 0
        assert len(strict((here / f"{what}.json").read_text())) == n
    code, _, err = say("export", "results", "--out", "no/such/folder.csv", *store)
    assert code == 1
    assert err.count("\n") == 1


def test_dry_run_calls_nothing_and_makes_no_store(say, here):
    code, out, _ = say("run", "--task", "aicrypto,gsm8k", "--model", "mock:gold?delay=60",
                       "--epochs", "3", "--dry-run", "--json")  # fmt: skip
    (mcq, ctf, proof, sums) = strict(out)["plan"]
    assert code == 0
    assert (mcq["items"], mcq["attempts"], sums["attempts"]) == (50, 150, 180)
    assert (ctf["attempts"], proof["attempts"]) == (162, 36)
    assert list(here.iterdir()) == []
    assert say("run", *GOLD, "--dry-run")[0] == 0
    assert say("run", "--task", "gsm8k", "--model", "mock:golf", "--dry-run")[0] == 2
    assert list(here.iterdir()) == []


# --- help, start-up, terminals ---


def test_help_names_every_verb_and_every_verb_helps(say):
    code, out, err = say("--help")
    assert (code, err) == (0, "")
    for verb, line in VERBS.items():
        assert verb in out
        assert line.split()[0] in out
        code, out_of_verb, err = say(verb, "--help")
        assert (code, err) == (0, "")
        assert "Usage: harness " + verb in out_of_verb
    assert say()[0] == 0
    assert say("--version")[1] == "harness 0.1.0\n"


@pytest.mark.parametrize("command", ["--help", "list tasks", "list backends --json", "list models"])
def test_help_and_list_import_nothing_heavy(here, command):
    heavy = ["torch", "transformers", "duckdb", "streamlit", "numpy", "scipy", "pyarrow", "jinja2"]
    code = (
        "import sys; from harness.cli.main import main\n"
        f"main({command.split()!r})\n"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
    assert done.stdout


def test_no_escape_codes_in_a_pipe_and_no_colour_where_it_is_not_wanted(here, filled):
    def on_a_terminal(**extra: str) -> str:
        parent, child = pty.openpty()
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CI")}
        with subprocess.Popen(
            [*CLI, "list", "runs", "--store", str(filled)], stdout=child, stderr=child,
            env=env | {"TERM": "xterm-256color"} | extra,
        ) as process:  # fmt: skip
            os.close(child)
            text = b""
            try:
                while part := os.read(parent, 65536):
                    text += part
            except OSError:  # the terminal is closed
                pass
            assert process.wait() == 0
        os.close(parent)
        return text.decode()

    colour = re.compile(r"\x1b\[[0-9;]*(3[0-8]|9[0-7])[0-9;]*m")
    assert "gsm8k" in on_a_terminal()
    assert not colour.search(on_a_terminal(NO_COLOR="1"))
    piped = subprocess.run(
        [*CLI, "list", "runs", "--store", str(filled)], capture_output=True, text=True, check=True,
        env=os.environ | {"TERM": "xterm-256color"},
    )  # fmt: skip
    assert "\x1b" not in piped.stdout + piped.stderr
    assert max(map(len, piped.stdout.splitlines())) > 80  # a row is a line, nothing is folded


@pytest.mark.parametrize("command", [["list", "tasks", "--json"], ["--help"]])
def test_a_closed_pipe_is_quiet(here, command):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as broken:
        done = subprocess.run([*CLI, *command], stdout=broken, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b""


# --- the working folder is the user's, not ours ---


@pytest.fixture
def littered(here) -> Path:
    for name in ("harness", "tasks", "scorers", "numpy"):
        (here / f"{name}.py").write_text("raise SystemExit('the user’s own file was imported')\n")
    (here / "data" / "gsm8k").mkdir(parents=True)
    (here / "data" / "gsm8k" / "own.jsonl").write_text("not ours\n")
    return here


@pytest.mark.parametrize("start", [CLI, SCRIPT], ids=["module", "script"])
def test_files_of_the_working_folder_do_not_shadow_ours(littered, start):
    done = subprocess.run(
        [*start, "run", *GOLD, "--limit", "3", "--json"],
        capture_output=True, text=True, check=False, cwd=littered,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = strict(done.stdout)["runs"]
    assert (run["n_scored"], run["metrics"]["accuracy"]["value"]) == (3, 1.0)
    assert (littered / "results" / "runs").is_dir()


def test_without_the_flag_they_would(littered):
    """The trap is real: the test above can fail."""
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli.main", "--help"],
        capture_output=True, text=True, check=False, cwd=littered,
    )  # fmt: skip
    assert done.returncode != 0
    assert "own file was imported" in done.stderr


def test_the_store_comes_from_option_environment_or_folder(say, here, monkeypatch):
    assert say("run", *GOLD, "--limit", "1")[0] == 0
    assert (here / "results" / "runs").is_dir()
    monkeypatch.setenv("HARNESS_STORE", str(here / "env"))
    assert say("run", *GOLD, "--limit", "1")[0] == 0
    assert (here / "env" / "runs").is_dir()
    assert say("run", *GOLD, "--limit", "1", "--store", "opt")[0] == 0
    assert (here / "opt" / "runs").is_dir()


def test_trajectories_are_lines_of_json_chosen_by_score(say, filled, tmp_path):
    whole = ["export", "trajectories", "last", "--store", str(filled)]
    code, out, err = say(*whole)
    lines = [strict(line) for line in out.splitlines()]
    assert (code, err) == (0, f"{len(lines)} attempts written\n")
    assert all(line["messages"][-1]["role"] == "assistant" for line in lines)
    code, _, _ = say(*whole, "--min-score", "1", "--out", str(tmp_path / "good.jsonl"))
    good = [strict(line) for line in (tmp_path / "good.jsonl").read_text().splitlines()]
    assert good == [line for line in lines if line["score"] == 1.0]
    code, _, err = say("export", "trajectories", "--store", str(filled))
    assert (code, len(err.splitlines())) == (2, 1)


def test_a_group_takes_a_switch_of_one_of_its_tasks(say, here):
    both = [
        "run",
        "--task",
        "aicrypto/mcq,gsm8k",
        "--model",
        "mock:empty",
        "--limit",
        "1",
        "--json",
    ]
    code, out, _ = say(*both, "--arg", "shuffle=off")
    assert code == 0
    assert [run["task"] for run in strict(out)["runs"]] == ["aicrypto/mcq", "gsm8k"]
    code, _, err = say(*both, "--arg", "shufle=off")
    assert (code, "shufle" in err) == (2, True)


def test_what_is_left_out_of_a_score_is_said_with_the_reason(say, here):
    code, _, err = say(
        "run", "--task", "aicrypto/proof", "--model", "mock:gold", "--limit", "2"
    )  # fmt: skip
    assert code == 0
    assert "2 answers have no verdict and are left out" in err
    assert "--judge SPEC" in err
