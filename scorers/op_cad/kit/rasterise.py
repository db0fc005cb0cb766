"""Pictures of meshes by numpy alone: orthographic, depth buffer, flat shading, edges drawn where seen.

VTK is not used: without a display it needs EGL or OSMesa, and else ends the process. No sum here goes
through BLAS, whose order of adding depends on the machine.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Image: TypeAlias = npt.NDArray[np.uint8]

VIEWS: tuple[tuple[float, float], ...] = (
    (45, 30), (45, 120), (45, 210), (45, 300), (-35.264, 45), (-35.264, 225), (0, 0), (0, 90), (90, 0),
)  # fmt: skip
"""Elevation and azimuth of each view in degrees; from above, up is +Y, else +Z."""
SIZE = (320, 240)
"""Width and height of a view in pixels."""

_MARGIN = 0.92
_GLASS = 0.4  # how much of a faint mesh is seen
_LINE = 0.2  # an edge's brightness beside its mesh's colour
# Right, down and towards the camera: from the upper left, so that what faces the camera is lit.
_LIGHT = (-0.37, -0.56, 0.74)
# How far behind a surface an edge is still seen, in pixels: a surface is known at pixels' centres only.
_NEAR, _NEAR_SLOPE, _STEEP = 0.75, 1.5, 4.0


class Mesh(NamedTuple):
    """Triangles of one colour, and the edges that are drawn on them.

    Attributes
    ----------
    vertices : ndarray of float, shape (n, 3)
    triangles : ndarray of int, shape (m, 3)
    colour : (int, int, int)
        Red, green and blue, 0 to 255, of a face that the light falls on.
    edges : sequence of ndarray, shape (k, 3)
        Polylines.
    """

    vertices: Floats
    triangles: Ints
    colour: tuple[int, int, int]
    edges: Sequence[Floats] = ()


class _Layer(NamedTuple):
    """A view as it is drawn: colours, how near each pixel is, and how steep its surface."""

    image: Image
    depth: Floats
    slope: Floats


class _Scene(NamedTuple):
    """All meshes in one: corners (m, 3, 3) and colours of triangles, ends and colours of lines."""

    corners: Floats
    colours: Floats
    starts: Floats
    ends: Floats
    inks: Floats


def render(
    meshes: Sequence[Mesh],
    views: Sequence[tuple[float, float]] = VIEWS,
    size: tuple[int, int] = SIZE,
    columns: int = 3,
    *,
    faint: Sequence[Mesh] = (),
    around: Sequence[Mesh] | None = None,
) -> Image:
    """Draw meshes from several sides, all with one scale and one centre.

    Parameters
    ----------
    meshes : sequence of Mesh
    views : sequence of (float, float)
        Elevation and azimuth in degrees, row by row.
    size : (int, int)
        Width and height of a view in pixels.
    columns : int
        Views in a row.
    faint : sequence of Mesh
        Drawn as if of glass, around or in front of `meshes`.
    around : sequence of Mesh, optional
        What scale and centre are chosen for; by default all that is drawn.

    Returns
    -------
    ndarray of uint8, shape (rows * height, columns * width, 3)

    Examples
    --------
    >>> render([]).shape
    (720, 960, 3)
    """
    cameras = [axes(*view) for view in views]
    centre, scale = _frame([*meshes, *faint] if around is None else around, cameras, size)
    blank = np.full((size[1], size[0], 3), 255, np.uint8)
    solid, before = _scene(meshes), _scene(faint)
    drawn = []
    for camera in cameras:
        layer = _draw(solid, camera, size, centre, scale)
        if faint:
            glass = _draw(before, camera, size, centre, scale)
            drawn.append(_behind_glass(layer, glass))
        else:
            drawn.append(layer.image)
    drawn += [blank] * (-len(drawn) % columns)
    rows = [np.concatenate(drawn[k : k + columns], axis=1) for k in range(0, len(drawn), columns)]
    return np.concatenate(rows, axis=0)


def png(image: Image) -> bytes:
    """Write an image as PNG, eight bits a colour (RFC 2083).

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    """
    height, width, _ = image.shape
    # A zero before each row: it is stored as it is, no filter.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        checked = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checked)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def axes(elevation: float, azimuth: float) -> Floats:
    """Give a camera's axes: right, up, and towards it, as rows.

    Parameters
    ----------
    elevation, azimuth : float
        Degrees; the azimuth is counted from +X towards +Y.

    Returns
    -------
    ndarray of float, shape (3, 3)

    Examples
    --------
    >>> axes(90, 0).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if abs(elevation) == 90:
        side = math.copysign(1.0, elevation)
        return np.array([[side, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, side]])
    e, a = math.radians(elevation), math.radians(azimuth)
    return np.array([
        [-math.sin(a), math.cos(a), 0.0],
        [-math.sin(e) * math.cos(a), -math.sin(e) * math.sin(a), math.cos(e)],
        [math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)],
    ])  # fmt: skip


