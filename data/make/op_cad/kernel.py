"""Runs own code in the CAD kernel, and measures what comes out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from scorers.op_cad.kit import solids


def run(code: str, scope: dict[str, Any]) -> None:
    """Run code that this package wrote."""
    exec(compile(code, "<own>", "exec"), scope)  # noqa: S102  our own code, not a model's


def solid_of(scope: dict[str, Any], name: str) -> Any:
    """Give what a variable holds as one valid solid.

    Raises
    ------
    scorers.op_cad.kit.solids.InvalidError
        It is none, or more than one.
    """
    shape = solids.united(scope[name].vals())
    if len(shape.Solids()) != 1:
        raise solids.InvalidError(f"{name} falls into {len(shape.Solids())} solids")
    return shape


def built(script: str, name: str) -> Any:
    """Run a script of its own and give one of its solids; see `solid_of`."""
    scope: dict[str, Any] = {}
    run(script, scope)
    return solid_of(scope, name)


def margin(shape: Any, place: Sequence[float]) -> float:
    """Give by how much the nearest edge is nearer than the next one; negative where none is there."""
    away = sorted(math.dist(edge.Center().toTuple(), place) for edge in shape.Edges())
    return away[1] - away[0] if away[0] <= 1e-5 else -1.0


def digest(shape: Any) -> str:
    """Give the SHA-256 of a solid in the kernel's own format."""
    return hashlib.sha256(solids.write(shape)).hexdigest()


def versions() -> dict[str, str]:
    """Give the versions of the kernel's packages."""
    return {name: version(name) for name in ("cadquery", "cadquery-ocp")}
