"""From a plan to numbers: known answers, every status, every kind of fault."""

from __future__ import annotations

import io
import json
import threading
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import binom

from harness.cli.output import ProgressBar
from harness.core import registry
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.records import RunFinished
from harness.core.types import Generation, Message, Output, Sample, Usage
from harness.runner.execute import FAULTS_IN_A_ROW
from harness.store.journal import Journal, read_records
from harness.store.publish import snapshot
from harness.store.queries import usage

DATA = Path(__file__).parents[2] / "data"
OTHERS = ("error", "error_harness", "timeout", "truncated", "refused", "unscored", "unavailable")


def headline(summary):
    return next(iter(summary.metrics.values())).value


def check_sum(summary):
    """The statuses are exclusive and nothing gets lost."""
    assert set(summary.counts) == set(OTHERS)
    total = summary.n_scored + sum(summary.counts.values()) + summary.open
    assert total == summary.n_planned


# --- baselines whose scores are known beforehand ---


@pytest.mark.parametrize("task", ["gsm8k", "aicrypto/mcq"])
def test_gold_is_one_and_empty_is_nought(house, task):
    gold = house.run("mock:gold", task)
    assert headline(gold) == 1.0
    assert gold.status == "done"
    assert gold.is_baseline
    assert gold.n_counted == gold.n_scored == gold.n_planned
    empty = house.run("mock:empty", task)
    assert headline(empty) == 0.0
    assert empty.n_counted == empty.n_planned == empty.unparsed == empty.counts["error"]
    check_sum(empty)


def test_constant_scores_its_share_of_the_data(house):
    rows = json.loads((DATA / "aicrypto" / "mcq.json").read_text())
    share = sum(row["answer"] == [2] for row in rows) / len(rows)
    assert 0 < share < 1
    run = house.run(
        "mock:constant?text=%23%23%23 Answer%0A2", "aicrypto/mcq", args={"shuffle": "off"}
    )
    assert headline(run) == pytest.approx(share)
    assert run.n_planned == len(rows)

    lines = (DATA / "gsm8k" / "own.jsonl").read_text().splitlines()
    results = Counter(json.loads(line)["answer"].rsplit("#### ", 1)[1] for line in lines)
    result, count = results.most_common(1)[0]
    run = house.run(f"mock:constant?text=It is {result}.", "gsm8k")
    assert headline(run) == pytest.approx(count / len(lines))


def test_options_are_compared_by_log_probability(house):
    assert headline(house.run("mock:gold", "aicrypto/mcq", solver="choose", first=8)) == 1.0


def test_noisy_lies_in_its_interval_whatever_the_batch_size(house):
    house.samples = [
        Sample(item_id=f"n{k}", input=str(k), target=(str(k),), cluster_id=None) for k in range(400)
    ]
    low, high = binom.interval(0.99, 400, 0.6)
    values = []
    for size in (400, 7):
        run = house.run("mock:noisy?accuracy=0.6", batch_size=size, fresh=True)
        assert run.cached == 0
        values.append({r.item_id: r.output for r in house.records(run.run_id)})
        assert low <= round(400 * headline(run)) <= high
    assert values[0] == values[1]


def test_an_honest_backend_is_right_and_is_never_shown_the_reference(house):
    seen = []

    def answer(request):
        seen.append(request)
        return house.solve(request)

    house.answer = answer
    run = house.run()
    assert headline(run) == 1.0
    assert not run.is_baseline
    assert {r.oracle for r in seen} == {None}
    assert [r.messages for r in seen[:1]] == [
        (Message("system", "Only the number."), Message("user", "What is 0 + 0?"))
    ]


def test_a_solver_sees_no_reference(house):
    seen = []

    @registry.solver("nosy")
    class Nosy:
        needs = ("generate",)

        def __call__(self, item):
            seen.append(item.sample)
            return (yield item.ask())

    house.samples = [
        Sample(item_id="a", input="1 + 1", target=("2",), correct=(0,), metadata={"key": "2"})
    ]
    house.run(solver="nosy")
    assert seen == [Sample(item_id="a", input="1 + 1")]


# --- which items, how often ---


