"""What all charts share: colours of both themes, orders, titles, and the chart of no rows.

Colours follow Okabe and Ito (2008), a palette that colour-blind readers can tell apart. Three of
them are too pale on white, so the light theme has darker shades of the same hues: every mark has a
contrast of 3:1 and every text of 4.5:1 against the background (WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, TypeAlias

import altair as alt
import msgspec
from msgspec import Struct

AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart

WIDTH = 640
HEIGHT = 380
ROW_HEIGHT = 22

# Metric twins that each system brings along; the drawing library has the first one built in.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SMALL, NORMAL, TITLE = 11, 12, 15

_SUBTITLE_LENGTH = 100

# Pixels of a row's name: on a phone it may not take the width from what is drawn. A file has no
# container, so there it is what a wide page gives.
_LABELS = {"expr": "clamp(0.3 * (containerSize()[0] || 640), 70, 180)"}


class Theme(Struct, frozen=True):
    """Colours of a theme, named by what they are for.

    Attributes
    ----------
    background : str
    text, quiet : str
        Titles; labels and subtitles.
    grid : str
        Grid lines: decoration, so without a minimum contrast.
    grey : str
        Marks that step back, and axes.
    blue, orange, green, purple : str
        Marks.
    """

    background: str
    text: str
    quiet: str
    grid: str
    grey: str
    blue: str
    orange: str
    green: str
    purple: str


LIGHT = Theme(
    background="#FFFFFF", text="#1F2430", quiet="#565E6C", grid="#E4E7EC", grey="#858B96",
    blue="#0072B2", orange="#B87A00", green="#007E5C", purple="#B05A8B",
)  # fmt: skip
DARK = Theme(
    background="#0E1117", text="#F2F4F8", quiet="#B4BAC6", grid="#262B36", grey="#767D8B",
    blue="#56B4E9", orange="#E69F00", green="#00B386", purple="#CC79A7",
)  # fmt: skip


def theme(dark: bool) -> Theme:
    """Give the colours of a theme.

    Parameters
    ----------
    dark : bool

    Returns
    -------
    Theme

    Examples
    --------
    >>> theme(dark=True).background
    '#0E1117'
    """
    return DARK if dark else LIGHT


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Make a key that sorts names as people do: numbers by value, letters without case.

    Parameters
    ----------
    name : str

    Returns
    -------
    list
        For `sorted`.

    Examples
    --------
    >>> sorted(["m-10b", "M-9b", "m-1.5b"], key=natural_key)
    ['m-1.5b', 'M-9b', 'm-10b']
    """
    parts = re.split(r"(\d+)", name)
    key = [(0, int(p), "") if p.isdecimal() else (1, 0, p.casefold()) for p in parts if p]
    # Names that differ in case only still have one order.
    return [*key, (2, 0, name)]


def natural_sorted(names: Iterable[str]) -> list[str]:
    """Sort names as people do, each once; see `natural_key`."""
    return sorted(set(names), key=natural_key)


def best_first(scores: Iterable[tuple[str, float]]) -> list[str]:
    """Sort names by score, the highest first; equal scores by name.

    Parameters
    ----------
    scores : iterable of (name, score)

    Returns
    -------
    list of str

    Examples
    --------
    >>> best_first([("m-10b", 0.5), ("m-9b", 0.5), ("m-70b", 0.9)])
    ['m-70b', 'm-9b', 'm-10b']
    """
    return [name for name, _ in sorted(scores, key=lambda row: (-row[1], natural_key(row[0])))]


def row_order(
    names: Sequence[str], default: Sequence[str], sort: Sequence[str] | None
) -> list[str]:
    """Give the explicit order of the rows of a chart: layers without one lose their order.

    Parameters
    ----------
    names : sequence of str
        Of the rows; each may stand there once.
    default : sequence of str
        The order where none is asked for.
    sort : sequence of str or None
        The order asked for; rows that it leaves out follow at the end, by name.

    Returns
    -------
    list of str
        Every name once.

    Raises
    ------
    ValueError
        When two rows have one name: they would be drawn over one another.
    """
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"rows need names of their own, several are {min(twice)!r}")
    if sort is None:
        return list(default)
    asked = [name for name in dict.fromkeys(sort) if name in set(names)]
    return [*asked, *natural_sorted(set(names) - set(asked))]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


