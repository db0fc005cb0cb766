"""What a model is told when a search no longer gets better: convergence, edges, what good designs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.solvers.sizing.base import Evaluated, table
from harness.solvers.sizing.space import Space

_FEWEST, _MOST, _QUARTER = 3, 10, 4
_EDGE = 0.4


def best_first(tried: Sequence[Evaluated]) -> list[Evaluated]:
    """Give the designs among what was tried, best first."""
    return sorted((one for one in tried if one.design), key=lambda one: -one.worth)


def report(space: Space, tried: Sequence[Evaluated], bests: Sequence[float]) -> str:
    """Write the report on a space.

    Parameters
    ----------
    space : Space
    tried : sequence of Evaluated
        All designs so far.
    bests : sequence of float
        The best J after each step in this space.
    """
    ranked = best_first(tried)
    # The best quarter: with few designs the ten best would be all of them, and say nothing.
    top = ranked[: min(_MOST, max(_FEWEST, len(ranked) // _QUARTER))]
    parts = [
        "Best objective after each step (above 0: all specifications met): "
        + ", ".join(f"{best:.4g}" for best in bests),
        _edges(space, top),
        _shared(space, top),
        _issues(tried),
        f"The best designs:\n{table(ranked[:_MOST])}",
    ]
    return "\n".join(part for part in parts if part)


def _edges(space: Space, top: Sequence[Evaluated]) -> str:
    """Name variables whose good designs sit at an end of what is allowed."""
    said = []
    for name, values in space.values.items():
        if len(values) < 2 or not top:
            continue
        for end, value in (("lowest", values[0]), ("highest", values[-1])):
            share = sum(one.design is not None and one.design[name] == value for one in top) / len(
                top
            )
            if share >= _EDGE:
                said.append(f"{name} at its {end} allowed value {value:g} in {share:.0%}")
    return f"At an edge of the space, of the best designs: {'; '.join(said)}" if said else ""


def _shared(space: Space, top: Sequence[Evaluated]) -> str:
    said = []
    for name, values in space.values.items():
        if len(values) < 2:
            continue
        counts = Counter(one.design[name] for one in top if one.design)
        said.append(f"{name}: " + ", ".join(f"{v:g} x{n}" for v, n in counts.most_common(3)))
    return f"Most frequent values in the best designs: {'; '.join(said)}" if said else ""


def _issues(tried: Sequence[Evaluated]) -> str:
    faults = Counter(one.reason for one in tried if one.reason)
    if not faults:
        return ""
    said = "; ".join(f"{reason} ({n} times)" for reason, n in faults.most_common(3))
    return f"Issues: {said}"
