"""The rules in views.sql are those of harness.core.status, over every combination."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.status import effective_status, error_kind_of, value_counted
from harness.core.types import STATUSES, ErrorKind
from harness.store import Journal, new_run_id, snapshot, sync
from harness.store.derive import refresh
from harness.store.queries import attempts, counts, item_values, metrics
from harness.store.schema import migrate

KINDS = (None, *get_args(ErrorKind))
SCORES = (None, *product(STATUSES, (None, 0.0, 0.5, 1.0), (None, "no_answer", "scorer_fault")))
COMBINATIONS = list(product(STATUSES, KINDS, SCORES))


def expected(solved, kind, score, policy):
    """Say with the Python rules what status, kind and value an attempt has."""
    status = effective_status(solved, None if score is None else score[0])
    if solved == "unscored" and status == "error":
        kind = error_kind_of(score[2])
    value = None if score is None else score[1]
    return status, kind, value_counted(status, kind, value, policy)


@pytest.mark.parametrize("policy", ["wrong", "exclude"])
def test_every_combination_counts_as_in_python(store, build, policy):
    run_id = new_run_id()
    items = [f"i{n:05d}" for n in range(len(COMBINATIONS))]
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id, items, errors=policy))
        for item, (solved, kind, score) in zip(items, COMBINATIONS, strict=True):
            journal.append(build.sample(run_id, item, status=solved, error_kind=kind))
            if score is not None:
                status, value, reason = score
                journal.append(
                    build.score(
                        run_id, item, value, status=status, reason=reason, metrics={"extra": 0.25}
                    )
                )
    sync(store)
    con = snapshot(store)
    rows = {row["item_id"]: row for row in attempts(con, run_id)}
    wanted = dict(
        zip(items, (expected(*combination, policy) for combination in COMBINATIONS), strict=True)
    )
    got = {i: (row["status"], row["error_kind"], row["counted"]) for i, row in rows.items()}
    assert got == wanted
    in_headline = {item: value for item, _, value in wanted_values(wanted)}
    assert {i: mean for i, _, mean, _ in item_values(con, run_id, "accuracy")} == in_headline
    extra = {i: mean for i, _, mean, _ in item_values(con, run_id, "extra")}
    assert extra == expected_extra(items, policy)
    check_counts(counts(con, run_id), wanted.values(), rows.values(), len(items))


def wanted_values(wanted):
    return [(i, s, value) for i, (s, _, value) in wanted.items() if value is not None]


def expected_extra(items, policy):
    """A further metric of 0.25 wherever there is a score: what failed counts as far as it came."""
    values = {}
    for item, (solved, kind, score) in zip(items, COMBINATIONS, strict=True):
        status, whose, _ = expected(solved, kind, score, policy)
        value = value_counted(status, whose, None if score is None else 0.25, policy)
        if value == 0.0 and status in ("error", "timeout") and score is not None:
            value = 0.25
        if value is not None:
            values[item] = value
    return values


def check_counts(got, wanted, rows, n_planned):
    wanted = list(wanted)
    statuses = [status for status, _, _ in wanted]
    of_model = sum(s == "error" and k in (None, "model") for s, k, _ in wanted)
    assert got == {
        "n_planned": n_planned,
        "n_scored": statuses.count("scored"),
        "n_counted": sum(value is not None for _, _, value in wanted),
        "error": of_model,
        "error_harness": statuses.count("error") - of_model,
        **{s: statuses.count(s) for s in ("timeout", "truncated", "refused", "unscored")},
        "unavailable": statuses.count("unavailable"),
        "no_answer": sum(r["status"] == "error" and r["reason"] == "no_answer" for r in rows),
        "open": n_planned - len(wanted),
    }


ATTEMPT = st.tuples(
    st.integers(0, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from(STATUSES),
    st.sampled_from(KINDS), st.lists(st.sampled_from(SCORES[1:]), max_size=2),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(ATTEMPT, max_size=25), st.sampled_from(["wrong", "exclude"]))
def test_counts_sum_to_planned_whatever_happened(many, policy):
    import duckdb

    latest = {}
    with duckdb.connect(config={"threads": 1}) as con:
        migrate(con)
        con.execute(
            "INSERT INTO runs (run_id, task_id, version, metric, errors, n_planned) "
            "VALUES ('r', 't', '1', 'accuracy', ?, 20)",
            [policy],
        )
        for seq, (item, epoch, attempt, status, kind, scores) in enumerate(many):
            con.execute(
                "INSERT INTO samples (run_id, task_id, version, item_id, epoch, attempt, status, "
                "error_kind, text_id) VALUES ('r', 't', '1', ?, ?, ?, ?, ?, ?)",
                [f"i{item}", epoch, attempt, status, kind, 100 * seq],
            )
            for n, (score_status, value, reason) in enumerate(scores):
                con.execute(
                    "INSERT INTO scores (run_id, task_id, version, item_id, epoch, attempt, seq, "
                    "scorer, metric, status, value, reason) "
                    "VALUES ('r', 't', '1', ?, ?, ?, ?, 'exact', 'accuracy', ?, ?, ?)",
                    [f"i{item}", epoch, attempt, 100 * seq + n, score_status, value, reason],
                )
            place = (item, epoch)
            before = latest.get(place, (-1, None, None, {}))
            # Scores belong to an attempt's number, whichever of its records they came with.
            by_attempt = before[3]
            if scores:
                by_attempt[attempt] = scores[-1]
            if attempt >= before[0]:
                latest[place] = (attempt, status, kind, by_attempt)
        con.execute("INSERT INTO stale_runs VALUES ('r')")
        refresh(con)
        wanted = [
            expected(status, kind, by_attempt.get(attempt), policy)
            for attempt, status, kind, by_attempt in latest.values()
        ]
        got = counts(con, "r")
        check_counts(got, wanted, attempts(con, "r"), 20)
        parts = ("n_scored", "error", "error_harness", "timeout", "truncated", "refused")
        parts += ("unscored", "unavailable", "open")
        assert sum(got[part] for part in parts) == got["n_planned"] == 20
        means = item_values(con, "r", "accuracy")
        assert sum(n for _, _, _, n in means) == got["n_counted"]


def test_a_strategys_verdict_stands_for_all_draws(store, build):
    run_id = new_run_id()
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(build.started(run_id, strategy="vote?n=3", epochs=3, n_planned=3))
        # The first draw fell over, the second is right, the third refused: the vote is right.
        journal.append(build.sample(run_id, epoch=0, status="error", error_kind="model"))
        journal.append(build.sample(run_id, epoch=1))
        journal.append(build.score(run_id, epoch=1))
        journal.append(build.sample(run_id, epoch=2, status="refused"))
        journal.append(
            build.score(run_id, scorer="strategy:vote?n=3", metric="vote?n=3", value=1.0)
        )
    sync(store)
    con = snapshot(store)
    assert metrics(con, run_id) == ["accuracy", "vote?n=3"]
    assert item_values(con, run_id, "vote?n=3") == [("i0", "c-i0", 1.0, 1)]
    assert item_values(con, run_id, "accuracy") == [("i0", "c-i0", 1 / 3, 3)]
    assert con.execute("SELECT n, k FROM item_scores").fetchall() == [(1, 1.0)]