def test_epochs_are_draws_of_their_own_and_an_item_counts_once(house):
    run = house.run("mock:noisy?accuracy=0.5", epochs=5)
    records = house.records(run.run_id)
    assert run.n_planned == len(records) == 60
    assert {(r.item_id, r.epoch) for r in records} == {
        (f"i{k:03d}", e) for k in range(12) for e in range(5)
    }
    assert len({r.key for r in records}) == 60
    target = {s.item_id: s.target[0] for s in house.samples}
    right = Counter(r.item_id for r in records if r.output == target[r.item_id])
    assert 0 < sum(right.values()) < 60
    assert headline(run) == pytest.approx(sum(right.values()) / 60)
    assert any(0 < right[item] < 5 for item in target)  # repeats differ within one item


def test_ids_first_and_limit(house):
    def ids(**options):
        return [s.item_id for s in house.plan(**options).samples]

    assert ids(ids=("i007", "i002")) == ["i002", "i007"]
    assert ids(first=3) == ["i000", "i001", "i002"]
    sample = ids(limit=5)
    assert len(sample) == 5
    assert sample != ids(first=5)
    assert sample == ids(limit=5)
    assert sample == sorted(sample)  # plan order is the task's
    assert ids(limit=5, seed=1) != sample
    assert len(ids(limit=500)) == 12
    assert [r.item_id for r in house.records(house.run(limit=5).run_id)] == sample
    with pytest.raises(UsageError, match="unknown item of own/add 'i07': did you mean 'i007'"):
        house.run(ids=("i07",))
    with pytest.raises(UsageError, match="not both"):
        house.run(limit=1, first=1)


def test_a_sample_stays_when_rows_are_added(house):
    house.samples = [Sample(item_id=f"s{k}", input="1 + 1", target=("2",)) for k in range(100)]
    before = {s.item_id for s in house.plan(limit=50).samples}
    new = [Sample(item_id=f"new{k}", input="1 + 1", target=("2",)) for k in range(40)]
    house.samples = new[:20] + house.samples + new[20:]
    after = {s.item_id for s in house.plan(limit=50).samples}
    came, left = after - before, before - after
    assert len(came) == len(left) > 0
    assert came <= {s.item_id for s in new}  # an old id leaves only for a new one
    assert before != {f"s{k}" for k in range(50)}


def test_items_that_stand_twice_are_refused(house):
    house.samples = [*house.samples, house.samples[3]]
    with pytest.raises(UsageError, match="'i003' stands twice"):
        house.run()
    assert house.calls == []


# --- statuses and denominators ---


def test_every_status_end_to_end(house, by_item):
    house.scorer = "moody"
    by_item({
        "i000": "wrong",
        "i001": Output(text="1", finish_reason="length"),
        "i002": Output(text="2002", finish_reason="length"),  # cut, and right as it stands
        "i003": Output(text="", finish_reason="content_filter"),
        "i004": Output(text="", finish_reason="timeout"),
        "i005": Output(text="", finish_reason="skipped"),
        "i006": Output(text="", finish_reason="error", error="its own", error_kind="model"),
        "i007": Output(text="", finish_reason="error", error="line down", error_kind="network"),
        "i008": "mumble",
        "i009": "explode",
        "i010": "nothing",
    })  # fmt: skip
    for policy, counted in (("wrong", 7), ("exclude", 5)):
        run = house.run(errors=policy, fresh=True)
        check_sum(run)
        assert run.n_planned == 12
        assert run.n_scored == 2  # i000 and i011
        assert run.counts == {
            "error": 1, "error_harness": 3, "timeout": 1, "truncated": 2, "refused": 1,
            "unscored": 1, "unavailable": 1,
        }  # fmt: skip
        # wrong: i000-i004, i006 and i011; exclude: without the model's timeout and error
        assert run.n_counted == counted
        assert headline(run) == pytest.approx(2 / counted)
        assert run.status == "partial"


def test_planted_faults_of_a_mock_keep_the_books(house):
    house.samples = [Sample(item_id=f"m{k}", input=str(k), target=(str(k),)) for k in range(300)]
    run = house.run("mock:gold?fail=0.1&truncate=0.2&refuse=0.1")
    check_sum(run)
    finish = Counter()
    last = {r.item_id: r for r in house.records(run.run_id)}
    for record in last.values():
        finish[record.finish_reason] += 1
    assert run.counts["error_harness"] == finish["error"] > 0
    assert run.counts["truncated"] == finish["length"] > 0
    assert run.counts["refused"] == finish["content_filter"] > 0
    assert run.n_counted == 300 - finish["error"]
    right = sum(r.output == r.item_id[1:] for r in last.values())
    assert headline(run) == pytest.approx(right / run.n_counted)
    assert run.status == "partial"


