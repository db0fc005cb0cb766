"""Questions about a CAD prompt: which number does each ask for, and how many were needed.

A rule reads a question: the noun of a feature (hole, rib, body), the noun of a parameter (radius, x of the
centre) and, where a part has several features of a kind, which one: its step, or first, second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

NOTHING = "I have nothing to add to that."
"""What a user says to a question that no open number answers."""
_KINDS = (
    ("fillet", r"fillet\w*|rounding"),
    ("chamfer", r"chamfer\w*|bevel\w*"),
    ("row of holes", r"rows? of (?:equal )?(?:round )?holes|holes? (?:row|pattern)|pattern of holes"),
    ("counterbored hole", r"(?:counter-?bore[ds]?|widened)(?: holes?)?"),
    ("blind hole", r"blind (?:round )?holes?"),
    ("round hole", r"(?:round|through)[- ]holes?"),
    ("hole", r"holes?|bores?"),
    ("boss", r"boss(?:es)?"),
    ("rib", r"ribs?"),
    ("pocket", r"pockets?"),
    ("cut-out", r"cut-?outs?|rectangular (?:through[- ])?cuts?"),
    ("key flat", r"(?:key )?flats?|keyflats?"),
    ("groove", r"grooves?"),
    ("collar", r"collars?"),
    ("slot", r"slots?"),
    ("body", r"body|base plate|plate|dis[kc]|shaft|ring|cone|block"),
)  # fmt: skip
"""Nouns in the order they are looked for: what is found is taken out, so the longer ones come first."""
_EDGES = frozenset({"fillet", "chamfer"})
_HOLES = frozenset({"row of holes", "counterbored hole", "blind hole", "round hole", "hole"})
_LEADS = (
    ("counterbored hole", r"^cut a round hole .* widen it"),
    ("cut-out", r"^cut a rectangle through"),
)
"""Sentences of a prompt that name a feature otherwise than a question does."""
_ORDINALS = {
    "first": 1,
    "1st": 1,
    "second": 2,
    "2nd": 2,
    "third": 3,
    "3rd": 3,
    "fourth": 4,
    "4th": 4,
}
_QUALIFIERS = (
    ("wide", r"\bwide(?:r|ned)? (?:part|section|bore|hole|diameter|radius)"),
    ("narrow", r"\bnarrow(?:er)?\b"),
    ("larger", r"\b(?:larger|bigger) (?:section|diameter|radius)"),
    ("smaller", r"\bsmaller (?:section|diameter|radius)"),
    ("inner", r"\b(?:inner|inside)\b"),
    ("outer", r"\b(?:outer|outside)\b"),
    ("bottom", r"\bbottom\b"),
    ("top", r"\btop\b"),
    ("against", r"\b(?:against|opposite to|below)\b"),
    ("along", r"\balong the normal\b"),
)  # fmt: skip
_OPPOSITE = {"wide": "narrow", "narrow": "wide"}
_DIMENSIONS = (
    ("radius", r"radius|radii|diameter"),
    ("depth", r"depth|deep"),
    ("height", r"height|tall|high|extents?|thick\w*|extru\w*"),
    ("width", r"width|wide"),
    ("length", r"length|long"),
    ("distance", r"distance"),
    ("size", r"size"),
    ("angle", r"angle|sweep|degrees?"),
    ("rise", r"rise|protru\w*"),
)
_ALONG_AXIS = frozenset({"width", "length", "depth", "size"})
_PLACE = re.compile(
    r"\b(?:cent(?:re|er)s?|coordinates?|position\w*|locat\w+|offset|placed|lies?)\b"
)
_STEP = re.compile(r"\bstep\s*#?\s*(\d+)")
_LINE = re.compile(r"^step (\d+)\. ([^:\n]*)", re.MULTILINE)


class Slot(Struct, frozen=True):
    """A number that a question was needed for.

    Attributes
    ----------
    name : str
        What it is called: "radius of the boss of step 2", or a whole question that asks for it.
    answer : str
        What the user says of it.
    """

    name: str
    answer: str


class Feature(NamedTuple):
    """A feature of a part: its step, from 1, and its kind."""

    step: int
    kind: str


class Meaning(NamedTuple):
    """What a question says: kinds of feature, what is asked of them, and which one is meant."""

    kinds: frozenset[str]
    dimensions: frozenset[str]
    qualifiers: frozenset[str]
    axes: frozenset[str]
    steps: frozenset[int]
    ordinal: int | None


class Agreement(NamedTuple):
    """How well the questions asked are those needed."""

    precision: float
    recall: float
    f1: float


def agreement(asked: int, needed: int, matched: int) -> Agreement:
    """Compare questions with what was needed.

    P = matched/asked, R = matched/needed, F1 their harmonic mean. None needed: 1 only when none was
    asked. Needed, but none asked: 0.

    Parameters
    ----------
    asked, needed, matched : int
        `matched` is one to one: two questions for one number are one match.

    Examples
    --------
    >>> agreement(3, 2, 1)  # two of three ask for the same number, one for nothing
    Agreement(precision=0.3333333333333333, recall=0.5, f1=0.4)
    >>> agreement(0, 0, 0).f1, agreement(1, 0, 0).f1, agreement(0, 2, 0).f1
    (1.0, 0.0, 0.0)
    """
    if not needed:
        return Agreement(*[float(not asked)] * 3)
    precision = matched / asked if asked else 0.0
    return Agreement(precision, matched / needed, 2 * matched / (asked + needed))


class Record:
    r"""The numbers that a prompt left unclear, and the features among which questions are understood.

    Parameters
    ----------
    prompt : str
        The part as it is meant; its lines ``Step N. …`` name the features.
    slots : sequence of Slot

    Examples
    --------
    >>> record = Record(
    ...     "Step 1. Draw a circle: radius 20 mm.\nStep 2. Add a round boss: radius 5 mm, height 8 mm.",
    ...     [Slot("height of the boss of step 2", "The height of the boss of step 2 is 8 mm.")])
    >>> record.matched(["How tall is the boss?", "What is its radius?", "Which height has the boss?"])
    [0, None, None]
    """

    def __init__(self, prompt: str, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)
        self._meanings = [read(slot.name) for slot in self.slots]
        self.features = features_of(prompt)
        for meaning in self._meanings:
            # A prompt without steps names no features: then those of its slots are all there are.
            for kind in sorted(meaning.kinds):
                if _chosen(meaning, self.features) is None:
                    self.features.append(Feature(min(meaning.steps, default=0), kind))

    def asked_for(self, question: str) -> list[int]:
        """Say for which slots a question asks, in the record's order; most ask for one or none."""
        meaning = read(question)
        feature = _chosen(meaning, self.features)
        if feature is None:
            return []
        return [
            k for k, wanted in enumerate(self._meanings)
            if _chosen(wanted, self.features) == feature and _same_parameter(meaning, wanted)
        ]  # fmt: skip

    def answer(self, question: str) -> str:
        """Answer as a user who knows the open numbers and nothing else."""
        return " ".join(self.slots[k].answer for k in self.asked_for(question)) or NOTHING

    def matched(self, questions: Sequence[str]) -> list[int | None]:
        """Give each question at most one slot, and each slot at most one question, in the order asked.

        A question for several numbers is worth the first that nobody asked for yet.

        Returns
        -------
        list of int or None
            One for each question.
        """
        found: list[int | None] = []
        for question in questions:
            fresh = [k for k in self.asked_for(question) if k not in found]
            found.append(fresh[0] if fresh else None)
        return found


