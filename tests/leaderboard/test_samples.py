"""The page Samples: what a list finds, and one attempt as the journal has it."""

from __future__ import annotations

import msgspec
import pytest

from harness.core.records import ScoreRecord, encoder
from harness.store import snapshot, sync
from leaderboard.rows.attempt import attempt, visible
from leaderboard.rows.samples import Wanted, asker, find_key, listed, neighbours, runs_with_samples
from leaderboard.ui.sample import facts_html, plain_table

EVIL = '<script>alert(1)</script> **bold** \x1b[31m\u202e "quoted" ünïcode\n'


def found(store, **wanted):
    con = snapshot(store)
    runs = runs_with_samples(con)
    return listed(asker(con), store, runs, Wanted(**wanted), 0, looks=9).rows


def test_the_page_opens_on_every_store(any_store, open_page):
    app = open_page("samples", any_store)
    assert not app.exception
    assert app.title


def test_the_same_item_of_two_runs_can_be_told_apart_and_opened(store, write, open_page):
    first, second = (write(store, [1.0], text=lambda i, n=n: ("Q", f"said {n}")) for n in (1, 2))
    sync(store)
    for run_id, output in ((first, "said 1"), (second, "said 2")):
        app = open_page("samples", store)
        options = app.selectbox(key="_open").options
        assert len(set(options)) == len(options) == 3
        assert len([option for option in options if option.endswith(run_id[-8:])]) == 1
        app = app.selectbox(key="_open").select(f"{run_id}:0:demo-0").run()
        assert app.query_params["key"] == f"{run_id}:0:demo-0"
        assert output in [code.value for code in app.code]


def test_an_address_opens_a_sample_and_nonsense_is_no_markup(partial_store, open_page):
    (row, *_) = found(partial_store, statuses=("timeout",))
    app = open_page("samples", partial_store, address={"key": row.key})
    assert not app.exception
    assert any(row.item_id in block.proto.body for block in app.get("html"))
    app = open_page("samples", partial_store, address={"key": "![x](//elsewhere.example/x.png)"})
    (info,) = [info.value for info in app.info]
    assert r"\!\[x\]" in info


def test_filters_take_each_status_once(partial_store):
    assert {r.item_id for r in found(partial_store, statuses=("timeout",))} == {"demo-2"}
    # Right: 1 scored and 1 truncated, 5 of the second model, 10 of the baseline.
    assert len(found(partial_store, verdict="right")) == 17
    # Latencies are 10 ms + the item's number.
    slow = found(partial_store, seconds_from=0.0185)
    assert {r.item_id for r in slow} == {"demo-9"}


def test_the_same_item_of_two_tasks_is_not_mixed_and_search_finds(store, write):
    def text(i):
        return (f"prompt {i}", "the Planted needle" if i == 1 else "hay")

    write(store, [1.0, 0.0], task="demo/add", text=text)
    write(store, [0.0, 1.0], task="demo/mul")
    sync(store)
    (hit,) = found(store, text="planted NEEDLE")
    assert (hit.task, hit.item_id, hit.score) == ("demo/add", "demo-1", 0.0)
    assert found(store, text="planted", fields=("prompt",)) == []
    con = snapshot(store)
    assert neighbours(con, hit.run_id, 0, "demo-1") == (f"{hit.run_id}:0:demo-0", None)


def test_bytes_history_and_no_markup(store, write, open_page):
    run_id = write(store, [1.0], text=lambda i: (EVIL, EVIL))
    lines = [msgspec.json.decode(x) for x in store.journal(run_id).read_bytes().splitlines()]
    again = ScoreRecord(
        seq=9, ts="2026-03-01T10:01:00.000000Z", run_id=run_id, schema=1, item_id="demo-0", epoch=0,
        attempt=0, scorer="exact", scorer_version="2", metric="accuracy", status="scored",
        value=0.0, replaces=2,
    )  # fmt: skip
    with store.journal(run_id).open("ab") as file:
        file.write(encoder.encode(again) + b"\n")
    sync(store)
    con = snapshot(store)
    whole = attempt(con, store, run_id, 0, "demo-0")
    assert whole.prompt.encode() == lines[1]["prompt"].encode() == EVIL.encode()
    assert [(s.seq, s.stands, s.value) for s in whole.scores] == [
        (2, "replaced", 1.0), (9, "yes", 0.0),
    ]  # fmt: skip
    assert find_key(con, lines[1]["key"]) == f"{run_id}:0:demo-0"
    shown = visible(EVIL)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    for page in (facts_html({"Answer": EVIL}), plain_table([{"answer": EVIL}], ["answer"])):
        assert "<script" not in page


@pytest.mark.parametrize("key", ["nonsense", "r:0:x", "f" * 64])
def test_unknown_keys_find_nothing(one_store, key):
    assert find_key(snapshot(one_store), key) is None
