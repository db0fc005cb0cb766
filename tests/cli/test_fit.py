"""`harness fit` on the command line: stores, files, exit codes, strict JSON and one-line errors."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import irt
from harness.cli.main import main
from harness.store.layout import Store
from harness.store.publish import snapshot
from harness.store.queries import fit_items, fit_models, fits, item_values
from irt.methods import METHODS

ACCURACIES = (0.2, 0.4, 0.6, 0.8, 0.95)
MODELS = [f"mock:noisy?accuracy={a}" for a in ACCURACIES]
KEYS = {"fit_id", "method", "n_models", "n_items", "n_cells", "converged", "log_loss", "link",
        "doubling_months", "flags", "seconds", "models", "items"}  # fmt: skip


def strict(text: str):
    """Parse JSON that has no NaN and no Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Five mocks of rising accuracy on 20 questions."""
    folder = str(tmp_path_factory.mktemp("cli") / "store")
    models = [word for model in MODELS for word in ("--model", model)]
    assert main(["run", "--task", "gsm8k", *models, "--limit", "20", "--store", folder]) == 0
    return folder


@pytest.fixture
def say(capsys, monkeypatch, tmp_path):
    """Call the program in an empty folder; give exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_STORE", raising=False)

    def call(*args):
        code = main([str(arg) for arg in args])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture
def answers(tmp_path):
    """A long CSV of five models and eight items, the better ones solving more."""
    path = tmp_path / "answers.csv"
    rows = [f"m{m},i{i},{int(m + (m * i) % 3 > i - 1)}" for m in range(5) for i in range(8)]
    path.write_text("model,item,k\n" + "\n".join(rows))
    return path


# --- from the store ---


def test_a_fit_of_the_store_is_printed_and_kept(say, store):
    code, out, err = say("fit", "--baselines", "--store", store)
    assert code == 0
    assert out.startswith("converged after ")
    for text in (*(f"{model} (baseline)" for model in MODELS), "easiest", "hardest", "20 items"):
        assert text in out
    con = snapshot(Store.open(store))
    (row,) = fits(con)
    first, last = err.splitlines()
    assert first.startswith("not linked to human minutes: no shared items or models")
    assert last == f"{row.fit_id}: 100 cells in {row.seconds:.2f} s"
    assert (len(fit_models(con, row.fit_id)), len(fit_items(con, row.fit_id))) == (5, 20)
    again, shown, _ = say("show", "fit", "last", "--store", store)
    assert (again, shown) == (0, out)
    assert say("show", "fit", row.fit_id.partition("-")[2], "--store", store)[1] == out


def test_json_has_the_keys_of_the_contract_and_what_the_library_says(say, store):
    code, out, err = say("fit", "--baselines", "--store", store, "--json")
    found = strict(out)
    assert (code, err) == (0, "")
    assert set(found) >= KEYS
    con = snapshot(Store.open(store))
    runs = con.execute("SELECT run_id, variant_id FROM runs").fetchall()
    # The library, called apart on every item's score as the runs have it.
    table = [
        {"model": variant, "item": item, "k": mean, "n": n}
        for run, variant in runs
        for item, _, mean, n in item_values(con, run, "accuracy")
    ]
    expected = irt.fit(table)
    assert (found["n_models"], found["n_items"], found["n_cells"]) == (5, 20, len(table))
    assert found["method"] == expected.method
    assert found["log_loss"] == pytest.approx(expected.log_loss, abs=1e-9)
    prior_only = [["gsm8k", "1", item] for item in expected.verdict.prior_only]
    suspect = [["gsm8k", "1", item] for item in expected.verdict.suspect_key]
    assert found["flags"] == {"prior_only": prior_only, "suspect_key": suspect}
    assert (found["link"], found["doubling_months"]) == (None, None)
    assert found["models"] == {"fitted": 5, "left_out": 0, "baselines": 5}
    assert found["items"] == {
        "fitted": 20, "left_out": 0, "prior_only": len(prior_only), "suspect_key": len(suspect),
    }  # fmt: skip
    theta = dict(zip(expected.models.model, expected.models.theta, strict=True))
    whole = strict(say("show", "fit", found["fit_id"], "--store", store, "--json")[1])
    assert {m["variant_id"] for m in whole["models"]} == set(theta)
    for model in whole["models"]:
        assert model["theta"] == pytest.approx(theta[model["variant_id"]], abs=1e-6)
    names = [m["model"] for m in whole["models"]]
    assert (names[0], names[-1]) == (MODELS[-1], MODELS[0])


