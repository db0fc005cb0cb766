"""Own items of ProCAD: planted ambiguities are really there, and each one matters."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

UNDER, CONFLICT = "ambiguity_under_specified", "direct_conflict_same_feature_two_values"


def clauses(prompt):
    """Split a prompt into what is said in it, numbers with their names."""
    found = Counter()
    for line in prompt.splitlines():
        lead, _, rest = line.removesuffix(".").partition(": ")
        found.update([lead, *(rest.split(", ") if rest else [])])
    return found


def test_least_counts(unclear):
    found = Counter(tuple(item["ambiguity_types"]) for item in unclear)
    assert found[()] >= 60
    assert found[UNDER,] >= 120
    assert found[CONFLICT,] >= 120
    assert {item["k"] for item in unclear} == {0, 1, 2, 3}
    assert len({item["uid"] for item in unclear}) == len(unclear)


def test_fields_fit_together(unclear, sequences):
    rows = {row["group_id"]: row for row in sequences}
    for item in unclear:
        k = item["k"]
        names = {"": "clean", UNDER: "underspec", CONFLICT: "conflict"}
        assert item["config_name"] == f"{names[''.join(item['ambiguity_types'])]}_k{k}"
        for field in ("slots", "questions_to_ask", "answer_to_questions", "what_changed"):
            assert len(item[field]) == k
        assert len({slot["slot_id"] for slot in item["slots"]}) == k
        row = rows[item["group_id"]]
        last = len(row["steps"]) - 1
        assert item["ground_truth_code"] == f"{row['script']}\nr = result_{last}\n"
        assert (item["misleading_description"] == item["original_prompt"]) == (k == 0)


def test_nothing_is_said_of_what_was_left_out(unclear):
    for item in unclear:
        if item["ambiguity_types"] != [UNDER]:
            continue
        clean, told = clauses(item["original_prompt"]), clauses(item["misleading_description"])
        assert not told - clean
        lost = list((clean - told).elements())
        assert len(lost) == item["k"]
        for slot in item["slots"]:
            unit = {"angle": " degrees", "number of holes": ""}.get(slot["parameter"], " mm")
            assert f"{slot['parameter']} {slot['value']:g}{unit}" in lost


def test_both_values_of_a_conflict_are_said(unclear):
    orders = Counter()
    for item in unclear:
        if item["ambiguity_types"] != [CONFLICT]:
            continue
        lines = item["misleading_description"].splitlines()
        notes = [line for line in lines if re.match(r"The .* of step \d+ is ", line)]
        assert len(notes) == item["k"]
        for slot in item["slots"]:
            name = f"The {slot['parameter']} of the {slot['feature']} of step {slot['step']} is "
            (note,) = [line for line in notes if line.startswith(name)]
            late = float(re.match(r"-?[\d.]*\d", note.removeprefix(name))[0])
            step = " ".join(line for line in lines if line.startswith(f"Step {slot['step']}."))
            named = re.findall(rf"\b{re.escape(slot['parameter'])} (-?[\d.]*\d)", step)
            values = {float(value) for value in named}
            early = slot["value"] if late == slot["other_value"] else slot["other_value"]
            assert late in (slot["value"], slot["other_value"])
            assert early in values
            orders[late == slot["value"]] += 1
    assert min(orders.values()) > sum(orders.values()) / 4


def test_names_of_slots_are_unique(maker, sequences):
    for row in sequences:
        slots = maker.prompts.slots_of(row["plan"])
        assert (
            len({slot.name for slot in slots})
            == len({slot.slot_id for slot in slots})
            == len(slots)
        )


def test_the_normal_is_never_a_slot(unclear):
    said = {slot["parameter"] for item in unclear for slot in item["slots"]}
    assert not [parameter for parameter in said if parameter in ("normal", "direction")]
    assert {"radius", "depth", "height"} <= said


def test_the_answer_of_a_question_is_the_true_value(unclear):
    for item in unclear:
        asked = zip(
            item["slots"], item["questions_to_ask"], item["answer_to_questions"], strict=True
        )
        for slot, question, answer in asked:
            name = f"{slot['parameter']} of the {slot['feature']} of step {slot['step']}"
            assert name in question
            assert answer.startswith(f"The {name} is {slot['value']:g}")


def test_a_planted_slot_matters(maker, unclear, sequences):
    """A sample, built again: the other value is one valid solid, and the difference is what is stored."""
    plans = {row["group_id"]: row for row in sequences}
    shortest = [i for i in unclear if i["k"] and len(plans[i["group_id"]]["steps"]) <= 4]
    for item in Random(0).sample(shortest, 8):
        row = plans[item["group_id"]]
        truth: dict[str, object] = {}
        exec(item["ground_truth_code"], truth)
        slot = item["slots"][0]
        changed = maker.procad.with_value(row["plan"], slot["slot_id"], slot["other_value"])
        other: dict[str, object] = {}
        exec(maker.draw.script_of(changed), other)
        a, b = truth["r"].val(), other[f"result_{len(row['steps']) - 1}"].val()
        assert b.isValid()
        assert len(b.Solids()) == 1
        differs = (a.cut(b).Volume() + b.cut(a).Volume()) / a.Volume()
        assert differs > 1e-4
        assert slot["symdiff"] == pytest.approx(differs, rel=1e-4)


def test_a_value_that_changes_or_builds_nothing_is_no_slot(maker, sequences):
    row = next(r for r in sequences if r["family"] == "plate" and len(r["steps"]) == 2)
    truth = maker.kernel.built(row["script"], "result_1")
    width = row["plan"]["body"]["width"]
    assert maker.procad.share_changed(row["plan"], truth, "1.width", width) == pytest.approx(
        0, abs=1e-9
    )
    assert maker.procad.share_changed(row["plan"], truth, "1.width", 0.0) == 0.0
