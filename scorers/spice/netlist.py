"""Writing a netlist from checked numbers: no text of a model ever enters it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Self

WIDEST = 100.0
"""Width of one transistor in µm; models end there, so wider ones are several side by side."""
_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")


class Named(float):
    """A number that remembers which variable it comes from, to write a netlist for reading.

    Examples
    --------
    >>> str(20 * Named(1.68, "W_load_base"))
    '{20*W_load_base}'
    """

    name: str

    def __new__(cls, value: float, name: str) -> Self:
        """Name a number."""
        made = super().__new__(cls, value)
        made.name = name
        return made

    def __mul__(self, factor: float) -> Named:
        """Scale it; the name tells by how much."""
        return Named(float(self) * factor, f"{factor:g}*{self.name}")

    __rmul__ = __mul__

    def __str__(self) -> str:
        """Write what it stands for."""
        return f"{{{self.name}}}"


class Netlist:
    """Devices between named nodes; ground is ``0``, bulks are at ground and at ``vdd``."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def n(
        self, d: str, g: str, s: str, w: float, length: float, *, m: int = 1, bulk: str = "0", low: bool = False
    ) -> None:  # fmt: skip
        """Place an n-channel transistor, `m` of width `w` and a length (µm) side by side."""
        self._transistor("nchl" if low else "nch", d, g, s, bulk, w, length, m)

    def p(
        self, d: str, g: str, s: str, w: float, length: float, *, m: int = 1, bulk: str = "vdd",
        low: bool = False,
    ) -> None:  # fmt: skip
        """Place a p-channel transistor; see `n`."""
        self._transistor("pchl" if low else "pch", d, g, s, bulk, w, length, m)

    def resistor(self, a: str, b: str, ohms: float) -> None:
        """Place a resistor."""
        self._add("r", a, b, value=ohms)

    def capacitor(self, a: str, b: str, farads: float) -> None:
        """Place a capacitor."""
        self._add("c", a, b, value=farads)

    def voltage(
        self, name: str, a: str, b: str, dc: float, ac: float = 0.0, pulse: str = ""
    ) -> None:
        """Place a voltage source ``vNAME``."""
        self._source("v", name, a, b, dc, ac, pulse)

    def current(self, name: str, a: str, b: str, amperes: float) -> None:
        """Place a current source ``iNAME``, which draws from `a` and gives to `b`."""
        self._source("i", name, a, b, amperes, 0.0, "")

    def line(self, text: str) -> None:
        """Add a line of our own, for what has no method here."""
        self._lines.append(text)

    def device(self, kind: str, nodes: tuple[str, ...], values: Mapping[str, float]) -> None:
        """Place one of the technology's other devices (`rpo`, `pnpv`)."""
        given = " ".join(f"{_named(name)}={number(value)}" for name, value in values.items())
        self._count += 1
        self._lines.append(f"x{self._count} {' '.join(map(_named, nodes))} {kind} {given}".rstrip())

    def text(self) -> str:
        """Give the devices, one a line."""
        return "\n".join(self._lines)

    def _transistor(
        self, kind: str, d: str, g: str, s: str, b: str, w: float, length: float, m: int
    ) -> None:
        if not (math.isfinite(w) and math.isfinite(length) and w > 0 and length > 0 and m >= 1):
            raise ValueError(f"a transistor of w={w}, l={length}, m={m}")
        if isinstance(w, Named):
            self.device(kind, (d, g, s, b), {"w": w, "l": length, "m": m})
            return
        # Widths are products with a factor; two decimals, as upstream writes them.
        w = round(w, 2)
        parts = math.ceil(w / WIDEST - 1e-9)
        self.device(kind, (d, g, s, b), {"w": w / parts, "l": length, "m": m * parts})

    def _add(self, letter: str, a: str, b: str, value: float) -> None:
        self._count += 1
        self._lines.append(f"{letter}{self._count} {_named(a)} {_named(b)} {number(value)}")

    def _source(
        self, letter: str, name: str, a: str, b: str, dc: float, ac: float, pulse: str
    ) -> None:
        wave = f" ac {number(ac)}" if ac else ""
        wave += f" {pulse}" if pulse else ""
        self._lines.append(f"{letter}{_named(name)} {_named(a)} {_named(b)} dc {number(dc)}{wave}")


def number(value: float) -> str:
    """Write a finite number as SPICE reads it.

    Raises
    ------
    ValueError
        It is not finite.

    Examples
    --------
    >>> number(1e-12), number(16.8)
    ('1e-12', '16.8')
    """
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value} is no number for a netlist")
    return str(value) if isinstance(value, Named) else f"{value:.12g}"


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a netlist")
    return name
