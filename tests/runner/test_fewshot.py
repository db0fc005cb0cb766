"""Worked examples: never the tested item, seeded, in the form that the solver compares or reads."""

from __future__ import annotations

import pytest

from harness.backends.base import load
from harness.core import registry
from harness.core.errors import UsageError
from harness.core.task import Task
from harness.core.types import Sample
from harness.runner.config import make_config
from harness.runner.plan import make_plan


def make_samples(n):
    return [
        Sample(item_id=f"i{k}", input=f"{k}+{k}?", target=(str(2 * k),),
               choices=(str(2 * k), str(2 * k + 1)), correct=(0,))
        for k in range(n)
    ]  # fmt: skip


@pytest.fixture
def sums(monkeypatch):
    """A task of n sums; call it with its items."""
    monkeypatch.setattr(registry, "_decorated", {})

    def offer(samples, shots=None):
        @registry.task("sums")
        def _make(request):
            return Task(
                name="sums", version="1", samples=samples, prompt="{{ input }}",
                gold=lambda s: f"It is {s.target[0]}.", guess=lambda s, rng: "1", scorer="exact",
                continuations=lambda s: [f" {c}" for c in s.choices], shots=shots,
            )  # fmt: skip

    return offer


def plan(**options):
    config = make_config(task="sums", model="mock:empty", **options)
    return make_plan(config, load("mock:empty"))


def asked(one):
    return [[(m.role, m.content) for m in messages] for messages in one.messages]


def test_examples_come_before_the_item_as_question_and_answer(sums):
    sums(make_samples(5))
    for sample, turns in zip(make_samples(5), asked(plan(fewshot=2)), strict=True):
        assert [role for role, _ in turns] == ["user", "assistant", "user", "assistant", "user"]
        assert turns[-1] == ("user", sample.input)
        for (_, question), (_, answer) in (turns[0:2], turns[2:4]):
            k = int(question.split("+")[0])
            assert answer == f"It is {2 * k}."


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_item_never_sees_itself(sums, n, seed):
    sums(make_samples(5))
    for turns in asked(plan(fewshot=n, seed=seed)):
        questions = [content for role, content in turns if role == "user"]
        assert len(set(questions)) == n + 1


def test_the_same_question_under_another_id_is_the_item_too(sums):
    twins = [*make_samples(3), Sample(item_id="twin", input="0+0?", target=("0",),
                                      choices=("1", "0"), correct=(1,))]  # fmt: skip
    sums(twins)
    for turns in asked(plan(fewshot=2)):
        questions = [content for role, content in turns if role == "user"]
        assert questions.count("0+0?") <= 1
        assert len(set(questions)) == 3


def test_examples_are_seeded_and_do_not_depend_on_what_is_run(sums):
    sums(make_samples(40))
    assert asked(plan(fewshot=3)) == asked(plan(fewshot=3))
    assert asked(plan(fewshot=3)) != asked(plan(fewshot=3, seed=1))
    whole = dict(zip([s.item_id for s in make_samples(40)], asked(plan(fewshot=3)), strict=True))
    assert asked(plan(fewshot=3, ids=("i7",))) == [whole["i7"]]


def test_options_are_shown_as_they_are_compared(sums):
    sums(make_samples(4))
    for turns in asked(plan(fewshot=1, solver="choose")):
        k = int(turns[0][1].split("+")[0])
        assert turns[1] == ("assistant", f" {2 * k}")


def test_a_pool_of_its_own_is_used(sums):
    pool = [Sample(item_id="p", input="9+9?", target=("18",)),
            Sample(item_id="q", input="8+8?", target=("16",))]  # fmt: skip
    sums(make_samples(3), shots=pool)
    assert {turns[0][1] for turns in asked(plan(fewshot=1))} <= {"9+9?", "8+8?"}


def test_a_pool_that_is_too_small_is_refused(sums):
    sums(make_samples(3))
    with pytest.raises(UsageError, match=r"--fewshot 3 needs at least 4 different items.*has 3"):
        plan(fewshot=3)
    with pytest.raises(UsageError, match="must not be negative"):
        plan(fewshot=-1)


def test_examples_are_part_of_the_key(sums):
    sums(make_samples(5))
    keys = [{a.key for a in plan(fewshot=n).attempts} for n in (0, 1, 2)]
    assert not keys[0] & keys[1]
    assert not keys[1] & keys[2]
