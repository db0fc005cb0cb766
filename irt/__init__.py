"""Item response theory for benchmarks: abilities and difficulties on one scale.

>>> import irt
>>> rows = [{"model": f"m{m}", "item": f"i{i}", "k": int(m + i > 3)} for m in range(5) for i in range(4)]
>>> fitted = irt.fit(rows, method="joint")
>>> fitted.verdict.converged, fitted.models.model[int(fitted.models.theta.argmax())]
(True, 'm4')

A library of its own: it imports nothing of the harness. Public names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from irt._dif_records import Dif, PairedDif
    from irt.adaptive import CatResult, CatRules, Session, cat
    from irt.bank import Bank
    from irt.data import DataError, Responses
    from irt.dif import paired_dif
    from irt.equating import Scale, equate
    from irt.fitting import Fit, fit
    from irt.horizon import Horizons, horizons
    from irt.laplace import Draws
    from irt.link import Link, fit_link
    from irt.metr_mode import Metr, metr
    from irt.new_items import ItemScores, score_items
    from irt.reading import read
    from irt.replay import Simulated, simulate
    from irt.score import Scores, score_models
    from irt.trend import Doubling, doubling, link_sensitivity

__all__ = [
    "Bank", "CatResult", "CatRules", "DataError", "Dif", "Doubling", "Draws", "Fit", "Horizons",
    "ItemScores", "Link", "Metr", "PairedDif", "Responses", "Scale", "Scores", "Session",
    "Simulated", "cat", "doubling", "equate", "fit", "fit_link", "horizons", "link_sensitivity",
    "metr", "paired_dif", "read", "score_items", "score_models", "simulate",
]  # fmt: skip

_HOMES = {
    "irt._dif_records": ("Dif", "PairedDif"),
    "irt.adaptive": ("CatResult", "CatRules", "Session", "cat"),
    "irt.bank": ("Bank",),
    "irt.data": ("DataError", "Responses"),
    "irt.dif": ("paired_dif",),  # not `dif`, which is the module's own name: irt.dif.dif
    "irt.equating": ("Scale", "equate"),
    "irt.fitting": ("Fit", "fit"),
    "irt.horizon": ("Horizons", "horizons"),
    "irt.laplace": ("Draws",),
    "irt.link": ("Link", "fit_link"),
    "irt.metr_mode": ("Metr", "metr"),  # not `metr`, which would hide the function
    "irt.new_items": ("ItemScores", "score_items"),
    "irt.reading": ("read",),
    "irt.replay": ("Simulated", "simulate"),
    "irt.score": ("Scores", "score_models"),
    "irt.trend": ("Doubling", "doubling", "link_sensitivity"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'irt' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
