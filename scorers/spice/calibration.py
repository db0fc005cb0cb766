"""Levels of difficulty: targets drawn from random sizings, so that chance alone is known beforehand."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
from msgspec import Struct

from harness.core.resources import data
from scorers.spice.circuit import Circuit, Spec
from scorers.spice.score import is_met, objective

SHARES = {"1": 0.20, "2": 0.05, "3": 0.01}
"""The share of random sizings that should meet each level."""
LEVELS = (*SHARES, "upstream")
BUDGETS = (10, 30, 100)
_FEWEST = 3
_NARROW = 0.03
_STEPS = 1000
_SEARCHES = 20

Point = tuple[Mapping[str, float], Mapping[str, float] | None]
"""A sizing and its figures; None where it could not be simulated or lacks one."""


class Level(Struct, frozen=True, kw_only=True):
    """The targets of a circuit at a level.

    Attributes
    ----------
    specs : tuple of Spec
    rate : float
        Share of random sizings that meet them all.
    gold : dict of str to float, optional
        The best of these sizings, where one meets them.
    random_j : dict of str to float
        Mean best J of 20 random searches by their budget.
    """

    specs: tuple[Spec, ...]
    rate: float
    gold: dict[str, float] | None
    random_j: dict[str, float]

    @property
    def discriminating(self) -> bool:
        """Whether chance neither always meets the targets nor, as far as is known, anybody can."""
        return self.gold is not None and self.rate < 0.95


class Calibration(Struct, frozen=True, kw_only=True):
    """What random sizings of a circuit gave in a technology.

    Attributes
    ----------
    points : int
        Sizings simulated; the whole grid where it is no larger.
    valid : float
        Share that could be simulated, every figure there.
    quantiles : dict of str to (float, float, float)
        The 10, 50 and 90 % quantiles of each figure.
    levels : dict of str to Level
    library : str
        SHA-256 of the models.
    """

    points: int
    valid: float
    quantiles: dict[str, tuple[float, float, float]]
    levels: dict[str, Level]
    library: str


@cache
def calibration(technology: str, circuit: str) -> Calibration:
    """Read what is published with the tasks.

    Raises
    ------
    KeyError
        This circuit cannot be simulated in this technology.
    """
    content = (data("ams_sizing") / "calibration.json").read_bytes()
    # The user's own PDK holds the same transistors as the small set.
    known = "sky130" if technology == "sky130-full" else technology
    everything = msgspec.json.decode(content, type=dict[str, dict[str, Calibration]])
    return everything[known][circuit]


def calibrate(
    circuit: Circuit, points: Sequence[Point], library: str, seed: int = 0
) -> Calibration:
    """Draw the levels of a circuit from simulated sizings."""
    figures = [metrics for _, metrics in points if metrics is not None]
    quantiles = {
        metric.name: _deciles([found[metric.name] for found in figures])
        for metric in circuit.metrics
    }
    chosen = {**level_specs(circuit, figures, len(points)), "upstream": circuit.upstream}
    return Calibration(
        points=len(points), valid=len(figures) / len(points), quantiles=quantiles, library=library,
        levels={name: _level(specs, points, seed) for name, specs in chosen.items()},
    )  # fmt: skip


def level_specs(
    circuit: Circuit, figures: Sequence[Mapping[str, float]], n_points: int
) -> dict[str, tuple[Spec, ...]]:
    """Give each level's targets: every figure at one quantile, the same for all, three digits.

    The quantile is the one whose joint success lies nearest the level's share of all points, with three
    points at least. A figure that hardly changes (10 to 90 %: less than 3 % of its median) has no target.
    """
    metrics = [
        metric for metric in circuit.metrics
        if metric.calibrated and not _hardly_changes([found[metric.name] for found in figures])
    ]  # fmt: skip
    ordered = {m.name: sorted(found[m.name] for found in figures) for m in metrics}

    def at(step: int) -> tuple[Spec, ...]:
        q = step / _STEPS
        targets = (
            Spec(
                m.name,
                m.better,
                _rounded(_quantile(ordered[m.name], q if m.better == ">" else 1 - q)),
            )
            for m in metrics
        )
        return (*targets, *circuit.windows)

    rates = []
    for step in range(_STEPS):
        met = sum(is_met(at(step), found) for found in figures)
        if met >= _FEWEST:
            rates.append((step, met / n_points))
    if not rates:
        return {}
    levels, least = {}, 0
    for level, share in SHARES.items():
        # A harder level never has a softer target.
        step = min((s for s, _ in rates if s >= least), key=lambda s: abs(dict(rates)[s] - share))
        levels[level], least = at(step), step
    return levels


def _level(specs: tuple[Spec, ...], points: Sequence[Point], seed: int) -> Level:
    values = [objective(specs, metrics) for _, metrics in points]
    best = max(range(len(points)), key=values.__getitem__)
    return Level(
        specs=specs, rate=sum(value > 0 for value in values) / len(points),
        gold=dict(points[best][0]) if values[best] > 0 else None,
        random_j={str(budget): _mean_best(values, budget, seed) for budget in BUDGETS},
    )  # fmt: skip


def _mean_best(values: Sequence[float], budget: int, seed: int) -> float:
    """Give the mean best J of random searches among simulated points, each drawn without repetition."""
    rng = random.Random(seed)
    bests = [max(rng.sample(list(values), min(budget, len(values)))) for _ in range(_SEARCHES)]
    return round(statistics.fmean(bests), 6)


def _hardly_changes(values: Sequence[float]) -> bool:
    low, middle, high = _deciles(values)
    return high - low < _NARROW * abs(middle)


def _deciles(values: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    low, middle, high = (_quantile(ordered, q) for q in (0.1, 0.5, 0.9))
    return low, middle, high


def _quantile(ordered: Sequence[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