def features_of(prompt: str) -> list[Feature]:
    r"""List the features that a prompt's lines ``Step N. …`` name, in order; the first step is the body.

    Examples
    --------
    >>> features_of("Step 1. Draw a circle.\nStep 2. Cut a blind round hole.\nStep 3. Fillet its rim.")
    [Feature(step=1, kind='body'), Feature(step=2, kind='blind hole'), Feature(step=3, kind='fillet')]
    """
    found = []
    for number, lead in _LINE.findall(prompt.lower()):
        step = int(number)
        kinds = [kind for kind, pattern in _LEADS if re.search(pattern, lead)]
        kinds = ["body"] if step == 1 else kinds or sorted(read(lead).kinds)
        found += [Feature(step, kind) for kind in kinds[:1]]
    return found


def read(question: str) -> Meaning:
    """Read a question (or the name of a slot) by its words."""
    text = " ".join(question.lower().split())
    steps = frozenset(map(int, _STEP.findall(text)))
    text = _STEP.sub(" ", text)
    counted = re.search(r"\bnumber of [\w ]*?holes|\bhow many\b|\bhole count\b|\bcount of\b", text)
    text = re.sub(r"\bnumber of [\w ]*?holes", " ", text)
    qualifiers = set()
    for name, pattern in _QUALIFIERS:
        if re.search(pattern, text):
            qualifiers.add(name)
            # "the wide part" is no width; the radius of "the larger radius" must stay.
            text = re.sub(r"\bwide(?:r|ned)? (?=part|section|bore|hole|diameter|radius)", " ", text)
    ordinal = _ordinal(text)
    kinds, text = _kinds(text)
    dimensions, axes = _dimensions(text)
    if counted:
        dimensions.add("count")
    return Meaning(
        kinds, frozenset(dimensions), frozenset(qualifiers), frozenset(axes), steps, ordinal
    )


