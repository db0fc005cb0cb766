"""The link to human minutes: how the human time of items follows their difficulty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from leaderboard.charts.common import HEIGHT, AnyChart, Theme, data, empty, finish, theme
from leaderboard.charts.minutes import minutes_axis, minutes_domain, minutes_scale

_SHAPES = ["circle", "square", "triangle-up", "diamond"]


class LinkRow(Struct, frozen=True, kw_only=True):
    """An item whose human time is known.

    Attributes
    ----------
    item : str
    b : float
        Difficulty.
    minutes : float
        Human time, in minutes.
    source : str
        Where the time comes from (a task or data set); "" for none.
    """

    item: str
    b: float
    minutes: float
    source: str = ""


class BandRow(Struct, frozen=True, kw_only=True):
    """What the link predicts at a difficulty: `irt.Link.predict` over a grid gives these.

    Attributes
    ----------
    b : float
    minutes : float
        Median.
    lo, hi : float or None
        Interval for one item's time.
    """

    b: float
    minutes: float
    lo: float | None = None
    hi: float | None = None


def link_plot(
    rows: Sequence[LinkRow],
    band: Sequence[BandRow] = (),
    *,
    level: float = 0.95,
    notes: Sequence[str] = (),
    dark: bool = False,
    title: str | None = "Human minutes against difficulty",
) -> AnyChart:
    """Draw the items with known human minutes, the link's line and its prediction band.

    Parameters
    ----------
    rows : sequence of LinkRow
        Items without positive minutes are left out, which the subtitle says.
    band : sequence of BandRow
        What the link predicts, at any difficulties.
    level : float
        Coverage of the band.
    notes : sequence of str
        Sentences for the subtitle: slope, R², level of the link.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> chart = link_plot([LinkRow(item="i", b=0.5, minutes=12.0)])
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'point'
    """
    shown = [row for row in rows if math.isfinite(row.minutes) and row.minutes > 0]
    if not shown:
        return empty(
            "No item of this fit has human minutes: abilities have no length in minutes.",
            dark=dark, title=title,
        )  # fmt: skip
    colours = theme(dark)
    ordered = sorted(band, key=lambda row: row.b)
    known = [row.minutes for row in shown]
    domain = minutes_domain([*known, *(v for r in ordered for v in (r.minutes, r.lo, r.hi))])
    words = [*notes]
    if any(row.lo is not None for row in band):
        words.append(f"Band: where {level * 100:g} % of the items of a difficulty should lie.")
    if left := len(rows) - len(shown):
        words.append(f"Left out: {left} without minutes above zero.")
    x = alt.X("b:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title="difficulty b", grid=False))
    axis = minutes_axis(domain, HEIGHT, vertical=True, title="human time")
    y = alt.Y("minutes:Q", scale=minutes_scale(domain), axis=axis)
    chart = alt.layer(*_band_layers(ordered, colours), _anchors(shown, colours))
    chart = chart.encode(x=x, y=y)
    return finish(chart, dark=dark, title=title, subtitle=words, height=HEIGHT)


def _band_layers(band: Sequence[BandRow], colours: Theme) -> list[alt.Chart]:
    if not band:
        return []
    base = alt.Chart(data(band))
    # The shade alone is too pale to see for everyone: its edges are lines.
    edge: dict[str, Any] = {"color": colours.orange, "strokeDash": [3, 3], "strokeWidth": 1}
    return [
        base.mark_area(color=colours.orange, opacity=0.15).encode(y=alt.Y("lo:Q"), y2="hi:Q"),
        base.mark_line(**edge).encode(y=alt.Y("lo:Q")),
        base.mark_line(**edge).encode(y=alt.Y("hi:Q")),
        base.mark_line(color=colours.orange, strokeWidth=2),
    ]


def _anchors(rows: Sequence[LinkRow], colours: Theme) -> alt.Chart:
    sources = sorted({row.source for row in rows})
    tooltip = [
        alt.Tooltip("item:N"),
        alt.Tooltip("b:Q", title="difficulty b", format=".3~f"),
        alt.Tooltip("minutes:Q", title="human minutes", format=".3~g"),
    ]
    points = alt.Chart(data(rows)).mark_point(size=28, color=colours.blue)
    # More sources than shapes are better not told apart at all.
    if not 2 <= len(sources) <= len(_SHAPES):
        plain: alt.Chart = points.encode(tooltip=tooltip)
        return plain
    tones = [colours.blue, colours.green, colours.purple, colours.grey]
    legend = alt.Legend(title=None, orient="top", direction="horizontal")
    ranges = {"color": tones[: len(sources)], "shape": _SHAPES[: len(sources)]}
    scales = {name: alt.Scale(domain=sources, range=values) for name, values in ranges.items()}
    told: alt.Chart = points.encode(
        color=alt.Color("source:N", scale=scales["color"], legend=legend),
        shape=alt.Shape("source:N", scale=scales["shape"], legend=legend),
        tooltip=[*tooltip, alt.Tooltip("source:N")],
    )
    return told
