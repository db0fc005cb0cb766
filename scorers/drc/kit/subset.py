"""Carry out a deck of the subset on layouts, with KLayout's own geometry (klayout.db)."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import klayout.db as db

from .language import Binary, Call, Literal, Name, Node, Statement, Unsupported, parse

MOST_MARKERS = 50
_CHECKS = {
    "width": "width_check",
    "space": "space_check",
    "notch": "notch_check",
    "isolated": "isolated_check",
}
_PAIRS = {
    "separation": "separation_check", "sep": "separation_check", "overlap": "overlap_check",
    "enclosing": "enclosing_check", "enc": "enclosing_check",
}  # fmt: skip
_METRICS = {
    "projection": db.Metrics.Projection,
    "square": db.Metrics.Square,
    "euclidian": db.Metrics.Euclidian,
}
# `diagonal` takes in what is horizontal or vertical.
_ANGLES = {
    "ortho": db.Edges.OrthoEdges, "diagonal": db.Edges.OrthoDiagonalEdges,
    "diagonal_only": db.Edges.DiagonalEdges,
}  # fmt: skip
_WORDS = (*_METRICS, *_ANGLES)
_RELATIONS = ("inside", "not_inside", "outside", "not_outside", "overlapping", "not_overlapping")
_COUNTED = ("interacting", "not_interacting", "overlapping", "not_overlapping")
_UNITS = {"um": 1.0, "micron": 1.0, "nm": 1e-3, "mm": 1e3}
_AREAS = {"um2": 1.0, "micron2": 1.0, "nm2": 1e-6, "mm2": 1e6}
_BOOLEANS = {"&": "__and__", "|": "__or__", "-": "__sub__", "^": "__xor__", "+": "__add__"}


@dataclass(frozen=True)
class Length:
    """A length in µm; a bare integer is one in database units instead."""

    um: float


@dataclass(frozen=True)
class Area:
    """An area in µm²."""

    um2: float


@dataclass(frozen=True)
class Symbol:
    """An option that is named, such as `projection`, or made by a function, such as `tile_size`."""

    name: str
    args: tuple[Any, ...] = ()


@dataclass
class Findings:
    """What a deck has put out: items by category, and the first shapes."""

    counts: dict[str, int] = field(default_factory=dict)
    markers: list[dict[str, Any]] = field(default_factory=list)


class Failed(Exception):  # noqa: N818  it is what happened
    """The deck fails as it would in KLayout."""


def run(deck: str, layouts: list[str]) -> dict[str, Any]:
    """Run a deck on layouts, given as base64.

    Returns
    -------
    dict
        ``unsupported``: why it is not understood, or None; ``layouts``: for each a status, counts,
        markers and a message.
    """
    try:
        statements = parse(deck)
        return {"unsupported": None, "layouts": [_one(statements, data) for data in layouts]}
    except Unsupported as error:
        return {"unsupported": str(error), "layouts": []}


def _one(statements: list[Statement], data: str) -> dict[str, Any]:
    layout = db.Layout()
    try:
        layout.read_bytes(base64.b64decode(data), db.LoadLayoutOptions())
        if len(layout.top_cells()) != 1:
            raise Failed(f"{len(layout.top_cells())} top cells")
        deck = _Deck(layout)
        for statement in statements:
            deck.do(statement)
    except (Failed, RuntimeError) as error:
        return {"status": "error", "counts": {}, "markers": [], "message": str(error)[:500]}
    if deck.report is None:
        return {
            "status": "no_report",
            "counts": {},
            "markers": [],
            "message": "no report was written",
        }
    found = deck.report
    return {"status": "ok", "counts": found.counts, "markers": found.markers, "message": ""}


class _Deck:
    """A deck on one layout: its variables and its report."""

    def __init__(self, layout: Any) -> None:
        self._layout = layout
        self._dbu = layout.dbu
        self._names: dict[str, Any] = {}
        self._sourced = False
        self.report: Findings | None = None

    def do(self, statement: Statement) -> None:
        try:
            value = self._eval(statement.value)
        except (TypeError, ValueError, OverflowError) as error:
            # A number that the geometry does not take, such as a negative distance: KLayout may.
            raise Unsupported(statement.line, str(error).splitlines()[0]) from error
        if statement.target is not None:
            self._names[statement.target] = value

    def _eval(self, node: Node) -> Any:
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Name):
            if node.name in self._names:
                return self._names[node.name]
            return self._function(node.line, node.name, ())
        args = tuple(map(self._eval, node.args))
        if node.of is None:
            return self._function(node.line, node.name, args)
        return self._method(node, self._eval(node.of), args)

    def _binary(self, node: Binary) -> Any:
        left, right = self._eval(node.left), self._eval(node.right)
        if node.op == ".." and all(isinstance(v, int | float) for v in (left, right)):
            return Symbol("range", (float(left), float(right)))
        if isinstance(left, db.Region) and isinstance(right, db.Region) and node.op in _BOOLEANS:
            return getattr(left, _BOOLEANS[node.op])(right)
        raise Unsupported(node.line, f"{node.op!r} between these")

    def _function(self, line: int, name: str, args: tuple[Any, ...]) -> Any:
        if name in ("$input", "$output") and not args:
            return Symbol(name)
        if name == "source" and args == (Symbol("$input"),):
            self._sourced = True
            return None
        if (
            name == "report"
            and len(args) == 2
            and isinstance(args[0], str)
            and args[1] == Symbol("$output")
        ):
            self.report = Findings()
            return None
        if name == "input" and len(args) == 2 and all(type(a) is int for a in args):
            return self._input(line, *args)
        if name in _WORDS and not args:
            return Symbol(name)
        if name in ("tile_size", "tile_origin", "tile_count") and 1 <= len(args) <= 2:
            return Symbol(name, args)
        raise Unsupported(line, f"{name}{'(…)' if args else ''}")

    def _input(self, line: int, layer: int, datatype: int) -> Any:
        if not self._sourced:
            raise Unsupported(line, "input before source($input)")
        index = self._layout.find_layer(layer, datatype)
        if index is None:
            return db.Region()
        return db.Region(self._layout.top_cell().begin_shapes_rec(index))

    def _method(self, node: Call, of: Any, args: tuple[Any, ...]) -> Any:
        if type(of) in (int, float) and not args:
            if node.name in _UNITS:
                return Length(of * _UNITS[node.name])
            if node.name in _AREAS:
                return Area(of * _AREAS[node.name])
        if isinstance(of, db.Region | db.Edges | db.EdgePairs):
            if node.name == "output":
                return self._output(node, of, args)
            methods: dict[Any, Callable[..., Any]] = {
                db.Region: self._region,
                db.Edges: self._edges,
                db.EdgePairs: self._pairs,
            }
            made = methods[type(of)](node, of, args)
            if made is not None:
                return made
        raise Unsupported(node.line, f".{node.name}{'(…)' if args else ''}")

    def _region(self, node: Call, of: Any, args: tuple[Any, ...]) -> Any:
        name = node.name
        if name in _CHECKS and args:
            return self._check(node, getattr(of, _CHECKS[name]), (), args)
        if name in _PAIRS and len(args) > 1 and isinstance(args[0], db.Region):
            return self._check(node, getattr(of, _PAIRS[name]), args[:1], args[1:])
        if name in _COUNTED and args and isinstance(args[0], db.Region):
            counts = args[1:]
            if all(type(n) is int and n > 0 for n in counts) and len(counts) <= 2:
                return getattr(of, name)(args[0], *counts)
        if name in _RELATIONS and len(args) == 1 and isinstance(args[0], db.Region):
            return getattr(of, name)(args[0])
        if name == "sized" and len(args) == 1:
            return of.sized(self._units(node, args[0]), 2)
        if name in ("edges", "holes", "merged") and not args:
            return getattr(of, name)()
        if name == "raw" and not args:
            of.merged_semantics = False  # of the layer itself, for whatever is asked of it later
            return of
        if name in ("with_area", "without_area") and len(args) == 2:
            low, high = (None if a is None else self._area(node, a) for a in args)
            return of.with_area(low, high, name == "without_area")
        if name == "ongrid" and len(args) == 1:
            step = self._units(node, args[0])
            return of.grid_check(step, step)
        if name in ("with_density", "without_density"):
            return self._density(node, of, args, inside=name == "with_density")
        return None

    def _edges(self, node: Call, of: Any, args: tuple[Any, ...]) -> Any:
        name = node.name
        if name in ("with_length", "without_length") and len(args) == 2:
            low, high = (None if a is None else self._units(node, a) for a in args)
            return of.with_length(low, high, name == "without_length")
        kind = _ANGLES.get(args[0].name) if args and isinstance(args[0], Symbol) else None
        if name in ("with_angle", "without_angle") and len(args) == 1 and kind is not None:
            return of.with_angle(kind, name == "without_angle")
        return None

    def _pairs(self, node: Call, of: Any, args: tuple[Any, ...]) -> Any:
        return of.polygons() if node.name == "polygons" and not args else None

    def _check(self, node: Call, check: Any, other: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
        """Call a check of distances; a metric is the only option that is known."""
        metric = db.Metrics.Euclidian
        for option in args[1:]:
            if not isinstance(option, Symbol) or option.name not in _METRICS:
                raise Unsupported(node.line, f"an option of {node.name}")
            metric = _METRICS[option.name]
        return check(*other, self._units(node, args[0]), False, metric)

    def _density(self, node: Call, of: Any, args: tuple[Any, ...], *, inside: bool) -> Any:
        """Give the tiles whose covered share lies inside (or outside) a closed range.

        A single tile is refused: KLayout 0.28.5 gives nothing for it, whatever its density.
        """
        given = {a.name: a.args for a in args if isinstance(a, Symbol)}
        if set(given) != {"range", "tile_size", "tile_origin", "tile_count"} or len(given) != len(
            args
        ):
            raise Unsupported(
                node.line, f"{node.name} without tile_size, tile_origin and tile_count"
            )
        (low, high), size, origin = given["range"], given["tile_size"], given["tile_origin"]
        width, height = (self._units(node, s) for s in (size * 2)[:2])
        left, bottom = (self._units(node, s) for s in (origin * 2)[:2])
        n_x, n_y = given["tile_count"] if len(given["tile_count"]) == 2 else (0, 0)
        if not (type(n_x) is type(n_y) is int and 1 < n_x * n_y <= 10_000 and width > 0 < height):
            raise Unsupported(node.line, "these tiles")
        if not of.merged_semantics:
            raise Unsupported(node.line, "the density of a raw layer")
        found, whole = db.Region(), of.merged()
        for x in range(n_x):
            for y in range(n_y):
                tile = db.Box(width, height).moved(
                    left + width * x + width // 2, bottom + height * y + height // 2
                )
                share = (whole & db.Region(tile)).area() / (width * height)
                if (low <= share <= high) == inside:
                    found.insert(tile)
        return found

    def _output(self, node: Call, of: Any, args: tuple[Any, ...]) -> None:
        if not 1 <= len(args) <= 2 or not all(isinstance(a, str) for a in args):
            raise Unsupported(node.line, "output without a name in quotes")
        if self.report is None:
            raise Failed("output before report")
        name = args[0]
        self.report.counts[name] = self.report.counts.get(name, 0) + of.count()
        for shape in of.each():
            if len(self.report.markers) >= MOST_MARKERS:
                break
            self.report.markers.append({"category": name, **_drawn(shape, self._dbu)})

    def _units(self, node: Call, value: Any) -> int:
        """Give a length in database units: a float and what has a unit is in µm, an integer is as it is."""
        if isinstance(value, int):
            return value
        um: Any = value.um if isinstance(value, Length) else value
        if not isinstance(um, float) or not math.isfinite(um) or abs(um) > 1e6:
            raise Unsupported(node.line, f"a length of {node.name}")
        units: int = math.floor(um / self._dbu + 0.5)
        return units

    def _area(self, node: Call, value: Any) -> int:
        if isinstance(value, int):
            return value
        um2: Any = value.um2 if isinstance(value, Area) else value
        if not isinstance(um2, float) or not math.isfinite(um2) or abs(um2) > 1e12:
            raise Unsupported(node.line, f"an area of {node.name}")
        units: int = math.floor(um2 / self._dbu**2 + 0.5)
        return units


def _drawn(shape: Any, dbu: float) -> dict[str, Any]:
    def line(edge: Any) -> list[tuple[float, float]]:
        return [(edge.p1.x * dbu, edge.p1.y * dbu), (edge.p2.x * dbu, edge.p2.y * dbu)]

    if isinstance(shape, db.EdgePair):
        return {"kind": "edge_pair", "points": [line(shape.first), line(shape.second)]}
    if isinstance(shape, db.Edge):
        return {"kind": "edge", "points": [line(shape)]}
    return {
        "kind": "polygon",
        "points": [[(p.x * dbu, p.y * dbu) for p in shape.each_point_hull()]],
    }
