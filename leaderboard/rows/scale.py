"""Rows of the page Scale: one fit with its items and models, as tables and for the charts.

Numbers are those that the fit stored; an interval of an ability is the normal one of its standard error.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harness.store.fits import FitItem, FitModel, FitRow, StoredFit
from harness.store.rows import dicts
from leaderboard.charts.items import DifficultyRow
from leaderboard.charts.link import BandRow, LinkRow
from leaderboard.charts.scale import AbilityRow, ItemRow, MinutesLink
from leaderboard.rows.fits import named_fit
from leaderboard.rows.reference import bridge_hash

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Timed = tuple[list[LinkRow], list[BandRow], list[str]]
"""Items whose human minutes are known, what the link says of them, and notes."""

NOT_LINKED = "not linked: no shared items or models"
_Z95 = 1.959964
_STEPS = 60
_FLAGS = {
    "prior_only": "all answers right or all wrong: where the item lies is the prior's guess",
    "suspect_key": "better models do worse on it: its key may be wrong",
    "testlet": "hangs together with other items beyond ability: errors are too small",
    "anchor": "held fixed at the values of a bank",
}


class FitChoice(Struct, frozen=True, kw_only=True):
    """A stored fit, to choose from.

    Attributes
    ----------
    source : str
        ``store``, or the name of the file that was fitted.
    is_bridge : bool
        Whether it is of BRIDGE's published answers.
    """

    fit_id: str
    source: str
    method: str
    n_subjects: int
    n_questions: int
    created: datetime
    is_bridge: bool

    @property
    def label(self) -> str:
        """What a reader tells it by."""
        source = "this store" if self.source == "store" else self.source
        return (
            f"{source} · {self.n_subjects} models × {self.n_questions:,} items · "
            f"{self.created:%Y-%m-%d %H:%M} UTC"
        )


class ScaleItem(Struct, frozen=True, kw_only=True):
    """An item of a fit; columns as in `leaderboard.columns.COLUMNS`.

    Attributes
    ----------
    minutes_known : float or None
        Human minutes that the link rests on.
    minutes_hat, hat_lo, hat_hi : float or None
        Human minutes that the link predicts, with the interval of one item.
    """

    item_name: str
    task: str | None
    version: str | None
    item_id: str
    difficulty_b: float | None
    difficulty_se: float | None
    discrimination: float | None
    log_discrimination_se: float | None
    n_responders: int
    slope_z: float | None
    minutes_known: float | None
    minutes_hat: float | None
    hat_lo: float | None
    hat_hi: float | None
    flags: tuple[str, ...]


class ScaleModel(Struct, frozen=True, kw_only=True):
    """A model of a fit; horizons only where the fit is linked to human minutes."""

    model: str
    variant_id: str
    strategy: str | None
    ability: float | None
    ability_se: float | None
    ability_lo: float | None
    ability_hi: float | None
    h50: float | None
    h50_lo: float | None
    h50_hi: float | None
    h80: float | None
    h80_lo: float | None
    h80_hi: float | None
    n_answered: int
    flags: tuple[str, ...]


class Scale(Struct, frozen=True):
    """A fit whole.

    Attributes
    ----------
    fit : FitRow
    items : list of ScaleItem
        The hardest first.
    models : list of ScaleModel
        The ablest first.
    curves, abilities, difficulties
        For the charts.
    link : MinutesLink or None
        The second axis; None where there is no link.
    timed : tuple
        What `link_rows` gives.
    """

    fit: FitRow
    items: list[ScaleItem]
    models: list[ScaleModel]
    curves: list[ItemRow]
    abilities: list[AbilityRow]
    difficulties: list[DifficultyRow]
    link: MinutesLink | None
    timed: Timed

    @property
    def is_bridge(self) -> bool:
        """Whether it is of BRIDGE's published answers, which need their attribution."""
        return self.fit.data_hash == bridge_hash()


def fit_choices(con: DuckDBPyConnection) -> list[FitChoice]:
    """List the stored fits, the newest first."""
    rows = con.execute(
        "SELECT fit_id, source, method, n_models AS n_subjects, n_items AS n_questions, created, "
        "data_hash = ? AS is_bridge FROM irt_fits ORDER BY created DESC, fit_id",
        [bridge_hash()],
    )
    return [FitChoice(**row) for row in dicts(rows)]


def scale(con: DuckDBPyConnection, fit_id: str) -> Scale:
    """Read a fit.

    Raises
    ------
    UsageError
        No such fit.
    """
    return scale_of(named_fit(con, fit_id))


def scale_of(found: StoredFit) -> Scale:
    """Turn a fit into rows."""
    known = (found.fit.link or {}).get("known_minutes", {})
    labels = item_labels(found.items)
    items = [
        _item(item, label, known.get(item_name(item)))
        for item, label in zip(found.items, labels, strict=True)
    ]
    items.sort(key=lambda i: (math.inf if i.difficulty_b is None else -i.difficulty_b, i.item_name))
    return Scale(
        fit=found.fit, items=items, models=[_model(model) for model in found.models],
        curves=item_rows(found), abilities=ability_rows(found),
        difficulties=[
            DifficultyRow(item=label, b=i.b, minutes=i.human_minutes_hat)
            for i, label in zip(found.items, labels, strict=True)
        ],
        link=minutes_link(found.fit), timed=link_rows(found),
    )  # fmt: skip


