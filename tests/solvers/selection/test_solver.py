"""The solver `select` and the strategies: the same algorithms, driven by a run or by a function."""

from random import Random

import pytest

from harness.core.errors import HarnessError, UsageError
from harness.core.types import Generation, Oracle, Output, Sample, Usage, text_of
from harness.solvers.base import Item
from harness.solvers.selection import Selector, strategy
from harness.solvers.selection.solver import Select


def _item(bench, oracle=None, environment=None):
    return Item(
        sample=Sample(item_id="pool-1", input="?"), messages=(), generation=Generation(), seed=1,
        oracle=oracle, environment=environment or (lambda: bench),
    )  # fmt: skip


def _solve(solver, item, answer):
    """Drive a solver; `answer` makes the output of each request."""
    requests = []
    solving = solver(item)
    try:
        request = next(solving)
        while True:
            requests.append(request)
            request = solving.send(answer(request))
    except StopIteration as ended:
        return ended.value, requests


def _says(*texts):
    left = list(texts)
    return lambda _: Output(text=left.pop(0), usage=Usage(100, 7))


def test_the_answer_is_the_index_and_the_summary_tells_how(kit):
    bench = kit.FakeBench([[0, 1], [1, 1], [1, 0]], [1, 1])
    output, requests = _solve(Select("split_tester"), _item(bench), _says("suite 0 1", "0"))
    order = output.work.summary["orders"][0]
    assert output.text == str(order[0])
    assert output.finish_reason == "stop"
    summary = output.work.summary
    assert (summary["calls"], summary["engine_runs"], summary["selector_unreadable"]) == (2, 6, 0)
    assert summary["selector_tokens"] == {"in": 200, "out": 14}
    assert summary["maker"] == "model"
    assert output.work.isolation == "full"
    assert [request.turn for request in requests] == [0, 1]
    # The second question stands after the first call in the transcript.
    (step,) = output.work.steps
    assert (step.turn, step.kind) == (0, "told")
    assert step.data["text"] == text_of(requests[1].messages[-1])


def test_tokens_that_nobody_reports_are_no_zero(kit):
    bench = kit.FakeBench([[0], [1]], [1])
    output, _ = _solve(Select("llm_judge"), _item(bench), lambda _: Output(text="0"))
    assert output.work.summary["selector_tokens"] == {}


def test_a_refusal_is_an_unreadable_reply_and_a_fault_ends_the_attempt(kit):
    bench = kit.FakeBench([[0], [1]], [1])
    refused = Output(text="0", finish_reason="content_filter")
    output, _ = _solve(Select("llm_judge"), _item(bench), lambda _: refused)
    assert (output.text, output.work.summary["selector_unreadable"]) == ("0", 1)
    broken = Output(text="", finish_reason="error", error="no line", error_kind="network")
    output, requests = _solve(Select("llm_judge"), _item(bench), lambda _: broken)
    assert (output.text, output.finish_reason, output.error_kind) == ("", "error", "network")
    assert len(requests) == 1


@pytest.mark.parametrize("by", ["llm_judge", "split_tester", "codemonkey", "s_star"])
def test_gold_plays_the_right_candidate_wherever_it_is_shown(kit, by):
    truth = [1, 0, 1, 0]
    wrong = [[bit ^ (t == k) for t, bit in enumerate(truth)] for k in range(4)]
    bench = kit.FakeBench([*wrong, truth, truth], truth, with_items=True)
    oracle = Oracle(("4",), (), lambda rng: "0")

    def gold(request):
        return Output(text=request.oracle.gold[request.turn])

    output, _ = _solve(Select(by, maker="items"), _item(bench, oracle), gold)
    assert output.text == "4"


def test_a_guess_is_one_of_those_shown(kit):
    bench = kit.FakeBench([[0]] * 4, [1])
    oracle = Oracle(("1",), (), lambda rng: "99")
    said = set()

    def guess(request):
        said.update(request.oracle.guess(Random(k)) for k in range(40))
        return Output(text="0")

    _solve(Select("llm_judge"), _item(bench, oracle), guess)
    assert said == {"0", "1", "2", "3"}


def test_what_is_missing_or_broken_is_told(kit):
    class Missing(kit.FakeBench):
        def __enter__(self):
            raise HarnessError("the engine is missing: get it")

    class Broken(kit.FakeBench):
        def run(self, which, cases):
            raise RuntimeError("the box is gone")

    output, _ = _solve(Select(), _item(Missing([[0]], [0])), _says())
    assert (output.finish_reason, output.error) == ("skipped", "the engine is missing: get it")
    output, _ = _solve(Select(), _item(Broken([[0], [1]], [0])), _says("suite 0"))
    assert (output.finish_reason, output.error_kind) == ("error", "harness")
    with pytest.raises(UsageError, match="candidates"):
        _solve(Select(), _item(None, environment=kit.FakeToolbox), _says())


@pytest.mark.parametrize("options", [{"by": "best"}, {"maker": "gold"}, {"seed": "x"}])
def test_options_that_are_none_are_refused(options):
    with pytest.raises((UsageError, ValueError)):
        Select(**options)


@pytest.mark.parametrize(
    "name", ["generated_tests", "split_tester", "codemonkey", "s_star", "llm_judge"]
)
def test_strategies_choose_as_the_algorithms_do(kit, name):
    selector = getattr(strategy, name)(n="3", selector="mock:gold")
    assert (selector.n, selector.selector) == (3, "mock:gold")
    bench = kit.FakeBench([[0, 1], [1, 1], [1, 0]], [1, 1])

    def say(text):
        if "<decision>" in text:
            return "<decision>0</decision>"
        return "suite 0 1" if "make 8" in text else "layout 1" if "make 1" in text else "0"

    found = selector.choose(
        bench.candidates, bench, lambda messages: say(text_of(messages[-1])), key="item"
    )
    other = kit.FakeBench([[0, 1], [1, 1], [1, 0]], [1, 1])
    assert found == kit.choose(name, other, say).choice


def test_a_strategy_draws_at_least_once():
    with pytest.raises(ValueError, match="n=0"):
        Selector("llm_judge", n="0")
