"""Draws a sequence from a seed: a body, then features where there is room, each checked in the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from scorers.op_cad.kit import solids

from . import code, kernel, text
from .bands import BAND_FEATURES
from .draft import Draft
from .edge_features import EDGE_FEATURES
from .families import FAMILIES, step_of
from .features import FEATURES
from .part import FRAMES, Frame, Params, Part
from .records import Record, numbered, op_of, opened

EXACT = 1e-9
"""How near a volume is to its closed form, relative."""
_LEAST_CHANGE = 1e-4
_LEAST_MARGIN = 1e-3
_SIZES = (10.0, 200.0)
_TRIES = 40
_ALL = {**FEATURES, **BAND_FEATURES, **EDGE_FEATURES}
_WEIGHTS = {
    "boss": 8, "rib": 6, "boss_pair": 3, "collar": 4, "hole": 10, "blind_hole": 7, "pocket": 6,
    "slot_pocket": 4, "hole_pattern": 6, "two_sided_cut": 4, "hole_pair": 3, "counterbore": 4,
    "key_flat": 7, "groove": 9, "edge_pair": 5,
    "fillet_straight_convex": 14, "fillet_straight_concave": 10, "fillet_hole_rim": 8,
    "fillet_boss_rim": 8, "fillet_boss_base": 6, "chamfer_straight_convex": 13,
    "chamfer_straight_concave": 3, "chamfer_hole_rim": 9, "chamfer_boss_rim": 8,
    "chamfer_boss_base": 2,
}  # fmt: skip


class GateError(ValueError):
    """A step is not fit to be an item; another one is drawn."""


@dataclass
class Step:
    """A step of a sequence; `change` is the closed form, `volume` the whole part's as measured."""

    records: list[Record]
    kinds: tuple[str, ...]
    change: float
    instruction: str
    part: str
    code: str
    volume: float = 0.0

    @property
    def op(self) -> str:
        """The operation, as `prompt.csv` names it."""
        return op_of(self.records[0])


@dataclass
class Drawn:
    """A sequence, with the plan that it can be made of again."""

    plan: Params
    steps: list[Step] = field(default_factory=list)
    digest: str = ""

    @property
    def parts(self) -> list[str]:
        """The script, step by step."""
        return [step.part for step in self.steps]


def new_plan(rng: Random, family: str) -> Params:
    """Draw where a part lies and how large its body is."""
    x, z = FRAMES[rng.randrange(len(FRAMES))]
    moved = rng.random() < 0.5
    origin = [step_of(rng, -20, 20, 5) if moved else 0.0 for _ in range(3)]
    frame = {"origin": origin, "x": list(x), "z": list(z)}
    return {"family": family, "frame": frame, "body": FAMILIES[family].draw(rng), "features": []}


def body_of(plan: Params) -> Part:
    """Make the body of a plan."""
    frame = Frame(*(tuple(plan["frame"][key]) for key in ("origin", "x", "z")))
    return FAMILIES[plan["family"]].make(plan["body"], frame)


def drafts(plan: Params) -> list[Draft]:
    """Make all steps of a plan, without running them.

    Raises
    ------
    KeyError
        A feature stands where there is no room.
    """
    part = body_of(plan)
    found = [Draft((plan["family"],), [part.record], part.volume)]
    for number, feature in enumerate(plan["features"], 1):
        draft = _ALL[feature["kind"]].make(part, feature["sizes"], number)
        draft.apply(part)
        found.append(draft)
    return found


def step_from(draft: Draft, number: int, first: int, wording: int) -> Step:
    """Write text and code of a drafted step, whose base operations are numbered from `first` on."""
    records = [numbered(record, first + k) for k, record in enumerate(draft.records)]
    return Step(
        records, draft.kinds, draft.change, text.write(records, wording, draft.kinds),
        code.script_part(records, number), code.step_code(records, number),
    )  # fmt: skip


def script_of(plan: Params) -> str:
    """Write the whole script of a plan; see `drafts`."""
    parts: list[str] = []
    first = 0
    for number, draft in enumerate(drafts(plan)):
        parts.append(step_from(draft, number, first, 0).part)
        first += len(draft.records)
    return code.script(parts)


def draw(seed: int, family: str, length: int) -> Drawn:
    """Draw a sequence of some number of steps.

    Raises
    ------
    GateError
        None was found, however often tried.
    """
    for attempt in range(_TRIES):
        found = _drawn(Random(f"op_cad/{seed}/{family}/{length}/{attempt}"), family, length)
        if found is not None:
            return found
    raise GateError(f"no {family} of {length} steps can be drawn with seed {seed}")


def _drawn(rng: Random, family: str, length: int) -> Drawn | None:
    """Draw a sequence; None where the room ends before its steps do."""
    made = Drawn(new_plan(rng, family))
    part = body_of(made.plan)
    wordings = [rng.randrange(text.WORDINGS) for _ in range(length)]
    scope = _added(made, Draft((family,), [part.record], part.volume), wordings[0], {})
    for _ in range(_TRIES):
        if len(made.steps) == length:
            break
        kind = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        sizes = _ALL[kind].draw(part, rng)
        if sizes is None:
            continue
        draft = _ALL[kind].make(part, sizes, len(made.steps))
        try:
            scope = _added(made, draft, wordings[len(made.steps)], scope)
        except GateError:
            continue
        draft.apply(part)
        made.plan["features"].append({"kind": kind, "sizes": sizes})
    if len(made.steps) < length:
        return None
    shape = kernel.solid_of(scope, f"result_{length - 1}")
    box = shape.BoundingBox()
    if not all(_SIZES[0] <= side <= _SIZES[1] for side in (box.xlen, box.ylen, box.zlen)):
        return None
    made.digest = kernel.digest(shape)
    return made


def _added(made: Drawn, draft: Draft, wording: int, scope: dict[str, Any]) -> dict[str, Any]:
    """Add a step that passes all gates, and give what its code leaves behind."""
    number = len(made.steps)
    first = sum(len(step.records) for step in made.steps)
    step = step_from(draft, number, first, wording)
    if text.parse(step.instruction, first) != step.records:
        raise RuntimeError(f"this instruction does not give its record back: {step.instruction}")
    after = dict(scope)
    asked = dict(scope)
    try:
        kernel.run(step.part, after)
        shape = kernel.solid_of(after, f"result_{number}")
        kernel.run(step.code, asked)
        other = kernel.solid_of(asked, "result")
    except Exception as error:  # whatever the kernel raises, this step is no item
        raise GateError(f"step {number}: {error}") from error
    before = made.steps[-1].volume if number else 0.0
    step.volume = shape.Volume()
    for volume in (before + step.change, other.Volume()):
        if abs(step.volume - volume) > EXACT * step.volume:
            raise GateError(f"step {number}: {step.volume} mm³ instead of {volume}")
    if abs(step.change) < _LEAST_CHANGE * step.volume:
        raise GateError(f"step {number} changes too little")
    if not _told_apart(step.records, number, after):
        raise GateError(f"step {number}: an edge is not told apart from its neighbours")
    made.steps.append(step)
    return after


def _told_apart(records: list[Record], number: int, scope: dict[str, Any]) -> bool:
    """Tell whether each point of fillets and chamfers is clearly nearest to one edge."""
    for record in records:
        _, at, body = opened(record)
        for place in body.get("edge", []):
            base = scope[f"base_{at}"].val()
            for shape in (base, scope[f"result_{number - 1}"].val()):
                if kernel.margin(shape, place) < _LEAST_MARGIN * solids.diagonal(shape):
                    return False
    return True
