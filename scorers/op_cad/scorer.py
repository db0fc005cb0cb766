"""The scorer `op_cad`: run a CAD program and compare its solid with the true one."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.types import Output, Picture, Sample, Score
from scorers.op_cad.engine import CadEngine, engine_version, missing_engine
from scorers.op_cad.results import Built, Fault, Measured

_FENCE = re.compile(r"```[\w+-]*[ \t]*\n(.*?)```", re.DOTALL)
REGION, WHOLE = 0.99, 0.999
"""A step is right from this share of the region that it changes; a first step of the whole solid."""
LEFT_OVER = 0.05
"""A whole part is right when it differs by no more than this share of the smallest step's change."""


def op_cad(sandbox: str = "auto", pictures: str = "wrong") -> OpCadScorer:
    """Judge a CAD program by its solid (the scorer `op_cad`).

    Parameters
    ----------
    sandbox : str
        The level of isolation asked for.
    pictures : {"wrong", "yes", "no"}
        Of what prediction, truth and difference are drawn: valid solids that are wrong, all, none. It takes
        several times as long as the verdict.

    Raises
    ------
    ValueError
        Another value of `pictures`.
    """
    if pictures not in ("wrong", "yes", "no"):
        raise ValueError(f"pictures={pictures} is not one of wrong, yes, no")
    return OpCadScorer(sandbox, pictures)


class Truth:
    """The true solids of an item, run or read once."""

    def __init__(self, engine: CadEngine, about: Mapping[str, Any]) -> None:
        names = names_of(about)
        if about.get("truth_files"):
            root = Path(about["root"])
            files = {
                name: (root / file).read_bytes() for name, file in about["truth_files"].items()
            }
            self.built = engine.read(files, about["before"], about.get("truth_calls") or [])
            self.other: str | None = None
        else:
            self.built = engine.truth(about["truth"], about["before"], names)
            self.other = _swapped(engine, about, names, self.built)
        if self.built.fault is not None:
            fault = self.built.fault
            raise RuntimeError(f"the truth of an item is no solid: {fault.kind}: {fault.message}")
        self.solids = named(self.built, names)


class OpCadScorer:
    """See `op_cad`; judges as many answers at once as there are cores."""

    def __init__(self, sandbox: str = "auto", pictures: str = "no") -> None:
        self.at_once = len(os.sched_getaffinity(0))
        self._sandbox, self._pictures = sandbox, pictures
        self._engine: CadEngine | None = None
        self._truths: dict[str, Truth] = {}
        self._lock = threading.Lock()

    def __call__(self, sample: Sample, output: Output) -> Score:
        """Run the program of an answer after the item's own code, and compare."""
        if why := missing_engine():
            return Score(value=None, status="unavailable", explanation=why)
        code = extract_code(output.text)
        if not code.strip():
            return Score.no_answer("there is no program in the answer")
        engine, about = self._open(), sample.metadata
        truth = self._truth(engine, sample)
        built = engine.build(code, about["before"], names_of(about))
        if built.fault is not None:
            return _failed(code, built.fault, built, about, engine)
        solids = named(built, names_of(about))
        measured = engine.measure(
            solids, truth.solids, (built.calls, truth.built.calls), truth.other
        )
        if measured.fault is not None:
            return _failed(code, measured.fault, built, about, engine)
        return self._score(code, about, engine, truth, solids, measured)

    def close(self) -> None:
        """Let the processes go; the next answer starts them again."""
        with self._lock:
            engine, self._engine = self._engine, None
            self._truths.clear()
        if engine is not None:
            engine.close()

    def _open(self) -> CadEngine:
        with self._lock:
            if self._engine is None:
                self._engine = CadEngine(self._sandbox, workers=self.at_once)
            return self._engine

    def _truth(self, engine: CadEngine, sample: Sample) -> Truth:
        found = self._truths.get(sample.item_id)
        if found is None:
            found = self._truths[sample.item_id] = Truth(engine, sample.metadata)
        return found

    def _score(
        self, code: str, about: Mapping[str, Any], engine: CadEngine, truth: Truth,
        solids: Mapping[str, str], measured: Measured,
    ) -> Score:  # fmt: skip
        figures = measured.figures
        right = is_right(figures, about)
        return Score(
            value=float(right), passed=right, answer=code,
            explanation=_explained(figures, about, right),
            metrics={"correct": float(right), **metrics_of(figures, about)},
            facts={
                "class": "valid" if right else "valid_wrong", "engine": engine_version(),
                "engines": measured.engines, "orientation": measured.orientation,
                "figures": figures, "seconds": measured.seconds,
            },
            pictures=self._drawn(engine, solids["full"], truth, right=right),
            isolation=engine.isolation.level,
        )  # fmt: skip

    def _drawn(
        self, engine: CadEngine, solid: str, truth: Truth, *, right: bool
    ) -> tuple[Picture, ...]:
        wanted = self._pictures == "yes" or (self._pictures == "wrong" and not right)
        return engine.pictures(solid, truth.solids["full"]) if wanted else ()


