"""What a deck did on its layouts: what every engine gives and every verdict reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

MOST_MARKERS = 50

LayoutStatus = Literal["ok", "error", "timeout", "crash", "no_report", "bad_report"]
MarkerKind = Literal["polygon", "edge", "edge_pair", "box", "text"]
Ring = tuple[tuple[float, float], ...]


class Marker(Struct, frozen=True, kw_only=True):
    """One violation, drawn.

    Attributes
    ----------
    category : str
    kind : MarkerKind
    points : tuple of tuple of (float, float)
        Places in µm: one ring or line, two lines of an edge pair.
    """

    category: str
    kind: MarkerKind
    points: tuple[Ring, ...]


class LayoutRun(Struct, frozen=True, kw_only=True):
    """What a deck said of one layout.

    Attributes
    ----------
    index : int
        The layout's position in the caller's order.
    status : LayoutStatus
        ``ok``: exit status 0 and a fresh, well-formed report. Nothing is read of any other.
    counts : dict of str to int
        Items by category, categories without items included.
    message : str
        Why it failed.
    seconds : float
    markers : tuple of Marker
        The first 50.
    """

    index: int
    status: LayoutStatus
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    message: str = ""
    seconds: float = 0.0
    markers: tuple[Marker, ...] = ()


class DeckRun(Struct, frozen=True, kw_only=True):
    """What a deck did on all its layouts.

    Attributes
    ----------
    runs : tuple of LayoutRun
        In the caller's order.
    engine : {"klayout", "regions"}
        Figures of the two are never mixed.
    version : str
        Of the engine.
    stateful : bool
        A layout's result was another one in a fresh process: the whole deck fails.
    starts : int
        Processes that it took.
    seconds : float
    isolation : mapping or None
        What was in force, JSON-ready.
    """

    runs: tuple[LayoutRun, ...]
    engine: Literal["klayout", "regions"]
    version: str
    stateful: bool = False
    starts: int = 0
    seconds: float = 0.0
    isolation: Mapping[str, Any] | None = None


class UnsupportedError(ValueError):
    """The deck uses what the subset interpreter does not know."""
