"""Several judges: each is asked, named, paid for and counted; one judge stays as it was."""

from __future__ import annotations

import json
from statistics import fmean

import msgspec
import pytest

from harness.backends.base import load
from harness.core import registry
from harness.core.errors import UsageError
from harness.core.types import Message, Output, Score, Usage
from harness.runner.compare import compare
from harness.runner.config import RunConfig, make_config
from harness.runner.judging import Judge, join_judges, split_judges
from harness.runner.lifecycle import resume
from harness.runner.rescore import rescore
from harness.store.journal import started

TWO = "arbiter:strict,arbiter:kind"


def panel(judges, repeats="1"):
    """A scorer that asks each judge several times: the mean of the numbers that they say."""
    assert isinstance(judges, tuple)

    def score(sample, output):
        message = [Message("user", f"{sample.input} {output.text}")]
        said = {j.spec: [j(message, seed).text for seed in range(int(repeats))] for j in judges}
        value = fmean(float(text) for texts in said.values() for text in texts)
        return Score(value=value, passed=value > 0.5, explanation=json.dumps(said))

    return score


class Arbiters:
    """Judges by name: ``strict`` says 0, ``kind`` 1, any other what the test puts in."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.requests = []
        self.says = {"strict": "0", "kind": "1"}
        self.fails: dict[str, int] = {}
        self.closed: list[str] = []
        self.connections: dict[str, int] = {}

    def backend(self, spec, options):
        made = load("mock:constant?text=1")
        made.identity = msgspec.structs.replace(made.identity, backend="arbiter", name=spec.name)
        made.generate = lambda requests: [self.answer(spec.name, request) for request in requests]
        made.close = lambda: self.closed.append(spec.name)
        made.max_connections = self.connections.get(spec.name, 1)
        return made

    def answer(self, name, request):
        self.asked.append((name, request.seed))
        self.requests.append(request)
        if self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            return Output(text="", finish_reason="error", error="no line", error_kind="network")
        return Output(text=self.says.get(name, "1"), usage=Usage(7, len(name)))

    def variant(self, name):
        return load(f"arbiter:{name}").identity.variant_id


@pytest.fixture
def arbiters(house):
    made = Arbiters()
    registry.backend("arbiter")(made.backend)
    registry.scorer("panel")(panel)
    house.scorer = "panel?repeats=2"
    return made


def judge_calls(house, run_id):
    return [e for e in house.events(run_id) if e.kind == "judge_call"]


def test_each_judge_is_asked_for_each_repeat_with_its_seed(house, arbiters):
    summary = house.run(judge=TWO, first=3)
    assert (summary.status, summary.metrics["accuracy"].value) == ("done", 0.5)
    assert arbiters.asked == [("strict", 0), ("strict", 1), ("kind", 0), ("kind", 1)] * 3


def test_every_call_is_an_event_that_names_its_judge(house, arbiters):
    summary = house.run(judge=TWO, first=2)
    calls = judge_calls(house, summary.run_id)
    assert [(e.item_id, e.data["judge"], e.data["tokens_in"], e.data["tokens_out"]) for e in calls] == [
        (item, f"arbiter:{name}", 7, len(name))
        for item in ("i000", "i001") for name in ("strict", "strict", "kind", "kind")
    ]  # fmt: skip


def test_judges_that_answer_side_by_side_keep_their_calls_apart(house, arbiters):
    arbiters.connections = {"strict": 3, "kind": 5}
    assert house.plan(judge=TWO).judges.max_connections == 3
    summary = house.run(judge=TWO)
    assert (summary.status, summary.metrics["accuracy"].value) == ("done", 0.5)
    by_item = {}
    for call in judge_calls(house, summary.run_id):
        by_item.setdefault(call.item_id, []).append(call.data["judge"])
    assert list(by_item.values()) == [["arbiter:strict"] * 2 + ["arbiter:kind"] * 2] * 12


def test_the_verdict_carries_both_and_the_plan_names_both(house, arbiters):
    summary = house.run(judge=TWO, first=2)
    both = f"{arbiters.variant('strict')}+{arbiters.variant('kind')}"
    assert {s.judge_variant for s in house.scores(summary.run_id)} == {both}
    named = started(house.store, summary.run_id).task_info["judge"]
    assert [one["name"] for one in named] == ["strict", "kind"]


def test_one_judge_is_kept_as_it_always_was(house, arbiters):
    summary = house.run(judge="arbiter:kind", first=2)
    record = started(house.store, summary.run_id)
    assert (record.config["judge"], record.task_info["judge"]["name"]) == ("arbiter:kind", "kind")
    assert {s.judge_variant for s in house.scores(summary.run_id)} == {arbiters.variant("kind")}


def test_limits_count_the_calls_of_all_judges(house, arbiters):
    # The model takes 6 tokens an item; strict 13 a call, kind 11: 2 x (13 + 11) = 48. 54 an item.
    summary = house.run(judge=TWO, batch_size=1, max_total_tokens=108)
    assert (summary.status, summary.n_scored) == ("partial", 2)
    assert len(arbiters.asked) == 8


def test_prices_of_all_judges_count(house, arbiters, monkeypatch, tmp_path):
    dated = 'price_date = 2026-01-01\nprice_source = "a test"\n'
    (tmp_path / "models.toml").write_text(
        f'["arbiter:strict"]\nprice_in = 100.0\nprice_out = 0.0\n{dated}'
        f'["arbiter:kind"]\nprice_in = 50.0\nprice_out = 0.0\n{dated}'
    )
    monkeypatch.setenv("HARNESS_MODELS", str(tmp_path / "models.toml"))
    summary = house.run(judge=TWO, first=1)
    costs = [e.data["cost_usd"] for e in judge_calls(house, summary.run_id)]
    # 7 tokens at 100 and 50 dollars a million.
    assert costs == pytest.approx([7e-4, 7e-4, 3.5e-4, 3.5e-4])


def test_a_judge_that_falls_over_is_a_fault_of_the_harness_and_judged_again(house, arbiters):
    arbiters.fails = {"kind": 3}
    summary = house.run(judge=TWO, first=2)
    assert (summary.status, summary.counts["error_harness"], summary.n_counted) == ("partial", 1, 1)
    (fault,) = [s for s in house.scores(summary.run_id) if s.reason == "scorer_fault"]
    assert "arbiter:kind gave no answer: no line" in fault.explanation
    # What was asked of the other judge meanwhile was paid for: 2 + 3 calls, then 4.
    assert len(judge_calls(house, summary.run_id)) == 9
    calls = len(house.calls)
    ended = resume(house.store, summary.run_id)
    assert (ended.status, ended.n_scored, len(house.calls)) == ("done", 2, calls)


def test_other_judges_judge_again_and_no_model_is_called(house, arbiters):
    run = house.run(judge=TWO, first=3)
    calls = len(house.calls)
    done = rescore(house.store, run.run_id, ["arbiter:kind", "arbiter:late"])
    assert (len(house.calls), done.n_rescored) == (calls, 3)
    assert (done.before.headline.value, done.after.headline.value) == (0.5, 1.0)
    assert done.after.judge == f"{arbiters.variant('kind')}+{arbiters.variant('late')}"
    both = house.scores(run.run_id)
    assert [s.replaces for s in both[3:]] == [s.seq for s in both[:3]]


def test_runs_that_others_judged_are_not_compared(house, arbiters):
    house.run(judge=TWO)
    run = house.run(judge=TWO, seed=1)
    a, b = house.store.run_ids()
    compare(house.store, a, b)
    rescore(house.store, run.run_id, "arbiter:kind")
    with pytest.raises(UsageError, match="judges"):
        compare(house.store, a, b)


def test_a_scorer_that_asks_one_judge_refuses_several(house, arbiters):
    registry.scorer("single")(lambda judge: lambda s, o: Score(value=1.0))
    house.scorer = "single"
    with pytest.raises(UsageError, match="'single' asks one judge, and --judge names 2"):
        house.run(judge=TWO)
    assert (house.calls, house.store.run_ids()) == ([], [])
    assert house.run(judge="arbiter:kind", first=1).n_scored == 1


def test_a_scorer_of_judges_without_any_leaves_answers_unscored(house, arbiters):
    summary = house.run(first=2)
    assert summary.counts["unscored"] == 2
    assert {s.reason for s in house.scores(summary.run_id)} == {"no_judge"}


def test_the_judges_are_no_option_of_the_scorers_spec(house, arbiters):
    house.scorer = "panel?judges=arbiter:kind"
    with pytest.raises(UsageError, match="unknown option 'judges'"):
        house.run()


def test_where_one_cannot_be_loaded_none_stays_loaded(house, arbiters):
    class Missing:
        capabilities = frozenset({"generate"})

        def __init__(self) -> None:
            self.n = 0

        def backend(self, spec, options):
            self.n += 1
            if self.n > 1:  # the first look is the plan's
                raise UsageError("its weights are gone")
            return load("mock:empty")

    registry.backend("absent")(Missing().backend)
    with pytest.raises(UsageError, match="weights are gone"):
        house.run(judge="arbiter:kind,absent:x")
    # Once after the plan's look, once since it was loaded.
    assert arbiters.closed == ["kind", "kind"]


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("mock:gold", ["mock:gold"]),
        ("openai:a?omit=temperature,seed", ["openai:a?omit=temperature,seed"]),
        ("openai:a?omit=temperature,seed,mock:gold", ["openai:a?omit=temperature,seed", "mock:gold"]),
        ("mock:constant?text=yes, no, mock:empty", ["mock:constant?text=yes, no", "mock:empty"]),
        ("openai:a?base_url=http://x/v1,https://y", ["openai:a?base_url=http://x/v1,https://y"]),
        ("mock:constant?text=a%2Cb:c,mock:gold", ["mock:constant?text=a%2Cb:c", "mock:gold"]),
        ("hf:org/name@rev,gguf:./x.gguf", ["hf:org/name@rev", "gguf:./x.gguf"]),
    ],
)  # fmt: skip
def test_a_comma_parts_judges_only_where_another_begins(text, specs):
    assert split_judges(text) == specs
    assert make_config(task="t", model="mock:gold", judge=specs).judge == ",".join(specs)


def test_judges_that_cannot_be_told_apart_are_refused():
    with pytest.raises(UsageError, match="names 'mock:gold' twice"):
        join_judges(["mock:gold", "mock:empty,mock:gold"])
    assert join_judges([]) is None


def test_a_stored_config_of_one_judge_is_read_as_before():
    old = {"task": "t", "model": "mock:gold", "judge": "openai:a?omit=temperature,seed"}
    assert split_judges(msgspec.convert(old, RunConfig).judge) == [old["judge"]]


def test_a_judge_is_asked_greedily_unless_its_spec_says_otherwise(arbiters):
    plain, warm = Judge("arbiter:kind"), Judge("arbiter:kind?temperature=0.7&max_tokens=2000")
    for judge in (plain, warm):
        judge([Message("user", "?")], 3)
    asked = [(r.generation.temperature, r.generation.max_tokens, r.seed) for r in arbiters.requests]
    assert asked == [(0.0, 512, 3), (0.7, 2000, 3)]
    assert plain.identity.variant_id == arbiters.variant("kind")
    assert warm.identity.variant_id != plain.identity.variant_id
    assert warm.identity.args["temperature"] == "0.7"


@pytest.mark.parametrize(
    ("options", "match"),
    [("temperature=warm", "temperature=warm is no number"),
     ("temperature=-1", "between 0 and 100"),
     ("temperature=nan", "between 0 and 100"), ("max_tokens=0", "at least 1"),
     ("max_tokens=2.5", "max_tokens=2.5 is no whole number"), ("temprature=1", "temprature")],
)  # fmt: skip
def test_options_that_are_none_are_refused(options, match):
    with pytest.raises(UsageError, match=match):
        Judge(f"mock:empty?{options}")
