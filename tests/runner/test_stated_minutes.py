"""Human minutes that tasks state, dates of cards, and links through models that others measured."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

import irt
from harness.core import registry
from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.types import Output
from harness.runner.common_models import known_there, link_through_models, published_horizons
from harness.runner.fitting import fit_file, fit_store
from harness.runner.human_minutes import Minutes, read_minutes, with_known_dates
from harness.store.ingest import refresh
from harness.store.publish import snapshot

RIGHT = {
    "count:a": {0, 1, 2, 4},
    "count:b": {0, 1, 2, 3, 5, 6},
    "count:c": {0, 1, 2, 3, 4, 5, 8},
    "count:d": {0, 1, 2, 3, 4, 5, 6, 7, 9},
    "count:e": {0, 1, 3, 4, 5, 6, 7, 8, 9, 10},
}
STATED = {f"i{i:03d}": 0.5 * 1.6**i for i in range(8)}
SOURCE = "guess: the authors', nobody was timed"


@pytest.fixture
def contest(house):
    """Five models on a task that states minutes of eight of its twelve items."""

    def run(stated=STATED, models=RIGHT, name="own/timed"):
        own = house.task
        registry.task(name, n=12)(
            lambda request: msgspec.structs.replace(
                own(request), name=name, human_minutes=stated,
                human_time_source=SOURCE if stated else "",
            )
        )  # fmt: skip
        for model, right in models.items():
            house.answer = lambda r, right=right: (
                house.solve(r) if int(r.item_id[1:]) in right else Output(text="-1")
            )
            house.run(model, task=name)
        return house.store

    return run


def test_the_store_has_what_a_task_states_and_where_it_is_from(contest):
    store = contest()
    refresh(store)
    con = snapshot(store)
    rows = con.execute("SELECT item_id, human_minutes FROM items WHERE task_id = 'own/timed'")
    found = dict(rows.fetchall())
    assert {item: m for item, m in found.items() if m is not None} == STATED
    assert len(found) == 12
    rows = con.execute("SELECT human_time_source FROM tasks WHERE task_id = 'own/timed'")
    assert rows.fetchall() == [(SOURCE,)]


def test_a_fit_of_the_store_uses_them_and_names_their_source(contest):
    store = contest()
    found = fit_store(store, method="joint")
    link = found.fit.link
    assert link["n_anchors"] == 8
    assert f"human minutes of own/timed: {SOURCE}" in link["notes"]
    known = [(i.b, math.log(STATED[i.item_id])) for i in found.items if i.item_id in STATED]
    slope, intercept = np.polyfit(*zip(*known, strict=True), 1)
    assert (link["slope"], link["intercept"]) == pytest.approx((slope, intercept), rel=1e-9)
    assert link["known_minutes"] == {f"own/timed/{item}": m for item, m in STATED.items()}


def test_minutes_stated_later_reach_items_that_ran_before(contest):
    few = dict(list(RIGHT.items())[:4])
    contest({}, few)
    store = contest(STATED, {"count:e": RIGHT["count:e"]})
    assert fit_store(store, method="joint").fit.link["n_anchors"] == 8


def test_stating_minutes_makes_no_stored_answer_stale(house, contest):
    contest({}, {"count:a": RIGHT["count:a"]})
    calls = len(house.calls)
    contest(STATED, {"count:a": RIGHT["count:a"]})
    assert len(house.calls) == calls


def test_without_minutes_there_is_no_link_and_no_minutes(contest):
    found = fit_store(contest({}), method="joint")
    assert found.fit.link is None
    assert found.fit.verdict["not_linked"].startswith(
        "not linked to human minutes: no shared items or models"
    )
    assert {m.horizon50_min for m in found.models} == {None}
    assert {i.human_minutes_hat for i in found.items} == {None}


def test_two_timed_items_are_too_few_and_said_so(contest):
    found = fit_store(contest({"i003": 2.0, "i005": 4.0}), method="joint")
    assert found.fit.link is None
    assert found.fit.verdict["not_linked"].endswith(
        "only 2 items have human minutes: too few for a link"
    )


def test_timed_items_that_nobody_was_asked_are_no_anchors(house, contest):
    """Planned items whose answers do not count are in the store, and not in the fit."""
    lost = Output(text="", finish_reason="error", error_kind="network", error="x")
    solve = house.solve
    house.solve = lambda r: lost if r.item_id == "i004" else solve(r)
    models = {model: {*right, 4} for model, right in RIGHT.items()}
    found = fit_store(contest(STATED, models), method="joint")
    assert "i004" not in {i.item_id for i in found.items}
    assert found.fit.link["n_anchors"] == 7


@pytest.mark.parametrize(
    ("minutes", "source", "why"),
    [({"i000": 0.0}, "study", "not positive"), ({"i000": 3.0}, "", "say in human_time_source")],
)
def test_a_task_cannot_state_minutes_that_are_none_or_from_nowhere(house, minutes, source, why):
    from harness.core.task import TaskRequest

    with pytest.raises(ValueError, match=why):
        msgspec.structs.replace(
            house.task(TaskRequest()), human_minutes=minutes, human_time_source=source
        )


# --- release dates ---


def test_dates_come_from_cards_then_the_record_then_the_published_table(tmp_path, monkeypatch):
    cards = tmp_path / "models.toml"
    cards.write_text('["count:a"]\nrelease_date = 2024-05-01\n')
    monkeypatch.setenv("HARNESS_MODELS", str(cards))
    names = {"a": "count:a", "b": "count:b", "gpt-4-0314": "gpt-4-0314", "c": "count:c"}
    given = Minutes(minutes={"x": 1.0})
    found = with_known_dates(given, names, {"count:a": "1999-01-01", "count:b": "2023-02-03"})
    assert found.dates == {"a": "2024-05-01", "b": "2023-02-03", "gpt-4-0314": "2023-03-14"}
    assert "release dates of 3 models" in found.notes[-1]
    own = Minutes(minutes={"x": 1.0}, dates={"a": "2020-01-01"})
    assert with_known_dates(own, names) == own


# --- models that a published table knows ---


def test_published_horizons_are_exp_of_the_published_line():
    """gpt-3: exp(2.584711 + 0.814168 · (−4.108213)), by hand 0.4675 minutes."""
    found = published_horizons()
    assert len(found) == 36
    assert found["gpt-3"] == pytest.approx(math.exp(2.584711 - 0.814168 * 4.108213), rel=1e-9)
    assert found["gpt-3"] == pytest.approx(0.4675, abs=5e-4)


def test_models_are_known_by_name_or_by_their_cards_alias(tmp_path, monkeypatch):
    cards = tmp_path / "models.toml"
    cards.write_text('["own:mine"]\nbridge = "o1"\n["own:lost"]\nbridge = "nobody"\n')
    monkeypatch.setenv("HARNESS_MODELS", str(cards))
    names = {
        "one": "openai:gpt-4-0314?base_url=x", "two": "own:mine", "three": "own:lost",
        "four": "own:gpt-3", "four (vote)": "own:gpt-3",
    }  # fmt: skip
    there = published_horizons()
    assert known_there(names) == {"one": there["gpt-4-0314"], "two": there["o1"]}


NAMES = ("gpt-3", "gpt-4-0314", "gpt-4o-2024-05-13", "o1-preview", "o1")


def _write(path, names):
    lines = ["model,item,k"]
    for name, right in zip(names, RIGHT.values(), strict=True):
        lines += [f"{name},i{i:03d},{int(i in right)}" for i in range(12)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_common_models_link_other_items(tmp_path):
    path = _write(tmp_path / "answers.csv", NAMES)
    found = fit_file(path, method="joint")
    fitted = irt.fit(irt.read(path), "joint")
    there = published_horizons()
    theta = dict(zip(fitted.models.model, fitted.models.theta, strict=True))
    x, y = zip(*((theta[name], math.log(there[name])) for name in NAMES), strict=True)
    slope, intercept = np.polyfit(x, y, 1)
    assert found.fit.link["level"] == "models"
    assert (found.fit.link["slope"], found.fit.link["intercept"]) == pytest.approx(
        (slope, intercept), rel=1e-9
    )
    for model in found.models:
        expected = math.exp(intercept + slope * theta[model.model])
        assert model.horizon50_min == pytest.approx(expected, rel=1e-9)
        assert model.lo < model.horizon50_min < model.hi
        assert model.horizon80_min < model.horizon50_min
    assert {i.human_minutes_hat for i in found.items} == {None}
    assert "minutes are borrowed" in found.fit.link["notes"][-1]


def test_two_common_models_are_no_link(tmp_path):
    path = _write(tmp_path / "answers.csv", (*NAMES[:2], "x", "y", "z"))
    found = fit_file(path, method="joint")
    assert found.fit.link is None
    assert not link_through_models(
        irt.fit(irt.read(path), "joint"), found, {n: n for n in NAMES[:2]}, Minutes()
    )


# --- what is read ---


def test_rows_that_are_no_anchors_are_kept_by_group_for_a_test(tmp_path):
    path = tmp_path / "minutes.csv"
    path.write_text("item,source,human_minutes\na,m,1\nb,m,\nc,s,4\nd,t,\ne,s,5\n")
    found = read_minutes(path, anchors="source=m")
    assert (found.minutes, found.others) == ({"a": 1.0}, {"s": {"c": 4.0, "e": 5.0}})
    assert found.notes == ("1 rows of minutes.csv have no minutes, so they are no anchors",)
    assert read_minutes(path).others == {}
    assert read_minutes(None) == Minutes()


def test_a_reading_is_part_of_a_fits_name_by_content():
    one, two = (Minutes(minutes={"x": m}) for m in (1.0, 2.0))
    assert sha256_of([one]) != sha256_of([two])


def test_a_level_that_a_method_cannot_have_is_one_line(tmp_path):
    path = _write(tmp_path / "answers.csv", tuple("abcde"))
    given = Minutes(minutes={f"i{i:03d}": 1.0 + i for i in range(12)}, level="joint")
    with pytest.raises(UsageError, match="--link joint is part of --method joint"):
        fit_file(path, method="mml", minutes=given)
    assert fit_file(path, method="joint", minutes=given).fit.link["level"] == "joint"