def _frame(
    meshes: Sequence[Mesh], cameras: Sequence[Floats], size: tuple[int, int]
) -> tuple[Floats, float]:
    """Choose the centre, and the largest scale with which every view holds all of it."""
    points = np.concatenate([np.zeros((0, 3)), *(mesh.vertices for mesh in meshes)])
    if not len(points):
        return np.zeros(3), 1.0
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    scales = []
    for camera in cameras:
        reach = np.abs(_turned(points - centre, camera)).max(axis=0)
        scales += [side / 2 / r for side, r in zip(size, reach, strict=False) if r > 0]
    return centre, _MARGIN * min(scales, default=1.0)


def _turned(points: Floats, camera: Floats) -> Floats:
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    return np.stack([x * row[0] + y * row[1] + z * row[2] for row in camera], axis=-1)


def _scene(meshes: Sequence[Mesh]) -> _Scene:
    none = np.zeros((0, 3))
    lines = [(line, mesh.colour) for mesh in meshes for line in mesh.edges]
    counts = [len(mesh.triangles) for mesh in meshes]
    parts = [max(0, len(line) - 1) for line, _ in lines]
    return _Scene(
        np.concatenate([np.zeros((0, 3, 3)), *(mesh.vertices[mesh.triangles] for mesh in meshes)]),
        _coloured([mesh.colour for mesh in meshes], counts),
        np.concatenate([none, *(line[:-1] for line, _ in lines)]),
        np.concatenate([none, *(line[1:] for line, _ in lines)]),
        _LINE * _coloured([colour for _, colour in lines], parts),
    )


def _coloured(colours: Sequence[tuple[int, int, int]], counts: Sequence[int]) -> Floats:
    return np.repeat(np.array(colours, float).reshape(-1, 3), counts, axis=0)


def _draw(
    scene: _Scene, camera: Floats, size: tuple[int, int], centre: Floats, scale: float
) -> _Layer:
    width, height = size
    layer = _Layer(
        np.full((height, width, 3), 255, np.uint8),
        np.full((height, width), -np.inf),
        np.zeros((height, width)),
    )

    def placed(points: Floats) -> Floats:
        """Give pixels to the right and down, and towards the camera in the same unit."""
        seen = _turned(points - centre, camera) * scale
        x, y = width / 2 + seen[..., 0], height / 2 - seen[..., 1]
        return np.stack([x, y, seen[..., 2]], axis=-1)

    _fill(layer, placed(scene.corners), scene.colours)
    _stroke(layer, placed(scene.starts), placed(scene.ends), scene.inks)
    return layer


