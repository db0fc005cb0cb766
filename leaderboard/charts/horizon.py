"""Horizons in human minutes against release dates; what the minutes rest on is in `link`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Any, Literal

import altair as alt
from msgspec import Struct
from msgspec.structs import asdict

from leaderboard.charts.common import HEIGHT, WIDTH, AnyChart, Theme, data, empty, finish, theme
from leaderboard.charts.labels import place_labels, stair
from leaderboard.charts.minutes import minutes_axis, minutes_domain, minutes_scale, minutes_text

Kind = Literal["own", "published", "fitted"]

# Named in the legend: no reader should take a published figure for one of ours.
KINDS: dict[Kind, str] = {
    "own": "own runs",
    "fitted": "published answers, fitted here",
    "published": "published figures",
}
_SHAPES: dict[Kind, str] = {"own": "circle", "fitted": "square", "published": "diamond"}


class HorizonRow(Struct, frozen=True, kw_only=True):
    """A model with its horizon.

    Attributes
    ----------
    label : str
        Its name; one a kind.
    released : date
    minutes : float
        Length of the tasks it solves with the probability at hand, in human minutes.
    lo, hi : float or None
        Interval of `minutes`.
    kind : str
        "own": answers of this store; "fitted": published answers, fitted here; "published":
        figures of others.
    """

    label: str
    released: date
    minutes: float
    lo: float | None = None
    hi: float | None = None
    kind: Kind = "own"


class TrendRow(Struct, frozen=True, kw_only=True):
    """The growth of the horizon at the frontier of one kind of rows.

    Attributes
    ----------
    kind : str
        Whose frontier it is, as in `HorizonRow`.
    frontier : list of str
        Labels of the models on it.
    months : float or None
        Doubling time; None where there is none.
    lo, hi : float or None
        Its interval; `hi` is infinite (or None) where there may have been no growth.
    level : float
        Coverage of the intervals.
    """

    frontier: list[str]
    months: float | None
    lo: float | None = None
    hi: float | None = None
    kind: Kind = "own"
    level: float = 0.95


def _months(day: date) -> float:
    return 12 * day.year + day.month - 1


def _usable(row: HorizonRow) -> bool:
    return math.isfinite(row.minutes) and row.minutes > 0


def doubling_sentence(trend: TrendRow) -> str:
    """Say a doubling time with its interval.

    Parameters
    ----------
    trend : TrendRow

    Returns
    -------
    str

    Examples
    --------
    >>> print(doubling_sentence(TrendRow(frontier=[], months=5.83, lo=5.2, hi=6.5)))
    Doubling time at the frontier: 5.8 months [5.2, 6.5] (95 % interval).
    >>> print(doubling_sentence(TrendRow(frontier=[], months=9.0, lo=4.0, hi=float("inf"))))
    Doubling time at the frontier: 9.0 months [4.0, without end] (95 % interval).
    """
    if trend.months is None or not math.isfinite(trend.months):
        return "Doubling time at the frontier: none found."
    text = f"Doubling time at the frontier: {trend.months:.1f} months"
    if trend.lo is None or not math.isfinite(trend.lo):
        return f"{text}, without an interval."
    endless = trend.hi is None or not math.isfinite(trend.hi)
    hi = "without end" if endless or trend.hi is None else f"{trend.hi:.1f}"
    return f"{text} [{trend.lo:.1f}, {hi}] ({trend.level * 100:g} % interval)."


def _frontier(rows: Sequence[HorizonRow], trend: TrendRow) -> list[HorizonRow]:
    on_it = [row for row in rows if row.kind == trend.kind and row.label in trend.frontier]
    return sorted(on_it, key=lambda row: (row.released, row.minutes))


def _trend_ends(front: Sequence[HorizonRow], trend: TrendRow) -> list[dict[str, Any]]:
    """Two points of the doubling line: least squares goes through the mean of its points."""
    if trend.months is None or not math.isfinite(trend.months) or len(front) < 2:
        return []
    slope = math.log(2) / trend.months
    month = math.fsum(_months(row.released) for row in front) / len(front)
    height = math.fsum(math.log(row.minutes) for row in front) / len(front)
    # The trend counts whole months; the middle of a month stands for all its days.
    ends = (front[0].released.replace(day=15), front[-1].released.replace(day=15))
    return [
        {"released": day, "minutes": math.exp(height + slope * (_months(day) - month))}
        for day in ends
    ]


def _date_domain(rows: Sequence[HorizonRow]) -> tuple[int, int]:
    days = [row.released.toordinal() for row in rows]
    # Below half a year the axis would name single weeks.
    room = max(90, round(0.05 * (max(days) - min(days))))
    return min(days) - room, max(days) + room


def _kind_encodings(present: Sequence[Kind], colours: Theme) -> dict[str, Any]:
    """Colour, shape and filling of a kind: three signs, so that colour is never the only one."""
    strokes = {"own": colours.blue, "fitted": colours.orange, "published": colours.purple}
    fills = {**strokes, "published": colours.background}
    names = [KINDS[kind] for kind in present]
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolSize=70)
    ranges = {
        "stroke": [strokes[kind] for kind in present],
        "fill": [fills[kind] for kind in present],
        "shape": [_SHAPES[kind] for kind in present],
    }
    makers: dict[str, Any] = {"stroke": alt.Stroke, "fill": alt.Fill, "shape": alt.Shape}
    return {
        name: makers[name](
            "kind_name:N", scale=alt.Scale(domain=names, range=ranges[name]), legend=legend
        )
        for name in makers
    }


def horizon_plot(
    rows: Sequence[HorizonRow],
    trend: TrendRow | None = None,
    *,
    probability: float = 0.5,
    notes: Sequence[str] = (),
    dark: bool = False,
    title: str | None = "Horizon against release date",
) -> AnyChart:
    """Draw horizons in human minutes against release dates.

    Own models, published answers fitted here and published figures differ in colour, shape and
    filling. The frontier is a stair, the doubling time a dashed line; the subtitle says it.

    Parameters
    ----------
    rows : sequence of HorizonRow
        Models without a positive horizon are left out, which the subtitle says.
    trend : TrendRow or None
    probability : float
        With which the tasks are solved.
    notes : sequence of str
        Sentences for the subtitle: number of models and anchors, level of the link, method.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> row = HorizonRow(label="m", released=date(2025, 5, 1), minutes=30, lo=20, hi=45)
    >>> horizon_plot([row]).to_dict()["encoding"]["y"]["scale"]["type"]
    'log'
    """
    shown = [row for row in rows if _usable(row)]
    if not shown:
        sentence = (
            "No model has a horizon in human minutes and a release date: models are placed on this "
            "axis when they share items or models with a fit that is linked to human minutes."
        )
        return empty(sentence, dark=dark, title=title)
    front = _frontier(shown, trend) if trend else []
    line = _trend_ends(front, trend) if trend else []
    heights = [v for row in shown for v in (row.minutes, row.lo, row.hi)]
    domain = minutes_domain([*heights, *(end["minutes"] for end in line)])
    chart = alt.layer(*_horizon_layers(shown, front, line, domain, theme(dark)))
    chart = chart.encode(**_axes(shown, domain, probability))
    words = [doubling_sentence(trend)] if trend else []
    if line:
        words.append("Stair: the frontier; dashes: its doubling time.")
    words += notes
    if left := len(rows) - len(shown):
        words.append(f"Left out: {left} without a horizon above zero.")
    return finish(chart, dark=dark, title=title, subtitle=words, height=HEIGHT)


def _axes(
    rows: Sequence[HorizonRow], domain: tuple[float, float], probability: float
) -> dict[str, Any]:
    first, last = _date_domain(rows)
    dates = alt.Axis(
        title="release date", format="%b %Y", grid=False, labelOverlap="greedy", tickCount=8
    )
    # Days are read as UTC: in the reader's own time zone they would move to the day before.
    days = alt.Scale(type="utc", domain=[_day(first), _day(last)], nice=False)
    named = f"length of tasks solved at {probability * 100:g} %"
    lengths = minutes_axis(domain, HEIGHT, vertical=True, title=named)
    return {
        "x": alt.X("released:T", scale=days, axis=dates),
        "y": alt.Y("minutes:Q", scale=minutes_scale(domain), axis=lengths),
    }


def _day(ordinal: int) -> alt.DateTime:
    day = date.fromordinal(ordinal)
    return alt.DateTime(year=day.year, month=day.month, date=day.day, utc=True)


def _horizon_layers(
    rows: Sequence[HorizonRow],
    front: Sequence[HorizonRow],
    line: Sequence[dict[str, Any]],
    domain: tuple[float, float],
    colours: Theme,
) -> list[alt.Chart]:
    """Intervals, stair, doubling line, points and names, the last on top."""
    present = [kind for kind in KINDS if any(row.kind == kind for row in rows)]
    encodings = _kind_encodings(present, colours)
    points = data(
        {
            **asdict(row),
            "kind_name": KINDS[row.kind],
            "day": row.released.isoformat(),
            "length": minutes_text(row.minutes),
            # An end at zero has no place on a log axis: the interval runs to the axis's end.
            "lo_drawn": None if row.lo is None else max(row.lo, domain[0]),
        }
        for row in rows
    )
    tooltip = [
        alt.Tooltip("label:N", title="model"),
        alt.Tooltip("kind_name:N", title="from"),
        alt.Tooltip("day:N", title="released"),
        alt.Tooltip("length:N", title="horizon"),
        alt.Tooltip("minutes:Q", title="minutes", format=".3~g"),
        alt.Tooltip("lo:Q", title="from minutes", format=".3~g"),
        alt.Tooltip("hi:Q", title="to minutes", format=".3~g"),
    ]
    bars = (
        alt.Chart(points)
        .transform_filter("isValid(datum.lo_drawn) && isValid(datum.hi)")
        .mark_rule(strokeWidth=1.2)
        .encode(y=alt.Y("lo_drawn:Q"), y2="hi:Q", stroke=encodings["stroke"], tooltip=tooltip)
    )
    dots = alt.Chart(points).mark_point(size=60, strokeWidth=1.6, opacity=1)
    layers = [bars, dots.encode(**encodings, tooltip=tooltip)]
    if front:
        steps = [{"released": row.released, "minutes": row.minutes} for row in front]
        last = max(row.released for row in rows)
        steps.append({"released": last, "minutes": front[-1].minutes})
        mark = alt.Chart(data(steps)).mark_line(
            interpolate="step-after", color=colours.grey, strokeWidth=1.5
        )
        layers.insert(0, mark)
    if line:
        dashes = alt.Chart(data(line)).mark_line(
            color=colours.text, strokeDash=[6, 4], strokeWidth=1.5
        )
        layers.insert(len(layers) - 2, dashes)
    return [*layers, *_names(rows, front, line, domain, colours)]


def _names(
    rows: Sequence[HorizonRow],
    front: Sequence[HorizonRow],
    line: Sequence[dict[str, Any]],
    domain: tuple[float, float],
    colours: Theme,
) -> list[alt.Chart]:
    """Names of own models and of the frontier, where there is room; the others have tooltips."""
    first, last = _date_domain(rows)
    octaves = math.log2(domain[1] / domain[0])

    def pixel(day: date, minutes: float) -> tuple[float, float]:
        x = (day.toordinal() - first) / (last - first) * WIDTH
        return x, (1 - math.log2(minutes / domain[0]) / octaves) * HEIGHT

    named = [*front, *(row for row in rows if row.kind == "own" and row not in front)]
    dashes = [pixel(end["released"], end["minutes"]) for end in line]
    places = place_labels(
        [(row.label, *pixel(row.released, row.minutes)) for row in named],
        points=[pixel(row.released, row.minutes) for row in rows],
        lines=[dashes, stair([pixel(row.released, row.minutes) for row in front])],
        size=(WIDTH, HEIGHT),
    )
    return [
        alt.Chart(data(
            {"released": row.released, "minutes": row.minutes, "label": row.label}
            for row, place in zip(named, places, strict=True) if place == side
        ))
        .mark_text(align=side.align, dx=side.dx, dy=side.dy, color=colours.text)
        .encode(text="label:N")
        for side in dict.fromkeys(place for place in places if place is not None)
    ]  # fmt: skip
