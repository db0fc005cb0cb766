"""A step as it is planned, before it is written and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from .part import Params, Part, Rim, Straight
from .records import Record, Vector


class Draft(NamedTuple):
    """A step as it is planned.

    Attributes
    ----------
    kinds : tuple of str
        What each record is.
    records : list of Record
        Not yet numbered.
    change : float
        Of the volume, closed form.
    cells, bands, rims, used
        Room that it takes.
    new_rims, new_edges
        Edges that it brings.
    """

    kinds: tuple[str, ...]
    records: list[Record]
    change: float
    cells: tuple[str, ...] = ()
    bands: tuple[str, ...] = ()
    rims: tuple[str, ...] = ()
    used: frozenset[Vector] = frozenset()
    new_rims: Mapping[str, Rim] = MappingProxyType({})
    new_edges: Mapping[str, Straight] = MappingProxyType({})

    def apply(self, part: Part) -> None:
        """Take the room and bring the edges."""
        for name in self.cells:
            del part.cells[name]
        for name in self.bands:
            del part.bands[name]
        for name in self.rims:
            del part.rims[name]
        part.used |= self.used
        part.rims |= self.new_rims
        part.edges |= self.new_edges


class Feature(NamedTuple):
    """A kind of step: how its sizes are drawn (None: no room), and how its records are made of them.

    `make` takes the number of the step, by which the new edges are named.
    """

    draw: Callable[[Part, Random], Params | None]
    make: Callable[[Part, Params, int], Draft]
