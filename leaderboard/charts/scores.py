"""Scores of models with their intervals, and their ranks over several tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from leaderboard.charts.common import (
    ROW_HEIGHT,
    AnyChart,
    Theme,
    best_first,
    data,
    empty,
    finish,
    natural_sorted,
    row_order,
    theme,
)

_RANKS_WIDTH = 110


class ScoreRow(Struct, frozen=True, kw_only=True):
    """A model with its score.

    Attributes
    ----------
    label : str
        Its name, variant included; one each.
    score : float
    lo, hi : float or None
        Interval of `score`.
    n : int
        Items that count.
    is_baseline : bool
        A mock: drawn hollow.
    is_partial : bool
        Not all planned items were tried: marked with a star.
    """

    label: str
    score: float
    lo: float | None = None
    hi: float | None = None
    n: int
    is_baseline: bool = False
    is_partial: bool = False


class RankRow(Struct, frozen=True, kw_only=True):
    """Where a model stands on a task.

    Attributes
    ----------
    label : str
        The model's name, variant included; one a task.
    task : str
    rank_lo, rank_hi : int
        Best and worst rank that the data allow.
    """

    label: str
    task: str
    rank_lo: int
    rank_hi: int


def score_plot(
    rows: Sequence[ScoreRow],
    *,
    sort: Sequence[str] | None = None,
    metric: str = "score",
    level: float = 0.95,
    zoom: bool = False,
    dark: bool = False,
    title: str | None = "Scores",
) -> AnyChart:
    """Draw the scores of models with their intervals, a row each.

    Parameters
    ----------
    rows : sequence of ScoreRow
    sort : sequence of str or None
        Labels from top to bottom; the highest score first where None.
    metric : str
        Names the axis.
    level : float
        Coverage of the intervals.
    zoom : bool
        Cut the axis to the data. Else it runs from 0 to 1 (further if the data do): a cut axis
        makes noise look large.
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
    >>> rows = [ScoreRow(label="m", score=0.5, lo=0.4, hi=0.6, n=100)]
    >>> score_plot(rows).to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"]
    [0.0, 1.0]
    """
    if not rows:
        return empty("No scores yet: `harness run` makes some.", dark=dark, title=title)
    colours = theme(dark)
    labels = [row.label for row in rows]
    order = row_order(labels, best_first((row.label, row.score) for row in rows), sort)
    words = [f"Lines are {level * 100:g} % intervals."]
    if any(row.is_baseline for row in rows):
        words.append("Hollow: baselines, not ranked.")
    if any(row.is_partial for row in rows):
        words.append("*: not all planned items were tried.")
    if zoom:
        words.append("The axis is cut to the data.")
    chart = alt.layer(*_score_layers(rows, order, _domain(rows, zoom=zoom), metric, colours))
    size = alt.Step(ROW_HEIGHT)
    return finish(chart, dark=dark, title=title, subtitle=" ".join(words), height=size)


def _domain(rows: Sequence[ScoreRow], *, zoom: bool) -> list[float]:
    values = [v for row in rows for v in (row.score, row.lo, row.hi) if v is not None]
    if not zoom:
        return [min(0.0, *values), max(1.0, *values)]
    room = max(0.005, 0.05 * (max(values) - min(values)))
    return [min(values) - room, max(values) + room]


def _score_layers(
    rows: Sequence[ScoreRow], order: list[str], domain: list[float], metric: str, colours: Theme
) -> list[alt.Chart]:
    partial = json.dumps([row.label for row in rows if row.is_partial])
    # The star stands beside the name, which stays the key of the row.
    starred = f"indexof({partial}, datum.value) < 0 ? datum.value : datum.value + ' *'"
    axis = alt.Axis(title=metric, tickCount=6, grid=True)
    x: dict[str, Any] = {"scale": alt.Scale(domain=domain, nice=False, zero=False), "axis": axis}
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("label:N", sort=order, axis=alt.Axis(title=None, grid=True, labelExpr=starred)),
        tooltip=[
            alt.Tooltip("label:N", title="model"),
            alt.Tooltip("score:Q", title=metric, format=".4f"),
            alt.Tooltip("lo:Q", title="from", format=".4f"),
            alt.Tooltip("hi:Q", title="to", format=".4f"),
            alt.Tooltip("n:Q", title="items"),
        ],
    )
    fill = alt.condition(
        "datum.is_baseline", alt.value(colours.background), alt.value(colours.blue)
    )
    return [
        base.transform_filter("isValid(datum.lo) && isValid(datum.hi)")
        .mark_rule(color=colours.blue, strokeWidth=2)
        .encode(x=alt.X("lo:Q", **x), x2="hi:Q"),
        base.mark_point(size=60, stroke=colours.blue, strokeWidth=1.6).encode(
            x=alt.X("score:Q", **x), fill=fill
        ),
    ]


def rank_plot(
    rows: Sequence[RankRow],
    *,
    sort: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    level: float = 0.95,
    dark: bool = False,
    title: str | None = "Ranks",
) -> AnyChart:
    """Draw the rank intervals of models over tasks: a row a model, a column a task.

    Parameters
    ----------
    rows : sequence of RankRow
    sort : sequence of str or None
        Labels from top to bottom; by name where None.
    tasks : sequence of str or None
        Tasks from left to right; by name where None.
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
        When a model stands twice in a task.

    Examples
    --------
    >>> chart = rank_plot([RankRow(label="m", task="t", rank_lo=1, rank_hi=3)])
    >>> chart.to_dict()["facet"]["column"]["sort"]
    ['t']
    """
    if not rows:
        return empty("No ranks yet: they need two models on one task.", dark=dark, title=title)
    for task in {row.task for row in rows}:
        row_order([row.label for row in rows if row.task == task], (), sort)
    labels = natural_sorted(row.label for row in rows)
    order = row_order(labels, labels, sort)
    names = natural_sorted(row.task for row in rows)
    columns = row_order(names, names, tasks)
    last = max(row.rank_hi for row in rows)
    # Half a rank on both sides: a sure rank is as wide as one place.
    bars = (
        alt.Chart(data(rows))
        .transform_calculate(left="datum.rank_lo - 0.5", right="datum.rank_hi + 0.5")
        .mark_bar(color=theme(dark).blue, height=8, cornerRadius=2)
        .encode(
            x=alt.X(
                "left:Q",
                scale=alt.Scale(domain=[0.5, last + 0.5], nice=False, zero=False),
                axis=alt.Axis(title="rank", values=_rank_ticks(last), format="d", grid=True),
            ),
            x2="right:Q",
            y=alt.Y("label:N", sort=order, axis=alt.Axis(title=None, grid=True)),
            tooltip=[
                alt.Tooltip("label:N", title="model"),
                alt.Tooltip("task:N"),
                alt.Tooltip("rank_lo:Q", title="best rank"),
                alt.Tooltip("rank_hi:Q", title="worst rank"),
            ],
        )
        .properties(width=_RANKS_WIDTH, height=alt.Step(ROW_HEIGHT))
    )
    column = alt.Column("task:N", sort=columns, header=alt.Header(title=None, labelLimit=110))
    whole: alt.FacetChart = bars.facet(column=column, spacing=12)
    words = f"Where {level * 100:g} % intervals let each model stand; 1 is best."
    return finish(whole, dark=dark, title=title, subtitle=words)


def _rank_ticks(last: int) -> list[int]:
    return sorted({1, round((1 + last) / 2), last})
