"""`harness fit --model-kind`: guessing and ordered scores from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.cli.main import main
from harness.runner.fitting import fit_file


@pytest.fixture
def answers(tmp_path):
    """Sixty models on ten items of four options; and scores of 0 to 2 points."""
    rng = np.random.default_rng(3)
    theta, b = rng.normal(size=60), np.linspace(-1.5, 1.5, 10)
    p = 1 / (1 + np.exp(-1.3 * (theta[:, None] - b)))
    right = rng.random(p.shape) < 0.25 + 0.75 * p
    points = (rng.random((2, *p.shape)) < p).sum(axis=0)
    for name, k, n in (("choice", right, 1), ("points", points, 2)):
        lines = ["model,item,k,n"] + [
            f"m{j:02},i{i},{int(k[j, i])},{n}" for j in range(60) for i in range(10)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_both_models_are_reachable_and_named_apart(answers, capsys):
    file = str(answers / "choice.csv")
    seen = {}
    for options in ([], ["--model-kind", "3pl", "--choices", "4"], ["--model-kind", "3pl", "--choices", "5"]):  # fmt: skip
        args = ["fit", "--responses", file, "--method", "mml", *options, "--json"]
        assert main(args) == 0
        found = json.loads(capsys.readouterr().out)
        seen[found["fit_id"]] = found["log_loss"]
    assert len(seen) == 3
    assert main(["fit", "--responses", str(answers / "points.csv"), "--model-kind", "grm"]) == 0
    assert "P(score >= m)" in capsys.readouterr().out


def test_the_stored_fit_says_its_model(answers):
    row = fit_file(answers / "choice.csv", model_kind="3pl", choices=4).fit
    assert (row.method, row.seed) == ("mml", None)
    assert row.parameterisation.startswith("p = c + (1 - c)")
    assert fit_file(answers / "choice.csv", method="mml").fit.parameterisation.startswith("logit p")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model-kind", "5pl"], "no model '5pl'"),
        (["--model-kind", "3pl"], "needs --choices"),
        (["--choices", "4"], "takes no --choices"),
        (["--model-kind", "grm", "--method", "joint"], "fitted by --method mml"),
        (["--model-kind", "grm", "--responses", "points"], None),
    ],
)
def test_wrong_requests_are_one_line(answers, capsys, options, message):
    options = [str(answers / "points.csv") if word == "points" else word for word in options]
    code = main(["fit", "--responses", str(answers / "choice.csv"), *options])
    told = capsys.readouterr().err
    assert code == (0 if message is None else 2)
    assert message is None or (message in told and told.count("\n") == 1)


def test_the_seed_of_a_method_that_draws_is_kept(answers, monkeypatch):
    from dataclasses import replace

    from irt.methods import METHODS, joint

    monkeypatch.setitem(METHODS, "drawn", lambda r, q: replace(joint(r, q), seed=7))
    assert fit_file(answers / "choice.csv", method="drawn").fit.seed == 7
    assert fit_file(answers / "choice.csv", method="joint").fit.seed is None
