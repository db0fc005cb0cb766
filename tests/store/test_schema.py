from __future__ import annotations

import pytest

from harness.core.errors import StoreError
from harness.store import schema, snapshot, sync
from harness.store.lock import locked
from harness.store.publish import publish
from harness.store.queries import run_rows
from harness.store.schema import connect, migrations, table_names, version_of


def test_migrations_are_numbered_without_a_gap():
    assert list(migrations()) == list(range(1, len(migrations()) + 1))


def test_a_newer_version_is_refused_with_both_versions_and_the_command(store, build):
    build.run(store)
    sync(store)
    with locked(store):
        with connect(store.database) as con:
            con.execute("UPDATE schema_meta SET version = 99")
        before = store.database.read_bytes()
        both = f"99.* {max(migrations())}; upgrade with pip install -U bridge-harness"
        with pytest.raises(StoreError, match=both):
            connect(store.database)
    with pytest.raises(StoreError, match="pip install -U bridge-harness"):
        sync(store)
    assert store.database.read_bytes() == before


def test_a_newer_snapshot_is_refused(store, build):
    build.run(store)
    sync(store)
    path = next(store.published.glob("results-*.duckdb"))
    with connect(path) as con:
        con.execute("UPDATE schema_meta SET version = 99")
    with pytest.raises(StoreError, match="schema version 99"):
        snapshot(store)


def test_an_older_database_is_brought_up_to_date_and_keeps_its_rows(
    store, build, tmp_path, monkeypatch
):
    build.run(store)
    sync(store)
    newer = tmp_path / "9999_more.sql"
    newer.write_text("CREATE TABLE extra (x INTEGER); ALTER TABLE runs ADD COLUMN extra VARCHAR;")
    known = migrations()
    monkeypatch.setattr(schema, "migrations", lambda: {**known, 9999: newer})
    with locked(store), connect(store.database) as con:
        assert version_of(con) == 9999
        assert "extra" in table_names(con)
        assert con.execute("SELECT count(*) FROM samples").fetchone() == (3,)


def test_a_failed_migration_leaves_the_version_before(store, tmp_path, monkeypatch):
    import duckdb

    broken = tmp_path / "9999_broken.sql"
    broken.write_text("CREATE TABLE half (x INTEGER); SELECT * FROM nowhere;")
    known = migrations()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: {**known, 9999: broken})
        with pytest.raises(duckdb.CatalogException):
            connect(store.database)
    with connect(store.database) as con:
        assert version_of(con) == max(known)
        assert "half" not in table_names(con)


def test_changed_views_reach_an_existing_database(store, build, monkeypatch):
    build.run(store)
    sync(store)
    text = schema.sql("views.sql")
    changed = text + "\nCREATE OR REPLACE VIEW v_new AS SELECT 42 AS x;\n"
    monkeypatch.setattr(schema, "sql", lambda _: changed)
    with connect(store.database) as con:
        assert con.execute("FROM v_new").fetchone() == (42,)


def test_opening_an_up_to_date_database_leaves_the_file_alone(store, build):
    build.run(store)
    sync(store)
    before = store.database.stat()
    connect(store.database).close()
    after = store.database.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    with locked(store):
        assert publish(store) is None


def test_a_damaged_database_is_one_clear_line(store):
    store.database.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreError, match=r"cannot open store database .*harness store rebuild"):
        sync(store)


def test_hot_tables_have_no_keys_and_no_indexes(store):
    with connect(store.database) as con:
        assert con.execute("SELECT count(*) FROM duckdb_indexes()").fetchone() == (0,)
        kinds = con.execute("SELECT DISTINCT constraint_type FROM duckdb_constraints()").fetchall()
        assert kinds == []


@pytest.mark.parametrize("size", [0, 100, 4096, 8192])
def test_a_database_that_was_never_finished_is_made_anew(store, build, size):
    run_id = build.run(store)
    store.database.write_bytes(b"\0" * size)
    sync(store)
    assert [row.run_id for row in run_rows(snapshot(store))] == [run_id]


def test_a_fresh_database_is_longer_than_what_counts_as_unfinished(store):
    with schema.connect(store.database) as con:
        con.execute("CHECKPOINT")
    assert store.database.stat().st_size > schema._HEADER_BYTES
