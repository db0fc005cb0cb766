"""What a verdict comes with to look at: pictures of a scorer, and the figures it rests on.

A run may come from elsewhere, so nothing here is drawn as markup of the page: an SVG or PNG stands in
an ``img`` (where no script runs and nothing is loaded), and a chart whose data are not in it, or that
leads somewhere, is given as a file only.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import streamlit as st

from harness.core.types import Picture
from leaderboard.rows.attempt import visible
from leaderboard.ui.markup import plain

_CHART = "application/vnd.vegalite+json"
_SOLID = "application/vnd.plotly.v1+json"
_ENDINGS = {"image/svg+xml": "svg", "image/png": "png", _CHART: "vl.json", _SOLID: "plotly.json"}
# What makes a chart load something, or leads away from the page.
_LEADS_OUT = {"url", "href", "loader", "usermeta", "tooltipUrl"}
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_MOST_ROWS = 200


def pictures(found: Sequence[Picture]) -> None:
    """Draw pictures one below the other, each with its file."""
    for number, picture in enumerate(found, 1):
        st.markdown(f"**{plain(visible(picture.name))}**")
        if picture.media_type == _CHART:
            _chart(picture, number)
        elif picture.media_type == _SOLID:
            _solid(picture, number)
        else:
            st.html(image_html(picture))
        if picture.caption:
            st.caption(plain(visible(picture.caption)))
        st.download_button(
            "File", data=picture.data, file_name=f"picture-{number}.{_ENDINGS[picture.media_type]}",
            mime=picture.media_type, key=f"picture_{number}", icon=":material/download:",
            on_click="ignore",
        )  # fmt: skip


def image_html(picture: Picture) -> str:
    """Write an image as HTML that runs nothing and loads nothing.

    Examples
    --------
    >>> image_html(Picture(name="<b>", media_type="image/png", data=b""))
    '<img src="data:image/png;base64," alt="&lt;b&gt;" style="max-width:100%;background:#fff">'
    """
    words = f"{picture.name}. {picture.caption}" if picture.caption else picture.name
    source = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode()}"
    return (
        f'<img src="{source}" alt="{html.escape(visible(words))}" '
        'style="max-width:100%;background:#fff">'
    )


def spec_of(picture: Picture) -> dict[str, Any] | None:
    """Read a chart; None for one that loads something, leads somewhere or cannot be read.

    Examples
    --------
    >>> away = b'{"data": {"url": "http://example.org/x"}, "mark": "point"}'
    >>> spec_of(Picture(name="a", media_type="application/vnd.vegalite+json", data=away)) is None
    True
    """
    try:
        spec = msgspec.json.decode(picture.data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None
    return None if _leads_out(spec) else spec


def _leads_out(part: Any) -> bool:
    if isinstance(part, Mapping):
        return any(name in _LEADS_OUT or _leads_out(inner) for name, inner in part.items())
    return isinstance(part, list) and any(map(_leads_out, part))


def _chart(picture: Picture, number: int) -> None:
    spec = spec_of(picture)
    if spec is None:
        st.caption("This chart is not drawn: it cannot be read, or would load something.")
        return
    words = f"{picture.name}. {picture.caption}"
    st.vega_lite_chart(spec=spec, theme="streamlit", key=f"picture_{number}_chart", alt=words)


class _Mesh(msgspec.Struct, frozen=True):
    """A surface of triangles; nothing else of a figure is taken over."""

    name: str
    color: str
    x: list[float]
    y: list[float]
    z: list[float]
    i: list[int]
    j: list[int]
    k: list[int]
    opacity: float = 1.0


class _Figure(msgspec.Struct, frozen=True):
    data: list[_Mesh]


def solid_of(picture: Picture) -> dict[str, Any] | None:
    """Read surfaces as a figure of our own making; None for anything else.

    Examples
    --------
    >>> solid_of(Picture(name="a", media_type="application/vnd.plotly.v1+json", data=b'{"data": [{}]}')) is None
    True
    """
    try:
        found = msgspec.json.decode(picture.data, type=_Figure)
    except (msgspec.DecodeError, RecursionError):
        return None
    traces = [
        {
            "type": "mesh3d", **msgspec.to_builtins(mesh), "name": html.escape(visible(mesh.name)),
            "color": mesh.color if _COLOUR.fullmatch(mesh.color) else "#888888", "showlegend": True,
            "flatshading": True, "hoverinfo": "name",
        }
        for mesh in found.data
    ]  # fmt: skip
    scene = {"aspectmode": "data"}
    layout = {"scene": scene, "margin": dict.fromkeys("lrtb", 0), "height": 460}
    return {"data": traces, "layout": layout}


def _solid(picture: Picture, number: int) -> None:
    figure = solid_of(picture)
    if figure is None:
        st.caption("This solid is not drawn: it cannot be read.")
        return
    st.plotly_chart(
        figure, key=f"picture_{number}_solid", config={"displaylogo": False, "displayModeBar": False}
    )  # fmt: skip


def facts(found: Mapping[str, Any]) -> None:
    """Draw what a verdict rests on: single values as a line, rows as tables."""
    st.html(measured_html(found))


def measured_html(found: Mapping[str, Any]) -> str:
    """Write facts as HTML, everything escaped; long tables end at 200 rows.

    Examples
    --------
    >>> "<td>0.5</td>" in measured_html({"rows": [{"seconds": 0.5}]})
    True
    """
    single = {name: v for name, v in found.items() if not _is_rows(v)}
    parts = [_table([{"fact": name, "value": value} for name, value in single.items()])]
    for name, rows in found.items():
        if _is_rows(rows):
            parts.append(f"<p><b>{_cell(name)}</b></p>{_table(rows[:_MOST_ROWS])}")
            if len(rows) > _MOST_ROWS:
                parts.append(f"<p>The first {_MOST_ROWS} of {len(rows):,} rows.</p>")
    return "".join(parts)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return ""
    style = "text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top"
    head = "".join(f'<th scope="col" style="{style}">{_cell(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto"><table style="font-size:.85rem;border-spacing:.8rem .1rem">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return html.escape(visible(text))
