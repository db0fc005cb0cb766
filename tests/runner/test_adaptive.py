"""Adaptive runs: what is asked, what is told, that they go on after a stop, and what they refuse.

The bank is fitted to twelve models whose answers are drawn from known abilities and difficulties. What
the library's own session asks and estimates, given the same answers, is the oracle of what a run does.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
from collections import Counter

import msgspec
import pytest

import irt
from harness.core import registry
from harness.core.errors import HarnessError, UsageError
from harness.core.types import Output, Sample, Score, Usage
from harness.runner.compare import compare
from harness.runner.config import make_config
from harness.runner.fitting import fit_file, fit_store
from harness.runner.lifecycle import start
from harness.runner.observe import Observer
from harness.runner.rescore import rescore
from harness.store.banks import banks, find_bank
from harness.store.care import compact, rebuild, verify
from harness.store.ingest import sync
from harness.store.publish import snapshot
from harness.store.queries import run_totals

N_ITEMS, N_MODELS = 60, 12
CATEGORIES = ("easy", "middle", "hard")


def right_of(theta: float, seed: int) -> set[int]:
    """Draw what a model of this ability gets right of items from easy to hard."""
    rng = random.Random(seed)
    chances = [
        1 / (1 + math.exp(-1.8 * (theta + 2 - 4 * item / (N_ITEMS - 1)))) for item in range(N_ITEMS)
    ]
    return {item for item, chance in enumerate(chances) if rng.random() < chance}


NEW = right_of(0.4, 999)


def samples(n: int = N_ITEMS) -> list[Sample]:
    return [
        Sample(
            item_id=f"i{k:03d}", input=f"{k} + {1000 * k}", target=(str(1001 * k),),
            category=CATEGORIES[k % 3],
        )
        for k in range(n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory):
    return tmp_path_factory.mktemp("bank") / "store"


@pytest.fixture
def answering(house):
    """Let the model get the items right whose numbers are given."""

    def use(right):
        def answer(request):
            if int(request.item_id[1:]) in right:
                return house.solve(request)
            return Output(text="-1", usage=Usage(5, 1))

        house.answer = answer

    return use


@pytest.fixture
def tested(house, answering, ran_once):
    """A store with a bank of sixty items in three categories, and a new model that answers."""
    house.samples = samples()
    if not ran_once.exists():
        for number in range(N_MODELS):
            answering(right_of(-1.6 + 3.2 * number / (N_MODELS - 1), number))
            house.run(f"count:m{number}")
        assert fit_store(house.store, bank="default").fit.converged
        shutil.copytree(house.store.root, ran_once)
    shutil.copytree(ran_once, house.store.root, dirs_exist_ok=True)
    answering(NEW)
    house.calls.clear()
    return house


def adaptive(house, model="count:new", **options):
    return house.run(model, adaptive=True, **options)


def file_of(house) -> dict:
    return json.loads((house.store.root / "banks" / "default.json").read_text())


def session_of(house, **rules) -> irt.Session:
    """The library's session over the bank's file, with the categories' shares."""
    bank = irt.Bank.from_dict(file_of(house))
    shares = {name: float(n) for name, n in Counter(bank.group).items()}
    return irt.cat(bank, irt.CatRules(shares=shares, widen=bank.widen, **rules))


def asked(session, right=NEW) -> list[str]:
    items = []
    while batch := session.next_batch():
        for key in batch:
            session.record(key, int(int(key[2][1:]) in right))
            items.append(key[2])
    return items


# --- the bank ---


def test_a_bank_is_kept_with_the_fit_and_as_a_file(tested):
    con = snapshot(tested.store)
    found = find_bank(con, "default")
    assert [row.name for row in banks(con)] == ["default"]
    from_file = irt.Bank.from_dict(file_of(tested))
    assert found.bank.n_items == len(found.items) == len(from_file) == N_ITEMS
    assert found.bank.data_hash == from_file.data_hash
    assert found.bank.widen == from_file.widen >= 1
    items = {(i.task_id, i.version, i.item_id): i for i in found.items}
    rows = con.execute("SELECT item_id, content_sha256, category FROM items ORDER BY 1").fetchall()
    for item_id, sha, category in rows:
        one, row = items["own/add", "1", item_id], from_file.place["own/add", "1", item_id]
        assert (one.content_sha256, one.category) == (sha, category)
        assert (from_file.content[row], from_file.group[row]) == (sha, category)
        for name in ("a", "d", "se_log_a", "se_d", "cov"):
            assert getattr(one, name) == getattr(from_file, name)[row]


