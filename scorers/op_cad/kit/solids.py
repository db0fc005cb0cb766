"""Solids: are they any, how large are they, and how much of them is the same."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import cadquery as cq
import numpy as np

from .clouds import N_POINTS, Points
from .edges import Edge

Solid: TypeAlias = Any
"""A shape of the kernel: a solid, or a compound of solids."""

SMALLEST = 1e-9
"""Volume below which there is nothing, in cubic units."""
_TOO_MUCH = 1e-6
_FINE = (2e-4, 0.05)  # of a mesh for volumes: linear, by the diagonal, and angular (radians)


class InvalidError(ValueError):
    """What is there is no solid: it has no faces inside, or none at all."""


class Share(NamedTuple):
    """An intersection over union, and which engine found it: ``occ`` or ``manifold``."""

    iou: float
    engine: str


def read(brep: bytes) -> Solid:
    """Read a shape in the kernel's own format (BREP).

    Raises
    ------
    InvalidError
        It holds no shape.
    """
    shape = cq.Shape.importBrep(io.BytesIO(brep))
    if shape is None or shape.wrapped is None or shape.wrapped.IsNull():
        raise InvalidError("no shape can be read")
    return shape


def write(shape: Solid) -> bytes:
    """Write a shape in the kernel's own format, without the triangles that were drawn of it."""
    from OCP.BRepTools import BRepTools

    BRepTools.Clean_s(shape.wrapped)
    file = io.BytesIO()
    shape.exportBrep(file)
    return file.getvalue()


def united(objects: Iterable[Any]) -> Solid:
    """Unite the solids of a stack into one shape.

    Upstream takes the first of several and loses the others; overlapping ones would count twice.

    Raises
    ------
    InvalidError
        There is no solid among them, one is not valid, or nothing is left.
    """
    solids: list[Any] = []
    for one in objects:
        found = one.Solids() if isinstance(one, cq.Shape) else []
        solids += found
    if not solids:
        raise InvalidError("there is no solid: a face, a wire or nothing")
    bad = next((s for s in solids if not s.isValid()), None)
    if bad is not None:
        raise InvalidError("a solid is not valid: it cuts itself, or is not closed")
    whole = solids[0] if len(solids) == 1 else solids[0].fuse(*solids[1:])
    check(whole)
    return whole


def check(shape: Solid) -> None:
    """Refuse a shape that is no valid solid of some volume.

    Raises
    ------
    InvalidError
    """
    if not shape.Solids():
        raise InvalidError("there is no solid: a face, a wire or nothing")
    if not shape.isValid():
        raise InvalidError("the solid is not valid: it cuts itself, or is not closed")
    if not SMALLEST < shape.Volume() < math.inf:
        raise InvalidError(f"the solid has the volume {shape.Volume():.3g}")
    box = shape.BoundingBox()
    if not all(map(math.isfinite, (box.xmin, box.xmax, box.ymin, box.ymax, box.zmin, box.zmax))):
        raise InvalidError("the solid has no end")


def diagonal(shape: Solid) -> float:
    """Give the diagonal of the box around a shape."""
    return float(shape.BoundingBox().DiagonalLength)


def iou(a: Solid, b: Solid) -> Share:
    """Give volume of the intersection over that of the union, in the place where they are.

    The kernel's own intersection; where that raises or cannot be (more than the smaller one has),
    meshes by manifold3d.
    """
    va, vb = a.Volume(), b.Volume()
    common = _common(a, b)
    if common is not None and common <= min(va, vb) * (1 + _TOO_MUCH):
        common = min(common, va, vb)
        return Share(common / (va + vb - common), "occ")
    return Share(_mesh_iou(a, b), "manifold")


def region_iou(base: Solid | None, predicted: Solid, true: Solid) -> Share:
    """Compare what a step changed: how much of the removed and added is the same.

    removed = base - result, added = result - base; the intersections of both kinds over their unions,
    summed. Without a base (a first step) all of it was added.

    Returns
    -------
    Share
        1 where neither changed anything.
    """
    if base is None:
        return iou(predicted, true)
    common = union = 0.0
    engine = "occ"
    removed = _less(base, predicted), _less(base, true)
    added = _less(predicted, base), _less(true, base)
    for ours, theirs in (removed, added):
        vo, vt = _volume(ours), _volume(theirs)
        both = 0.0
        if vo > 0 and vt > 0:
            found = iou(ours, theirs)
            engine = found.engine if found.engine != "occ" else engine
            both = found.iou * (vo + vt) / (1 + found.iou)
        common += both
        union += vo + vt - both
    return Share(common / union if union > 0 else 1.0, engine)


