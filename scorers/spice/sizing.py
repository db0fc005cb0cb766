"""The scorer `sizing`: simulate the designs of an answer and say whether one meets every specification."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.types import Output, Picture, Sample, Score
from scorers.spice.circuit import Circuit, Spec
from scorers.spice.circuits import CIRCUITS
from scorers.spice.design import DesignError, read_design
from scorers.spice.ngspice import SHARED, Simulation, Simulator, missing_program, ngspice_version
from scorers.spice.pictures import convergence, curve, scatter
from scorers.spice.score import figure_of_merit, is_met, objective
from scorers.spice.technology import missing, technology

_WORST = -10.0
"""What a specification can cost in `best_j`: that of a point without figures is cut off there."""
_SHOWN = 200


class Judged(Struct, frozen=True, kw_only=True):
    """A design of an answer, and what came of it."""

    design: dict[str, float] | None
    simulation: Simulation | None
    worth: float
    met: bool
    reason: str


def sizing(tech: str = "sky130", pdk: str = "", sandbox: str = "auto") -> SizingScorer:
    """Judge sizings of a circuit by simulating them (the scorer `sizing`).

    Parameters
    ----------
    tech : {"sky130", "demo", "sky130-full"}
    pdk : str
        A folder to take the models from.
    sandbox : str
        The level of isolation asked for.

    Raises
    ------
    UsageError
        Another technology.
    """
    return SizingScorer(tech, Path(pdk) if pdk else None, sandbox)


class SizingScorer:
    """See `sizing`; an answer is one design, or the designs of a budget in the order they were tried."""

    def __init__(self, tech: str, pdk: Path | None, sandbox: str) -> None:
        missing(tech, pdk)  # refuses an unknown name
        self.at_once = len(os.sched_getaffinity(0))
        self._tech, self._pdk, self._sandbox = tech, pdk, sandbox
        self._simulator: Simulator | None = None
        self._lock = threading.Lock()

    def __call__(self, sample: Sample, output: Output) -> Score:
        """Simulate what an answer holds."""
        if why := missing_program() or missing(self._tech, self._pdk):
            return Score(value=None, status="unavailable", explanation=why)
        about = sample.metadata
        specs = [Spec(*row) for row in about["specs"]]
        given = designs_of(output.text, about["budget"])
        if not given:
            return Score.no_answer("there is no design in the answer")
        circuit = circuit_of(about)
        judged = judge(self._open(), circuit, specs, given)
        return self._score(sample, circuit, specs, judged)

    def close(self) -> None:
        """Let the processes go; the next answer starts them again."""
        with self._lock:
            simulator, self._simulator = self._simulator, None
        if simulator is not None:
            simulator.close()

    def _open(self) -> Simulator:
        with self._lock:
            if self._simulator is None:
                self._simulator = Simulator(
                    technology(self._tech, self._pdk), self._sandbox, known=SHARED
                )
            return self._simulator

    def _score(
        self, sample: Sample, circuit: Circuit, specs: Sequence[Spec], judged: Sequence[Judged]
    ) -> Score:
        about, simulator = sample.metadata, self._open()
        best = max(judged, key=lambda one: one.worth)
        hit = next((k for k, one in enumerate(judged, 1) if one.met), None)
        floor = _WORST * len(specs)
        best_j = max(best.worth, floor)
        metrics = {"best_j:design": best_j}
        if about["budget"] > 1:
            metrics["evaluations:design"] = float(len(judged))
        if (random_j := about["random_j"].get(str(about["budget"]))) is not None:
            metrics["gain_over_random:design"] = best_j - max(random_j, floor)
        if hit is not None and about["budget"] > 1:
            metrics["first_hit:design"] = float(hit)
        merits = [
            figure_of_merit(specs, one.simulation.metrics)
            for one in judged if one.simulation is not None and one.simulation.valid
        ]  # fmt: skip
        if merits:
            metrics["fom:valid"] = max(merits)
        status, reason = ("scored", None) if hit or len(judged) > 1 else _why_not(judged[0])
        return Score(
            value=float(hit is not None), passed=hit is not None, status=status, reason=reason,  # type: ignore[arg-type]
            answer=json.dumps(best.design) if best.design else None,
            explanation=_explained(specs, judged, best, hit),
            metrics={"success": float(hit is not None), **metrics},
            facts={
                "technology": simulator.technology.name, "library": simulator.technology.sha256,
                "ngspice": ngspice_version(), "first_hit": hit, "discriminating": about["discriminating"],
                "random_rate": about["random_rate"],
                "cpu_s": round(sum(one.simulation.cpu_s for one in judged if one.simulation), 4),
                "designs": [_row(one) for one in judged[:_SHOWN]],
            },
            pictures=self._pictures(circuit, specs, judged, best),
            isolation=simulator.isolation.level,
        )  # fmt: skip

    def _pictures(
        self, circuit: Circuit, specs: Sequence[Spec], judged: Sequence[Judged], best: Judged
    ) -> tuple[Picture, ...]:
        made = []
        if len(judged) > 1:
            made.append(convergence([one.worth for one in judged]))
            rows = [
                (one.simulation.metrics, one.met) for one in judged if one.simulation is not None
            ]
            made += [picture] if (picture := scatter(circuit, specs, rows)) else []
        if best.design is not None and circuit.curve is not None:
            drawn = self._open().curve(circuit, best.design).curve
            made += [curve(circuit, drawn)] if drawn else []
        return tuple(made)


def judge(
    simulator: Simulator, circuit: Circuit, specs: Sequence[Spec], given: Sequence[Any]
) -> list[Judged]:
    """Simulate designs and say of each what it is worth; what is none has the reason.

    Raises
    ------
    RuntimeError
        The sandbox failed: nothing is known of the designs.
    """
    read = [read_given(one, circuit) for one in given]
    designs = [one for one in read if isinstance(one, dict)]
    found = iter(simulator.simulate(circuit, designs))
    return [
        _judged(one, next(found), specs)
        if isinstance(one, dict)
        else Judged(
            design=None, simulation=None, worth=objective(specs, None), met=False, reason=one
        )
        for one in read
    ]


def read_given(given: Any, circuit: Circuit) -> dict[str, float] | str:
    """Read what was handed in as a design: its values, or why it is none."""
    if not isinstance(given, str | Mapping):
        return "a design is an object with a value for every variable"
    try:
        return read_design(given, circuit.variables)
    except DesignError as error:
        return str(error)


def designs_of(text: str, budget: int) -> list[Any]:
    """Give the designs of an answer, at most as many as the budget allows.

    ``{"designs": [...]}`` holds several where the budget is above one; any other text is one design.
    """
    if not text.strip():
        return []
    if budget > 1:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and isinstance(found.get("designs"), list):
            return list(found["designs"][:budget])
    return [text]


def circuit_of(about: Mapping[str, Any]) -> Circuit:
    """Give the circuit of an item, with the item's own grids."""
    grids = {name: tuple(grid) for name, grid in about["variables"].items()}
    return msgspec.structs.replace(CIRCUITS[about["circuit"]], variables=grids)


