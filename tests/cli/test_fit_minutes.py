"""`harness fit` with human minutes and release dates: what is read, refused, stored and shown."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import irt
from harness.cli.main import main
from harness.store.layout import Store
from harness.store.publish import snapshot
from harness.store.queries import fit_items, fit_models, fits

N_ITEMS, N_MODELS = 40, 12


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Answers of twelve models to forty items whose minutes follow their difficulty exactly."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(3)
    b, theta = np.linspace(-2, 2, N_ITEMS), np.linspace(-1.5, 1.5, N_MODELS)
    p = 1 / (1 + np.exp(-(theta - b[:, None])))
    lines = [
        {"subject_id": f"m{j:02d}", "responses": {
            f"i{i:02d}": int(rng.random() < p[i, j]) for i in range(N_ITEMS)
        }}
        for j in range(N_MODELS)
    ]  # fmt: skip
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rows = ["item,kind,human_minutes"]
    rows += [f"i{i:02d},{'odd' if i % 2 else 'even'},{math.exp(1 + b[i])}" for i in range(39)]
    (folder / "minutes.csv").write_text("\n".join([*rows, "i39,odd,"]) + "\n")
    days = [f"m{j:02d},202{2 + j // 6}-{1 + 2 * (j % 6):02d}-15" for j in range(N_MODELS - 1)]
    (folder / "dates.csv").write_text("\n".join(["model,release_date", *days]) + "\n")
    return folder


@pytest.fixture
def say(world, capsys, monkeypatch):
    """Fit the answers with options; give exit code, stdout and stderr."""
    monkeypatch.chdir(world)
    monkeypatch.delenv("HARNESS_STORE", raising=False)

    def call(*args):
        code = main(["fit", "--responses", "answers.jsonl", *args])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_the_machines_form_has_the_link_of_the_contract(say):
    code, out, _ = say("--human-minutes", "minutes.csv", "--release-dates", "dates.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"slope", "intercept", "r2"} <= set(found["link"])
    assert (found["link"]["n_anchors"], found["link"]["level"]) == (39, "ols")
    assert found["link"]["slope"] > 0
    months = found["doubling_months"]
    assert 0 < months["lo"] < months["value"] < months["hi"]
    assert set(found["link"]["sensitivity"]) == {"ols", "weighted", "joint"}
    assert found["link"]["undated"] == 1


def test_the_link_is_the_line_through_log_minutes(say, world):
    """numpy's least squares on the difficulties of a fit made apart."""
    found = json.loads(say("--human-minutes", "minutes.csv", "--json")[1])["link"]
    fitted = irt.fit(irt.read(world / "answers.jsonl"))
    rows = [line.split(",") for line in (world / "minutes.csv").read_text().splitlines()[1:40]]
    b = dict(zip(fitted.items.item, fitted.items.b, strict=True))
    known = [(b[item], math.log(float(minutes))) for item, _, minutes in rows]
    slope, intercept = np.polyfit(*zip(*known, strict=True), 1)
    assert found["slope"] == pytest.approx(slope, rel=1e-9)
    assert found["intercept"] == pytest.approx(intercept, rel=1e-9)


def test_a_fit_without_minutes_does_not_replace_one_with(say, tmp_path):
    store = str(tmp_path / "store")
    assert say("--human-minutes", "minutes.csv", "--store", store)[0] == 0
    assert say("--store", store)[0] == 0
    links = [row.link is None for row in fits(snapshot(Store(tmp_path / "store")))]
    assert sorted(links) == [False, True]


def test_equal_minutes_are_shown_without_a_number_for_what_they_do_not_say(say, world, capsys):
    rows = [f"i{i:02d},1" for i in range(30)]
    (world / "equal.csv").write_text("\n".join(["item,minutes", *rows]) + "\n")
    code, out, _ = say("--human-minutes", "equal.csv")
    assert code == 0
    assert "R² –" in out


def test_without_minutes_there_is_no_horizon(say):
    found = json.loads(say("--json")[1])
    assert (found["link"], found["doubling_months"]) == (None, None)


