"""Rows of the page Runs: what goes on right now, and every run as it ended."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.core.records import EventRecord, RunFinished, SampleRecord, encoder
from harness.store import Journal, Store, read_records, snapshot, sync
from harness.store.care import pack_run
from harness.store.journal import started
from leaderboard.rows import live as module
from leaderboard.rows.live import Tails, ingested
from leaderboard.rows.runs import (
    differences,
    facts,
    reproduce_command,
    resume_command,
    run_list,
    status_counts,
)


def look(store: Store):
    return Tails(store).look({})


def append(store: Store, run_id: str, *records) -> None:
    with store.journal(run_id).open("ab") as file:
        for record in records:
            file.write(encoder.encode(record) + b"\n")


def sample(run_id: str, i: int, **changes) -> SampleRecord:
    fields = {
        "seq": 90 + i, "ts": "2026-03-01T10:02:00.000000Z", "run_id": run_id, "schema": 1,
        "item_id": f"demo-{i}", "epoch": 0, "attempt": 0, "key": f"{i:064x}", "status": "refused",
    }  # fmt: skip
    return SampleRecord(**(fields | changes))


def grow_old(store: Store, run_id: str) -> None:
    """Make a journal look as if nobody had written to it for long."""
    then = time.time() - 3600
    os.utime(store.journal(run_id), (then, then))


def test_a_run_shows_before_anything_is_published(running_store):
    (run,) = look(running_store)
    assert (run.state, run.made, run.n_planned, run.done) == ("running", 3, 8, 3 / 8)
    # two of three right; Wilson, statsmodels: proportion_confint(2, 3, method="wilson")
    assert run.value == pytest.approx(2 / 3)
    assert (run.lo, run.hi) == pytest.approx((0.2076596, 0.9385081), abs=1e-6)


def test_the_speed_is_that_of_the_last_attempts(running_store):
    # samples have the seconds 1, 3 and 5: two attempts in four seconds, and five are left
    (run,) = look(running_store)
    assert run.a_minute == pytest.approx(30.0)
    assert run.minutes_left == pytest.approx(5 / 30)


def test_only_what_is_new_is_read(running_store, monkeypatch):
    tails = Tails(running_store)
    (run,) = tails.look({})
    decoded = []
    monkeypatch.setattr(module, "decoder", _Spy(module.decoder, decoded))
    (same,) = tails.look({})
    assert (same.made, decoded) == (3, [])
    append(running_store, run.run_id, sample(run.run_id, 3), sample(run.run_id, 4))
    (more,) = tails.look({})
    assert (more.made, len(decoded), more.others) == (5, 2, "refused 2")


class _Spy:
    def __init__(self, decoder, decoded):
        self.decoder, self.decoded = decoder, decoded

    def decode(self, line):
        self.decoded.append(line)
        return self.decoder.decode(line)


def test_a_torn_line_waits_until_it_is_whole(running_store):
    tails = Tails(running_store)
    (run,) = tails.look({})
    line = encoder.encode(sample(run.run_id, 3)) + b"\n"
    with running_store.journal(run.run_id).open("ab") as file:
        file.write(line[:40])
        file.flush()
        assert tails.look({})[0].made == 3
        file.write(line[40:])
    assert tails.look({})[0].made == 4


def test_a_line_that_cannot_be_read_stops_nothing(running_store):
    (run,) = look(running_store)
    with running_store.journal(run.run_id).open("ab") as file:
        file.write(b"{not json}\n")
    append(running_store, run.run_id, sample(run.run_id, 3))
    assert look(running_store)[0].made == 4


def test_a_long_journal_is_read_piece_by_piece(running_store, monkeypatch):
    (whole,) = look(running_store)
    monkeypatch.setattr(module, "LOOK_BYTES", 400)  # less than the first line
    tails = Tails(running_store)
    seen = [tails.look({}) for _ in range(8)]
    assert seen[0] == [] or seen[0][0].read < 1
    assert seen[-1] == [whole]


def test_a_retried_attempt_is_counted_once_as_it_ended(running_store):
    (run,) = look(running_store)
    again = sample(run.run_id, 3, status="error", error_kind="network")
    append(running_store, run.run_id, again)
    (failed,) = look(running_store)
    assert (failed.made, failed.others, failed.n_counted) == (4, "fault 1", 3)
    append(running_store, run.run_id, sample(run.run_id, 3, attempt=1))
    (mended,) = look(running_store)
    assert (mended.made, mended.others, mended.n_counted) == (4, "refused 1", 4)


def test_a_killed_run_is_stopped_and_one_that_is_locked_runs(running_store):
    (run,) = look(running_store)
    grow_old(running_store, run.run_id)
    assert look(running_store)[0].state == "stopped"
    # Another process writes it, and has not for an hour: it waits for its model.
    code = "import fcntl, sys; f = open(sys.argv[1], 'ab'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    held = subprocess.Popen(
        [sys.executable, "-P", "-c", code, str(running_store.journal(run.run_id))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert held.stdout.readline() == "held\n"
        assert look(running_store)[0].state == "running"
    finally:
        held.communicate("\n")
    assert look(running_store)[0].state == "stopped"


def test_without_a_list_of_locks_nothing_is_claimed(running_store, monkeypatch):
    monkeypatch.setattr(module, "_LOCKS", Path("/nowhere/locks"))
    assert look(running_store)[0].state == "unknown"


def test_looking_takes_no_lock(running_store, monkeypatch):
    taken = []
    monkeypatch.setattr(fcntl, "flock", lambda *args: taken.append(args))
    look(running_store)
    assert taken == []


def test_a_run_writes_on_while_it_is_looked_at(running_store):
    tails = Tails(running_store)
    (run,) = tails.look({})
    with Journal(running_store.journal(run.run_id), run.run_id) as journal:
        for i in range(3, 8):
            journal.append(sample(run.run_id, i))
            assert tails.look({})[0].made == i + 1
    assert len(list(read_records(running_store.journal(run.run_id)))) == 1 + 2 * 3 + 5


def test_the_end_is_seen_and_a_resumed_run_goes_on(running_store):
    (run,) = look(running_store)
    about = {"seq": 99, "ts": "2026-03-01T10:03:00.000000Z", "run_id": run.run_id, "schema": 1}
    append(running_store, run.run_id, RunFinished(**about, status="partial", seconds=1.0))
    ended = look(running_store)[0]
    assert (ended.state, ended.minutes_left) == ("ended", None)
    append(running_store, run.run_id, EventRecord(**about, kind="resumed"))
    assert look(running_store)[0].state == "running"


def test_what_the_snapshot_shows_whole_is_not_live(store, write):
    run_id = write(store, [1.0, 0.0])
    assert [run.run_id for run in look(store)] == [run_id]
    sync(store)
    tails, known = Tails(store), ingested(snapshot(store))
    assert tails.look(known) == []
    # it is resumed: its journal grows past what the snapshot holds
    append(store, run_id, sample(run_id, 1, attempt=1))
    assert [run.run_id for run in tails.look(known)] == [run_id]
    sync(store)
    assert tails.look(ingested(snapshot(store))) == []
    assert pack_run(store, run_id) or True
    assert tails.look(ingested(snapshot(store))) == []


def test_an_unfinished_run_stays_live_though_it_is_published(running_store):
    sync(running_store)
    known = ingested(snapshot(running_store))
    assert [run.made for run in Tails(running_store).look(known)] == [3]


def test_live_numbers_are_the_published_ones(partial_store):
    con = snapshot(partial_store)
    published = {run.run_id: run for run in run_list(con)}
    for run in look(partial_store):
        other = published[run.run_id]
        assert (run.value, run.lo, run.hi) == pytest.approx((other.value, other.lo, other.hi))
        assert (run.n_scored, run.n_counted) == (other.n_scored, other.n_counted)
        assert run.made == other.n_planned - other.open


def test_the_list_of_runs(partial_store):
    gold, whole, part = run_list(snapshot(partial_store))
    assert [run.model for run in (gold, whole, part)] == ["mock:gold", "hf:b", "hf:a"]
    assert [run.status for run in (gold, whole, part)] == ["done", "done", "unfinished"]
    assert (gold.baseline, "baseline" in gold.flags, whole.baseline) == (True, True, False)
    counts = {count.status: count.n for count in status_counts(part)}
    assert sum(counts.values()) == part.n_planned == 10
    assert counts["fault of harness, engine or network"] == 1
    assert counts["open"] == 2
    assert sum(count.share for count in status_counts(part)) == pytest.approx(1.0)


def test_clusters_widen_the_interval_of_a_run(store, write):
    # clusters (1,1,0,1), (0,0,1), (1,1), (0,0,0): mean .5, half width 3.182446 x .204124
    values = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0]
    write(store, [float(v) for v in values], clusters=list("aaaabbbccddd"))
    sync(store)
    (run,) = run_list(snapshot(store))
    assert (run.value, run.method) == (0.5, "cluster-t")
    assert (run.lo, run.hi) == pytest.approx((-0.149614, 1.149614), abs=1e-6)


def test_a_changed_journal_is_suspect(store, write):
    run_id = write(store, [1.0, 0.0])
    sync(store)
    path = store.journal(run_id)
    path.write_bytes(path.read_bytes().replace(b"It is 0.", b"It is 9."))
    append(store, run_id, sample(run_id, 1, attempt=1))
    sync(store)
    assert [run.status for run in run_list(snapshot(store))] == ["suspect"]


def test_in_what_two_runs_differ(store, write):
    a = write(store, [1.0, 0.0], seed=7)
    b = write(store, [1.0, 0.0], model="hf:b", environment={"git_commit": "def5678"})
    sync(store)
    rows = {
        (row.group, row.name): (row.a, row.b) for row in differences(snapshot(store), store, a, b)
    }
    assert rows["items", "shared items"] == ("2", "2")
    assert rows["items", "shared items with other content"] == ("0", "0")
    assert rows["model", "name"] == ("a", "b")
    assert rows["environment", "git_commit"] == ("abc1234", "def5678")
    assert ("task", "name") not in rows


def test_a_run_says_what_it_was_and_how_to_do_it_again(store, write):
    run_id = write(store, [1.0], config={
        "task": "demo/add", "model": "hf:a?dtype=bf16", "limit": 5, "seed": 0, "epochs": 1,
        "system": "be brief; don't guess", "no_data": True, "stop": ["\n", "END"],
        "args": {"shots": "2"}, "errors": "wrong",
    })  # fmt: skip
    named = {(fact.group, fact.name): fact.value for fact in facts(store, run_id)}
    assert named["environment", "packages.duckdb"] == "2.0.1"
    assert named["task", "license"] == "CC0-1.0"
    assert ("model", "revision") not in named
    import shlex

    words = shlex.split(reproduce_command(started(store, run_id), store))
    assert words == [
        "harness", "run", "--task", "demo/add", "--model", "hf:a?dtype=bf16", "--limit", "5",
        "--system", "be brief; don't guess", "--no-data", "--stop", "\n", "--stop", "END",
        "--arg", "shots=2", "--fresh", "--store", str(store.root),
    ]  # fmt: skip
    assert resume_command(store, run_id).startswith(f"harness resume {run_id} --store ")


def test_a_run_whose_journal_is_gone_has_no_facts(many_store):
    assert facts(many_store, run_list(snapshot(many_store))[0].run_id) == []


def test_an_adaptive_run_shows_its_estimate_and_never_its_mean(running_store, write):
    config = {"adaptive": True, "task": "demo/add", "model": "hf:b"}
    run_id = write(running_store, [1.0, 1.0], model="hf:b", config=config, finish=False)
    outcome = {"score": 0.25, "lo": 0.125, "hi": 0.5, "level": 0.95, "n_asked": 2, "n_answered": 2}
    append(running_store, run_id, EventRecord(
        seq=50, ts="2026-03-01T10:02:00.000000Z", run_id=run_id, schema=1, kind="adaptive",
        data=outcome,
    ))  # fmt: skip
    live = {run.run_id: run for run in look(running_store)}
    assert live[run_id].value is None
    sync(running_store)
    rows = {run.run_id: run for run in run_list(snapshot(running_store))}
    row = rows[run_id]
    assert (row.value, row.lo, row.hi, row.method) == (0.25, 0.125, 0.5, "irt-adaptive")
    assert "adaptive" in row.flags
