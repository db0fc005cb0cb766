from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.core.records import SampleRecord
from harness.store import Journal, new_run_id, snapshot, sync
from harness.store.queries import (
    StoredAnswer,
    answers_for_keys,
    attempts_with_text,
    counts,
    metrics,
    run_rows,
    sample,
    samples_arrow,
    usage,
)


def test_answers_of_earlier_runs_come_back_whole(store, build):
    run_id = new_run_id()
    written = {
        "i0": {"output": "forty-two", "reasoning": "hm", "tool_log": "ls", "tokens_reasoning": 3,
               "prompt_ids_head": (1, 2, 3), "choice_logprobs": (-0.25, -2.5), "latency_ms": 1.5,
               "peak_mem_bytes": 9, "cost_usd": 0.125, "isolation": "userns"},
        "i1": {"status": "truncated", "finish_reason": "length", "output": "", "prompt": "",
               "prompt_truncated": 7},
        "i2": {"status": "refused", "finish_reason": "content_filter"},
        "i3": {"status": "error", "error_kind": "network", "error": "reset"},
        "i4": {"status": "timeout"},
        "i5": {"status": "unavailable"},
        "i6": {"output": "x" * (1 << 21)},
    }  # fmt: skip
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id, list(written)))
        for item, fields in written.items():
            journal.append(build.sample(run_id, item, key=build.key(item), **fields))
    sync(store)
    keys = {item: build.key(item) for item in written}
    found = answers_for_keys(snapshot(store), store, [*keys.values(), build.key("unknown")])
    assert set(found) == {keys["i0"], keys["i1"], keys["i2"]}
    assert found[keys["i0"]] == StoredAnswer(
        run_id=run_id, status="unscored", prompt="what is i0?", output="forty-two",
        reasoning="hm", tool_log="ls", finish_reason="stop", tokens_in=10, tokens_out=5,
        tokens_reasoning=3, prompt_ids_head=(1, 2, 3), prompt_truncated=0,
        choice_logprobs=(-0.25, -2.5), latency_ms=1.5, peak_mem_bytes=9, cost_usd=0.125,
        isolation="userns",
    )  # fmt: skip
    cut = found[keys["i1"]]
    assert (cut.status, cut.output, cut.prompt, cut.prompt_truncated) == ("truncated", "", "", 7)
    assert found[keys["i2"]].finish_reason == "content_filter"


def test_an_answer_has_all_that_its_record_needs():
    given_by_the_run = {"seq", "ts", "run_id", "schema", "item_id", "epoch", "attempt", "key"}
    only_of_failures = {"error", "error_kind"}
    wanted = set(SampleRecord.__struct_fields__) - given_by_the_run - only_of_failures
    assert set(StoredAnswer.__struct_fields__) == (wanted - {"reused_from"}) | {"run_id"}


def test_an_answer_handed_on_names_the_run_that_paid(store, build):
    first, second = new_run_id(), new_run_id()
    for run_id, reused in ((first, None), (second, first)):
        with Journal(store.journal(run_id), run_id) as journal:
            journal.append(build.started(run_id))
            journal.append(build.sample(run_id, key=build.key("k"), reused_from=reused))
    sync(store)
    con = snapshot(store)
    (answer,) = answers_for_keys(con, store, [build.key("k")]).values()
    assert answer.run_id == first
    used, handed = usage(con, first), usage(con, second)
    assert (used.tokens_in, used.tokens_out, used.cost_usd, used.reused) == (10, 5, None, 0)
    assert (handed.tokens_in, handed.tokens_out, handed.cost_usd, handed.reused) == (0, 0, 0.0, 1)


def test_no_keys_and_lost_texts_give_no_answers(store, build):
    run_id = build.run(store)
    sync(store)
    con = snapshot(store)
    assert answers_for_keys(con, store, []) == {}
    key = build.key(f"{run_id}/i0/0")
    assert len(answers_for_keys(con, store, [key])) == 1
    for path in store.texts(run_id):
        path.unlink()
    assert answers_for_keys(con, store, [key]) == {}


def test_run_rows_picks_by_id(store, build):
    one, two = build.run(store), build.run(store)
    sync(store)
    con = snapshot(store)
    assert [row.run_id for row in run_rows(con)] == [one, two]
    assert [row.run_id for row in run_rows(con, [two, "none"])] == [two]
    assert run_rows(con, []) == []


def test_a_run_without_attempts_is_all_open(store, build):
    run_id = new_run_id()
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id, ["i0", "i1"]))
    sync(store)
    con = snapshot(store)
    assert counts(con, run_id)["open"] == 2
    assert sum(counts(con, run_id).values()) == 4  # n_planned and open, nothing else
    assert metrics(con, run_id) == ["accuracy"]
    assert usage(con, run_id).tokens_in is None
    assert list(attempts_with_text(con, store, run_id)) == []
    assert samples_arrow(con, store, run_id).num_rows == 0


def test_unknown_run_item_and_epoch_are_usage_errors(store, build):
    run_id = build.run(store)
    sync(store)
    con = snapshot(store)
    with pytest.raises(UsageError, match="no run 'none'"):
        counts(con, "none")
    with pytest.raises(UsageError, match="no attempt at item 'i9'"):
        sample(con, store, run_id, "i9")
    with pytest.raises(UsageError, match="no attempt at item 'i0' epoch 5"):
        sample(con, store, run_id, "i0", epoch=5)


def test_values_are_never_read_as_sql(store, build):
    run_id = build.run(store)
    sync(store)
    con = snapshot(store)
    with pytest.raises(UsageError):
        counts(con, f"{run_id}' OR '1'='1")
    assert counts(con, run_id)["n_scored"] == 3


def test_texts_join_the_attempts_in_rows_and_in_arrow(store, build):
    run_id = build.run(store, (1.0, 0.0))
    sync(store)
    con = snapshot(store)
    rows = list(attempts_with_text(con, store, run_id))
    assert [(r["item_id"], r["prompt"], r["output"], r["counted"]) for r in rows] == [
        ("i0", "what is i0?", "it is i0", 1.0),
        ("i1", "what is i1?", "it is i1", 0.0),
    ]
    table = samples_arrow(con, store, run_id)
    assert table.column("output").to_pylist() == ["it is i0", "it is i1"]
    assert table.column("counted").to_pylist() == [1.0, 0.0]
