"""Fits in the store: kept whole or not at all, published, and carried over by every kind of care."""

from __future__ import annotations

import gzip
import shutil
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from harness.core.errors import StoreError, UsageError
from harness.store import fits as module
from harness.store import snapshot, sync
from harness.store.care import compact, rebuild, verify
from harness.store.fits import (
    FitItem,
    FitModel,
    FitRow,
    StoredFit,
    Variant,
    cells,
    keep_fit,
    scored_tasks,
    scored_variants,
)
from harness.store.publish import current
from harness.store.queries import find_fit, fit_items, fit_models, fits

OLD = sorted((Path(__file__).parent / "fixtures").glob("schema-*"))


def make(fit_id="joint-000000000001", day=1, **changes) -> StoredFit:
    """A fit of two models and two items, one of a store and one of a file, with made-up numbers."""
    fields = {
        "fit_id": fit_id, "method": "joint", "scores": "counts", "parameterisation": "a, b, d",
        "gauge": "mean 0", "hyper": {"mu_a": 0.5}, "source": "store", "selection": {"tasks": ["t"]},
        "data_hash": "f" * 64, "code_commit": None, "versions": {"numpy": "2"}, "converged": True,
        "verdict": {"text": "well", "max_grad": None}, "log_loss": 0.25, "n_models": 2,
        "n_items": 2, "n_cells": 4, "seconds": 0.5, "created": datetime(2026, 1, day),  # noqa: DTZ001
    }  # fmt: skip
    models = [
        FitModel(fit_id=fit_id, variant_id="v2", strategy="sample", model="hf:two", theta=1.0,
                 se=0.1, n_items=2, flags=["baseline"]),
        FitModel(fit_id=fit_id, variant_id="v1", strategy=None, model="one", theta=-1.0, se=None,
                 n_items=2, horizon50_min=3.5, lo=1.0, hi=9.0),
    ]  # fmt: skip
    numbers = {"a": 1.0, "b": 0.5, "d": -0.5, "se_log_a": 0.1, "se_b": 0.2, "se_d": 0.3}
    items = [
        FitItem(fit_id=fit_id, task_id="t", version="1", item_id="i1", **numbers, n_models=2,
                slope_z=-1.5, flags=["suspect_key", "fisher"]),
        FitItem(fit_id=fit_id, task_id=None, version=None, item_id="i2", **numbers, n_models=2,
                slope_z=None),
    ]  # fmt: skip
    return StoredFit(FitRow(**(fields | changes)), models, items)


def stored(store):
    con = snapshot(store)
    return [find_fit(con, row.fit_id) for row in fits(con)]


def test_a_fit_comes_back_as_it_was_and_is_published_at_once(store):
    sync(store)
    keep_fit(store, make())
    first = current(store).generation
    assert stored(store) == [make()]
    keep_fit(store, make(link={"slope": 1.5}, anchors={"i1": [1.0, 0.5]}, seed=7))
    assert current(store).generation > first
    assert stored(store) == [make(link={"slope": 1.5}, anchors={"i1": [1.0, 0.5]}, seed=7)]


def test_the_same_fit_takes_its_own_place_and_becomes_the_last(store):
    keep_fit(store, make("joint-a", day=1))
    keep_fit(store, make("mml-b", day=2))
    keep_fit(store, make("joint-a", day=3, log_loss=0.125))
    con = snapshot(store)
    assert [(row.fit_id, row.log_loss) for row in fits(con)] == [
        ("mml-b", 0.25),
        ("joint-a", 0.125),
    ]
    assert [len(fit_items(con, i)) for i in ("joint-a", "mml-b", "none")] == [2, 2, 0]
    assert [m.variant_id for m in fit_models(con, "joint-a")] == ["v2", "v1"]
    assert find_fit(con, "last").fit.fit_id == "joint-a"


@pytest.mark.parametrize("care", [rebuild, compact])
def test_fits_survive_care(store, build, care):
    build.run(store)
    sync(store)
    keep_fit(store, make("joint-a"))
    keep_fit(store, make("joint-b", day=2))
    before = stored(store)
    done = care(store)
    if care is rebuild:
        assert done.differences == []
    sync(store)
    assert stored(store) == before == [make("joint-a"), make("joint-b", day=2)]
    assert verify(store) == []


