"""What figures are worth against specifications: margins, the objective J, upstream's figure of merit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from scorers.spice.circuit import Op, Spec

INVALID = -1000.0
"""J of a point that could not be simulated, or lacks a figure."""
_SPEC = re.compile(r"\s*([A-Za-z_]\w*)\s*([<>])=?\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
_NEAR_ZERO = 1e-12


def read_specs(text: str) -> tuple[Spec, ...]:
    """Read specifications as upstream writes them: ``gain > 15 AND power < 65``.

    A target may be negative; upstream's own pattern has no minus sign and drops such a specification.

    Raises
    ------
    ValueError
        A part that is none.

    Examples
    --------
    >>> [str(spec) for spec in read_specs("gain > 15 AND thd_db < -25")]
    ['gain > 15', 'thd_db < -25']
    """
    found = []
    for part in re.split(r"(?i)\bAND\b|,|;", text):
        match = _SPEC.fullmatch(part)
        if match is None:
            raise ValueError(
                f"{part.strip()!r} is no specification: write NAME > NUMBER or NAME < NUMBER"
            )
        op: Op = ">" if match[2] == ">" else "<"
        found.append(Spec(match[1], op, float(match[3])))
    return tuple(found)


def margin(spec: Spec, metrics: Mapping[str, float]) -> float | None:
    """Give by how much a figure is better than its target, relative to it; None where it is missing.

    (m - t) / |t| for ``>``, (t - m) / |t| for ``<``, with 1 for |t| where t = 0.
    """
    if spec.metric not in metrics:
        return None
    better = metrics[spec.metric] - spec.target
    return (better if spec.op == ">" else -better) / (abs(spec.target) or 1.0)


def objective(specs: Sequence[Spec], metrics: Mapping[str, float] | None) -> float:
    """Give J: above 0 exactly where every specification holds.

    J = sum of tanh(g) where all margins g are above 0, else the sum of what each lacks, down to -10;
    -1000 for a point without figures or with a missing one.

    Examples
    --------
    >>> specs = read_specs("gain > 15 AND power < 65")
    >>> round(objective(specs, {"gain": 18, "power": 70}), 6)
    -0.076923
    >>> round(objective(specs, {"gain": 18, "power": 60}), 6)
    0.274147
    >>> objective(specs, {"gain": 18})
    -1000.0
    """
    margins = [margin(spec, metrics or {}) for spec in specs]
    known = [g for g in margins if g is not None]
    if metrics is None or len(known) < len(margins):
        return INVALID
    if all(g > 0 for g in known):
        return sum(map(math.tanh, known))
    return sum(max(-10.0, min(0.0, g)) for g in known)


def is_met(specs: Sequence[Spec], metrics: Mapping[str, float] | None) -> bool:
    """Tell whether every specification holds; a missing figure is one that is not met."""
    return objective(specs, metrics) > 0


def figure_of_merit(specs: Sequence[Spec], metrics: Mapping[str, float]) -> float:
    """Give upstream's figure of merit, with its signs put right.

    The product of figure / target for ``>``, divided by figure / target for ``<``. With a negative target
    the sizes are compared: times |m| / |t| for ``<``, divided by it for ``>``. Targets near 0 are left out.

    Raises
    ------
    KeyError
        A figure is missing.

    Examples
    --------
    >>> figure_of_merit([Spec("peak", ">", -15.0)], {"peak": -10.0})
    1.5
    """
    product = 1.0
    for spec in specs:
        value = metrics[spec.metric]
        if abs(spec.target) < _NEAR_ZERO:
            continue
        ratio = abs(value) / abs(spec.target) if spec.target < 0 else value / spec.target
        grows = (spec.op == ">") == (spec.target > 0)
        if not grows and ratio == 0:
            return math.inf
        product = product * ratio if grows else product / ratio
    return product


def first_hit(specs: Sequence[Spec], tried: Sequence[Mapping[str, float] | None]) -> int | None:
    """Give the 1-based number of the first design that meets everything; None where none does."""
    return next((k for k, metrics in enumerate(tried, 1) if is_met(specs, metrics)), None)


def best_so_far(specs: Sequence[Spec], tried: Sequence[Mapping[str, float] | None]) -> list[float]:
    """Give the best J after each design: the curve of convergence."""
    best, curve = INVALID, []
    for metrics in tried:
        best = max(best, objective(specs, metrics))
        curve.append(best)
    return curve
