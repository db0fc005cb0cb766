from __future__ import annotations

import json
from pathlib import Path
from random import Random

import jinja2
import pytest

from harness.core.errors import UsageError
from harness.core.registry import entries
from harness.core.task import TaskRequest, build, make_task
from harness.core.types import Output
from tasks.aicrypto.mcq import LAST, shown_order

ROOT = Path(__file__).resolve().parents[2]
OWN = json.loads((ROOT / "data/aicrypto/mcq.json").read_text())
BY_ID = {row["item_id"]: row for row in OWN}


def _task(seed=0, **args):
    return make_task("aicrypto/mcq", TaskRequest(seed=seed, args=args))


def _values(task, text_of):
    score = build("scorers", task.scorer)
    return [score(sample, Output(text=text_of(sample))).value for sample in task.samples]


def _render(task, sample):
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(task.prompt)
    return template.render(input=sample.input, choices=sample.choices, metadata=sample.metadata)


def test_all_own_items_are_there():
    task = _task()
    assert len(task.samples) == len(OWN) == entries("tasks")["aicrypto/mcq"].n
    assert [s.item_id for s in task.samples] == list(BY_ID)
    assert {s.category for s in task.samples} == {
        "classic",
        "symmetric",
        "asymmetric",
        "math",
        "misc",
    }


@pytest.mark.parametrize(
    "args", [{}, {"shuffle": "off"}, {"reader": "upstream"}, {"arity_hint": "on"}]
)
def test_gold_scores_one_and_nothing_scores_zero(args):
    task = _task(seed=3, **args)
    assert set(_values(task, task.gold)) == {1.0}
    score = build("scorers", task.scorer)
    empty = [score(sample, Output(text="")) for sample in task.samples]
    assert {(s.value, s.reason) for s in empty} == {(0.0, "no_answer")}


@pytest.mark.parametrize("index", range(5))
def test_a_constant_scores_the_share_of_its_key(index):
    task = _task(shuffle="off")
    share = sum(row["answer"] == [index] for row in OWN)
    assert sum(_values(task, lambda _: f"### Answer\n{index}")) == share


def test_the_likeliest_option_is_judged_in_the_order_shown():
    task = _task(seed=5)
    score = build("scorers", task.scorer)
    for sample in task.samples:
        texts = task.continuations(sample)
        row = BY_ID[sample.item_id]
        right = {" " + row["choice"][i] for i in row["answer"]}
        logprobs = tuple(-1.0 if text in right else -2.0 for text in texts)
        assert score(sample, Output(text="", choice_logprobs=logprobs)).value == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shuffling_keeps_options_and_key_together(seed):
    for sample in _task(seed).samples:
        row, order = BY_ID[sample.item_id], sample.metadata["order"]
        assert sorted(order) == list(range(len(row["choice"])))
        assert list(sample.choices) == [row["choice"][i] for i in order]
        assert {order[j] for j in sample.correct} == set(row["answer"])
        assert set(sample.target) == {row["choice"][i] for i in row["answer"]}


def test_the_same_seed_gives_the_same_order_and_another_seed_another():
    def orders(seed):
        return [s.metadata["order"] for s in _task(seed).samples]

    assert orders(7) == orders(7)
    changed = sum(a != b for a, b in zip(orders(7), orders(8), strict=True))
    assert changed > len(OWN) / 2
    assert all(
        s.metadata["order"] == sorted(s.metadata["order"]) for s in _task(shuffle="off").samples
    )


def test_each_item_has_an_order_of_its_own():
    free = [s for s in _task().samples if len(s.choices) == 5 and not LAST.match(s.choices[-1])]
    assert len({tuple(s.metadata["order"]) for s in free}) > len(free) / 2


def test_an_order_does_not_depend_on_the_other_items(tmp_path):
    task = make_task("aicrypto/mcq", _root(tmp_path, *OWN[10:12], args={"shuffle": "on"}))
    whole = {s.item_id: s.metadata["order"] for s in _task().samples}
    assert {s.item_id: s.metadata["order"] for s in task.samples}.items() <= whole.items()


def test_shuffling_spreads_the_key():
    # 200 seeds of one item: each free place within 5 standard deviations of its share.
    row = next(r for r in OWN if len(r["answer"]) == 1 and not any(map(LAST.match, r["choice"])))
    n = len(row["choice"])
    counts = [0] * n
    for seed in range(200):
        counts[shown_order(row["choice"], Random(f"{seed}:x")).index(row["answer"][0])] += 1
    spread = 5 * (200 / n * (1 - 1 / n)) ** 0.5
    assert all(abs(count - 200 / n) < spread for count in counts)


@pytest.mark.parametrize(
    "text",
    ["None of the above", "All of the above", "none of these", "Neither of them", "Both", "Neither",
     "None", "None of the other options", "Both of the above."],
)  # fmt: skip
def test_options_about_other_options_stay_last(text):
    for seed in range(20):
        assert shown_order(["a", text, "b", "c"], Random(seed))[-1] == 1


@pytest.mark.parametrize(
    "text", ["All-or-nothing transform", "None-zero", "Nonces", "Bothersome", "RSA"]
)
def test_other_options_move(text):
    places = {shown_order(["a", text, "b", "c"], Random(seed)).index(1) for seed in range(40)}
    assert places == {0, 1, 2, 3}


