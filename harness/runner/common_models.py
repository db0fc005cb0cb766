"""A link to human minutes through models that a published scale knows: common models, other items.

Where no item has minutes but three or more models stand in BRIDGE's published table, their published
horizons are regressed on the abilities of this fit. The minutes are then borrowed: they hold as far
as what is measured here is what was measured there.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.core.models import card_of
from harness.core.resources import data
from harness.runner.human_minutes import REFERENCE, Minutes, finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    import irt
    from harness.store.fits import StoredFit

LEAST = 3
"""A line through fewer models has no error of its own."""


@cache
def published_horizons() -> dict[str, float]:
    """Read the 50 % horizons of BRIDGE's dated models, in minutes."""
    with data("published/bridge_link.csv").open(encoding="utf-8", newline="") as stream:
        line = next(csv.DictReader(stream))
    with data(REFERENCE).open(encoding="utf-8", newline="") as stream:
        return {
            row["model"]: math.exp(
                float(line["intercept"]) + float(line["slope"]) * float(row["ability"])
            )
            for row in csv.DictReader(stream)
        }


def known_there(names: Mapping[str, str]) -> dict[str, float]:
    """Find which models of a fit the published table knows.

    Parameters
    ----------
    names : mapping of str to str
        The fit's names to SPECs. A card's `bridge` says a model's name there; else the SPEC's own
        name counts, without backend, revision and options.

    Returns
    -------
    dict
        The fit's name to the published horizon. A model that stands under several names of the fit
        (strategies, modes) is left out: which of them was measured there is not known.
    """
    there = published_horizons()
    found: dict[str, list[str]] = {}
    for name, spec in names.items():
        bare = spec.partition(":")[2].partition("?")[0].partition("@")[0] or spec
        alias = (card_of(spec).bridge if ":" in spec else "") or bare
        if alias in there:
            found.setdefault(alias, []).append(name)
    return {ours[0]: there[alias] for alias, ours in found.items() if len(ours) == 1}


def link_through_models(
    fitted: irt.Fit, found: StoredFit, names: Mapping[str, str], given: Minutes
) -> bool:
    """Write horizons into a fit's rows, by the models that the published table knows.

    Parameters
    ----------
    fitted : irt.Fit
    found : StoredFit
        Its rows; unchanged where there is no link.
    names : mapping of str to str
        The fit's names of its models to their SPECs.
    given : Minutes
        With release dates, if there are any.

    Returns
    -------
    bool
        Whether there is a link.
    """
    import numpy as np

    from irt.link import regress

    known = known_there(names)
    if len(known) < LEAST:
        return False
    place = {str(name): row for row, name in enumerate(fitted.models.model)}
    shared = sorted(known, key=place.__getitem__)
    theta = fitted.models.theta[[place[name] for name in shared]]
    if np.ptp(theta) <= 0:
        return False
    line = regress(theta, [known[name] for name in shared], anchors=tuple(shared))
    if line.beta <= 0:  # abler here, shorter there: not the same ability
        return False
    typical = float(np.exp(np.log(fitted.items.a).mean()))
    for model in found.models:
        row = place[model.model]
        ability, error = fitted.models.theta[row], fitted.models.se[row]
        half = line.predict(ability, error)
        fifth = line.predict(ability - math.log(4) / typical, error)
        model.horizon50_min, model.lo, model.hi = (_or_none(x) for x in _ends(half))
        model.horizon80_min, model.lo80, model.hi80 = (_or_none(x) for x in _ends(fifth))
    borrowed = (
        f"linked through {len(shared)} models that BRIDGE's published table knows "
        f"({', '.join(shared)}): the minutes are borrowed, no item of this fit was timed"
    )
    found.fit.link = {
        "level": "models", "slope": finite(line.beta), "intercept": finite(line.alpha),
        "r2": finite(line.r2), "tau": finite(line.tau), "n_anchors": line.n_anchors,
        "centroid": finite(line.centroid), "se_slope": finite(line.se_beta),
        "se_mean": finite(line.se_mean), "known_minutes": {}, "tests": [],
        "h50": {"models": {m.model: m.horizon50_min for m in found.models}},
        "shared_models": shared,
        "notes": [*given.notes, *line.notes, borrowed],
    }  # fmt: skip
    return True


def _ends(one: Any) -> tuple[Any, Any, Any]:
    return one.median, one.lo, one.hi


def _or_none(value: Any) -> float | None:
    return finite(float(value))
