from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading

import pytest

from harness.core.errors import StoreError
from harness.core.records import EventRecord
from harness.store import Journal, new_run_id, read_records, tail
from harness.store import redact as redact_module
from harness.store.redact import Redactor

RUN = new_run_id()


def lines_of(store):
    return store.journal(RUN).read_bytes().splitlines(keepends=True)


def test_records_get_numbers_and_times_and_come_back(store, build):
    with Journal(store.journal(RUN), RUN) as journal:
        assert journal.append(build.started(RUN)) == 0
        assert journal.append(build.sample(RUN, output='quote " and \n newline')) == 1
    records = list(read_records(store.journal(RUN)))
    assert [r.seq for r in records] == [0, 1]
    assert records[1].output == 'quote " and \n newline'
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", records[1].ts)
    assert records[0].ts <= records[1].ts


def test_numbers_go_on_after_reopening(store, build):
    for expected in (0, 1, 2):
        with Journal(store.journal(RUN), RUN) as journal:
            assert journal.append(build.sample(RUN)) == expected


def test_a_run_has_one_writer(store, build):
    says = pytest.raises(StoreError, match=f"run {RUN} is being written by another process")
    with Journal(store.journal(RUN), RUN), says:
        Journal(store.journal(RUN), RUN)
    Journal(store.journal(RUN), RUN).close()


