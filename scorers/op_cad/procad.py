"""The scorer `procad`: the questions about an unclear prompt, and the part that is made in the end."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.types import Output, Sample, Score
from scorers.op_cad.engine import CadEngine, engine_version, missing_engine
from scorers.op_cad.questions import Record, Slot, agreement
from scorers.op_cad.results import Fault
from scorers.op_cad.scorer import apart, extract_code


class Told(Struct, frozen=True, kw_only=True):
    """What an attempt hands in: the program, and the questions where it could ask any."""

    code: str
    questions: tuple[str, ...] | None = None


def procad(sandbox: str = "auto") -> ProcadScorer:
    """Judge questions and the part made after them (the scorer `procad`).

    Parameters
    ----------
    sandbox : str
        The level of isolation asked for.
    """
    return ProcadScorer(sandbox)


class ProcadScorer:
    """See `procad`; judges as many answers at once as there are cores."""

    def __init__(self, sandbox: str = "auto") -> None:
        self.at_once = len(os.sched_getaffinity(0))
        self._sandbox = sandbox
        self._engine: CadEngine | None = None
        self._lock = threading.Lock()

    def __call__(self, sample: Sample, output: Output) -> Score:
        """Score the questions, run the program and compare its solid."""
        if why := missing_engine():
            return Score(value=None, status="unavailable", explanation=why)
        about = sample.metadata
        told = (
            read_told(output.text)
            if about["arm"] == "ask"
            else Told(code=extract_code(output.text))
        )
        asked = asked_of(told.questions, about)
        if not told.code.strip():
            none = Score.no_answer("there is no program in the answer")
            return msgspec.structs.replace(none, metrics=dict(asked))
        engine = self._open()
        truth = engine.truth(about["truth"], "", ("r",))
        if truth.fault is not None:
            raise RuntimeError(f"the truth of an item is no solid: {truth.fault.message}")
        built = engine.build(told.code, "", ("r",))
        if built.fault is not None:
            return _failed(told.code, built.fault, asked, engine)
        measured = engine.measure(
            {"full": built.solids["r"]}, {"full": truth.solids["r"]}, in_cube=True
        )
        if measured.fault is not None:
            return _failed(told.code, measured.fault, asked, engine)
        figures = measured.figures
        right = apart(figures) <= about["limit"] * figures["volume_true"]
        return Score(
            value=float(right), passed=right, answer=told.code,
            explanation=f"{'the' if right else 'not the'} part that was meant: IoU {figures['iou_world']:.6f}",
            metrics={
                "correct": float(right), "valid": 1.0, "iou_world": figures["iou_world"],
                "closeness": 1 - min(1.0, figures["cd_full"]), "cd:valid": figures["cd_full"],
                "cd_halved:valid": figures["cd_cube_halved"], **asked,
            },
            facts={"class": "valid" if right else "valid_wrong", "engine": engine_version(),
                   "engines": measured.engines, "figures": figures},
            pictures=() if right else engine.pictures(built.solids["r"], truth.solids["r"]),
            isolation=engine.isolation.level,
        )  # fmt: skip

    def close(self) -> None:
        """Let the processes go; the next answer starts them again."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _open(self) -> CadEngine:
        with self._lock:
            if self._engine is None:
                self._engine = CadEngine(self._sandbox, workers=self.at_once)
            return self._engine


def read_told(text: str) -> Told:
    """Read what the solver `clarify` hands in, or a program alone.

    Examples
    --------
    >>> read_told('{"questions": ["How wide?"], "code": "r = 1"}').questions
    ('How wide?',)
    >>> read_told("r = 1")
    Told(code='r = 1', questions=None)
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("code"), str):
        return Told(code=extract_code(text))
    questions = found.get("questions")
    asked = tuple(map(str, questions)) if isinstance(questions, list) else None
    return Told(code=extract_code(found["code"]), questions=asked)


def record_of(about: Mapping[str, Any]) -> Record:
    """Give what an item's user knows: the needed questions, each with its answer."""
    pairs = zip(about["questions"], about["answers"], strict=True)
    return Record(about["original"], [Slot(question, told) for question, told in pairs])


def asked_of(questions: Sequence[str] | None, about: Mapping[str, Any]) -> dict[str, float]:
    """Give the figures of the questions; none where the attempt could not ask.

    ``detection``: it asks exactly where something is open; its mean over clean and unclear prompts apart
    is the balanced accuracy. ``false_alarm:clean`` is of clean prompts only.
    """
    if questions is None:
        return {}
    record = record_of(about)
    n_matched = sum(k is not None for k in record.matched(questions))
    score = agreement(len(questions), len(record.slots), n_matched)
    unclear = bool(record.slots)
    found = {
        "question_precision": score.precision, "question_recall": score.recall, "question_f1": score.f1,
        "detection": float(bool(questions) == unclear),
        f"detection:{'unclear' if unclear else 'clean'}": float(bool(questions) == unclear),
    }  # fmt: skip
    return found if unclear else {**found, "false_alarm:clean": float(bool(questions))}


def _failed(code: str, fault: Fault, asked: Mapping[str, float], engine: CadEngine) -> Score:
    return Score(
        value=0.0, passed=False, status="timeout" if fault.kind == "timeout" else "error",
        reason=fault.kind, answer=code, explanation=fault.message,
        metrics={"correct": 0.0, "valid": 0.0, "iou_world": 0.0, "closeness": 0.0, **asked},
        facts={"class": fault.kind, "engine": engine_version()}, isolation=engine.isolation.level,
    )  # fmt: skip
