"""Rows of the page Horizon: horizons in human minutes against release dates, and what they rest on.

A population is one set of models on one scale: own runs, published answers fitted here, or published
figures. Populations are drawn side by side and never joined: each has its own frontier and doubling time.
"""

from __future__ import annotations

import math
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harness.store.fits import FitModel, FitRow, StoredFit
from leaderboard.charts.horizon import KINDS, HorizonRow, Kind, TrendRow
from leaderboard.rows.fits import named_fit
from leaderboard.rows.reference import (
    LICENSE,
    SOURCE,
    bridge_hash,
    published_link,
    published_models,
)
from leaderboard.rows.scale import NOT_LINKED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEVELS = ("ols", "weighted", "joint")


class HorizonModel(Struct, frozen=True, kw_only=True):
    """A model of a population; columns as in `leaderboard.columns.COLUMNS`.

    Attributes
    ----------
    origin : str
        Which population, in words.
    minutes, minutes_lo, minutes_hi : float or None
        Its horizon with a 95 % interval; None where it is not linked. Published figures have no
        interval.
    ability, ability_se : float or None
        On its population's own scale.
    on_frontier : bool
    notes : tuple of str
        ``not linked``, ``no release date``, ``baseline``.
    source, license : str
        Of the answers.
    """

    model: str
    origin: str
    kind: Kind
    released: date | None
    minutes: float | None
    minutes_lo: float | None
    minutes_hi: float | None
    ability: float | None
    ability_se: float | None
    on_frontier: bool
    notes: tuple[str, ...]
    source: str
    license: str


class Basis(Struct, frozen=True, kw_only=True):
    """What the numbers of a population rest on.

    Attributes
    ----------
    n_population, n_dated, n_frontier, n_anchors : int
        Models, those with a release date and a horizon, those on the frontier; items (or models)
        that tie the scale to human minutes.
    link_level : str
        ``ols``, ``weighted``, ``joint``; ``models`` through models that the published table knows.
    verdict : str
    best, best_minutes, best_lo, best_hi
        The longest 50 % horizon of a dated model.
    months, months_lo, months_hi : float or None
        Doubling time with its 95 % interval.
    months_method : str
        How the interval of the doubling time was made.
    """

    origin: str
    n_population: int
    n_dated: int
    n_frontier: int
    n_anchors: int
    link_level: str
    r2: float | None
    verdict: str
    best: str | None
    best_minutes: float | None
    best_lo: float | None
    best_hi: float | None
    months: float | None
    months_lo: float | None
    months_hi: float | None
    months_method: str
    source: str
    license: str


class LevelRow(Struct, frozen=True, kw_only=True):
    """The same at another level of the link: how far the choice moves the numbers."""

    link_level: str
    used: bool
    best_minutes: float | None
    months: float | None
    notes: str


class Population(Struct, frozen=True):
    """One set of models on one scale.

    Attributes
    ----------
    kind : str
    models : list of HorizonModel
        The ablest first.
    trend : TrendRow or None
    basis : Basis
    levels : list of LevelRow
        All three levels of the link; empty where there is no link to items.
    fit : FitRow or None
        None for published figures.
    reason : str
        Why there are no minutes; empty where there are.
    """

    kind: Kind
    models: list[HorizonModel]
    trend: TrendRow | None
    basis: Basis
    levels: list[LevelRow]
    fit: FitRow | None = None
    reason: str = ""

    @property
    def horizons(self) -> list[HorizonRow]:
        """The dated models, for the chart."""
        return [
            HorizonRow(
                label=m.model, released=m.released, minutes=m.minutes, lo=m.minutes_lo,
                hi=m.minutes_hi, kind=self.kind,
            )
            for m in self.models
            if m.released is not None and m.minutes is not None
        ]  # fmt: skip


def population(con: DuckDBPyConnection, fit_id: str, q: int = 50) -> Population:
    """Read a fit's models with their horizons.

    Parameters
    ----------
    con : DuckDBPyConnection
    fit_id : str
    q : {50, 80}
        Chance of success in percent.

    Raises
    ------
    UsageError
        No such fit.
    """
    recorded = con.execute(
        "SELECT variant_id, release_date FROM model_variants JOIN models USING (model_id) "
        "WHERE release_date IS NOT NULL"
    ).fetchall()
    return population_of(named_fit(con, fit_id), q, dict(recorded))


def population_of(
    found: StoredFit, q: int = 50, recorded: dict[str, date] | None = None
) -> Population:
    """Turn a fit into a population.

    Parameters
    ----------
    found : StoredFit
    q : {50, 80}
    recorded : dict of variant_id to date, optional
        Release dates that stand in for those of the fit where it has none at all.
    """
    link = found.fit.link or {}
    kind: Kind = "fitted" if found.fit.data_hash == bridge_hash() else "own"
    fit_dates = {name: date.fromisoformat(day[:10]) for name, day in link.get("dates", {}).items()}
    dates = fit_dates or {
        m.model: recorded[m.variant_id]
        for m in found.models
        if recorded and m.variant_id in recorded
    }
    frontier = set(link.get("frontier", ()))
    source = _source(found.fit, kind)
    models = [
        _model(one, q, dates.get(one.model), one.model in frontier, kind, source)
        for one in found.models
    ]
    reason = ""
    if not any(model.minutes is not None for model in models):
        reason = str(found.fit.verdict.get("not_linked") or NOT_LINKED)
    return Population(
        kind, models, _trend(link, kind), _basis(found.fit, models, kind, source), _levels(link),
        found.fit, reason,
    )  # fmt: skip


