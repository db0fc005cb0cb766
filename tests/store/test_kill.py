"""The short form of the kill test: writers at work, the ingester killed at any moment."""

from __future__ import annotations

from harness.store import new_run_id, read_records, snapshot, sync
from harness.store.care import verify

WRITER = """
import sys
from pathlib import Path
from harness.core.records import RunStarted, SampleRecord, ScoreRecord
from harness.store import Journal, Store
store, run, n = Store(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
with Journal(store.journal(run), run) as journal:
    journal.append(RunStarted(seq=0, ts="", run_id=run, schema=1, task="t", task_version="1",
        model="mock:gold", is_baseline=True, strategy="single", solver="generate", scorer="exact",
        metric="accuracy", seed=0, errors="wrong", config={}, identity={"variant_id": "v"},
        task_info={}, environment={}, items=[{"item_id": f"i{i}"} for i in range(n)], epochs=1,
        n_planned=n))
    for i in range(n):
        journal.append(SampleRecord(seq=0, ts="", run_id=run, schema=1, item_id=f"i{i}", epoch=0,
            attempt=0, key=f"{i:064x}", status="unscored", output="x" * 300))
        journal.append(ScoreRecord(seq=0, ts="", run_id=run, schema=1, item_id=f"i{i}", epoch=0,
            attempt=0, scorer="exact", scorer_version="1", metric="accuracy", status="scored",
            value=1.0))
        print(i, flush=True)
"""
INGESTER = """
import sys
from pathlib import Path
from harness.store import Store, load, sync
load.SLICE_BYTES = 20_000
while True:
    print("turn", flush=True)
    sync(Store(Path(sys.argv[1])))
"""


def stored(store) -> int:
    if not store.current_file.exists():
        return 0
    return snapshot(store).execute("SELECT count(*) FROM samples").fetchone()[0]


def test_nothing_is_lost_or_doubled_when_ingester_and_writer_are_killed(store, python):
    n = 1500
    steady, victim = new_run_id(), new_run_id()
    writers = [python(WRITER, store.root, run_id, n) for run_id in (steady, victim)]
    seen = [0]
    for n_turns in (2, 3, 4):
        ingester = python(INGESTER, store.root)
        for _ in range(n_turns):
            assert ingester.stdout.readline() == "turn\n"
        ingester.kill()
        ingester.wait()
        seen.append(stored(store))
    for _ in range(200):
        acknowledged = int(writers[1].stdout.readline())
    writers[1].kill()
    rest = writers[1].communicate()[0].splitlines()
    acknowledged = max([acknowledged, *(int(line) for line in rest if line)])
    out, err = writers[0].communicate()
    assert writers[0].returncode == 0, err
    assert len(out.splitlines()) == n

    sync(store, wait=True)
    seen.append(stored(store))
    assert seen == sorted(seen)
    lines = {
        run_id: [r.item_id for r in read_records(store.journal(run_id)) if hasattr(r, "key")]
        for run_id in (steady, victim)
    }
    assert lines[steady] == [f"i{i}" for i in range(n)]
    assert len(lines[victim]) >= acknowledged + 1
    assert seen[-1] == sum(map(len, lines.values()))
    assert verify(store) == []
