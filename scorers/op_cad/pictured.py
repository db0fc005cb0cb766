"""Pictures of a verdict: prediction, truth, difference, and a view that can be turned."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.core.types import Picture

_CAPTIONS = {
    "prediction": "What the program made.",
    "truth": "The true solid.",
    "difference": "Grey: common to both. Yellow: missing. Red: too much.",
}
_COLOURS = {"missing": "#f0c828", "surplus": "#d73c32", "prediction": "#b0becd", "truth": "#b0becd"}


def pictures(found: Mapping[str, Any]) -> tuple[Picture, ...]:
    """Make pictures of what `kit.shown.drawn` gave."""
    flat = found["pictures"]
    made = [
        Picture(
            name=name.capitalize(), media_type="image/png", data=base64.b64decode(flat[name]), caption=caption
        )
        for name, caption in _CAPTIONS.items()
        if name in flat
    ]  # fmt: skip
    meshes = found["meshes"]
    wanted = ["prediction", "missing", "surplus"] if "prediction" in meshes else ["truth"]
    traces = [
        {
            "type": "mesh3d", "name": name, "color": _COLOURS[name],
            "opacity": 0.45 if name == "prediction" and len(meshes) > 2 else 1.0, **meshes[name],
        }
        for name in wanted if name in meshes
    ]  # fmt: skip
    figure = msgspec.json.encode({"data": traces, "layout": {"scene": {"aspectmode": "data"}}})
    solid = Picture(
        name="In three dimensions", media_type="application/vnd.plotly.v1+json", data=figure,
        caption="Drag to turn. Grey: what was made. Yellow: missing. Red: too much.",
    )  # fmt: skip
    return (*made, solid)
