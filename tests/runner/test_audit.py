"""`audit`: every check catches its planted fault and leaves a sound task alone."""

from __future__ import annotations

import json
from fractions import Fraction
from math import comb
from random import Random

import pytest
from scipy.stats import binomtest

from harness.core import registry
from harness.core.errors import UsageError
from harness.core.task import Task
from harness.core.types import Message, Output, Sample, Score
from harness.runner.audit import CHECKS, _guarded, audit
from harness.runner.audit_subject import Subject, tail
from harness.runner.config import make_config
from harness.runner.lifecycle import start

# An audit of the CAD tasks builds thousands of solids; that gold is right there is held by tests/tasks/op_cad and procad.
OWN = [
    row["name"] for row in registry.listing("tasks")
    if row["state"] == "ready" and not row["name"].startswith(("op_cad", "procad"))
]  # fmt: skip
NAMES = [check.__name__ for check in CHECKS] + ["no_data_scores", "shortcuts", "solved"]
WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty",
    "knoll", "ledge", "marsh",
)  # fmt: skip


def free(n=24):
    """Different questions with different answers."""
    rng = Random(1)
    return [
        Sample(item_id=f"f{k}", input=f"{' '.join(rng.sample(WORDS, 9))}, case {k}?",
               target=(f"{' '.join(rng.sample(WORDS, 2))} {k}",))
        for k in range(n)
    ]  # fmt: skip


def choices(keys, n_options=5, length=lambda _key, _option: 9):
    """Choice items with given keys; options are of one length unless said otherwise."""
    rng = Random(2)
    samples = []
    for k, key in enumerate(keys):
        options = tuple(
            "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=length(key, j)))
            for j in range(n_options)
        )
        samples.append(
            Sample(item_id=f"c{k}", input=f"{' '.join(rng.sample(WORDS, 9))}, case {k}?",
                   choices=options, correct=(key,), target=(options[key],))
        )  # fmt: skip
    return samples


class Checks:
    """The checks of the task "little" by name, each made when it is asked for."""

    def __init__(self):
        self.subject = Subject(make_config(task="little", model="mock:gold"))

    def __getitem__(self, name):
        check = next(check for check in CHECKS if check.__name__ == name)
        made = _guarded(name, lambda: check(self.subject))
        assert made.name == name
        return made


def complaints(name="little"):
    """Audit the whole task and give what is not ok."""
    found = audit(name)
    assert [check.name for check in found.checks] == NAMES
    assert found.verdict == max((c.verdict for c in found.checks), key=["ok", "warn", "fail"].index)
    return {check.name: check.why for check in found.checks if check.verdict != "ok"}


@pytest.fixture
def offer(monkeypatch):
    """Register a little task and give its checks."""
    monkeypatch.setattr(registry, "_decorated", {})

    def examine(samples, *, bare=None, scorer="exact", **fields):
        hidden = bare or [
            Sample(item_id=s.item_id, input="(withheld)", choices=s.choices, correct=s.correct,
                   target=s.target, metadata=s.metadata)
            for s in samples
        ]  # fmt: skip
        if callable(scorer):
            registry.scorer("own")(lambda made=scorer: made)
            scorer = "own"
        fields = {"prompt": "{{ input }}", "gold": lambda s: s.target[0]} | fields

        @registry.task("little")
        def _make(request):
            return Task(
                name="little", version="1", samples=hidden if request.no_data else samples,
                guess=lambda s, rng: "?", scorer=scorer, **fields,
            )  # fmt: skip

        return Checks()

    return examine


@pytest.fixture
def pick(offer):
    """Audit a choice task that asks for the index of the right option."""

    def examine(samples, **fields):
        fields = {
            "prompt": "{{ input }}{% for c in choices %}\n{{ loop.index0 }}: {{ c }}{% endfor %}",
            "gold": lambda s: "### Answer\n" + ", ".join(map(str, s.correct)),
            "scorer": "choice",
            "continuations": lambda s: [f" {c}" for c in s.choices],
        } | fields
        return offer(samples, **fields)

    return examine


