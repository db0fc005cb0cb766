"""Run a CAD program and hand out the solid it makes; in a child of a warm process, inside a box.

Whatever it says is a claim: an honest program could say the same.
"""

from __future__ import annotations

import ast
import base64
import builtins
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import cadquery as cq
from cadquery import func
from cadquery.occ_impl import shapes

from . import solids

ALLOWED = ("cadquery", "functools", "math", "numpy")
"""What a program may import."""
_SYNTAX = (SyntaxError, NameError, TypeError, AttributeError)


class ForbiddenError(ImportError):
    """A program imports what it may not."""


class NoResult(Exception):  # noqa: N818  it is what happened
    """A program ends without anything under the name that is asked for."""


def build(
    code: str, before: str = "", names: tuple[str, ...] = ("result",), *, swapped: bool = False
) -> dict[str, Any]:
    """Run a program after what was there before, and give what it made.

    Parameters
    ----------
    code : str
        What is judged; runs in the same names as `before`.
    before : str
        What it goes on from, not judged.
    names : tuple of str
        Stems of the variables that hold the whole, and then the new part alone, if it is asked for:
        the last ``NAME``, else the last ``NAME_1`` (or ``NAME1``), else the last that was assigned.
    swapped : bool
        Give the two distances of a chamfer the other way round (a truth that may stand either way).

    Returns
    -------
    dict
        ``fault``: class and message, or None; ``solids``: BREP as base64 by name, ``before`` that of
        the state before; ``calls``: the fillets and chamfers made by `code`.
    """
    calls: list[dict[str, Any]] = []
    found: dict[str, str] = {}
    fault = None
    try:
        scope = _scope()
        if before.strip():
            exec(_compiled(before), scope)  # noqa: S102  in a box
            if _assigned(before):  # imports alone are no state
                found["before"] = _written(_picked(scope, before, names[0]))
        with _traced(calls, swapped=swapped):
            exec(_compiled(code), scope)  # noqa: S102
        for name in names:
            found[name] = _written(_picked(scope, code, name))
    except BaseException as error:  # noqa: BLE001  sys.exit is one way to end
        fault = [_class_of(error), f"{type(error).__name__}: {error}"[:500]]
    return {"fault": fault, "solids": found, "calls": calls}


def read_steps(files: Mapping[str, str], before: str = "") -> dict[str, Any]:
    """Read solids from STEP files (base64, by name) and run what they went on from; see `build`."""
    found = {}
    if before.strip():
        scope = _scope()
        exec(_compiled(before), scope)  # noqa: S102  in a box
        if _assigned(before):
            found["before"] = _written(_picked(scope, before, "result"))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder) / "solid.step"
            path.write_bytes(base64.b64decode(content))
            found[name] = _written(cq.importers.importStep(str(path)))
    return {"fault": None, "solids": found, "calls": []}


def _scope() -> dict[str, Any]:
    real = builtins.__import__

    def imported(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] not in ALLOWED:
            raise ForbiddenError(f"{name} may not be imported, only {', '.join(ALLOWED)}")
        return real(name, *rest, **more)

    return {"__name__": "__main__", "__builtins__": {**vars(builtins), "__import__": imported}}


def _compiled(code: str) -> Any:
    return compile(code, "<program>", "exec", dont_inherit=True)


def _written(value: Any) -> str:
    objects: list[Any] = [value]
    if isinstance(value, cq.Workplane):
        objects = list(value.vals())
    elif isinstance(value, cq.Assembly):
        objects = [value.toCompound()]
    return base64.b64encode(solids.write(solids.united(objects))).decode()


def _picked(scope: Mapping[str, Any], code: str, stem: str) -> Any:
    assigned = _assigned(code)
    for pattern in (re.escape(stem), rf"{re.escape(stem)}_?\w*", ".*"):
        for name in reversed(assigned):
            if re.fullmatch(pattern, name) and name in scope:
                return scope[name]
    raise NoResult(f"nothing is called {stem}")


def _assigned(code: str) -> list[str]:
    """List the variables that a program assigns at its top, in order."""
    names: list[str] = []
    for node in ast.parse(code).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        names += [t.id for t in targets if isinstance(t, ast.Name)]
    return names


def _class_of(error: BaseException) -> str:
    if isinstance(error, ForbiddenError):
        return "forbidden"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, NoResult | SystemExit):
        return "no_result"
    if isinstance(error, _SYNTAX) and not isinstance(error, solids.InvalidError):
        return "syntax"
    return "geometry" if isinstance(error, solids.InvalidError) or _of_kernel(error) else "syntax"


def _of_kernel(error: BaseException) -> bool:
    """Tell whether the kernel or its library gave up, rather than the program's own Python."""
    if type(error).__module__.startswith("OCP"):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "cadquery" in trace.tb_frame.f_code.co_filename


class _traced:  # noqa: N801  reads as a verb
    """Write down every fillet and chamfer while it is entered, however it is called."""

    def __init__(self, calls: list[dict[str, Any]], *, swapped: bool) -> None:
        self._calls, self._swapped = calls, swapped
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> None:
        fillet, chamfer = shapes.Mixin3D.fillet, shapes.Mixin3D.chamfer
        free = {"fillet": shapes.fillet, "chamfer": shapes.chamfer}

        def filleted(solid: Any, radius: float, edges: Iterable[Any]) -> Any:
            edges = list(edges)
            self._note("fillet", [radius], edges)
            return fillet(solid, radius, edges)

        def chamfered(solid: Any, one: float, two: float | None, edges: Iterable[Any]) -> Any:
            edges = list(edges)
            if self._swapped and two is not None:
                one, two = two, one
            self._note("chamfer", [one, one if two is None else two], edges)
            return chamfer(solid, one, two, edges)

        self._put(shapes.Mixin3D, "fillet", filleted)
        self._put(shapes.Mixin3D, "chamfer", chamfered)
        for op, made in free.items():
            for module in (shapes, func):
                if hasattr(module, op):
                    self._put(module, op, self._free(op, made))

    def __exit__(self, *_: object) -> None:
        for owner, name, value in reversed(self._kept):
            setattr(owner, name, value)

    def _free(self, op: str, made: Callable[..., Any]) -> Callable[..., Any]:
        def called(solid: Any, edges: Any, size: float, *rest: Any, **more: Any) -> Any:
            sizes = [size] if op == "fillet" else [size, size]
            self._note(op, sizes, list(edges.edges()) if hasattr(edges, "edges") else [])
            return made(solid, edges, size, *rest, **more)

        return called

    def _note(self, op: str, sizes: list[float], edges: list[Any]) -> None:
        self._calls.append(
            {"op": op, "sizes": [float(s) for s in sizes], "edges": [solids.edge(e) for e in edges]}
        )

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self._kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