def test_planted_faults_strike_log_likelihood_too(house):
    run = house.run("mock:gold?refuse=1", "aicrypto/mcq", solver="choose", first=3)
    assert run.counts["refused"] == 3
    assert headline(run) == 0.0


def test_retries_are_visible_and_a_late_success_counts(house):
    tries = Counter()

    def answer(request):
        tries[request.item_id] += 1
        down = {"i002": 1, "i004": 2, "i006": 99}.get(request.item_id, 0)
        if tries[request.item_id] <= down:
            return Output(text="", finish_reason="error", error="503", error_kind="network")
        return house.solve(request)

    house.answer = answer
    run = house.run()
    attempts = Counter(r.item_id for r in house.records(run.run_id))
    assert attempts == {f"i{k:03d}": {2: 2, 4: 3, 6: 3}.get(k, 1) for k in range(12)}
    numbers = [r.attempt for r in house.records(run.run_id) if r.item_id == "i006"]
    assert numbers == [1, 2, 3]
    assert (run.n_scored, run.n_counted, run.counts["error_harness"]) == (11, 11, 1)
    assert headline(run) == 1.0
    assert run.status == "partial"
    # What failed is made again, what is there is not.
    tries.clear()
    house.answer = house.solve
    before = len(house.calls)
    done = house.resume(run.run_id)
    assert house.calls[before:] == ["i006"]
    assert (done.status, done.n_counted) == ("done", 12)
    assert [r.attempt for r in house.records(run.run_id) if r.item_id == "i006"] == [1, 2, 3, 4]


def test_the_models_own_error_is_not_retried(house, by_item):
    by_item({"i001": Output(text="", finish_reason="error", error="no", error_kind="model")})
    run = house.run()
    assert len(house.calls) == 12
    assert (run.status, run.n_counted, run.counts["error"]) == ("done", 12, 1)
    assert headline(run) == pytest.approx(11 / 12)


def test_a_scorer_that_raises_is_no_wrong_answer_and_is_scored_again_without_a_call(house, by_item):
    house.scorer = "moody"
    by_item({"i003": "explode"})
    run = house.run()
    assert len(house.calls) == 12  # a retry of the model would change nothing
    assert (run.n_counted, run.counts["error_harness"]) == (11, 1)
    assert (headline(run), run.status) == (1.0, "partial")
    fault = next(s for s in house.scores(run.run_id) if s.item_id == "i003")
    assert (fault.reason, fault.value) == ("scorer_fault", None)
    assert fault.explanation == "RuntimeError: the judge fell over"
    registry.scorer("moody")(registry.find("scorers", "exact").load())
    done = house.resume(run.run_id)
    assert len(house.calls) == 12
    assert (done.status, done.n_counted, done.counts["error_harness"]) == ("done", 12, 0)


def test_an_unreadable_judge_leaves_the_denominator(house, by_item):
    house.scorer = "moody"
    by_item({"i000": "mumble", "i001": "mumble", "i002": "wrong"})
    run = house.run()
    assert (run.n_counted, run.counts["unscored"], run.status) == (10, 2, "done")
    assert headline(run) == pytest.approx(9 / 10)
    assert run.metrics["length"].value == 2.5


@pytest.mark.parametrize("fault", ["raises", "too few"])
def test_a_backend_that_fails_is_a_fault_of_the_harness(house, monkeypatch, fault):
    def bad(requests):
        if fault == "raises":
            raise RuntimeError("CUDA error")
        return []

    made = house.backend

    def backend(spec, options):
        one = made(spec, options)
        one.generate = bad
        return one

    registry.backend("count")(backend)
    run = house.run()
    assert (run.status, run.n_counted, run.counts["error_harness"]) == ("failed", 0, 12)
    assert headline(run) is None
    errors = {r.error for r in house.records(run.run_id)}
    assert errors == {
        "RuntimeError: CUDA error" if fault == "raises" else "ValueError: 0 outputs for 4 requests"
    }
    assert house.closed == 1


def test_everything_failing_stops_early_and_says_how_to_go_on(house):
    house.samples = [Sample(item_id=f"m{k}", input="1 + 1", target=("2",)) for k in range(200)]
    house.answer = lambda request: Output(
        text="", finish_reason="error", error="no route", error_kind="network"
    )
    with pytest.raises(HarnessError, match=r"faults in a row: no route; .*harness resume"):
        house.run()
    assert len(house.calls) < FAULTS_IN_A_ROW + 2 * house.batch_size
    assert house.closed == 1


