"""Instructions: three wordings for each operation, and the way back from the text to the record."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from harness.core.errors import UsageError

from .records import (
    CHAMFER,
    CUT,
    EXTRUDE,
    FILLET,
    INTERSECT,
    JOIN,
    NEW,
    ONE_SIDED,
    REVOLVE,
    SYMMETRIC,
    TWO_SIDED,
    Loop,
    Record,
    circle,
    cross,
    hexagon,
    numbered,
    obround,
    opened,
    path,
    point,
    rectangle,
)  # fmt: skip

WORDINGS = 3

_TEMPLATES: dict[str, tuple[str, str, str]] = {
    EXTRUDE: (
        "On the plane with origin {origin}, normal {normal} and x direction {x_axis}, draw {profile}. Extrude it {extent} and {boolean}.",
        "Sketch {profile} in a workplane (origin {origin}, normal {normal}, x axis {x_axis}), then extrude the sketch {extent} to {boolean}.",
        "{boolean}: in the workplane that stands at {origin}, faces {normal} and has its x axis along {x_axis}, outline {profile}, and extrude this {extent}.",
    ),
    REVOLVE: (
        "On the plane with origin {origin}, normal {normal} and x direction {x_axis}, draw {profile}. Revolve it by {angle} degrees about the axis from {start} to {end} and {boolean}.",
        "Sketch {profile} in a workplane (origin {origin}, normal {normal}, x axis {x_axis}), then turn the sketch by {angle} degrees around the axis from {start} to {end} to {boolean}.",
        "{boolean}: in the workplane that stands at {origin}, faces {normal} and has its x axis along {x_axis}, outline {profile}, and revolve this by {angle} degrees about the axis from {start} to {end}.",
    ),
    FILLET: (
        "Fillet the {edges} with a radius of {radius} mm.",
        "Round off the {edges}; the radius is {radius} mm.",
        "Apply a fillet of radius {radius} mm to the {edges}.",
    ),
    CHAMFER: (
        "Chamfer the {edges} by {distances}.",
        "Bevel the {edges}; the setback is {distances}.",
        "Apply a chamfer of {distances} to the {edges}.",
    ),
}  # fmt: skip
_BOOLEANS: tuple[dict[int, str], ...] = (
    {NEW: "make it a new body", JOIN: "join it to the part", CUT: "cut it from the part",
     INTERSECT: "keep only what it shares with the part"},
    {NEW: "start a new body", JOIN: "add material to the part", CUT: "remove material from the part",
     INTERSECT: "leave only the material that both have"},
    {NEW: "New body", JOIN: "Union with the part", CUT: "Cut from the part",
     INTERSECT: "Intersection with the part"},
)  # fmt: skip
_NUMBER = r"-?\d+(?:\.\d+)?(?:e-\d+)?"
_POINT = rf"\((?:{_NUMBER}(?:, )?)+\)"


def write(records: Sequence[Record], wording: int, kinds: Sequence[str] = ()) -> str:
    """Write the instruction of a step.

    Parameters
    ----------
    records : sequence of Record
        Its base operations.
    wording : int
        Which of the three wordings.
    kinds : sequence of str
        What the operations are; of fillets and chamfers those on a rim are called circular.
    """
    kinds = kinds or [""] * len(records)
    told = [_sentence(r, wording % WORDINGS, k) for r, k in zip(records, kinds, strict=True)]
    if len(told) == 1:
        return told[0]
    return " ".join(f"({k}) {text}" for k, text in enumerate(told, 1))


def header(kinds: Sequence[str]) -> str:
    """Write the short line of a step: what it makes, without sizes."""
    return " and ".join(kind.replace("_", " ") for kind in kinds).capitalize()


def parse(text: str, first: int = 0) -> list[Record]:
    """Read an instruction back.

    Parameters
    ----------
    text : str
    first : int
        Number of the first base operation of the step, which the text does not tell.

    Raises
    ------
    UsageError
        It is none of our instructions.
    """
    parts = re.split(r"(?:^| )\(\d\) (?=[A-Z])", text)
    sentences = [part for part in parts if part]
    return [numbered(_record(part), first + k) for k, part in enumerate(sentences)]


def number(value: float) -> str:
    """Write a number without needless zeros."""
    return format(value, ".10g")


def place(values: Sequence[float]) -> str:
    """Write a point."""
    return f"({', '.join(number(value) for value in values)})"


def _sentence(record: Record, wording: int, kind: str) -> str:
    name, _, body = opened(record)
    words: dict[str, str]
    if name in (FILLET, CHAMFER):
        words = {"edges": _edges(body["edge"], round_="rim" in kind or "base" in kind)}
        words["radius"] = number(body.get("radius", 0.0))
        words["distances"] = _distances(body) if name == CHAMFER else ""
    else:
        words = {key: place(body[key]) for key in ("origin", "normal", "x_axis")}
        words["profile"] = " together with ".join(map(loop_text, body["Profile"].values()))
        if name == EXTRUDE:
            words["extent"], operation = _extent(body), body["operation"]
        else:
            words |= {"start": place(body["axis_start"]), "end": place(body["axis_end"])}
            words["angle"] = number(body["angle"])
            operation = NEW if not body["merge"] else body["operation"]
        words["boolean"] = _BOOLEANS[wording][operation]
    return _TEMPLATES[name][wording].format(**words)


def loop_text(loop: Loop) -> str:
    """Describe a loop by the shortest phrase that draws it again."""
    if loop[0]["type"] == "Circle":
        return f"a circle of radius {number(loop[0]['radius'])} mm centred at {place(loop[0]['center'])}"
    for guess in (_as_rectangle, _as_obround, _as_hexagon):
        found = guess(loop)
        if found is not None and _loop(found) == loop:
            return found
    ways = [
        f"straight to {place(curve['end'])}"
        if curve["type"] == "Line"
        else f"by an arc through {place(curve['mid'])} to {place(curve['end'])}"
        for curve in loop
    ]
    return f"a closed path from {place(loop[0]['start'])} {', '.join(ways)}"


def _ends(loop: Loop) -> tuple[float, float, float, float]:
    points = [curve[key] for curve in loop for key in ("mid", "end") if key in curve]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return min(xs), max(xs), min(ys), max(ys)


def _as_rectangle(loop: Loop) -> str | None:
    a, b, c, d = _ends(loop)
    w, h, at = number(b - a), number(d - c), place(point(((a + b) / 2, (c + d) / 2)))
    return f"a rectangle {w} mm wide (x) and {h} mm high (y) centred at {at}"


def _as_obround(loop: Loop) -> str | None:
    if [curve["type"] for curve in loop] != ["Line", "Arc", "Line", "Arc"]:
        return None
    a, b, c, d = _ends(loop)
    length, width = max(b - a, d - c), min(b - a, d - c)
    along = "x" if b - a > d - c else "y"
    at = place(point(((a + b) / 2, (c + d) / 2)))
    return f"an obround {number(length)} mm long and {number(width)} mm wide along {along} centred at {at}"


def _as_hexagon(loop: Loop) -> str | None:
    a, b, c, d = _ends(loop)
    at = place(point(((a + b) / 2, (c + d) / 2)))
    return f"a regular hexagon of circumradius {number((b - a) / 2)} mm with a corner on the x axis centred at {at}"


def _extent(body: dict[str, Any]) -> str:
    one, two = body["extent_one"], body["extent_two"]
    if body["type"] == SYMMETRIC:
        return f"by {number(one)} mm to each side of the plane"
    if body["type"] == TWO_SIDED:
        return f"by {number(one)} mm along the normal and by {number(-two)} mm against it"
    return f"by {number(abs(one))} mm {'along' if one > 0 else 'against'} the normal"


def _edges(points: Sequence[Sequence[float]], *, round_: bool) -> str:
    kind, where = ("circular", "centre") if round_ else ("straight", "midpoint")
    many = "s" if len(points) > 1 else ""
    count = f"{len(points)} " if many else ""
    return f"{count}{kind} edge{many} with {where}{many} {' and '.join(map(place, points))}"


def _distances(body: dict[str, Any]) -> str:
    one, two = number(body["distance_one"]), number(body["distance_two"])
    return (
        f"{one} mm on one side and {two} mm on the other" if body["chamfer_type"] else f"{one} mm"
    )


def _record(sentence: str) -> Record:
    for name, wordings in _TEMPLATES.items():
        for wording, template in enumerate(wordings):
            found = re.fullmatch(_pattern(template, wording), sentence)
            if found:
                return {name: _READERS[name](found.groupdict(), wording)}
    raise UsageError(f"no instruction of ours: {sentence[:80]!r}; see data/make/op_cad/text.py")


def _pattern(template: str, wording: int) -> str:
    parts = re.split(r"\{(\w+)\}", template)
    booleans = "|".join(map(re.escape, _BOOLEANS[wording].values()))
    return "".join(
        rf"(?P<{part}>{booleans if part == 'boolean' else '.+?'})" if k % 2 else re.escape(part)
        for k, part in enumerate(parts)
    )


def _numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(_NUMBER, text)]


def _sketched(words: dict[str, str]) -> dict[str, Any]:
    origin, normal, x_axis = (_numbers(words[key]) for key in ("origin", "normal", "x_axis"))
    return {
        "origin": origin, "normal": normal, "x_axis": x_axis, "y_axis": point(cross(normal, x_axis)),
    }  # fmt: skip


def _profile(words: dict[str, str]) -> dict[str, Loop]:
    loops = map(_loop, words["profile"].split(" together with "))
    return {f"loop_{k}": loop for k, loop in enumerate(loops)}


def _loop(text: str) -> Loop:
    values = _numbers(text)
    if text.startswith("a circle"):
        radius, x, y = values
        return circle(x, y, radius)
    if text.startswith("a rectangle"):
        width, height, x, y = values
        return rectangle(x, y, width, height)
    if text.startswith("an obround"):
        length, width, x, y = values
        return obround(x, y, length, width, "x" if " along x " in text else "y")
    if text.startswith("a regular hexagon"):
        radius, x, y = values
        return hexagon(x, y, radius)
    start, *rest = re.split(r" (?=straight|by an arc)", text)
    ways = [[_numbers(p) for p in re.findall(_POINT, way)] for way in rest]
    return path(_numbers(start), *ways)


def _operation(words: dict[str, str], wording: int) -> int:
    return next(op for op, said in _BOOLEANS[wording].items() if said == words["boolean"])


def _read_extrude(words: dict[str, str], wording: int) -> dict[str, Any]:
    values, extent = _numbers(words["extent"]), words["extent"]
    if "each side" in extent:
        kind, one, two = SYMMETRIC, values[0], 0.0
    elif len(values) == 2:
        kind, one, two = TWO_SIDED, values[0], -values[1]
    else:
        kind, one, two = ONE_SIDED, values[0] if "along" in extent else -values[0], 0.0
    body = {**_sketched(words), "operation": _operation(words, wording), "type": kind}
    return {**body, "extent_one": one, "extent_two": two, "Profile": _profile(words)}


def _read_revolve(words: dict[str, str], wording: int) -> dict[str, Any]:
    operation = _operation(words, wording)
    body = _sketched(words)
    del body["y_axis"]
    body |= {"operation": CUT if operation == CUT else JOIN, "merge": operation != NEW}
    body |= {"axis_start": _numbers(words["start"]), "axis_end": _numbers(words["end"])}
    return {**body, "angle": float(words["angle"]), "Profile": _profile(words)}


def _points(words: dict[str, str]) -> list[list[float]]:
    return [_numbers(found) for found in re.findall(_POINT, words["edges"])]


def _read_fillet(words: dict[str, str], _: int) -> dict[str, Any]:
    return {"edge": _points(words), "radius": float(words["radius"])}


def _read_chamfer(words: dict[str, str], _: int) -> dict[str, Any]:
    values = _numbers(words["distances"])
    return {
        "edge": _points(words), "distance_one": values[0], "distance_two": values[-1],
        "chamfer_type": len(values) - 1,
    }  # fmt: skip


_READERS: dict[str, Callable[[dict[str, str], int], dict[str, Any]]] = {
    EXTRUDE: _read_extrude, REVOLVE: _read_revolve, FILLET: _read_fillet, CHAMFER: _read_chamfer,
}  # fmt: skip