def test_the_same_fit_twice_is_one_and_other_choices_are_others(say, store):
    first = strict(say("fit", "--baselines", "--store", store, "--json")[1])["fit_id"]
    assert strict(say("fit", "--baselines", "--store", store, "--json")[1])["fit_id"] == first
    args = ["fit", "--baselines", "--store", store, "--json", "--task", "gsm8k"]
    four = strict(
        say(*args, "--model", ",".join(MODELS[:2]), "--model", MODELS[2], "-m", MODELS[3])[1]
    )
    assert (four["n_models"], four["fit_id"] == first) == (4, False)
    con = snapshot(Store.open(store))
    assert [row.fit_id for row in fits(con)] == [first, four["fit_id"]]


def test_mml_is_strict_json_too(say, store):
    code, out, _ = say("fit", "--baselines", "--store", store, "--method", "mml", "--json")
    assert (code, strict(out)["method"]) == (0, "mml")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "all 5 models with scores are baselines"),
        (("--baselines", "--task", "gsm8"), "unknown task 'gsm8': did you mean 'gsm8k'"),
        (("--baselines", "--model", "mock:nois"), "unknown model 'mock:nois': did you mean"),
        (("--baselines", "--method", "jiont"), "unknown method 'jiont': did you mean 'joint'"),
        (("--baselines", "--scores", "many"), "unknown kind of scores 'many'"),
        (("--baselines", "--model", MODELS[0]), "1 models are too few"),
        (("--responses", "x.csv", "--baselines"), "choose from the store, not from a file"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(say, store, args, words):
    code, out, err = say("fit", *args, "--store", store)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_without_a_store_nothing_is_made(say, tmp_path):
    code, out, err = say("fit")
    assert (code, out) == (1, "")
    assert "no store at results" in err
    assert list(tmp_path.iterdir()) == []


# --- from a file ---


def test_a_file_is_fitted_and_kept_nowhere_unless_asked(say, answers, tmp_path):
    code, out, err = say("fit", "--responses", answers)
    assert code == 0
    assert "5 models" in out
    assert "8 items" in out
    assert "40 cells" in err
    assert list(tmp_path.iterdir()) == [answers]
    assert say("fit", "--responses", answers, "--store", "kept")[0] == 0
    (row,) = fits(snapshot(Store.open(tmp_path / "kept")))
    assert (row.source, row.n_cells) == ("answers.csv", 40)
    assert say("show", "fit", "last", "--store", "kept")[1] == out


def test_out_holds_everything_the_fit_knows(say, answers, tmp_path):
    assert say("fit", "--responses", answers, "--out", "deep/out", "--method", "joint")[0] == 0
    expected = irt.fit(irt.read(answers), "joint")
    models = pq.read_table(tmp_path / "deep/out/models.parquet").to_pylist()
    assert {m["model"]: (m["theta"], m["se"], m["n_items"]) for m in models} == {
        m["model"]: (m["theta"], m["se"], m["n_items"]) for m in expected.models.to_dicts()
    }
    items = pq.read_table(tmp_path / "deep/out/items.parquet").to_pylist()
    columns = ("a", "b", "d", "se_log_a", "se_b", "se_d", "n_models")
    assert {i["item_id"]: [i[c] for c in columns] for i in items} == {
        i["item"]: [i[c] for c in columns] for i in expected.items.to_dicts()
    }
    assert [i["flags"] for i in items] == list(map(list, expected.items.flags))
    about = strict((tmp_path / "deep/out/fit.json").read_text())
    assert about["data_hash"] == expected.data_hash
    assert about["hyper"] == pytest.approx(vars(expected.hyper))
    assert about["gauge"] == expected.gauge
    assert about["parameterisation"] == "logit p = a (theta - b) = a theta + d"
    assert about["verdict"]["text"] == str(expected.verdict)
    assert about["method"] == "joint"
    assert about["seconds"] > 0
    assert {"bridge-harness", "numpy", "scipy"} <= set(about["versions"])


ALL = "".join(f"m{m},i{i},{{}}\n" for m in range(4) for i in range(3))
HEAD = "model,item,k\n"
GOOD = "model,item,k,n\na,p,1,1\n"
BAD = {
    "no variation, all right": (HEAD + ALL.replace("{}", "1"), "no variation: every answer is right"),
    "no variation, all wrong": (HEAD + ALL.replace("{}", "0"), "no variation: every answer is wrong"),
    "one model": (HEAD + "a,p,1\na,q,0\n", "1 models are too few"),
    "blocks": (
        HEAD + "a,p,1\na,q,0\nb,p,0\nb,q,1\nc,r,1\nc,s,0\nd,r,0\nd,s,1\n",
        "a, b with 2 items (p, q); c, d with 2 items (r, s)",
    ),
    "negative": (GOOD + "b,q,-1,1\n", "a negative count: row 2 (model 'b', item 'q'): k = -1, n = 1"),
    "fractional": (
        GOOD + "b,q,0.5,1\n",
        "(declare --scores fractional): row 2 (model 'b', item 'q'): k = 0.5, n = 1",
    ),
    "k > n": (GOOD + "b,q,3,2\n", "k is more than n: row 2 (model 'b', item 'q'): k = 3, n = 2"),
    "k of none": (GOOD + "b,q,1,0\n", "k is more than n: row 2 (model 'b', item 'q'): k = 1, n = 0"),
    "duplicate": (GOOD + "b,q,1,1\na,p,0,1\n", "given twice: row 3 (model 'a', item 'p')"),
    "nan": (GOOD + "b,q,nan,1\n", "not a finite number"),
    "no name": (GOOD + ",q,1,1\n", "the model has no name in row 2"),
    "text": (GOOD + "b,q,yes,1\n", "not a number"),
    "empty": ("", "neither a long table (model, item, k) nor a wide one"),
    "no rows": (HEAD, "no answer at all"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_bad_data_are_one_line_that_names_the_rows(say, tmp_path, fault):
    text, told = BAD[fault]
    (tmp_path / "bad.csv").write_text(text)
    code, out, err = say("fit", "--responses", "bad.csv", "--out", "out", "--store", "kept")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "kept" / "store.duckdb").exists()


def test_nan_names_its_row(say, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"model": "a", "item": "p", "k": NaN}\n')
    code, _, err = say("fit", "--responses", "x.jsonl")
    assert (code, err.count("\n")) == (2, 1)
    assert "row 1 (model 'a', item 'p'): k = nan" in err


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("none.csv", None, "cannot read none.csv: No such file"),
        ("x.txt", b"", "x.txt: not one of .jsonl, .csv, .parquet"),
        ("x.csv", b"\xff\xfe", "cannot read x.csv: 'utf-8'"),
        ("x.parquet", b"PAR1", "cannot read x.parquet"),
        ("x.jsonl", b'{"subject_id": "a"}', "record 1 has no subject_id and responses"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(say, tmp_path, name, raw, told):
    if raw is not None:
        (tmp_path / name).write_bytes(raw)
    code, out, err = say("fit", "--responses", name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_the_largest_block_is_fitted_on_request_and_the_rest_named(say, tmp_path):
    rows = [f"m{m},i{i},{int(m > i)}\n" for m in range(5) for i in range(4)]
    (tmp_path / "x.csv").write_text(HEAD + "".join(rows) + "alone,other,1\n")
    assert say("fit", "--responses", "x.csv")[0] == 2
    code, out, _ = say("fit", "--responses", "x.csv", "--largest-block", "--json")
    found = strict(out)
    assert (code, found["n_models"], found["n_items"], found["n_cells"]) == (0, 5, 4, 20)
    assert (found["models"]["left_out"], found["items"]["left_out"]) == (1, 1)
    shown = say("fit", "--responses", "x.csv", "--largest-block")[1]
    assert "1 models left out: alone (not connected with the largest block)" in shown


def test_fractions_are_fitted_when_declared(say, answers):
    answers.write_text(answers.read_text().replace("m0,i0,1", "m0,i0,0.5"))
    assert say("fit", "--responses", answers)[0] == 2
    code, out, _ = say("fit", "--responses", answers, "--scores", "fractional", "--json")
    expected = irt.fit(irt.read(answers, "fractional"))
    assert (code, strict(out)["log_loss"]) == (0, pytest.approx(expected.log_loss, abs=1e-12))


def test_an_item_whose_key_is_wrong_is_named(say, answers):
    """Planted: the answers to one item of middling difficulty are turned round."""
    before = strict(say("fit", "--responses", answers, "--json")[1])
    assert "i4" not in before["flags"]["suspect_key"]
    lines = answers.read_text().splitlines()
    turn = {"0": "1", "1": "0"}
    answers.write_text("\n".join(x[:-1] + turn[x[-1]] if ",i4," in x else x for x in lines))
    after = strict(say("fit", "--responses", answers, "--json")[1])
    assert "i4" in after["flags"]["suspect_key"]
    assert "most suspect key" in say("fit", "--responses", answers)[1]


# --- what did not go well ---


@pytest.fixture
def spoilt(monkeypatch):
    """Change what the engine gives."""

    def spoil(**changes):
        engine = METHODS["joint"]

        def method(data, request):
            return dataclasses.replace(engine(data, request), **changes)

        monkeypatch.setitem(METHODS, "joint", method)

    return spoil


def test_a_fit_that_has_not_converged_exits_1_and_says_so(say, answers, spoilt, tmp_path):
    spoilt(converged=False, decrement=math.inf, max_grad=math.nan)
    args = ["fit", "--responses", answers, "--method", "joint", "--store", "kept"]
    code, out, _ = say(*args)
    assert code == 1
    assert out.startswith("NOT CONVERGED")
    code, out, _ = say(*args, "--json", "--out", "out")
    assert (code, strict(out)["converged"]) == (1, False)
    assert strict((tmp_path / "out" / "fit.json").read_text())["verdict"]["decrement"] is None
    assert [row.converged for row in fits(snapshot(Store.open(tmp_path / "kept")))] == [False]


def test_an_error_that_is_not_known_is_left_out_and_never_nan(say, answers, spoilt):
    import numpy as np

    spoilt(se_theta=np.full(5, np.nan), var_d=np.full(8, np.nan))
    args = ["fit", "--responses", answers, "--method", "joint", "--store", "kept"]
    code, out, _ = say(*args)
    assert (code, "nan" in out) == (0, False)
    whole = strict(say("show", "fit", "last", "--store", "kept", "--json")[1])
    assert {(m["se"]) for m in whole["models"]} == {None}
    assert {(i["se_d"]) for i in whole["items"]} == {None}


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("--out", "/proc/x"), 2, "cannot make folder /proc/x"),
        (("--store", "/proc/x"), 1, "cannot write to store /proc/x"),
    ],
)
def test_a_place_that_cannot_be_written_is_found_before_the_fit(
    say, answers, monkeypatch, args, code, told
):
    monkeypatch.setitem(METHODS, "joint", None)
    found, out, err = say("fit", "--responses", answers, "--method", "joint", *args)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert told in err


def test_a_method_whose_package_is_missing_names_the_command(say, answers, monkeypatch):
    def absent(data, request):
        raise ModuleNotFoundError("it needs a package: pip install it")

    monkeypatch.setitem(METHODS, "svi", absent)
    code, out, err = say("fit", "--responses", answers, "--method", "svi")
    assert (code, out, err) == (1, "", "harness: method svi: it needs a package: pip install it\n")


def test_a_terminal_sees_that_it_works(say, answers, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = say("fit", "--responses", answers, "--json")
    assert code == 0
    assert strict(out)["converged"]
    assert "fitting" in err


def test_help_costs_no_numpy(tmp_path):
    heavy = ["numpy", "scipy", "torch", "pyro", "duckdb", "pyarrow", "irt"]
    code = (
        "import sys; from harness.cli.main import main\n"
        "main(['fit', '--help'])\n"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True,
        cwd=tmp_path, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.stderr == "[]\n"
    assert "--largest-block" in done.stdout
