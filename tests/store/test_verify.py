"""Planted faults, each of which `verify` must find."""

from __future__ import annotations

import shutil

import pytest

from harness.store import Store, sync
from harness.store.care import compact, rebuild, verify
from harness.store.lock import locked
from harness.store.packing import pack
from harness.store.schema import connect


@pytest.fixture(scope="module")
def sound(tmp_path_factory, build):
    """A sound store and one of its runs; every test breaks a copy of it."""
    store = Store.open(tmp_path_factory.mktemp("sound") / "store")
    run_id = build.run(store, (1.0, 0.0, 1.0))
    build.run(store, (1.0,), task="demo/other")
    sync(store)
    assert verify(store) == []
    return store, run_id


@pytest.fixture
def run_id(sound, store):
    shutil.copytree(sound[0].root, store.root, dirs_exist_ok=True)
    return sound[1]


FAULTS = {
    "sample deleted": (
        "DELETE FROM samples WHERE run_id = $run AND item_id = 'i1'",
        ["8 lines were read from the journal, 7 are stored", "has no sample"],
    ),
    "score deleted": (
        "DELETE FROM scores WHERE run_id = $run AND item_id = 'i1'",
        ["8 lines were read from the journal, 7 are stored"],
    ),
    "sample doubled": (
        "INSERT INTO samples FROM samples WHERE run_id = $run AND item_id = 'i1'",
        ["item i1 epoch 0 attempt 0 is there 2 times", "8 lines were read"],
    ),
    "score doubled": (
        "INSERT INTO scores FROM scores WHERE run_id = $run AND item_id = 'i1'",
        ["score 4 (accuracy) of item i1 is there 2 times"],
    ),
    "run doubled": ("INSERT INTO runs FROM runs WHERE run_id = $run", ["is there 2 times"]),
    "offset moved": (
        "UPDATE ingest_offsets SET bytes = bytes - 30 WHERE run_id = $run",
        ["does not match the hash noted", "but the offset says"],
    ),
    "offset beyond the end": (
        "UPDATE ingest_offsets SET bytes = bytes + 1000000 WHERE run_id = $run",
        ["were read from it", "but the offset says"],
    ),
    "score without its sample": (
        "UPDATE scores SET epoch = 5 WHERE run_id = $run AND item_id = 'i1'",
        ["score 4 of item i1 epoch 5 attempt 0 has no sample"],
    ),
    "unknown status": (
        "UPDATE samples SET status = 'splendid' WHERE run_id = $run AND item_id = 'i1'",
        ["item i1 has the unknown status splendid"],
    ),
    "unknown score status": (
        "UPDATE scores SET status = 'splendid' WHERE run_id = $run AND item_id = 'i1'",
        ["score 4 has the unknown status splendid"],
    ),
    "unknown error kind": (
        "UPDATE samples SET error_kind = 'gremlins' WHERE run_id = $run AND item_id = 'i1'",
        ["unknown error kind gremlins"],
    ),
    # Item i0 exists in both tasks: only the task tells whose it is.
    "under another task": (
        "UPDATE samples SET task_id = 'demo/other' WHERE run_id = $run AND item_id = 'i0'",
        ["item i0 is stored under task demo/other 1, the run is of demo/add 1", "has no sample"],
    ),
    "no such item": (
        "DELETE FROM items WHERE task_id = 'demo/add' AND item_id = 'i2'",
        ["item i2 is no item of task demo/add 1"],
    ),
    "item doubled": (
        "INSERT INTO items FROM items WHERE task_id = 'demo/add' AND item_id = 'i2'",
        ["task demo/add 1: item i2 is there 2 times"],
    ),
    "run row deleted": ("DELETE FROM runs WHERE run_id = $run", ["no row of its own"]),
    "text_id moved": (
        "UPDATE samples SET text_id = 77 WHERE run_id = $run AND item_id = 'i1'",
        ["1 samples have no text (the first is text_id 77)"],
    ),
    "a turn forgotten": (
        "DELETE FROM ingest_slices WHERE run_id = $run",
        ["was read up to byte 0, but the offset says"],
    ),
}


@pytest.mark.parametrize(("statement", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_in_the_database_is_found(store, run_id, statement, words):
    with locked(store), connect(store.database) as con:
        if "$run" in statement:
            con.execute(statement, {"run": run_id})
        else:
            con.execute(statement)
    faults = "\n".join(verify(store))
    for word in words:
        assert word in faults


def test_one_changed_byte_anywhere_in_a_journal_is_found(store, run_id):
    path = store.journal(run_id)
    raw = path.read_bytes()
    for place in (100, len(raw) // 2, len(raw) - 3):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        assert any("was changed between bytes" in fault for fault in verify(store))
    path.write_bytes(raw)
    assert verify(store) == []


def test_a_lost_journal_and_lost_or_broken_texts_are_found(store, run_id):
    (part,) = store.texts(run_id)
    whole = part.read_bytes()
    part.write_bytes(b"not parquet")
    assert any("text parts cannot be read" in fault for fault in verify(store))
    part.unlink()
    assert any("3 samples have no text" in fault for fault in verify(store))
    part.write_bytes(whole)
    store.journal(run_id).unlink()
    assert verify(store) == [f"run {run_id}: its journal is gone"]


def test_a_damaged_packed_journal_is_found(store, run_id):
    pack(store, run_id)
    assert verify(store) == []
    store.packed_journal(run_id).write_bytes(b"PAR1 broken PAR1")
    assert any("packed journal" in fault for fault in verify(store))


def test_no_database_is_said(store, build):
    assert verify(store) == []
    build.run(store)
    assert verify(store) == ["1 runs but no database; run `harness store sync`"]


def test_rebuild_mends_what_was_found(store, run_id):
    with locked(store), connect(store.database) as con:
        con.execute("DELETE FROM samples WHERE item_id = 'i1'")
    assert verify(store) != []
    report = rebuild(store)
    assert report.differences == [
        "samples: 0 rows were only in the old database, 1 only in the journals"
    ]
    assert (report.runs, report.rows) == (2, 4)
    assert verify(store) == []
    compact(store)
    assert verify(store) == []
