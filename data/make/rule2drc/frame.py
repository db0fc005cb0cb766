"""What an own item of Rule2DRC is made of: a rule in words, its deck, and layouts labelled by construction.

A family is a function from a `Draw` (threshold, layers, names) to an `Item`. Its layouts are drawn on a `Canvas` in
database units, and each says itself which categories it violates: no deck is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import klayout.db as db

Point = tuple[int, int]
Shapes = Callable[["Canvas"], "Canvas"]

LAYERS = (
    ("metal1", 8, 0),
    ("metal2", 10, 0),
    ("poly", 5, 0),
    ("active", 1, 0),
    ("nwell", 31, 2),
    ("metal3", 30, 4),
    ("cont", 6, 0),
    ("via1", 19, 0),
    ("via2", 29, 3),
    ("implant", 14, 7),
    ("gate", 12, 1),
    ("thick", 33, 5),
)
FAR = (63, 9)
"""A layer of no item."""


class Canvas:
    """A layout under construction; coordinates in database units."""

    def __init__(self, dbu: float) -> None:
        self.layout = db.Layout()
        self.layout.dbu = dbu
        self.top = self.layout.create_cell("TOP")

    def box(self, layer: Point, left: int, bottom: int, right: int, top: int) -> Canvas:
        """Draw a box."""
        self.top.shapes(self._layer(layer)).insert(db.Box(left, bottom, right, top))
        return self

    def polygon(self, layer: Point, points: Sequence[Point], hole: Sequence[Point] = ()) -> Canvas:
        """Draw a polygon, with a hole if there is one."""
        made = db.Polygon([db.Point(*p) for p in points])
        if hole:
            made.insert_hole([db.Point(*p) for p in hole])
        self.top.shapes(self._layer(layer)).insert(made)
        return self

    def ring(self, layer: Point, side: int, wall: int) -> Canvas:
        """Draw a square of a side with a square hole, as one polygon."""
        inner = side - wall
        return self.polygon(
            layer, [(0, 0), (0, side), (side, side), (side, 0)],
            [(wall, wall), (wall, inner), (inner, inner), (inner, wall)],
        )  # fmt: skip

    def placed(self, name: str, shapes: Shapes, *at: tuple[int, int], turn: int = 0) -> Canvas:
        """Draw in a cell of its own and place it, turned by so many quarters."""
        inner = Canvas(self.layout.dbu)
        inner.layout, inner.top = self.layout, self.layout.create_cell(name)
        shapes(inner)
        for x, y in at:
            self.top.insert(db.CellInstArray(inner.top.cell_index(), db.Trans(turn, False, x, y)))
        return self

    def bytes(self) -> bytes:
        """Write it as GDS, the same bytes every time."""
        options = db.SaveLayoutOptions()
        options.format = "GDS2"
        options.gds2_write_timestamps = False
        return bytes(self.layout.write_bytes(options))

    def _layer(self, layer: Point) -> int:
        return int(self.layout.layer(*layer))


@dataclass(frozen=True)
class Case:
    """A layout, and which categories it violates."""

    name: str
    label: tuple[int, ...]
    shapes: Shapes


@dataclass(frozen=True)
class Item:
    """A task."""

    family: str
    level: int
    dbu: float
    title: str
    text: str
    layers: dict[str, Point]
    rules: tuple[tuple[str, str], ...]
    checks: tuple[str, ...]
    cases: tuple[Case, ...]
    swaps: dict[str, tuple[str, str]] = field(default_factory=dict)
    more: tuple[str, ...] = ()

    @property
    def categories(self) -> tuple[str, ...]:
        """The names that a deck reports under."""
        return tuple(dict.fromkeys(category for _, category in self.rules))

    def deck(
        self, checks: Sequence[str] | None = None, layers: dict[str, Point] | None = None
    ) -> str:
        """Write a deck: the gold one, or one with other checks or layers."""
        known = self.layers if layers is None else layers
        lines = ["source($input)", f'report("{self.title}", $output)', ""]
        lines += [
            f"{name} = input({layer}, {datatype})" for name, (layer, datatype) in known.items()
        ]
        return "\n".join([*lines, "", *(self.checks if checks is None else checks), ""])

    @property
    def gold(self) -> str:
        """The deck that is right."""
        return self.deck()


class Draw:
    """What differs between the three items of a family."""

    def __init__(self, family: str, number: int, seed: int) -> None:
        self.family, self.number = family, number
        self.rng = Random(f"rule2drc/{seed}/{family}/{number}")
        self.dbu = 0.001
        self._layers = self.rng.sample(LAYERS, 4)
        # Each third of the items has names of its kind.
        self._marks = ("_", ".", ("-", "/", " ")[sum(map(ord, family)) % 3])

    def threshold(self, low: int, high: int, step: int = 10) -> int:
        """Draw a limit in database units."""
        return self.rng.randrange(low, high + 1, step)

    def layer(self, number: int) -> tuple[str, Point]:
        """Give one of the item's layers: name, and layer with datatype."""
        name, layer, datatype = self._layers[number]
        return name, (layer, datatype)

    def category(self, *words: str) -> str:
        """Join words to a name: plain, dotted, or with what a report has to quote."""
        return self._marks[self.number % 3].join(words).upper()

    def um(self, units: int) -> str:
        """Write a length in µm as a deck has it."""
        return f"{number(units * self.dbu)}.um"

    def say(self, units: int) -> str:
        """Write a length for people, in µm or nm by the draw."""
        value = units * self.dbu
        return f"{number(value)} µm" if self.number % 2 == 0 else f"{number(value * 1000)} nm"


def number(value: float) -> str:
    """Write a number without an exponent or a needless zero."""
    text = f"{value:.7f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def corners(limit: int) -> tuple[int, int, int]:
    """Give three diagonal steps around a Euclidean limit.

    The first is the last one below it (d times the square root of 2 < limit), the second the first at or above; the
    third lies above in that measure and below it in x and in y, so that a square measure sees a violation.
    """
    below = math.isqrt((limit * limit - 1) // 2)
    return below, below + 1, round(limit * 0.786)


def drawn(canvas: Canvas, *_: Canvas) -> Canvas:
    """Join several drawings, which are done by the time that this is called."""
    return canvas


def fixed(shapes: Callable[..., Canvas], *values: Any) -> Shapes:
    """Fix what a drawing takes beside the canvas."""
    return lambda canvas: shapes(canvas, *values)


def case(name: str, label: int | tuple[int, ...], shapes: Shapes) -> Case:
    """Make a layout with its label; one number is that of the only category."""
    return Case(name, label if isinstance(label, tuple) else (label,), shapes)
