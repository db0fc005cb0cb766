"""A layout drawn, with what a deck found on it."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.core.types import Picture
from scorers.drc.layout import BadLayoutError, Layout, read_layout
from scorers.drc.results import LayoutRun, Marker

# Okabe and Ito's colours, told apart by most eyes.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#F0E442")
_VIOLATION = "#D00000"
_WIDTH, _HEIGHT, _MARGIN, _LINE = 640.0, 420.0, 24.0, 18.0
_MOST_SHAPES = 400
_STEPS = (1, 2, 5)


def picture(
    gds: bytes,
    run: LayoutRun,
    labels: Sequence[int],
    categories: Sequence[str],
    layers: Mapping[str, Sequence[int]],
) -> Picture:
    """Draw a layout by layers, its violations in red, and what was right and wrong in words.

    Parameters
    ----------
    gds : bytes
    run : LayoutRun
        What the deck said of it.
    labels : sequence of int
        1 for each category that it violates.
    categories : sequence of str
    layers : mapping of str to (int, int)
        Names of the task's layers.
    """
    bits = {name: run.counts.get(name, 0) > 0 for name in categories}
    right = run.status == "ok" and all(
        bits[name] == bool(label) for name, label in zip(categories, labels, strict=True)
    )
    caption = "; ".join(
        f"{name}: {_said(run, bits[name])}, {'violated' if label else 'clean'} in truth"
        for name, label in zip(categories, labels, strict=True)
    )
    title = f"Layout {run.index}: {'right' if right else 'wrong'}"
    try:
        drawn = _svg(read_layout(gds), run, {tuple(at): name for name, at in layers.items()})
    except BadLayoutError as error:
        drawn = _words(str(error))
    return Picture(
        name=title, media_type="image/svg+xml", data=drawn.encode(), caption=_shown(caption)
    )


def _said(run: LayoutRun, fired: bool) -> str:
    if run.status != "ok":
        return f"the deck failed ({run.status})"
    return "found" if fired else "not found"


def _svg(layout: Layout, run: LayoutRun, names: Mapping[tuple[int, ...], str]) -> str:
    box = _around(layout, run.markers)
    scale = min(
        (_WIDTH - 2 * _MARGIN) / (box[2] - box[0]), (_HEIGHT - 2 * _MARGIN) / (box[3] - box[1])
    )

    spare = (_WIDTH - (box[2] - box[0]) * scale) / 2, (_HEIGHT - (box[3] - box[1]) * scale) / 2

    def at(point: tuple[float, float]) -> str:
        x = spare[0] + (point[0] - box[0]) * scale
        y = _HEIGHT - spare[1] - (point[1] - box[1]) * scale
        return f"{x:.2f},{y:.2f}"

    parts, legend, n = [], [], 0
    for k, (key, polygons) in enumerate(layout.layers.items()):
        colour = _COLOURS[k % len(_COLOURS)]
        legend.append((colour, f"{names.get(key, '')} {key[0]}/{key[1]}".strip(), len(polygons)))
        for polygon in polygons[: max(0, _MOST_SHAPES - n)]:
            n += 1
            rings = [polygon.hull, *polygon.holes]
            path = " ".join(f"M{' L'.join(map(at, ring))} Z" for ring in rings)
            parts.append(
                f'<path d="{path}" fill="{colour}" fill-opacity="0.35" fill-rule="evenodd" '
                f'stroke="{colour}" stroke-width="1"/>'
            )
    parts += [_marker(marker, at) for marker in run.markers]
    found = sorted({marker.category for marker in run.markers})
    rows = [
        (colour, f"{name} ({count})" if count > 1 else name) for colour, name, count in legend
    ] + [(_VIOLATION, f"violation of {_shown(name)}") for name in found]
    height = _HEIGHT + _LINE * (len(rows) + 1)
    parts.append(_bar(scale))
    parts += [
        f'<rect x="{_MARGIN}" y="{_HEIGHT + _LINE * i - 8}" width="12" height="12" fill="{colour}"/>'
        f'<text x="{_MARGIN + 20}" y="{_HEIGHT + _LINE * i + 2}">{html.escape(_shown(words))}</text>'
        for i, (colour, words) in enumerate(rows)
    ]
    return _whole(parts, height)


def _marker(marker: Marker, at: Callable[[tuple[float, float]], str]) -> str:
    look = f'fill="none" stroke="{_VIOLATION}" stroke-width="3"'
    parts = []
    for places in marker.points:
        ring = places
        if marker.kind == "box":
            (left, bottom), (right, top) = places
            ring = ((left, bottom), (right, bottom), (right, top), (left, top))
        closed = " Z" if marker.kind in ("polygon", "box") else ""
        parts.append(f'<path d="M{" L".join(map(at, ring))}{closed}" {look}/>')
    return "".join(parts)


def _around(layout: Layout, markers: Iterable[Marker]) -> tuple[float, float, float, float]:
    places = [p for marker in markers for ring in marker.points for p in ring]
    if layout.box is not None:
        places += [layout.box[:2], layout.box[2:]]
    if not places:
        places = [(0.0, 0.0)]
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    low, high = (min(xs), min(ys)), (max(xs), max(ys))
    # A layout of one line, or of nothing, has a place to stand too.
    spare = 0.05 * max(high[0] - low[0], high[1] - low[1]) or 1.0
    return low[0] - spare, low[1] - spare, high[0] + spare, high[1] + spare


def _bar(scale: float) -> str:
    """Draw a bar of a round length, µm, about a fifth of the picture."""
    target = _WIDTH / 5 / scale
    power = 10.0 ** math.floor(math.log10(target))
    length = max(step * power for step in _STEPS if step * power <= target)
    y, x = _HEIGHT - 6, _WIDTH - _MARGIN
    return (
        f'<path d="M{x - length * scale:.2f},{y} L{x},{y}" stroke="#444" stroke-width="3"/>'
        f'<text x="{x}" y="{y - 6}" text-anchor="end">{length:g} µm</text>'
    )


def _words(text: str) -> str:
    return _whole([f'<text x="{_MARGIN}" y="{_MARGIN}">{html.escape(_shown(text))}</text>'], 60)


def _whole(parts: Sequence[str], height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" '
        f'width="{_WIDTH:g}" height="{height:g}" font-family="sans-serif" font-size="13" fill="#222">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _shown(text: str) -> str:
    """Leave out what no XML may hold and what does not show, and end a long text."""
    kept = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return kept if len(kept) <= 200 else f"{kept[:200]}…"
