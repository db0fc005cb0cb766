from __future__ import annotations

import json
import os
import threading

import pytest

from harness.core.errors import StoreError
from harness.core.records import EventRecord
from harness.store import Ingester, Journal, ingest, load, new_run_id, snapshot, sync
from harness.store.care import verify
from harness.store.ingest import refresh
from harness.store.lock import locked
from harness.store.publish import current
from harness.store.queries import attempts, counts, item_values, metrics, run_rows, sample, usage
from harness.store.schema import connect


def table(store, query):
    with connect(store.database) as con:
        return con.execute(query).fetchall()


def test_a_run_becomes_rows(store, build):
    run_id = build.run(store, (1.0, 0.0, 1.0))
    report = sync(store)
    assert (report.rows, report.scores, report.runs, report.errors) == (3, 3, 1, 0)
    con = snapshot(store)
    (row,) = run_rows(con)
    assert (row.run_id, row.task, row.version, row.model) == (run_id, "demo/add", "1", "mock:gold")
    assert (row.status, row.metric, row.errors, row.seed) == ("done", "accuracy", "wrong", 7)
    assert (row.n_planned, row.is_baseline, row.seconds, row.variant) == (3, True, 2.5, "v1")
    assert json.loads(row.config) == {"limit": None}
    assert item_values(con, run_id, "accuracy") == [
        ("i0", "c-i0", 1.0, 1),
        ("i1", "c-i1", 0.0, 1),
        ("i2", "c-i2", 1.0, 1),
    ]
    assert usage(con, run_id).tokens_in == 30
    assert table(store, "SELECT benchmark, license, higher_is_better FROM tasks") == [
        ("demo", "CC0-1.0", True)
    ]
    assert table(store, "SELECT model_id, is_baseline FROM models") == [("m1", True)]


def test_sync_twice_changes_nothing(store, build):
    build.run(store)
    assert sync(store).published is not None
    again = sync(store)
    assert (again.rows, again.runs, again.published) == (0, 0, None)


def test_a_journal_copied_back_brings_no_rows(store, build, tmp_path):
    run_id = build.run(store)
    sync(store)
    copy = store.journal(run_id).read_bytes()
    store.journal(run_id).unlink()
    assert sync(store).rows == 0
    store.journal(run_id).write_bytes(copy)
    assert sync(store).rows == 0
    assert verify(store) == []


def test_resume_adds_only_what_is_new(store, build):
    run_id = new_run_id()
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id, ["i0", "i1"]))
        journal.append(build.sample(run_id, "i0"))
        journal.append(build.score(run_id, "i0"))
        journal.append(build.finished(run_id, status="partial"))
    sync(store)
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(EventRecord(seq=0, ts="", run_id=run_id, schema=1, kind="resumed"))
        sync(store)
        assert run_rows(snapshot(store))[0].status == "running"
        journal.append(build.sample(run_id, "i1"))
        journal.append(build.score(run_id, "i1", 0.0))
        journal.append(build.finished(run_id))
    assert sync(store).rows == 1
    con = snapshot(store)
    assert run_rows(con)[0].status == "done"
    assert counts(con, run_id)["open"] == 0
    assert verify(store) == []


def test_torn_tail_waits_until_it_is_whole(store, build):
    run_id = build.run(store)
    whole = store.journal(run_id).read_bytes()
    lines = whole.splitlines(keepends=True)
    torn_at = len(whole) - len(lines[-1]) + 10
    store.journal(run_id).write_bytes(whole[:torn_at])
    assert sync(store).rows == 3
    assert table(store, "SELECT bytes FROM ingest_offsets") == [(len(whole) - len(lines[-1]),)]
    assert run_rows(snapshot(store))[0].status == "running"
    with store.journal(run_id).open("ab") as file:
        file.write(whole[torn_at:])
    assert sync(store).runs == 1
    assert run_rows(snapshot(store))[0].status == "done"
    assert verify(store) == []