def balanced(n):
    return [k % 5 for k in range(n)]


# --- sound ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", OWN)
def test_our_own_tasks_are_sound(name):
    # A start of KLayout a deck would take minutes; the interpreter says the same of own items. All circuits can be
    # simulated with the models that need no download.
    given = {"rule2drc": {"engine": "regions"}, "ams_sizing": {"tech": "demo"}}
    found = audit(name, args=given.get(name.partition("/")[0], {}))
    failed = [(c.name, c.why) for c in found.checks if c.verdict == "fail"]
    assert failed == []
    assert all(c.why and "\n" not in c.why for c in found.checks)
    assert json.loads(json.dumps([c.value for c in found.checks], allow_nan=False))


def test_a_sound_task_with_free_answers_is_ok(offer):
    offer(free())
    assert complaints() == {}


def test_the_verdict_is_the_worst_of_the_checks(offer):
    offer([*free(), free()[0]], gold=lambda s: "no")
    assert set(complaints()) == {"items", "gold", "gold_path", "duplicates"}
    assert audit("little").verdict == "fail"


def test_a_sound_choice_task_is_ok(pick):
    checks = pick(choices(balanced(40)))
    assert complaints() == {}
    assert checks["gold"].value == checks["gold_path"].value == 1.0
    assert checks["empty_answer"].value == 0.0
    assert checks["constant_answer"].value == 0.2
    assert "generate and choose" in checks["gold_path"].why


# --- answers -------------------------------------------------------------------------------------
def test_gold_that_does_not_score_is_found(offer):
    checks = offer(free(), gold=lambda s: "no" if s.item_id in ("f3", "f5") else s.target[0])
    assert checks["gold"].verdict == "fail"
    assert checks["gold"].value == 22 / 24
    assert "2 of 24 (8.3 %): f3, f5;" in checks["gold"].why


@pytest.mark.parametrize(("value", "verdict"), [(0.75, "ok"), (0.8, "fail"), (None, "fail")])
def test_a_task_may_say_what_gold_scores(offer, value, verdict):
    def three_quarters(sample, output):
        if not output.text:
            return Score.no_answer("empty")
        return Score(value=0.75 if output.text == sample.target[0] else 0.0)

    gold_value = None if value is None else lambda _: value
    checks = offer(free(), scorer=three_quarters, gold_value=gold_value)
    assert checks["gold"].verdict == checks["gold_path"].verdict == verdict


def test_a_gold_that_raises_is_the_tasks_fault(offer):
    checks = offer(free(), gold=lambda s: s.metadata["worked"])
    assert checks["gold"].verdict == "fail"
    assert checks["gold"].why == "the task breaks it: KeyError: 'worked'"


def test_options_that_the_solver_cannot_compare_break_the_path_only(pick):
    checks = pick(choices(balanced(20)), continuations=lambda s: s.choices[:-1])
    assert checks["gold"].verdict == "ok"
    assert checks["gold_path"].verdict == "fail"
    assert "solver choose scores nothing" in checks["gold_path"].why


class TwoTurns:
    """Asks twice and hands in the second answer, or always the first (`lazy`)."""

    needs = ("generate",)

    def __init__(self, lazy=False):
        self.lazy = lazy

    def __call__(self, item):
        first = yield item.ask()
        second = yield item.ask((*item.messages, Message("assistant", first.text)), turn=1)
        return first if self.lazy else second


@pytest.mark.parametrize(("lazy", "verdict"), [(False, "ok"), (True, "fail")])
def test_gold_of_several_turns_goes_the_whole_path(offer, lazy, verdict):
    registry.solver("two-turns")(lambda: TwoTurns(lazy))
    checks = offer(free(), gold=lambda s: ("let me see", s.target[0]), solver="two-turns")
    assert checks["gold_path"].verdict == verdict
    assert "on 24 items" in checks["gold_path"].why or lazy
    assert checks["gold"].value is None


