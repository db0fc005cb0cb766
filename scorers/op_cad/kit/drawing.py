"""Solids as they are shown: pictures, triangles for a 3-D view, points, STEP; runs inside a box."""

from __future__ import annotations

import base64
import re
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import cadquery as cq
import numpy as np

from . import rasterise, solids

GREY, YELLOW, RED = (200, 208, 218), (245, 195, 30), (220, 50, 45)
"""Colours of what is as it should be, what is missing, and what is too much."""
FOUR = ((45.0, 30.0), (45.0, 210.0), (-35.264, 45.0), (90.0, 0.0))
"""The views of a verdict's pictures."""

# Of the triangles: off the surface at most, as a share of an edge's length, and turned (radians).
_FINE = (0.01, 0.25)
_ARC = 33  # points of an edge that is not straight
_SLIVER = 1e-6  # a share of the truth's volume that is no difference
_AGREES = 1e-3  # how well two ways to a volume must agree, as a share of both solids


def drawn(predicted: str | None, true: str) -> dict[str, Any]:
    """Draw a prediction, the truth, and what the one lacks and has too much of.

    Parameters
    ----------
    predicted : str or None
        BREP as base64; None for an empty part.
    true : str

    Returns
    -------
    dict
        ``prediction``, ``truth``, ``difference``: PNG of four views as base64, all to one scale;
        ``mesh``: of ``prediction``, ``missing`` and ``surplus`` what there is, each with ``name``,
        ``colour`` and the fields of a Mesh3d of plotly. ``prediction`` is left out where there is
        none; ``difference``, ``missing`` and ``surplus`` where the kernel cannot tell them.
    """
    truth = _read(true)
    ours = None if predicted is None else _read(predicted)
    shown = {"truth": mesh(truth, GREY)}
    if ours is not None:
        shown["prediction"] = mesh(ours, GREY)
    frame = list(shown.values())
    found: dict[str, Any] = {name: _png([one], frame) for name, one in shown.items()}
    parts = _difference(ours, truth)
    if parts is not None:
        found["difference"] = _png(list(parts.values()), frame, faint=[shown["truth"]])
    shown = {name: one for name, one in shown.items() if name == "prediction"} | (parts or {})
    return {**found, "mesh": {name: _flat(name, one) for name, one in shown.items()}}


def image(brep: str | None) -> str:
    """Draw a state from nine sides.

    Parameters
    ----------
    brep : str or None
        BREP as base64; None for an empty part, whose picture is blank.

    Returns
    -------
    str
        PNG as base64.
    """
    meshes = [] if brep is None else [mesh(_read(brep), GREY)]
    return _encoded(rasterise.render(meshes))


def cloud(brep: str, n: int = 2048, seed: int = 0) -> list[list[float]]:
    """Draw points of a surface, evenly by area, as single precision has them.

    Returns
    -------
    list of (float, float, float), length n
    """
    rows: list[list[float]] = solids.points(_read(brep), n, seed=seed).astype(np.float32).tolist()
    return rows