BAD = {
    "broken": b'{"type":"sample","seq":',
    "not utf-8": b'{"type":"sample","output":"\xff"}',
    "unknown type": b'{"type":"poem","seq":3,"ts":"2026-01-01T00:00:00Z","run_id":"RUN"}',
    "unknown status": b'{"type":"sample","seq":3,"ts":"2026-01-01T00:00:00.000000Z","run_id":"RUN",'
    b'"schema":1,"item_id":"i0","epoch":0,"attempt":5,"key":"k","status":"marvellous"}',
    "wrong type": b'{"type":"sample","seq":3,"ts":"2026-01-01T00:00:00.000000Z","run_id":"RUN",'
    b'"schema":1,"item_id":"i0","epoch":"zero","attempt":5,"key":"k","status":"unscored"}',
    "field missing": b'{"type":"sample","seq":3,"ts":"2026-01-01T00:00:00.000000Z","run_id":"RUN",'
    b'"schema":1,"epoch":0,"attempt":5,"key":"k","status":"unscored"}',
    "another run's": b'{"type":"event","seq":3,"ts":"2026-01-01T00:00:00.000000Z",'
    b'"run_id":"other","schema":1,"kind":"note"}',
    "no time": b'{"type":"event","seq":3,"ts":"yesterday","run_id":"RUN","schema":1,"kind":"note"}',
    "array": b"[1, 2]",
    "empty": b"",
    "two in one": b"{}{}",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_line_is_put_aside_and_the_rest_goes_on(store, build, bad):
    run_id = build.run(store)
    bad = bad.replace(b"RUN", run_id.encode())
    lines = store.journal(run_id).read_bytes().splitlines(keepends=True)
    store.journal(run_id).write_bytes(b"".join([*lines[:3], bad + b"\n", *lines[3:]]))
    report = sync(store)
    assert (report.rows, report.scores, report.errors) == (3, 3, 1)
    byte = sum(map(len, lines[:3]))
    ((where, reason),) = table(store, "SELECT byte, reason FROM ingest_errors")
    assert where == byte
    assert reason
    entry = json.loads(store.quarantine(run_id).read_text())
    assert (entry["byte"], entry["line"]) == (byte, bad.decode("utf-8", "backslashreplace"))
    assert run_rows(snapshot(store))[0].status == "partial"
    (fault,) = verify(store)
    assert f"the line at byte {byte} could not be read" in fault


def test_replayed_lines_bring_no_second_row(store, build):
    run_id = build.run(store)
    lines = store.journal(run_id).read_bytes().splitlines(keepends=True)
    store.journal(run_id).write_bytes(b"".join([*lines[:4], lines[1], lines[2], *lines[4:]]))
    report = sync(store)
    assert (report.rows, report.scores, report.errors) == (3, 3, 2)
    assert {r for (r,) in table(store, "SELECT reason FROM ingest_errors")} == {
        "seq 1 was there before",
        "seq 2 was there before",
    }


def test_quarantine_holds_a_line_once_when_a_turn_is_done_again(store, build, monkeypatch):
    run_id = build.run(store)
    with store.journal(run_id).open("ab") as file:
        file.write(b"broken\n")
    with monkeypatch.context() as patch:
        patch.setattr(load.Loader, "_save", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sync(store)
    assert table(store, "SELECT count(*) FROM samples") == [(0,)]
    assert sync(store).rows == 3
    assert len(store.quarantine(run_id).read_bytes().splitlines()) == 1
    assert verify(store)[0].count("could not be read") == 1


@pytest.mark.parametrize("fault", ["changed", "shortened"])
def test_a_changed_journal_is_suspect_and_left_alone(store, build, fault):
    run_id = build.run(store)
    other = build.run(store)
    sync(store)
    raw = store.journal(run_id).read_bytes()
    if fault == "changed":
        raw = raw.replace(b'"value":0.0', b'"value":1.0') + raw.splitlines(keepends=True)[-1]
    else:
        raw = raw[:100]
    store.journal(run_id).write_bytes(raw)
    assert sync(store).rows == 0
    status = {row.run_id: row.status for row in run_rows(snapshot(store))}
    assert status == {run_id: "suspect", other: "done"}
    assert any(run_id in line for line in verify(store))
    assert counts(snapshot(store), run_id)["n_scored"] == 3


def test_a_journal_without_its_start_is_suspect(store, build):
    run_id = build.run(store)
    lines = store.journal(run_id).read_bytes().splitlines(keepends=True)
    store.journal(run_id).write_bytes(b"garbage\n" + b"".join(lines[1:]))
    good = build.run(store)
    assert sync(store).rows == 3
    assert [row.run_id for row in run_rows(snapshot(store))] == [good]
    assert any("does not begin with a readable run_started" in line for line in verify(store))


def test_a_journal_of_a_newer_format_is_refused(store, build):
    build.run(store, schema=99)
    assert sync(store).rows == 0
    (fault,) = verify(store)
    assert "record format 99" in fault
    assert "pip install -U bridge-harness" in fault


def test_lines_longer_than_a_turn_are_taken_whole(store, build, monkeypatch):
    monkeypatch.setattr(load, "SLICE_BYTES", 300)
    run_id = build.run(store, (1.0,) * 6)
    assert sync(store).rows == 6
    ((n, total),) = table(store, "SELECT count(*), sum(bytes) FROM ingest_slices")
    assert n >= 13
    assert total == store.journal(run_id).stat().st_size
    assert verify(store) == []


def test_an_item_of_two_runs_is_entered_once(store, build):
    build.run(store)
    build.run(store)
    sync(store)
    assert table(store, "SELECT count(*) FROM items") == [(3,)]
    assert table(store, "SELECT count(*) FROM models") == [(1,)]
    assert table(store, "SELECT count(*) FROM model_variants") == [(1,)]
    assert table(store, "SELECT count(*) FROM tasks") == [(1,)]


def test_tasks_that_share_an_item_id_stay_apart(store, build):
    one = build.run(store, (1.0, 1.0))
    two = build.run(store, (0.0, 0.0), task="demo/other")
    three = build.run(store, (0.0, 1.0), task_version="2")
    sync(store)
    con = snapshot(store)
    assert [v[2] for v in item_values(con, one, "accuracy")] == [1.0, 1.0]
    assert [v[2] for v in item_values(con, two, "accuracy")] == [0.0, 0.0]
    assert [v[2] for v in item_values(con, three, "accuracy")] == [0.0, 1.0]
    assert con.execute("SELECT count(*), sum(k) FROM item_scores").fetchone() == (6, 3.0)
    assert verify(store) == []


def test_rescoring_keeps_history_and_touches_no_sample(store, build):
    run_id = build.run(store, (1.0, 0.0))
    sync(store)
    samples = table(store, "FROM samples ORDER BY ALL")
    with Journal(store.journal(run_id), run_id) as journal:
        record = build.score(
            run_id, "i1", 1.0, scorer_version="2", replaces=4, answer="five", metrics={"chars": 3.0}
        )
        journal.append(record)
    report = sync(store)
    assert (report.rows, report.scores) == (0, 1)
    con = snapshot(store)
    assert [v[2] for v in item_values(con, run_id, "accuracy")] == [1.0, 1.0]
    assert metrics(con, run_id) == ["accuracy", "chars"]
    assert item_values(con, run_id, "chars") == [("i1", "c-i1", 3.0, 1)]
    history = [s for s in sample(con, store, run_id, "i1")["scores"] if s["metric"] == "accuracy"]
    assert [(s["value"], s["scorer_version"], s["replaces"]) for s in history] == [
        (0.0, "1", None),
        (1.0, "2", 4),
    ]
    assert con.execute("SELECT k FROM item_scores WHERE item_id = 'i1'").fetchone() == (1.0,)
    assert table(store, "FROM samples ORDER BY ALL") == samples
    assert verify(store) == []


def test_only_the_latest_attempt_counts(store, build):
    run_id = new_run_id()
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id))
        journal.append(build.sample(run_id, status="error", error_kind="network"))
        journal.append(build.sample(run_id, attempt=1))
        journal.append(build.score(run_id, attempt=1))
    sync(store)
    con = snapshot(store)
    (row,) = attempts(con, run_id)
    assert (row["attempt"], row["status"], row["counted"]) == (1, "scored", 1.0)
    assert usage(con, run_id).tokens_in == 20


