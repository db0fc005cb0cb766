from __future__ import annotations

import os

import pytest

from harness.core.errors import StoreError
from harness.store import Store, snapshot, sync
from harness.store.lock import locked
from harness.store.publish import current, publish
from harness.store.schema import connect


def n_samples(con):
    return con.execute("SELECT count(*) FROM samples").fetchone()[0]


def test_no_snapshot_yet_is_one_clear_line(store):
    with pytest.raises(StoreError, match="no published results yet"):
        snapshot(store)


def test_a_reader_keeps_its_generation_while_newer_ones_appear(store, build):
    build.run(store)
    first = sync(store).published
    old = snapshot(store)
    assert n_samples(old) == 3
    for total in (6, 9, 12, 15):
        build.run(store)
        assert sync(store).published > first
        assert n_samples(snapshot(store)) == total
        assert n_samples(old) == 3


READER = """
import sys
from pathlib import Path
from harness.store import Store, snapshot
store = Store(Path(sys.argv[1]))
old = snapshot(store)
count = lambda con: con.execute("SELECT count(*) FROM samples").fetchone()[0]
print(count(old), flush=True)
for _ in sys.stdin:
    print(count(old), count(snapshot(store)), flush=True)
"""


def test_a_page_that_stays_open_sees_its_generation_even_when_that_is_gone(store, build, python):
    build.run(store)
    sync(store)
    reader = python(READER, store.root)
    assert reader.stdout.readline() == "3\n"
    for total in (6, 9):
        first = current(store).file
        build.run(store)
        sync(store)
        (store.published / first).unlink()
        reader.stdin.write("look\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"3 {total}\n"


def test_generations_have_names_of_their_own_and_old_ones_go_after_a_grace_time(store, build):
    names = []
    for _ in range(6):
        build.run(store)
        sync(store)
        names.append(current(store).file)
    assert len(set(names)) == 6
    assert names == sorted(names)
    on_disk = [path.name for path in sorted(store.published.glob("results-*.duckdb"))]
    assert on_disk == names  # all are younger than the grace time
    for name in names:
        os.utime(store.published / name, (0, 0))
    build.run(store)
    sync(store)
    kept = [path.name for path in sorted(store.published.glob("results-*.duckdb"))]
    assert kept == [*names[-2:], current(store).file]


def test_nothing_new_publishes_nothing(store, build):
    build.run(store)
    first = sync(store).published
    assert sync(store).published is None
    with locked(store):
        assert publish(store) is None
    assert current(store).generation == first


def test_a_change_by_another_hand_is_published(store, build):
    build.run(store)
    first = sync(store).published
    with locked(store), connect(store.database) as con:
        con.execute("INSERT INTO published_results (source, value) VALUES ('a paper', 0.5)")
    assert sync(store).published > first
    query = "SELECT source, value FROM published_results"
    assert snapshot(store).execute(query).fetchall() == [("a paper", 0.5)]


def test_a_snapshot_cannot_be_written(store, build):
    import duckdb

    build.run(store)
    sync(store)
    with pytest.raises(duckdb.InvalidInputException):
        snapshot(store).execute("DELETE FROM samples")


def test_a_reader_never_waits_for_a_lock(store, build):
    build.run(store)
    sync(store)
    with locked(store), connect(store.database) as con:
        con.execute("BEGIN; DELETE FROM samples")
        for _ in range(50):
            assert n_samples(snapshot(Store(store.root))) == 3
        con.execute("ROLLBACK")


def test_broken_pointer_is_one_clear_line(store):
    store.current_file.write_text("{")
    with pytest.raises(StoreError, match=r"cannot be read.*harness store sync"):
        snapshot(store)


def test_same_answer_of_two_runs_counts_once_in_item_scores(store, build):
    key = build.key("the same")
    from harness.store import Journal, new_run_id

    first, second = new_run_id(), new_run_id()
    for run_id, reused in ((first, None), (second, first)):
        with Journal(store.journal(run_id), run_id) as journal:
            journal.append(build.started(run_id))
            journal.append(build.sample(run_id, key=key, reused_from=reused))
            journal.append(build.score(run_id))
    sync(store)
    rows = snapshot(store).execute("SELECT item_id, n, k FROM item_scores").fetchall()
    assert rows == [("i0", 1, 1.0)]


# What DuckDB does when two processes open one file; the store's design rests on it.
HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only={}); print('open', flush=True); input()"


@pytest.mark.parametrize(
    ("holder", "other", "works"),
    [(False, False, False), (False, True, False), (True, True, True), (True, False, False)],
    ids=["rw-rw", "rw-ro", "ro-ro", "ro-rw"],
)
def test_lock_matrix_of_two_processes(tmp_path, python, holder, other, works):
    import duckdb

    path = tmp_path / "x.duckdb"
    duckdb.connect(str(path)).close()
    process = python(HOLD.format(holder), path)
    assert process.stdout.readline() == "open\n"
    if works:
        duckdb.connect(str(path), read_only=other).close()
    else:
        with pytest.raises(duckdb.IOException, match="lock"):
            duckdb.connect(str(path), read_only=other)


def test_attaching_read_only_waits_for_a_writer_too(tmp_path, python):
    import duckdb

    path = tmp_path / "x.duckdb"
    duckdb.connect(str(path)).close()
    process = python(HOLD.format(False), path)
    assert process.stdout.readline() == "open\n"
    with duckdb.connect() as con, pytest.raises(duckdb.IOException, match="lock"):
        con.execute(f"ATTACH '{path}' AS other (READ_ONLY)")


def test_lock_matrix_within_a_process(tmp_path):
    import duckdb

    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as con:
        with pytest.raises(duckdb.ConnectionException):
            duckdb.connect(str(path), read_only=True)
        con.execute("SELECT 1")


def test_a_second_connection_to_a_replaced_path_sees_the_old_file(tmp_path):
    import duckdb

    path = tmp_path / "x.duckdb"
    for name, rows in (("x.duckdb", 3), ("new", 1)):
        with duckdb.connect(str(tmp_path / name)) as con:
            con.execute(f"CREATE TABLE samples AS FROM range({rows})")
    old = duckdb.connect(str(path), read_only=True)
    assert n_samples(old) == 3
    (tmp_path / "new").replace(path)
    assert n_samples(duckdb.connect(str(path), read_only=True)) == 3
    old.close()
