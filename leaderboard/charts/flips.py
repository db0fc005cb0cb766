"""Paired outcomes: items that one model solves and the other does not."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
from msgspec import Struct
from msgspec.structs import asdict

from leaderboard.charts.common import (
    ROW_HEIGHT,
    AnyChart,
    Theme,
    data,
    empty,
    finish,
    natural_sorted,
    row_order,
    theme,
)


class FlipRow(Struct, frozen=True, kw_only=True):
    """Two models on the items that both answered, such as a quantised one against its full twin.

    Attributes
    ----------
    label : str
        Names the pair, "A against B"; one each.
    gained : int
        Items that A solves and B does not.
    lost : int
        Items that B solves and A does not.
    unchanged : int
        Items where both do the same.
    """

    label: str
    gained: int
    lost: int
    unchanged: int


def flip_plot(
    rows: Sequence[FlipRow],
    *,
    sort: Sequence[str] | None = None,
    dark: bool = False,
    title: str | None = "Items gained and lost",
) -> AnyChart:
    """Draw how many items each pair gains (to the right) and loses (to the left).

    A difference of zero may hide many flips: both sides are shown, not their balance.

    Parameters
    ----------
    rows : sequence of FlipRow
    sort : sequence of str or None
        Labels from top to bottom; by name where None.
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
    >>> chart = flip_plot([FlipRow(label="q4 against full", gained=3, lost=8, unchanged=89)])
    >>> chart.to_dict()["layer"][0]["encoding"]["y"]["sort"]
    ['q4 against full']
    """
    if not rows:
        return empty("No two models answered the same items.", dark=dark, title=title)
    labels = [row.label for row in rows]
    order = row_order(labels, natural_sorted(labels), sort)
    chart = alt.layer(*_flip_layers(rows, order, theme(dark)))
    words = [
        "Of the items that both answered.",
        "Lost: only the second of the pair solves them; gained: only the first.",
    ]
    size = alt.Step(ROW_HEIGHT + 4)
    return finish(chart, dark=dark, title=title, subtitle=words, height=size)


def _flip_layers(rows: Sequence[FlipRow], order: list[str], colours: Theme) -> list[alt.Chart]:
    sides = [
        {**asdict(row), "side": side, "items": count, "at": sign * count}
        for row in rows
        for side, count, sign in (("lost", row.lost, -1), ("gained", row.gained, 1))
    ]
    # Both sides to one measure, with room for the counts.
    end = max(1.0, *(1.15 * max(row.gained, row.lost) for row in rows))
    base = alt.Chart(data(sides)).encode(
        y=alt.Y("label:N", sort=order, axis=alt.Axis(title=None)),
        x=alt.X(
            "at:Q",
            scale=alt.Scale(domain=[-end, end], nice=False),
            axis=alt.Axis(
                title="items lost | items gained",
                labelExpr="abs(datum.value)",
                tickMinStep=1,
                tickCount=9,
            ),
        ),
        tooltip=[
            alt.Tooltip("label:N", title="pair"),
            alt.Tooltip("gained:Q"),
            alt.Tooltip("lost:Q"),
            alt.Tooltip("unchanged:Q"),
        ],
    )
    colour = alt.Color(
        "side:N",
        scale=alt.Scale(domain=["lost", "gained"], range=[colours.orange, colours.blue]),
        legend=alt.Legend(title=None, orient="top", direction="horizontal"),
    )
    count = alt.Text("items:Q")
    return [
        base.mark_bar(height=12).encode(color=colour),
        base.transform_filter("datum.side === 'lost'")
        .mark_text(align="right", dx=-4, color=colours.text)
        .encode(text=count),
        base.transform_filter("datum.side === 'gained'")
        .mark_text(align="left", dx=4, color=colours.text)
        .encode(text=count),
        alt.Chart(data([{"at": 0}])).mark_rule(color=colours.grey).encode(x="at:Q"),
    ]