def test_a_scorer_that_pays_silence_is_found(offer):
    def contains(sample, output):
        return Score(value=float(output.text in sample.target[0]))

    checks = offer(free(), scorer=contains)
    assert checks["empty_answer"].verdict == "fail"
    assert checks["empty_answer"].value == 1.0
    # "0" is a part of f10's, f20's and f0's reference, and so on: more often than it is one.
    assert checks["constant_answer"].value > 0.1


def test_a_scorer_that_falls_over_silence_is_found(offer):
    def first_letter(sample, output):
        return Score(value=float(output.text[0] == sample.target[0][0]))

    checks = offer(free(), scorer=first_letter)
    assert checks["empty_answer"].verdict == "fail"
    assert "falls over an empty answer to 24 of 24" in checks["empty_answer"].why


def test_a_constant_that_scores_too_often_is_found(offer):
    def about(sample, output):
        if not output.text:
            return Score.no_answer("empty")
        near = output.text == sample.target[0] or output.text == "0"
        return Score(value=float(near))

    checks = offer(free(), scorer=about)
    assert checks["constant_answer"].verdict == "warn"
    assert checks["constant_answer"].value == 1.0
    assert "always '0' is right in 24 of 24" in checks["constant_answer"].why


def test_the_published_skew_of_aicrypto_is_found(pick):
    """Keys 31, 32, 38, 13, 4 among 118 items: "2" is right in 38/118, 28.1 % of all 135."""
    keys = [k for k, n in enumerate((31, 32, 38, 13, 4)) for _ in range(n)]
    samples = choices(keys)
    several = [
        Sample(item_id=f"s{s.item_id}", input=f"{s.input} Several.", choices=s.choices,
               correct=(0, 1), target=s.choices[:2])
        for s in choices([0] * 17)
    ]  # fmt: skip
    checks = pick([*samples, *several])
    assert checks["constant_answer"].verdict == "warn"
    assert checks["constant_answer"].value == pytest.approx(0.281, abs=0.0005)
    assert "option 2 (from 0) is right in 38 of 135 (28.1 %)" in checks["constant_answer"].why
    assert binomtest(38, 118, 0.2, "greater").pvalue * 5 < 0.01
    assert checks["letter_balance"].verdict == "warn"
    assert "31, 32, 38, 13, 4 times; the oddest is 4" in checks["letter_balance"].why
    lower = binomtest(4, 118, 0.2, "less").pvalue
    assert checks["letter_balance"].value == pytest.approx(2 * lower * 5, rel=1e-9)


@pytest.mark.parametrize(("k", "verdict"), [(16, "ok"), (17, "warn")])
def test_the_bound_of_a_constant_is_one_per_cent_over_five_tries(pick, k, verdict):
    """Of 40 items with 5 options, summed as fractions: 5 P(X >= 16) = .0147, 5 P(X >= 17) = .0050."""
    fifth = Fraction(1, 5)
    odds = 5 * sum(comb(40, j) * fifth**j * (1 - fifth) ** (40 - j) for j in range(k, 41))
    assert (odds < 0.01) == (verdict == "warn")
    keys = [0] * k + [1 + j % 4 for j in range(40 - k)]
    check = pick(choices(keys))["constant_answer"]
    assert check.verdict == verdict
    assert f"(p = {float(odds):.2g} on 40 items, 5 tries)" in check.why


def test_a_scorer_that_disagrees_with_the_keys_is_found(pick):
    def first_is_fine(sample, output):
        text = output.text.removeprefix("### Answer\n")
        right = text == "0" or text == ", ".join(map(str, sample.correct))
        return Score(value=float(right)) if text else Score.no_answer("empty")

    check = pick(choices(balanced(20)), scorer=first_is_fine)["constant_answer"]
    assert check.verdict == "fail"
    assert check.why.endswith("c1, c2, c3 and 13 more")


