"""The scale of a fit: item characteristic curves, abilities, test information."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from leaderboard.charts.common import (
    HEIGHT,
    ROW_HEIGHT,
    WIDTH,
    AnyChart,
    Theme,
    best_first,
    counted,
    data,
    empty,
    finish,
    row_order,
    theme,
)
from leaderboard.charts.minutes import minute_ticks, named_labels

_STEPS = 80
_REACH = 4.0  # the scale's ends where nothing asks for more: SD of ability is 1
_MOST_CURVES = 150


class ItemRow(Struct, frozen=True, kw_only=True):
    """An item of a fit: logit p = a (theta - b).

    Attributes
    ----------
    item : str
    a, b : float
        Discrimination and difficulty.
    """

    item: str
    a: float
    b: float


class AbilityRow(Struct, frozen=True, kw_only=True):
    """A model of a fit.

    Attributes
    ----------
    label : str
        Its name; one each.
    theta : float
        Ability, in the fit's gauge.
    lo, hi : float or None
        Interval of `theta`.
    is_baseline : bool
        A mock: drawn hollow.
    """

    label: str
    theta: float
    lo: float | None = None
    hi: float | None = None
    is_baseline: bool = False


class MinutesLink(Struct, frozen=True, kw_only=True):
    """A link to human minutes: log minutes = intercept + slope b (natural logarithm).

    Attributes
    ----------
    intercept, slope : float
    """

    intercept: float
    slope: float


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Ends of the scale: all values with room, the usual reach at least, on whole numbers."""
    return (
        float(math.floor(min([-_REACH, *(v - 0.2 for v in values)]))),
        float(math.ceil(max([_REACH, *(v + 0.2 for v in values)]))),
    )


def _x(span: tuple[float, float], field: str, title: str) -> alt.X:
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    axis = alt.Axis(title=title, grid=False, orient="bottom", tickCount=9)
    return alt.X(field, scale=scale, axis=axis)


def _layered(
    layers: Sequence[alt.Chart], span: tuple[float, float], link: MinutesLink | None
) -> alt.LayerChart:
    """Layer charts, with a second axis where there is a link: the same scale in human minutes."""
    if link is None or not math.isfinite(link.slope) or link.slope <= 0:
        return alt.LayerChart(layer=[*layers])
    ends = [math.exp(max(-300.0, min(300.0, link.intercept + link.slope * v))) for v in span]
    ticks = minute_ticks((ends[0], ends[1]), WIDTH, 42)
    places = [(math.log(m) - link.intercept) / link.slope for m in ticks.values()]
    if not places:
        return alt.LayerChart(layer=[*layers])
    axis = alt.Axis(
        title="the same scale in human time", orient="top", grid=False, values=places,
        labelExpr=named_labels(ticks, places), labelOverlap="greedy",
    )  # fmt: skip
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    # A mark without size carries the axis.
    carrier = (
        alt.Chart(data([{"x": span[0]}]))
        .mark_tick(size=0, thickness=0)
        .encode(x=alt.X("x:Q", scale=scale, axis=axis))
    )
    # One chart within the other: the layers below share one axis, the carrier has its own.
    both = alt.LayerChart(layer=[alt.LayerChart(layer=[*layers]), carrier])
    found: alt.LayerChart = both.resolve_axis(x="independent")
    return found


def item_curves(
    rows: Sequence[ItemRow],
    *,
    highlight: Sequence[str] = (),
    link: MinutesLink | None = None,
    most: int = _MOST_CURVES,
    dark: bool = False,
    title: str | None = "Item characteristic curves",
) -> AnyChart:
    """Draw the chance of success over ability, a grey line an item.

    A line is coloured when the pointer is on it. Curves are computed where they are drawn, so the
    chart carries each item's parameters only.

    Parameters
    ----------
    rows : sequence of ItemRow
    highlight : sequence of str
        Items with a colour, a dash and a name; four at most, others stay grey.
    link : MinutesLink or None
        Gives the second axis, in human minutes.
    most : int
        With more items, so many of them are drawn, evenly by difficulty, which the subtitle says.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> chart = item_curves([ItemRow(item="i1", a=1.0, b=0.0)], highlight=["i1"])
    >>> len(chart.to_dict()["layer"])
    2
    """
    if not rows:
        return empty("No items: `harness fit` makes a scale.", dark=dark, title=title)
    colours = theme(dark)
    span = _span([])
    chosen = [row for name in dict.fromkeys(highlight) for row in rows if row.item == name][:4]
    shown = _evenly(rows, most)
    # Many lines must be thin, or they make one grey field; a few must not.
    thin = 1.2 if len(shown) <= 40 else 0.6
    pointer = alt.selection_point(fields=["item"], on="pointerover", empty=False, name="item_under")
    grey = (
        _curves(shown, span)
        .mark_line(clip=True)
        .encode(
            stroke=alt.condition(pointer, alt.value(colours.orange), alt.value(colours.grey)),
            strokeWidth=alt.condition(pointer, alt.value(3), alt.value(thin)),
            **_curve_encodings(span),
        )
        .add_params(pointer)
    )
    layers = [grey, *([_named_curves(chosen, span, colours)] if chosen else [])]
    chart = _layered(layers, span, link)
    words = f"{counted(len(rows), 'item')}."
    if len(shown) < len(rows):
        words = f"{len(shown)} of {len(rows):,} items, evenly by difficulty."
    return finish(chart, dark=dark, title=title, subtitle=words, height=HEIGHT)