def minutes_link(fit: FitRow) -> MinutesLink | None:
    """Give the line from the scale to log minutes; None where there is no rising one."""
    link = fit.link
    if link is None or link["slope"] is None or link["intercept"] is None or link["slope"] <= 0:
        return None
    return MinutesLink(intercept=link["intercept"], slope=link["slope"])


def item_rows(found: StoredFit) -> list[ItemRow]:
    """Give the items for their curves and for the test information."""
    return [
        ItemRow(item=label, a=i.a, b=i.b)
        for i, label in zip(found.items, item_labels(found.items), strict=True)
        if i.a is not None and i.b is not None
    ]


def ability_rows(found: StoredFit) -> list[AbilityRow]:
    """Give the models with the 95 % intervals of their abilities."""
    return [
        AbilityRow(label=m.model, theta=m.theta, lo=lo, hi=hi, is_baseline="baseline" in m.flags)
        for m in found.models
        if m.theta is not None
        for lo, hi in [_ends(m)]
    ]


def link_rows(found: StoredFit) -> Timed:
    """Give the items whose human minutes are known, what the link says of them, and notes.

    Returns
    -------
    rows, band, notes
        Nothing of any where no item of the fit was timed.
    """
    link = found.fit.link
    known = (link or {}).get("known_minutes", {})
    rows = [
        LinkRow(item=name, b=i.b, minutes=known[name], source=i.task_id or "")
        for i in found.items
        if i.b is not None and (name := item_name(i)) in known
    ]
    if not rows or link is None or link["slope"] is None or link["intercept"] is None:
        return rows, [], []
    ends = min(row.b for row in rows), max(row.b for row in rows)
    band = []
    for step in range(_STEPS + 1):
        b = ends[0] + (ends[1] - ends[0]) * step / _STEPS
        middle = link["intercept"] + link["slope"] * b
        errors = (link["tau"], link["se_mean"], (b - link["centroid"]) * (link["se_slope"] or 0.0))
        half = _Z95 * math.hypot(*(error or 0.0 for error in errors))
        band.append(
            BandRow(b=b, minutes=math.exp(middle), lo=math.exp(middle - half),
                    hi=math.exp(middle + half))
        )  # fmt: skip
    r2 = "" if link["r2"] is None else f", R² {link['r2']:.3f}"
    return rows, band, [f"{link['n_anchors']} items, link {link['level']}{r2}."]


def item_name(item: FitItem) -> str:
    """Name an item as people see it, which is its key in the link's `known_minutes`."""
    return item.item_id if item.task_id is None else f"{item.task_id}/{item.item_id}"


def item_labels(items: Sequence[FitItem]) -> list[str]:
    """Name items, each differently: with the version where a task was run in several."""
    names = [item_name(item) for item in items]
    times = Counter(names)
    return [
        f"{name} (version {item.version})" if times[name] > 1 else name
        for name, item in zip(names, items, strict=True)
    ]


def flag_counts(found: Scale) -> list[dict[str, Any]]:
    """Count the items of each flag, with what it means."""
    counts: dict[str, int] = {}
    for item in found.items:
        for flag in item.flags:
            counts[flag] = counts.get(flag, 0) + 1
    return [
        {"flag": flag, "n_flagged": n, "meaning": _FLAGS.get(flag, "")}
        for flag, n in sorted(counts.items())
    ]


def fit_command(fit: FitRow, store: str) -> str:
    """Give the command that makes a fit again; FILE stands for what the store does not keep."""
    words = ["harness", "fit", "--method", fit.method]
    if fit.scores != "counts":
        words += ["--scores", fit.scores]
    if fit.source != "store":
        words += ["--responses", fit.source]
    for option in ("tasks", "models"):
        for name in fit.selection.get(option) or ():
            words += [f"--{option[:-1]}", name]
    if fit.selection.get("baselines"):
        words.append("--baselines")
    link = fit.link or {}
    if link.get("known_minutes"):
        if not any(note.startswith("human minutes") for note in link["notes"]):
            words += ["--human-minutes", "FILE"]
        words += ["--link", link["level"]]
    return shlex.join([*words, "--store", store])


def _item(item: FitItem, label: str, minutes: float | None) -> ScaleItem:
    return ScaleItem(
        item_name=label, task=item.task_id, version=item.version, item_id=item.item_id,
        difficulty_b=item.b, difficulty_se=item.se_b, discrimination=item.a,
        log_discrimination_se=item.se_log_a, n_responders=item.n_models, slope_z=item.slope_z,
        minutes_known=minutes, minutes_hat=item.human_minutes_hat, hat_lo=item.lo, hat_hi=item.hi,
        flags=tuple(item.flags),
    )  # fmt: skip


def _model(model: FitModel) -> ScaleModel:
    lo, hi = _ends(model)
    return ScaleModel(
        model=model.model, variant_id=model.variant_id, strategy=model.strategy,
        ability=model.theta, ability_se=model.se, ability_lo=lo, ability_hi=hi,
        h50=model.horizon50_min, h50_lo=model.lo, h50_hi=model.hi, h80=model.horizon80_min,
        h80_lo=model.lo80, h80_hi=model.hi80, n_answered=model.n_items, flags=tuple(model.flags),
    )  # fmt: skip


def _ends(model: FitModel) -> tuple[float | None, float | None]:
    if model.theta is None or model.se is None:
        return None, None
    half = _Z95 * model.se
    return model.theta - half, model.theta + half
