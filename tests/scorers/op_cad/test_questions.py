"""Questions about open sizes: one to one, precision and recall by hand, every own question finds its own slot."""

from __future__ import annotations

import json

import pytest

from harness.core.resources import data
from scorers.op_cad.procad import asked_of, read_told
from scorers.op_cad.questions import NOTHING, Record, Slot, agreement

PROMPT = (
    "The part is a plate.\nStep 1. Draw a rectangle: width along x 40 mm, extent 5 mm.\nStep 2. Add a round boss: "
    "radius 4 mm.\nStep 3. Add a round boss: radius 5 mm.\nStep 4. Cut a slot: x of the centre 3 mm."
)
SLOTS = [
    Slot("What is the radius of the boss of step 2?", "The radius is 4 mm."),
    Slot("What is the width along x of the body of step 1?", "The width is 40 mm."),
    Slot("What is the x of the centre of the slot of step 4?", "It is 3 mm."),
    Slot("What is the extent of the body of step 1?", "It is 5 mm thick."),
]
RADIUS, WIDTH, PLACE, EXTENT = range(4)
RECORD = Record(PROMPT, SLOTS)


def test_every_own_question_asks_for_its_own_slot_and_no_other_of_its_part():
    count = 0
    by_part = {}
    for line in (data("op_cad") / "procad.jsonl").read_text().splitlines():
        row = json.loads(line)
        part = by_part.setdefault(row["group_id"], (row["original_prompt"], {}))
        for slot, question in zip(row["slots"], row["questions_to_ask"], strict=True):
            part[1].setdefault(slot["slot_id"], []).append(question)
    for prompt, slots in by_part.values():
        names = list(slots)
        record = Record(prompt, [Slot(slots[name][0], "") for name in names])
        for k, name in enumerate(names):
            for question in slots[name]:
                assert record.asked_for(question) == [k], question
                count += 1
    assert count > 400


@pytest.mark.parametrize(
    ("question", "slots"),
    [
        ("What radius does the boss of step 2 have?", [RADIUS]),
        ("How large is the diameter of the boss in step 2?", [RADIUS]),
        ("What is the radius of the boss?", []),  # two steps have one
        ("What is the radius of the first boss?", [RADIUS]),
        ("What is the radius of the boss of step 3?", []),
        ("What is the height of the boss of step 2?", []),
        ("What is the radius of the slot in step 2?", []),  # step 2 has none
        ("Where is the slot: the x coordinate of its centre?", [PLACE]),
        ("Where is the slot: the y coordinate of its centre?", []),
        ("How wide is the plate along x?", [WIDTH]),
        ("How thick is the plate?", [EXTENT]),
        ("Is the normal right?", []),
    ],
)
def test_a_question_names_parameter_and_feature(question, slots):
    assert RECORD.asked_for(question) == slots


def test_two_questions_on_one_point_count_once():
    record = Record(PROMPT, SLOTS[:2])
    asked = [
        "What is the radius of the boss of step 2?",
        "The diameter of the boss of step 2?",
        "What colour?",
    ]
    n = sum(k is not None for k in record.matched(asked))
    # Upstream counts 2/3, 1 and 0.8 here.
    assert (n, agreement(3, 2, n)) == (1, (1 / 3, 1 / 2, 0.4))


def test_the_ends_of_the_scale():
    assert agreement(0, 0, 0).f1 == 1.0
    assert agreement(1, 0, 0).f1 == 0.0
    assert agreement(0, 2, 0).f1 == 0.0
    assert agreement(2, 2, 2).f1 == 1.0


def test_a_user_answers_what_is_open_and_nothing_else():
    assert RECORD.answer("What is the radius of the boss of step 2?") == "The radius is 4 mm."
    assert RECORD.answer("What is the height of the boss of step 2?") == NOTHING


def test_silence_and_alarms_are_counted_apart():
    clean = {"questions": [], "answers": [], "original": PROMPT}
    unclear = {"questions": [SLOTS[0].name], "answers": [SLOTS[0].answer], "original": PROMPT}
    assert asked_of((), clean) == {
        "question_precision": 1.0, "question_recall": 1.0, "question_f1": 1.0, "detection": 1.0,
        "detection:clean": 1.0, "false_alarm:clean": 0.0,
    }  # fmt: skip
    assert asked_of(("Why?",), clean)["false_alarm:clean"] == 1.0
    silent = asked_of((), unclear)
    assert (silent["detection:unclear"], silent["question_f1"]) == (0.0, 0.0)
    assert "false_alarm:clean" not in silent
    assert asked_of((SLOTS[0].name,), unclear)["question_f1"] == 1.0
    assert asked_of(None, unclear) == {}


def test_what_is_handed_in_is_read():
    assert read_told("```python\nr = 1\n```").code == "r = 1\n"
    told = read_told(json.dumps({"questions": ["a"], "code": "```python\nr = 2\n```"}))
    assert (told.code, told.questions) == ("r = 2\n", ("a",))
    assert read_told('{"no": "code"}').questions is None
