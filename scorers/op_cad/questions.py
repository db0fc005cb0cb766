"""Questions about a prompt: which open point each asks for, and how good they are together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

NOTHING = "I have nothing to add to that."
"""What a user says to a question that no open point answers."""
_STEP = re.compile(r"\bstep\s*(?:number\s*)?(\d+)\b")
_WORD = re.compile(r"[a-z]+|\d+")
_IGNORED = {
    "of",
    "the",
    "to",
    "in",
    "a",
    "an",
    "part",
    "section",
    "end",
    "each",
    "normal",
    "axis",
    "x",
    "y",
}
_SAME = {
    "centre": {"centre", "center", "position", "coordinate", "location", "placed", "offset"},
    "radius": {"radius", "diameter", "radii"},
    "extent": {"extent", "thickness", "thick", "height", "length", "extruded", "extrusion", "far"},
    "depth": {"depth", "deep"},
    "height": {"height", "high", "tall"},
    "width": {"width"},
    "length": {"length", "long"},
    "number": {"number", "many", "count"},
    "distance": {"distance", "size", "large", "length"},
    "angle": {"angle", "degrees"},
    "holes": {"holes", "hole"},
}  # fmt: skip
_ORDINALS = {"first": {"first", "1st"}, "second": {"second", "2nd"}}


class Slot(Struct, frozen=True, kw_only=True):
    """A number that a prompt leaves open, or gives twice."""

    slot_id: str
    step: int
    feature: str
    parameter: str
    value: float
    other_value: float | None = None
    symdiff: float = 0.0


class QuestionScore(Struct, frozen=True):
    """How good questions are: precision and recall of the open points, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def asks_for(question: str, slot: Slot, prompt: str) -> bool:
    """Tell whether a question asks for an open point.

    It names the parameter, and the feature by its step, or by its noun where only one step of the prompt
    has such a feature.

    Examples
    --------
    >>> boss = Slot(slot_id="2.radius", step=2, feature="boss", parameter="radius", value=4.0)
    >>> prompt = "Step 1. Draw a plate. Step 2. Add a round boss."
    >>> asks_for("How large is the diameter of the boss?", boss, prompt)
    True
    >>> asks_for("What is the height of the boss of step 2?", boss, prompt)
    False
    """
    text = question.lower()
    words = set(_WORD.findall(text))
    if not _names_parameter(words, slot.parameter):
        return False
    if not all(_ORDINALS[w] & words for w in slot.feature.split() if w in _ORDINALS):
        return False
    steps = {int(number) for number in _STEP.findall(text)}
    if steps:
        return slot.step in steps
    noun = slot.feature.split()[-1]
    if not {noun, noun.rstrip("s")} & words:
        return False
    with_noun = [line for line in re.split(r"\bstep (?=\d+\.)", prompt.lower())[1:]
                 if re.search(rf"\b{re.escape(noun.rstrip('s'))}", line)]  # fmt: skip
    return len(with_noun) <= 1


def matched(questions: Sequence[str], slots: Sequence[Slot], prompt: str) -> int:
    """Count open points that are asked for, one question each, as many as can be."""
    fits = [[k for k, slot in enumerate(slots) if asks_for(q, slot, prompt)] for q in questions]
    owner: dict[int, int] = {}

    def placed(question: int, seen: set[int]) -> bool:
        for slot in fits[question]:
            if slot in seen:
                continue
            seen.add(slot)
            if slot not in owner or placed(owner[slot], seen):
                owner[slot] = question
                return True
        return False

    return sum(placed(question, set()) for question in range(len(questions)))


def question_score(n_matched: int, n_asked: int, n_needed: int) -> QuestionScore:
    """Score questions: P = matched / asked, R = matched / needed.

    Where none is needed all three are 1 when none is asked, else 0; needed and none asked is 0.

    Examples
    --------
    >>> score = question_score(1, 3, 2)
    >>> round(score.precision, 4), score.recall, round(score.f1, 4)
    (0.3333, 0.5, 0.4)
    """
    if not n_needed or not n_asked:
        right = float(n_needed == n_asked == 0)
        return QuestionScore(right, right, right)
    p, r = n_matched / n_asked, n_matched / n_needed
    return QuestionScore(p, r, 2 * p * r / (p + r) if n_matched else 0.0)


def answer(question: str, slots: Sequence[Slot], answers: Sequence[str], prompt: str) -> str:
    """Answer as a user who knows the open points and nothing else."""
    known = [
        told for slot, told in zip(slots, answers, strict=True) if asks_for(question, slot, prompt)
    ]
    return " ".join(known) or NOTHING


def read_slots(rows: Sequence[Mapping[str, Any]]) -> list[Slot]:
    """Read open points as an item holds them."""
    return [Slot(**row) for row in rows]


def _names_parameter(words: set[str], parameter: str) -> bool:
    tokens = _WORD.findall(parameter.lower())
    if "centre" in tokens and not {"x", "y"} & set(tokens) & words:
        return False
    # An axis only tells two sides apart; "along" and "against" the normal are two extents.
    wanted = [t for t in tokens if t not in _IGNORED and t not in {"along", "side"}]
    return all(_SAME.get(t, {t}) & words for t in wanted)
