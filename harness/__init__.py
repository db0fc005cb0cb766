"""Harness: find out what a language model can really do.

>>> import harness
>>> [t["name"] for t in harness.tasks() if t["group"] == "gsm8k"]
['gsm8k']

The public names are imported when they are first used, so that `import harness` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.core.registry import backend, scorer, solver, strategy, task
    from harness.core.task import Task, TaskRequest
    from harness.core.types import Generation, Message, Output, Sample, Score
    from harness.runner.api import Run, run, score, tasks

_HOMES = {
    "harness.core.registry": ("backend", "scorer", "solver", "strategy", "task"),
    "harness.core.types": ("Generation", "Message", "Output", "Sample", "Score"),
    "harness.core.task": ("Task", "TaskRequest"),
    "harness.runner.api": ("Run", "run", "score", "tasks"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Generation", "Message", "Output", "Run", "Sample", "Score", "Task", "TaskRequest",
    "backend", "run", "score", "scorer", "solver", "strategy", "task", "tasks",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
