"""Charts as files, without the network: the drawing library brings its own script and fonts."""

from __future__ import annotations

import json
from pathlib import Path

import altair as alt
import vl_convert

from harness.core.errors import UsageError
from leaderboard.charts.common import AnyChart

_SCALE = 2.0  # sharp on screens of double density and in print

# The menu's other entries lead to a public editor, or show the source.
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Chart</title></head>
<body style="background:{background}">
<div id="chart"></div>
<script>{bundle}</script>
<script>vegaEmbed("#chart", {spec}, {options}).catch(console.error);</script>
</body>
</html>
"""


def to_svg(chart: AnyChart) -> str:
    """Draw a chart as SVG.

    Parameters
    ----------
    chart : chart

    Returns
    -------
    str
    """
    return str(vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[]))


def to_png(chart: AnyChart) -> bytes:
    """Draw a chart as PNG, at double density.

    Parameters
    ----------
    chart : chart

    Returns
    -------
    bytes
    """
    return bytes(vl_convert.vegalite_to_png(chart.to_dict(), scale=_SCALE, allowed_base_urls=[]))


def to_html(chart: AnyChart) -> str:
    """Write a chart as a page that opens from disk, its script inside (about 0.9 MB).

    Parameters
    ----------
    chart : chart

    Returns
    -------
    str
    """
    spec = chart.to_dict()
    # Names come from runs and submissions of others: none of them may end the script.
    safe = json.dumps(spec, allow_nan=False).replace("<", "\\u003c")
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return _PAGE.format(
        background=spec["background"],
        bundle=vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version),
        spec=safe,
        options=json.dumps({"actions": _ACTIONS}),
    )


def save(chart: AnyChart, path: Path) -> Path:
    """Write a chart to a file; its ending says how.

    Parameters
    ----------
    chart : chart
    path : Path
        Ends in ``.png``, ``.svg`` or ``.html``; its folder is made where it is missing.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    UsageError
        For another ending, or a file that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from leaderboard.charts.common import empty
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(empty("Nothing yet.", dark=False), Path(folder) / "a.svg").name
    'a.svg'
    """
    ending = path.suffix.lower()
    if ending not in (".png", ".svg", ".html"):
        raise UsageError(f"cannot save a chart as {path.name}: end the name in .png, .svg or .html")
    if ending == ".png":
        content = to_png(chart)
    else:
        content = (to_svg(chart) if ending == ".svg" else to_html(chart)).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    return path
