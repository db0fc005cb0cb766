from __future__ import annotations

import pytest

from harness.core.errors import StoreError
from harness.store import Journal, packing, read_records, snapshot, sync
from harness.store.care import compact, pack_run, verify
from harness.store.packing import pack, packed_facts, unpack
from harness.store.queries import counts


def test_packing_is_lossless_to_the_byte(store, build):
    run_id = build.run(store)
    with store.journal(run_id).open("ab") as file:
        file.write('{"broken": "é, \\t \\"quoted\\", # \'x\'\n'.encode())
        file.write(b"  spaces and, commas ;|\t tabs  \n")
    before = store.journal(run_id).read_bytes()
    records = list(read_records(store.journal(run_id)))
    assert pack(store, run_id)
    assert not store.journal(run_id).exists()
    assert packed_facts(store.packed_journal(run_id))[0] == len(before)
    assert list(read_records(store.journal(run_id))) == records
    assert store.run_ids() == [run_id]
    unpack(store, run_id)
    assert store.journal(run_id).read_bytes() == before
    assert not store.packed_journal(run_id).exists()


def test_nothing_is_packed_while_it_is_written_or_torn(store, build):
    run_id = build.run(store)
    with Journal(store.journal(run_id), run_id):
        assert not pack(store, run_id)
    with store.journal(run_id).open("ab") as file:
        file.write(b'{"torn')
    assert not pack(store, run_id)
    assert store.journal(run_id).exists()


@pytest.mark.parametrize("line", [b"\n", b'{"not": "utf-8 \xff"}\n'])
def test_what_is_no_text_stays_as_it_is(store, build, line):
    run_id = build.run(store)
    with store.journal(run_id).open("ab") as file:
        file.write(line)
    before = store.journal(run_id).read_bytes()
    assert not pack(store, run_id)
    assert store.journal(run_id).read_bytes() == before
    assert not list(store.run_dir(run_id).glob("*.parquet*"))


def test_writing_goes_on_in_a_packed_run(store, build):
    run_id = build.run(store)
    before = store.journal(run_id).read_bytes()
    pack(store, run_id)
    with Journal(store.journal(run_id), run_id) as journal:
        assert journal.append(build.sample(run_id, "i9")) == 8
    assert store.journal(run_id).read_bytes().startswith(before)
    assert len(list(read_records(store.journal(run_id)))) == 9


def test_the_written_form_wins_when_a_crash_left_both(store, build):
    run_id = build.run(store)
    before = store.journal(run_id).read_bytes()
    pack(store, run_id)
    store.journal(run_id).write_bytes(before)
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.sample(run_id, "i9"))
    assert len(list(read_records(store.journal(run_id)))) == 9
    assert pack(store, run_id)
    assert len(list(read_records(store.journal(run_id)))) == 9


def test_a_second_unpacking_does_not_replace_a_journal_in_use(store, build, monkeypatch):
    run_id = build.run(store)
    pack(store, run_id)
    unpack_to = packing.unpack_to

    def overtaken(packed, target):
        unpack_to(packed, target)
        store.journal(run_id).write_bytes(b"in use\n")

    monkeypatch.setattr(packing, "unpack_to", overtaken)
    unpack(store, run_id)
    assert store.journal(run_id).read_bytes() == b"in use\n"
    assert not list(store.run_dir(run_id).glob("*.tmp"))


def test_what_does_not_read_back_is_not_packed(store, build, monkeypatch):
    run_id = build.run(store)
    before = store.journal(run_id).read_bytes()
    monkeypatch.setattr(packing, "packed_lines", lambda _: iter([b"something else"]))
    with pytest.raises(StoreError, match="stays as it is"):
        pack(store, run_id)
    assert store.journal(run_id).read_bytes() == before
    assert not store.packed_journal(run_id).exists()


def test_damaged_packed_journal_is_noticed(store, build):
    import duckdb

    run_id = build.run(store)
    pack(store, run_id)
    path = store.packed_journal(run_id)
    with duckdb.connect() as con:
        con.execute(
            f"COPY (SELECT * FROM read_parquet('{path}') LIMIT 3) TO '{path}.new' (FORMAT parquet, "
            "KV_METADATA {journal_bytes: '5', journal_sha256: '0'})"
        )
    path.with_name(path.name + ".new").rename(path)
    with pytest.raises(StoreError, match="damaged"):
        unpack(store, run_id)


def test_compact_packs_finished_runs_only_and_changes_no_answer(store, build):
    done = build.run(store)
    open_run = build.run(store)
    lines = store.journal(open_run).read_bytes().splitlines(keepends=True)
    store.journal(open_run).write_bytes(b"".join(lines[:-1]))
    sync(store)
    before = counts(snapshot(store), done)
    assert compact(store).packed == [done]
    assert verify(store) == []
    assert sync(store).rows == 0
    assert counts(snapshot(store), done) == before


def test_a_packed_run_is_ingested_by_a_new_database(store, build):
    run_id = build.run(store)
    sync(store)
    compact(store)
    store.database.unlink()
    assert sync(store).rows == 3
    assert verify(store) == []
    assert counts(snapshot(store), run_id)["n_scored"] == 3


def test_a_run_is_packed_alone_once_it_is_wholly_published(store, build):
    run_id = build.run(store)
    sync(store)
    assert not pack_run(store, run_id)  # too small to be worth it
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.score(run_id, "i0", 0.0, replaces=2))
    assert not pack_run(store, run_id, least=0)  # the last line is not ingested yet
    sync(store)
    assert pack_run(store, run_id, least=0)
    assert verify(store) == []
    assert not pack_run(store, run_id, least=0)