def _evenly(rows: Sequence[ItemRow], most: int) -> list[ItemRow]:
    ordered = sorted(rows, key=lambda row: (row.b, row.item))
    if len(ordered) <= most:
        return ordered
    return [ordered[round(i * (len(ordered) - 1) / max(most - 1, 1))] for i in range(most)]


def _curves(rows: Sequence[ItemRow], span: tuple[float, float]) -> alt.Chart:
    step = (span[1] - span[0]) / _STEPS
    grid = f"sequence({span[0]!r}, {span[1] + step / 2!r}, {step!r})"
    found: alt.Chart = (
        alt.Chart(data(rows))
        .transform_calculate(theta=grid)
        .transform_flatten(["theta"])
        .transform_calculate(p="1 / (1 + exp(-datum.a * (datum.theta - datum.b)))")
    )
    return found


def _curve_encodings(span: tuple[float, float]) -> dict[str, Any]:
    scale = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(title="chance of success", format=".1f", tickCount=5)
    return {
        "x": _x(span, "theta:Q", "ability"),
        "y": alt.Y("p:Q", scale=scale, axis=axis),
        "detail": "item:N",
        "tooltip": [
            alt.Tooltip("item:N"),
            alt.Tooltip("a:Q", title="discrimination a", format=".2f"),
            alt.Tooltip("b:Q", title="difficulty b", format=".2f"),
        ],
    }


def _named_curves(rows: Sequence[ItemRow], span: tuple[float, float], colours: Theme) -> alt.Chart:
    names = [row.item for row in rows]
    tones = [colours.blue, colours.orange, colours.green, colours.purple][: len(names)]
    dashes = [[1, 0], [8, 3], [3, 3], [10, 3, 2, 3]][: len(names)]
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolSize=300)
    found: alt.Chart = (
        _curves(rows, span)
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            color=alt.Color("item:N", scale=alt.Scale(domain=names, range=tones), legend=legend),
            strokeDash=alt.StrokeDash(
                "item:N", scale=alt.Scale(domain=names, range=dashes), legend=legend
            ),
            **_curve_encodings(span),
        )
    )
    return found


def ability_plot(
    rows: Sequence[AbilityRow],
    *,
    sort: Sequence[str] | None = None,
    link: MinutesLink | None = None,
    level: float = 0.95,
    dark: bool = False,
    title: str | None = "Ability",
) -> AnyChart:
    """Draw abilities with their intervals.

    Parameters
    ----------
    rows : sequence of AbilityRow
    sort : sequence of str or None
        Labels from top to bottom; the ablest first where None.
    link : MinutesLink or None
        Gives the second axis, in human minutes.
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
        When two rows have one label.

    Examples
    --------
    >>> rows = [AbilityRow(label="m", theta=0.5, lo=0.2, hi=0.8)]
    >>> ability_plot(rows).to_dict()["layer"][0]["encoding"]["y"]["sort"]
    ['m']
    """
    shown = [row for row in rows if math.isfinite(row.theta)]
    if not shown:
        return empty("No abilities: `harness fit` makes a scale.", dark=dark, title=title)
    colours = theme(dark)
    order = row_order(
        [row.label for row in shown], best_first((row.label, row.theta) for row in shown), sort
    )
    ends = [v for row in shown for v in (row.theta, row.lo, row.hi)]
    finite = [v for v in ends if v is not None and math.isfinite(v)]
    room = max(0.1, 0.05 * (max(finite) - min(finite)))
    span = (min(finite) - room, max(finite) + room)
    base = alt.Chart(data(shown)).encode(
        y=alt.Y("label:N", sort=order, axis=alt.Axis(title=None, grid=True)),
        tooltip=[
            alt.Tooltip("label:N", title="model"),
            alt.Tooltip("theta:Q", title="ability", format=".3f"),
            alt.Tooltip("lo:Q", title="from", format=".3f"),
            alt.Tooltip("hi:Q", title="to", format=".3f"),
        ],
    )
    hollow = alt.condition(
        "datum.is_baseline", alt.value(colours.background), alt.value(colours.blue)
    )
    layers = [
        base.transform_filter("isValid(datum.lo) && isValid(datum.hi)")
        .mark_rule(color=colours.blue, strokeWidth=2)
        .encode(x=_x(span, "lo:Q", "ability"), x2="hi:Q"),
        base.mark_point(size=60, opacity=1, stroke=colours.blue, strokeWidth=1.6).encode(
            x=_x(span, "theta:Q", "ability"), fill=hollow
        ),
    ]
    chart = _layered(layers, span, link)
    words = [f"Lines are {level * 100:g} % intervals."]
    if any(row.is_baseline for row in shown):
        words.append("Hollow: baselines.")
    size = alt.Step(ROW_HEIGHT)
    return finish(chart, dark=dark, title=title, subtitle=" ".join(words), height=size)


