"""`harness compare`, `rescore` and `show diff` on the command line."""

from __future__ import annotations

import json

import pytest

from harness.cli.main import main

BASE = "mock:noisy?accuracy=0.3"
BETTER = "mock:noisy?accuracy=0.9"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("cli") / "store")
    for model in (BASE, BETTER):
        args = ["run", "--task", "gsm8k,aicrypto/mcq", "--model", model, "--store", folder]
        assert main([*args, "--json"]) == 0
    return folder


@pytest.fixture
def say(store, capsys):
    """Call the program; give exit code, stdout and stderr."""

    def call(*args):
        code = main([*args, "--store", store])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_compare_prints_every_task_and_their_mean(say):
    code, out, err = say("compare", BETTER, BASE)
    assert code == 0
    for text in (
        "gsm8k",
        "aicrypto/mcq",
        "all tasks, each the same weight",
        "(mcnemar)",
        "(macro)",
    ):
        assert text in out
    assert "A is a baseline" in err
    assert "A better on own-gsm8k-" in err


def test_compare_json_has_the_keys_of_the_contract(say):
    code, out, _ = say("compare", f"{BETTER}@gsm8k", BASE, "--json")
    found = json.loads(out)
    assert code == 0
    assert {"a", "b", "n", "diff", "lo", "hi", "p", "test", "flips"} <= set(found)
    assert set(found["flips"]) == {"gained", "lost"}
    assert (found["n"], len(found["tasks"])) == (60, 1)
    assert found["diff"] > 0.3
    # The flips are all there is to the difference of two right-or-wrong runs.
    gained, lost = (len(found["flips"][kind]) for kind in ("gained", "lost"))
    assert found["diff"] == pytest.approx((gained - lost) / 60)


def test_errors_are_one_line(say):
    for args, words in (
        (("compare", "nobody", BASE), "unknown run or model 'nobody'"),
        (("show", "diff", "last"), "show diff needs two runs"),
        (("rescore", "last", "--judge", "mock:gold"), "asks no judge"),
        (("rescore", "nothing"), "unknown run 'nothing'"),
    ):
        code, out, err = say(*args)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err


def test_rescore_says_both_verdicts_and_calls_nothing(say):
    code, out, err = say("rescore", "last")
    assert code == 0
    assert ("before" in out, "now" in out) == (True, True)
    assert "50 outputs judged again, 0 verdicts changed" in err
    found = json.loads(say("rescore", "last", "--json")[1])
    assert found["before"]["headline"] == found["after"]["headline"]


def test_show_diff(say):
    runs = json.loads(say("list", "runs", "--json")[1])
    ids = {(r["model"], r["task"]): r["run_id"] for r in runs}
    code, out, _ = say("show", "diff", ids[BASE, "gsm8k"], ids[BETTER, "gsm8k"])
    assert code == 0
    assert "args.accuracy" in out
    assert "may be compared item by item" in out
    code, out, _ = say("show", "diff", ids[BASE, "gsm8k"], ids[BASE, "aicrypto/mcq"])
    assert "not to be compared: name (gsm8k / aicrypto/mcq)" in out
    told = json.loads(say("show", "diff", "last", ids[BASE, "gsm8k"], "--json")[1])
    assert told["n_shared"] == 0


def test_show_run_prints_what_it_rests_on(say):
    code, out, _ = say("show", "run", "last")
    assert code == 0
    for text in ("git_commit", "packages.duckdb", "hardware.cpu", "items_sha256", "prompt_sha256",
                 "scorer_sha256", "dataset_sha256", "seed: 0", "backend: mock"):  # fmt: skip
        assert text in out


def test_a_dry_run_says_what_could_be_found(say):
    code, _, err = say("run", "--task", "gsm8k", "--model", "mock:gold", "--dry-run")
    assert code == 0
    # TTestPower().solve_power(nobs=60, alpha=.05, power=.8) = .367704, times the usual spread .5
    assert "60 items show a difference of 18.4 points" in err
