"""The page Horizon: own models beside a published population, which is in none of their numbers."""

from __future__ import annotations

import csv
import json
import math
import shutil
import tomllib
from datetime import date
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from harness.core.resources import data
from harness.store import Store, snapshot
from harness.store.fits import find_fit
from harness.store.schema import connect
from leaderboard import ui
from leaderboard.exports import table_bytes
from leaderboard.rows import horizon as module
from leaderboard.rows.horizon import population, population_of, published
from leaderboard.rows.reference import bridge_hash, published_figures
from leaderboard.rows.scale import fit_choices

SOURCE = "Liu et al. 2026, arXiv 2602.07267; McGill-NLP/BRIDGE, commit 6a1b821"
# Ten of the twelve models of the fixture are dated.
DATES = {f"hf:m{m} (single)": date(2023 + m // 5, 1 + 2 * (m % 5), 15) for m in range(10)}


def words(app) -> str:
    parts = [app.title, app.subheader, app.info, app.error, app.caption, app.markdown, app.code]
    tables = [frame.value.to_csv() for frame in app.dataframe]
    return "\n".join([element.value for part in parts for element in part] + tables)


def chart(app) -> dict:
    (found,) = app.get("vega_lite_chart")
    return json.loads(found.proto.spec)


def points(app) -> dict[str, list[dict]]:
    """The drawn points by what the legend calls them."""
    (drawn,) = app.get("vega_lite_chart")
    rows = {one.name: read_table(one.data.data).to_pylist() for one in drawn.proto.datasets}
    found: dict[str, list[dict]] = {}
    for layer in chart(app)["layer"]:
        if layer["mark"].get("type") == "point":
            for value in rows[layer["data"]["name"]]:
                found.setdefault(value["kind_name"], []).append(value)
    return found


def read_table(sent: bytes) -> pa.Table:
    return pa.ipc.open_stream(sent).read_all()


@pytest.fixture(scope="module")
def dated_store(fit_store, tmp_path_factory) -> Store:
    """The answers of the fixture twice: without human minutes, then with them and release dates."""
    from harness.runner.fitting import fit_store as fit
    from harness.runner.human_minutes import read_minutes

    root = tmp_path_factory.mktemp("dated") / "store"
    shutil.copytree(fit_store.root, root)
    store = Store.open(root)
    with connect(store.database) as con:
        for table in ("irt_fits", "irt_items", "irt_models"):
            con.execute(f"DELETE FROM {table}")
    fit(store)
    dates = root.parent / "dates.csv"
    lines = [f"{name},{day.isoformat()}" for name, day in DATES.items()]
    dates.write_text("model,release_date\n" + "\n".join(lines) + "\n")
    minutes = fit_store.root.parent / "minutes.csv"
    fit(store, minutes=read_minutes(minutes, dates, None, "ols"))
    return store


@pytest.fixture
def change(dated_store, changed):
    """A copy of the dated store, after some SQL."""

    return partial(changed, dated_store)


@pytest.fixture
def tables(monkeypatch):
    """What the page hands to its tables, by key: rows and facts."""
    seen: dict = {}
    there = ui.table

    def spy(rows, columns, key, **options):
        seen[key] = (rows, options.get("facts"))
        return there(rows, columns, key, **options)

    monkeypatch.setattr(ui, "table", spy)
    return seen


def newest(store: Store, q: int = 50):
    con = snapshot(store)
    return population(con, fit_choices(con)[0].fit_id, q)


def unlinked_id(store: Store) -> str:
    (name,) = snapshot(store).execute(
        "SELECT fit_id FROM irt_fits WHERE link_json IS NULL"
    ).fetchone()  # fmt: skip
    return name


def test_the_published_doubling_time_is_reproduced_from_the_table():
    """Frontier by hand, the line by numpy; the authors print 5.7 [4.6, 6.8] months and 116 minutes."""
    with data("published/bridge.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda r: (r["release_date"], float(r["ability"])))
    front: list[dict] = []
    for row in rows:  # 0.2 in published units of ability, which is 0.163 in log-minutes
        if not front or float(row["ability"]) > float(front[-1]["ability"]) + 0.163 / 0.814168:
            front.append(row)
    months = [
        12 * d.year + d.month - 1 for d in (date.fromisoformat(r["release_date"]) for r in front)
    ]
    slope = 0.814168 * np.polyfit(months, [float(r["ability"]) for r in front], 1)[0]
    found = published()
    assert found.trend.frontier == [row["model"] for row in front]
    assert found.basis.months == pytest.approx(math.log(2) / slope, rel=1e-9)
    figures = tomllib.loads(data("published/bridge_figures.toml").read_text())["figures"]
    (printed,) = (f for f in figures if f["key"] == "doubling50")
    assert (printed["value"], printed["lo"], printed["hi"]) == (5.7, 4.6, 6.8)
    ends = (found.basis.months, found.basis.months_lo, found.basis.months_hi)
    assert [round(x, 1) for x in ends] == [5.7, 4.6, 6.8]
    assert found.basis.best_minutes == pytest.approx(116, abs=0.5)
    assert found.basis.best_minutes == pytest.approx(math.exp(2.584711 + 0.814168 * 2.666692))
    assert len(found.models) == len(found.horizons) == 36


def test_published_figures_claim_no_interval_they_do_not_have():
    assert {(m.minutes_lo, m.minutes_hi) for m in published().models} == {(None, None)}


def test_without_a_fit_the_reference_is_drawn_and_the_command_said(one_store, open_page):
    app = open_page("horizon", one_store)
    assert not app.exception
    assert f"harness fit --store {one_store.root}" in words(app)
    drawn = points(app)
    assert {kind: len(rows) for kind, rows in drawn.items()} == {"published figures": 36}
    assert "5.73 months [4.58, 6.79]" in words(app)


def test_rows_are_those_of_the_store(dated_store):
    found = newest(dated_store)
    stored = snapshot(dated_store).execute(
        "SELECT model, theta, horizon50_min, lo, hi FROM irt_models WHERE horizon50_min IS NOT NULL "
        "ORDER BY theta DESC"
    ).fetchall()  # fmt: skip
    assert [
        (m.model, m.ability, m.minutes, m.minutes_lo, m.minutes_hi) for m in found.models
    ] == stored
    assert {m.model: m.released for m in found.models if m.released} == DATES
    undated = [m.model for m in found.models if "no release date" in m.notes]
    assert sorted(undated) == ["hf:m10 (single)", "hf:m11 (single)"]
    assert (found.kind, found.basis.n_population, found.basis.n_dated) == ("own", 12, 10)
    assert found.basis.n_anchors == 30


def test_the_doubling_time_is_the_line_through_the_frontier(dated_store):
    found = newest(dated_store)
    front = [m for m in found.models if m.on_frontier]
    months = [12 * m.released.year + m.released.month - 1 for m in front]
    slope = np.polyfit(months, np.log([m.minutes for m in front]), 1)[0]
    assert found.basis.months == pytest.approx(math.log(2) / slope, rel=1e-9)
    assert found.basis.months_lo < found.basis.months < found.basis.months_hi
    assert found.basis.best_minutes == max(m.minutes for m in found.models if m.released)


def test_own_and_published_models_stand_side_by_side(dated_store, open_page):
    app = open_page("horizon", dated_store)
    assert not app.exception
    assert {kind: len(rows) for kind, rows in points(app).items()} == {
        "own runs": 10, "published figures": 36,
    }  # fmt: skip
    scales = json.dumps(chart(app))
    assert '"range": ["circle", "diamond"]' in scales
    basis = next(f.value for f in app.dataframe if "n_anchors" in f.value)
    assert list(basis["origin"]) == ["own runs", "published figures"]
    assert list(basis["months"]) == [newest(dated_store).basis.months, published().basis.months]
    levels = next(f.value for f in app.dataframe if "link_level" in f.value and "used" in f.value)
    assert list(levels["link_level"]) == ["ols", "weighted", "joint"]
    assert list(levels["used"]) == ["yes", "", ""]
    assert levels["months"].notna().all()
    undated = [f.value for f in app.dataframe if "minutes" in f.value and "released" not in f.value]
    assert sorted(undated[0]["model"]) == ["hf:m10 (single)", "hf:m11 (single)"]


def test_an_unlinked_model_shows_no_minutes(dated_store, open_page):
    app = open_page("horizon", dated_store, fit=unlinked_id(dated_store))
    assert not app.exception
    assert "not linked: no shared items or models" in app.info[0].value
    assert set(points(app)) == {"published figures"}
    shown = 0
    for frame in (f.value for f in app.dataframe if "model" in f.value):
        own = frame[frame["model"].str.startswith("hf:")]
        shown += len(own)
        assert own.empty or not [c for c in frame.columns if "minutes" in c or c.startswith("h50")]
    assert shown == 12
    basis = next(f.value for f in app.dataframe if "n_anchors" in f.value)
    own = basis[basis["origin"] == "own runs"].iloc[0]
    assert own["link_level"] == "not linked"
    assert math.isnan(own["months"])
    assert math.isnan(own["best_minutes"])


def test_a_published_figure_is_in_no_number_of_ours(dated_store, open_page, monkeypatch):
    before = open_page("horizon", dated_store)
    honest = newest(dated_store)
    absurd = msgspec.structs.replace(module.published_models()[-1], log_minutes=30.0)
    planted = (*module.published_models()[:-1], absurd)
    monkeypatch.setattr(module, "published_models", lambda: planted)
    module.published.cache_clear()
    try:
        after = open_page("horizon", dated_store)
    finally:
        module.published.cache_clear()
    tables = [
        next(f.value for f in app.dataframe if "n_anchors" in f.value) for app in (before, after)
    ]
    own = [t[t["origin"] == "own runs"].iloc[0].to_dict() for t in tables]
    assert own[0] == own[1]
    theirs = [t[t["origin"] == "published figures"].iloc[0]["best_minutes"] for t in tables]
    assert theirs == [pytest.approx(116, abs=0.5), pytest.approx(math.exp(30))]
    assert newest(dated_store) == honest


def test_at_eighty_percent_the_stored_horizons_and_no_published_ones(dated_store, open_page):
    stored = dict(
        snapshot(dated_store)
        .execute("SELECT model, horizon80_min FROM irt_models WHERE horizon80_min IS NOT NULL")
        .fetchall()
    )
    found = newest(dated_store, 80)
    assert {m.model: m.minutes for m in found.models} == stored
    app = open_page("horizon", dated_store, q="80")
    assert set(points(app)) == {"own runs"}
    assert "80 %" in json.dumps(chart(app))
    assert "The published table has 50 % horizons only" in words(app)
    placed = next(f.value for f in app.dataframe if "released" in f.value)
    assert set(placed["origin"]) == {"own runs"}
    # By the rule of the typical item one factor for all, so frontier and doubling time are the same.
    halves = {m.model: m.minutes for m in newest(dated_store).models}
    factors = [stored[name] / halves[name] for name in stored]
    assert factors == pytest.approx([factors[0]] * len(factors))


def test_a_fit_of_the_published_answers_is_told_apart(change, open_page, tables):
    store = change(f"UPDATE irt_fits SET data_hash = '{bridge_hash()}' WHERE link_json IS NOT NULL")
    app = open_page("horizon", store)
    # The own fit, unlinked here, is chosen; the other one is drawn as the reference.
    assert {kind: len(rows) for kind, rows in points(app).items()} == {
        "published answers, fitted here": 10, "published figures": 36,
    }  # fmt: skip
    rows, facts = tables["horizons"]
    told = msgspec.json.decode(table_bytes(rows, "json", None, facts))
    assert {(row["source"], row["license"]) for row in told} == {(SOURCE, "CC BY 4.0")}
    assert '"range": ["square", "diamond"]' in json.dumps(chart(app))


@pytest.mark.parametrize("name", ["one_store", "fit_store", "dated_store"])
def test_the_attribution_is_on_page_picture_and_files(request, open_page, tables, pictures, name):
    app = open_page("horizon", request.getfixturevalue(name))
    said = f"Published data: {SOURCE}; CC BY 4.0."
    assert said in [caption.value for caption in app.caption]
    (picture,) = pictures
    assert said in json.dumps(picture["title"])
    for key in ("basis", "horizons", "published_figures"):
        rows, facts = tables[key]
        told = msgspec.json.decode(table_bytes(rows, "json", None, facts))
        theirs = [row for row in told if row["license"] == "CC BY 4.0"]
        assert theirs
        assert {row["source"] for row in theirs} == {SOURCE}
        for row in told:
            if row["license"] == "":
                assert row["source"] == "runs of this store"
                assert row["origin"] == "own runs"


def test_what_has_not_converged_is_said_loudly(change, open_page):
    app = open_page("horizon", change("UPDATE irt_fits SET converged = false"))
    assert app.error[0].value.startswith("NOT CONVERGED: own runs")
    basis = next(f.value for f in app.dataframe if "n_anchors" in f.value)
    assert list(basis["verdict"]) == ["NOT CONVERGED", "not known"]


def test_a_population_can_be_hidden(dated_store, open_page):
    app = open_page("horizon", dated_store, hide=["own runs"])
    assert set(points(app)) == {"published figures"}
    app = open_page("horizon", dated_store, frontier="published figures")
    assert "5.73 months [4.58, 6.79]" in words(app)


def test_dates_that_the_store_recorded_stand_in_where_the_fit_has_none(fit_store):
    con = snapshot(fit_store)
    whole = find_fit(con, fit_choices(con)[0].fit_id)
    variant = whole.models[0].variant_id
    found = population_of(whole, recorded={variant: date(2026, 2, 1)})
    assert [row.label for row in found.horizons] == [whole.models[0].model]
    assert found.trend is None
    assert population_of(whole).horizons == []
    # Without dates the levels move the longest horizon of all models.
    assert {row.notes for row in found.levels} == {"longest of all models: none has a release date"}
    assert found.levels[0].best_minutes == max(m.horizon50_min for m in whole.models)


def test_a_level_that_a_fit_cannot_have_says_so(dated_store):
    con = snapshot(dated_store)
    whole = find_fit(con, fit_choices(con)[0].fit_id)
    for name in ("h50", "sensitivity"):
        del whole.fit.link[name]["joint"]
    *_, joint = population_of(whole).levels
    assert (joint.link_level, joint.months, joint.best_minutes) == ("joint", None, None)
    assert joint.notes == "not with this method or these scores"


def test_published_figures_stand_beside_those_of_the_same_answers():
    (name, *_) = (f.figure_name for f in published_figures())
    beside = {
        "figures": [{"name": name, "ours": {"value": 0.8328}, "published": {"value": 0.8051}}]
    }
    found = published_figures(beside)
    assert (found[0].published, found[0].here) == (0.8051, 0.8328)
    assert {f.here for f in found[1:]} == {None}


def test_a_frontier_that_is_hidden_gives_way_to_another(dated_store, open_page):
    app = open_page("horizon", dated_store, frontier="published figures")
    app.multiselect(key="hide").select("published figures").run()
    assert not app.exception
    assert "Doubling time, own runs" in words(app)
    app.selectbox(key="fit").select(unlinked_id(dated_store)).run()
    assert not app.exception


def test_minutes_borrowed_through_models_name_them_as_anchors(dated_store):
    con = snapshot(dated_store)
    whole = find_fit(con, fit_choices(con)[0].fit_id)
    link = {k: v for k, v in whole.fit.link.items() if k in ("slope", "intercept", "r2", "tau",
            "centroid", "se_slope", "se_mean", "notes")}  # fmt: skip
    whole.fit.link = link | {
        "level": "models", "n_anchors": 3, "known_minutes": {}, "tests": [],
        "h50": {"models": {m.model: m.horizon50_min for m in whole.models}},
        "shared_models": [m.model for m in whole.models[:3]],
    }  # fmt: skip
    found = population_of(whole)
    assert (found.basis.link_level, found.basis.n_anchors, found.levels) == ("models", 3, [])
    assert (found.trend, found.reason) == (None, "")
    assert all(m.minutes is not None for m in found.models)