def test_a_fit_that_cannot_be_written_whole_is_not_there_at_all(store, monkeypatch):
    import duckdb

    keep_fit(store, make())
    insert = module._insert

    def fail(con, table, rows):
        if table == "irt_models":
            raise duckdb.IOException("No space left on device")
        insert(con, table, rows)

    with monkeypatch.context() as patch:
        patch.setattr(module, "_insert", fail)
        for again in (make(log_loss=0.5), make("joint-other")):
            with pytest.raises(StoreError, match=r"cannot write the fit.*No space left"):
                keep_fit(store, again)
    sync(store)
    assert stored(store) == [make()]


def test_a_run_that_comes_later_leaves_fits_alone(store, build):
    keep_fit(store, make())
    build.run(store)
    sync(store)
    assert stored(store) == [make()]


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.name)
def test_a_store_of_an_earlier_version_takes_a_fit(store, old):
    shutil.copytree(old / "runs", store.runs, dirs_exist_ok=True)
    store.database.write_bytes(gzip.decompress((old / "store.duckdb.gz").read_bytes()))
    keep_fit(store, make())
    # From version 3 on a fixture has a fit already.
    assert make() in stored(store)
    before = stored(store)
    assert rebuild(store).differences == []
    sync(store)
    assert stored(store) == before


def test_fits_are_found_by_id_beginning_hash_and_last(store):
    sync(store)
    with pytest.raises(UsageError, match="unknown fit 'last': there are none"):
        find_fit(snapshot(store), "last")
    keep_fit(store, make("joint-abc", day=2))
    keep_fit(store, make("mml-abd", day=1))
    con = snapshot(store)
    for name in ("joint-abc", "joint", "abc", "last"):
        assert find_fit(con, name).fit.fit_id == "joint-abc"
    with pytest.raises(UsageError, match="unknown fit 'joint-abd': did you mean 'joint-abc'"):
        find_fit(con, "joint-abd")
    keep_fit(store, make("joint-xyz"))
    with pytest.raises(UsageError, match="'joint' is ambiguous: joint-xyz, joint-abc"):
        find_fit(snapshot(store), "joint")


def test_cells_are_the_item_scores_of_the_chosen(store, build):
    def run(variant, model, task, values, **changes):
        identity = {"variant_id": variant, "model_id": variant, "backend": "x"}
        build.run(store, values, model=model, task=task, identity=identity, **changes)

    run("v1", "x:old", "a/one", [1.0, 0.0], is_baseline=False, strategy="sample")
    run("v1", "x:new", "b", [1.0], is_baseline=False, strategy="sample")
    # Another try at the same items under another strategy is another subject.
    run("v1", "x:new", "b", [0.0], is_baseline=False, strategy="vote?n=3")
    run("v2", "mock:gold", "a/one", [1.0, 0.25], strategy="sample")
    run("v2", "mock:gold", "a/one", [1.0, 0.5], strategy="sample")
    sync(store)
    con = snapshot(store)
    assert scored_tasks(con) == ["a/one", "b"]
    assert scored_variants(con) == [Variant("v1", "x:new", False), Variant("v2", "mock:gold", True)]
    assert cells(con, ["a/one"], ["v1", "v2"]) == [
        ("v1", "sample", "a/one", "1", "i0", 1.0, 1),
        ("v1", "sample", "a/one", "1", "i1", 0.0, 1),
        ("v2", "sample", "a/one", "1", "i0", 2.0, 2),
        ("v2", "sample", "a/one", "1", "i1", 0.75, 2),
    ]
    assert cells(con, ["a/one", "b"], ["v1"])[2:] == [
        ("v1", "sample", "b", "1", "i0", 1.0, 1),
        ("v1", "vote?n=3", "b", "1", "i0", 0.0, 1),
    ]
    assert cells(con, [], ["v1"]) == []


def test_columns_are_the_fields(store):
    """What a later column adds must be told of here too."""
    sync(store)
    con = snapshot(store)
    for table, struct in (("irt_items", FitItem), ("irt_models", FitModel)):
        columns = [row[0] for row in con.execute(f"DESCRIBE {table}").fetchall()]
        assert columns == [f.name for f in msgspec.structs.fields(struct)]
    columns = [row[0] for row in con.execute("DESCRIBE irt_fits").fetchall()]
    fields = [f.name for f in msgspec.structs.fields(FitRow)]
    assert [c.removesuffix("_json") for c in columns] == fields