def test_long_text_lies_beside_the_journal_and_comes_back(store, build):
    run_id = new_run_id()
    long = "a long answer " * 100
    event = {"messages": ["x" * 2000]}
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id))
        journal.append(
            EventRecord(
                seq=0, ts="", run_id=run_id, schema=1, kind="call", item_id="i0", epoch=0,
                attempt=0, data=event,
            )
        )  # fmt: skip
        journal.append(
            build.sample(
                run_id, output=long, reasoning="why", tool_log="log\x00", prompt_ids_head=(1, 2),
                choice_logprobs=(-0.5, -1.25), prompt_truncated=3,
            )
        )  # fmt: skip
        journal.append(build.score(run_id, answer=long, explanation="as the reference says"))
    sync(store)
    got = sample(snapshot(store), store, run_id, "i0")
    assert (got["output"], got["reasoning"], got["tool_log"]) == (long, "why", "log\x00")
    assert (got["prompt_ids_head"], got["choice_logprobs"]) == ([1, 2], [-0.5, -1.25])
    assert got["prompt_truncated"] == 3
    assert got["scores"][0]["answer"] == long
    assert got["scores"][0]["explanation"] == "as the reference says"
    assert json.loads(got["events"][0]["json"]) == event
    raw = store.database.read_bytes()
    assert b"a long answer a long answer " * 20 not in raw
    assert b"x" * 1500 not in raw


