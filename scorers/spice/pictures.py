"""What is drawn of designs: convergence, figures against each other, and the best one's curve."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.types import Picture
from scorers.spice.circuit import Circuit, Spec

# Okabe and Ito's colours, told apart by most eyes.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"
_FLOOR = -10.0
_J = "J (above 0: all met)"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def convergence(worth: Sequence[float]) -> Picture:
    """Draw the best J after each design; what could not be measured is drawn at -10.

    Parameters
    ----------
    worth : sequence of float
        J of each design in order.
    """
    best, rows = float("-inf"), []
    for number, value in enumerate(worth, 1):
        best = max(best, value)
        rows.append({"n": number, "j": max(_FLOOR, value), "best": max(_FLOOR, best)})
    x = {"field": "n", "type": "quantitative", "title": "design"}
    layers = [
        {"mark": {"type": "point", "color": _ORANGE}, "encoding": {"x": x, "y": _axis("j", _J)}},
        {
            "mark": {"type": "line", "interpolate": "step-after", "color": _BLUE},
            "encoding": {"x": x, "y": _axis("best", _J)},
        },
        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"y": {"datum": 0}}},
    ]
    return _picture("Convergence", rows, {"layer": layers}, "Each design's J, and the best so far.")


def scatter(
    circuit: Circuit, specs: Sequence[Spec], rows: Sequence[tuple[Mapping[str, float], bool]]
) -> Picture | None:
    """Draw the first two specified figures of all designs against each other, with their targets.

    Returns
    -------
    Picture or None
        None where fewer than two figures are specified or no design has both.
    """
    names = list(dict.fromkeys(spec.metric for spec in specs))[:2]
    data = [
        {
            "x": metrics[names[0]],
            "y": metrics[names[1]],
            "verdict": "all met" if met else "not all met",
        }
        for metrics, met in rows
        if len(names) == 2 and all(name in metrics for name in names)
    ]
    if not data:
        return None
    units = {metric.name: metric.unit for metric in circuit.metrics}
    titles = [f"{name} ({units[name]})" if units.get(name) else name for name in names]
    colour = {
        "field": "verdict", "type": "nominal", "title": None,
        "scale": {"domain": ["all met", "not all met"], "range": [_GREEN, _ORANGE]},
    }  # fmt: skip
    points = {
        "mark": {"type": "point", "filled": True, "size": 60},
        "encoding": {"x": _axis("x", titles[0]), "y": _axis("y", titles[1]), "color": colour},
    }
    rules = [
        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {side: {"datum": spec.target}}}
        for side, name in zip("xy", names, strict=True)
        for spec in specs
        if spec.metric == name
    ]
    said = ", ".join(str(spec) for spec in specs if spec.metric in names)
    return _picture("Designs", data, {"layer": [points, *rules]}, f"Targets: {said}")


def curve(circuit: Circuit, rows: Sequence[Sequence[float]]) -> Picture:
    """Draw what the best design does, over frequency or time.

    Parameters
    ----------
    circuit : Circuit
        With a `curve`.
    rows : sequence of sequence of float
        x and one value for each vector of the curve.
    """
    drawn = circuit.curve
    assert drawn is not None  # asked for only where there is one
    spread = drawn.x == "frequency"
    factor, title = (1.0, "frequency (Hz)") if spread else (1e9, "time (ns)")
    data = [
        {"x": row[0] * factor, "y": value, "signal": label}
        for row in rows
        for label, value in zip(drawn.y, row[1:], strict=True)
    ]
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": title}
    if spread:
        x |= {"scale": {"type": "log"}, "axis": {"format": "~s"}}
    encoding: dict[str, Any] = {"x": x, "y": _axis("y", drawn.title)}
    if len(drawn.y) > 1:
        encoding["color"] = {"field": "signal", "type": "nominal", "title": None}
    mark = {"type": "line", "strokeWidth": 1.5, **({} if len(drawn.y) > 1 else {"color": _BLUE})}
    return _picture("Best design", data, {"mark": mark, "encoding": encoding}, circuit.title)


def _axis(field: str, title: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}}


def _picture(name: str, rows: Sequence[Any], chart: Mapping[str, Any], caption: str) -> Picture:
    spec = {
        "$schema": _SCHEMA,
        "width": 520,
        "height": 260,
        "data": {"values": list(rows)},
        **chart,
    }
    return Picture(
        name=name, media_type="application/vnd.vegalite+json", data=json.dumps(spec).encode(), caption=caption
    )  # fmt: skip
