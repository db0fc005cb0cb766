"""Questions about open sizes: one to one, precision and recall by hand, every own question finds its own slot."""

from __future__ import annotations

import json

import pytest

from harness.core.resources import data
from scorers.op_cad.procad import asked_of, read_told
from scorers.op_cad.questions import (
    NOTHING,
    Slot,
    answer,
    asks_for,
    matched,
    question_score,
    read_slots,
)

PROMPT = "The part is a plate.\nStep 1. Draw a rectangle: width along x 40 mm.\nStep 2. Add a boss.\nStep 3. Add a boss.\nStep 4. Cut a slot."
RADIUS = Slot(slot_id="2.radius", step=2, feature="boss", parameter="radius", value=4.0)
WIDTH = Slot(slot_id="1.width", step=1, feature="body", parameter="width along x", value=40.0)
PLACE = Slot(slot_id="4.x", step=4, feature="slot", parameter="x of the centre", value=3.0)


def rows():
    return [json.loads(line) for line in (data("op_cad") / "procad.jsonl").read_text().splitlines()]


def test_every_own_question_asks_for_its_own_slot_and_no_other():
    count = 0
    for row in rows():
        slots = read_slots(row["slots"])
        for k, question in enumerate(row["questions_to_ask"]):
            fits = [asks_for(question, slot, row["misleading_description"]) for slot in slots]
            assert fits == [j == k for j in range(len(slots))], (row["uid"], question)
            count += 1
    assert count > 400


@pytest.mark.parametrize(
    ("question", "slot", "expected"),
    [
        ("What radius does the boss of step 2 have?", RADIUS, True),
        ("How large is the diameter of the boss in step 2?", RADIUS, True),
        ("What is the radius of the boss?", RADIUS, False),  # two steps have one
        ("What is the radius of the boss of step 3?", RADIUS, False),
        ("What is the height of the boss of step 2?", RADIUS, False),
        ("Where is the slot: the x coordinate of its centre?", PLACE, True),
        ("Where is the slot: the y coordinate of its centre?", PLACE, False),
        ("What is the x position in step 4?", PLACE, True),
        ("What is the width in step 1?", WIDTH, True),
        ("Is the normal right?", WIDTH, False),
    ],
)
def test_a_question_names_parameter_and_feature(question, slot, expected):
    assert asks_for(question, slot, PROMPT) is expected


def test_two_questions_on_one_point_count_once():
    asked = [
        "What is the radius of step 2?",
        "What is the diameter of step 2?",
        "What colour is it?",
    ]
    n = matched(asked, [RADIUS, WIDTH], PROMPT)
    score = question_score(n, 3, 2)
    # Upstream counts 2/3, 1 and 0.8 here.
    assert (n, score.precision, score.recall) == (1, 1 / 3, 1 / 2)
    assert score.f1 == pytest.approx(0.4)


def test_the_ends_of_the_scale():
    assert question_score(0, 0, 0).f1 == 1.0
    assert question_score(0, 1, 0).f1 == 0.0
    assert question_score(0, 0, 2).f1 == 0.0
    assert question_score(2, 2, 2).f1 == 1.0


def test_one_question_can_stand_for_either_point_and_another_for_one_only():
    # The first fits both; only if it takes the width can both be matched.
    both = "What are the radius of step 2 and the width of step 1?"
    assert matched([both, "And the radius in step 2?"], [RADIUS, WIDTH], PROMPT) == 2


def test_a_user_answers_what_is_open_and_nothing_else():
    told = ["The radius is 4 mm.", "The width is 40 mm."]
    slots = [RADIUS, WIDTH]
    assert answer("What is the radius of step 2?", slots, told, PROMPT) == "The radius is 4 mm."
    assert answer("What is the height of step 2?", slots, told, PROMPT) == NOTHING


def test_silence_and_alarms_are_counted_apart():
    clean = {"slots": [], "prompt": PROMPT}
    unclear = {"slots": [{"slot_id": "2.radius", "step": 2, "feature": "boss", "parameter": "radius", "value": 4.0}],
               "prompt": PROMPT}  # fmt: skip
    assert asked_of((), clean) == {
        "question_precision": 1.0, "question_recall": 1.0, "question_f1": 1.0, "detection": 1.0,
        "detection:clean": 1.0, "false_alarm:clean": 0.0,
    }  # fmt: skip
    assert asked_of(("Why?",), clean)["false_alarm:clean"] == 1.0
    silent = asked_of((), unclear)
    assert (silent["detection:unclear"], silent["question_f1"]) == (0.0, 0.0)
    assert "false_alarm:clean" not in silent
    assert asked_of(None, unclear) == {}


def test_what_is_handed_in_is_read():
    assert read_told("```python\nr = 1\n```").code == "r = 1\n"
    told = read_told(json.dumps({"questions": ["a"], "code": "```python\nr = 2\n```"}))
    assert (told.code, told.questions) == ("r = 2\n", ("a",))
    assert read_told('{"no": "code"}').questions is None