def test_a_second_ingester_returns_at_once(store, build):
    build.run(store)
    with locked(store) as held:
        assert held
        assert sync(store).busy
    assert sync(store).rows == 3


def test_an_ingester_of_another_process_returns_at_once_while_one_works(store, build, python):
    build.run(store)
    code = "import sys; from harness.store import *; print(sync(Store.open(sys.argv[1])).busy)"
    with locked(store):
        second = python(code, store.root)
        assert second.communicate() == ("True\n", "")
        assert second.returncode == 0
        assert not store.database.exists()
    third = python(code, store.root)
    assert third.communicate() == ("False\n", "")
    assert table(store, "SELECT count(*) FROM samples") == [(3,)]


def test_two_ingesters_at_once_both_succeed(store, build, python):
    build.run(store, (1.0,) * 50)
    code = (
        "import sys; from harness.store import *; print(sync(Store.open(sys.argv[1]), wait=True))"
    )
    both = [python(code, store.root) for _ in range(2)]
    out = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("rows=50" in text for text in out) == 1
    assert sum("rows=0" in text for text in out) == 1
    assert verify(store) == []


def test_waiting_ingester_works_when_the_lock_is_free(store, build):
    build.run(store)
    reports = []
    thread = threading.Thread(target=lambda: reports.append(sync(store, wait=True)))
    with locked(store):
        thread.start()
        assert sync(store).busy
    thread.join()
    assert reports[0].rows == 3


def test_ingester_drains_in_the_background_and_at_the_end(store, build, monkeypatch):
    monkeypatch.setattr(ingest, "LOOK_BYTES", 1)
    run_id = new_run_id()
    seen = threading.Event()
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id, ["i0", "i1"]))
        journal.append(build.sample(run_id, "i0"))
        ingester = Ingester(store, every=0.001)
        look = ingester._look
        ingester._look = lambda: (look(), seen.set())
        ingester.start()
        assert seen.wait(30)
        journal.append(build.sample(run_id, "i1"))
    ingester.stop()
    assert ingester.error is None
    assert table(store, "SELECT count(*) FROM samples") == [(2,)]
    assert current(store) is not None


def test_ingester_keeps_its_error_and_stop_raises_it_while_it_lasts(store, build, monkeypatch):
    build.run(store)
    seen = threading.Event()

    def full(*_, **__):
        seen.set()
        raise StoreError("cannot write to store: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ingest, "LOOK_BYTES", 1)
        patch.setattr(ingest, "sync", full)
        ingester = Ingester(store, every=0.001)
        ingester.start()
        assert seen.wait(30)
        with pytest.raises(StoreError, match="No space left"):
            ingester.stop()
        assert isinstance(ingester.error, StoreError)
    assert sync(store).rows == 3


def test_full_disk_while_ingesting_is_one_line_and_loses_nothing(store, build, monkeypatch):
    build.run(store)

    def full(*_):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(load, "fsync", full)
        with pytest.raises(StoreError, match=r"No space left.*harness store sync"):
            sync(store)
    assert sync(store).rows == 3
    assert verify(store) == []


def test_a_store_that_cannot_be_written_is_still_read(store, build, monkeypatch):
    run_id = build.run(store)
    sync(store)

    def refuse(*_args, **_kwargs):
        raise StoreError("cannot lock store: read-only file system")

    monkeypatch.setattr("harness.store.ingest.locked", refuse)
    refresh(store)
    assert [row.run_id for row in run_rows(snapshot(store))] == [run_id]
