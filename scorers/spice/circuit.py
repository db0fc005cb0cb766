"""What a circuit of the benchmark is: variables on grids, a netlist, a bench, and specifications."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from scorers.spice.netlist import Netlist

Sizing = Mapping[str, float]
Op = Literal[">", "<"]


class Spec(Struct, frozen=True):
    """What a metric must be: above or below a target."""

    metric: str
    op: Op
    target: float

    def __str__(self) -> str:
        return f"{self.metric} {self.op} {self.target:g}"


class Metric(Struct, frozen=True, kw_only=True):
    """A figure that a bench measures.

    Attributes
    ----------
    name, unit : str
    better : {">", "<"}
        In which direction it is better.
    calibrated : bool
        Own levels have a target for it; not for a window or what follows from another figure.
    """

    name: str
    unit: str
    better: Op
    calibrated: bool = True


class Curve(Struct, frozen=True, kw_only=True):
    """What is drawn of a simulated sizing, from the last analysis of its bench.

    Attributes
    ----------
    x : {"frequency", "time"}
        In Hz or s.
    y : mapping of str to str
        Vectors in ngspice's language by their label.
    title : str
        Of the y axis, with its unit.
    """

    x: Literal["frequency", "time"]
    y: Mapping[str, str]
    title: str


GAIN_CURVE = Curve(x="frequency", y={"gain": "gain_curve"}, title="gain (dB)")


class Circuit(Struct, frozen=True, kw_only=True):
    """A circuit.

    Attributes
    ----------
    name, title, kind : str
    variables : mapping of str to tuple of float
        Grids in the order shown: W* and L* in µm, R* in ohm, C* in pF.
    build : callable
        (Netlist, sizing) -> None: places devices, sources and loads.
    bench : str
        Analyses and measurements in ngspice's language; a metric counts when its marker is printed.
    fallback : str
        A slower bench for a sizing that the first could not measure; empty for none.
    curve : Curve, optional
        What to draw of a simulated sizing.
    metrics : tuple of Metric
    upstream : tuple of Spec
        The benchmark's own targets, its figure of merit left out.
    windows : tuple of Spec
        Specifications that stay at every level.
    bench_differs : bool
        The benchmark measures something else under these names.
    technologies : tuple of str
    words : str
        The bench in words, for the prompt.
    version : str
        Changes when figures may change.
    """

    name: str
    title: str
    kind: str
    variables: Mapping[str, tuple[float, ...]]
    build: Callable[[Netlist, Sizing], None]
    bench: str
    metrics: tuple[Metric, ...]
    upstream: tuple[Spec, ...]
    words: str
    fallback: str = ""
    curve: Curve | None = None
    windows: tuple[Spec, ...] = ()
    bench_differs: bool = True
    technologies: tuple[str, ...] = ("sky130", "demo", "sky130-full")
    version: str = "1"

    @property
    def n_points(self) -> int:
        """How many sizings there are."""
        return math.prod(len(grid) for grid in self.variables.values())

    @property
    def middle(self) -> dict[str, float]:
        """The sizing in the middle of all grids: index ``len // 2`` of each, sorted."""
        return {name: sorted(grid)[len(grid) // 2] for name, grid in self.variables.items()}


def grid(start: float, stop: float, step: float) -> tuple[float, ...]:
    """Give evenly spaced values, both ends included.

    Examples
    --------
    >>> grid(0.84, 2.52, 0.21)[:3], len(grid(0.84, 2.52, 0.21))
    ((0.84, 1.05, 1.26), 9)
    """
    count = round((stop - start) / step)
    return tuple(round(start + step * k, 10) for k in range(count + 1))


W9 = grid(0.84, 2.52, 0.21)
"""The nine widths that many of the circuits share, µm."""