def symmetric_difference(a: Solid, b: Solid) -> float:
    """Give the volume that is in one of two solids and not in both."""
    share = iou(a, b).iou
    whole = float(a.Volume() + b.Volume())
    return whole - 2 * share * whole / (1 + share)


def size_ratio(predicted: Solid, true: Solid) -> float:
    """Give by what factor one solid is larger than the other: the cube root of their volumes' ratio."""
    return float((predicted.Volume() / true.Volume()) ** (1 / 3))


def points(
    shape: Solid, n: int = N_POINTS, *, seed: int = 0, even: bool = False,
    tolerance: tuple[float, float] | None = None,
) -> Points:  # fmt: skip
    """Draw points of a solid's surface.

    Parameters
    ----------
    shape : Solid
    n : int
    seed : int
    even : bool
        Thinned to an even spacing, as near as can be; else uniform by area.
    tolerance : (float, float), optional
        Of the mesh, linear and angular (radians); by default a thousandth of the diagonal and 0.1.

    Returns
    -------
    array, shape (n, 3)
    """
    import trimesh

    mesh = _mesh(shape, tolerance or (1e-3 * diagonal(shape), 0.1))
    if even:
        return _evenly(mesh, n, seed)
    found, _ = trimesh.sample.sample_surface(mesh, n, seed=seed)
    return np.asarray(found, dtype=np.float64)


def edge(one: Any) -> Edge:
    """Say of an edge what tells it from others."""
    centre = one.Center()
    return Edge(
        geomType=one.geomType(),
        center=[float(x) for x in centre.toTuple()],
        length=float(one.Length()),
        vertices=[[float(x) for x in v.toTuple()] for v in one.Vertices()],
    )


def _evenly(mesh: Any, n: int, seed: int) -> Points:
    """Draw points with a least distance, which falls until there are enough."""
    import trimesh

    radius = math.sqrt(mesh.area / (3 * n))
    while True:
        found, _ = trimesh.sample.sample_surface_even(mesh, n, radius=radius, seed=seed)
        if len(found) >= n:
            return np.asarray(found, dtype=np.float64)
        radius *= 0.9


def _mesh(shape: Solid, tolerance: tuple[float, float]) -> Any:
    import trimesh

    corners, faces = shape.tessellate(*tolerance)
    return trimesh.Trimesh(
        vertices=np.array([corner.toTuple() for corner in corners]), faces=np.array(faces)
    )


def _common(a: Solid, b: Solid) -> float | None:
    """Measure what two solids share; None where the kernel fails."""
    try:
        return float(a.intersect(b).Volume())
    except Exception:  # noqa: BLE001  whatever the kernel raises, meshes may still do
        return None


def _mesh_iou(a: Solid, b: Solid) -> float:
    import manifold3d

    def made(shape: Solid) -> Any:
        mesh = _mesh(shape, (_FINE[0] * diagonal(shape), _FINE[1]))
        mesh.merge_vertices()
        solid = manifold3d.Manifold(
            manifold3d.Mesh(
                vert_properties=np.asarray(mesh.vertices, dtype=np.float32),
                tri_verts=np.asarray(mesh.faces, dtype=np.uint32),
            )
        )
        if solid.status() != manifold3d.Error.NoError:
            raise InvalidError(f"the mesh of a solid is not closed: {solid.status().name}")
        return solid

    first, second = made(a), made(b)
    common = (first ^ second).volume()
    return float(common / (first.volume() + second.volume() - common))


def _less(a: Solid, b: Solid) -> Any:
    rest = a.cut(b)
    solids = rest.Solids()
    return rest if solids else None


def _volume(shape: Any) -> float:
    volume = 0.0 if shape is None else float(shape.Volume())
    return volume if volume > SMALLEST else 0.0