def extract_code(text: str) -> str:
    r"""Give the program of an answer: its only fenced block, several joined, else the whole text.

    Examples
    --------
    >>> extract_code("Here:\n```python\nresult = 1\n```")
    'result = 1\n'
    """
    blocks = _FENCE.findall(text)
    return "\n".join(blocks) if blocks else text


def names_of(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Say under which names an item's program leaves the whole, and the new part alone."""
    alone = about["protocol"] == "step" and about["op"] in ("extrude", "revolve")
    return ("result", "shape") if alone else ("result",)


def named(built: Built, names: Sequence[str]) -> dict[str, str]:
    """Give solids under the words that `measure` knows."""
    words = {"result": "full", "shape": "single", "before": "before"}
    return {words[name]: built.solids[name] for name in (*names, "before") if name in built.solids}


def is_right(figures: Mapping[str, float], about: Mapping[str, Any]) -> bool:
    """Tell whether a solid is the true one.

    A step: 0.99 of the region that it changes, the first 0.999 of the whole. A whole part: the volume of
    the symmetric difference is at most 0.05 of the smallest change that a step makes; with a volume a,
    another b and their IoU u it is (a + b)(1 - u)/(1 + u).
    """
    if about["protocol"] == "step":
        first = not about["before"].strip()
        return figures["iou_world"] >= WHOLE if first else figures["region_iou"] >= REGION
    return apart(figures) <= LEFT_OVER * float(about["least_change"])


def apart(figures: Mapping[str, float]) -> float:
    """Give the volume of the symmetric difference of two solids from their volumes and IoU, mm³."""
    u = figures["iou_world"]
    return (figures["volume"] + figures["volume_true"]) * (1 - u) / (1 + u)


def metrics_of(figures: Mapping[str, float] | None, about: Mapping[str, Any]) -> dict[str, float]:
    """Give the metrics of an item; what is invalid counts as IoU 0 and Chamfer distance 1.

    ``closeness`` is 1 - min(1, Chamfer distance): more is better, so that an attempt without any answer,
    which counts 0, is the worst there is.

    Names with a colon are of valid items only, as upstream takes its means; `cf_iou:edges` is of fillets
    and chamfers whose program ran.
    """
    step = about["protocol"] == "step"
    if figures is None:
        found = {"valid": 0.0, "iou_world": 0.0, "closeness": 0.0}
        return {**found, "region_iou": 0.0} if step else found
    found = {
        "valid": 1.0, "iou_world": figures["iou_world"], "closeness": 1 - min(1.0, figures["cd_full"]),
        "cd_full:valid": figures["cd_full"], "hd_full:valid": figures["hd_full"],
        "size_ratio:valid": figures["size_ratio"],
    }  # fmt: skip
    if step:
        found["region_iou"] = figures["region_iou"]
    if "cd_single" in figures:
        # A first step is its own new part: upstream gives it one figure.
        found |= {"cd_single:valid": figures["cd_single"], "hd_single:valid": figures["hd_single"]}
    if step and about["op"] == "chamfer_fillet" and "cf_iou" in figures:
        found["cf_iou:edges"] = figures["cf_iou"]
        found["cf_iou_upstream:edges"] = figures["cf_iou_upstream"]
    return found


def _swapped(
    engine: CadEngine, about: Mapping[str, Any], names: Sequence[str], built: Built
) -> str | None:
    """Give the truth with the distances of its chamfers the other way round, where that differs."""
    if about["protocol"] != "step" or not any(len(set(call["sizes"])) > 1 for call in built.calls):
        return None
    other = engine.truth(about["truth"], about["before"], names, swapped=True)
    return other.solids.get(names[0])


def _failed(
    code: str, fault: Fault, built: Built, about: Mapping[str, Any], engine: CadEngine
) -> Score:
    return Score(
        value=0.0, passed=False, status="timeout" if fault.kind == "timeout" else "error",
        reason=fault.kind, answer=code, explanation=fault.message,
        metrics={"correct": 0.0, **metrics_of(None, about)},
        facts={"class": fault.kind, "engine": engine_version(), "seconds": built.seconds},
        isolation=engine.isolation.level,
    )  # fmt: skip


def _explained(figures: Mapping[str, float], about: Mapping[str, Any], right: bool) -> str:
    told = [
        f"IoU {figures['iou_world']:.6f}",
        f"Chamfer distance {figures['cd_full'] * 1000:.3f}e-3",
    ]
    if about["protocol"] == "step":
        told.insert(1, f"of the changed region {figures['region_iou']:.6f}")
    if "parameter_error" in figures:
        told.append(f"sizes off by up to {figures['parameter_error']:.1%}")
    return f"{'the true solid' if right else 'a valid solid, not the true one'}: {', '.join(told)}"