def information(rows: Sequence[ItemRow], theta: Sequence[float]) -> list[float]:
    """Fisher information of a test about abilities: the sum of a² p (1 - p).

    Parameters
    ----------
    rows : sequence of ItemRow
    theta : sequence of float
        Abilities.

    Returns
    -------
    list of float
        One an ability.

    Examples
    --------
    >>> information([ItemRow(item="i", a=2.0, b=1.0)], [1.0])
    [1.0]
    """
    slopes, places = np.array([[row.a, row.b] for row in rows]).T
    # p (1 - p) = 1 / (2 cosh(z/2))², which neither overflows nor loses digits at the ends.
    halves = np.abs(slopes * (np.array(theta)[:, None] - places)) / 2
    each = np.square(slopes / (2 * np.cosh(np.minimum(300.0, halves))))
    return [float(total) for total in each.sum(axis=1)]


def information_plot(
    rows: Sequence[ItemRow],
    *,
    abilities: Sequence[AbilityRow] = (),
    link: MinutesLink | None = None,
    dark: bool = False,
    title: str | None = "Test information",
) -> AnyChart:
    """Draw how much all items together say about an ability.

    Parameters
    ----------
    rows : sequence of ItemRow
    abilities : sequence of AbilityRow
        Marked below the curve: does the test measure where the models are?
    link : MinutesLink or None
        Gives the second axis, in human minutes.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> chart = information_plot([ItemRow(item="i", a=1.0, b=0.0)])
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'line'
    """
    if not rows:
        return empty("No items: `harness fit` makes a scale.", dark=dark, title=title)
    colours = theme(dark)
    span = _span([row.theta for row in abilities])
    grid = [span[0] + (span[1] - span[0]) * i / _STEPS for i in range(_STEPS + 1)]
    values = zip(grid, information(rows, grid), strict=True)
    points = [
        {"theta": t, "information": v, "se": 1 / math.sqrt(v) if v > 0 else None} for t, v in values
    ]
    line = alt.Chart(data(points)).mark_line(color=colours.blue, strokeWidth=2)
    axis = alt.Axis(title="information", tickCount=5)
    layers = [
        line.encode(
            x=_x(span, "theta:Q", "ability"),
            y=alt.Y("information:Q", scale=alt.Scale(zero=True), axis=axis),
            tooltip=[
                alt.Tooltip("theta:Q", title="ability", format=".2f"),
                alt.Tooltip("information:Q", format=".3~g"),
                alt.Tooltip("se:Q", title="standard error", format=".3~g"),
            ],
        )
    ]
    words = ["The standard error of an ability is one over the root of the information."]
    if abilities:
        layers.append(_rug(abilities, span, colours))
        words.append("Ticks: the models.")
    chart = _layered(layers, span, link)
    size = HEIGHT * 2 // 3
    return finish(chart, dark=dark, title=title, subtitle=" ".join(words), height=size)


def _rug(rows: Sequence[AbilityRow], span: tuple[float, float], colours: Theme) -> alt.Chart:
    found: alt.Chart = (
        alt.Chart(data(asdict(row) for row in rows))
        .mark_tick(color=colours.orange, thickness=1.5, size=12, yOffset=-6)
        .encode(
            x=_x(span, "theta:Q", "ability"),
            y=alt.datum(0),
            tooltip=[alt.Tooltip("label:N", title="model"), alt.Tooltip("theta:Q", format=".2f")],
        )
    )
    return found
