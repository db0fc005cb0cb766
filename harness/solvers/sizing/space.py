"""A search space: for each variable the values that are allowed, or the one that is fixed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from harness.solvers.sizing.base import Evaluated, SizingBench
from harness.solvers.sizing.optimisers import Point, Told, search

_TOLERANCE = 1e-9


class SpaceError(ValueError):
    """A proposed space that is none, and why."""


class Space(Struct, frozen=True):
    """Values of each variable, in ascending order; a fixed one has a single value."""

    values: dict[str, tuple[float, ...]]

    @classmethod
    def whole(cls, variables: Mapping[str, tuple[float, ...]]) -> Space:
        """Allow the whole grid."""
        return cls({name: tuple(sorted(grid)) for name, grid in variables.items()})

    @classmethod
    def read(
        cls, found: Mapping[str, Any] | None, variables: Mapping[str, tuple[float, ...]]
    ) -> Space:
        """Read a reply: ``variables_to_optimize`` with lists, ``variables_fixed`` with values.

        Raises
        ------
        SpaceError
            A variable is missing, further or named in both; a value is not on its grid.
        """
        opened = (found or {}).get("variables_to_optimize", {})
        fixed = (found or {}).get("variables_fixed", {})
        if not found or not isinstance(opened, dict) or not isinstance(fixed, dict):
            raise SpaceError("no JSON object with variables_to_optimize and variables_fixed")
        if both := sorted(set(opened) & set(fixed)):
            raise SpaceError(f"{both[0]} is optimised and fixed")
        if further := sorted((set(opened) | set(fixed)) - set(variables)):
            raise SpaceError(f"{further[0][:40]} is no variable")
        lacking = [name for name in variables if name not in opened and name not in fixed]
        if lacking:
            raise SpaceError(f"{lacking[0]} is neither optimised nor fixed")
        values = {}
        for name, grid in variables.items():
            given = opened[name] if name in opened else [fixed[name]]
            if not isinstance(given, list) or not given:
                raise SpaceError(f"{name} has no list of values")
            values[name] = tuple(sorted({_on_grid(name, value, grid) for value in given}))
        return cls(values)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each variable has."""
        return tuple(len(values) for values in self.values.values())

    @property
    def size(self) -> int:
        """How many designs there are."""
        return math.prod(self.shape)

    def design(self, point: Point) -> dict[str, float]:
        """Give the design of grid indices."""
        pairs = zip(self.values.items(), point, strict=True)
        return {name: values[index] for (name, values), index in pairs}

    def known(self, tried: list[Evaluated]) -> list[Told]:
        """Give those of the designs tried that lie in this space, with their worth."""
        found = []
        for one in tried:
            if one.design is not None and all(
                one.design[name] in values for name, values in self.values.items()
            ):
                point = tuple(values.index(one.design[n]) for n, values in self.values.items())
                found.append((point, one.worth))
        return found

    def search(self, opt: str, bench: SizingBench, budget: int, seed: int) -> int:
        """Let an optimiser try up to `budget` new designs of this space; give how many it tried."""
        found = search(
            opt, self.shape, budget, seed,
            lambda point: bench.evaluate([self.design(point)])[0].worth, self.known(bench.tried),
        )  # fmt: skip
        return len(found)


def _on_grid(name: str, value: Any, grid: tuple[float, ...]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpaceError(f"a value of {name} is no number")
    for allowed in grid:
        if math.isclose(value, allowed, rel_tol=_TOLERANCE):
            return allowed
    raise SpaceError(f"{name} = {value:g} is not on its grid")