def test_a_few_broken_items_do_not_stop_a_run_while_they_are_retried(house, by_item):
    """30 items of 200 are down for good: 60 retries in a row at the end are no reason to stop."""
    house.samples = [Sample(item_id=f"m{k}", input="1 + 1", target=("2",)) for k in range(200)]
    down = Output(text="", finish_reason="error", error="503", error_kind="network")
    by_item({f"m{k}": down for k in range(0, 200, 7)})
    run = house.run()
    assert run.counts["error_harness"] == len(range(0, 200, 7)) == 29
    assert (run.n_scored, run.status) == (171, "partial")


# --- solvers ---


def test_a_solver_of_two_turns(house):
    @registry.solver("twice")
    class Twice:
        needs = ("generate",)

        def __call__(self, item):
            first = yield item.ask()
            told = (*item.messages, Message("assistant", first.text), Message("user", "Sure?"))
            return (yield item.ask(told, turn=1))

    house.gold = lambda sample: ("let me think", sample.target[0])
    assert headline(house.run("mock:gold", solver="twice")) == 1.0
    # Tokens of both calls are paid for: 5 + 6 in, 1 + 2 out, for each of 12 items.
    house.answer = lambda r: Output(text="x", usage=Usage(5 + r.turn, 1 + r.turn))
    run = house.run(solver="twice")
    assert len(house.calls) == 24
    assert (run.usage["tokens_in"], run.usage["tokens_out"]) == (132, 36)
    calls = [e for e in house.events(run.run_id) if e.kind == "model_call"]
    turns = [(e.item_id, e.attempt, e.data["turn"], e.data["tokens_in"]) for e in calls]
    items = [s.item_id for s in house.samples]
    assert sorted(turns) == sorted((i, 1, t, 5 + t) for i in items for t in (0, 1))
    # What one call does not say, the sum does not say either.
    house.answer = lambda r: Output(text="x", usage=Usage(5, None if r.turn else 1))
    run = house.run(solver="twice", seed=1)
    assert (run.usage["tokens_in"], run.usage["tokens_out"]) == (120, None)


def test_a_network_fault_in_the_second_turn_starts_the_attempt_anew(house):
    turns = []

    @registry.solver("twice")
    class Twice:
        needs = ("generate",)

        def __call__(self, item):
            yield item.ask()
            return (yield item.ask(turn=1))

    def answer(request):
        turns.append(request.turn)
        if request.item_id == "i000" and request.turn == 1 and turns.count(1) == 1:
            return Output(text="", finish_reason="error", error="503", error_kind="network")
        return house.solve(request)

    house.answer = answer
    run = house.run(solver="twice", first=1)
    assert turns == [0, 1, 0, 1]
    assert (run.status, headline(run)) == ("done", 1.0)


@pytest.mark.parametrize("where", ["at once", "before the first request", "after it"])
def test_a_solver_that_raises_is_a_fault_of_its_item_alone(house, where):
    @registry.solver("clumsy")
    class Clumsy:
        needs = ("generate",)

        def __call__(self, item):
            broken = item.sample.item_id == "i005"
            if broken and where == "at once":
                raise KeyError("tool")
            return self._steps(item, broken=broken)

        def _steps(self, item, *, broken):
            if broken and where == "before the first request":
                raise KeyError("tool")
            output = yield item.ask()
            if broken:
                raise KeyError("tool")
            return output

    run = house.run(solver="clumsy")
    assert (run.n_scored, run.counts["error_harness"], run.status) == (11, 1, "partial")
    assert {r.error for r in house.records(run.run_id) if r.error} == {"KeyError: 'tool'"}


@pytest.mark.parametrize("returned", [None, "text"])
def test_a_solver_that_returns_no_output_is_told_so(house, returned):
    @registry.solver("silent")
    class Silent:
        needs = ("generate",)

        def __call__(self, item):
            yield item.ask()
            return returned

    run = house.run(solver="silent", first=2)
    assert run.counts["error_harness"] == 2
    assert "the solver returned a" in house.records(run.run_id)[0].error


# --- refused before any call ---


def refused(house, match, **options):
    with pytest.raises(UsageError, match=match) as caught:
        house.run(**options)
    assert "\n" not in str(caught.value)
    assert house.calls == []
    assert house.store.run_ids() == []


