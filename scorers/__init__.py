"""Scorers: from one output to one verdict, usable without a run and without a store.

>>> from harness.core.types import Output, Sample
>>> from scorers.number import number
>>> sample = Sample(item_id="1", input="6 times 3?", target=("18",))
>>> number()(sample, Output(text="The answer is $18.")).value
1.0

Each factory lives in the module of its name (`scorers.number.number`, `scorers.choice.choice`,
`scorers.exact.exact`); the readers behind them are offered here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scorers.catalogue import SCORERS
    from scorers.choice import read_choice
    from scorers.number import extract_number
    from scorers.reasoning import remove_reasoning

__all__ = ["SCORERS", "extract_number", "read_choice", "remove_reasoning"]

# Imported on first use: `harness list` reads the catalogue and must not pay for the readers.
_HOME = {
    "SCORERS": "scorers.catalogue",
    "extract_number": "scorers.number",
    "read_choice": "scorers.choice",
    "remove_reasoning": "scorers.reasoning",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'scorers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