class _Rows(alt.InlineData):
    """Rows of a chart that its copies share.

    Every step of building a chart copies all of it; with a thousand rows that takes most of the time.
    """

    def __deepcopy__(self, memo: Any = None) -> _Rows:
        return self


def data(rows: Iterable[Struct | dict[str, Any]]) -> alt.InlineData:
    """Put rows into a chart: strict JSON, so what is not finite becomes null and a day a text.

    Parameters
    ----------
    rows : iterable of Struct or dict

    Returns
    -------
    alt.InlineData
    """
    dicts = (row if isinstance(row, dict) else msgspec.structs.asdict(row) for row in rows)
    values = [{name: _plain(value) for name, value in row.items()} for row in dicts]
    return _Rows(values=values)


def finish(
    chart: AnyChart,
    *,
    dark: bool,
    title: str | None = None,
    subtitle: str | Sequence[str] = "",
    height: float | alt.Step | None = None,
) -> AnyChart:
    """Give a chart its theme, title, subtitle and size.

    Parameters
    ----------
    chart : chart
        Just made: it is changed, since the library's own way copies all of it at every step.
    dark : bool
    title : str or None
    subtitle : str or sequence of str
        Sentences; each begins a line and long ones are wrapped.
    height : number or alt.Step or None
        In pixels, the width being `WIDTH`; None for a chart that has its sizes.

    Returns
    -------
    chart
        The same one.
    """
    colours = theme(dark)
    sentences = [subtitle] if isinstance(subtitle, str) else subtitle
    lines = [line for text in sentences for line in textwrap.wrap(text, _SUBTITLE_LENGTH)]
    if title:
        words: dict[str, Any] = {"subtitle": lines} if lines else {}
        chart["title"] = alt.TitleParams(title, **words)
    elif lines:
        small: dict[str, Any] = {"fontSize": NORMAL, "fontWeight": "normal"}
        chart["title"] = alt.TitleParams(lines, color=colours.quiet, **small)
    if height is not None:
        chart["width"], chart["height"] = WIDTH, height
    chart["background"] = colours.background
    chart["config"] = alt.Config(**_config(colours))
    return chart


def _config(colours: Theme) -> dict[str, Any]:
    """Every default of Vega-Lite that is black or has a font of its own."""
    words = {"labelColor": colours.quiet, "titleColor": colours.text}
    sizes = {"labelFontSize": SMALL, "titleFontSize": NORMAL, "titleFontWeight": "normal"}
    lines = {"domainColor": colours.grey, "tickColor": colours.grey, "gridColor": colours.grid}
    marks = {"color": colours.blue, "opacity": 1}
    return {
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        "axis": {**words, **sizes, **lines, "labelLimit": _LABELS, "labelFlush": False,
                 "titlePadding": 8},
        "legend": {**words, **sizes, "symbolStrokeWidth": 2, "labelLimit": 320},
        "header": {**words, **sizes},
        "title": {
            "color": colours.text, "subtitleColor": colours.quiet, "anchor": "start",
            "frame": "group", "fontSize": TITLE, "subtitleFontSize": NORMAL, "fontWeight": "bold",
            "offset": 12, "subtitlePadding": 5,
        },
        "mark": marks, "bar": marks, "point": marks, "line": marks, "rule": marks, "tick": marks,
        "area": marks, "text": {"color": colours.text, "fontSize": SMALL},
    }  # fmt: skip


def empty(sentence: str, *, dark: bool, title: str | None = None) -> AnyChart:
    """Make the chart of no rows: a sentence that says what is missing.

    Parameters
    ----------
    sentence : str
    dark : bool
    title : str or None

    Returns
    -------
    chart

    Examples
    --------
    >>> empty("No scores yet.", dark=False).to_dict()["mark"]["text"]
    ['No scores yet.']
    """
    lines = textwrap.wrap(sentence, 90)
    mark: alt.Chart = alt.Chart(data([{}])).mark_text(
        text=lines, fontSize=NORMAL, color=theme(dark).quiet, lineBreak="\n"
    )
    return finish(mark, dark=dark, title=title, height=90)


def counted(n: int, noun: str) -> str:
    """Write a number with its noun.

    Parameters
    ----------
    n : int
    noun : str
        In the singular.

    Returns
    -------
    str

    Examples
    --------
    >>> counted(1, "item"), counted(1019, "item")
    ('1 item', '1,019 items')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
