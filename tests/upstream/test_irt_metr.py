"""METR's method on METR's own runs of February 2025, an early subset of what it published.

Skipped where the files are not at hand. The horizons are those of scikit-learn on the same rows, run
apart from this project; they are not METR's published ones, which rest on more runs.
"""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import irt

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "metr"
P50 = {  # minutes at a penalty of 1e-5 and of 0.1
    "Claude 3 Opus": ("4.737", "4.047"),
    "Claude 3.5 Sonnet (New)": ("60.94", "60.52"),
    "Claude 3.5 Sonnet (Old)": ("23.25", "22.07"),
    "GPT-4 0314": ("4.351", "3.657"),
    "GPT-4 Turbo": ("4.083", "3.442"),
    "GPT-4o": ("7.827", "6.981"),
    "o1": ("43.32", "42.45"),
    "o1-preview": ("38.24", "37.90"),
}


def _release_dates(path):
    """The file's one form: `date:`, then indented lines of a name and a date."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "date:"
    found = [re.fullmatch(r"  (.+): (\d{4}-\d\d-\d\d)", line) for line in lines[1:] if line.strip()]
    assert all(found)
    return {match[1]: match[2] for match in found}


@pytest.fixture(scope="module")
def data():
    if not (DATA / "runs_2025-02.csv.gz").is_file():
        pytest.skip("needs ../shared/upstream/irt/metr")
    with gzip.open(DATA / "runs_2025-02.csv.gz", "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with (DATA / "counts_2025-02.csv").open(encoding="utf-8", newline="") as stream:
        counts = list(csv.DictReader(stream))
    return SimpleNamespace(
        rows=rows,
        runs=[
            {"model": row["alias"], "item": row["task_id"], "k": int(row["score_binarized"])}
            for row in rows if row["alias"] != "human"
        ],
        counts=[
            {"model": row["alias"], "item": row["task_id"], "k": int(row["k"]), "n": int(row["n"])}
            for row in counts
        ],
        minutes={row["task_id"]: float(row["human_minutes"]) for row in rows},
        families={row["task_id"]: row["task_family"] for row in rows},
    )  # fmt: skip


@pytest.fixture(scope="module")
def fits(data):
    return [
        irt.metr(
            data.runs, data.minutes, weights="invsqrt", families=data.families, regularisation=lam
        )
        for lam in (1e-5, 0.1)
    ]


def test_the_figures_of_the_data(data):
    assert len(data.rows) == 7063
    assert len({row["alias"] for row in data.rows} - {"human"}) == 10
    assert sum(row["alias"] == "human" for row in data.rows) == 211
    assert len(data.minutes) == 83
    assert len(set(data.families.values())) == 36
    assert len(data.counts) == 748
    limited = [row for row in data.rows if row["fatal_error_from"] == "usageLimits"]
    assert len(limited) == 1912
    assert f"{np.mean([int(row['score_binarized']) for row in limited]):.3f}" == "0.027"


@pytest.mark.parametrize("model", P50)
def test_horizons_at_one_half(fits, model):
    for found, printed in zip(fits, P50[model], strict=True):
        minutes = found.minutes[0, found.model.index(model)]
        assert f"{minutes:.{len(printed.split('.')[1])}f}" == printed


def test_the_penalty_moves_the_horizon_at_four_fifths(fits):
    at = [found.to_dicts()[found.model.index("Claude 3 Opus")]["h80"] for found in fits]
    assert [f"{h:.3f}" for h in at] == ["0.364", "0.245"]


def test_a_model_that_solved_nothing_has_a_horizon_of_zero(fits):
    for found in fits:
        row = found.to_dicts()[found.model.index("davinci-002")]
        assert (row["h50"], row["h80"], row["slope"]) == (0.0, 0.0, None)
        assert row["flags"] == ["all_zero"]


def test_counts_and_runs_agree(data, fits):
    found = irt.metr(data.counts, data.minutes, weights="invsqrt", families=data.families)
    assert found.model == fits[0].model
    assert found.minutes.tobytes() == fits[0].minutes.tobytes()
    assert found.bootstrap(3).slope.tobytes() == fits[0].bootstrap(3).slope.tobytes()


@pytest.mark.parametrize("weights", ["equal", "invsqrt"])
def test_weights_are_those_of_the_files_own_columns(data, weights):
    """METR's file gives every run's weight, to ten decimals."""
    cells = irt.metr(data.runs, data.minutes, weights=weights, families=data.families).cells
    from irt._metr_cells import run_weights

    ours = run_weights(cells, weights)
    row_of, column_of = (
        {name: i for i, name in enumerate(names)} for names in (cells.items, cells.models)
    )
    for row in data.rows:
        if row["alias"] != "human":
            mine = ours[row_of[row["task_id"]], column_of[row["alias"]]]
            assert mine == pytest.approx(float(row[f"{weights}_task_weight"]), abs=1e-9)


def test_every_line_is_that_of_scikit_learn_on_the_single_runs(data, fits):
    from sklearn.linear_model import LogisticRegression

    for found, lam in zip(fits, (1e-5, 0.1), strict=True):
        for j, model in enumerate(found.model):
            rows = [row for row in data.rows if row["alias"] == model]
            y = [int(row["score_binarized"]) for row in rows]
            if not any(y):
                continue
            x = np.log2([[float(row["human_minutes"])] for row in rows])
            w = np.array([float(row["invsqrt_task_weight"]) for row in rows])
            other = LogisticRegression(C=1 / lam, solver="newton-cholesky", tol=1e-12)
            other.fit(x, y, sample_weight=w / w.sum())
            assert found.intercept[j] == pytest.approx(other.intercept_[0], abs=1e-6)
            assert found.slope[j] == pytest.approx(other.coef_[0, 0], abs=1e-6)


def test_the_bootstrap_and_the_trend(fits):
    found = fits[0]
    dates = _release_dates(DATA / "release_dates.yaml")
    assert len(dates) == 71
    draws = found.bootstrap(1000)
    assert draws.notes == ()
    low, high = draws.interval()
    solved = np.array([name != "davinci-002" for name in found.model])
    assert (low <= found.minutes[0]).all()
    assert (found.minutes[0] <= high).all()
    assert (high[solved] > low[solved]).all()
    line = found.trend(dates, draws=draws)
    assert line.undated == ("davinci-002",)  # the file calls it davinci-002 (GPT-3)
    assert line.model == (
        "gpt-3.5-turbo-instruct", "GPT-4 0314", "Claude 3 Opus", "GPT-4o", "Claude 3.5 Sonnet (Old)",
        "o1-preview", "Claude 3.5 Sonnet (New)",
    )  # fmt: skip
    assert line.lo < line.doubling_days < line.hi
    days = [
        (np.datetime64(dates[name]) - np.datetime64("2022-03-15")).astype(int)
        for name in line.model
    ]
    h50 = [found.minutes[0, found.model.index(name)] for name in line.model]
    assert line.slope == pytest.approx(np.polyfit(days, np.log(h50), 1)[0], rel=1e-9)


def test_bins_hold_every_task(data, fits):
    bins = fits[0].binned()
    j = fits[0].model.index("o1")
    edges = [1, 4, 16, 64, 256, 960, 2880]
    expected = np.histogram(list(data.minutes.values()), [0, *edges, 1e9])[0]
    assert bins.n_items[:, j].tolist() == expected.tolist()
    rows = [
        row for row in data.rows if row["alias"] == "o1" and 1 <= float(row["human_minutes"]) < 4
    ]
    w = np.array([float(row["invsqrt_task_weight"]) for row in rows])
    y = np.array([int(row["score_binarized"]) for row in rows])
    assert bins.rate[1, j] == pytest.approx(w @ y / w.sum(), abs=1e-6)
