"""A chart on the page, with files of it to take away."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import streamlit as st

from leaderboard.ui.handle import board

if TYPE_CHECKING:
    from leaderboard.charts.common import AnyChart


def is_dark() -> bool:
    """Tell whether the visitor sees the dark theme."""
    return st.context.theme.type == "dark"


def chart(drawn: AnyChart | partial[AnyChart], key: str, *, alt: str) -> None:
    """Draw a chart as it is (its colours are its own), with a menu of PNG and SVG.

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
    # The columns of a facet have a width of their own.
    width: Literal["content", "stretch"] = "content" if "facet" in spec else "stretch"
    st.vega_lite_chart(spec=spec, theme=None, key=f"{key}_chart", alt=alt, width=width)
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
