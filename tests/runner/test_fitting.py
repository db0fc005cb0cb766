"""What is fitted, and that the fit is the library's own.

Expected abilities and items come from `irt.fit`, called apart on a table that is written out here by
hand (the library has oracles of its own); the gauge and the log-loss from their closed forms.
"""

from __future__ import annotations

import json
import math
import shutil

import msgspec
import numpy as np
import pytest

import irt
from harness.core import registry
from harness.core.errors import UsageError
from harness.core.types import Output, Score
from harness.runner.fitting import ItemKey, Subject, fit_file, fit_store
from harness.runner.human_minutes import Minutes
from harness.store.publish import snapshot
from harness.store.queries import find_fit, fits

# Which of the twelve items each model gets right: better models miss the harder ones, with slips.
RIGHT = {
    "count:a": {0, 1, 2, 4},
    "count:b": {0, 1, 2, 3, 5, 6},
    "count:c": {0, 1, 2, 3, 4, 5, 8},
    "count:d": {0, 1, 2, 3, 4, 5, 6, 7, 9},
    "count:e": {0, 1, 3, 4, 5, 6, 7, 8, 9, 10},
}


@pytest.fixture
def answering(house):
    """Run a model that gets the items right whose numbers it is given."""

    def run(model, right, **options):
        def answer(request):
            good = int(request.item_id[1:]) in right
            return house.solve(request) if good else Output(text="-1")

        house.answer = answer
        return house.run(model, **options)

    return run


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory):
    return tmp_path_factory.mktemp("contest") / "store"


@pytest.fixture
def contest(house, answering, ran_once):
    """A house where all of them answered; each test gets a copy of the store."""
    if ran_once.exists():
        shutil.copytree(ran_once, house.store.root, dirs_exist_ok=True)
    else:
        for model, right in RIGHT.items():
            answering(model, right)
        shutil.copytree(house.store.root, ran_once)
    return house


def by_hand(variants, right=RIGHT, times=1):
    """Long rows of what these models did, under their identities."""
    return [
        {
            "model": (variants[model], "sample"),
            "item": ("own/add", "1", f"i{i:03d}"),
            "k": times * int(i in solved),
            "n": times,
        }
        for model, solved in right.items()
        for i in range(12)
    ]


def variants_of(found):
    return {m.model: m.variant_id for m in found.models}


def assert_same(found, expected):
    """Numbers and names of a stored fit are those of the library's."""
    theta = dict(zip((m[0] for m in expected.models.model), expected.models.theta, strict=True))
    se = dict(zip((m[0] for m in expected.models.model), expected.models.se, strict=True))
    assert {m.variant_id: m.theta for m in found.models} == theta
    assert {m.variant_id: m.se for m in found.models} == se
    rows = {(i.task_id, i.version, i.item_id): i for i in found.items}
    assert tuple(sorted(rows)) == expected.items.item
    for name in ("a", "b", "d", "se_log_a", "se_b", "se_d", "n_models"):
        values = getattr(expected.items, name)
        assert [getattr(rows[key], name) for key in expected.items.item] == values.tolist()
    flags = dict(zip(expected.items.item, map(list, expected.items.flags), strict=True))
    assert {key: row.flags for key, row in rows.items()} == flags
    assert found.fit.data_hash == expected.data_hash


# --- from the store ---


def test_a_store_is_fitted_as_the_library_fits_its_table(contest):
    found = fit_store(contest.store, method="joint")
    expected = irt.fit(by_hand(variants_of(found)), "joint")
    assert_same(found, expected)
    assert (found.fit.n_models, found.fit.n_items, found.fit.n_cells) == (5, 12, 60)
    assert (found.fit.source, found.fit.selection["tasks"]) == ("store", ["own/add"])
    assert found.fit.verdict["converged"] is found.fit.converged is True


def test_gauge_order_and_log_loss_by_their_formulas(contest):
    found = fit_store(contest.store, method="joint")
    theta = np.array([m.theta for m in found.models])
    assert theta.mean() == pytest.approx(0, abs=1e-12)
    assert theta.std() == pytest.approx(1, abs=1e-12)
    assert [m.model[-1] for m in found.models] == ["e", "d", "c", "b", "a"]
    loss = 0.0
    for model in found.models:
        for item in found.items:
            z = item.a * (model.theta - item.b)
            assert item.a * model.theta + item.d == pytest.approx(z, abs=1e-9)
            solved = int(item.item_id[1:]) in RIGHT[model.model]
            loss += math.log1p(math.exp(-z if solved else z))
    assert found.fit.log_loss == pytest.approx(loss / 60, abs=1e-12)
    assert [i.item_id for i in found.items if "prior_only" in i.flags] == ["i000", "i001", "i011"]