def test_a_label_that_is_nearly_always_right_is_found(offer):
    samples = [
        Sample(item_id=s.item_id, input=s.input, target=("yes" if k % 10 else "no",))
        for k, s in enumerate(free(60))
    ]
    check = offer(samples)["frequent_answer"]
    assert (check.verdict, check.value) == ("warn", 0.9)


def test_two_labels_in_equal_parts_are_no_fault(offer):
    samples = [
        Sample(item_id=s.item_id, input=s.input, target=("yes" if k % 2 else "no",))
        for k, s in enumerate(free(60))
    ]
    checks = offer(samples)
    assert checks["frequent_answer"].verdict == checks["constant_answer"].verdict == "ok"
    assert checks["frequent_answer"].value == 0.5


def test_an_option_text_that_is_always_right_is_found(pick):
    samples = choices(balanced(20))
    for at in range(0, 20, 2):
        s = samples[at]
        options = tuple("None of these" if j in s.correct else c for j, c in enumerate(s.choices))
        samples[at] = Sample(item_id=s.item_id, input=s.input, choices=options, correct=s.correct,
                             target=("None of these",))  # fmt: skip
    check = pick(samples)["frequent_answer"]
    assert check.verdict == "warn"
    assert "'None of these' is right in 10 of 10 (100.0 %)" in check.why


@pytest.mark.parametrize(("word", "right", "other"), [("longest", 14, 9), ("shortest", 4, 9)])
def test_options_whose_length_gives_them_away_are_found(pick, word, right, other):
    samples = choices(balanced(20), length=lambda key, j: right if key == j else other)
    check = pick(samples)["option_length"]
    assert (check.verdict, check.value) == ("warn", 1.0)
    assert f"always the {word} option is right in 20 of 20" in check.why


@pytest.mark.parametrize(("k", "n", "p"), [(0, 5, 0.3), (3, 10, 0.25), (38, 118, 0.2), (7, 7, 0.5)])
def test_the_tail_is_scipys(k, n, p):
    assert tail(k, n, p) == pytest.approx(binomtest(k, n, p, "greater").pvalue, rel=1e-12)


def test_more_successes_than_trials_cannot_be():
    assert tail(4, 3, 1.0) == 0.0


# --- items ---------------------------------------------------------------------------------------
def test_an_id_that_stands_twice_is_found(offer):
    samples = free()
    twin = Sample(item_id="f0", input="Another one altogether?", target=("x",))
    check = offer([*samples, twin])["items"]
    assert check.verdict == "fail"
    assert "twice or are empty: f0" in check.why


@pytest.mark.parametrize("blank", ["", " \n"])
def test_an_empty_question_is_found(offer, blank):
    check = offer([*free(), Sample(item_id="e", input=blank, target=("x",))])["items"]
    assert (check.verdict, check.value) == ("fail", 1.0)
    assert "without a question: e" in check.why