def test_the_same_name_is_taken_again_and_banks_survive_care(tested):
    fit_store(tested.store, bank="default", method="joint")
    fit_store(tested.store, bank="other", method="joint")
    before = snapshot(tested.store).execute("FROM irt_bank_items ORDER BY ALL").fetchall()
    assert len(before) == 2 * N_ITEMS
    assert rebuild(tested.store).differences == []
    compact(tested.store)
    sync(tested.store)
    assert snapshot(tested.store).execute("FROM irt_bank_items ORDER BY ALL").fetchall() == before
    assert verify(tested.store) == []


@pytest.mark.parametrize("name", ["a b", "../x", "x.json", ""])
def test_a_bank_needs_a_name_that_a_file_can_have(tested, name):
    with pytest.raises(UsageError, match="--bank"):
        fit_store(tested.store, bank=name)


def test_a_fit_that_has_not_converged_makes_no_bank(tested, monkeypatch):
    whole = irt.fit

    def stopped(*args, **options):
        found = whole(*args, **options)
        object.__setattr__(found, "verdict", dataclasses.replace(found.verdict, converged=False))
        return found

    monkeypatch.setattr(irt, "fit", stopped)
    with pytest.raises(UsageError, match="no bank late is made: the fit has not converged"):
        fit_store(tested.store, bank="late")
    assert [row.name for row in banks(snapshot(tested.store))] == ["default"]


# --- what is asked and told ---


def test_a_run_asks_and_tells_what_the_librarys_session_would(tested):
    session = session_of(tested, se=0.35)
    wanted = asked(session)
    summary = adaptive(tested, se=0.35)
    assert tested.calls == wanted
    assert 5 < len(wanted) < N_ITEMS
    expected, found = session.result(), summary.adaptive
    assert (found.theta, found.se) == pytest.approx((expected.theta, expected.se))
    assert found.se <= 0.35
    assert found.stopped == "se"
    assert (found.n_asked, found.n_bank, found.n_saved) == (
        len(wanted), N_ITEMS, N_ITEMS - len(wanted),
    )  # fmt: skip
    metric = summary.metrics["accuracy"]
    assert list(summary.metrics) == ["accuracy"]
    assert metric.method == "irt-adaptive"
    assert (metric.value, metric.lo, metric.hi) == pytest.approx(
        (expected.score, expected.score_lo, expected.score_hi)
    )
    assert metric.lo <= len(NEW) / N_ITEMS <= metric.hi
    assert (summary.status, summary.open, summary.n_planned) == ("done", 0, len(wanted))


def test_a_cap_and_the_end_of_the_bank_stop_it_too(tested):
    capped = adaptive(tested, max_items=7).adaptive
    assert (capped.n_asked, capped.stopped) == (7, "max_items")
    whole = adaptive(tested, model="count:other", se=1e-6)
    assert (whole.adaptive.n_asked, whole.adaptive.stopped) == (N_ITEMS, "exhausted")
    assert whole.metrics["accuracy"].value == pytest.approx(len(NEW) / N_ITEMS)


def test_without_a_rule_it_stops_at_the_usual_error(tested):
    assert adaptive(tested).adaptive.target_se == 0.2


def test_categories_are_asked_in_their_shares(tested):
    adaptive(tested, max_items=15)
    category = {sample.item_id: sample.category for sample in tested.samples}
    assert Counter(category[item] for item in tested.calls) == dict.fromkeys(CATEGORIES, 5)


def test_the_same_again_asks_nothing_and_tells_the_same(tested):
    first = adaptive(tested, max_items=12)
    n_called = len(tested.calls)
    again = adaptive(tested, max_items=12)
    assert len(tested.calls) == n_called == 12
    assert again.cached == 12
    assert again.adaptive.score == pytest.approx(first.adaptive.score, abs=1e-12)
    fresh = adaptive(tested, max_items=12, fresh=True)
    assert tested.calls[12:] == tested.calls[:12]
    assert fresh.adaptive == first.adaptive


def test_answers_that_are_there_are_used_first(tested):
    there = {f"i{k:03d}" for k in (3, 17, 30, 42, 55)}
    tested.run("count:new", ids=tuple(sorted(there)))
    tested.calls.clear()
    summary = adaptive(tested, max_items=8)
    used = {r.item_id for r in tested.records(summary.run_id) if r.reused_from}
    assert used == there
    assert len(tested.calls) == 3
    assert not there & set(tested.calls)
    assert (summary.cached, summary.adaptive.n_asked) == (5, 8)


