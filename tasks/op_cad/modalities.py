"""A state shown otherwise than as code: images, points, STEP; made on first use and kept."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from harness.core.errors import HarnessError
from harness.core.resources import data_folder
from scorers.op_cad.engine import CadEngine, engine_version, missing_engine
from tasks.op_cad.loader import Step

VERSION = "2"
MOST_STEP = 60_000
"""Characters of STEP text that are shown; beyond it the item is unavailable with this input."""


class States:
    """The states before steps, as a model may see them; kept below the data folder."""

    def __init__(self) -> None:
        self._folder = data_folder() / "op_cad_states"
        self._engine: CadEngine | None = None

    def image(self, step: Step) -> str:
        """Give nine views of the state as PNG, base64."""
        return str(self._known(step, "image"))

    def points(self, step: Step) -> list[list[float]]:
        """Give 2,048 points of the surface; none before the first step."""
        found: list[list[float]] = self._known(step, "cloud") if step.before else []
        return found

    def step_text(self, step: Step) -> str:
        """Give the state as STEP text; empty before the first step."""
        return str(self._known(step, "step")) if step.before else ""

    def close(self) -> None:
        """Let the engine go."""
        if self._engine is not None:
            self._engine.close()

    def _known(self, step: Step, what: str) -> Any:
        """Read what an earlier run made of the same code with the same kernel, or make it."""
        told = [VERSION, what, step.before, engine_version()]
        path = self._folder / f"{hashlib.sha256(msgspec.json.encode(told)).hexdigest()}.json"
        if path.is_file():
            return msgspec.json.decode(path.read_bytes())
        made = self._made(step, what)
        self._folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(made))
        part.replace(path)
        return made

    def _made(self, step: Step, what: str) -> Any:
        if why := missing_engine():
            raise HarnessError(f"this input shows solids: {why}")
        if self._engine is None:
            self._engine = CadEngine()
        brep = None
        if step.before:
            built = self._engine.truth(step.before)
            if built.fault is not None:
                raise RuntimeError(
                    f"{step.group_index}: the code so far fails: {built.fault.message}"
                )
            brep = built.solids["result"]
        return self._engine.state(brep, what)


def shown_text(
    states: States, step: Step, inputs: tuple[str, ...], count: int
) -> tuple[str, str]:  # fmt: skip
    """Write the state as points or STEP; the second text says why it cannot be shown."""
    parts = []
    if "points" in inputs and (rows := states.points(step)):
        told = "\n".join(" ".join(f"{value:.3f}" for value in row) for row in rows[:count])
        parts.append(
            f"{min(count, len(rows))} points on the surface of the model at present, x y z:\n{told}"
        )
    if "step" in inputs and (text := states.step_text(step)):
        if len(text) > MOST_STEP:
            return "", f"its STEP text has {len(text):,} characters, more than {MOST_STEP:,}"
        parts.append(f"The model at present as STEP:\n{text}")
    return "\n\n".join(parts), ""
