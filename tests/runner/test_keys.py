"""The same answer is never paid for twice, and no other question is served an old one."""

from __future__ import annotations

import msgspec
import pytest

from harness.core import registry
from harness.core.types import Generation, Output, Sample

N = 12


def replace_first(house, **changes):
    house.samples = [msgspec.structs.replace(house.samples[0], **changes), *house.samples[1:]]


def again(house):
    """A solver that does what `generate` does, under another name and with an option."""

    class Again:
        needs = ("generate",)

        def __init__(self, style="plain"):
            self.style = style

        def __call__(self, item):
            return (yield item.ask())

    registry.solver("again")(Again)


# What is flipped: (name, change of the house or None, options of the run)
FLIPS = [
    ("model option", None, {"model": "count:a?k=1"}),
    ("model option's value", None, {"model": "count:a?k=2"}),
    ("another model", None, {"model": "count:b"}),
    ("revision", None, {"model": "count:a@v2"}),
    ("dtype", None, {"dtype": "bf16"}),
    ("task prompt", lambda h: setattr(h, "prompt", "What is {{ input }}? "), {}),
    ("task system", lambda h: setattr(h, "system", "Just the number."), {}),
    ("system", None, {"system": "Be brief."}),
    ("no system", None, {"system": ""}),
    ("task version", lambda h: setattr(h, "version", "2"), {}),
    ("max_tokens", None, {"max_tokens": 31}),
    ("task max_tokens", lambda h: setattr(h, "generation", Generation(max_tokens=33)), {}),
    ("temperature", None, {"temperature": 0.5}),
    ("top_p", None, {"top_p": 0.5}),
    ("stop", None, {"stop": ("\n",)}),
    ("two stops", None, {"stop": ("\n", "Q:")}),
    ("seed", None, {"seed": 1}),
    ("solver", None, {"solver": "again"}),
    ("solver option", None, {"solver": "again?style=proud"}),
    ("chat template", None, {"chat_template": "off"}),
    ("on_long skip", None, {"on_long": "skip"}),
    ("on_long truncate", None, {"on_long": "truncate"}),
    ("no_data", None, {"no_data": True}),
    ("arg", None, {"args": {"style": "1"}}),
    ("arg's value", None, {"args": {"style": "2"}}),
]


def test_each_input_flipped_alone_gives_keys_of_its_own(house):
    """Every key of every flip differs from all others, so no flip may be mistaken for another."""
    again(house)
    before = {name: getattr(house, name) for name in ("prompt", "system", "version", "generation")}
    seen = dict.fromkeys(house.planned_keys(), "nothing")
    assert len(seen) == N
    for name, change, options in FLIPS:
        if change:
            change(house)
        keys = house.planned_keys(**options)
        assert [(name, seen[key]) for key in keys if key in seen] == []
        seen |= dict.fromkeys(keys, name)
        for attribute, value in before.items():
            setattr(house, attribute, value)
    assert [seen[key] for key in house.planned_keys()] == ["nothing"] * N


@pytest.mark.parametrize(
    "flip", [f for f in FLIPS if f[0] in ("model option", "task prompt", "temperature", "solver")]
)
def test_a_flip_is_asked_anew_on_the_same_store(house, flip):
    _, change, options = flip
    again(house)
    house.run()
    if change:
        change(house)
    assert house.called(**options) == N
    assert house.called(**options) == 0


def test_nothing_changed_calls_nothing_and_names_who_paid(house):
    first = house.run()
    second = house.run()
    third = house.run(limit=5)
    assert len(house.calls) == N
    assert (second.cached, third.cached) == (N, 5)
    for run in (second, third):
        assert {r.reused_from for r in house.records(run.run_id)} == {first.run_id}
        assert run.status == "done"
    assert second.metrics == first.metrics
    old = {r.item_id: (r.key, r.prompt, r.output) for r in house.records(first.run_id)}
    assert {r.item_id: (r.key, r.prompt, r.output) for r in house.records(second.run_id)} == old


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 1}, {"errors": "exclude"}, {"device": "cpu"}, {"limit": 12}, {"first": 12}],
)
def test_what_no_answer_depends_on_is_no_part_of_the_key(house, options):
    assert house.planned_keys(**options) == house.planned_keys()


def test_a_switch_of_the_scorer_alone_is_no_part_of_the_key(house):
    make = house.task
    registry.task("own/add", n=N)(
        lambda request: msgspec.structs.replace(make(request), scorer_args=("style",))
    )
    assert house.planned_keys(args={"style": "1"}) == house.planned_keys(args={"style": "2"})
    assert house.planned_keys(args={"style": "1"}) == house.planned_keys()
    assert house.called(args={"style": "1"}) == N
    assert house.called(args={"style": "2"}) == 0