BROKEN = {
    "no right option": {"correct": ()},
    "a key beyond the options": {"correct": (5,)},
    "a key that stands twice": {"correct": (1, 1)},
    "two options that are equal": {"choices": ("a", "b", "a ", "c", "d")},
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_key_is_found(pick, fault):
    good = {"choices": ("a", "b", "c", "d", "e"), "correct": (1,), "target": ("b",)}
    bad = Sample(item_id="bad", input="Which one is it then?", **(good | BROKEN[fault]))
    check = pick([*choices(balanced(20)), bad])["references"]
    assert check.verdict == "fail"
    assert f"{fault}: bad" in check.why
    assert check.value == 1 / 21


@pytest.mark.parametrize(
    ("target", "fault"),
    [("many", "a reference that the scorer cannot read"), ("nan", "a reference that is not finite"),
     ("inf", "a reference that is not finite"), ("", "no reference")],
)  # fmt: skip
def test_a_broken_number_is_found(offer, target, fault):
    numbers = [
        Sample(item_id=s.item_id, input=s.input, target=(str(k),)) for k, s in enumerate(free())
    ]
    bad = Sample(item_id="bad", input="How many are there?", target=(target,))
    sound = offer(numbers, scorer="number")["references"]
    assert sound.verdict == "ok"
    check = offer([*numbers, bad], scorer="number")["references"]
    assert check.verdict == "fail"
    assert f"{fault}: bad" in check.why


def test_what_a_task_lists_as_faulty_is_said(offer):
    listed = {"f2": "the reference is in pounds", "gone": "not in these data"}
    check = offer(free(), info={"known_faults": listed})["known_faults"]
    assert (check.verdict, check.value) == ("warn", 1 / 24)
    assert check.why.endswith("1 of 24 (4.2 %): f2; f2: the reference is in pounds")


def with_twin(target, text=lambda t: t):
    samples = free()
    return [*samples, Sample(item_id="twin", input=text(samples[4].input), target=(target,))]


@pytest.mark.parametrize("written", [str, lambda t: t.replace(" ", "  ") + "\n"])
def test_one_question_with_two_keys_fails(offer, written):
    check = offer(with_twin("something else", written))["duplicates"]
    assert (check.verdict, check.value) == ("fail", 1 / 25)
    assert check.why == "the same question with different keys: f4 = twin"


def test_one_question_twice_is_a_warning(offer):
    samples = with_twin(free()[4].target[0], lambda t: f"  {t}\n")
    check = offer(samples)["duplicates"]
    assert check.verdict == "warn"
    assert check.why == "the same question twice: f4 = twin"


def test_options_in_another_order_are_the_same_question(pick):
    samples = choices(balanced(20))
    first = samples[0]
    for key, verdict in ((4, "warn"), (0, "fail")):
        twin = Sample(item_id="twin", input=first.input, choices=first.choices[::-1],
                      correct=(key,), target=("?",))  # fmt: skip
        assert pick([*samples, twin])["duplicates"].verdict == verdict


def test_what_the_template_adds_makes_another_question(offer):
    samples = [
        Sample(item_id=f"t{k}", input="What is the mean of the column?", target=(str(k),),
               metadata={"table": "1 2 3 " * k})
        for k in range(1, 4)
    ]  # fmt: skip
    same = offer(samples, prompt="{{ metadata.table }} {{ input }}")["duplicates"]
    assert same.verdict == "warn"
    assert offer(samples)["duplicates"].verdict == "fail"


def test_a_reworded_item_is_a_warning_with_the_pair(offer):
    words = free()[4].input.split()
    other = " ".join(["zephyr", *words[1:]])
    checks = offer([*free(), Sample(item_id="again", input=other, target=("x",))])
    check = checks["near_duplicates"]
    assert (check.verdict, check.value) == ("warn", 1.0)
    assert check.why.endswith("nearly the same: f4 ~ again (0.80)")  # 8 runs of 9 + 9 in common
    assert checks["duplicates"].verdict == "ok"


TEMPLATE = "A farmer keeps {} hens that lay {} eggs a week each; how many eggs are laid in a month?"


@pytest.mark.parametrize(
    ("n", "clusters", "verdict"), [(12, False, "warn"), (12, True, "ok"), (2, False, "ok")]
)
def test_a_template_with_other_numbers_is_told_apart_from_a_duplicate(offer, n, clusters, verdict):
    filled = [
        Sample(item_id=f"hens{k}", input=TEMPLATE.format(k + 2, 3 * k + 1), target=(str(k),),
               cluster_id="hens" if clusters else None)
        for k in range(n)
    ]  # fmt: skip
    checks = offer([*free(), *filled])
    assert checks["templates"].verdict == verdict
    assert checks["templates"].value == n / (24 + n)
    assert checks["near_duplicates"].verdict == checks["duplicates"].verdict == "ok"


# --- prompts -------------------------------------------------------------------------------------
def test_an_ablation_that_takes_nothing_away_is_a_warning(offer):
    check = offer(free(), bare=free())["no_data"]
    assert (check.verdict, check.value) == ("warn", 0.0)


@pytest.mark.parametrize("kept", [lambda t: t, lambda t: " ".join(t.split()[:10])])
def test_an_ablation_that_leaves_the_question_is_found(offer, kept):
    samples = free()
    bare = [
        Sample(item_id=s.item_id, target=s.target,
               input=f"No data: {kept(s.input)}" if k < 3 else "(withheld)")
        for k, s in enumerate(samples)
    ]  # fmt: skip
    check = offer(samples, bare=bare)["no_data"]
    assert check.verdict == "fail"
    assert "in 3 of 24 (12.5 %): f0, f1, f2" in check.why


MARKED = ["The answer is {}.", "Answer: {}", "(correct answer = {})", "Key: **{}**"]


@pytest.mark.parametrize("form", MARKED)
def test_an_answer_behind_a_mark_is_found(offer, form):
    samples = free()
    s = samples[7]
    samples[7] = Sample(item_id="told", target=s.target,
                        input=f"{s.input} {form.format(s.target[0])}")  # fmt: skip
    check = offer(samples)["leaks"]
    assert (check.verdict, check.value) == ("fail", 1 / 24)
    assert "told" in check.why


@pytest.mark.parametrize(("form", "verdict"), [("Answer: B", "fail"), ("Answer: C", "ok"),
                                               ("Answer: Bernoulli", "ok"),
                                               ("The right option is 1.", "fail")])  # fmt: skip
def test_the_letter_of_the_right_option_is_found(pick, form, verdict):
    samples = choices(balanced(20))
    s = samples[6]  # its key is 1, which is B
    samples[6] = Sample(item_id="told", input=f"{s.input}\n{form}", choices=s.choices,
                        correct=s.correct, target=s.target)  # fmt: skip
    assert pick(samples)["leaks"].verdict == verdict


@pytest.mark.parametrize("part", ["#### {}", "By hand of the maker it comes to this.\n#### {}"])
def test_the_end_of_gold_in_the_prompt_is_found(offer, part):
    samples = [
        Sample(item_id=s.item_id, input=s.input, target=(str(100 + k),))
        for k, s in enumerate(free())
    ]
    gold = {"gold": lambda s: f"By hand of the maker it comes to this.\n#### {s.target[0]}"}
    assert offer(samples, scorer="number", **gold)["leaks"].verdict == "ok"
    s = samples[2]
    samples[2] = Sample(item_id="told", input=f"{s.input}\n{part.format(102)}", target=s.target)
    check = offer(samples, scorer="number", **gold)["leaks"]
    assert check.verdict == "fail"
    assert "1 of 24 (4.2 %): told" in check.why


def test_an_example_of_the_form_in_every_prompt_is_no_leak(offer):
    samples = [
        Sample(item_id=s.item_id, input=s.input, target=(str(k),)) for k, s in enumerate(free())
    ]
    checks = offer(samples, scorer="number", prompt="{{ input }}\nClose like this:\nAnswer: 7\n")
    assert checks["leaks"].verdict == "ok"


def test_a_pool_that_holds_the_items_in_other_white_space_is_found(offer):
    """The runner leaves out what is equal letter by letter; this is not."""
    pool = [Sample(item_id=f"p{s.item_id}", input=s.input + " ", target=s.target) for s in free()]
    check = offer(free(), shots=pool)["fewshot"]
    assert check.verdict == "fail"
    assert check.value == 3 / 24


def test_a_pool_of_its_own_is_sound(offer):
    check = offer(free(), shots=[Sample(item_id=f"p{k}", input=f"Example {k}?", target=("x",))
                                 for k in range(5)])["fewshot"]  # fmt: skip
    assert (check.verdict, check.value) == ("ok", 0.0)


# --- stored models -------------------------------------------------------------------------------
SOLVES = {"count:a": range(10), "count:b": range(4, 10), "count:c": range(2, 8)}


@pytest.fixture
def three_models(house):
    """Each right on its own part of twelve items; of the baseline nothing may count."""
    for model, right in SOLVES.items():
        ids = {f"i{k:03d}" for k in right}
        house.answer = lambda r, ids=ids: (
            house.solve(r) if r.item_id in ids else Output(text="no idea")
        )
        house.run(model)
    house.is_baseline = True
    house.answer = house.solve
    house.run("count:perfect")
    return house


def test_items_that_tell_no_models_apart_are_counted(three_models):
    """By hand: 4 to 7 by all three, 10 and 11 by none: 6 of 12, not more than half."""
    check = audit("own/add", three_models.store).checks[-1]
    assert (check.name, check.verdict, check.value) == ("solved", "ok", 0.5)
    assert "of 3 models all solve 4 of 12 (33.3 %): i004, i005, i006 and 1 more" in check.why
    assert "none solves 2 of 12 (16.7 %): i010, i011" in check.why


def test_a_majority_of_such_items_is_a_warning(house):
    ids = {f"i{k:03d}" for k in range(4)}
    house.answer = lambda r: house.solve(r) if r.item_id in ids else Output(text="no idea")
    for model in SOLVES:
        house.run(model)
    check = audit("own/add", house.store).checks[-1]
    assert (check.verdict, check.value) == ("warn", 1.0)
    assert "all solve 4 of 12" in check.why


def test_too_few_models_or_no_store_is_said(house):
    house.run("count:a")
    assert "holds 1 models, 3 are needed" in audit("own/add", house.store).checks[-1].why
    assert audit("own/add").checks[-1].why == "skipped: there is no store"


@pytest.mark.parametrize(("right", "verdict"), [(0, "ok"), (6, "warn")])
def test_scores_without_data_stand_beside_those_with_it(house, right, verdict):
    house.run("count:a")
    ids = {f"i{k:03d}" for k in range(right)}
    house.answer = lambda r: house.solve(r) if r.item_id in ids else Output(text="no idea")
    start(make_config(task="own/add", model="count:a", no_data=True), house.store)
    check = audit("own/add", house.store).checks[-3]
    assert (check.name, check.verdict, check.value) == ("no_data_scores", verdict, right / 12)
    lost = 100 - 100 * right / 12
    assert f"{100 * right / 12:.1f} % (with the data 100.0 %, {lost:.1f} % of it lost)" in check.why


def test_items_that_most_models_solve_without_data_are_named(house):
    # Three of five solve i000 and i001, two solve i002, all five solve i003; nobody guesses well.
    right = {"a": "0 1 3", "b": "0 1 2 3", "c": "0 1 2 3", "d": "3", "e": "3"}
    for model, numbers in right.items():
        ids = {f"i{int(k):03d}" for k in numbers.split()}
        house.answer = lambda r, ids=ids: (
            house.solve(r) if r.item_id in ids else Output(text="no idea")
        )
        start(make_config(task="own/add", model=f"count:{model}", no_data=True), house.store)
    check = audit("own/add", house.store).checks[-2]
    assert (check.name, check.verdict, check.value) == ("shortcuts", "warn", 3 / 12)
    assert "3 of 12 (25.0 %): i000, i001, i003" in check.why
    # At least 3 of 5 at 10 % each: 10 (.1^3 .9^2) + 5 (.1^4 .9) + .1^5
    assert "guessing explains 0.9 %" in check.why


def test_two_models_without_data_are_too_few_for_shortcuts(house):
    for model in ("count:a", "count:b"):
        start(make_config(task="own/add", model=model, no_data=True), house.store)
    check = audit("own/add", house.store).checks[-2]
    assert (check.verdict, check.value) == ("ok", None)
    assert "--no-data runs of 2 models, 3 needed" in check.why


def test_a_task_without_items_is_refused(offer):
    offer([])
    with pytest.raises(UsageError, match="'little' has no items"):
        audit("little")
