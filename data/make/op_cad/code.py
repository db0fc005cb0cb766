"""CadQuery code of records: the part of a script, and the form in which a step is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .records import (
    CHAMFER,
    CUT,
    EXTRUDE,
    INTERSECT,
    ONE_SIDED,
    REVOLVE,
    SYMMETRIC,
    Loop,
    Record,
    opened,
)  # fmt: skip

IMPORT = "import cadquery as cq\n"
_REDUCE = "from functools import reduce\n"


def script_part(records: Sequence[Record], step: int) -> str:
    """Write a step as a part of the whole script: it takes `result_{step-1}` and leaves `result_{step}`.

    A fillet or chamfer takes all its edges at once, so that concave edges are right as well.
    """
    lines = [] if step else [IMPORT.rstrip(), ""]
    if _is_edge_work(records[0]):
        base = f"result_{step - 1}"
        for at, record in enumerate(records):
            _, number, body = opened(record)
            after = f"result_{step}" if at == len(records) - 1 else f"solid_{number}"
            name = f"base_{number}"
            chosen = f"{_nearest(name, body['edge'][0])}" + "".join(
                f".add({_nearest(name, p)})" for p in body["edge"][1:]
            )
            lines += [
                f"{name} = cq.Workplane({base}.val())",
                f"edges_{number} = {chosen}",
                f"{after} = edges_{number}{_edge_call(record)}",
            ]
            base = after
    else:
        for record in records:
            lines += _solid(record, f"_{opened(record)[1]}")
        names = [f"solid_{opened(record)[1]}" for record in records]
        if step:
            chain = "".join(f".{_boolean(r)}({n})" for r, n in zip(records, names, strict=True))
            lines.append(f"result_{step} = result_{step - 1}{chain}")
        else:
            lines.append(f"result_0 = {names[0]}")
    return "\n".join(lines) + "\n"


def step_code(records: Sequence[Record], step: int) -> str:
    """Write a step in the form in which it is asked for.

    Extrusions and revolutions: a block `#shape` that makes `shape`, and a block `#bool` with one line
    that makes `result`. Fillets and chamfers: `edges_k`, `shape_k` of each edge, intersected.
    """
    if _is_edge_work(records[0]):
        return _edge_code(records, step)
    lines = ["#shape"] if step else [IMPORT.rstrip(), "", "#shape"]
    names = [f"solid_{opened(record)[1]}" for record in records]
    for record in records:
        lines += _solid(record, f"_{opened(record)[1]}")
    lines.append(f"shape = {names[0]}" + "".join(f".union({name})" for name in names[1:]))
    lines.append("#bool")
    lines.append(
        f"result = result_{step - 1}.{_boolean(records[0])}(shape)" if step else "result = shape"
    )
    return "\n".join(lines) + "\n"


def pre_code(parts: Sequence[str], step: int) -> str:
    """Write the code before a step, from the parts of the script; nothing before the first one."""
    return "\n".join(parts[:step])


def pre_code_cop(parts: Sequence[str], instructions: Sequence[str], step: int) -> str:
    """Write the code before a step with the instruction of each step as a comment before it."""
    told = [
        f"## step{k}: {text}\n{part}"
        for k, (text, part) in enumerate(zip(instructions[:step], parts[:step], strict=True))
    ]
    return "\n".join(told)


def script(parts: Sequence[str]) -> str:
    """Write the whole script."""
    return pre_code(parts, len(parts))


def _is_edge_work(record: Record) -> bool:
    return opened(record)[0] not in (EXTRUDE, REVOLVE)


def _boolean(record: Record) -> str:
    kind, _, body = opened(record)
    operation = body["operation"]
    if operation == CUT:
        return "cut"
    return "intersect" if kind == EXTRUDE and operation == INTERSECT else "union"


def _solid(record: Record, suffix: str) -> list[str]:
    """Write the solid of a sketch, apart from the part."""
    kind, _, body = opened(record)
    sketch = _sketch(body)
    made = [f"sketch{suffix} = {sketch}"]
    if kind == REVOLVE:
        axis = f"{_tuple(body['axis_start'])}, {_tuple(body['axis_end'])}"
        return [*made, f"solid{suffix} = sketch{suffix}.revolve({_number(body['angle'])}, {axis})"]
    one = f"sketch{suffix}.extrude({_number(body['extent_one'])}"
    if body["type"] == SYMMETRIC:
        return [*made, f"solid{suffix} = {one}, both=True)"]
    if body["type"] == ONE_SIDED:
        return [*made, f"solid{suffix} = {one})"]
    # An extrusion uses its sketch up, so that the other side needs one of its own.
    return [
        *made,
        f"other{suffix} = {sketch}",
        f"solid{suffix} = {one}).union(other{suffix}.extrude({_number(body['extent_two'])}))",
    ]


def _sketch(body: dict[str, Any]) -> str:
    plane = (
        f"cq.Plane(origin={_tuple(body['origin'])}, xDir={_tuple(body['x_axis'])}, "
        f"normal={_tuple(body['normal'])})"
    )
    return f"cq.Workplane({plane})" + "".join(_wire(loop) for loop in body["Profile"].values())


def _wire(loop: Loop) -> str:
    if loop[0]["type"] == "Circle":
        (one,) = loop
        return f".moveTo{_tuple(one['center'])}.circle({_number(one['radius'])})"
    text = f".moveTo{_tuple(loop[0]['start'])}"
    for at, curve in enumerate(loop):
        if curve["type"] == "Arc":
            text += f".threePointArc({_tuple(curve['mid'])}, {_tuple(curve['end'])})"
        elif at < len(loop) - 1:
            text += f".lineTo{_tuple(curve['end'])}"
    return text + ".close()"


def _edge_code(records: Sequence[Record], step: int) -> str:
    single = [
        (number, place, record)
        for number, (place, record) in enumerate(
            (place, record) for record in records for place in opened(record)[2]["edge"]
        )
    ]
    lines = [_REDUCE.rstrip()] if len(single) > 1 else []
    lines.append(f"base = cq.Workplane(result_{step - 1}.val())")
    for number, place, record in single:
        lines.append(f"edges_{number} = {_nearest('base', place)}")
        lines.append(f"shape_{number} = edges_{number}{_edge_call(record)}")
    names = [f"shape_{number}" for number, _, _ in single]
    if len(names) == 1:
        lines.append(f"result = {names[0]}")
    else:
        lines.append(f"result = reduce(lambda a, b: a.intersect(b), [{', '.join(names)}])")
    return "\n".join(lines) + "\n"


def _nearest(name: str, place: Sequence[float]) -> str:
    return f"{name}.edges(cq.NearestToPointSelector({_tuple(place)}))"


def _edge_call(record: Record) -> str:
    kind, _, body = opened(record)
    if kind != CHAMFER:
        return f".fillet({_number(body['radius'])})"
    second = f", {_number(body['distance_two'])}" if body["chamfer_type"] else ""
    return f".chamfer({_number(body['distance_one'])}{second})"


def _tuple(values: Sequence[float]) -> str:
    return f"({', '.join(map(_number, values))})"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