def test_a_missing_capability_stops_before_any_call(house):
    house.continuations = lambda sample: [" 1", " 2"]
    house.capabilities = frozenset({"generate"})
    refused(house, "needs 'loglikelihood', .*use one of: .*hf, mock", solver="choose")
    registry.strategy("two")(type("Two", (), {"n": 2, "__call__": lambda self, c: 0}))
    refused(house, "strategy 'two' needs 'samples'", strategy="two")


def test_choosing_among_no_options_is_refused(house):
    refused(house, "'own/add' has none; use --solver generate", solver="choose")


def test_a_generation_as_long_as_the_context_is_refused(house):
    house.context_length = 64
    refused(house, "--max-tokens 64 leaves no room", max_tokens=64)
    house.generation = Generation(max_tokens=64)
    run = house.run()  # the task's own default is shortened, and said to be
    assert run.status == "done"
    assert len(house.calls) == 12


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"solver": "generat"}, "did you mean 'generate'"),
        ({"strategy": "sampel"}, "did you mean 'sample'"),
        ({"solver": "generate?x=1"}, "unknown option 'x'"),
        ({"args": {"stile": "1"}}, "unknown option 'stile'.*it takes style"),
        ({"epochs": 0}, "--epochs must be at least 1"),
        ({"seed": 2**63}, "--seed .* does not fit"),
        ({"temperature": float("nan")}, "--temperature"),
        ({"top_p": 0.0}, "--top-p"),
        ({"wibble": 1}, "unknown option 'wibble'"),
        ({"limit": "3"}, "bad option"),
    ],
)
def test_bad_options_are_refused(house, options, match):
    refused(house, match, **options)


def test_a_strategy_with_bad_options_is_refused(house):
    class Best:
        def __init__(self, n):
            self.n = int(n)

        def __call__(self, candidates):
            return 0

    registry.strategy("best")(Best)
    refused(house, "cannot make 'best'", strategy="best")
    refused(house, "cannot make 'best\\?n=many'", strategy="best?n=many")
    refused(house, "must draw at least once", strategy="best?n=0")


@pytest.mark.parametrize("prompt", ["{{ inptu }}", "{% if %}"])
def test_a_broken_prompt_is_refused(house, prompt):
    house.prompt = prompt
    refused(house, "prompt of task 'own/add'")


# --- strategies ---


class Last:
    """Keep the last of three draws."""

    n = 3

    def __call__(self, candidates):
        return 2


def expected_of_last(house, run_id, repeats=1):
    """What keeping the last draw is worth, from the outputs alone."""
    target = {s.item_id: s.target[0] for s in house.samples}
    last = {(r.item_id, r.epoch): r for r in house.records(run_id)}
    means = []
    for item, right in target.items():
        picked = [last[item, 3 * k + 2].output == right for k in range(repeats)]
        means.append(sum(picked) / repeats)
    return sum(means) / len(means)


def test_a_strategy_chooses_among_its_draws(house):
    registry.strategy("last")(Last)
    run = house.run("mock:noisy?accuracy=0.5", strategy="last", epochs=2)
    assert run.n_planned == len(house.records(run.run_id)) == 72
    assert next(iter(run.metrics)) == "last"
    assert headline(run) == pytest.approx(expected_of_last(house, run.run_id, repeats=2))
    verdicts = [s for s in house.scores(run.run_id) if s.metric == "last"]
    assert len(verdicts) == 24
    assert {s.epoch for s in verdicts} == {0, 3}


def test_draws_are_shared_with_plain_runs(house):
    """A strategy that only selects is no part of the key: more draws cost only the new ones."""
    registry.strategy("last")(Last)
    assert house.called(epochs=2) == 24
    assert house.called(strategy="last") == 12


@pytest.mark.parametrize("after", [3, 17, 35])
def test_resume_in_the_middle_of_the_draws(house, after):
    registry.strategy("last")(Last)
    stop = True

    def answer(request):
        if stop and len(house.calls) > after:
            raise KeyboardInterrupt
        if request.item_id == "i004":
            return Output(text="", finish_reason="content_filter")
        return Output(text=str(request.seed % 2 * 4004))

    house.batch_size = 1
    house.answer = answer
    with pytest.raises(HarnessError, match="stopped"):
        house.run(strategy="last")
    (run_id,) = house.store.run_ids()
    stop = False
    done = house.resume(run_id)
    assert len(house.calls) == 36 + 1  # only the one in flight was asked twice
    assert done.status == "done"
    verdicts = [s for s in house.scores(run_id) if s.metric == "last"]
    assert sorted(s.item_id for s in verdicts) == [f"i{k:03d}" for k in range(12)]
    assert headline(done) == pytest.approx(expected_of_last(house, run_id))
    if after == 17:
        assert house.run(strategy="last", fresh=True).metrics == done.metrics