def _ordinal(text: str) -> int | None:
    nouns = "|".join(pattern for _, pattern in _KINDS)
    found = re.search(rf"\b({'|'.join(_ORDINALS)}) (?:\w+ )?(?:{nouns})\b", text)
    return _ORDINALS[found[1]] if found else None


def _kinds(text: str) -> tuple[frozenset[str], str]:
    """Find the features that a text is about, and the text without their nouns.

    A fillet's own place is a feature ("the fillet of the hole's rim"), and that of any feature is the
    body ("the boss on the plate"): the more particular one is meant.
    """
    found = set()
    for kind, pattern in _KINDS:
        text, n = re.subn(rf"\b(?:{pattern})\b", " ", text)
        if n:
            found.add(kind)
    if found & _EDGES:
        return frozenset(found & _EDGES), text
    found = found - {"body"} or found
    if found & _HOLES - {"hole"}:
        found.discard("hole")
    return frozenset(found), text


def _dimensions(text: str) -> tuple[set[str], set[str]]:
    text = re.sub(r"\bextru\w* (?:depth|length|distance)", "extent", text)
    axes = set(re.findall(r"\b(?:along|in) (?:the )?([xy])\b", text))
    text = re.sub(r"\b(?:along|in) (?:the )?[xy]\b(?:[- ](?:direction|axis))?", " ", text)
    axes |= set(re.findall(r"\b([xy])[- ](?:direction|axis|size|extent|width|length)\b", text))
    text = re.sub(r"\b[xy][- ](?=direction|axis|size|extent|width|length)", " ", text)
    sizes = {name for name, pattern in _DIMENSIONS if re.search(rf"\b(?:{pattern})\b", text)}
    if not _PLACE.search(text):
        return sizes, axes
    places = set(re.findall(r"\b([xy])\b", text))
    if not sizes and not places:
        # "Where is the centre" asks for both, "where is it along x" for one.
        places = axes or {"x", "y"}
    return sizes | places, axes


def _chosen(meaning: Meaning, features: Sequence[Feature]) -> int | None:
    """Find the one feature that is meant; None where it is none, or might be several."""
    named = [k for k, one in enumerate(features) if not meaning.kinds or _covers(meaning, one.kind)]
    here = [k for k in named if features[k].step in meaning.steps] if meaning.steps else named
    if not here and meaning.kinds & _EDGES:
        # "the fillet of the hole of step 3" tells the hole's step, not the fillet's.
        here = named
    if not meaning.kinds and not meaning.steps:
        return None
    if len(here) == 1:
        return here[0]
    if meaning.ordinal is not None and meaning.ordinal <= len(here):
        return here[meaning.ordinal - 1]
    return None


def _covers(meaning: Meaning, kind: str) -> bool:
    return kind in meaning.kinds or ("hole" in meaning.kinds and kind in _HOLES)


def _same_parameter(asked: Meaning, wanted: Meaning) -> bool:
    if wanted.kinds & _EDGES:
        # Such a feature has one size, whatever it is called.
        return bool(asked.dimensions - {"x", "y"})
    if wanted.axes and asked.axes:
        return bool(wanted.axes & asked.axes and asked.dimensions & _ALONG_AXIS)
    if not wanted.dimensions & asked.dimensions:
        return False
    if wanted.dimensions == {"depth"}:
        # Only the wide part has one, so it need not be said.
        return not any(_OPPOSITE.get(q) in asked.qualifiers for q in wanted.qualifiers)
    return wanted.qualifiers <= asked.qualifiers
