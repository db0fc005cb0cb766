"""Where designs are tried during an attempt: it simulates them and counts the budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.core.errors import HarnessError
from harness.core.types import Sample, Tool, ToolCall
from harness.solvers.environment import EnvironmentRequest, ToolResult
from harness.solvers.sizing.base import Evaluated
from scorers.spice.circuit import Spec
from scorers.spice.ngspice import SHARED, Simulator, missing_program
from scorers.spice.sizing import Judged, circuit_of, judge, read_given
from scorers.spice.technology import missing, technology

_KEPT = 2000


class Bench:
    """The environment of a sizing task; see `harness.solvers.sizing.base.SizingBench`.

    Parameters
    ----------
    sample : Sample
    request : EnvironmentRequest
    tech : str
    pdk : pathlib.Path, optional
    """

    tools: tuple[Tool, ...] = ()

    def __init__(
        self, sample: Sample, request: EnvironmentRequest, *, tech: str, pdk: Path | None = None
    ) -> None:
        about = sample.metadata
        self._circuit = circuit_of(about)
        self._specs = [Spec(*row) for row in about["specs"]]
        self._tech, self._pdk, self._level = tech, pdk, request.level
        self._simulator: Simulator | None = None
        self._killed = False
        self._given: list[Any] = []
        self.variables = self._circuit.variables
        self.goals = " AND ".join(map(str, self._specs))
        self.budget: int = about["budget"]
        self.tried: list[Evaluated] = []
        told = f"{sample.item_id} {request.seed} {request.epoch}"
        self.seed = int.from_bytes(sha256(told.encode()).digest()[:4], "big")
        self.isolation: str | None = None

    def __enter__(self) -> Self:
        """Start the simulator.

        Raises
        ------
        HarnessError
            It or its models are missing, with the command that brings them.
        """
        if why := missing_program() or missing(self._tech, self._pdk):
            raise HarnessError(why)
        self._simulator = Simulator(
            technology(self._tech, self._pdk), self._level, workers=1, known=SHARED
        )
        self.isolation = self._simulator.isolation.level
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the simulator."""
        self._end()

    def call(self, call: ToolCall, wall_s: float) -> ToolResult:
        """Refuse: there are no tools."""
        return ToolResult(text="There are no tools.", status="denied", reason="bad_call")

    def kill(self) -> None:
        """End what runs, from any thread."""
        self._killed = True
        self._end()

    @property
    def left(self) -> int:
        """Evaluations that are left."""
        return self.budget - len(self.tried)

    def evaluate(self, designs: Sequence[Any]) -> list[Evaluated]:
        """Try designs in order until the budget is used up; one tried before costs nothing."""
        found = []
        for given in designs:
            if self._killed:
                raise RuntimeError("stopped")
            if self._simulator is None:
                raise RuntimeError("the bench is closed")
            design = read_given(given, self._circuit)
            known = next((one for one in self.tried if one.design and one.design == design), None)
            if known is not None:
                found.append(known)
                continue
            if not self.left:
                break
            (judged,) = judge(self._simulator, self._circuit, self._specs, [given])
            found.append(_evaluated(judged))
            self.tried.append(found[-1])
            self._given.append(judged.design if judged.design is not None else _short(given))
        return found

    def answer(self) -> str:
        """Give all designs in order; what was none stands as it was handed in."""
        return json.dumps({"designs": self._given})

    def _end(self) -> None:
        simulator, self._simulator = self._simulator, None
        if simulator is not None:
            simulator.close()


def _evaluated(judged: Judged) -> Evaluated:
    simulation = judged.simulation
    return Evaluated(
        design=judged.design, metrics=dict(simulation.metrics) if simulation else {}, met=judged.met,
        worth=judged.worth, reason=judged.reason,
    )  # fmt: skip


def _short(given: Any) -> Any:
    """Keep what was no design, cut where it is long."""
    text = given if isinstance(given, str) else json.dumps(given)
    return given if len(text) <= _KEPT else text[:_KEPT]
