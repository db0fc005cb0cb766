"""What is derived run by run is what the views say of the whole store, whatever came before."""

from __future__ import annotations

import contextlib
import os

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.records import EventRecord
from harness.store import Journal, Store, derive, new_run_id, schema, snapshot, sync
from harness.store.care import compact, rebuild, verify
from harness.store.lock import locked
from harness.store.queries import run_totals
from harness.store.schema import connect

RUNS = [f"2026010{n}T000000000000-{n:08x}" for n in range(1, 6)]
# Two runs of v1 on one task may hand each other answers; the third has another task, the fourth another
# variant, the fifth another strategy.
KINDS = [
    {"identity": {"variant_id": "v1"}},
    {"identity": {"variant_id": "v1"}},
    {"identity": {"variant_id": "v1"}, "task": "demo/other"},
    {"identity": {}},
    {"identity": {"variant_id": "v1"}, "strategy": "vote?n=2", "epochs": 2},
]
ITEMS = ["i0", "i1", "i2"]
N = st.integers(0, 4)
ITEM = st.sampled_from(ITEMS)
VALUE = st.sampled_from([0.0, 0.25, 0.5, 1.0])  # sums of these are exact in any order
STEP = st.one_of(
    st.tuples(st.just("sample"), N, ITEM, st.integers(0, 1), st.sampled_from(["unscored", "refused", "error"])),
    st.tuples(st.just("reuse"), st.sampled_from([0, 1]), ITEM, st.integers(0, 1), st.just("unscored")),
    st.tuples(st.just("score"), N, ITEM, st.integers(0, 1), VALUE),
    st.tuples(st.just("verdict"), st.just(4), ITEM, st.just(0), VALUE),
    st.tuples(st.just("resume"), N, ITEM, st.just(0), st.none()),
    st.tuples(st.just("finish"), N, ITEM, st.just(0), st.none()),
    st.tuples(st.sampled_from(["sync", "publish", "crash", "compact"]), N, ITEM, st.just(0), st.none()),
)  # fmt: skip


def differences(con) -> dict[str, int]:
    """Count the rows in which each table and the view over everything differ."""
    found = {}
    for table in derive.DERIVED:
        stored, said = f"FROM {table}", f"FROM v_{table}"
        query = f"({stored} EXCEPT ALL {said}) UNION ALL ({said} EXCEPT ALL {stored})"
        found[table] = len(con.execute(query).fetchall())
    return found


SAME = dict.fromkeys(derive.DERIVED, 0)


def write(store: Store, build, step, attempts: dict) -> None:
    what, n, item, epoch, more = step
    run_id = RUNS[n]
    place = (run_id, item, epoch)
    with Journal(store.journal(run_id), run_id) as journal:
        if journal.seq == 0:
            journal.append(build.started(run_id, ITEMS, **KINDS[n]))
        if what in ("sample", "reuse"):
            attempts[place] = attempts.get(place, -1) + 1
            # The same key in both of the first two runs: one answer, counted once.
            key = build.key(f"{item}/{epoch}") if what == "reuse" else build.key(str((place, more)))
            reused = RUNS[0] if what == "reuse" and n == 1 else None
            journal.append(
                build.sample(
                    run_id, item, epoch=epoch, attempt=attempts[place], status=more, key=key,
                    error_kind="network" if more == "error" else None, reused_from=reused,
                    cost_usd=0.5,
                )
            )  # fmt: skip
        elif what in ("score", "verdict") and place in attempts:
            own = {"metrics": {"chars": more * 2}}
            vote = {"scorer": "strategy:vote?n=2", "metric": "vote?n=2"}
            fields = own if what == "score" else vote
            journal.append(
                build.score(run_id, item, more, epoch=epoch, attempt=attempts[place], **fields)
            )
        elif what == "resume":
            journal.append(EventRecord(seq=0, ts="", run_id=run_id, schema=1, kind="resumed"))
        elif what == "finish":
            journal.append(build.finished(run_id))


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEP, min_size=4, max_size=16), batch=st.sampled_from([1, 7, 100_000]))
def test_run_by_run_is_the_same_as_the_whole(tmp_path_factory, build, steps, batch, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)
    monkeypatch.setattr(derive, "BATCH_ATTEMPTS", batch)
    store = Store.open(tmp_path_factory.mktemp("store"))
    attempts: dict = {}
    for step in steps:
        if step[0] == "sync":
            sync(store, publish=False)
        elif step[0] == "publish":
            sync(store)
            if store.run_ids():
                assert differences(snapshot(store)) == SAME
        elif step[0] == "crash":
            crash_in_the_second_batch(store, monkeypatch)
        elif step[0] == "compact":
            if store.database.exists():
                compact(store)
        else:
            write(store, build, step, attempts)
    write(store, build, ("finish", 0, "i0", 0, None), attempts)
    sync(store)
    assert differences(snapshot(store)) == SAME
    assert verify(store) == []
    assert rebuild(store).differences == []
    sync(store)
    assert differences(snapshot(store)) == SAME


