"""The short form of ``bench/writers.py``: real runs write one store while ingesters and a run are killed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "writers.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_writers", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_runs_under_fire_lose_nothing_and_store_nothing_twice(bench, tmp_path):
    found = bench.storm(tmp_path, writers=2, kills=3, seconds=2.0, seed=3)
    assert found["faults"] == []
    assert found["killed while holding the lock"] == 3
    assert found["runs killed, one anyhow"] + found["syncs killed"] >= 3
    assert found["counts seen on the way"] >= 2


def test_the_check_finds_what_is_lost_or_there_twice(bench, build, store):
    """Planted: one row less, one key twice, one run that is not done."""
    from harness.store import sync
    from harness.store.lock import locked
    from harness.store.schema import connect

    run_id = build.run(store, (1.0, 1.0, 1.0))
    sync(store)
    assert bench.check(store.root, 3) == []
    lines = store.journal(run_id).read_text().splitlines(keepends=True)
    with locked(store), connect(store.database) as con:
        con.execute("DELETE FROM samples WHERE item_id = 'i1'")
    sync(store)
    faults = bench.check(store.root, 3)
    assert "database: 1 lost, 0 too many" in faults
    store.journal(run_id).write_text("".join([*lines, lines[1]]))
    assert any(
        fault.startswith("keys: 3 of 3, most 2 times") for fault in bench.check(store.root, 3)
    )


def test_the_holder_of_the_lock_is_found_and_the_waiter_is_not(bench, store, python):
    import os

    from harness.store.lock import locked

    code = (
        "import sys; from harness.store import Store; from harness.store.lock import locked\n"
        "with locked(Store.open(sys.argv[1]), wait=True): print('held', flush=True); input()"
    )
    assert bench.lock_holder(store.lock_file) is None
    with locked(store):
        waiter = python(code, store.root)
        assert bench.lock_holder(store.lock_file) == os.getpid()
    assert waiter.stdout.readline() == "held\n"
    assert bench.lock_holder(store.lock_file) == waiter.pid