@cache
def published() -> Population:
    """Give the published population: its 50 % horizons, frontier and doubling time.

    The doubling time is that of the table alone, by the authors' own rule: least squares through the
    frontier, whose points are resampled for the interval.
    """
    import numpy as np

    from irt.trend import bootstrap, trend

    table = published_models()
    line = trend(
        [m.model for m in table], np.array([m.log_minutes for m in table]),
        [m.released for m in table],
    )  # fmt: skip
    hi, lo = (math.log(2) / slope for slope in map(float, bootstrap(line)))
    frontier = [str(name) for name in line.model]
    models = [
        HorizonModel(
            model=m.model, origin=KINDS["published"], kind="published", released=m.released,
            minutes=m.minutes, minutes_lo=None, minutes_hi=None, ability=None, ability_se=None,
            on_frontier=m.model in frontier, notes=(), source=SOURCE, license=LICENSE,
        )
        for m in sorted(table, key=lambda m: -m.log_minutes)
    ]  # fmt: skip
    link = published_link()
    basis = Basis(
        origin=KINDS["published"], n_population=len(models), n_dated=len(models),
        n_frontier=len(frontier), n_anchors=link.n_items, link_level="ols", r2=link.r_squared,
        verdict="not known", best=models[0].model, best_minutes=models[0].minutes, best_lo=None,
        best_hi=None, months=line.doubling, months_lo=lo, months_hi=hi,
        months_method="frontier points resampled", source=SOURCE, license=LICENSE,
    )  # fmt: skip
    found = TrendRow(frontier=frontier, months=line.doubling, lo=lo, hi=hi, kind="published")
    return Population("published", models, found, basis, [])


def _source(fit: FitRow, kind: Kind) -> str:
    if kind == "fitted":
        return SOURCE
    return "runs of this store" if fit.source == "store" else f"answers in {fit.source}"


def _model(
    one: FitModel, q: int, released: date | None, on_frontier: bool, kind: Kind, source: str
) -> HorizonModel:
    ends = (one.horizon50_min, one.lo, one.hi)
    if q == 80:
        ends = (one.horizon80_min, one.lo80, one.hi80)
    marks = {
        "not linked": ends[0] is None,
        "no release date": released is None,
        "baseline": "baseline" in one.flags,
    }
    return HorizonModel(
        model=one.model, origin=_origin(kind, source), kind=kind, released=released,
        minutes=ends[0], minutes_lo=ends[1], minutes_hi=ends[2], ability=one.theta,
        ability_se=one.se, on_frontier=on_frontier,
        notes=tuple(name for name, is_so in marks.items() if is_so), source=source,
        license=LICENSE if kind == "fitted" else "",
    )  # fmt: skip


def _origin(kind: Kind, source: str) -> str:
    return source if kind == "own" and source.startswith("answers in") else KINDS[kind]


def _trend(link: dict[str, Any], kind: Kind) -> TrendRow | None:
    if "doubling" not in link:
        return None
    months = link["doubling"]
    return TrendRow(
        frontier=link["frontier"], months=months["value"], lo=months["lo"], hi=months["hi"],
        kind=kind,
    )  # fmt: skip


def _basis(fit: FitRow, models: list[HorizonModel], kind: Kind, source: str) -> Basis:
    link = fit.link or {}
    best, months = link.get("best", {}), link.get("doubling", {})
    dated = [m for m in models if m.released is not None and m.minutes is not None]
    return Basis(
        origin=_origin(kind, source), n_population=len(models), n_dated=len(dated),
        n_frontier=len(link.get("frontier", ())), n_anchors=link.get("n_anchors", 0),
        link_level=link.get("level", "not linked"), r2=link.get("r2"),
        verdict="converged" if fit.converged else "NOT CONVERGED", best=best.get("model"),
        best_minutes=best.get("value"), best_lo=best.get("lo"), best_hi=best.get("hi"),
        months=months.get("value"), months_lo=months.get("lo"), months_hi=months.get("hi"),
        months_method="joint draws of everything" if months.get("lo") is not None else "",
        source=source, license=LICENSE if kind == "fitted" else "",
    )  # fmt: skip


def _levels(link: dict[str, Any]) -> list[LevelRow]:
    """Give all three levels; a level that this fit cannot have says so."""
    if not link.get("known_minutes"):
        return []
    found = []
    for level in LEVELS:
        at_level = link.get("sensitivity", {}).get(level, {})
        longest = [value for value in link["h50"].get(level, {}).values() if value is not None]
        note = "" if level in link["h50"] else "not with this method or these scores"
        if level in link["h50"] and not at_level:
            note = "longest of all models: none has a release date"
        found.append(LevelRow(
            link_level=level, used=level == link["level"],
            best_minutes=at_level.get("best", max(longest, default=None)),
            months=at_level.get("doubling"), notes=note,
        ))  # fmt: skip
    return found
