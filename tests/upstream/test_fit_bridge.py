"""`harness fit` on the answers of BRIDGE: 176 models, 1,019 items (arXiv 2602.07267, CC BY 4.0).

Counts are taken from the raw files; fitted values are held against the parameters that the authors
published and against figures measured with an implementation of its own before this one.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from harness.cli.main import main
from harness.core.resources import data

BRIDGE = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "bridge"
ANSWERS = BRIDGE / "all_a_pyirt.jsonl"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Exit code, the machine's JSON and the folder that `--out` filled."""
    if not ANSWERS.exists():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    import contextlib
    import io

    out, told = tmp_path_factory.mktemp("bridge"), io.StringIO()
    with contextlib.redirect_stdout(told):
        code = main(["fit", "--responses", str(ANSWERS), "--json", "--out", str(out)])
    return code, json.loads(told.getvalue()), out


@pytest.fixture(scope="module")
def answers():
    return [json.loads(line)["responses"] for line in ANSWERS.read_text().splitlines()]


def column(name, key, value):
    with (BRIDGE / name).open(newline="") as file:
        return {row[key]: row[value] for row in csv.DictReader(file)}


def test_the_figures_of_the_data(fitted):
    code, found, _ = fitted
    assert (code, found["converged"], found["method"]) == (0, True, "joint")
    assert (found["n_models"], found["n_items"], found["n_cells"]) == (176, 1019, 86_441)
    assert len(found["flags"]["prior_only"]) == found["items"]["prior_only"] == 165
    assert found["log_loss"] == pytest.approx(0.2895, abs=5e-5)


def test_items_without_variation_are_those_of_the_raw_file(fitted, answers):
    solved, asked = Counter(), Counter()
    for responses in answers:
        asked.update(responses.keys())
        solved.update({item: right for item, right in responses.items() if right})
    same = {item for item, n in asked.items() if solved[item] in (0, n)}
    marked = fitted[1]["flags"]["prior_only"]
    assert set(marked) == same
    source = column("items.csv", "item_id", "source")
    assert Counter(source[item] for item in marked) == {
        "mlebench": 67, "metr": 62, "swebench": 32, "gdpval": 4,
    }  # fmt: skip


def test_the_order_is_that_of_the_published_parameters(fitted):
    items = pq.read_table(fitted[2] / "items.parquet").to_pylist()
    published = column("published_item_params.csv", "", "b")
    ours, theirs = zip(*((i["b"], float(published[i["item_id"]])) for i in items), strict=True)
    assert spearmanr(ours, theirs).statistic >= 0.98
    models = pq.read_table(fitted[2] / "models.parquet").to_pylist()
    able = column("published_abilities.csv", "subject_id", "ability")
    ours, theirs = zip(*((m["theta"], float(able[m["model"]])) for m in models), strict=True)
    assert spearmanr(ours, theirs).statistic >= 0.99


def test_every_model_answered_what_the_raw_file_says(fitted, answers):
    models = pq.read_table(fitted[2] / "models.parquet").to_pylist()
    assert sorted(m["n_items"] for m in models) == sorted(map(len, answers))


def test_priors_are_as_measured_before(fitted):
    hyper = json.loads((fitted[2] / "fit.json").read_text())["hyper"]
    assert hyper["mu_a"] == pytest.approx(0.70, abs=0.005)
    assert hyper["sigma_a"] == pytest.approx(0.46, abs=0.005)
    assert hyper["sigma_d"] == pytest.approx(2.98, abs=0.01)


@pytest.fixture(scope="module")
def in_minutes():
    """The fit read in human minutes: METR's 170 items are the anchors, as the authors have it."""
    if not ANSWERS.exists():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    import contextlib
    import io

    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        assert main([
            "fit", "--responses", str(ANSWERS), "--human-minutes", str(BRIDGE / "items.csv"),
            "--anchors", "source=metr", "--release-dates", str(data("published/bridge.csv")), "--json",
        ]) == 0  # fmt: skip
    return json.loads(told.getvalue())


def test_link_and_doubling_time_are_those_measured_before(in_minutes):
    """An implementation of its own found slope 1.521, intercept 2.570, R² .8328, 5.83 [5.2, 6.5]."""
    link, months = in_minutes["link"], in_minutes["doubling_months"]
    assert link["n_anchors"] == 170
    assert link["slope"] == pytest.approx(1.521, abs=0.005)
    assert link["intercept"] == pytest.approx(2.570, abs=0.005)
    assert link["r2"] == pytest.approx(0.8328, abs=0.001)
    assert months["value"] == pytest.approx(5.83, abs=0.02)
    assert months["lo"] == pytest.approx(5.2, abs=0.1)
    assert months["hi"] == pytest.approx(6.5, abs=0.1)
    assert link["best"]["value"] == pytest.approx(118, abs=1)


def test_known_answers_stand_beside_the_published_figures(in_minutes):
    """SWE bucket accuracy .432 and Cybench 11 of 15: an implementation of its own found the same."""
    tests = {one["group"]: one for one in in_minutes["link"]["tests"]}
    assert tests["swebench"]["n"] == 500
    assert tests["swebench"]["bucket_accuracy"] == pytest.approx(0.432, abs=0.002)
    assert (tests["cybench"]["n"], tests["cybench"]["within_2x"]) == (15, 11)
    figures = {one["name"]: one for one in in_minutes["link"]["published"]["figures"]}
    published = {name: one["published"]["value"] for name, one in figures.items()}
    assert sorted(published.values()) == [0.416, 0.8051, 5.7, 6.2, 14]
    for one in figures.values():
        assert one["ours"]["value"] == pytest.approx(one["published"]["value"], rel=0.25)


def test_every_level_of_the_link_is_shown(in_minutes):
    """Level "weighted" was found by an implementation of its own: 5.5 months, far longer horizons."""
    moved = in_minutes["link"]["sensitivity"]
    assert list(moved) == ["ols", "weighted", "joint"]
    assert moved["weighted"]["doubling"] == pytest.approx(5.5, abs=0.1)
    assert moved["weighted"]["best"] > 1.4 * moved["ols"]["best"]
    assert 5.3 <= moved["joint"]["doubling"] <= 6.3


def test_other_answers_have_no_published_figures(tmp_path, capsys):
    if not ANSWERS.exists():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    lines = ANSWERS.read_text().splitlines()
    (tmp_path / "fewer.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    assert main([
        "fit", "--responses", str(tmp_path / "fewer.jsonl"), "--human-minutes",
        str(BRIDGE / "items.csv"), "--anchors", "source=metr", "--json",
    ]) == 0  # fmt: skip
    assert "published" not in json.loads(capsys.readouterr().out)["link"]
