"""Figures that others have published for the answers that are fitted here, beside our own."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness.core.resources import data
from harness.runner.human_minutes import finite, reference_dates
from harness.runner.linking import Linked

if TYPE_CHECKING:
    from harness.store.fits import StoredFit


class Figure(Struct, frozen=True, kw_only=True):
    """A published figure.

    Attributes
    ----------
    key, name : str
    value : float
    lo, hi : float or None
    """

    key: str
    name: str
    value: float
    lo: float | None = None
    hi: float | None = None


class Figures(Struct, frozen=True, kw_only=True):
    """What was published for one set of answers.

    Attributes
    ----------
    data_hash : str
        Of the answers.
    source, method : str
    figures : tuple of Figure
    """

    data_hash: str
    source: str
    method: str
    figures: tuple[Figure, ...]


@cache
def bridge_figures() -> Figures:
    """Read the figures of BRIDGE's authors."""
    text = data("published/bridge_figures.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Figures)


def beside_published(linked: Linked, found: StoredFit) -> None:
    """Where the answers are BRIDGE's, put our figures beside the published ones.

    They go into the link's `published`; slope and intercept are left out, since they depend on the
    unit of difficulty, and every fit has its own.
    """
    known = bridge_figures()
    if linked.fit.data_hash != known.data_hash or found.fit.link is None:
        return
    ours = _ours(linked, found.fit.link)
    found.fit.link["published"] = {
        "source": known.source,
        "method": known.method,
        "ours": f"joint fit, link {linked.link.level} on {linked.link.n_anchors} anchors; "
        f"doubling over the {len(reference_dates())} models of the published trend (gpt2 is none of "
        "them), intervals: joint draws of everything",
        "figures": [
            {
                "name": one.name,
                "ours": ours.get(one.key),
                "published": {"value": one.value, "lo": one.lo, "hi": one.hi},
            }
            for one in known.figures
        ],
    }


def _ours(linked: Linked, link: dict[str, Any]) -> dict[str, Any]:
    import irt

    groups = {one["group"]: one for one in link["tests"]}
    found: dict[str, Any] = {"r2": {"value": link["r2"]}}
    if "swebench" in groups:
        found["swebench"] = {"value": groups["swebench"]["bucket_accuracy"]}
    if "cybench" in groups:
        found["cybench"] = {"value": groups["cybench"]["within_2x"]}
    # The models of the published trend, whatever dates were given: gpt2 is not among them.
    for key, q, rule in (("doubling50", 0.5, "typical"), ("doubling80", 0.8, "bridge")):
        one = irt.doubling(linked.fit, linked.link, reference_dates(), q, rule=rule, n=500)
        found[key] = {"value": finite(one.months), "lo": finite(one.lo), "hi": finite(one.hi)}
    return found
