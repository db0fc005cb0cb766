"""The axis of human minutes: log2, with ticks that people have names for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import altair as alt

# What the axis of human minutes names, the most telling first: where two names do not fit side by
# side, the later one goes. Those outside a second to a day show only where the data reach.
MINUTE_TICKS = {
    "1 min": 1.0, "1 h": 60.0, "1 d": 1440.0, "1 s": 1 / 60, "15 min": 15.0, "4 h": 240.0,
    "15 s": 0.25, "4 min": 4.0, "16 h": 960.0, "1 wk": 10_080.0, "30 d": 43_200.0,
    "1 y": 525_600.0, "10 y": 5_256_000.0, "100 y": 52_560_000.0, "0.1 s": 1 / 600,
    "10 ms": 1 / 6000, "1 ms": 1 / 60_000,
}  # fmt: skip


def minutes_domain(minutes: Iterable[float | None]) -> tuple[float, float]:
    """Choose the ends of an axis of minutes: all positive values with room, eight octaves at least.

    Parameters
    ----------
    minutes : iterable of float or None
        What is not a positive number does not count.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> minutes_domain([1.0, 64.0, None])
    (0.5, 128.0)
    """
    found = [m for m in minutes if m is not None and math.isfinite(m) and m > 0]
    lo, hi = (math.log2(min(found)), math.log2(max(found))) if found else (0.0, 6.0)
    room = max(1.0, (8.0 - (hi - lo)) / 2)
    return 2.0 ** (lo - room), 2.0 ** (hi + room)


def minute_ticks(domain: tuple[float, float], pixels: float, gap: float) -> dict[str, float]:
    """Choose the names on an axis of minutes.

    Parameters
    ----------
    domain : tuple of float
        Its ends, in minutes.
    pixels : float
        Its length.
    gap : float
        Least distance of two names, in pixels.

    Returns
    -------
    dict of str to float
        Name to minutes, ascending.

    Examples
    --------
    >>> list(minute_ticks((1.0, 1440.0), 300, 20))
    ['1 min', '4 min', '15 min', '1 h', '4 h', '1 d']
    """
    per_octave = pixels / math.log2(domain[1] / domain[0])
    chosen: dict[str, float] = {}
    for name, minutes in MINUTE_TICKS.items():
        if not domain[0] <= minutes <= domain[1]:
            continue
        near = (abs(math.log2(minutes / other)) * per_octave for other in chosen.values())
        if all(distance >= gap for distance in near):
            chosen[name] = minutes
    return dict(sorted(chosen.items(), key=lambda tick: tick[1]))


def named_labels(ticks: dict[str, float], places: Sequence[float]) -> str:
    """Write the Vega expression that names the ticks of an axis.

    Parameters
    ----------
    ticks : dict
        Its keys are the names, ascending along the axis.
    places : sequence of float
        Where the ticks are, in the axis's own unit, ascending.

    Returns
    -------
    str

    Examples
    --------
    >>> named_labels({"1 min": 1, "1 h": 60}, [0.0, 4.0])
    "datum.value < 2.0 ? '1 min' : '1 h'"
    """
    middles = [(a + b) / 2 for a, b in pairwise(places)]
    names = [f"'{name}'" for name in ticks]
    steps = [f"datum.value < {m!r} ? {name}" for m, name in zip(middles, names, strict=False)]
    return " : ".join([*steps, *names[-1:]])


def minutes_scale(domain: tuple[float, float]) -> alt.Scale:
    """Make the log2 scale of human minutes."""
    return alt.Scale(type="log", base=2, domain=list(domain), nice=False)


def minutes_axis(
    domain: tuple[float, float], pixels: float, *, vertical: bool, title: str
) -> alt.Axis:
    """Make the axis of human minutes with its named ticks.

    Parameters
    ----------
    domain : tuple of float
        As given to `minutes_scale`.
    pixels : float
        Length.
    vertical : bool
    title : str

    Returns
    -------
    alt.Axis
    """
    ticks = minute_ticks(domain, pixels, 12 if vertical else 40)
    places = list(ticks.values())
    return alt.Axis(
        title=title,
        values=places,
        labelExpr=named_labels(ticks, places) or "''",
        # A page may draw the chart narrower than this, never lower.
        labelOverlap=False if vertical else "greedy",
    )


def minutes_text(minutes: float) -> str:
    """Write a length of time for people.

    Parameters
    ----------
    minutes : float

    Returns
    -------
    str
        Two or three significant digits, in seconds, minutes, hours, days or years.

    Examples
    --------
    >>> [minutes_text(m) for m in (0.05, 4.04, 118.2, 2880, float("inf"))]
    ['3 s', '4 min', '2 h', '2 d', 'without end']
    """
    if not math.isfinite(minutes):
        return "without end"
    units = (("s", 1 / 60), ("min", 1.0), ("h", 60.0), ("d", 1440.0), ("y", 525_600.0))
    name, size = next(
        (unit for unit in reversed(units) if minutes >= 0.95 * unit[1]), units[0]
    )  # fmt: skip
    return (
        f"{minutes / size:.2g} {name}" if minutes / size < 100 else f"{minutes / size:.0f} {name}"
    )
