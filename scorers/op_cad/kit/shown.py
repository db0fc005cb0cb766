"""Showing solids: pictures, triangles for a 3-D view, points, STEP; in a child of a warm process, inside a box."""

from __future__ import annotations

import base64
import re
import tempfile
from pathlib import Path
from typing import Any

import cadquery as cq
import numpy as np

from . import solids, views

GREY, YELLOW, RED = (176, 190, 205), (240, 200, 40), (215, 60, 50)
_FOUR = ((45.0, 30.0), (45.0, 210.0), (-35.264, 45.0), (90.0, 0.0))
_FINE = 2e-3
"""How far triangles may lie off the surface, as a share of the part's diagonal."""
_DIGITS = 4


def drawn(predicted: str | None, true: str) -> dict[str, Any]:
    """Draw a prediction, the truth, and what the one lacks and has too much of.

    Parameters
    ----------
    predicted : str or None
        BREP as base64.
    true : str

    Returns
    -------
    dict
        ``pictures``: PNG as base64 by name; ``meshes``: triangles by name for a 3-D view. What the kernel
        cannot take apart has no difference.
    """
    truth = solids.read(base64.b64decode(true))
    pictures = {"truth": _png([_mesh(truth, GREY)])}
    meshes = {"truth": _flat(truth)}
    if predicted is not None:
        ours = solids.read(base64.b64decode(predicted))
        pictures["prediction"] = _png([_mesh(ours, GREY)])
        meshes["prediction"] = _flat(ours)
        missing, surplus = _less(truth, ours), _less(ours, truth)
        common = _common(truth, ours)
        parts = [(common, GREY), (missing, YELLOW), (surplus, RED)]
        pictures["difference"] = _png(
            [_mesh(shape, colour) for shape, colour in parts if shape is not None]
        )
        meshes |= {
            name: _flat(shape)
            for name, shape in (("missing", missing), ("surplus", surplus)) if shape is not None
        }  # fmt: skip
    return {"pictures": pictures, "meshes": meshes}


def image(brep: str | None) -> str:
    """Draw a state from nine sides: PNG as base64; an empty part is a blank one."""
    meshes = [] if brep is None else [_mesh(solids.read(base64.b64decode(brep)), GREY)]
    return base64.b64encode(views.png(views.render(meshes))).decode()


def cloud(brep: str, n: int = 2048, seed: int = 0) -> list[list[float]]:
    """Draw points of a surface, evenly by area, from a fixed seed, in single precision."""
    found = solids.points(solids.read(base64.b64decode(brep)), n, seed=seed)
    return [[float(value) for value in row] for row in np.asarray(found, np.float32)]


def step(brep: str) -> str:
    """Write a solid as STEP, the same text every time: no date and no running number."""
    shape = solids.read(base64.b64decode(brep))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solid.step"
        cq.exporters.export(cq.Workplane(shape), str(path))
        return canonical(path.read_text(encoding="utf-8", errors="replace"))


def canonical(text: str) -> str:
    """Take out of a STEP file what changes from one writing to the next."""
    text = re.sub(r"(FILE_NAME\('[^']*',')[^']*'", r"\g<1>1970-01-01T00:00:00'", text)
    return re.sub(r"Open CASCADE STEP translator ([\d.]+) \d+(\.\d+)*", r"STEP translator \1", text)


def _mesh(shape: Any, colour: tuple[int, int, int]) -> views.Mesh:
    tolerance = _FINE * solids.diagonal(shape)
    points, triangles = shape.tessellate(tolerance, 0.3)
    vertices = np.array([p.toTuple() for p in points], float).reshape(-1, 3)
    lines = [_line(edge) for edge in shape.Edges()]
    return views.Mesh(vertices, np.array(triangles, np.int64).reshape(-1, 3), colour, lines)


def _line(edge: Any) -> Any:
    count = 2 if edge.geomType() == "LINE" else 25
    places = [k / (count - 1) for k in range(count)]
    return np.array([p.toTuple() for p in edge.positions(places)], float)


def _png(meshes: list[views.Mesh]) -> str:
    return base64.b64encode(views.png(views.render(meshes, _FOUR, columns=2))).decode()


def _flat(shape: Any) -> dict[str, list[Any]]:
    """Give triangles as plotly takes them, four digits of the part's size."""
    mesh = _mesh(shape, GREY)
    size = float(np.abs(mesh.vertices).max()) or 1.0
    digits = max(0, _DIGITS - 1 - int(np.floor(np.log10(size))))
    columns = np.round(mesh.vertices, digits).T.tolist()
    return {
        **dict(zip("xyz", columns, strict=True)),
        **dict(zip("ijk", mesh.triangles.T.tolist(), strict=True)),
    }


def _less(a: Any, b: Any) -> Any:
    return _if_solid(lambda: a.cut(b))


def _common(a: Any, b: Any) -> Any:
    return _if_solid(lambda: a.intersect(b))


def _if_solid(make: Any) -> Any:
    """Give what a boolean operation makes, None where it is empty or the kernel fails at it."""
    try:
        made = make()
        return made if made.Solids() and made.Volume() > 0 else None
    except Exception:  # noqa: BLE001  a picture less, the verdict stands
        return None
