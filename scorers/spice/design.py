"""Reading a sizing that a model wrote: every variable, each a number of its grid, nothing else."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```", re.DOTALL)
_TOLERANCE = 1e-9


class DesignError(ValueError):
    """A sizing that is none, and why."""


def read_design(
    answer: str | Mapping[str, Any], variables: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Read one sizing.

    Parameters
    ----------
    answer : str or mapping
        One JSON object, alone or in the only fenced block of a reply.
    variables : mapping of str to sequence of float
        The grid of each variable.

    Returns
    -------
    dict of str to float
        In the order of `variables`, each exactly the grid's value.

    Raises
    ------
    DesignError
        A name is missing, further or misspelt; a value is no number (a text, a truth value, NaN) or
        not on the grid. Nothing is repaired or rounded.

    Examples
    --------
    >>> read_design('{"W": 2, "L": 0.15}', {"W": (1.0, 2.0), "L": (0.15,)})
    {'W': 2.0, 'L': 0.15}
    >>> read_design('{"W": "2", "L": 0.15}', {"W": (1.0, 2.0), "L": (0.15,)})
    Traceback (most recent call last):
        ...
    scorers.spice.design.DesignError: W is '2', no number
    """
    given = _object(answer) if isinstance(answer, str) else answer
    lacking = [name for name in variables if name not in given]
    further = [name for name in given if name not in variables]
    if lacking or further:
        parts = [f"{', '.join(map(_short, lacking))} missing"] if lacking else []
        parts += [f"{', '.join(map(_short, further[:5]))} is no variable"] if further else []
        raise DesignError("; ".join(parts))
    return {name: _on_grid(name, given[name], grid) for name, grid in variables.items()}


def _object(text: str) -> Mapping[str, Any]:
    blocks = _FENCE.findall(text)
    body = blocks[0] if len(blocks) == 1 else text
    try:
        found = json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DesignError(f"no JSON object can be read: {str(error)[:100]}") from error
    if not isinstance(found, dict):
        raise DesignError("the answer is JSON, but no object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _on_grid(name: str, value: Any, grid: Sequence[float]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DesignError(f"{name} is {_short(value)}, no number")
    if not math.isfinite(value):
        raise DesignError(f"{name} is {value}, no number")
    for allowed in grid:
        if math.isclose(value, allowed, rel_tol=_TOLERANCE):
            return float(allowed)
    raise DesignError(f"{name} = {value:g} is not on its grid ({min(grid):g} to {max(grid):g})")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
