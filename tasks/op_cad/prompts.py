"""What is asked: in upstream's order of parts, in our own words."""

from __future__ import annotations

from tasks.op_cad.loader import Part, Step

SYSTEM = """\
You are a CAD engineer who writes CadQuery programs. You reply with Python code in one block and nothing else."""
_FIRST = "This is the first step: no code has been written yet."
_PLANE = """\
Every sketch names its own plane: cq.Workplane(cq.Plane(origin=(…), xDir=(…), normal=(…))). Do not select faces."""
_NEED = (
    "Reply with code alone; it is appended to the code above and must run as it is.",
    "Import nothing but cadquery (as cq), math, functools and numpy; import cadquery again only in the first step.",
    "Do not define anything again that the code above has defined.",
    "Write no comments except the two marks below, where they are asked for.",
    "Lengths are in mm, angles in degrees; where the instruction leaves a size out, take a sensible one.",
)
_NEED_PART = (
    "Reply with code alone; it must run as it is.",
    "Import nothing but cadquery (as cq), math, functools and numpy.",
    "Lengths are in mm, angles in degrees.",
    "The finished part is one solid.",
)
_NEW = """\
Write two blocks. Under the line `#shape`: the new solid alone, named shape. Under the line `#bool`: exactly one \
statement, result = {last}.union(shape) or result = {last}.cut(shape)."""
_NEW_FIRST = """\
Write two blocks. Under the line `#shape`: the new solid, named shape. Under the line `#bool`: exactly one \
statement, result = shape."""
_EDGES = """\
Take the present model into a new workplane, cq.Workplane({last}.val()). For each edge: \
edges_k = that workplane's .edges(cq.NearestToPointSelector((x, y, z))) and shape_k = edges_k.fillet(radius) or \
edges_k.chamfer(length) or edges_k.chamfer(length1, length2); where there are several, intersect the shapes with \
functools.reduce. The last statement gives result."""
NO_DATA = "(the instruction is withheld)"


def step_prompt(step: Step, *, cop: bool = False, shown: str = "", code: bool = True,
                no_data: bool = False) -> str:  # fmt: skip
    """Ask for one operation.

    Parameters
    ----------
    step : Step
    cop : bool
        Chain of operation: the code so far carries each step's instruction; nothing else differs.
    shown : str
        The state as points or STEP text, where it is asked for.
    code : bool
        Whether the code so far is shown.
    no_data : bool
        Leave the instruction out.
    """
    before = (step.before_cop if cop else step.before).rstrip()
    last = f"result_{step.number - 1}"
    edges = step.op == "chamfer_fillet"
    parts = [_FIRST]
    if before:
        parts = [f"The code so far:\n```python\n{before}\n```"] if code else []
    parts.append(f'The next step:\n"{NO_DATA if no_data else step.instruction}"')
    if shown:
        parts.append(shown)
    if before:
        parts.append(f"The model at present is {last}; the model after your step is called result.")
    if not edges:
        parts.append(_PLANE)
    parts.append("Requirements:\n" + "\n".join(f"{k}. {one}" for k, one in enumerate(_NEED, 1)))
    form = _EDGES if edges else _NEW if before else _NEW_FIRST
    parts.append(f"Form: {form.format(last=last)}")
    return "\n\n".join(parts)


def part_prompt(part: Part, *, no_data: bool = False) -> str:
    """Ask for the program of a whole part."""
    told = "\n".join(
        f"## step{step.number}: {NO_DATA if no_data else step.instruction}" for step in part.steps
    )
    need = "\n".join(f"{k}. {one}" for k, one in enumerate(_NEED_PART, 1))
    return (
        f"Write one CadQuery program that carries out these steps in order:\n{told}\n\n{_PLANE}\n\n"
        f"Requirements:\n{need}\n\nForm: one script; the finished part is called result."
    )
