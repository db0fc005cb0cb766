"""Rows of `procad.jsonl`: prompts of own parts, clean or with ambiguities that were planted, in upstream's fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from scorers.op_cad.kit import solids

from . import kernel
from .draw import script_of
from .part import Params
from .prompts import Slot, render, slots_of
from .records import num

LEAST_CHANGE = 1e-4
"""A slot counts when its other value changes at least this share of the volume."""
_SHIFT = 2.0
_MOST = 3
_UNCLEAR = {2: 4, 3: 4, 4: 4, 5: 4, 6: 3}
"""Unclear items of a sequence by its length, else one: long prompts make a large file."""
UNDER, CONFLICT = "ambiguity_under_specified", "direct_conflict_same_feature_two_values"
_NAMES = {UNDER: "underspec", CONFLICT: "conflict"}


class Planted(NamedTuple):
    """A slot that was tried: its other value, and what share of the volume that changes."""

    slot: Slot
    other: float
    symdiff: float


def other_value(slot: Slot, rng: Random) -> float:
    """Draw another value of a slot: 2 mm aside for a place, a quarter more or a fifth less for a size."""
    if slot.parameter == "number of holes":
        return slot.value + 1
    if slot.parameter == "angle":
        return num(slot.value * 0.8)
    if "centre" in slot.parameter or "lower" in slot.parameter:
        return num(slot.value + rng.choice([-_SHIFT, _SHIFT]))
    return num(slot.value * rng.choice([0.8, 1.25]))


def with_value(plan: Params, slot_id: str, value: float) -> Params:
    """Give a plan in which one slot has another value."""
    changed: Params = copy.deepcopy(plan)
    step, *path, name = slot_id.split(".")
    sizes = changed["body"] if step == "1" else changed["features"][int(step) - 2]["sizes"]
    for key in path:
        sizes = sizes[key]
    sizes[name] = value
    return changed


def share_changed(plan: Params, truth: Any, slot_id: str, value: float) -> float:
    """Build a plan with another value of a slot; give the share of the volume that differs.

    Returns
    -------
    float
        0 where the other value builds no single valid solid.
    """
    try:
        changed = with_value(plan, slot_id, value)
        shape = kernel.built(script_of(changed), f"result_{len(plan['features'])}")
        return float(solids.symmetric_difference(truth, shape) / truth.Volume())
    except Exception:  # noqa: BLE001  whatever the kernel raises, this value builds nothing
        return 0.0


def planted(plan: Params, rng: Random, wanted: int) -> list[Planted]:
    """Find slots of a plan that may be planted, at most so many."""
    truth = kernel.built(script_of(plan), f"result_{len(plan['features'])}")
    slots = slots_of(plan)
    found: list[Planted] = []
    for slot in rng.sample(slots, len(slots)):
        if len(found) == wanted:
            break
        other = other_value(slot, rng)
        symdiff = share_changed(plan, truth, slot.slot_id, other)
        if symdiff > LEAST_CHANGE:
            found.append(Planted(slot, other, float(format(symdiff, ".6g"))))
    return found


def items(rows: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Make a clean item of each sequence, and as many unclear ones as its length and its slots allow.

    Parameters
    ----------
    rows
        Of `sequences.jsonl`.
    seed : int
    """
    found: list[dict[str, Any]] = []
    odd = 0
    for number, one in enumerate(rows):
        rng = Random(f"procad/{seed}/{one['group_id']}")
        # Both kinds as often as each other: where the number is odd, they take turns.
        count = _UNCLEAR.get(len(one["steps"]), 1)
        types = [(UNDER, CONFLICT)[(k + odd) % 2] for k in range(count)]
        odd += count % 2
        found.append(
            _item(one, f"{one['group_id']}/clean", "clean_k0", render(one["plan"]), [], "")
        )
        sizes = [1 + (number + k) % _MOST for k in range(count)]
        for k, (kind, chosen) in enumerate(_shared_out(one["plan"], types, sizes, rng), 1):
            found.append(_unclear(one, f"{one['group_id']}/unclear{k}", kind, chosen, rng))
    return found


def _shared_out(
    plan: Params, types: Sequence[str], sizes: Sequence[int], rng: Random
) -> list[tuple[str, list[Planted]]]:
    """Choose the slots of each unclear item; few slots serve for several, but never for the same twice."""
    slots = planted(plan, rng, sum(sizes))
    found: list[tuple[str, list[Planted]]] = []
    at = 0
    for kind, size in zip(types, sizes, strict=True):
        chosen = [slots[(at + j) % len(slots)] for j in range(min(size, len(slots)))]
        at += size
        said = {p.slot.slot_id for p in chosen}
        if said and (kind, said) not in [(k, {p.slot.slot_id for p in c}) for k, c in found]:
            found.append((kind, chosen))
    return found


def _unclear(
    one: Mapping[str, Any], uid: str, kind: str, chosen: Sequence[Planted], rng: Random
) -> dict[str, Any]:
    plan = one["plan"]
    if kind == UNDER:
        prompt = render(plan, hidden={p.slot.slot_id for p in chosen})
    else:
        first: dict[str, float] = {}
        second: dict[str, float] = {}
        for p in chosen:
            values = rng.sample([p.slot.value, p.other], 2)
            first[p.slot.slot_id], second[p.slot.slot_id] = values
        prompt = render(plan, first=first, second=second)
    return _item(one, uid, f"{_NAMES[kind]}_k{len(chosen)}", prompt, chosen, kind)


def _item(
    one: Mapping[str, Any], uid: str, name: str, prompt: str, chosen: Sequence[Planted], kind: str
) -> dict[str, Any]:
    last = len(one["steps"]) - 1
    return {
        "uid": uid, "config_name": name, "ambiguity_types": [kind] if kind else [], "k": len(chosen),
        "group_id": one["group_id"], "original_prompt": render(one["plan"]), "original_cd": None,
        "ground_truth_code": f"{one['script']}\nr = result_{last}\n", "misleading_description": prompt,
        "what_changed": [_changed(p, kind) for p in chosen],
        "ambiguity_scan": [_scan(p, kind) for p in chosen],
        "questions_to_ask": [_question(p, kind) for p in chosen],
        "answer_to_questions": [f"The {p.slot.name} is {p.slot.told(p.slot.value)}." for p in chosen],
        "slots": [
            {**p.slot._asdict(), "other_value": p.other, "symdiff": p.symdiff} for p in chosen
        ],
    }  # fmt: skip


def _changed(p: Planted, kind: str) -> str:
    if kind == UNDER:
        return f"The {p.slot.name} ({p.slot.told(p.slot.value)}) was left out."
    return f"The {p.slot.name} is {p.slot.told(p.slot.value)}, and was given as {p.slot.told(p.other)} as well."


def _scan(p: Planted, kind: str) -> str:
    return f"{p.slot.name}: {'not given' if kind == UNDER else 'given twice, with two values'}"


def _question(p: Planted, kind: str) -> str:
    if kind == UNDER:
        return f"What is the {p.slot.name}?"
    low, high = sorted([p.slot.value, p.other])
    return f"Which is right for the {p.slot.name}: {p.slot.told(low)} or {p.slot.told(high)}?"