def test_dear_items_are_asked_less(tested):
    """Items with odd numbers have cost a thousand times the tokens: none of the first ten is one."""
    even = adaptive(tested, model="count:plain", max_items=10).run_id
    plain = {int(r.item_id[1:]) % 2 for r in tested.records(even)}
    assert plain == {0, 1}
    answer = tested.answer

    def dear(request):
        output = answer(request)
        tokens = 100_000 if int(request.item_id[1:]) % 2 else 5
        return msgspec.structs.replace(output, usage=Usage(tokens, 1))

    tested.answer = dear
    tested.run("count:dear")
    tested.answer = answer
    tested.calls.clear()
    adaptive(tested, max_items=10)
    assert {int(item[1:]) % 2 for item in tested.calls} == {0}


def test_items_that_the_bank_does_not_know_are_outside_and_said_so(tested):
    tested.samples = samples(N_ITEMS + 4)
    notes = []
    summary = _noting(tested, notes, max_items=10)
    assert (summary.adaptive.n_outside, summary.adaptive.n_bank) == (4, N_ITEMS)
    assert any("4 of 64 items are not in bank default (i060, i061, i062, …)" in n for n in notes)
    assert "4 of the task's 64 items are outside the estimate" in summary.adaptive.line()


def test_items_with_other_content_are_outside_too(tested):
    tested.samples[5] = msgspec.structs.replace(tested.samples[5], input="5 plus 5000")
    notes = []
    summary = _noting(tested, notes, se=1e-6)
    assert "i005" not in tested.calls
    assert (summary.adaptive.n_outside, summary.adaptive.n_bank) == (1, N_ITEMS - 1)
    assert any("1 of 60 items have other content than in bank default (i005)" in n for n in notes)


def _noting(house, notes, **options):
    class Noting(Observer):
        def note(self, text):
            notes.append(text)

    config = make_config(task="own/add", model="count:new", adaptive=True, **options)
    return start(config, house.store, Noting())


# --- stops, faults, new verdicts ---


@pytest.mark.parametrize("after", [1, 5, 9])
def test_a_run_that_was_stopped_goes_on_as_an_unbroken_one(tested, after):
    whole = adaptive(tested, model="count:whole", max_items=14)
    wanted = list(tested.calls)
    tested.calls.clear()
    answer = tested.answer

    def stopping(request):
        if len(tested.calls) > after:
            raise KeyboardInterrupt
        return answer(request)

    tested.answer, tested.batch_size = stopping, 1
    with pytest.raises(HarnessError, match="stopped; what is done is kept"):
        adaptive(tested, max_items=14)
    tested.answer = answer
    done = tested.calls[:after]
    tested.calls.clear()
    run_id = tested.store.run_ids()[-1]
    summary = tested.resume(run_id)
    assert done + tested.calls == wanted
    assert summary.status == "done"
    assert summary.adaptive == whole.adaptive


def test_a_stopped_run_is_partial_with_what_is_open(tested):
    answer = tested.answer

    def stopping(request):
        if len(tested.calls) > 5:
            raise KeyboardInterrupt
        return answer(request)

    tested.answer, tested.batch_size = stopping, 1
    with pytest.raises(HarnessError):
        adaptive(tested, max_items=14)
    con = snapshot(tested.store)
    run_id = tested.store.run_ids()[-1]
    # Batches of 1, 1, 2 and 4: eight are asked for, five are there.
    counts = run_totals(con, [run_id])[run_id].counts
    assert (counts["n_planned"], counts["n_counted"], counts["open"]) == (8, 5, 3)


def test_a_lost_item_is_predicted_and_resume_asks_it_again(tested):
    answer = tested.answer
    broken = asked(session_of(tested, max_items=6))[2]

    def failing(request):
        if request.item_id == broken:
            raise OSError("the server is gone")
        return answer(request)

    tested.answer, tested.batch_size = failing, 1
    summary = adaptive(tested, max_items=6)
    assert summary.status == "partial"
    assert (summary.adaptive.n_answered, summary.adaptive.n_asked) == (6, 7)
    tested.answer = answer
    again = tested.resume(summary.run_id)
    assert again.status == "done"
    assert again.adaptive.n_answered == 7


def test_new_verdicts_make_a_new_estimate(tested):
    before = adaptive(tested, max_items=10)
    registry.scorer("never")(lambda: lambda sample, output: Score(value=0.0, passed=False))
    tested.scorer = "never"
    found = rescore(tested.store, before.run_id).summary
    session = session_of(tested)
    for item_id in tested.calls:
        session.record(("own/add", "1", item_id), 0)
    expected = session.result()
    assert found.adaptive.theta == pytest.approx(expected.theta)
    assert found.metrics["accuracy"].value == pytest.approx(expected.score)
    assert expected.score < before.adaptive.score
    assert (found.status, found.adaptive.n_asked) == ("done", 10)


