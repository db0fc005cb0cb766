"""`--data` on the command line and from Python: run, resume, score, show, suite files."""

from __future__ import annotations

import json

import pytest

import harness
from harness.cli.main import main
from harness.cli.suite import suite_jobs
from harness.core.errors import UsageError
from harness.runner.scoring import score_predictions
from harness.store.journal import started
from harness.store.layout import Store

ROWS = [{"question": f"{n} + {n}?", "answer": f"#### {2 * n}"} for n in range(1, 7)]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A local data set, named relative to the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_STORE", str(tmp_path / "store"))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path / "rows"


@pytest.fixture
def say(capsys):
    def run(*args):
        code = main(args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


RUN = ("run", "--task", "gsm8k", "--data", "hub:rows")


def test_a_run_keeps_what_it_read_and_agrees_with_the_file(say, rows):
    noisy = ("--model", "mock:noisy?accuracy=0.5", "--json")
    code, out, _ = say(*RUN, *noisy)
    (run,) = json.loads(out)["runs"]
    assert (code, run["n_planned"], run["status"]) == (0, 6, "done")
    record = started(Store.open(None), run["run_id"])
    assert record.config["data"] == f"hub:{rows}"
    assert record.task_info["data"]["split"] == "test"
    assert len(record.task_info["dataset_sha256"]) == 64
    # The same items, so the same answers: none is asked for again.
    code, out, _ = say("run", "--task", "gsm8k", "--data-root", "rows", *noisy)
    (file,) = json.loads(out)["runs"]
    assert (code, file["cached"], file["metrics"]) == (0, 6, run["metrics"])


def test_a_stopped_run_goes_on_from_any_folder_and_only_with_the_same_rows(
    say, rows, tmp_path, monkeypatch
):
    code, out, _ = say(*RUN, "--model", "mock:gold", "--batch-size", "1",
                       "--max-total-tokens", "1", "--json")  # fmt: skip
    run_id = json.loads(out)["runs"][0]["run_id"]
    assert code == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text = (rows / "test.jsonl").read_text()
    (rows / "test.jsonl").write_text(text.replace("3 + 3", "3 + 4"))
    code, _, err = say("resume", run_id)
    assert (code, err.count("\n")) == (2, 1)
    assert "gsm8k or its data changed" in err
    (rows / "test.jsonl").write_text(text)
    code, out, _ = say("resume", run_id, "--max-total-tokens", "99999", "--json")
    assert code == 0
    code, out, _ = say("show", "sample", run_id, "test-0003", "--json")
    assert json.loads(out)["reference"]["target"] == ["6"]


def test_scores_come_from_the_data_set(say, rows, tmp_path):
    given = [{"item_id": "test-0002", "output": "#### 4"}, {"item_id": "test-0003", "output": "5"}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    code, out, _ = say("score", "--task", "gsm8k", "--predictions", "p.jsonl", "--data", "hub:rows")
    assert code == 0
    assert [json.loads(line)["value"] for line in out.splitlines()] == [1.0, 0.0]
    assert [s.value for s in harness.score("gsm8k", given, data="hub:rows")] == [1.0, 0.0]
    assert [s.value for s in score_predictions("gsm8k", given, "rows")] == [1.0, 0.0]
    run = harness.run(task="gsm8k", model="mock:gold", data=f"hub:{rows}", limit=2)
    assert run.summary().metrics["accuracy"].value == 1.0


def test_the_task_is_shown_with_its_data(say, rows):
    code, out, _ = say("show", "task", "gsm8k", "--data", "hub:rows?split=test", "--json")
    shown = json.loads(out)
    assert (code, shown["n"], shown["source"]) == (0, 6, f"hub:{rows}?split=test")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--data", "hub:rows", "--data-root", "rows"), "not both"),
        (("--data", "hub:openai/gsm8k"), "needs its revision, hub:openai/gsm8k@REV"),
        (("--data", "rows"), "write hub:ID@REV or hub:DIR"),
        (("--data", "hub:rows?split=dev"), "unknown split 'dev': there are test"),
    ],
)
def test_a_wrong_request_is_one_line_and_nothing_is_kept(say, rows, tmp_path, args, says):
    for verb in (("run", "--model", "mock:gold", "--task"), ("show", "task")):
        code, out, err = say(*verb, "gsm8k", *args)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err
    with pytest.raises(UsageError, match=says.split("'")[0]):
        harness.score("gsm8k", [], **{args[n][2:].replace("-", "_"): args[n + 1]
                                      for n in range(0, len(args), 2)})  # fmt: skip
    assert not (tmp_path / "store").exists() or not Store.open(None).run_ids()


def test_in_a_suite_a_folder_is_relative_to_the_file(rows, tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    suite = below / "suite.toml"
    run = '[[run]]\ntask = "gsm8k"\nmodel = "mock:gold"\n'
    suite.write_text(f'[defaults]\ndata_root = "../rows"\n{run}{run}data = "hub:../rows"\n')
    from_file, from_set = suite_jobs(suite, {})
    assert (from_file.config.data_root, from_file.config.data) == (str(below / "../rows"), None)
    assert from_set.config.data_root is None
    assert from_set.config.data is not None
    assert from_set.config.data.endswith("/rows")
    suite.write_text(f'{run}data = "hub:none"\n')
    with pytest.raises(UsageError, match=r"suite\.toml: \[\[run\]\] 1: --data hub:none: there is"):
        suite_jobs(suite, {})


def test_paths_that_cannot_be_are_one_line(say):
    for option in ("--data-root", "--data"):
        for path in ("~nobody-of-this-name/x", "x" * 5000):
            value = f"hub:{path}" if option == "--data" else path
            code, out, err = say("show", "task", "gsm8k", option, value)
            assert (code in (1, 2), out, err.count("\n")) == (True, "", 1), err


def test_a_line_nested_too_deep_is_one_line(say, tmp_path):
    (tmp_path / "deep.jsonl").write_text("[" * 5000 + "]" * 5000)
    code, out, err = say("score", "--task", "gsm8k", "--predictions", str(tmp_path / "deep.jsonl"))
    assert (code, out, err.count("\n")) == (2, "", 1)
