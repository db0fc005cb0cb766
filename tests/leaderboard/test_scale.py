"""The page Scale: a stored fit as rows and as a visitor sees it."""

from __future__ import annotations

import json
import random
import re
import shutil
from functools import partial

import msgspec
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm

from harness.store import Store, snapshot
from harness.store.fits import find_fit
from harness.store.schema import connect
from leaderboard import ui
from leaderboard.exports import table_bytes
from leaderboard.rows.horizon import population
from leaderboard.rows.reference import bridge_hash
from leaderboard.rows.scale import (
    fit_choices,
    fit_command,
    flag_counts,
    link_rows,
    scale,
    scale_of,
)
from leaderboard.ui.markup import plain

SECOND_AXIS = "the same scale in human time"


def words(app) -> str:
    parts = [app.title, app.subheader, app.info, app.error, app.caption, app.markdown, app.code]
    tables = [frame.value.to_csv() for frame in app.dataframe]
    return "\n".join([element.value for part in parts for element in part] + tables)


def charts(app) -> str:
    return "\n".join(chart.proto.spec for chart in app.get("vega_lite_chart"))


@pytest.fixture
def change(fit_store, changed):
    """A copy of the store with a fit, after some SQL."""

    return partial(changed, fit_store)


@pytest.fixture(scope="module")
def unlinked_store(fit_store, tmp_path_factory) -> Store:
    """The same answers, fitted without human minutes."""
    from harness.runner.fitting import fit_store as fit

    root = tmp_path_factory.mktemp("unlinked") / "store"
    shutil.copytree(fit_store.root, root)
    store = Store.open(root)
    with connect(store.database) as con:
        for table in ("irt_fits", "irt_items", "irt_models"):
            con.execute(f"DELETE FROM {table}")
    fit(store)
    return store


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


def newest(store: Store):
    con = snapshot(store)
    return scale(con, fit_choices(con)[0].fit_id)


@pytest.mark.parametrize("name", ["scale", "horizon"])
def test_the_page_on_every_store(any_store, open_page, name):
    app = open_page(name, any_store)
    assert not app.exception
    assert app.title
    assert re.search(r"Script time \d+\.\d{3} s", app.caption[-1].value)


def test_without_a_fit_it_says_what_to_run(one_store, open_page):
    assert f"harness fit --store {one_store.root}" in words(open_page("scale", one_store))


def test_rows_are_those_of_the_store(fit_store):
    found = newest(fit_store)
    con = snapshot(fit_store)
    stored = con.execute(
        "SELECT item_id, a, b, se_b, n_models, human_minutes_hat, lo, hi FROM irt_items ORDER BY b DESC, item_id"
    ).fetchall()
    assert [
        (i.item_id, i.discrimination, i.difficulty_b, i.difficulty_se, i.n_responders,
         i.minutes_hat, i.hat_lo, i.hat_hi) for i in found.items
    ] == stored  # fmt: skip
    models = con.execute(
        "SELECT model, theta, se, n_items, horizon50_min, lo, hi, horizon80_min, lo80, hi80 "
        "FROM irt_models ORDER BY theta DESC"
    ).fetchall()
    assert [
        (m.model, m.ability, m.ability_se, m.n_answered, m.h50, m.h50_lo, m.h50_hi, m.h80,
         m.h80_lo, m.h80_hi) for m in found.models
    ] == models  # fmt: skip
    assert (len(found.items), len(found.models)) == (60, 12)


@pytest.fixture(scope="module")
def variants_store(write, tmp_path_factory) -> Store:
    """A model in full, quantised, and twice by one name that only the hash tells apart; timed items."""
    from harness.runner.fitting import fit_store as fit
    from harness.runner.human_minutes import read_minutes
    from harness.store import sync

    store = Store.open(tmp_path_factory.mktemp("variants") / "store")
    for m, how in enumerate([
        {"model": "hf:a"}, {"model": "hf:a", "quantisation": "int4"}, {"model": "hf:b"},
        {"model": "hf:c"},
        {"model": "hf:d"}, {"model": "hf:d-int8"},
    ]):  # fmt: skip
        rng = random.Random(m)
        values = [float(rng.random() < 1 / (1 + 2 ** (i / 8 - m / 2))) for i in range(40)]
        write(store, values, **how)
    # The same model, precision and so on from two places: only the hash differs.
    sync(store)
    with connect(store.database) as con:
        con.execute("UPDATE runs SET model = 'hf:d' WHERE model = 'hf:d-int8'")
        con.execute("UPDATE model_variants SET name = 'd' WHERE name LIKE 'd%'")
    minutes = store.root.parent / "minutes.csv"
    lines = [f"demo/add/demo-{i},{2 ** (i / 8):.4f}" for i in range(0, 40, 2)]
    minutes.write_text("item,human_minutes\n" + "\n".join(lines) + "\n")
    fit(store, minutes=read_minutes(minutes, None))
    return store


