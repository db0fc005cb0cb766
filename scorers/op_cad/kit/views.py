"""Pictures of solids by numpy alone: a depth buffer, flat shading, edges; the same bytes on every machine.

VTK is not used: without a display it needs EGL or OSMesa, and else ends the process.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]
VIEWS: tuple[tuple[float, float], ...] = (
    (45, 30), (45, 120), (45, 210), (45, 300), (-35.264, 45), (-35.264, 225), (0, 0), (0, 90), (90, 0),
)  # fmt: skip
"""Elevation and azimuth of each view in degrees; from above, up is +Y."""
SIZE = (320, 240)
_MARGIN = 0.92
_LINE = (40, 40, 40)
_LIGHT = np.array([0.35, 0.25, 0.9])


class Mesh(NamedTuple):
    """Triangles of one colour, and lines that are drawn on them.

    Attributes
    ----------
    vertices : ndarray of float, shape (n, 3)
    triangles : ndarray of int, shape (m, 3)
    colour : (int, int, int)
    lines : sequence of ndarray, shape (k, 3)
    """

    vertices: Floats
    triangles: npt.NDArray[np.int64]
    colour: tuple[int, int, int]
    lines: Sequence[Floats] = ()


def render(
    meshes: Sequence[Mesh], views: Sequence[tuple[float, float]] = VIEWS,
    size: tuple[int, int] = SIZE, columns: int = 3,
) -> Image:  # fmt: skip
    """Draw meshes from several sides, all with one scale and one centre.

    Parameters
    ----------
    meshes : sequence of Mesh
    views : sequence of (float, float)
        Elevation and azimuth, degrees.
    size : (int, int)
        Width and height of a view in pixels.
    columns : int

    Returns
    -------
    ndarray of uint8, shape (rows * height, columns * width, 3)
    """
    points = np.concatenate([mesh.vertices for mesh in meshes]) if meshes else np.zeros((1, 3))
    low, high = points.min(axis=0), points.max(axis=0)
    centre = (low + high) / 2
    reach = float(np.linalg.norm(high - low)) / 2 or 1.0
    scale = _MARGIN * min(size) / 2 / reach
    drawn = [_view(meshes, view, size, centre, scale) for view in views]
    while len(drawn) % columns:
        drawn.append(np.full((size[1], size[0], 3), 255, np.uint8))
    rows = [np.concatenate(drawn[k : k + columns], axis=1) for k in range(0, len(drawn), columns)]
    return np.concatenate(rows, axis=0)


def png(image: Image) -> bytes:
    """Write an image as PNG, eight bits a colour."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )


def axes(elevation: float, azimuth: float) -> Floats:
    """Give a camera's axes: right, up, and towards it, as rows.

    Examples
    --------
    >>> axes(90, 0).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    e, a = np.radians(elevation), np.radians(azimuth)
    if abs(elevation) == 90:
        sign = np.sign(elevation)
        return np.array([[1.0, 0, 0], [0, sign, 0], [0, 0, sign]])
    towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def _view(
    meshes: Sequence[Mesh],
    view: tuple[float, float],
    size: tuple[int, int],
    centre: Floats,
    scale: float,
) -> Image:
    width, height = size
    image = np.full((height, width, 3), 255, np.uint8)
    depth = np.full((height, width), -np.inf)
    camera = axes(*view)
    for mesh in meshes:
        seen = (mesh.vertices - centre) @ camera.T
        x = width / 2 + seen[:, 0] * scale
        y = height / 2 - seen[:, 1] * scale
        _fill(image, depth, np.stack([x, y, seen[:, 2]], axis=1), mesh, camera)
    near = 2.5 / scale
    for mesh in meshes:
        for line in mesh.lines:
            seen = (line - centre) @ camera.T
            x = width / 2 + seen[:, 0] * scale
            y = height / 2 - seen[:, 1] * scale
            _stroke(image, depth, np.stack([x, y, seen[:, 2]], axis=1), near)
    return image


def _fill(image: Image, depth: Floats, corners: Floats, mesh: Mesh, camera: Floats) -> None:
    """Fill a mesh's triangles, each pixel that it covers and where nothing nearer was drawn."""
    a, b, c = (corners[mesh.triangles[:, k]] for k in range(3))
    world = [mesh.vertices[mesh.triangles[:, k]] for k in range(3)]
    normals = np.cross(world[1] - world[0], world[2] - world[0])
    lengths = np.linalg.norm(normals, axis=1)
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    keep = (lengths > 0) & (np.abs(area) > 1e-9)
    a, b, c, normals, area = (
        a[keep],
        b[keep],
        c[keep],
        normals[keep] / lengths[keep, None],
        area[keep],
    )
    light = _LIGHT / np.linalg.norm(_LIGHT)
    facing = np.abs(normals @ camera[2])
    shade = 0.45 + 0.35 * np.abs(normals @ light) + 0.2 * facing
    colours = np.clip(np.outer(shade, mesh.colour), 0, 255).astype(np.uint8)
    height, width = depth.shape
    low = np.floor(np.minimum(np.minimum(a, b), c)[:, :2] - 0.5).astype(int)
    high = np.ceil(np.maximum(np.maximum(a, b), c)[:, :2] + 0.5).astype(int)
    low = np.clip(low, 0, [width, height])
    high = np.clip(high, 0, [width, height])
    for k in range(len(a)):
        x0, y0 = low[k]
        x1, y1 = high[k]
        if x1 <= x0 or y1 <= y0:
            continue
        px = np.arange(x0, x1) + 0.5
        py = (np.arange(y0, y1) + 0.5)[:, None]
        u = ((px - a[k, 0]) * (c[k, 1] - a[k, 1]) - (py - a[k, 1]) * (c[k, 0] - a[k, 0])) / area[k]
        v = ((b[k, 0] - a[k, 0]) * (py - a[k, 1]) - (b[k, 1] - a[k, 1]) * (px - a[k, 0])) / area[k]
        z = a[k, 2] + u * (b[k, 2] - a[k, 2]) + v * (c[k, 2] - a[k, 2])
        window = depth[y0:y1, x0:x1]
        inside = (u >= 0) & (v >= 0) & (u + v <= 1) & (z > window)
        window[inside] = z[inside]
        image[y0:y1, x0:x1][inside] = colours[k]


def _stroke(image: Image, depth: Floats, line: Floats, near: float) -> None:
    """Draw a line where nothing is clearly in front of it."""
    height, width = depth.shape
    for start, end in pairwise(line):
        steps = int(np.ceil(np.abs(end - start)[:2].max())) * 2 + 1
        at = start + np.linspace(0, 1, steps)[:, None] * (end - start)
        x, y = np.floor(at[:, 0]).astype(int), np.floor(at[:, 1]).astype(int)
        good = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        x, y, z = x[good], y[good], at[good, 2]
        seen = z >= depth[y, x] - near
        image[y[seen], x[seen]] = _LINE
