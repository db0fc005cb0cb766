"""BRIDGE's link, horizons and doubling times: from its published parameters, and from our own fit.

Skipped where its files are not at hand. Upstream converts slopes to months with 2.26, its e^β rounded;
we take the link's own β, which moves 5.72 months to 5.73.
"""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import irt
from harness.core.resources import data
from irt.horizon import horizons, rolling_difficulty
from irt.link import fit_link, regress
from irt.minutes import bucket_accuracy, bucket_kappa, bucket_macro_f1, within_factor
from irt.trend import as_date, bootstrap, doubling, link_sensitivity, trend

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "irt" / "bridge"
ROUNDED = np.log(2.26)  # hard-coded upstream, per unit of published b


def _table(name):
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def bridge():
    """Published parameters: items with source and minutes, dated models without gpt2, the link."""
    if not (DATA / "all_a_pyirt.jsonl").is_file():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    items = {row["item_id"]: row for row in _table("items.csv")}
    params = _table("published_item_params.csv")
    source = np.array([items[row[""]]["source"] for row in params])
    minutes = np.array([float(items[row[""]]["human_minutes"] or "nan") for row in params])
    a, b = (np.array([float(row[name]) for row in params]) for name in "ab")
    able = {
        row["subject_id"]: row
        for row in _table("published_abilities.csv")
        if row["release_time"] and row["subject_id"] != "gpt2"
    }
    base = {
        row[""]: float(row["baseline_difficulty_logit"])
        for row in _table("published_baseline_items.csv")
    }
    metr = source == "metr"
    return SimpleNamespace(
        keys=[row[""] for row in params], source=source, minutes=minutes, a=a, b=b, metr=metr,
        models=list(able), theta=np.array([float(row["ability"]) for row in able.values()]),
        dates={name: row["release_time"] for name, row in able.items()},
        days=[as_date(row["release_time"]) for row in able.values()],
        base=np.array([base[row[""]] for row in params]), link=regress(b[metr], minutes[metr]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def ours(bridge):
    fit = irt.fit(irt.read(DATA / "all_a_pyirt.jsonl"))
    minutes = {
        k: h
        for k, h, is_metr in zip(bridge.keys, bridge.minutes, bridge.metr, strict=True)
        if is_metr
    }
    return SimpleNamespace(fit=fit, minutes=minutes, link=fit_link(fit, minutes))


def test_the_published_link(bridge):
    assert bridge.link.n_anchors == 170
    assert bridge.link.beta == pytest.approx(0.814168, abs=5e-7)
    assert bridge.link.alpha == pytest.approx(2.584711, abs=5e-7)
    assert bridge.link.r2 == pytest.approx(0.8051, abs=5e-5)


def test_published_agreement_on_swebench_and_cybench(bridge):
    swe, cyber = bridge.source == "swebench", bridge.source == "cybench"
    assert (swe.sum(), cyber.sum()) == (500, 15)
    known, predicted = bridge.minutes[swe], bridge.link.predict(bridge.b[swe]).median
    assert bucket_accuracy(known, predicted) == pytest.approx(0.416, abs=1e-9)
    assert bucket_macro_f1(known, predicted) == pytest.approx(0.284, abs=5e-4)
    assert bucket_kappa(known, predicted) == pytest.approx(0.231, abs=5e-4)
    assert within_factor(bridge.minutes[cyber], bridge.link.predict(bridge.b[cyber]).median) == 14


def test_the_published_baseline(bridge):
    """Logit of the failure rate in place of b, 185 items with measured times."""
    swe, cyber = bridge.source == "swebench", bridge.source == "cybench"
    chosen = bridge.metr | cyber
    link = regress(bridge.base[chosen], bridge.minutes[chosen])
    assert link.n_anchors == 185
    assert link.beta == pytest.approx(0.322095, abs=5e-7)
    assert link.alpha == pytest.approx(1.176389, abs=5e-7)
    assert link.r2 == pytest.approx(0.6306, abs=5e-5)
    predicted = link.predict(bridge.base).median
    assert bucket_accuracy(bridge.minutes[swe], predicted[swe]) == pytest.approx(0.386, abs=1e-9)
    assert within_factor(bridge.minutes[cyber], predicted[cyber]) == 2


def _published(line, beta):
    """Slope and its ends in units of published b, then months by upstream's rounded constant."""
    slope, ends = line.slope / beta, bootstrap(line) / beta
    return (slope, *ends), tuple(np.log(2) / ROUNDED / x for x in (slope, ends[1], ends[0]))


def test_the_published_doubling_time_at_half(bridge):
    line = trend(bridge.models, bridge.link.log_minutes(bridge.theta), bridge.days)
    assert len(bridge.models) == 36
    assert len(line.model) == 9
    slopes, months = _published(line, bridge.link.beta)
    assert slopes == pytest.approx((0.1486, 0.1253, 0.1857), abs=5.1e-5)
    assert months == pytest.approx((5.72, 4.58, 6.78), abs=5.1e-3)
    assert line.doubling == pytest.approx(5.72, abs=0.01)  # with the slope itself, not 2.26
    assert np.exp(line.log_minutes.max()) == pytest.approx(116, abs=0.5)


def test_the_published_doubling_time_at_four_fifths(bridge):
    """Two models of one day: upstream's unstable sort keeps one at .8 and both at .5."""
    hard = rolling_difficulty(bridge.theta, bridge.a, -bridge.a * bridge.b, 0.8)
    logs = bridge.link.log_minutes(hard)
    line = trend(bridge.models, logs, bridge.days)
    assert len(line.model) == 9
    assert _published(line, bridge.link.beta)[1] == pytest.approx((6.24, 4.29, 7.98), abs=7e-3)
    others = [i for i, name in enumerate(bridge.models) if name != "gpt-3"]
    line = trend([bridge.models[i] for i in others], logs[others], [bridge.days[i] for i in others])
    assert len(line.model) == 8
    slopes, months = _published(line, bridge.link.beta)
    assert slopes == pytest.approx((0.1375, 0.1065, 0.2390), abs=5.1e-5)
    assert months == pytest.approx((6.18, 3.56, 7.99), abs=5.1e-3)


def test_our_link_and_doubling_time(bridge, ours):
    assert ours.link.r2 >= 0.80
    assert (ours.link.beta, ours.link.alpha) == pytest.approx((1.521, 2.570), abs=2e-3)
    found = doubling(ours.fit, ours.link, bridge.dates, n=2000)
    assert 5.3 <= found.months <= 6.3
    assert found.months == pytest.approx(5.83, abs=0.02)
    assert (found.lo, found.hi) == pytest.approx((5.2, 6.5), abs=0.1)
    assert found.best == "claude-4.5-opus-medium"
    assert found.best_minutes == pytest.approx(118, abs=1)
    assert (found.best_lo, found.best_hi) == pytest.approx((67, 178), rel=0.06)
    assert len(found.undated) == 140
    assert "gpt2" in found.undated


def test_a_slope_hard_coded_for_the_published_unit_would_be_far_off(bridge, ours):
    found = doubling(ours.fit, ours.link, bridge.dates, n=20)
    a_unit = found.slope / ours.link.beta
    assert np.log(2) / (ROUNDED * a_unit) > 10  # months: twice what is right


def test_the_level_of_the_link_moves_minutes_more_than_months(bridge, ours):
    found = link_sensitivity(ours.fit, ours.minutes, bridge.dates, n=200)
    plain, weighted = found["ols"], found["weighted"]
    assert weighted.best_minutes / plain.best_minutes > 1.4
    assert weighted.months == pytest.approx(5.5, abs=0.1)


def test_horizons_at_four_fifths_by_both_rules(ours, bridge):
    typical, pool = (
        horizons(ours.fit, ours.link, 0.8, rule=rule, n=20) for rule in ("typical", "bridge")
    )
    dated = [j for j, name in enumerate(ours.fit.models.model) if name in bridge.dates]
    ratio = pool.minutes[dated] / typical.minutes[dated]
    assert 0.5 < np.median(ratio) < 2
    assert "no crossing of 0.8" in pool.notes[-1]


def test_the_small_table_of_published_figures_is_that_of_the_source(bridge):
    with data("published/bridge.csv").open(encoding="utf-8", newline="") as stream:
        table = {row["model"]: row for row in csv.DictReader(stream)}
    assert {name: row["release_date"] for name, row in table.items()} == bridge.dates
    abilities = [float(table[name]["ability"]) for name in bridge.models]
    assert abilities == pytest.approx(bridge.theta, abs=5.1e-7)
    with data("published/bridge_link.csv").open(encoding="utf-8", newline="") as stream:
        (link,) = csv.DictReader(stream)
    found = bridge.link
    assert (float(link["slope"]), float(link["intercept"])) == pytest.approx(
        (found.beta, found.alpha), abs=5e-7
    )
    assert (float(link["r_squared"]), int(link["n_items"])) == (
        pytest.approx(found.r2, abs=5e-5),
        170,
    )