def test_fresh_calls_anew(house):
    house.run()
    assert house.called(fresh=True) == N


def test_more_epochs_call_only_the_new_ones(house):
    assert house.called(epochs=2) == 2 * N
    assert house.called(epochs=5) == 3 * N
    assert house.planned_keys(epochs=3) == house.planned_keys(epochs=5)[: 3 * N]


def test_more_items_call_only_the_new_ones(house):
    house.run(first=5)
    before = len(house.calls)
    house.run()
    assert house.calls[before:] == [s.item_id for s in house.samples[5:]]


@pytest.mark.parametrize(
    ("changes", "called"),
    [
        ({"input": "1 + 1"}, 1),
        ({"item_id": "renamed"}, 1),
        ({"choices": ("1", "2")}, 1),  # a solver sees them, whether or not the prompt shows them
        ({"target": ("42",)}, 0),  # no model sees it: the stored answer is judged anew
        ({"metadata": {"year": 2020}, "category": "x"}, 0),
    ],
)
def test_a_changed_item_is_another_question(house, changes, called):
    house.run()
    replace_first(house, **changes)
    assert house.called() == called


def test_a_changed_target_judges_the_old_answer_anew(house):
    assert house.run().metrics["accuracy"].value == 1.0
    replace_first(house, target=("42",))
    assert house.run().metrics["accuracy"].value == pytest.approx(11 / 12)


def test_a_baseline_sees_the_reference_so_it_is_part_of_its_key(house):
    first = house.run("mock:gold")
    replace_first(house, target=("42",))
    second = house.run("mock:gold")
    assert (first.cached, second.cached) == (0, N - 1)
    assert second.metrics["accuracy"].value == 1.0


def test_two_models_on_one_store_are_both_called_for_every_item(house):
    items = [s.item_id for s in house.samples]
    house.run("count:a")
    house.run("count:b")
    assert house.calls == items * 2


def test_mocks_share_no_keys(house):
    seen = set()
    for spec in ("mock:gold", "mock:empty", "mock:constant?text=1", "mock:constant?text=2",
                 "mock:gold@v2", "mock:noisy?accuracy=0.5", "mock:noisy?accuracy=0.6"):  # fmt: skip
        keys = set(house.planned_keys(spec))
        assert len(keys - seen) == N, spec
        seen |= keys


def test_log_likelihood_and_text_share_no_answers_and_options_count(house):
    house.continuations = lambda sample: [" 1", " 22"]
    house.scorer = "moody"
    assert house.called() == N
    assert house.called(solver="choose") == N
    assert house.called(solver="choose") == 0
    house.continuations = lambda sample: [" 1", " 23"]
    assert house.called(solver="choose") == N


def test_another_scorer_judges_old_answers_for_nothing(house):
    house.run()
    house.scorer = "moody"
    assert house.called() == 0

    before = house.planned_keys()
    registry.scorer("moody", version="7")(registry.find("scorers", "moody").target)
    assert house.planned_keys() == before


def test_a_solver_of_a_new_version_is_asked_again(house):
    again(house)
    before = house.planned_keys(solver="again")
    registry.solver("again", version="2")(registry.find("solvers", "again").target)
    assert not set(before) & set(house.planned_keys(solver="again"))


def test_errors_are_tried_again_and_refusals_are_not(house, by_item):
    by_item({
        "i000": Output(text="", finish_reason="error", error="no", error_kind="model"),
        "i001": Output(text="", finish_reason="content_filter"),
        "i002": Output(text="2", finish_reason="length"),
        "i003": Output(text="", finish_reason="timeout"),
    })  # fmt: skip
    first = house.run()
    before = len(house.calls)
    second = house.run()
    assert house.calls[before:] == ["i000", "i003"]
    assert second.counts == first.counts
    assert second.metrics == first.metrics


def test_a_task_of_another_name_shares_nothing(house):
    made = house.task
    before = house.planned_keys()
    registry.task("own/add")(lambda request: msgspec.structs.replace(made(request), name="other"))
    assert not set(before) & set(house.planned_keys())


def test_a_killed_runs_answers_serve_a_new_run(house):
    def answer(request):
        if len(house.calls) > 6:
            raise KeyboardInterrupt
        return house.solve(request)

    house.batch_size = 1
    house.answer = answer
    with pytest.raises(Exception, match="stopped"):
        house.run()
    house.answer = house.solve
    before = len(house.calls)
    run = house.run()
    assert run.cached == 6
    assert len(house.calls) - before == 6
    assert run.status == "done"


def test_changed_items_of_the_same_id_do_not_spoil_the_next_item(house):
    """Two items may ask the same question: each is asked, under its own name."""
    house.samples = [Sample(item_id=f"t{k}", input="1 + 1", target=("2",)) for k in range(3)]
    assert house.called() == 3