def test_only_the_rows_asked_for_are_anchors(say):
    args = ("--human-minutes", "minutes.csv", "--anchors", "kind=odd", "--json")
    assert json.loads(say(*args)[1])["link"]["n_anchors"] == 19


def test_what_is_left_out_is_said(say, world):
    (world / "more.csv").write_text(
        "model,release_date\nm00,2023-01-15\nm05,2024-03-01\nzz,2024-01-01\n"
    )
    code, out, err = say("--human-minutes", "minutes.csv", "--release-dates", "more.csv")
    assert code == 0
    assert "1 rows of minutes.csv have no minutes" in err
    assert "10 models have no release date, so they are not in the frontier: m01, m02" in err
    assert "1 release dates are of models that are not here: zz" in err
    assert "H50 minutes" in out
    assert "doubling time at the frontier" in out


def test_the_store_keeps_minutes_and_horizons(say, tmp_path):
    """A horizon at 50 % is exp(intercept + slope θ); a predicted time has its median inside."""
    store = str(tmp_path / "store")
    args = ("--human-minutes", "minutes.csv", "--store", store)
    assert say(*args)[0] == 0
    con = snapshot(Store(tmp_path / "store"))
    (row,) = fits(con)
    for model in fit_models(con, row.fit_id):
        expected = math.exp(row.link["intercept"] + row.link["slope"] * model.theta)
        assert model.horizon50_min == pytest.approx(expected, rel=1e-9)
        assert model.lo < model.horizon50_min < model.hi
        assert model.horizon80_min < model.horizon50_min
    for item in fit_items(con, row.fit_id):
        expected = math.exp(row.link["intercept"] + row.link["slope"] * item.b)
        assert item.human_minutes_hat == pytest.approx(expected, rel=1e-9)
        assert item.lo < item.human_minutes_hat < item.hi


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("item,human_minutes\ni00,5\nnobody,7\ni02,9\ni03,4\n", "items with minutes are not in the fit.*nobody"),
        ("item,human_minutes\ni00,5\ni01,-7\ni02,9\ni03,4\n", "i01"),
        ("item,human_minutes\ni00,5\ni01,0\ni02,9\ni03,4\n", "i01"),
        ("item,human_minutes\ni00,5\ni01,soon\n", "minutes of 'i01' are 'soon', no number"),
        ("item,human_minutes\ni00,5\ni00,6\n", "'i00' stands twice"),
        ("item,hours\ni00,5\n", "needs a column human_minutes or minutes; it has item, hours"),
        ("item,human_minutes\n", "has no rows"),
        ("item,human_minutes\ni00,5\ni01,6\n", "anchors|items"),
    ],
)  # fmt: skip
def test_bad_minutes_are_one_line(say, world, text, why):
    (world / "bad.csv").write_text(text)
    code, out, err = say("--human-minutes", "bad.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(why, err), err


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--anchors", "kind=odd"), "need --human-minutes"),
        (("--release-dates", "dates.csv"), "need --human-minutes"),
        (("--human-minutes", "minutes.csv", "--anchors", "size=1"), "it has|has item, kind"),
        (("--human-minutes", "minutes.csv", "--link", "cubic"), "--link 'cubic' is not one of"),
        (("--link", "joint"), "need --human-minutes"),
        (("--human-minutes", "nowhere.csv"), "cannot read nowhere.csv"),
        (("--human-minutes", "answers.txt"), "give .csv, .jsonl or .parquet"),
    ],
)
def test_bad_options_are_one_line(say, args, why):
    code, out, err = say(*args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(why, err), err


@pytest.mark.parametrize("level", ["ols", "weighted", "joint"])
def test_every_horizon_stands_at_every_level_of_the_link(say, level):
    args = ("--human-minutes", "minutes.csv", "--release-dates", "dates.csv", "--link", level)
    code, out, _ = say(*args)
    assert code == 0
    assert "H50 by link: ols / weighted / joint" in out
    assert f"{level} (used)" in out
    link = json.loads(say(*args, "--json")[1])["link"]
    assert link["level"] == level
    assert {name: len(of) for name, of in link["h50"].items()} == dict.fromkeys(link["h50"], 12)
    # What is shown as the result is what stands in its own column.
    best = link["best"]
    assert link["h50"][level][best["model"]] == pytest.approx(best["value"], rel=1e-9)
    assert link["sensitivity"][level]["best"] == pytest.approx(best["value"], rel=1e-9)


def test_the_joint_level_is_the_librarys(say, world):
    found = json.loads(say("--human-minutes", "minutes.csv", "--link", "joint", "--json")[1])
    rows = [line.split(",") for line in (world / "minutes.csv").read_text().splitlines()[1:40]]
    minutes = {item: float(value) for item, _, value in rows}
    fitted = irt.fit(
        irt.read(world / "answers.jsonl"), "joint", human_minutes=minutes, link="joint"
    )
    assert found["link"]["slope"] == pytest.approx(fitted.link.beta, rel=0.01)
    assert any("does not test the link" in note for note in found["link"]["notes"])


def test_items_that_are_no_anchors_test_the_link(say):
    """Odd items are the anchors; how the even ones are predicted is counted here by hand."""
    args = ("--human-minutes", "minutes.csv", "--anchors", "kind=odd", "--json")
    found = json.loads(say(*args)[1])
    (test,) = found["link"]["tests"]
    assert (test["group"], test["n"]) == ("even", 20)
    out = say(*args[:-1])[1]
    assert "tested on 20 items of even, which are no anchors" in out
    # The minutes follow the true difficulty exactly, so most are met within a factor of 2.
    assert 10 <= test["within_2x"] <= 20


def test_undated_models_are_named(say, world):
    (world / "few.csv").write_text("model,release_date\nm00,2023-01-15\nm11,2024-03-01\n")
    args = ("--human-minutes", "minutes.csv", "--release-dates", "few.csv")
    _, _, err = say(*args)
    assert "10 models have no release date, so they are not in the frontier: m01, m02" in err
    link = json.loads(say(*args, "--json")[1])["link"]
    assert link["undated_models"] == [f"m{j:02d}" for j in range(1, 11)]


def test_a_date_that_is_none_is_one_line(say, world):
    (world / "odd.csv").write_text("model,release_date\nm00,soon\nm05,2024-03-01\n")
    code, out, err = say("--human-minutes", "minutes.csv", "--release-dates", "odd.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "'soon' is no date" in err


def test_pictures_are_drawn(say, tmp_path):
    """A PNG begins with its signature, an SVG is well-formed XML and names what it shows."""
    from xml.etree import ElementTree as ET

    folder = tmp_path / "new" / "plots"
    args = ("--human-minutes", "minutes.csv", "--release-dates", "dates.csv")
    code, _, err = say(*args, "--plots", str(folder))
    assert code == 0
    names = {
        "curves": "ability",
        "abilities": "m11",
        "minutes": "difficulty b",
        "horizon": "release date",
    }
    assert {p.name for p in folder.iterdir()} == {f"{n}.{e}" for n in names for e in ("png", "svg")}
    for name, word in names.items():
        assert (folder / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        text = (folder / f"{name}.svg").read_text()
        ET.fromstring(text)
        assert word in text, name
        assert f"{name}.svg" in err


def test_without_minutes_there_are_curves_and_abilities_only(say, tmp_path):
    assert say("--plots", str(tmp_path))[0] == 0
    assert sorted(p.name for p in tmp_path.glob("*.svg")) == ["abilities.svg", "curves.svg"]


def test_a_missing_drawing_package_is_said_before_the_fit(say, tmp_path, monkeypatch):
    import importlib.util

    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *a: None if name == "vl_convert" else there(name, *a),
    )
    code, out, err = say("--plots", str(tmp_path / "none"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--plots needs vl_convert: pip install -e '.[board]'" in err
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_is_one_line(say, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = say("--plots", str(tmp_path / "file" / "plots"))
    assert (code, err.count("\n")) == (2, 1)


def test_minutes_in_another_unit_are_suspected(say, world):
    rows = [f"i{i:02d},{600_000 * (i + 1)}" for i in range(30)]
    (world / "seconds.csv").write_text("\n".join(["item,minutes", *rows]) + "\n")
    code, _, err = say("--human-minutes", "seconds.csv")
    assert code == 0
    assert "median" in err
