"""Pictures of a verdict: prediction, truth, their difference, and a view that can be turned."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.core.types import Picture

_COLOURS = "Grey: the truth, see-through. Yellow: missing. Red: too much."
_CAPTIONS = {
    "prediction": "What the program made.",
    "truth": "The true solid, to the same scale.",
    "difference": _COLOURS,
}
_FIELDS = ("x", "y", "z", "i", "j", "k")
_SEE_THROUGH = 0.35


def pictures(found: Mapping[str, Any]) -> tuple[Picture, ...]:
    """Make pictures of what `scorers.op_cad.kit.drawing.drawn` gave.

    Parameters
    ----------
    found : mapping
        PNG as base64 by name, and ``mesh``.

    Returns
    -------
    tuple of Picture
        'Prediction', 'Truth', 'Difference' as PNG and '3-D' as a figure of plotly; of these what there
        is.
    """
    made = [
        Picture(
            name=name.capitalize(), media_type="image/png", data=base64.b64decode(found[name]), caption=caption
        )
        for name, caption in _CAPTIONS.items()
        if name in found
    ]  # fmt: skip
    if found["mesh"]:
        made.append(_turnable(found["mesh"], known="difference" in found))
    return tuple(made)


def _turnable(meshes: Mapping[str, Mapping[str, Any]], *, known: bool) -> Picture:
    """Make a figure of plotly, without a template: the page has its own colours."""
    alone = len(meshes) == 1
    traces = [
        {
            "type": "mesh3d",
            "name": one["name"],
            "color": one["colour"],
            # What is missing or too much may lie inside.
            "opacity": _SEE_THROUGH if name == "prediction" and not alone else 1.0,
            "flatshading": True,
            "showlegend": True,
            "hoverinfo": "name",
            **{field: one[field] for field in _FIELDS},
        }
        for name, one in meshes.items()
    ]
    layout = {"scene": {"aspectmode": "data"}, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}
    caption = "Grey: what the program made. Yellow: missing. Red: too much. Drag to turn."
    if not known:
        caption = "What the program made; its difference from the truth is not known. Drag to turn."
    return Picture(
        name="3-D",
        media_type="application/vnd.plotly.v1+json",
        data=msgspec.json.encode({"data": traces, "layout": layout}),
        caption=caption,
    )