# --- never a mean of chosen items ---


def test_the_mean_of_chosen_items_is_nowhere_a_score(tested):
    run_id = adaptive(tested, max_items=10).run_id
    con = snapshot(tested.store)
    assert con.execute("FROM metric_totals WHERE run_id = ?", [run_id]).fetchall() == []
    rows = con.execute(
        "SELECT DISTINCT adaptive FROM item_scores SEMI JOIN "
        "(FROM runs WHERE run_id = ?) r USING (variant_id)", [run_id],
    ).fetchall()  # fmt: skip
    assert rows == [(True,)]
    tested.run("count:new")
    rows = snapshot(tested.store).execute(
        "SELECT adaptive, count(*) FROM item_scores SEMI JOIN "
        "(FROM runs WHERE run_id = ?) r USING (variant_id) GROUP BY ALL", [run_id],
    ).fetchall()  # fmt: skip
    assert rows == [(False, N_ITEMS)]
    assert verify(tested.store) == []


def test_compare_refuses_chosen_items_or_says_so(tested):
    adaptive(tested, max_items=20)
    with pytest.raises(UsageError, match=r"not alike in .*items \(A adaptive"):
        compare(tested.store, "count:new", "count:m3")
    found = compare(tested.store, "count:new", "count:m3", allow_different=True)
    assert found.n == 20
    assert any("A adaptive" in text for text in found.tasks[0].unlike)


# --- what is refused ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"se": 0.0}, "--se must be above 0, not 0.0"),
        ({"se": float("nan")}, "--se must be above 0"),
        ({"max_items": 0}, "--max-items must be at least 1, not 0"),
        ({"epochs": 2}, "leave --epochs out"),
        ({"strategy": "vote?n=3"}, "leave --strategy out"),
        ({"limit": 5}, "leave --limit out"),
        ({"first": 5}, "leave --first out"),
        ({"ids": ("i001",)}, "leave --ids out"),
        ({"no_data": True}, "leave --no-data out"),
        ({"adaptive": False, "se": 0.2}, "--se belongs to --adaptive"),
        ({"adaptive": False, "max_items": 3}, "--max-items belongs to --adaptive"),
        ({"adaptive": False, "bank": "x"}, "--bank belongs to --adaptive"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(options, message):
    with pytest.raises(UsageError, match=message) as caught:
        make_config(task="own/add", model="count:new", **{"adaptive": True, **options})
    assert "\n" not in str(caught.value)


def test_a_bank_that_is_not_there_is_refused_before_a_call(tested, tmp_path):
    for bank, message in (
        ("none", "unknown item bank 'none'"),
        (str(tmp_path / "none.json"), "cannot read bank"),
    ):
        with pytest.raises(UsageError, match=message):
            adaptive(tested, bank=bank)
    assert tested.calls == []
    assert len(tested.store.run_ids()) == N_MODELS


def test_a_bank_of_another_version_of_the_task_is_named(tested):
    tested.version = "2"
    with pytest.raises(UsageError, match=r"bank default is of version 1 of own/add.*version 2"):
        adaptive(tested, se=0.3)


def test_a_bank_without_the_tasks_items_is_refused(tested):
    tested.samples = [
        msgspec.structs.replace(one, item_id=f"other{number}")
        for number, one in enumerate(tested.samples)
    ]
    with pytest.raises(UsageError, match=r"none of the 60 items of own/add .*\(60 unknown"):
        adaptive(tested, se=0.3)


def test_a_store_without_a_bank_says_how_to_make_one(house):
    with pytest.raises(UsageError, match=r"no bank has its items.*harness fit --bank"):
        adaptive(house, se=0.3)


def test_a_bank_can_be_a_file(tested, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(file_of(tested)))
    by_file = adaptive(tested, max_items=9, bank=str(path))
    assert by_file.adaptive.bank == "mine.json"
    assert tested.calls == asked(session_of(tested, max_items=9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"converged": False}, "has not converged"), ({"format": "csv"}, "no bank of items"),
        ({"items": []}, "without items"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_bank_is_refused(tested, tmp_path, change, message):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(file_of(tested) | change))
    with pytest.raises(UsageError, match=message):
        adaptive(tested, bank=str(path))


def test_a_bank_of_a_file_of_answers_knows_no_task(tested, tmp_path):
    rows = [
        {"subject_id": f"m{m}", "responses": {f"i{i}": int(i in right_of(m / 4 - 1, m)) for i in range(9)}}
        for m in range(9)
    ]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    found = fit_file(path, method="joint", bank="file")
    assert {item.task_id for item in found.bank.items} == {None}
