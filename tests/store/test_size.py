"""The size bar: 100,000 attempts stay under 30 MB in the database (`specs`: 60 MB for a million)."""

from __future__ import annotations

import os
import re
from random import Random

from harness.core.records import SampleRecord
from harness.store import Journal, read_records, snapshot, sync
from harness.store.care import compact
from harness.store.queries import answers_for_keys

RUN = "20260101T{:012d}-aaaaaaaa"
KEY = re.compile('"key":"([0-9a-f]{64})"')


def test_100_000_attempts_stay_narrow(store, build, monkeypatch):
    monkeypatch.setattr(os, "fdatasync", lambda _: None)  # the bar is about size
    random = Random(1)
    n_runs, n_items = 20, 5000
    items = [f"item-{n:05d}" for n in range(n_items)]
    first = RUN.format(0)
    with Journal(store.journal(first), first) as journal:
        journal.append(build.started(first, items))
        for item in items:
            journal.append(
                build.sample(
                    first, item, latency_ms=random.expovariate(0.01),
                    tokens_in=random.randrange(50, 400), tokens_out=random.randrange(1, 200),
                )
            )  # fmt: skip
            value = float(random.random() < 0.6)
            journal.append(build.score(first, item, value, answer=random.choice("ABCD")))
        journal.append(build.finished(first))
    text = store.journal(first).read_text()
    for number in range(1, n_runs):
        # Another run with the same items and keys of its own.
        copy = text.replace(first, RUN.format(number))
        path = store.journal(RUN.format(number))
        path.parent.mkdir()
        path.write_text(KEY.sub(lambda m, n=number: f'"key":"{build.key(m[1] + str(n))}"', copy))
    assert sync(store).rows == n_runs * n_items
    assert store.database.stat().st_size < 1.35 * 30e6
    assert compact(store).bytes_after < 30e6
    path = store.journal(RUN.format(3))
    keys = [r.key for r in read_records(path) if isinstance(r, SampleRecord)]
    assert len(answers_for_keys(snapshot(store), store, keys)) == n_items