def step(brep: str) -> str:
    """Write a solid as STEP, the same text whenever and after whatever it is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solid.step"
        cq.exporters.export(cq.Workplane(_read(brep)), str(path))
        return canonical(path.read_text(encoding="utf-8"))


def canonical(text: str) -> str:
    r"""Take out of a STEP file what changes from one writing to the next.

    That is the time in FILE_NAME, and the running numbers of a process in PRODUCT and, where there are
    several solids, in NEXT_ASSEMBLY_USAGE_OCCURRENCE; both are numbered from 1.

    Examples
    --------
    >>> canonical("#7 = PRODUCT('STEP translator 7.9 12',\n  'STEP translator 7.9 12','',(#8));")
    "#7 = PRODUCT('part 1','part 1','',(#8));"
    """
    text = re.sub(
        r"(FILE_NAME\(\s*'[^']*',\s*')[^']*'", r"\g<1>1970-01-01T00:00:00'", text, count=1
    )
    products, uses = count(1), count(1)

    # Whole statements: a longer number may have moved the end of a line.
    def product(match: re.Match[str]) -> str:
        name = f"part {next(products)}"
        return f"= PRODUCT('{name}','{name}','',({match[1]}));"

    def use(match: re.Match[str]) -> str:
        return f"= NEXT_ASSEMBLY_USAGE_OCCURRENCE('{next(uses)}','','',{match[1]},{match[2]},$);"

    text = re.sub(
        r"=\s*PRODUCT\(\s*'[^']*',\s*'[^']*',\s*'',\s*\(\s*(#\d+)\s*\)\s*\);", product, text
    )
    return re.sub(
        r"=\s*NEXT_ASSEMBLY_USAGE_OCCURRENCE\(\s*'\d+',\s*'',\s*'',\s*(#\d+),\s*(#\d+),\s*\$\s*\);",
        use, text,
    )  # fmt: skip


def mesh(shape: solids.Solid, colour: tuple[int, int, int]) -> rasterise.Mesh:
    """Give a shape's triangles, and those of its edges that a designer would draw.

    Parameters
    ----------
    shape : Solid
    colour : (int, int, int)
        Red, green and blue, 0 to 255.
    """
    points, triangles = shape.tessellate(*_FINE)
    vertices = np.array([point.toTuple() for point in points], float).reshape(-1, 3)
    return rasterise.Mesh(
        vertices, np.array(triangles, np.int64).reshape(-1, 3), colour, _edges(shape)
    )


def _edges(shape: solids.Solid) -> list[rasterise.Floats]:
    """Give polylines of edges, without the seam where a round face meets itself and without poles."""
    from OCP.BRep import BRep_Tool

    seams = {
        edge for face in shape.Faces() for edge in face.Edges()
        if BRep_Tool.IsClosed_s(edge.wrapped, face.wrapped)
    }  # fmt: skip
    lines = []
    for edge in shape.Edges():
        if edge in seams or BRep_Tool.Degenerated_s(edge.wrapped):
            continue
        places = np.linspace(0, 1, 2 if edge.geomType() == "LINE" else _ARC).tolist()
        lines.append(np.array([place.toTuple() for place in edge.positions(places)], float))
    return lines


def _difference(ours: Any, truth: Any) -> dict[str, rasterise.Mesh] | None:
    """Find what is missing and what is too much; None where the kernel fails or contradicts itself."""
    if ours is None:
        return {"missing": mesh(truth, YELLOW)}
    least = _SLIVER * truth.Volume()
    try:
        missing, surplus = truth.cut(ours), ours.cut(truth)
        volumes = [float(part.Volume()) for part in (missing, surplus)]
        # What they share is the same from either side, and the verdict's own measure says as much.
        gap = (truth.Volume() - volumes[0]) - (ours.Volume() - volumes[1])
        other = sum(volumes) - solids.symmetric_difference(ours, truth)
        if max(abs(gap), abs(other)) > _AGREES * (truth.Volume() + ours.Volume()):
            return None
        return {
            name: mesh(part, colour)
            for name, part, colour, volume in zip(
                ("missing", "surplus"), (missing, surplus), (YELLOW, RED), volumes, strict=True
            )
            if volume > least
        }
    except Exception:  # noqa: BLE001  whatever the kernel raises: one picture less, the verdict stands
        return None


def _png(
    meshes: list[rasterise.Mesh], frame: list[rasterise.Mesh], faint: list[rasterise.Mesh] | None = None
) -> str:  # fmt: skip
    drawing = rasterise.render(meshes, FOUR, columns=2, faint=faint or (), around=frame)
    return _encoded(drawing)


def _encoded(drawing: rasterise.Image) -> str:
    return base64.b64encode(rasterise.png(drawing)).decode()


def _flat(name: str, one: rasterise.Mesh) -> dict[str, Any]:
    """Give a mesh as plotly takes it, coordinates with four significant digits."""
    zero = 1e-6 * float(np.abs(one.vertices).max(initial=0))
    corners = [
        [float(f"{value:.4g}") if abs(value) > zero else 0.0 for value in column]
        for column in one.vertices.T.tolist()
    ]
    return {
        "name": name,
        "colour": "#" + bytes(one.colour).hex(),
        **dict(zip("xyz", corners, strict=True)),
        **dict(zip("ijk", one.triangles.T.tolist(), strict=True)),
    }


def _read(brep: str) -> solids.Solid:
    return solids.read(base64.b64decode(brep))
