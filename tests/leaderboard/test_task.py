"""The page Task: items and facts against plain SQL and hand values; figures of others stay apart."""

from __future__ import annotations

import math

import pytest
from statsmodels.stats.power import TTestPower

from harness.store import snapshot, sync
from harness.store.publish import publish
from harness.store.schema import connect
from leaderboard.rows.board import board, task_versions
from leaderboard.rows.task import ablations, published, task_facts, task_items


def test_facts_are_what_the_runs_have_stated(partial_store):
    facts = task_facts(snapshot(partial_store), "demo/add", "1")
    assert (facts.license, facts.metric, facts.dataset_sha256) == ("CC0-1.0", "accuracy", "d" * 64)
    assert (facts.n_items, facts.n_clusters, facts.n_categories) == (10, 10, 2)
    assert dict(facts.protocol)["solver"] == "generate"
    power = TTestPower().solve_power(effect_size=None, nobs=10, alpha=0.05, power=0.8)
    assert facts.mde == pytest.approx(0.5 * power, rel=1e-6)


def test_clusters_count_as_items_in_the_detectable_difference(store, write):
    write(store, [1.0, 0.0] * 6, clusters=["x"] * 4 + ["y"] * 4 + [None] * 4)
    sync(store)
    facts = task_facts(snapshot(store), "demo/add", "1")
    assert (facts.n_items, facts.n_clusters) == (12, 6)
    power = TTestPower().solve_power(effect_size=None, nobs=6, alpha=0.05, power=0.8)
    assert facts.mde == pytest.approx(0.5 * power, rel=1e-6)


def test_difficulty_is_the_mean_over_models_without_baselines(partial_store):
    items = {item.item: item for item in task_items(snapshot(partial_store), "demo/add", "1")}
    # hf:a solved demo-0 and demo-3 of five that count; hf:b solved the even ones; mock:gold all.
    assert (items["demo-0"].mean, items["demo-0"].n_models) == (1.0, 2)
    assert (items["demo-1"].mean, items["demo-1"].n_models) == (0.0, 2)
    assert (items["demo-3"].mean, items["demo-3"].n_models) == (0.5, 2)
    assert (items["demo-9"].mean, items["demo-9"].n_models) == (0.0, 1)
    assert items["demo-0"].difficulty == pytest.approx(math.log(0.5 / 2.5))
    assert items["demo-3"].difficulty == 0.0


def test_the_same_item_id_of_another_task_or_version_is_another_item(store, write):
    write(store, [1.0] * 4)
    write(store, [0.0] * 4, task="demo/mul")
    write(store, [0.0] * 4, version="2", model="hf:b")
    sync(store)
    con = snapshot(store)
    assert {item.mean for item in task_items(con, "demo/add", "1")} == {1.0}
    # The fault that this is about: by item_id alone all four would be at 1/3.
    alone = con.execute("SELECT avg(mean) FROM item_scores GROUP BY item_id").fetchall()
    assert alone == [(pytest.approx(1 / 3),)] * 4


def test_items_of_many_models_equal_plain_sql(many_store):
    con = snapshot(many_store)
    expected = dict(con.execute(
        "SELECT item_id, avg(value) FROM scores WHERE task_id = 'many/task3' GROUP BY item_id"
    ).fetchall())  # fmt: skip
    found = task_items(con, "many/task3", "1")
    assert {item.item: item.mean for item in found} == pytest.approx(expected)
    assert [item.mean for item in found] == sorted(expected.values())


def test_published_figures_stand_alone(store, write, open_page):
    write(store, [1.0, 0.0, 0.0, 0.0])
    write(store, [1.0, 1.0, 0.0, 0.0], model="hf:b")
    sync(store)

    def numbers():
        con = snapshot(store)
        rows = board(con, (("demo/add", "1"),)).rows
        items = task_items(con, "demo/add", "1")
        return [(r.model, r.value, r.lo, r.rank_lo) for r in rows], [i.mean for i in items]

    before = numbers()
    with connect(store.database) as con:
        con.execute(
            "INSERT INTO published_results (source, model_name, task_id, metric, value, license) "
            "VALUES ('a paper', 'hf:a', 'demo/add', 'accuracy', 0.99, 'CC BY 4.0')"
        )
    publish(store)
    assert numbers() == before
    (row,) = published(snapshot(store), "demo/add")
    assert (row.model, row.figure, row.source) == ("hf:a", 0.99, "a paper")
    app = open_page("task", store)
    frames = [frame.value for frame in app.dataframe]
    with_figure = [frame for frame in frames if "figure" in frame.columns]
    assert len(with_figure) == 1
    assert not any("0.99" in frame.to_csv() for frame in frames if "figure" not in frame.columns)


def test_figures_that_the_project_knows_stand_on_their_task(store, write, open_page):
    write(store, [1.0, 0.0, 0.0, 0.0], task="aicrypto/ctf")
    sync(store)
    rows = published(snapshot(store), "aicrypto/ctf")
    # The paper's pass@3: 56.0 % for the best model, 81.2 % for people (on other challenges).
    assert {(r.model, r.metric, r.figure) for r in rows} == {
        ("best of 17 models", "pass@3", 0.56), ("human experts", "pass@3", 0.812),
    }  # fmt: skip
    assert all("challenges" in r.note and r.source and r.url for r in rows)
    frames = [frame.value for frame in open_page("task", store).dataframe]
    (figures,) = [frame for frame in frames if "figure" in frame.columns]
    assert len(figures) == 2


def test_ablations_stand_apart_from_results(store, write):
    write(store, [1.0, 0.0, 1.0, 1.0])
    write(
        store, [0.0, 0.0, 1.0, 0.0], config={"task": "demo/add", "model": "hf:a", "no_data": True}
    )
    sync(store)
    con = snapshot(store)
    (row,) = ablations(con, "demo/add", "1")
    # Wilson's interval of 1 in 4, statsmodels: proportion_confint(1, 4, method="wilson")
    assert (row.value, row.lo, row.hi) == pytest.approx((0.25, 0.0455873, 0.6993582), abs=1e-6)
    assert [r.value for r in board(con, (("demo/add", "1"),)).rows] == [0.75]
    assert [item.n_models for item in task_items(con, "demo/add", "1")] == [1] * 4


def test_the_page_on_every_store(any_store, open_page):
    app = open_page("task", any_store)
    assert not app.exception
    assert app.title


def test_the_page_says_how_to_audit_and_shows_baselines_apart(partial_store, open_page):
    app = open_page("task", partial_store)
    assert any("harness audit demo/add" in code.value for code in app.code)
    results, baselines = (
        frame.value for frame in app.dataframe if "counted" in frame.value.columns
    )
    assert list(results["model"]) == ["hf:b", "hf:a"]
    assert list(baselines["model"]) == ["mock:gold"]


def test_a_task_by_its_address(ties_store, open_page):
    app = open_page("task", ties_store, task="demo/mul")
    assert not app.exception
    assert app.selectbox(key="task").value == "demo/mul"
    assert [t.label for t in task_versions(snapshot(ties_store))] == ["demo/add", "demo/mul"]