def test_threads_never_share_a_number_or_a_line(store, build):
    with Journal(store.journal(RUN), RUN) as journal:
        threads = [
            threading.Thread(target=lambda: [journal.append(build.sample(RUN)) for _ in range(100)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [json.loads(line)["seq"] for line in lines_of(store)] == list(range(400))


def test_torn_tail_is_moved_aside_and_writing_goes_on(store, build):
    with Journal(store.journal(RUN), RUN) as journal:
        journal.append(build.sample(RUN, "i0"))
        journal.append(build.sample(RUN, "i1"))
    whole = store.journal(RUN).read_bytes()
    torn = whole.splitlines(keepends=True)[1][:40]
    store.journal(RUN).write_bytes(whole + torn)
    assert len(list(read_records(store.journal(RUN)))) == 2
    with Journal(store.journal(RUN), RUN) as journal:
        assert journal.append(build.sample(RUN, "i2")) == 2
    assert [r.item_id for r in read_records(store.journal(RUN))] == ["i0", "i1", "i2"]
    entry = json.loads(store.quarantine(RUN).read_bytes())
    assert (entry["byte"], entry["line"]) == (len(whole), torn.decode())


def test_tail_gives_whole_lines_once(store, build):
    path = store.journal(RUN)
    assert tail(path, 0) == ([], 0)
    with Journal(path, RUN) as journal:
        journal.append(build.sample(RUN, "i0"))
    records, offset = tail(path, 0)
    assert [r.item_id for r in records] == ["i0"]
    line = path.read_bytes()
    with path.open("ab") as file:
        file.write(line[:30])
    assert tail(path, offset) == ([], offset)
    with path.open("ab") as file:
        file.write(line[30:])
    records, end = tail(path, offset)
    assert (len(records), end) == (1, 2 * len(line))


@pytest.mark.parametrize("written", [0, 1, 50])
def test_full_disk_leaves_no_torn_line(store, build, monkeypatch, written):
    journal = Journal(store.journal(RUN), RUN)
    journal.append(build.sample(RUN, "i0"))
    before = store.journal(RUN).read_bytes()
    write = os.write
    calls = []

    def full(fd, data):
        calls.append(1)
        if len(calls) == 1 and written:
            return write(fd, data[:written])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StoreError, match=r"No space left on device; free some space"):
            journal.append(build.sample(RUN, "i1"))
    assert store.journal(RUN).read_bytes() == before
    assert journal.append(build.sample(RUN, "i2")) == 1  # the number was not used up
    journal.close()
    assert [r.item_id for r in read_records(store.journal(RUN))] == ["i0", "i2"]


def test_short_writes_are_finished(store, build, monkeypatch):
    write = os.write
    with Journal(store.journal(RUN), RUN) as journal, monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
        journal.append(build.sample(RUN, "i0"))
    assert [r.item_id for r in read_records(store.journal(RUN))] == ["i0"]


def test_synced_every_20_records_and_at_the_end(store, build, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda _: synced.append(journal.seq))
    monkeypatch.setattr("harness.store.journal.time.monotonic", lambda: 0.0)
    journal = Journal(store.journal(RUN), RUN)
    for _ in range(45):
        journal.append(build.sample(RUN))
    assert synced == [20, 40]
    journal.close()
    assert synced == [20, 40, 45]


def test_synced_after_a_second(store, build, monkeypatch):
    synced, clock = [], [0.0]
    monkeypatch.setattr(os, "fdatasync", lambda _: synced.append(journal.seq))
    monkeypatch.setattr("harness.store.journal.time.monotonic", lambda: clock[0])
    journal = Journal(store.journal(RUN), RUN)
    journal.append(build.sample(RUN))
    clock[0] = 1.5
    journal.append(build.sample(RUN))
    assert synced == [2]
    journal.close()


def test_closed_journal_says_so(store, build):
    journal = Journal(store.journal(RUN), RUN)
    journal.close()
    journal.close()
    with pytest.raises(StoreError, match="is closed"):
        journal.append(build.sample(RUN))


# Made-up keys of the right shape.
KEYS = {
    "openai": "sk-" + "Ab3" * 12,
    "anthropic": "sk-ant-api03-" + "x9_Y-" * 8,
    "hf": "hf_" + "Qw" * 17,
    "aws": "AKIA" + "Z7" * 8,
    "google": "AIza" + "s-_4K" * 7,
    "github": "ghp_" + "k2J" * 12,
    "github fine": "github_pat_" + "11AB_" * 10,
    "slack": "xoxb-" + "12345-" * 4 + "ab",
    "bearer": "Bearer " + "eyJhbGciOi.J9-_" * 3,
}


@pytest.mark.parametrize("field", ["prompt", "output", "tool_log", "reasoning", "error"])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_keys_never_reach_the_journal(store, build, field, key):
    text = f'my\n"{key}"\nend'
    with Journal(store.journal(RUN), RUN) as journal:
        journal.append(build.sample(RUN, **{field: text}))
    raw = store.journal(RUN).read_text()
    assert key not in raw
    (record,) = read_records(store.journal(RUN))
    assert getattr(record, field) == 'my\n"[redacted]"\nend'


def test_secrets_of_the_environment_never_reach_the_journal(store, build, monkeypatch):
    monkeypatch.setenv("PROVIDER_API_KEY", 'od"d\\secret\tvalue')
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    monkeypatch.setenv("SOME_SECRET", "12345678")
    with Journal(store.journal(RUN), RUN) as journal:
        journal.append(build.started(RUN, environment={"vars": ['od"d\\secret\tvalue', "abc"]}))
        journal.append(
            build.sample(RUN, "12345678", output="pin 12345678", peak_mem_bytes=12345678)
        )
    started, sample = read_records(store.journal(RUN))
    assert started.environment == {"vars": ["[redacted]", "abc"]}
    assert sample.output == "pin [redacted]"
    assert (sample.item_id, sample.peak_mem_bytes) == ("12345678", 12345678)


@pytest.mark.parametrize(
    "text",
    ["a task-force-of-the-highest-order met", "risk-adjusted-returns-of-2024", "hf_hub_download",
     "Bearer of good news", "AKIA", "whisk-ed eggs and long-words-with-many-hyphens-inside"],
)  # fmt: skip
def test_ordinary_words_stay(text):
    assert Redactor({}).text(text) == text


def test_secrets_in_events_are_found_in_keys_and_lists(store):
    with Journal(store.journal(RUN), RUN) as journal:
        data = {KEYS["hf"]: [{"deep": KEYS["aws"]}], "n": 1}
        journal.append(EventRecord(seq=0, ts="", run_id=RUN, schema=1, kind="call", data=data))
    (event,) = read_records(store.journal(RUN))
    assert event.data == {"[redacted]": [{"deep": "[redacted]"}], "n": 1}


def test_half_a_surrogate_pair_does_not_stop_a_run(store, build):
    with Journal(store.journal(RUN), RUN) as journal:
        journal.append(build.sample(RUN, output="broken \ud83d emoji"))
    (record,) = read_records(store.journal(RUN))
    assert record.output == "broken ? emoji"


def test_text_over_1_mib_is_cut_with_its_hash_and_length(store, build):
    text = "é" * (1 << 20)
    with Journal(store.journal(RUN), RUN) as journal:
        journal.append(build.sample(RUN, output=text, prompt="x" * (1 << 20)))
    (record,) = read_records(store.journal(RUN))
    assert record.prompt == "x" * (1 << 20)
    head, mark = record.output.split(redact_module.CUT_MARK)
    assert head == "é" * (1 << 19)
    assert mark == f"2097152 bytes, sha256 {hashlib.sha256(text.encode()).hexdigest()}]"
    assert redact_module.was_cut(record.output)
    assert not redact_module.was_cut(record.prompt)