def test_own_none_of_the_above_stays_last():
    shown = [s for s in _task(4).samples if any("of the above" in c for c in s.choices)]
    assert shown
    assert all("of the above" in s.choices[-1] for s in shown)


def test_guesses_are_one_index_in_the_form_of_gold():
    task = _task()
    for sample in task.samples:
        guesses = {task.guess(sample, Random(i)) for i in range(60)}
        assert len(guesses) == len(sample.choices)
        if len(sample.correct) == 1:
            assert task.gold(sample) in guesses


def test_the_prompt_numbers_the_options():
    task = _task()
    for sample in task.samples:
        prompt = _render(task, sample)
        assert sample.input in prompt
        assert all(f"\n{j}: {choice}\n" in prompt for j, choice in enumerate(sample.choices))
        assert "### Answer" in prompt


def test_the_hint_tells_how_many_are_right_and_only_when_asked():
    for task, shown in ((_task(), False), (_task(arity_hint="on"), True)):
        for sample in task.samples:
            prompt = _render(task, sample)
            several = len(sample.correct) > 1
            assert ("Exactly one" in prompt) == (shown and not several)
            assert ("More than one" in prompt) == (shown and several)


def test_no_data_shows_the_options_alone():
    task = make_task("aicrypto/mcq", TaskRequest(no_data=True))
    sample = task.samples[0]
    assert sample.input == "(question withheld)"
    assert set(sample.choices) == set(OWN[0]["choice"])
    assert set(_values(task, task.gold)) == {1.0}


def test_the_reader_picks_the_scorer():
    assert _task().scorer == "choice?profile=strict"
    assert _task(reader="upstream").scorer == "choice?profile=upstream"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"shuffle": "yes"}, "--arg shuffle=yes is not one of on, off"),
        ({"arity_hint": "1"}, "--arg arity_hint=1 is not one of off, on"),
        ({"reader": "x"}, "--arg reader=x is not one of strict, upstream"),
        ({"shufle": "on"}, "unknown option 'shufle'"),
    ],
)
def test_bad_switches_are_refused(args, message):
    with pytest.raises(UsageError, match=message):
        make_task("aicrypto/mcq", TaskRequest(args=args))


# --- files of others ---------------------------------------------------------------------------
GOOD = {"id": 7, "question": "Which?", "choice": ["a", "b", "c"], "answer": [1], "label": "misc"}


def _root(folder, *rows, args=None, below="data/mcqs"):
    (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / below / "aicrypto_mcqs.json").write_text(json.dumps(rows))
    return TaskRequest(data_root=folder, args=args or {})


@pytest.mark.parametrize("below", ["data/mcqs", "mcqs", "."])
def test_upstream_layouts(tmp_path, below):
    task = make_task("aicrypto/mcq", _root(tmp_path, GOOD, below=below))
    (sample,) = task.samples
    assert (sample.item_id, sample.choices, sample.correct) == ("mcq-007", ("a", "b", "c"), (1,))
    assert "Exactly one" in _render(task, sample)
    assert "none found" in task.info["license"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"answer": [3]}, "field 'answer': index 3 is out of range 0 to 2"),
        ({"answer": [-1]}, "field 'answer': index -1 is out of range 0 to 2"),
        ({"answer": [1, 1]}, "field 'answer': an index stands twice"),
        ({"answer": []}, "field 'answer': expected array of length >= 1"),
        ({"answer": [True]}, "field 'answer[0]': expected int, got bool"),
        ({"answer": 1}, "field 'answer': expected array, got int"),
        ({"choice": ["a"]}, "field 'choice': expected array of length >= 2"),
        ({"choice": ["a"] * 27}, "field 'choice': expected array of length <= 26"),
        ({"choice": ["a", 2]}, "field 'choice[1]': expected str, got int"),
        ({"choice": ["a", ""]}, "field 'choice[1]': expected str of length >= 1"),
        ({"label": None}, "field 'label': expected str, got null"),
        ({"question": 1}, "field 'question': expected str, got int"),
        ({"id": 7}, "field 'id': 7 is used twice"),
        ({"id": "8"}, "field 'id': expected int, got str"),
        ({"id": True}, "field 'id': expected int, got bool"),
    ],
)
def test_planted_faults_are_named(tmp_path, change, why):
    row = {**GOOD, "id": 8, **change}
    with pytest.raises(UsageError) as caught:
        make_task("aicrypto/mcq", _root(tmp_path, GOOD, row))
    path = tmp_path / "data/mcqs/aicrypto_mcqs.json"
    assert str(caught.value) == f"{path}: row 2 (item {row['id']}): {why}"


@pytest.mark.parametrize("field", list(GOOD))
def test_missing_fields_are_named(tmp_path, field):
    row = {k: v for k, v in GOOD.items() if k != field}
    with pytest.raises(UsageError, match=f"row 1.*: field '{field}' is missing"):
        make_task("aicrypto/mcq", _root(tmp_path, row))


def test_two_items_of_one_name_are_refused(tmp_path):
    rows = [{**GOOD, "item_id": "x"}, {**GOOD, "id": 8, "item_id": "x"}]
    with pytest.raises(UsageError, match=r"row 2 \(item x\): field 'item_id': 'x' is used twice"):
        make_task("aicrypto/mcq", _root(tmp_path, *rows))


def test_a_folder_without_the_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no aicrypto_mcqs\.json in"):
        make_task("aicrypto/mcq", TaskRequest(data_root=tmp_path))
