"""Items of a task: how hard they are, and how scores differ between categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from leaderboard.charts.common import (
    ROW_HEIGHT,
    WIDTH,
    AnyChart,
    counted,
    data,
    empty,
    finish,
    natural_sorted,
    row_order,
    theme,
)
from leaderboard.charts.minutes import minutes_axis, minutes_scale

_HEIGHT = 240
_MOST_BARS = 30


class DifficultyRow(Struct, frozen=True, kw_only=True):
    """An item with its difficulty.

    Attributes
    ----------
    item : str
    b : float or None
        Difficulty on the fit's scale.
    minutes : float or None
        Human minutes, known or predicted by the link.
    """

    item: str
    b: float | None
    minutes: float | None = None


class CategoryRow(Struct, frozen=True, kw_only=True):
    """A category of items with a score.

    Attributes
    ----------
    category : str
        One each.
    score : float
    lo, hi : float or None
        Interval of `score`.
    n : int
        Items.
    """

    category: str
    score: float
    lo: float | None = None
    hi: float | None = None
    n: int


class Bin(Struct, frozen=True):
    """A bar of a histogram: `n` values in [lo, hi)."""

    lo: float
    hi: float
    n: int


def bins(values: Sequence[float]) -> list[Bin]:
    """Count values in bins of equal width: the least of ¼, ½, 1, 2, 4, … that gives 30 at most.

    Parameters
    ----------
    values : sequence of float
        Finite.

    Returns
    -------
    list of Bin
        Ascending, without gaps.

    Examples
    --------
    >>> [(one.lo, one.hi, one.n) for one in bins([0.0, 0.1, 0.25, 0.6])]
    [(0.0, 0.25, 2), (0.25, 0.5, 1), (0.5, 0.75, 1)]
    """
    if not values:
        return []
    width = 0.25
    while (max(values) - min(values)) / width > _MOST_BARS - 1:
        width *= 2
    places = [math.floor(value / width) for value in values]
    counts = {place: places.count(place) for place in set(places)}
    return [
        Bin(place * width, (place + 1) * width, counts.get(place, 0))
        for place in range(min(places), max(places) + 1)
    ]


def difficulty_histogram(
    rows: Sequence[DifficultyRow],
    *,
    in_minutes: bool = False,
    measure: str = "difficulty b",
    dark: bool = False,
    title: str | None = "Difficulty of the items",
) -> AnyChart:
    """Draw how many items there are of each difficulty.

    Parameters
    ----------
    rows : sequence of DifficultyRow
        Items without the value are left out, which the subtitle says.
    in_minutes : bool
        Over human minutes, on a log2 axis.
    measure : str
        Names the axis of difficulties that come from no fit.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> chart = difficulty_histogram([DifficultyRow(item="i", b=0.1)])
    >>> chart.to_dict()["encoding"]["x"]["axis"]["title"]
    'difficulty b'
    """
    if in_minutes:
        known = [row.minutes for row in rows if row.minutes is not None and row.minutes > 0]
        values = [math.log2(value) for value in known if math.isfinite(value)]
    else:
        values = [row.b for row in rows if row.b is not None and math.isfinite(row.b)]
    if not values:
        what = "human minutes" if in_minutes else "difficulty"
        sentence = f"No item has a {what}: `harness fit` estimates it."
        if in_minutes:
            sentence = "No item has human minutes: the fit has no link to human time."
        return empty(sentence, dark=dark, title=title)
    found = bins(values)
    if in_minutes:
        found = [Bin(2.0**one.lo, 2.0**one.hi, one.n) for one in found]
    most = max(one.n for one in found)
    words = f"{counted(len(values), 'item')}."
    if left := len(rows) - len(values):
        words += f" {left:,} without {'human minutes' if in_minutes else 'a difficulty'} left out."
    bars: alt.Chart = (
        alt.Chart(data(found))
        .mark_bar(color=theme(dark).blue, stroke=theme(dark).background, strokeWidth=1)
        .encode(
            x=_bar_axis(found, measure, in_minutes=in_minutes),
            x2="hi:Q",
            y=alt.Y(
                "n:Q",
                scale=alt.Scale(domain=[0, most], nice=True),
                axis=alt.Axis(title="items", tickCount=min(5, most), format="d"),
            ),
            y2=alt.datum(0),
            tooltip=[
                alt.Tooltip("lo:Q", title="from", format=".3~g"),
                alt.Tooltip("hi:Q", title="to", format=".3~g"),
                alt.Tooltip("n:Q", title="items"),
            ],
        )
    )
    return finish(bars, dark=dark, title=title, subtitle=words, height=_HEIGHT)


def _bar_axis(found: Sequence[Bin], measure: str, *, in_minutes: bool) -> alt.X:
    lo, hi = found[0].lo, found[-1].hi
    if not in_minutes:
        scale = alt.Scale(domain=[lo, hi], nice=False, zero=False)
        return alt.X("lo:Q", scale=scale, axis=alt.Axis(title=measure, grid=False))
    # An axis of a few octaves at least: shorter ones have no named tick.
    room = max(0.0, (6.0 - math.log2(hi / lo)) / 2)
    domain = (lo / 2.0**room, hi * 2.0**room)
    axis = minutes_axis(domain, WIDTH, vertical=False, title="human time")
    return alt.X("lo:Q", scale=minutes_scale(domain), axis=axis)


def category_bars(
    rows: Sequence[CategoryRow],
    *,
    sort: Sequence[str] | None = None,
    metric: str = "score",
    level: float = 0.95,
    dark: bool = False,
    title: str | None = "Scores by category",
) -> AnyChart:
    """Draw the score of each category as a bar with its interval, from 0 to 1.

    Parameters
    ----------
    rows : sequence of CategoryRow
    sort : sequence of str or None
        Categories from top to bottom; by name where None.
    metric : str
        Names the axis.
    level : float
        Coverage of the intervals.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Raises
    ------
    ValueError
        When two rows have one category.

    Examples
    --------
    >>> chart = category_bars([CategoryRow(category="algebra", score=0.5, lo=0.3, hi=0.7, n=20)])
    >>> chart.to_dict()["layer"][0]["encoding"]["y"]["sort"]
    ['algebra']
    """
    if not rows:
        return empty("The items of this task have no categories.", dark=dark, title=title)
    colours = theme(dark)
    names = [row.category for row in rows]
    order = row_order(names, natural_sorted(names), sort)
    ends = [v for row in rows for v in (row.score, row.lo, row.hi) if v is not None]
    scale = alt.Scale(domain=[min(0.0, *ends), max(1.0, *ends)], nice=False)
    x: dict[str, Any] = {"scale": scale, "axis": alt.Axis(title=metric, tickCount=6)}
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("category:N", sort=order, axis=alt.Axis(title=None)),
        tooltip=[
            alt.Tooltip("category:N"),
            alt.Tooltip("score:Q", title=metric, format=".4f"),
            alt.Tooltip("lo:Q", title="from", format=".4f"),
            alt.Tooltip("hi:Q", title="to", format=".4f"),
            alt.Tooltip("n:Q", title="items"),
        ],
    )
    ends_known = base.transform_filter("isValid(datum.lo) && isValid(datum.hi)")
    line = ends_known.encode(x=alt.X("lo:Q", **x), x2="hi:Q")
    chart = alt.layer(
        base.mark_bar(color=colours.blue, height=12).encode(x=alt.X("score:Q", **x)),
        # A rim in the background's colour: the line is seen on the bar as well as beside it.
        line.mark_rule(color=colours.background, strokeWidth=5),
        line.mark_rule(color=colours.text, strokeWidth=1.5),
    )
    words = f"Thin lines are {level * 100:g} % intervals."
    return finish(chart, dark=dark, title=title, subtitle=words, height=alt.Step(ROW_HEIGHT))
