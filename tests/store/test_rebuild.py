from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.store import Journal, Store, load, snapshot, sync
from harness.store.care import rebuild, verify
from harness.store.lock import locked
from harness.store.queries import sample
from harness.store.schema import connect

RUNS = ("20260101T000000000000-aaaaaaaa", "20260102T000000000000-bbbbbbbb")
STEP = st.one_of(
    st.tuples(st.just("sample"), st.sampled_from(RUNS), st.integers(0, 3)),
    st.tuples(st.just("score"), st.sampled_from(RUNS), st.integers(0, 3)),
    st.tuples(st.just("finish"), st.sampled_from(RUNS), st.just(0)),
    st.tuples(st.just("replay"), st.sampled_from(RUNS), st.integers(0, 9)),
    st.tuples(st.just("garbage"), st.sampled_from(RUNS), st.just(0)),
    st.tuples(st.just("sync"), st.sampled_from(RUNS), st.sampled_from([200, 900, 1 << 20])),
)


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEP, min_size=3, max_size=14))
def test_rebuild_gives_the_live_store_whatever_the_order_of_work(
    tmp_path_factory, build, steps, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    store = Store.open(tmp_path_factory.mktemp("store"))
    samples: set[tuple[str, int]] = set()
    n_scores = 0
    lines: dict[str, int] = dict.fromkeys(RUNS, 1)
    for run_id in RUNS:
        with Journal(store.journal(run_id), run_id) as journal:
            journal.append(build.started(run_id, [f"i{n}" for n in range(4)]))
    for what, run_id, n in steps:
        path = store.journal(run_id)
        if what == "sync":
            monkeypatch.setattr(load, "SLICE_BYTES", n)
            sync(store, publish=False)
        elif what in ("replay", "garbage"):
            whole = path.read_bytes().splitlines(keepends=True)
            old = whole[n % len(whole)] if what == "replay" else b'{"torn": \n'
            with path.open("ab") as file:
                file.write(old)
        else:
            with Journal(path, run_id) as journal:
                if what == "sample":
                    if (run_id, n) in samples:
                        continue
                    samples.add((run_id, n))
                    journal.append(build.sample(run_id, f"i{n}"))
                elif what == "score":
                    if (run_id, n) not in samples:
                        continue
                    n_scores += 1
                    journal.append(build.score(run_id, f"i{n}"))
                else:
                    journal.append(build.finished(run_id))
            lines[run_id] += 1
    sync(store, publish=False)
    with locked(store), connect(store.database) as con:
        assert con.execute("SELECT count(*) FROM samples").fetchone() == (len(samples),)
        assert con.execute("SELECT count(*) FROM scores").fetchone() == (n_scores,)
        assert con.execute("SELECT count(*) FROM runs").fetchone() == (2,)
        assert con.execute("SELECT count(*) FROM items").fetchone() == (4,)
    monkeypatch.setattr(load, "SLICE_BYTES", 500)
    assert rebuild(store).differences == []
    assert all("could not be read" in fault for fault in verify(store))


def test_rebuild_from_nothing_but_journals(store, build):
    run_id = build.run(store)
    assert rebuild(store).differences == []
    sync(store)
    assert sample(snapshot(store), store, run_id, "i1")["output"] == "it is i1"
    assert verify(store) == []


def test_rebuild_takes_the_place_of_a_damaged_database(store, build):
    build.run(store)
    sync(store)
    store.database.write_bytes(b"damaged" * 5000)
    assert rebuild(store).differences == ["the old database could not be read"]
    assert verify(store) == []


def test_rebuild_keeps_what_does_not_come_from_journals(store, build):
    build.run(store)
    sync(store)
    with locked(store), connect(store.database) as con:
        con.execute("INSERT INTO published_results (source, value) VALUES ('a paper', 0.5)")
    rebuild(store)
    with locked(store), connect(store.database) as con:
        rows = con.execute("SELECT source, value FROM published_results").fetchall()
    assert rows == [("a paper", 0.5)]


def test_rebuild_refuses_to_lose_a_run(store, build):
    run_id = build.run(store)
    build.run(store)
    sync(store)
    store.journal(run_id).unlink()
    before = store.database.read_bytes()
    with pytest.raises(StoreError, match=f"1 runs .* no journal.*{run_id}"):
        rebuild(store)
    assert store.database.read_bytes() == before


def test_a_rebuild_cut_short_leaves_the_store_sound(store, build, monkeypatch):
    from harness.store import care

    run_id = build.run(store)
    sync(store)
    with monkeypatch.context() as patch:
        patch.setattr(care, "_swap_database", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rebuild(store)
    assert verify(store) == []
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.sample(run_id, "i0", attempt=1, output="another"))
    sync(store)
    assert sample(snapshot(store), store, run_id, "i0")["output"] == "another"
    assert sample(snapshot(store), store, run_id, "i1")["output"] == "it is i1"
    assert rebuild(store).differences == []
    assert len(store.texts(run_id)) == 1
    assert verify(store) == []
