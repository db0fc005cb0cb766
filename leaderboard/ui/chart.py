"""A chart on the page, with files of it to take away."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import streamlit as st

from leaderboard.ui.handle import board
from leaderboard.ui.markup import plain

if TYPE_CHECKING:
    from leaderboard.charts.common import AnyChart


def is_dark() -> bool:
    """Tell whether the visitor sees the dark theme."""
    return st.context.theme.type == "dark"


def chart(drawn: AnyChart | partial[AnyChart], key: str, *, alt: str) -> None:
    """Draw a chart as it is (its colours are its own), with a menu of PNG and SVG.

    Title and subtitle stand on the page, where they wrap: in the drawing a long one would be cut on
    a phone and take the width from the rest. The files have them inside.

    Parameters
    ----------
    drawn : chart, or partial of a function that gives one
        Of a ``partial(score_plot, rows, dark=…)`` the chart is kept while its arguments are the
        same: making it takes longer than all else on a page that is drawn again.
    key : str
        Of the widgets; also the name of the files.
    alt : str
        What it shows, for those who do not see it.
    """
    spec = _kept(drawn) if isinstance(drawn, partial) else _spec(drawn)
    title, lines = _words(spec)
    if title:
        st.markdown(f"**{plain(title)}**")
    if lines:
        st.caption("  \n".join(map(plain, lines)))
    # The columns of a facet have a width of their own.
    width: Literal["content", "stretch"] = "content" if "facet" in spec else "stretch"
    shown = {name: part for name, part in spec.items() if name != "title"}
    words = f"{title}. {alt}" if title else alt
    st.vega_lite_chart(spec=shown, theme=None, key=f"{key}_chart", alt=words, width=width)
    with st.popover("Picture", icon=":material/image:", key=f"{key}_picture"):
        for form, mime in (("png", "image/png"), ("svg", "image/svg+xml")):
            st.download_button(
                form.upper(),
                # Drawn when it is asked for: it takes a second.
                data=partial(_picture, spec, form),
                file_name=f"{key}.{form}",
                mime=mime,
                key=f"{key}_{form}_picture",
                on_click="ignore",
            )


def _words(spec: dict[str, Any]) -> tuple[str, list[str]]:
    """Give the title of a chart, and the sentences below it; a title of sentences only is no title."""
    title = spec.get("title") or {}
    text = title.get("text", "")
    return (text, title.get("subtitle", [])) if isinstance(text, str) else ("", text)


def _kept(drawn: partial[AnyChart]) -> dict[str, Any]:
    function: Any = drawn.func
    arguments = msgspec.json.encode([drawn.args, drawn.keywords])
    key = (function.__module__, function.__qualname__, hashlib.sha256(arguments).hexdigest())
    return board().keep(key, lambda: _made(drawn))


def _made(drawn: partial[AnyChart]) -> dict[str, Any]:
    from altair.utils.schemapi import debug_mode

    # Tests check every chart against the library's schema; here it would be most of the time.
    with debug_mode(False):
        return _spec(drawn())


def _spec(drawn: AnyChart) -> dict[str, Any]:
    return dict(drawn.to_dict(validate=False))


def _picture(spec: dict[str, Any], form: str) -> bytes:
    import altair as alt

    from leaderboard.charts.saving import to_png, to_svg

    drawn: Any = alt.Chart.from_dict(spec, validate=False)
    return to_png(drawn) if form == "png" else to_svg(drawn).encode()
