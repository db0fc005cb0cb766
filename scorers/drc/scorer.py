"""The scorer `drc`: run the deck of an answer on the task's layouts."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from harness.core.types import Output, Picture, Sample, Score
from scorers.drc.deck import extract_deck
from scorers.drc.klayout import INSTALL, KlayoutEngine
from scorers.drc.picture import picture
from scorers.drc.regions import RegionsEngine
from scorers.drc.results import DeckRun, UnsupportedError
from scorers.drc.verdict import Verdict, metrics_of, verdict

MOST_PICTURES = 4
EngineName = Literal["klayout", "regions"]


class Engine(Protocol):
    """What runs a deck on layouts."""

    def run(self, deck: str, layouts: Sequence[bytes], *, key: str, audit: bool = True) -> DeckRun:
        """Give what the deck says of each layout."""
        ...

    def close(self) -> None:
        """Let its processes go."""
        ...


def missing_engine(name: str = "klayout") -> str:
    """Say why an engine is not there, with the command that brings it; nothing where it is."""
    import importlib.util
    import shutil

    if importlib.util.find_spec("klayout") is None:
        return "the package klayout is missing: pip install 'bridge-harness[drc]'"
    if name == "klayout" and shutil.which("klayout") is None:
        return f"the program klayout is missing: {INSTALL} (or --arg engine=regions, a part of it)"
    return ""


def make_engine(name: str, sandbox: str = "auto") -> Engine:
    """Make an engine by name.

    Raises
    ------
    ValueError
        There is none of this name.
    """
    if name == "klayout":
        return KlayoutEngine(sandbox)
    if name == "regions":
        return RegionsEngine(sandbox)
    raise ValueError(f"engine={name} is not one of klayout, regions")


def drc(engine: str = "klayout", sandbox: str = "auto") -> DrcScorer:
    """Judge a deck by running it (the scorer `drc`).

    Parameters
    ----------
    engine : {"klayout", "regions"}
        The program, or our own interpreter of a part of its language.
    sandbox : str
        The level of isolation asked for.

    Raises
    ------
    ValueError
        Another engine.
    """
    return DrcScorer(engine, sandbox)


class DrcScorer:
    """See `drc`; judges as many answers at once as there are cores."""

    def __init__(self, engine: str, sandbox: str) -> None:
        if engine not in ("klayout", "regions"):
            raise ValueError(f"engine={engine} is not one of klayout, regions")
        self.at_once = len(os.sched_getaffinity(0))
        self._name, self._sandbox = engine, sandbox
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def __call__(self, sample: Sample, output: Output) -> Score:
        """Run the deck of an answer on the item's layouts."""
        deck = extract_deck(output.text)
        if deck is None:
            return Score.no_answer("there is no deck in the answer")
        return self.judge(sample, deck)

    def judge(self, sample: Sample, deck: str) -> Score:
        """Judge a deck on the layouts of an item."""
        if why := missing_engine(self._name):
            return Score(value=None, status="unavailable", explanation=why)
        layouts = sample.metadata["layouts"]
        try:
            run = self._open().run(deck, [row["gds"] for row in layouts], key=sample.item_id)
        except UnsupportedError as error:
            return Score(
                value=None, status="unavailable", answer=deck, reason="unsupported",
                explanation=f"engine=regions does not know: {error}; {INSTALL} runs all of it",
            )  # fmt: skip
        found = verdict(run, sample.metadata["categories"], [row["labels"] for row in layouts])
        return _score(sample, deck, run, found)

    def close(self) -> None:
        """Let the engine go; the next answer starts it again."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _open(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = make_engine(self._name, self._sandbox)
            return self._engine


def _score(sample: Sample, deck: str, run: DeckRun, found: Verdict) -> Score:
    failed = found.reason.startswith("deck_")
    status: Any = {"deck_timeout": "timeout"}.get(found.reason, "error" if failed else "scored")
    isolation = run.isolation or {}
    return Score(
        value=float(found.success),
        passed=found.success,
        status=status,
        answer=deck,
        reason=found.reason or None,
        explanation=_explained(found),
        metrics=dict(metrics_of(found)),
        facts={
            "engine": run.engine,
            "version": run.version,
            "seconds": run.seconds,
            "starts": run.starts,
            "stateful": run.stateful,
            "upstream_success": found.upstream,
            "f1": found.f1,
            "isolation": dict(isolation),
            "layouts": [msgspec.to_builtins(row) for row in found.rows],
        },
        pictures=_pictures(sample, run, found),
        isolation=isolation.get("level"),
    )


def _explained(found: Verdict) -> str:
    right = sum(row.right for row in found.rows)
    said = f"right on {right} of {len(found.rows)} layouts"
    wrong = next((row for row in found.rows if not row.right), None)
    if found.reason == "stateful":
        return f"{said}, but a layout's result depends on which were looked at before"
    if wrong is None:
        return said
    if wrong.status != "ok":
        return f"{said}; layout {wrong.layout}: {wrong.status}: {wrong.message}"
    if wrong.unknown:
        return f"{said}; layout {wrong.layout}: unknown category {', '.join(wrong.unknown[:3])}"
    return f"{said}; layout {wrong.layout}: says {wrong.bits}, should be {wrong.label}"


def _pictures(sample: Sample, run: DeckRun, found: Verdict) -> tuple[Picture, ...]:
    """Draw a few layouts, the wrong ones first."""
    order = sorted(found.rows, key=lambda row: (row.right, not any(row.label), row.layout))
    about = sample.metadata
    return tuple(
        picture(
            about["layouts"][row.layout]["gds"], run.runs[row.layout], row.label,
            about["categories"], about["layers"],
        )
        for row in order[:MOST_PICTURES]
    )  # fmt: skip
