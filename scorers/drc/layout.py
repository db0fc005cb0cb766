"""Reading a layout file, strictly; and writing it as text for a model to read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

MOST_LAYERS = 32
MOST_POLYGONS = 32
MOST_VERTICES = 256


class BadLayoutError(ValueError):
    """A layout file that cannot be used, and why."""


class Polygon(Struct, frozen=True, kw_only=True):
    """A flattened polygon in µm: its hull, and its holes."""

    hull: tuple[tuple[float, float], ...]
    holes: tuple[tuple[tuple[float, float], ...], ...] = ()


class Layout(Struct, frozen=True, kw_only=True):
    """A layout of one top cell, flattened.

    Attributes
    ----------
    dbu : float
        µm of a database unit.
    layers : dict of (int, int) to list of Polygon
        By layer and datatype in ascending order, the largest polygon first; paths are polygons,
        texts are left out.
    box : (float, float, float, float) or None
        Left, bottom, right, top in µm; None for a layout without shapes.
    """

    dbu: float
    layers: dict[tuple[int, int], list[Polygon]]
    box: tuple[float, float, float, float] | None


def open_layout(data: bytes, name: str = "layout", dbu: float | None = None) -> Any:
    """Read a layout file.

    Parameters
    ----------
    data : bytes
        Any format that KLayout reads.
    name : str
        What to call it in an error.
    dbu : float, optional
        The database unit that it must have, µm.

    Returns
    -------
    klayout.db.Layout

    Raises
    ------
    BadLayoutError
        It cannot be read, has not exactly one top cell, or another database unit.
    """
    import klayout.db as db

    layout = db.Layout()
    try:
        layout.read_bytes(data, db.LoadLayoutOptions())
    except RuntimeError as error:
        raise BadLayoutError(f"{name} cannot be read: {str(error).splitlines()[0]}") from error
    tops = len(layout.top_cells())
    if tops != 1:
        raise BadLayoutError(f"{name} has {tops} top cells; a rule is checked on exactly one")
    if dbu is not None and not math.isclose(layout.dbu, dbu, rel_tol=1e-9):
        raise BadLayoutError(f"{name} has a database unit of {layout.dbu:g} µm, not {dbu:g}")
    return layout


def read_layout(data: bytes, name: str = "layout", dbu: float | None = None) -> Layout:
    """Read and flatten a layout; see `open_layout`.

    Raises
    ------
    BadLayoutError
    """
    layout = open_layout(data, name, dbu)
    layers = {
        (info.layer, info.datatype): sorted(
            _polygons(layout, index), key=lambda pair: (-pair[0], pair[1].hull)
        )
        for index, info in zip(layout.layer_indexes(), layout.layer_infos(), strict=True)
    }
    kept = {
        key: [polygon for _, polygon in found] for key, found in sorted(layers.items()) if found
    }
    box = layout.top_cell().dbbox()
    return Layout(
        dbu=layout.dbu, layers=kept,
        box=None if box.empty() or not kept else (box.left, box.bottom, box.right, box.top),
    )  # fmt: skip


def _polygons(layout: Any, layer: int) -> Iterator[tuple[float, Polygon]]:
    shapes = layout.top_cell().begin_shapes_rec(layer)
    while not shapes.at_end():
        flat = shapes.shape().polygon  # None for a text or an edge
        if flat is not None:
            polygon = flat.transformed(shapes.trans()).to_dtype(layout.dbu)
            yield (
                polygon.area(),
                Polygon(
                    hull=tuple((p.x, p.y) for p in polygon.each_point_hull()),
                    holes=tuple(
                        tuple((p.x, p.y) for p in polygon.each_point_hole(h))
                        for h in range(polygon.holes())
                    ),
                ),
            )
        shapes.next()


def as_text(data: bytes, names: Mapping[tuple[int, int], str] | None = None) -> str:
    """Write a layout as text: polygons by layer, the largest first, and the box around all.

    At most 32 layers, 32 polygons a layer and 256 vertices in all, each number with as many decimals
    as the database unit needs, three at least; what is left out is said.

    Parameters
    ----------
    data : bytes
    names : mapping, optional
        Names of layers, by layer and datatype.

    Raises
    ------
    BadLayoutError
    """
    layout = read_layout(data)
    digits = max(3, math.ceil(-math.log10(layout.dbu) - 1e-9))
    digits += 0 if math.isclose(round(layout.dbu, digits), layout.dbu, rel_tol=1e-6) else 1

    def place(point: tuple[float, float]) -> str:
        return f"({point[0]:.{digits}f},{point[1]:.{digits}f})"

    if layout.box is None:
        return "an empty layout"
    left, bottom, right, top = layout.box
    lines = [f"bounding box {place((left, bottom))} {place((right, top))} in um"]
    n_vertices = 0
    for number, (key, polygons) in enumerate(layout.layers.items()):
        if number == MOST_LAYERS:
            lines.append(f"{len(layout.layers) - MOST_LAYERS} further layers are left out")
            break
        name = (names or {}).get(key)
        lines.append(f"layer {key[0]}/{key[1]}" + (f" ({name})" if name else "") + ":")
        shown = 0
        for polygon in polygons[:MOST_POLYGONS]:
            size = len(polygon.hull) + sum(map(len, polygon.holes))
            if n_vertices + size > MOST_VERTICES:
                break
            n_vertices += size
            shown += 1
            holes = "".join(f" hole {' '.join(map(place, hole))}" for hole in polygon.holes)
            lines.append(f"  polygon {' '.join(map(place, polygon.hull))}{holes}")
        if shown < len(polygons):
            lines.append(f"  {len(polygons) - shown} further polygons are left out")
    return "\n".join(lines)