def _fill(layer: _Layer, corners: Floats, colours: Floats) -> None:
    """Fill triangles, each pixel whose centre is in one; the nearest is seen, the first of equals."""
    height, width = layer.depth.shape
    # Down, then right: two triangles then find the same crossings on a side that they share.
    order = np.lexsort((corners[:, :, 0], corners[:, :, 1]), axis=-1)
    corners = np.take_along_axis(corners, order[:, :, None], axis=1)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    broad = np.abs(normals[:, 2]) > 1e-9  # not seen exactly from its side
    corners, normals, colours = corners[broad], normals[broad], colours[broad]
    tilt = -normals[:, :2] / normals[:, 2:]  # how much nearer, one pixel to the right and down
    lit = _shaded(normals, colours)

    top, middle, bottom = corners[:, 0], corners[:, 1], corners[:, 2]
    first, last = _centres(top[:, 1], bottom[:, 1], height)
    of, row = _spread(first, last)
    y = row.astype(np.float64) + 0.5
    upper = (y < middle[of, 1])[:, None]
    long = _crossing(top[of], bottom[of], y)
    short = _crossing(
        np.where(upper, top[of], middle[of]), np.where(upper, middle[of], bottom[of]), y
    )
    first, last = _centres(np.minimum(long, short), np.maximum(long, short), width)
    span, column = _spread(first, last)
    of, row = of[span], row[span]

    z = top[of, 2] + tilt[of, 0] * (column + 0.5 - top[of, 0])
    z += tilt[of, 1] * (row + 0.5 - top[of, 1])
    # A sliver's tilt is not known well, its corners are.
    near, far = corners[:, :, 2].max(axis=1), corners[:, :, 2].min(axis=1)
    z = np.clip(z, far[of], near[of])

    pixel = row * width + column
    depth = layer.depth.reshape(-1)
    np.maximum.at(depth, pixel, z)
    nearest = z == depth[pixel]
    owner = np.full(height * width, len(corners))
    np.minimum.at(owner, pixel[nearest], of[nearest])
    covered = owner < len(corners)
    layer.image.reshape(-1, 3)[covered] = lit[owner[covered]]
    layer.slope.reshape(-1)[covered] = np.abs(tilt).sum(axis=1)[owner[covered]]


def _shaded(normals: Floats, colours: Floats) -> Image:
    """Light faces by Lambert's law over an even light; either side of a face is the same."""
    length = np.sqrt((normals**2).sum(axis=1)) * np.sign(normals[:, 2])
    x, y, z = _LIGHT
    facing = (normals[:, 0] * x + normals[:, 1] * y + normals[:, 2] * z) / length
    shade = 0.5 + 0.5 * np.maximum(facing, 0)
    lit: Image = np.clip(colours * shade[:, None], 0, 255).astype(np.uint8)
    return lit


def _stroke(layer: _Layer, starts: Floats, ends: Floats, colours: Floats) -> None:
    """Draw straight lines, one pixel wide, where nothing is clearly in front of them."""
    height, width = layer.depth.shape
    steps = np.ceil(np.abs(ends - starts)[:, :2].max(axis=1, initial=0)).astype(np.int64) + 1
    of, step = _spread(np.zeros_like(steps), steps + 1)
    at = starts[of] + (step / steps[of])[:, None] * (ends - starts)[of]
    x, y = np.floor(at[:, 0]).astype(np.int64), np.floor(at[:, 1]).astype(np.int64)
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    x, y, z, of = x[inside], y[inside], at[inside, 2], of[inside]
    behind = _NEAR + _NEAR_SLOPE * np.minimum(layer.slope[y, x], _STEEP)
    seen = z >= layer.depth[y, x] - behind
    layer.image[y[seen], x[seen]] = colours[of[seen]].astype(np.uint8)


def _behind_glass(layer: _Layer, glass: _Layer) -> Image:
    """Lay what is faint over what is solid, where it is in front of it."""
    # What is solid and lies in the glass's own surface keeps its colour.
    behind = _NEAR + _NEAR_SLOPE * np.minimum(glass.slope, _STEEP)
    front = (glass.depth - behind > layer.depth) | np.isneginf(layer.depth)
    mixed = (1 - _GLASS) * layer.image + _GLASS * glass.image
    return np.where(front[:, :, None], mixed, layer.image).astype(np.uint8)


def _centres(low: Floats, high: Floats, size: int) -> tuple[Ints, Ints]:
    """Give the pixels whose centre lies in [low, high), as first and after the last."""
    first = np.clip(np.ceil(low - 0.5), 0, size).astype(np.int64)
    last = np.clip(np.ceil(high - 0.5), 0, size).astype(np.int64)
    return first, np.maximum(first, last)


def _spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Write ranges out in a row: which range each number is of, and the numbers."""
    counts = last - first
    of = np.repeat(np.arange(len(counts)), counts)
    begin = np.cumsum(counts) - counts
    return of, first[of] + np.arange(len(of)) - begin[of]


def _crossing(start: Floats, end: Floats, y: Floats) -> Floats:
    """Give where lines from start down to end cross rows."""
    share = (y - start[:, 1]) / (end[:, 1] - start[:, 1])
    return start[:, 0] + share * (end[:, 0] - start[:, 0])