def _judged(design: dict[str, float], simulation: Simulation, specs: Sequence[Spec]) -> Judged:
    metrics = simulation.metrics if simulation.status == "ok" else None
    worth = objective(specs, metrics)
    return Judged(
        design=design, simulation=simulation, worth=worth, met=is_met(specs, metrics), reason=simulation.reason
    )  # fmt: skip


def _why_not(one: Judged) -> tuple[str, str | None]:
    """Say by status and reason why a single design is worth nothing."""
    if one.simulation is None:
        return "error", "no_design"
    if one.simulation.status == "timeout":
        return "timeout", "simulation_timeout"
    if one.simulation.status == "failed":
        return "error", "simulation_failed"
    return "scored", "not_measured" if one.simulation.missing else None


def _explained(
    specs: Sequence[Spec], judged: Sequence[Judged], best: Judged, hit: int | None
) -> str:
    if hit is not None:
        return f"design {hit} of {len(judged)} meets every specification; the best has J = {best.worth:.4g}"
    if best.simulation is None:
        return best.reason
    metrics = best.simulation.metrics
    lacking = [f"{spec} ({metrics[spec.metric]:.4g})" if spec.metric in metrics else f"{spec} (not measured)"
               for spec in specs if not is_met([spec], metrics)]  # fmt: skip
    said = (
        "not met"
        if len(judged) == 1
        else f"none of {len(judged)} designs meets all; the best lacks"
    )
    return f"{said}: {', '.join(lacking)}" + (f"; {best.reason}" if best.reason else "")


def _row(one: Judged) -> dict[str, Any]:
    metrics = one.simulation.metrics if one.simulation else {}
    return {
        "design": one.design, "metrics": metrics, "j": one.worth, "met": one.met, "reason": one.reason
    }  # fmt: skip
