"""Prompts of whole parts in which every number that may be asked about stands once, by name.

Steps are counted from 1. Faces and edges are named by words ("the top face", "corner 3 of the outline"), so
that no number of one sentence gives away that of another.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from . import text
from .draw import body_of
from .part import Params

_HOLE = (
    ("radius", "radius"),
    ("x", "x of the centre"),
    ("y", "y of the centre"),
)
_BOX = (("width", "width along x"), ("length", "length along y"), *_HOLE[1:])
_FEATURES: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "hole": ("round hole", "Cut a round hole from the {face} face through the whole part", _HOLE),
    "blind_hole": ("blind hole", "Cut a blind round hole into the {face} face", (*_HOLE, ("depth", "depth"))),
    "boss": ("boss", "Add a round boss to the {face} face", (*_HOLE, ("height", "height"))),
    "rib": ("rib", "Add a rectangular rib to the {face} face", (*_BOX, ("height", "height"))),
    "pocket": ("pocket", "Cut a rectangular pocket into the {face} face", (*_BOX, ("depth", "depth"))),
    "slot_pocket": (
        "slot", "Cut a slot with round ends into the {face} face, its long side along {along}",
        (("slot_length", "overall length"), ("slot_width", "width"), *_HOLE[1:], ("depth", "depth")),
    ),
    "hole_pattern": (
        "row of holes",
        "Cut a row of equal round holes through the whole part, one after the other along {along}, with {pitch} mm from centre to centre",
        (
            ("radius", "radius of each hole"), ("count", "number of holes"),
            ("x", "x of the first centre"), ("y", "y of the first centre"),
        ),
    ),
    "two_sided_cut": ("cut-out", "Cut a rectangle through the whole part, to both sides", _BOX),
    "counterbore": (
        "counterbored hole", "Cut a round hole through the whole part and widen it at the {face} face",
        (
            ("radius", "radius of the narrow part"), ("outer_radius", "radius of the wide part"),
            ("depth", "depth of the wide part"), *_HOLE[1:],
        ),
    ),
    "groove": (
        "groove", "Turn a groove all the way around {band}",
        (("z", "height of the lower side"), ("width", "width"), ("depth", "depth")),
    ),
    "collar": (
        "collar", "Turn a collar all the way around {band}",
        (("z", "height of the lower side"), ("width", "width"), ("rise", "rise over the surface")),
    ),
    "key_flat": (
        "key flat", "Cut a flat on the {side} side of {band}",
        (
            ("distance", "distance from the axis"), ("z", "height of the lower end"),
            ("width", "length along the axis"),
        ),
    ),
}  # fmt: skip
_PLATE = (("width", "width along x"), ("depth", "depth along y"))
_OUTLINE = "Draw {outline} and extrude it along the normal"
_BODIES: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "plate": ("a rectangular plate", "Draw a rectangle around the origin and extrude it along the normal", (*_PLATE, ("height", "extent"))),
    "symmetric_plate": (
        "a rectangular plate that lies to both sides of its workplane",
        "Draw a rectangle around the origin and extrude it to both sides of the workplane by the same extent",
        (*_PLATE, ("height", "extent to each side")),
    ),
    "two_sided_plate": (
        "a rectangular plate that lies to both sides of its workplane",
        "Draw a rectangle around the origin and extrude it to both sides of the workplane",
        (*_PLATE, ("height", "extent along the normal"), ("below", "extent against the normal")),
    ),
    "ell": ("an L-shaped plate", _OUTLINE, (("height", "extent"),)),
    "tee": ("a T-shaped plate", _OUTLINE, (("height", "extent"),)),
    "you": ("a U-shaped plate", _OUTLINE, (("height", "extent"),)),
    "hexagon": ("a hexagonal plate", _OUTLINE, (("height", "extent"),)),
    "obround": ("a plate with round ends", _OUTLINE, (("height", "extent"),)),
    "disk": (
        "a disk", "Draw a circle around the origin and extrude it along the normal",
        (("radius", "radius"), ("height", "extent")),
    ),
    "stepped_shaft": (
        "a shaft of two sections, the larger one first",
        "Turn a shaft around the normal through the origin: the larger section stands on the workplane, the smaller one on top of it",
        (
            ("radius", "radius of the larger section"), ("length", "length of the larger section"),
            ("second_radius", "radius of the smaller section"),
            ("second_length", "length of the smaller section"),
        ),
    ),
    "ring": (
        "a ring, or a piece of one",
        "Turn a ring with a rectangular section around the normal through the origin; it stands on the workplane and begins at the x direction, anticlockwise seen against the normal",
        (
            ("radius", "outer radius"), ("inner_radius", "inner radius"), ("height", "height"),
            ("angle", "angle"),
        ),
    ),
    "cone": (
        "a cone without its tip",
        "Turn a cone without tip around the normal through the origin; it stands on the workplane",
        (("radius", "bottom radius"), ("second_radius", "top radius"), ("height", "height")),
    ),
}  # fmt: skip
_CORNERS = (
    "Corners of an outline count from 1, anticlockwise seen against the normal, from the first one drawn "
    "(rectangle: lower left; hexagon: at +x); side k follows corner k."
)
_SIDES = ("+x", "+y", "-x", "-y")
_EDGE = re.compile(r"(hole|blind hole|boss|rib|pocket|cut-out|counterbore) (\d+) (.*)")


class Slot(NamedTuple):
    """A number of a prompt that may be asked about.

    Attributes
    ----------
    slot_id : str
        Step and where the number stands in the plan: ``3.radius``.
    step : int
        From 1.
    feature, parameter : str
        What it is the size of, and what it is of that.
    value : float
    """

    slot_id: str
    step: int
    feature: str
    parameter: str
    value: float

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"{self.parameter} of the {self.feature} of step {self.step}"

    def told(self, value: float) -> str:
        """Write a value with its unit."""
        unit = {"angle": " degrees", "number of holes": ""}.get(self.parameter, " mm")
        return f"{text.number(value)}{unit}"


class Sentence(NamedTuple):
    """What is done, and the numbers of it."""

    lead: str
    slots: tuple[Slot, ...]


def describe(plan: Params) -> list[tuple[int, Sentence]]:
    """Describe a plan: the number of each step with its sentences."""
    _, lead, named = _BODIES[plan["family"]]
    outline = ""
    if "{outline}" in lead:
        record = next(iter(body_of(plan).record.values()))
        outline = text.loop_text(record["Profile"]["loop_0"])
    first = tuple(Slot(f"1.{p}", 1, "body", word, plan["body"][p]) for p, word in named)
    found = [(1, Sentence(lead.format(outline=outline), first))]
    for number, feature in enumerate(plan["features"], 2):
        found += [
            (number, one)
            for one in _sentences(feature["kind"], feature["sizes"], number, plan["family"])
        ]
    return found


def general(plan: Params) -> str:
    """Write the general shape and the setup of a plan."""
    frame = plan["frame"]
    return (
        f"The part is {_BODIES[plan['family']][0]}. Lengths are in mm. Workplane: origin "
        f"{text.place(frame['origin'])}, normal {text.place(frame['z'])}, x direction "
        f"{text.place(frame['x'])}; x, y and heights along the normal are measured in it. The top face is the "
        "end that the normal points to."
    )


def render(
    plan: Params, hidden: Collection[str] = (), first: Mapping[str, float] | None = None,
    second: Mapping[str, float] | None = None,
) -> str:  # fmt: skip
    """Write the prompt of a plan.

    Parameters
    ----------
    plan : dict
    hidden : collection of str
        Slots of which nothing is said.
    first, second : dict, optional
        Values that stand in a slot's own place, and in a note at the end.
    """
    lines = [general(plan)]
    notes = []
    for number, (lead, slots) in describe(plan):
        said = [
            f"{slot.parameter} {slot.told((first or {}).get(slot.slot_id, slot.value))}"
            for slot in slots if slot.slot_id not in hidden
        ]  # fmt: skip
        lines.append(f"Step {number}. {lead}{': ' if said else ''}{', '.join(said)}.")
        notes += [
            f"The {slot.name} is {slot.told(second[slot.slot_id])}."
            for slot in slots if second and slot.slot_id in second
        ]  # fmt: skip
    if any(" at corner " in line or " along side " in line for line in lines):
        lines.insert(1, _CORNERS)
    return "\n".join([*lines, *notes])


def slots_of(plan: Params) -> list[Slot]:
    """List all slots of a plan."""
    return [slot for _, sentence in describe(plan) for slot in sentence.slots]


def _sentences(kind: str, sizes: Params, number: int, family: str) -> Iterator[Sentence]:
    if kind in ("hole_pair", "boss_pair"):
        for path, order in (("one", "first"), ("two", "second")):
            yield _feature(kind[:4], sizes[path], number, family, f"{path}.", f"{order} ")
    elif kind == "edge_pair":
        for path in ("one", "two"):
            yield _edge_work(sizes[path], number, f"{path}.")
    elif "op" in sizes:
        yield _edge_work(sizes, number)
    else:
        yield _feature(kind, sizes, number, family)


def _feature(
    kind: str, sizes: Params, number: int, family: str, path: str = "", order: str = ""
) -> Sentence:
    noun, lead, named = _FEATURES[kind]
    words: dict[str, Any] = {**sizes, "band": _around(sizes.get("band", ""), family)}
    words["side"] = _SIDES[sizes.get("side", 0)]
    if "pitch" in sizes:
        words["pitch"] = text.number(sizes["pitch"])
    slots = tuple(
        Slot(f"{number}.{path}{name}", number, order + noun, word, sizes[name])
        for name, word in named
    )
    return Sentence(lead.format(**words), slots)


def _around(band: str, family: str) -> str:
    if family != "stepped_shaft":
        return "the outer surface"
    return "the smaller section" if band == "second" else "the larger section"


def _edge_work(sizes: Params, number: int, path: str = "") -> Sentence:
    op = sizes["op"]
    edges = " and ".join(map(_edge_words, sizes["edges"]))
    lead = f"{op.capitalize()} {edges}"
    if "second_size" in sizes:
        distances = f"{text.number(sizes['size'])} and {text.number(sizes['second_size'])} mm"
        return Sentence(f"{lead} with the two distances {distances}", ())
    word = "radius" if op == "fillet" else "distance"
    slot = Slot(f"{number}.{path}size", number, op, word, sizes["size"])
    return Sentence(lead, (slot,))


def _edge_words(name: str) -> str:
    """Say which edge is meant, by the feature that it belongs to."""
    found = _EDGE.fullmatch(name)
    owner, which = ("the body", name)
    if found:
        # The words count steps from 1, the names of edges from 0.
        owner, which = f"the {found[1]} of step {int(found[2]) + 1}", found[3]
    side = re.fullmatch(r"(top|bottom) (side \d)", which)
    if which.startswith("corner"):
        return f"the upright edge at {which} of {owner}"
    if side:
        return f"the {side[1]} edge along {side[2]} of {owner}"
    return f"the {which} of {owner}"