def test_variants_are_called_what_they_are(variants_store, open_page):
    con = snapshot(variants_store)
    fit_id = fit_choices(con)[0].fit_id
    stored = {m.model: m.theta for m in find_fit(con, fit_id).models}
    assert sum("[" in name for name in stored) == 4
    found = {m.model: m.ability for m in scale(con, fit_id).models}
    hashes = [
        variant[:8] for (variant,) in con.execute(
            "SELECT variant_id FROM runs WHERE model = 'hf:d' ORDER BY variant_id"
        ).fetchall()
    ]  # fmt: skip
    assert set(found) == {
        "hf:a float32 (single)", "hf:a float32 int4 (single)", "hf:b (single)", "hf:c (single)",
        *(f"hf:d float32 #{digits} (single)" for digits in hashes),
    }  # fmt: skip
    assert sorted(found.values()) == sorted(stored.values())
    own = population(con, fit_id)
    assert {m.model for m in own.models} == set(found)
    # What the link says of a model, it says of it under the new name as well.
    (level, *_) = [level for level in own.levels if level.used]
    assert level.best_minutes in [m.minutes for m in own.models]
    assert not [m for m in own.models if m.on_frontier and m.released is None]
    for name in ("scale", "horizon"):
        drawn = "\n".join(
            [charts(open_page(name, variants_store)), words(open_page(name, variants_store))]
        )
        assert "hf:a float32 int4" in drawn
        assert "hf:a [" not in drawn


def test_a_chart_on_a_page_has_its_words_beside_it_and_its_file_inside(
    fit_store, open_page, pictures
):
    app = open_page("scale", fit_store)
    for chart in app.get("vega_lite_chart"):
        assert "title" not in json.loads(chart.proto.spec)
    assert "**Test information**" in [text.value for text in app.markdown]
    said = [text.value for text in app.caption]
    assert any(text.startswith("The standard error of an ability is one over") for text in said)
    titles = [picture["title"] for picture in pictures]
    (information,) = [title for title in titles if title["text"] == "Test information"]
    assert information["subtitle"][0].startswith("The standard error of an ability is one over")


def test_intervals_of_abilities_are_normal(fit_store):
    for model in newest(fit_store).models:
        expected = norm.interval(0.95, model.ability, model.ability_se)
        assert (model.ability_lo, model.ability_hi) == pytest.approx(expected, abs=1e-5)


def test_the_second_axis_and_the_band_are_the_least_squares_line(fit_store):
    con = snapshot(fit_store)
    whole = find_fit(con, fit_choices(con)[0].fit_id)
    rows, band, notes = link_rows(whole)
    # Every second item was timed: 2 ** (i / 10) minutes.
    assert {row.item: row.minutes for row in rows} == {
        f"demo/add/demo-{i}": pytest.approx(2 ** (i / 10), abs=1e-4) for i in range(0, 60, 2)
    }
    b = np.array([row.b for row in rows])
    ols = sm.OLS(np.log([row.minutes for row in rows]), sm.add_constant(b)).fit()
    line = scale_of(whole).link
    assert (line.intercept, line.slope) == pytest.approx(tuple(ols.params), abs=1e-9)
    grid = sm.add_constant(np.array([row.b for row in band]))
    predicted = ols.get_prediction(grid)
    assert [row.minutes for row in band] == pytest.approx(np.exp(predicted.predicted_mean))
    half = norm.ppf(0.975) * predicted.se_obs
    assert [row.hi for row in band] == pytest.approx(np.exp(predicted.predicted_mean + half))
    assert [row.lo for row in band] == pytest.approx(np.exp(predicted.predicted_mean - half))
    assert f"R² {ols.rsquared:.3f}" in notes[0]


def test_a_linked_fit_reads_in_minutes(fit_store, open_page):
    app = open_page("scale", fit_store)
    assert SECOND_AXIS in charts(app)
    assert "not linked" not in words(app)
    models = next(f.value for f in app.dataframe if "ability" in f.value)
    assert list(models["h50"]) == [m.h50 for m in newest(fit_store).models]
    assert "Verdict **converged**" in words(app)


def test_an_unlinked_fit_shows_no_minutes(unlinked_store, open_page):
    app = open_page("scale", unlinked_store)
    assert not app.exception
    assert "not linked: no shared items or models" in words(app)
    assert SECOND_AXIS not in charts(app)
    for frame in app.dataframe:
        assert not {"h50", "h80", "h50_interval", "minutes_hat", "minutes_known"} & set(
            frame.value.columns
        )
    for model in newest(unlinked_store).models:
        assert (model.h50, model.h50_lo, model.h80) == (None, None, None)