def crash_in_the_second_batch(store, monkeypatch) -> None:
    replace, calls = derive._replace, []

    def dies(con, home):
        calls.append(home)
        replace(con, home)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(derive, "_replace", dies)
        with contextlib.suppress(KeyboardInterrupt):
            sync(store)


def rows(store, query):
    return snapshot(store).execute(query).fetchall()


def test_only_the_groups_of_changed_runs_are_made_again(store, build):
    first = build.run(store, (1.0, 0.0), identity={"variant_id": "v1"})
    build.run(store, (1.0, 0.0), identity={"variant_id": "v2"})
    sync(store)
    with locked(store), connect(store.database) as con:
        con.execute("UPDATE item_scores SET k = 77 WHERE variant_id = 'v2' AND item_id = 'i0'")
        con.execute("UPDATE item_scores SET k = 88 WHERE variant_id = 'v1' AND item_id = 'i0'")
    with Journal(store.journal(first), first) as journal:
        journal.append(build.score(first, "i1", 1.0, replaces=4))
    sync(store)
    found = rows(store, "SELECT variant_id, item_id, k FROM item_scores ORDER BY ALL")
    assert found == [("v1", "i0", 1.0), ("v1", "i1", 1.0), ("v2", "i0", 77.0), ("v2", "i1", 0.0)]
    (fault,) = verify(store)
    assert fault.startswith("derived table item_scores: 2 rows are not what the samples")
    rebuild(store)
    sync(store)
    assert verify(store) == []


@pytest.mark.parametrize(
    ("table", "change"),
    [("run_totals", "n_scored = 7"), ("metric_totals", "total = 7"), ("item_scores", "k = 7")],
)
def test_a_wrong_derived_row_is_found_by_verify(store, build, table, change):
    build.run(store)
    sync(store)
    assert verify(store) == []
    with locked(store), connect(store.database) as con:
        con.execute(f"UPDATE {table} SET {change}")
    assert [line.split(":")[0] for line in verify(store)] == [f"derived table {table}"]


def test_a_crash_before_publishing_forgets_nothing(store, build, monkeypatch):
    build.run(store)
    sync(store)
    run_id = build.run(store, (1.0, 1.0), identity={"variant_id": "v2"})
    with monkeypatch.context() as patch:
        patch.setattr(derive, "_replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sync(store)
    with locked(store), connect(store.database) as con:
        assert con.execute("FROM stale_runs").fetchall() == [(run_id,)]
    sync(store)
    assert rows(store, "SELECT sum(k) FROM item_scores WHERE variant_id = 'v2'") == [(2.0,)]
    assert rows(store, "FROM stale_runs") == []


def test_changed_views_make_everything_anew(store, build, monkeypatch):
    run_id = build.run(store, (1.0, 0.0))
    sync(store)
    text = schema.sql("views.sql")
    half = text.replace(
        "WHEN status = 'scored' THEN value", "WHEN status = 'scored' THEN value / 2"
    )
    assert half != text
    known = schema.sql
    for module in (schema, derive):
        monkeypatch.setattr(
            module, "sql", lambda name: half if name == "views.sql" else known(name)
        )
    sync(store)
    assert run_totals(snapshot(store))[run_id].totals["accuracy"].total == 0.5
    assert rows(store, "SELECT sum(k) FROM item_scores") == [(0.5,)]


def test_sums_of_a_run_by_hand(store, build):
    """Clusters {1, 1, 0}, {0, 0} and an item by itself with epochs 1, 0.5: all by hand."""
    run_id = new_run_id()
    clusters = {"i0": "a", "i1": "a", "i2": "a", "i3": "b", "i4": "b", "i5": None}
    items = [{"item_id": i, "cluster_id": c, "content_sha256": "0"} for i, c in clusters.items()]
    values = {"i0": [1.0], "i1": [1.0], "i2": [0.0], "i3": [0.0], "i4": [0.0], "i5": [1.0, 0.5]}
    with Journal(store.journal(run_id), run_id) as journal:
        started = build.started(run_id)
        journal.append(msgspec.structs.replace(started, items=items, epochs=2, n_planned=12))
        for item, of_item in values.items():
            for epoch, value in enumerate(of_item):
                journal.append(build.sample(run_id, item, epoch=epoch, cost_usd=0.25))
                journal.append(build.score(run_id, item, value, epoch=epoch))
    sync(store)
    totals = run_totals(snapshot(store))[run_id]
    total = totals.totals["accuracy"]
    mean = 2.75 / 6
    deviations = (2 - 3 * mean, -2 * mean, 0.75 - mean)
    assert (total.n_items, total.n_clusters, total.is_binary) == (6, 3, False)
    assert (total.total, total.total_sq) == (2.75, 1 + 1 + 0.75**2)
    assert total.cluster_sq == pytest.approx(sum(d * d for d in deviations), rel=1e-12)
    assert (totals.counts["n_scored"], totals.counts["open"]) == (7, 5)
    assert (totals.usage.tokens_in, totals.usage.cost_usd) == (70, 1.75)
