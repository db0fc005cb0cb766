"""The published reference population: BRIDGE's dated models, and figures that its authors print.

They stand in rows and marks of their own, with source and licence, and are in no mean, rank or fit.
"""

from __future__ import annotations

import csv
import math
import tomllib
from datetime import date
from functools import cache
from typing import Any

from msgspec import Struct

from harness.core.resources import data

LICENSE = "CC BY 4.0"
SOURCE = "Liu et al. 2026, arXiv 2602.07267; McGill-NLP/BRIDGE, commit 6a1b821"
ATTRIBUTION = f"Published data: {SOURCE}; {LICENSE}."


class PublishedModel(Struct, frozen=True, kw_only=True):
    """A model of the published table.

    Attributes
    ----------
    model : str
    released : date
    log_minutes : float
        Natural logarithm of its 50 % horizon in minutes.
    """

    model: str
    released: date
    log_minutes: float

    @property
    def minutes(self) -> float:
        """The 50 % horizon."""
        return math.exp(self.log_minutes)


class PublishedLink(Struct, frozen=True, kw_only=True):
    """The link that belongs to the published abilities: ln minutes = intercept + slope ability."""

    slope: float
    intercept: float
    r_squared: float
    n_items: int


class PublishedFigure(Struct, frozen=True, kw_only=True):
    """A figure of the authors, and the same from the answers fitted here where there is such a fit."""

    figure_name: str
    published: float
    published_lo: float | None
    published_hi: float | None
    here: float | None = None
    here_lo: float | None = None
    here_hi: float | None = None
    source: str = SOURCE
    license: str = LICENSE


@cache
def published_link() -> PublishedLink:
    """Read the link of the published abilities."""
    (row,) = _table("published/bridge_link.csv")
    return PublishedLink(
        slope=float(row["slope"]), intercept=float(row["intercept"]),
        r_squared=float(row["r_squared"]), n_items=int(row["n_items"]),
    )  # fmt: skip


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """Read the 36 dated models, by date."""
    link = published_link()
    return tuple(
        PublishedModel(
            model=row["model"], released=date.fromisoformat(row["release_date"]),
            log_minutes=link.intercept + link.slope * float(row["ability"]),
        )
        for row in _table("published/bridge.csv")
    )  # fmt: skip


@cache
def bridge_hash() -> str:
    """Give the hash of BRIDGE's answers: a fit of them has it."""
    return str(_figures()["data_hash"])


def published_figures(beside: dict[str, Any] | None = None) -> list[PublishedFigure]:
    """List the authors' figures.

    Parameters
    ----------
    beside : dict or None
        What the link of a fit of the same answers keeps under `published`.
    """
    ours = {one["name"]: one["ours"] or {} for one in (beside or {}).get("figures", [])}
    found = []
    for one in _figures()["figures"]:
        here = ours.get(one["name"], {})
        found.append(PublishedFigure(
            figure_name=one["name"], published=one["value"], published_lo=one.get("lo"),
            published_hi=one.get("hi"), here=here.get("value"), here_lo=here.get("lo"),
            here_hi=here.get("hi"),
        ))  # fmt: skip
    return found


@cache
def _figures() -> dict[str, Any]:
    return tomllib.loads(data("published/bridge_figures.toml").read_text(encoding="utf-8"))


def _table(name: str) -> list[dict[str, str]]:
    with data(name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
