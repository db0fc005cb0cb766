"""Scores against what they cost: bits, memory, speed, money; and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import altair as alt
from msgspec import Struct
from msgspec.structs import asdict

from leaderboard.charts.common import HEIGHT, WIDTH, AnyChart, Theme, data, empty, finish, theme
from leaderboard.charts.labels import place_labels, stair

Against = Literal["bits", "memory_gib", "tokens_per_s", "cost_usd"]


class Axis(Struct, frozen=True):
    """What a score can be set against.

    Attributes
    ----------
    title : str
        With its unit.
    more_is_better : bool
    log : bool
        A log axis, if all values are above zero.
    is_measured : bool
        Belongs to the machine: a simulated quantisation has none.
    """

    title: str
    more_is_better: bool
    log: bool
    is_measured: bool


AXES: dict[Against, Axis] = {
    "bits": Axis("bits a weight", more_is_better=False, log=False, is_measured=False),
    "memory_gib": Axis("memory, GiB", more_is_better=False, log=True, is_measured=True),
    "tokens_per_s": Axis("tokens a second", more_is_better=True, log=True, is_measured=True),
    "cost_usd": Axis("cost, US dollars", more_is_better=False, log=True, is_measured=False),
}


class TradeRow(Struct, frozen=True, kw_only=True):
    """A model with its score and what it costs.

    Attributes
    ----------
    label : str
    score : float
    lo, hi : float or None
        Interval of `score`.
    bits : float or None
        Of a weight.
    memory_gib : float or None
    tokens_per_s : float or None
    cost_usd : float or None
        Of the whole run.
    is_simulated : bool
        Quantised in simulation: its memory and speed are not those of a quantised model and are
        not drawn, whatever the row says.
    is_baseline : bool
        A mock: not on the front.
    """

    label: str
    score: float
    lo: float | None = None
    hi: float | None = None
    bits: float | None = None
    memory_gib: float | None = None
    tokens_per_s: float | None = None
    cost_usd: float | None = None
    is_simulated: bool = False
    is_baseline: bool = False


def price(row: TradeRow, against: Against) -> float | None:
    """Give what a row is set against, None where it has none.

    Parameters
    ----------
    row : TradeRow
    against : str
        A key of `AXES`.

    Returns
    -------
    float or None

    Examples
    --------
    >>> row = TradeRow(label="m", score=0.5, bits=4, memory_gib=9.0, is_simulated=True)
    >>> price(row, "bits"), price(row, "memory_gib")
    (4, None)
    """
    if row.is_simulated and AXES[against].is_measured:
        return None
    value: float | None = getattr(row, against)
    return value if value is not None and math.isfinite(value) else None


def pareto_front(rows: Sequence[TradeRow], against: Against) -> list[TradeRow]:
    """Choose the rows that no other beats in score and price at once; baselines are passed over.

    By point estimates: two rows whose intervals overlap may change places.

    Parameters
    ----------
    rows : sequence of TradeRow
    against : str
        A key of `AXES`.

    Returns
    -------
    list of TradeRow
        From the best price to the best score.

    Examples
    --------
    >>> rows = [TradeRow(label=str(b), score=s, bits=b) for b, s in ((4, 0.5), (8, 0.4), (16, 0.6))]
    >>> [row.label for row in pareto_front(rows, "bits")]
    ['4', '16']
    """
    sign = -1 if AXES[against].more_is_better else 1
    priced = [
        (sign * value, row.score, row)
        for row in rows
        if not row.is_baseline and (value := price(row, against)) is not None
    ]
    front = [
        (cost, score, row)
        for cost, score, row in priced
        if not any(c <= cost and s >= score and (c, s) != (cost, score) for c, s, _ in priced)
    ]
    return [row for _, _, row in sorted(front, key=lambda one: one[:2])]


def tradeoff_plot(
    rows: Sequence[TradeRow],
    against: Against = "bits",
    *,
    metric: str = "score",
    level: float = 0.95,
    zoom: bool = False,
    dark: bool = False,
    title: str | None = None,
) -> AnyChart:
    """Draw scores against a price, with the Pareto front as a stair.

    Parameters
    ----------
    rows : sequence of TradeRow
        Rows without that price are left out, which the subtitle says.
    against : str
        A key of `AXES`.
    metric : str
        Names the axis of scores.
    level : float
        Coverage of the intervals.
    zoom : bool
        Cut the axis of scores to the data; else it runs from 0 to 1.
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> chart = tradeoff_plot([TradeRow(label="m", score=0.5, bits=4)])
    >>> chart.to_dict()["encoding"]["x"]["axis"]["title"]
    'bits a weight'
    """
    axis = AXES[against]
    title = title or f"{metric.capitalize()} against {axis.title}"
    shown = [row for row in rows if price(row, against) is not None]
    if not shown:
        return empty(f"No run tells its {axis.title}.", dark=dark, title=title)
    colours = theme(dark)
    front = pareto_front(shown, against)
    x_domain, log = _price_domain(shown, against)
    y_domain = _score_domain(shown, zoom=zoom)
    layers = _trade_layers(shown, front, against, metric, colours)
    layers += _names(shown, front, against, (x_domain, log, y_domain), colours)
    x_type: dict[str, Any] = {"type": "log", "base": 2} if log else {}
    chart = alt.layer(*layers).encode(
        x=alt.X(
            "price:Q",
            scale=alt.Scale(domain=x_domain, nice=False, zero=False, **x_type),
            axis=alt.Axis(title=axis.title, grid=False, format="~g", tickCount=8),
        ),
        y=alt.Y(
            "score:Q",
            scale=alt.Scale(domain=y_domain, nice=False, zero=False),
            axis=alt.Axis(title=metric, tickCount=6),
        ),
    )
    words = _words(rows, shown, level, zoom=zoom)
    return finish(chart, dark=dark, title=title, subtitle=words, height=HEIGHT)


def _words(
    rows: Sequence[TradeRow], shown: Sequence[TradeRow], level: float, *, zoom: bool
) -> list[str]:
    words = [
        f"Lines are {level * 100:g} % intervals.",
        "The stair joins what no other beats in both, by point estimates.",
    ]
    if any(row.is_simulated for row in shown):
        words.append("Hollow squares: simulated quantisation.")
    left = [row for row in rows if row not in shown]
    if left:
        simulated = sum(row.is_simulated for row in left)
        why = f", {simulated} of them simulated: neither memory nor speed" if simulated else ""
        words.append(f"Left out: {len(left)} without a value{why}.")
    if zoom:
        words.append("The axis of scores is cut to the data.")
    return words


def _price_domain(rows: Sequence[TradeRow], against: Against) -> tuple[list[float], bool]:
    values = [value for row in rows if (value := price(row, against)) is not None]
    if AXES[against].log and min(values) > 0:
        room = max(0.5, 0.08 * math.log2(max(values) / min(values)))
        return [min(values) / 2**room, max(values) * 2**room], True
    room = 0.08 * (max(values) - min(values)) or 1.0
    return [min(0.0, *values), max(values) + room], False


def _score_domain(rows: Sequence[TradeRow], *, zoom: bool) -> list[float]:
    values = [v for row in rows for v in (row.score, row.lo, row.hi) if v is not None]
    if not zoom:
        return [min(0.0, *values), max(1.0, *values)]
    room = max(0.005, 0.08 * (max(values) - min(values)))
    return [min(values) - room, max(values) + room]


def _kind(row: TradeRow) -> str:
    if row.is_baseline:
        return "baseline"
    return "simulated" if row.is_simulated else "measured"


def _trade_layers(
    rows: Sequence[TradeRow],
    front: Sequence[TradeRow],
    against: Against,
    metric: str,
    colours: Theme,
) -> list[alt.Chart]:
    points = data({**_drawn(row), "price": price(row, against), "kind": _kind(row)} for row in rows)
    tooltip = [
        alt.Tooltip("label:N", title="model"),
        alt.Tooltip("kind:N"),
        alt.Tooltip("score:Q", title=metric, format=".4f"),
        alt.Tooltip("lo:Q", title="from", format=".4f"),
        alt.Tooltip("hi:Q", title="to", format=".4f"),
        alt.Tooltip("price:Q", title=AXES[against].title, format=".4~g"),
    ]
    kinds = ["measured", "simulated", "baseline"]
    tones = [colours.blue, colours.orange, colours.grey]
    fills = [colours.blue, colours.background, colours.background]
    shapes = ["circle", "square", "triangle-up"]
    present = [i for i, kind in enumerate(kinds) if any(_kind(row) == kind for row in rows)]
    names = [kinds[i] for i in present]

    def scale(values: list[str]) -> alt.Scale:
        return alt.Scale(domain=names, range=[values[i] for i in present])

    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolSize=70)
    stroke = alt.Stroke("kind:N", scale=scale(tones), legend=legend)
    steps = [{"price": price(row, against), "score": row.score} for row in front]
    # Between two models the worse score is what can be had: left of a price, right of a speed.
    form: Any = "step-before" if AXES[against].more_is_better else "step-after"
    return [
        alt.Chart(data(steps)).mark_line(interpolate=form, color=colours.grey, strokeWidth=1.5),
        alt.Chart(points)
        .transform_filter("isValid(datum.lo) && isValid(datum.hi)")
        .mark_rule(strokeWidth=1.2)
        .encode(y=alt.Y("lo:Q"), y2="hi:Q", stroke=stroke),
        alt.Chart(points)
        .mark_point(size=60, strokeWidth=1.6)
        .encode(
            stroke=stroke,
            fill=alt.Fill("kind:N", scale=scale(fills), legend=legend),
            shape=alt.Shape("kind:N", scale=scale(shapes), legend=legend),
            tooltip=tooltip,
        ),
    ]


def _drawn(row: TradeRow) -> dict[str, Any]:
    """The row without what a simulation does not have: nothing of it gets into the file."""
    hidden = [name for name, axis in AXES.items() if axis.is_measured and row.is_simulated]
    return {name: value for name, value in asdict(row).items() if name not in hidden}


def _names(
    rows: Sequence[TradeRow],
    front: Sequence[TradeRow],
    against: Against,
    axes: tuple[list[float], bool, list[float]],
    colours: Theme,
) -> list[alt.Chart]:
    """Names where there is room, those on the front first; the others have tooltips."""
    x_domain, log, y_domain = axes

    def place(value: float) -> float:
        return math.log2(value) if log else value

    def pixel(row: TradeRow) -> tuple[float, float]:
        x0, x1 = place(x_domain[0]), place(x_domain[1])
        x = (place(price(row, against) or 0.0) - x0) / (x1 - x0) * WIDTH
        return x, (y_domain[1] - row.score) / (y_domain[1] - y_domain[0]) * HEIGHT

    named = [*front, *(row for row in rows if row not in front)]
    places = place_labels(
        [(row.label, *pixel(row)) for row in named],
        points=[pixel(row) for row in rows],
        lines=[stair([pixel(row) for row in front])],
        size=(WIDTH, HEIGHT),
    )
    return [
        alt.Chart(data(
            {"price": price(row, against), "score": row.score, "label": row.label}
            for row, chosen in zip(named, places, strict=True) if chosen == side
        ))
        .mark_text(align=side.align, dx=side.dx, dy=side.dy, color=colours.text)
        .encode(text="label:N")
        for side in dict.fromkeys(chosen for chosen in places if chosen is not None)
    ]  # fmt: skip