def test_a_draw_lost_to_the_network_leaves_the_choice_open_until_it_is_there(house):
    registry.strategy("last")(Last)
    down = True

    def answer(request):
        if down and request.item_id == "i001":
            return Output(text="", finish_reason="error", error="503", error_kind="network")
        return house.solve(request)

    house.answer = answer
    run = house.run(strategy="last")
    assert run.status == "partial"
    assert headline(run) == 1.0  # the open item is out of the denominator, not a nought in it
    assert len([s for s in house.scores(run.run_id) if s.metric == "last"]) == 11
    down = False
    done = house.resume(run.run_id)
    assert done.status == "done"
    assert len([s for s in house.scores(run.run_id) if s.metric == "last"]) == 12


def test_choosing_an_unreadable_verdict_is_no_nought(house, by_item):
    registry.strategy("last")(Last)
    house.scorer = "moody"
    by_item({"i000": "mumble", "i001": "wrong"})
    run = house.run(strategy="last")
    assert headline(run) == pytest.approx(10 / 11)


@pytest.mark.parametrize("choice", [3, -1, "raise"])
def test_a_strategy_that_fails_is_no_wrong_answer(house, choice):
    class Bad:
        n = 2

        def __call__(self, candidates):
            if choice == "raise":
                raise ZeroDivisionError
            return choice

    registry.strategy("bad")(Bad)
    run = house.run(strategy="bad")
    assert run.status == "partial"
    assert headline(run) is None
    registry.strategy("bad")(type("Mended", (), {"n": 2, "__call__": lambda self, c: 0}))
    done = house.resume(run.run_id)
    assert (done.status, headline(done)) == ("done", 1.0)


# --- what is stored ---


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(house, monkeypatch):
    append = Journal.append
    full = True

    def tight(self, record):
        if full and self.seq >= 11:
            raise StoreError("cannot write journal: No space left on device")
        return append(self, record)

    monkeypatch.setattr(Journal, "append", tight)
    with pytest.raises(HarnessError, match=r"No space left .*go on with: harness resume"):
        house.run()
    (run_id,) = house.store.run_ids()
    assert len(house.records(run_id)) == 5
    full = False
    done = house.resume(run_id)
    assert (done.status, headline(done), len(house.records(run_id))) == ("done", 1.0, 12)


def test_a_fault_of_our_own_leaves_no_thread_and_no_lock_behind(house, monkeypatch):
    """Something nobody thought of, in the middle of a run: a person must be able to go on."""

    def bug(*_):
        raise ZeroDivisionError

    house.answer = lambda request: house.solve(request) if len(house.calls) < 9 else Output(text="")
    before = threading.active_count()
    monkeypatch.setattr("harness.runner.execute.effective_status", bug)
    with pytest.raises(ZeroDivisionError):
        house.run()
    assert threading.active_count() == before
    assert house.closed == 1
    monkeypatch.undo()


def test_a_bar_shows_scores_that_are_no_shares(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    bar = ProgressBar()
    bar.started("task", 3, 0)
    bar.finished("scored", 1.0)
    assert bar._score() == "100.0 % [21, 100]"  # Wilson for 1 of 1: 1 / (1 + 1.96²) = 0.2065
    bar.finished("scored", 7.5)
    assert bar._score() == "mean 4.25"
    bar.finished("scored", -20.0)
    bar.ended()


def test_usage_counts_every_attempt_and_reused_answers_cost_nothing(house):
    first = house.run()
    assert (first.usage["tokens_in"], first.usage["tokens_out"]) == (60, 12)
    second = house.run()
    assert second.cached == 12
    assert (second.usage["tokens_in"], second.usage["tokens_out"]) == (0, 0)
    assert usage(snapshot(house.store), second.run_id).reused == 12


def test_a_run_that_found_its_end_says_so(house):
    run = house.run()
    *_, last = read_records(house.store.journal(run.run_id))
    assert isinstance(last, RunFinished)
    assert last.status == "done"