def test_the_fit_is_kept_and_made_twice_it_is_one(contest):
    first = fit_store(contest.store, method="joint")
    con = snapshot(contest.store)
    assert find_fit(con, "last") == first
    # `auto` comes to the same method: five models are not many for twelve items.
    second = fit_store(contest.store)
    assert second.fit.fit_id == first.fit.fit_id
    assert [row.created for row in fits(snapshot(contest.store))] == [second.fit.created]
    fit_store(contest.store, models=list(RIGHT)[:4])
    fit_store(contest.store, scores="fractional")
    fit_store(contest.store, method="mml")
    ids = [row.fit_id for row in fits(snapshot(contest.store))]
    assert (len(ids), ids[-1][:4]) == (4, "mml-")


def test_repeats_are_k_of_n(contest, answering):
    answering("count:f", {0, 2, 4}, epochs=3)
    found = fit_store(contest.store, method="joint")
    variants = variants_of(found)
    rows = by_hand(variants) + by_hand(variants, {"count:f": {0, 2, 4}}, times=3)
    assert_same(found, irt.fit(rows, "joint"))


def test_an_item_that_was_lost_to_the_network_is_missing_and_not_wrong(contest):
    lost = Output(text="", finish_reason="error", error_kind="network", error="x")
    contest.answer = lambda r: lost if r.item_id in ("i000", "i010") else contest.solve(r)
    contest.run("count:f")
    found = fit_store(contest.store, method="joint")
    variants = variants_of(found)
    rows = by_hand(variants) + [
        row
        for row in by_hand(variants, {"count:f": range(12)})
        if row["item"][2] not in ("i000", "i010")
    ]
    assert found.fit.n_cells == 70
    assert_same(found, irt.fit(rows, "joint"))


def test_baselines_are_left_out_unless_asked_for_and_then_marked(contest, answering):
    contest.is_baseline = True
    answering("count:mock", {1, 2, 3})
    assert fit_store(contest.store).fit.n_models == 5
    found = fit_store(contest.store, baselines=True)
    assert [m.model for m in found.models if m.flags == ["baseline"]] == ["count:mock"]
    assert [m.model for m in found.models if not m.flags] == list(reversed(RIGHT))


def test_a_store_of_baselines_only_says_so(house, answering):
    house.is_baseline = True
    answering("count:mock", {1, 2, 3})
    with pytest.raises(UsageError, match=r"all 1 models .* baselines \(count:mock\).*--baselines"):
        fit_store(house.store)


def test_tasks_and_models_are_chosen_by_name(contest, answering):
    own = contest.task
    registry.task("own/other", n=12)(lambda r: msgspec.structs.replace(own(r), name="own/other"))
    answering("count:a", {0, 1}, task="own/other", first=3)
    assert fit_store(contest.store).fit.n_items == 15
    assert fit_store(contest.store, tasks=["own"]).fit.n_items == 15
    chosen = fit_store(contest.store, tasks=["own/add"], models=list(RIGHT)[:4])
    assert (chosen.fit.n_models, chosen.fit.n_items) == (4, 12)
    variant = next(m.variant_id for m in chosen.models if m.model == "count:a")
    again = fit_store(contest.store, tasks=["own/add"], models=[variant, *list(RIGHT)[1:4]])
    assert again.fit.data_hash == chosen.fit.data_hash
    for wrong in ({"tasks": ["own/ad"]}, {"tasks": ["ow"]}):
        with pytest.raises(UsageError, match=r"unknown task .*with scores in this store"):
            fit_store(contest.store, **wrong)
    with pytest.raises(UsageError, match="unknown model 'count:z'"):
        fit_store(contest.store, models=["count:z"])
    with pytest.raises(UsageError, match="no answer at all"):
        fit_store(contest.store, tasks=["own/other"], models=["count:b"])


def test_two_variants_of_one_spec_are_two_models_told_apart(contest, answering):
    answering("count:a", {0, 1, 2, 3}, dtype="bf16")
    found = fit_store(contest.store)
    names = sorted(m.model for m in found.models if m.model.startswith("count:a"))
    ids = sorted(m.variant_id for m in found.models if m.model.startswith("count:a"))
    assert names == [f"count:a [{i[:8]}]" for i in ids]
    assert len(set(names)) == 2


def test_a_store_without_scores_says_so(house):
    with pytest.raises(UsageError, match="no scored items yet"):
        fit_store(house.store)


# --- scores that are not right or wrong ---


@pytest.fixture
def graded(contest, answering):
    """A sixth model, whose right answers a grader gives half a point each."""

    def run(value):
        registry.scorer("half")(lambda: lambda s, o: Score(value=value if o.text != "-1" else 0.0))
        contest.scorer = "half"
        answering("count:f", {4, 2, 7, 9})
        return contest.store

    return run


