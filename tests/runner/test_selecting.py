"""Strategies that run an item's draws and ask a model: who is asked, what is kept, what is refused."""

from __future__ import annotations

import msgspec
import pytest

from harness.core import registry
from harness.core.errors import UsageError
from harness.core.types import Message, Output, Usage
from harness.runner.inspect import whole_sample
from harness.solvers.selection import Choice


class Bench:
    """Counts its visits; knows which text it likes."""

    def __init__(self, sample, request, texts):
        self.texts, self.request = texts, request
        self.opened = False

    def __enter__(self):
        self.opened = True
        return self

    def __exit__(self, *_):
        self.opened = False


class Longest:
    """Asks once, and takes the longest draw."""

    n = 3

    def __init__(self, selector=""):
        self.selector = selector

    def choose(self, candidates, bench, ask, key=""):
        assert bench.opened
        assert bench.texts == tuple(candidates)
        reply = ask((Message("user", f"which of {len(candidates)}?"),))
        index = max(range(len(candidates)), key=lambda i: len(candidates[i]))
        return Choice(index=index, scores=(0.0, 1.0, 0.0), facts={"said": reply, "key": key})


@pytest.fixture
def choosing(house):
    plain = house.task
    benches = []

    def bench(sample, request, texts):
        benches.append(Bench(sample, request, texts))
        return benches[-1]

    registry.task("own/add", n=12)(
        lambda request: msgspec.structs.replace(plain(request), bench=bench)
    )
    registry.strategy("longest")(Longest)
    draws = iter(["1", "1001", "12"] * 12)

    def answer(request):
        if request.messages[-1].content.startswith("which of"):
            return Output(text="the longest", usage=Usage(7, 3))
        return Output(text=next(draws), usage=Usage(5, 1))

    house.answer = answer
    house.benches = benches
    return house


def test_the_evaluated_model_is_asked_by_default_and_all_is_kept(choosing):
    run = choosing.run(strategy="longest", ids=("i001",), temperature=1.0, sandbox="userns")
    (bench,) = choosing.benches
    assert bench.texts == ("1", "1001", "12")
    assert (bench.opened, bench.request.level) == (False, "userns")
    assert run.metrics["longest"].value == 1.0
    facts = whole_sample(choosing.store, run.run_id, "i001")["facts"]
    assert facts["strategy"] == {
        "chosen": 1, "said": "the longest", "key": "i001", "scores": [0.0, 1.0, 0.0],
        "selector": "count:a", "tokens_in": 7, "tokens_out": 3,
    }  # fmt: skip


def test_another_model_may_choose(choosing):
    strategy = "longest?selector=mock:constant?text=2"
    run = choosing.run(strategy=strategy, ids=("i001",), temperature=1.0)
    facts = whole_sample(choosing.store, run.run_id, "i001")["facts"]
    assert facts["strategy"]["said"] == "2"
    assert facts["strategy"]["selector"] == "mock:constant?text=2"
    assert len(choosing.calls) == 3


def test_a_selector_that_cannot_be_asked_leaves_the_item_open(choosing):
    answer = choosing.answer

    def failing(request):
        if request.messages[-1].content.startswith("which of"):
            return Output(text="", finish_reason="error", error="gone", error_kind="network")
        return answer(request)

    choosing.answer = failing
    run = choosing.run(strategy="longest", ids=("i001",), temperature=1.0)
    assert run.status == "partial"
    choosing.answer = answer
    assert choosing.resume(run.run_id).metrics["longest"].value == 1.0
    assert len(choosing.calls) == 3 + 3 + 1


def test_a_task_without_a_bench_is_refused_before_a_call(house):
    registry.strategy("longest")(Longest)
    with pytest.raises(UsageError, match="nothing to run them on"):
        house.run(strategy="longest", temperature=1.0)
    assert house.calls == []
