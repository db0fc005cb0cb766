"""Stores of every earlier schema version are brought up to date and lose nothing.

The fixtures were written by the code of their day, see ``fixtures/make.py``.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.core.errors import StoreError
from harness.store import Store, derive, snapshot, sync
from harness.store.care import compact, rebuild, verify
from harness.store.journal import journal_lines
from harness.store.lock import locked
from harness.store.queries import sample
from harness.store.schema import connect, migrations, table_names, version_of

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("schema-*"))
BAD_LINE = "could not be read"


@pytest.fixture(params=FIXTURES, ids=lambda path: path.name)
def old(request, store) -> Store:
    """A store as the code of an earlier version left it."""
    shutil.copytree(request.param / "runs", store.runs, dirs_exist_ok=True)
    packed = (request.param / "store.duckdb.gz").read_bytes()
    store.database.write_bytes(gzip.decompress(packed))
    return store


def version_in(path: Path) -> int:
    import duckdb

    with duckdb.connect(str(path), read_only=True) as con:
        return version_of(con)


def test_there_is_a_fixture_of_every_earlier_version():
    earlier = {f"schema-{number}" for number in list(migrations())[:-1]}
    assert earlier <= {path.name for path in FIXTURES}


def test_fixtures_are_of_the_version_that_they_are_named_for(old, request):
    assert f"schema-{version_in(old.database)}" in request.node.name


def test_an_old_store_is_brought_up_to_date_and_is_sound(old):
    assert sync(old).rows == 0
    assert version_in(old.database) == max(migrations())
    faults = verify(old)
    assert len(faults) == 1
    assert BAD_LINE in faults[0]


def test_every_line_of_the_journals_is_there(old):
    sync(old)
    wanted = []
    for run_id in old.run_ids():
        for line in journal_lines(old.journal(run_id)):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record["type"] == "sample":
                place = (record["item_id"], record["epoch"], record["attempt"], record["status"])
                wanted.append((run_id, *place, record["key"][:32], record["seq"]))
    con = snapshot(old)
    found = con.execute(
        "SELECT run_id, item_id, epoch, attempt, status, replace(key::VARCHAR, '-', ''), text_id "
        "FROM samples"
    ).fetchall()
    assert sorted(found) == sorted(wanted)
    assert len(found) == 8 + 8 + 3 + 3 + 1
    assert con.execute("FROM published_results").fetchall()[0][0] == "a paper"
    whole = sample(con, old, old.run_ids()[1], "i0")
    assert (whole["prompt"], whole["output"]) == ("what is i0?", "it is i0")
    assert [score["value"] for score in whole["scores"] if score["metric"] == "accuracy"] == [
        1.0,
        0.5,
    ]


def test_migrated_and_rebuilt_from_journals_are_the_same(old):
    sync(old)
    migrated = contents(old)
    assert rebuild(old).differences == []
    sync(old)
    assert contents(old) == migrated
    assert all(migrated[table] for table in derive.DERIVED)


def contents(store: Store) -> dict[str, list]:
    """All rows but those that say how and when the store was made."""
    made = ("schema_meta", "ingest_slices", "ingest_offsets")
    con = snapshot(store)
    return {
        table: con.execute(f"FROM {table} ORDER BY ALL").fetchall()
        for table in table_names(con)
        if table not in made
    }


def test_an_old_store_has_the_tables_of_a_new_one(old, tmp_path):
    columns = (
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND NOT internal ORDER BY ALL"
    )
    with locked(old), connect(old.database) as con:
        migrated = con.execute(columns).fetchall()
    with connect(tmp_path / "new.duckdb") as con:
        assert con.execute(columns).fetchall() == migrated


def test_compacting_an_old_store_at_once_keeps_all(old):
    compact(old)
    sync(old)
    assert [BAD_LINE in fault for fault in verify(old)] == [True]
    assert snapshot(old).execute("SELECT count(*) FROM samples").fetchone() == (23,)


def test_an_old_snapshot_says_what_to_do(old):
    sync(old)
    path = next(old.published.glob("results-*.duckdb"))
    with connect(path) as con:
        con.execute("UPDATE schema_meta SET version = 1")
    with pytest.raises(StoreError, match=r"schema version 1.*harness store sync"):
        snapshot(old)


RUN = ["run", "--task", "gsm8k", "--model", "mock:gold", "--data-root", "."]
VERBS = [
    RUN, ["resume", "last"], ["rescore", "last"], ["list", "runs"], ["show", "run", "last"],
    ["show", "sample", "last", "test-0001"], ["export", "results"], ["export", "samples"],
    ["store", "sync"], ["store", "verify"], ["store", "rebuild"], ["store", "compact"],
    ["show", "diff", "last", "last"], ["compare", "mock:gold", "mock:gold"], ["fit"],
]  # fmt: skip


@pytest.fixture(scope="module")
def newer(tmp_path_factory) -> Path:
    """A folder with one question and a store with one run, which a newer package has opened since."""
    folder = tmp_path_factory.mktemp("newer")
    question = {"question": "What is 1 + 1?", "answer": "#### 2"}
    (folder / "test.jsonl").write_text(json.dumps(question) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*RUN, "--store", "own"]) == 0
    # A copy: this process holds the published results of the other open.
    store = Store(shutil.copytree(folder / "own", folder / "store"))
    for path in (store.database, *store.published.glob("results-*.duckdb")):
        with connect(path) as con:
            con.execute("UPDATE schema_meta SET version = 99")
    return folder


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_refuses_a_newer_store_and_names_both_versions(newer, verb, capsys, monkeypatch):
    monkeypatch.chdir(newer)
    assert main([*verb, "--store", "store"]) != 0
    err = capsys.readouterr().err
    assert "schema version 99" in err
    assert f"knows up to {max(migrations())}" in err
    assert "pip install -U bridge-harness" in err