def test_fractions_are_refused_until_they_are_declared(graded):
    store = graded(0.5)
    told = r"task own/add has scores .* on 4 items \(i002, i004, i007, …\): declare --scores frac"
    with pytest.raises(UsageError, match=told):
        fit_store(store)
    found = fit_store(store, scores="fractional", method="joint")
    variants = variants_of(found)
    whole = by_hand(variants, {"count:f": {4, 2, 7, 9}})
    extra = [row | {"k": row["k"] / 2} for row in whole]
    table = irt.Responses.from_table(by_hand(variants) + extra, "fractional")
    assert_same(found, irt.fit(table, "joint"))
    assert found.fit.scores == "fractional"
    assert found.fit.log_loss is not None


@pytest.mark.parametrize("scores", ["counts", "fractional"])
def test_scores_outside_0_to_1_are_refused(graded, scores):
    with pytest.raises(UsageError, match=r"task own/add has scores outside 0 to 1 on 4 items"):
        fit_store(graded(3.0), scores=scores)


# --- names ---


def test_names_read_well_and_hash_as_plain_tuples():
    assert str(ItemKey("gsm8k", "1", "x-1")) == "gsm8k/x-1"
    assert repr(ItemKey("gsm8k", "1", "x-1")) == repr(("gsm8k", "1", "x-1"))
    assert str(Subject("0abc", "sample", "hf:tiny", False)) == "hf:tiny"
    assert str(Subject("0abc", "vote?n=3", "hf:tiny", False)) == "hf:tiny (vote?n=3)"
    assert repr(Subject("0abc", "vote?n=3", "hf:tiny", False)) == repr(("0abc", "vote?n=3"))


# --- from a file ---

TABLE = {
    "model": [m for m in RIGHT for _ in range(12)],
    "item": [f"i{i:03d}" for _ in RIGHT for i in range(12)],
    "k": [int(i in right) for right in RIGHT.values() for i in range(12)],
}


def write_pyirt(path):
    lines = [
        {"subject_id": m, "responses": {f"i{i:03d}": int(i in right) for i in range(12)}}
        for m, right in RIGHT.items()
    ]
    path.write_text("\n".join(map(json.dumps, lines)))


def write_long(path):
    rows = zip(*TABLE.values(), strict=True)
    path.write_text("model,item,k\n" + "".join(f"{m},{i},{k}\n" for m, i, k in rows))


def write_parquet(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(TABLE), path)


def write_wide(path):
    head = ",".join(f"i{i:03d}" for i in range(12))
    lines = [f"{m}," + ",".join(str(int(i in r)) for i in range(12)) for m, r in RIGHT.items()]
    path.write_text(f"who,{head}\n" + "\n".join(lines))


FORMS = {
    "a.jsonl": write_pyirt,
    "b.csv": write_long,
    "c.parquet": write_parquet,
    "d.csv": write_wide,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_file_is_the_same_fit(tmp_path, name):
    FORMS[name](tmp_path / name)
    found = fit_file(tmp_path / name, method="joint")
    expected = irt.fit(TABLE, "joint")
    assert found.fit.data_hash == expected.data_hash
    theta = dict(zip(expected.models.model, expected.models.theta, strict=True))
    assert {m.model: m.theta for m in found.models} == theta
    assert {m.variant_id for m in found.models} == set(RIGHT)
    b = dict(zip(expected.items.item, expected.items.b, strict=True))
    assert {i.item_id: i.b for i in found.items} == b
    assert {(m.strategy, i.task_id) for m in found.models for i in found.items} == {(None, None)}
    assert found.fit.source == name


def test_a_wrong_word_is_found_before_the_file_is_read(tmp_path):
    for words, told in (
        ({"method": "jiont"}, "unknown method 'jiont': did you mean 'joint'"),
        ({"scores": "count"}, "unknown kind of scores 'count': did you mean 'counts'"),
    ):
        with pytest.raises(UsageError, match=told):
            fit_file(tmp_path / "none.csv", **words)


def test_a_run_without_the_data_is_no_answer_to_the_items(contest, answering):
    before = fit_store(contest.store)
    answering("count:e", set(), no_data=True)
    assert {m.model: m.theta for m in fit_store(contest.store).models} == {
        m.model: m.theta for m in before.models
    }


def test_two_versions_of_a_task_keep_their_own_minutes(contest, answering):
    """Item i of both versions has the same name, and a difficulty of its own in each."""
    contest.version = "2"
    for model, right in RIGHT.items():
        answering(model, {(i + 5) % 12 for i in right})
    minutes = Minutes(minutes={f"own/add/i{i:03d}": float(i + 1) for i in range(12)}, dates={})
    found = fit_store(contest.store, minutes=minutes)
    link = found.fit.link
    assert (link["n_anchors"], len(found.items)) == (24, 24)
    for item in found.items:
        expected = math.exp(link["intercept"] + link["slope"] * item.b)
        assert item.human_minutes_hat == pytest.approx(expected, rel=1e-9)
