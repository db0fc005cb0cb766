"""Suite files: strict, read whole before anything runs, overridden by the command line."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.run import run as run_verb
from harness.cli.suite import KEYS, suite_jobs
from harness.runner.config import RunConfig

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/models-and-costs.md"
ONE = '[[run]]\ntask = "gsm8k"\nmodel = "mock:gold"\n'


def block(mark: str) -> str:
    """Give a block of the guide by its mark."""
    text = GUIDE.read_text(encoding="utf-8")
    return re.search(rf"<!-- tested: {re.escape(mark)} -->\n```\w+\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_STORE", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def say(here, capsys):
    def run(*args: str) -> tuple[int, str, str]:
        code = main(args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def configs(folder: Path, text: str, **overrides) -> list[RunConfig]:
    (folder / "suite.toml").write_text(text)
    return [job.config for job in suite_jobs(folder / "suite.toml", overrides)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (ONE + "limt = 3\n", r"suite\.toml: \[\[run\]\] 1: unknown key 'limt': .*'limit'"),
        (ONE + 'limit = "3"\n', r"suite\.toml: \[\[run\]\] 1: .*int.*\$\.limit"),
        (ONE + "seed = true\n", r"\[\[run\]\] 1: .*\$\.seed"),
        (ONE + ONE + "epochs = 0\n", r"\[\[run\]\] 2: --epochs must be at least 1"),
        (ONE + "limit = 1\nfirst = 1\n", r"\[\[run\]\] 1: .*not both"),
        (ONE + "stop = 3\n", r"\[\[run\]\] 1: stop must be a text or a list"),
        (ONE + 'arg = ["shuffle"]\n', r"\[\[run\]\] 1: .*write k=v"),
        (ONE + "arg = {shuffle = true}\n", r"\[\[run\]\] 1: arg\.shuffle must be a text"),
        (ONE + "store = 3\n", r"\[\[run\]\] 1: store must be a text"),
        (ONE + "dry_run = true\n", r"\[\[run\]\] 1: unknown key 'dry_run'"),
        (ONE + "max_cost = -1.0\n", r"\[\[run\]\] 1: --max-cost must be above 0"),
        ('[defaults]\nlimit = "3"\n' + ONE, r"suite\.toml: \[defaults\]: .*\$\.limit"),
        ("[defaults]\nlimt = 3\n" + ONE, r"\[defaults\]: unknown key 'limt'"),
        ("[default]\nlimit = 3\n" + ONE, "unknown key 'default': a suite has"),
        ("[run]\ntask = 'gsm8k'\n", r"write \[\[run\]\]"),
        ("", r"has no \[\[run\]\] table"),
        ("[[run]\n", "not valid TOML"),
        ('[[run]]\nmodel = "mock:gold"\n', r"\[\[run\]\] 1: no task given"),
        ('[[run]]\ntask = "gsm8k"\n', r"\[\[run\]\] 1: no model given"),
        ('[[run]]\ntask = "gsm8"\nmodel = "mock:gold"\n', r"\[\[run\]\] 1: .*'gsm8k'"),
        # Only planning finds these; the sound run before them must not have begun.
        (ONE + '[[run]]\ntask = "gsm8k"\nmodel = "mock:golf"\n', "did you mean 'mock:gold'"),
        (ONE + '[[run]]\ntask = "gsm8k"\nmodel = "mock:empty"\nids = ["x"]\n', "unknown item"),
        (ONE + ONE + 'solver = "choose"\n', "use --solver generate"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_table_and_nothing_runs(say, here, text, match):
    (here / "suite.toml").write_text(text)
    code, out, err = say("run", "-c", "suite.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(match, err)
    assert list(here.glob("results/runs/*")) == []


def test_a_file_that_is_not_there(say):
    code, _, err = say("run", "-c", "none.toml")
    assert (code, "cannot read suite file none.toml" in err) == (2, True)


def test_the_keys_of_a_file_are_the_options_of_the_command():
    options = set(inspect.signature(run_verb).parameters)
    assert options - {"ctx", "suite", "dry_run", "json"} == KEYS
    assert set(RunConfig.__struct_fields__) - {"args"} | {"arg", "store"} == KEYS


def test_every_kind_of_value_arrives(here):
    (config,) = configs(here, ONE + (
        'ids = ["own-gsm8k-001", "own-gsm8k-002"]\nepochs = 2\nseed = 3\nstrategy = "sample"\n'
        'system = "Be brief."\ntemperature = 1\ntop_p = 0.5\nmax_tokens = 9\nstop = "END"\n'
        'no_data = true\nfewshot = 1\njudge = "mock:empty"\nmax_time = 60\n'
    ))  # fmt: skip
    assert (config.ids, config.epochs, config.seed) == (("own-gsm8k-001", "own-gsm8k-002"), 2, 3)
    assert (config.system, config.temperature, config.top_p) == ("Be brief.", 1.0, 0.5)
    assert (config.max_tokens, config.stop, config.no_data) == (9, ("END",), True)
    assert (config.fewshot, config.judge, config.max_time) == (1, "mock:empty", 60.0)


def test_tables_override_defaults_and_the_command_line_both(here):
    text = '[defaults]\nlimit = 5\nseed = 1\nmodel = "mock:empty"\n' + ONE + "limit = 3\n"
    (config,) = configs(here, text)
    assert (config.model, config.limit, config.seed) == ("mock:gold", 3, 1)
    (config,) = configs(here, text, seed=9, model=["mock:random"], first=2)
    assert (config.model, config.limit, config.first, config.seed) == ("mock:random", None, 2, 9)


def test_paths_are_relative_to_the_file(here):
    folder = here / "below"
    (folder / "rows").mkdir(parents=True)
    text = ONE.replace("mock:gold", "mock:script?file=said.jsonl") + (
        'data_root = "rows"\nstore = "kept"\njudge = "hf:./weights"\n'
    )
    (folder / "suite.toml").write_text(text)
    (job,) = suite_jobs(Path("below/suite.toml"), {})
    assert job.config.data_root == str(folder / "rows")
    assert job.store == str(folder / "kept")
    assert job.config.model == f"mock:script?file={folder / 'said.jsonl'}"
    assert job.config.judge == f"hf:{folder / 'weights'}"


def test_limits_of_the_command_line_count_for_the_whole_suite(say, here):
    (here / "suite.toml").write_text(
        "[defaults]\nfirst = 3\nbatch_size = 1\n" + ONE + ONE.replace("gold", "empty")
    )
    # One token is reached by the first call; the second run does not begin.
    code, out, err = say("run", "-c", "suite.toml", "--max-total-tokens", "1", "--json")
    (run,) = json.loads(out)["runs"]
    assert (code, run["status"], run["n_scored"]) == (1, "partial", 1)
    assert "1 of 3 attempts are there, go on with: harness resume" in err
    assert "gsm8k · mock:empty: not started, --max-total-tokens 1 is reached" in err


def test_limits_of_a_table_count_for_it_alone(say, here):
    (here / "suite.toml").write_text(
        "[defaults]\nfirst = 3\nbatch_size = 1\nmax_total_tokens = 1\n"
        + ONE + ONE.replace("gold", "empty")
    )  # fmt: skip
    code, out, _ = say("run", "-c", "suite.toml", "--json")
    runs = json.loads(out)["runs"]
    assert (code, [run["n_scored"] + run["counts"]["error"] for run in runs]) == (1, [1, 1])


def test_the_guides_files_and_commands_work(here):
    (here / "suite.toml").write_text(block("suite.toml"))
    cards = here / "config/bridge-harness"
    cards.mkdir(parents=True)
    (cards / "models.toml").write_text(block("models.toml"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = {
        line.split("#")[0].strip(): subprocess.run(
            ["sh", "-c", line], cwd=here, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path, "HARNESS_STORE": "results"},
        )
        for line in (block("limits") + block("suite")).splitlines()
    }  # fmt: skip
    stopped, *others = done.values()
    assert stopped.returncode == 1
    assert "--max-cost 0.001 is reached" in stopped.stderr
    assert "cost USD" in stopped.stdout
    for one in others:
        assert one.returncode == 0, one.stderr
    assert "most_cost_usd" in done["harness run -c suite.toml --dry-run"].stdout
    tables = done["harness run -c suite.toml"].stdout
    assert (tables.count("5 of 5"), tables.count("done")) == (5, 5)
    assert done["harness run -c suite.toml --limit 2"].stdout.count("2 of 2") == 5


def test_a_dry_run_gives_the_most_that_it_can_cost(say, here, monkeypatch):
    cards = here / "prices.toml"
    cards.write_text(block("models.toml"))
    monkeypatch.setenv("HARNESS_MODELS", str(cards))
    asked = (
        "run",
        "--task",
        "gsm8k",
        "--model",
        "mock:gold",
        "--first",
        "3",
        "--max-tokens",
        "100",
    )
    _, out, _ = say(*asked, "--dry-run", "--json")
    (row,) = json.loads(out)["plan"]
    assert row["most_new_tokens"] == 300
    # By hand: estimated prompt tokens x 0.5 and 300 x 2, a million each
    expected = (row["prompt_tokens_estimate"] * 0.5 + 300 * 2.0) / 1e6
    assert row["most_cost_usd"] == pytest.approx(expected)
    # The estimate itself: a quarter of the characters of the prompts, each rounded up
    say(*asked)
    prompts = [
        json.loads(line)["prompt"]
        for line in next((here / "results/runs").glob("*/journal.jsonl")).read_text().splitlines()
        if '"type":"sample"' in line
    ]
    assert row["prompt_tokens_estimate"] == sum(-(-len(p) // 4) for p in prompts)
    monkeypatch.delenv("HARNESS_MODELS")
    _, out, _ = say(*asked, "--dry-run", "--json")
    assert json.loads(out)["plan"][0]["most_cost_usd"] is None
    assert "cost" not in say(*asked, "--dry-run")[1]