def test_what_has_not_converged_is_said_loudly(change, open_page):
    app = open_page("scale", change("UPDATE irt_fits SET converged = false"))
    assert app.error[0].value.startswith("NOT CONVERGED")
    assert "Verdict **not converged**" in words(app)


def test_marks_are_counted_explained_and_chosen(change, open_page):
    store = change(
        "UPDATE irt_items SET flags = ['suspect_key'] WHERE item_id IN ('demo-3', 'demo-5')",
        "UPDATE irt_items SET flags = ['prior_only'] WHERE item_id = 'demo-0'",
        "UPDATE irt_items SET flags = [] WHERE item_id NOT IN ('demo-0', 'demo-3', 'demo-5')",
    )
    counts = {row["flag"]: (row["n_flagged"], row["meaning"]) for row in flag_counts(newest(store))}
    assert {flag: n for flag, (n, _) in counts.items()} == {"prior_only": 1, "suspect_key": 2}
    assert "better models do worse" in counts["suspect_key"][1]
    app = open_page("scale", store, marks=["suspect_key"])
    items = next(f.value for f in app.dataframe if "difficulty_b" in f.value)
    assert sorted(items["item_name"]) == ["demo/add/demo-3", "demo/add/demo-5"]
    assert "1 of 60 items were answered all right or all wrong" in words(app)


def test_chosen_items_stand_out(fit_store, open_page):
    app = open_page("scale", fit_store, items=["demo/add/demo-7"])
    assert not app.exception
    curves = next(
        json.loads(c.proto.spec) for c in app.get("vega_lite_chart")
        if "chance of success" in c.proto.spec
    )  # fmt: skip
    assert '"domain": ["demo/add/demo-7"]' in json.dumps(curves)


def test_answers_of_bridge_carry_their_attribution(change, open_page, tables, pictures):
    app = open_page("scale", change(f"UPDATE irt_fits SET data_hash = '{bridge_hash()}'"))
    for wanted in (
        "CC BY 4.0",
        "Liu et al. 2026, arXiv 2602.07267",
        "McGill-NLP/BRIDGE, commit 6a1b821",
    ):
        assert wanted in words(app)
    assert len(pictures) == len(app.get("vega_lite_chart")) == 5
    for picture in pictures:
        assert "BRIDGE, arXiv 2602.07267, CC BY 4.0" in picture["title"]["text"]
        assert f"**{plain(picture['title']['text'])}**" in [text.value for text in app.markdown]
    for key in ("fit_models", "fit_items"):
        rows, facts = tables[key]
        for form in ("csv", "json"):
            told = table_bytes(rows, form, None, facts).decode()
            assert told.count("CC BY 4.0") == told.count("6a1b821") == len(rows)


def test_own_answers_carry_none(fit_store, open_page, tables):
    app = open_page("scale", fit_store)
    assert "CC BY 4.0" not in words(app) + charts(app)
    rows, facts = tables["fit_items"]
    (first, *_) = msgspec.json.decode(table_bytes(rows, "json", None, facts))
    assert first["fit_id"] == newest(fit_store).fit.fit_id
    assert first["difficulty_b"] == rows[0].difficulty_b


def test_the_command_makes_the_fit_again(fit_store, unlinked_store):
    linked, plain = (newest(store).fit for store in (fit_store, unlinked_store))
    assert fit_command(plain, "results") == (
        "harness fit --method joint --task demo/add --store results"
    )
    assert "--human-minutes FILE --link ols" in fit_command(linked, "results")


def test_items_of_two_versions_are_two_items(fit_store):
    con = snapshot(fit_store)
    whole = find_fit(con, fit_choices(con)[0].fit_id)
    other = msgspec.structs.replace(whole.items[0], version="2")
    whole.items.append(other)
    found = scale_of(whole)
    names = [item.item_name for item in found.items]
    assert len(set(names)) == len(names) == 61
    assert {f"demo/add/{other.item_id} (version {v})" for v in "12"} <= set(names)
    assert len({row.item for row in found.curves}) == 61


def test_names_of_others_are_no_markup(change, open_page):
    store = change(
        "UPDATE irt_fits SET verdict_json = replace(verdict_json, 'converged after', "
        "'![x](http://example.org/x.png) after')"
    )
    app = open_page("scale", store)
    said = next(m.value for m in app.markdown if "example" in m.value)
    assert "![x](" not in said
    assert "\\!\\[x\\]\\(http" in said
