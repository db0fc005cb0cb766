"""Read a fit in human minutes: link, horizons, doubling time, and how far the link's level moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harness.core.errors import UsageError
from harness.runner.human_minutes import Minutes, finite

if TYPE_CHECKING:
    import irt
    from harness.store.fits import StoredFit

_DRAWS = 1000


class Linked(NamedTuple):
    """A fit with its link, and the same at the other levels.

    Attributes
    ----------
    fit : irt.Fit
        The plain fit; with level "joint" another one, whose likelihood has the minutes.
    link : irt.Link
    levels : dict of str to (irt.Fit, irt.Link)
    minutes : dict
        The anchors by the fit's own keys.
    """

    fit: irt.Fit
    link: irt.Link
    levels: dict[str, tuple[irt.Fit, irt.Link]]
    minutes: dict[Any, float]


def link(fitted: irt.Fit, given: Minutes) -> Linked:
    """Link a fit to human minutes.

    Parameters
    ----------
    fitted : irt.Fit
        Without minutes in its likelihood.
    given : Minutes

    Raises
    ------
    UsageError
        Minutes that do not fit: unknown items, minutes that are not positive, too few anchors; or
        a level that this fit cannot have.
    """
    import irt
    from irt.trend import all_levels

    minutes = _by_key(fitted, given.minutes)
    try:
        levels = all_levels(fitted, minutes)
    except irt.DataError as error:
        raise UsageError(f"human minutes: {error}") from None
    if given.level not in levels:
        raise UsageError(
            f"--link {given.level} is part of --method joint with answers that are right or wrong; "
            f"here choose {' or '.join(levels)}"
        )
    return Linked(*levels[given.level], levels, minutes)


def _by_key(fitted: irt.Fit, minutes: dict[str, float]) -> dict[Any, float]:
    """Turn names into keys; a name may stand for an item of several task versions."""
    names: dict[str, list[Any]] = {}
    for key in (*fitted.items.item, *(key for key, _ in fitted.verdict.excluded.items)):
        names.setdefault(str(key), []).append(key)
    return {key: value for name, value in minutes.items() for key in names.get(name, [name])}


def add_minutes(linked: Linked, found: StoredFit, given: Minutes) -> None:
    """Write link, horizons and doubling time into a fit's rows.

    Raises
    ------
    UsageError
        Dates that are none, or a frontier in fewer than two months.
    """
    import irt

    fitted, line = linked.fit, linked.link
    try:
        halves, fifths = (irt.horizons(fitted, line, q) for q in (0.5, 0.8))
        growth = _doubling(linked, given)
    except irt.DataError as error:
        raise UsageError(f"human minutes: {error}") from None
    _add_to_items(linked, found)
    by_model = {
        str(name): (*h50, *h80)
        for name, h50, h80 in zip(
            halves.model, *(zip(*map(_numbers, (h.minutes, h.lo, h.hi)), strict=True)
                            for h in (halves, fifths)), strict=True,
        )
    }  # fmt: skip
    for model in found.models:
        (
            model.horizon50_min, model.lo, model.hi,
            model.horizon80_min, model.lo80, model.hi80,
        ) = by_model[model.model]  # fmt: skip
    found.fit.link = {
        "level": line.level, "slope": finite(line.beta), "intercept": finite(line.alpha),
        "r2": finite(line.r2), "tau": finite(line.tau), "n_anchors": line.n_anchors,
        "centroid": finite(line.centroid), "se_slope": finite(line.se_beta),
        "se_mean": finite(line.se_mean),
        "known_minutes": {str(key): minutes for key, minutes in linked.minutes.items()},
        "h50": _by_level(linked), **growth, "tests": _tests(linked, given),
        "notes": [*given.notes, *dict.fromkeys((*line.notes, *halves.notes)), *_unfinished(linked)],
    }  # fmt: skip


def _unfinished(linked: Linked) -> list[str]:
    return [
        f"link {level} has not converged: its figures are not to be trusted"
        for level, (fitted, _) in linked.levels.items()
        if not fitted.verdict.converged and level == "joint"
    ]


def _add_to_items(linked: Linked, found: StoredFit) -> None:
    fitted = linked.fit
    predicted = linked.link.predict(fitted.items.b, fitted.items.se_b)
    by_item = {
        key if isinstance(key, tuple) else str(key): ends
        for key, *ends in zip(
            fitted.items.item, *map(_numbers, (predicted.median, predicted.lo, predicted.hi)),
            strict=True,
        )
    }  # fmt: skip
    for item in found.items:
        whole = (item.task_id, item.version, item.item_id)
        place = item.item_id if item.task_id is None else whole
        item.human_minutes_hat, item.lo, item.hi = by_item[place]


def _by_level(linked: Linked) -> dict[str, dict[str, float | None]]:
    """Give every model's horizon at every level of the link."""
    import numpy as np

    return {
        level: dict(
            zip(
                map(str, fitted.models.model),
                _numbers(np.exp(line.log_minutes(fitted.models.theta))),
                strict=True,
            )
        )
        for level, (fitted, line) in linked.levels.items()
    }


def _doubling(linked: Linked, given: Minutes) -> dict[str, Any]:
    """Give the doubling time at the frontier, and how far the level of the link moves it."""
    import irt

    names = {str(name): name for name in linked.fit.models.model}
    dates = {names.get(name, name): day for name, day in given.dates.items()}
    if not dates:
        return {}
    by_level = {
        level: irt.doubling(fitted, line, dates, n=_DRAWS)
        for level, (fitted, line) in linked.levels.items()
    }
    best = by_level[linked.link.level]
    return {
        "doubling": _ends(best.months, best.lo, best.hi),
        "best": {"model": str(best.best), **_ends(best.best_minutes, best.best_lo, best.best_hi)},
        "frontier": [str(name) for name in best.trend.model],
        "dates": {str(name): str(dates[name]) for name in linked.fit.models.model if name in dates},
        "sensitivity": {
            level: {"doubling": finite(one.months), "best": finite(one.best_minutes)}
            for level, one in by_level.items()
        },
        "undated": len(best.undated),
        "undated_models": [str(name) for name in best.undated],
        "dates_of_others": [str(name) for name in best.unknown],
    }


def _tests(linked: Linked, given: Minutes) -> list[dict[str, Any]]:
    """Hold predicted minutes against known ones of items that are no anchors, group by group."""
    from irt.minutes import bucket_accuracy, within_factor

    place = {str(key): row for row, key in enumerate(linked.fit.items.item)}
    found = []
    for group, minutes in given.others.items():
        known = {place[name]: value for name, value in minutes.items() if name in place}
        known = {row: value for row, value in known.items() if value > 0}
        if known:
            predicted = linked.link.predict(linked.fit.items.b[list(known)]).median
            times = list(known.values())
            found.append({
                "group": group, "n": len(known),
                "bucket_accuracy": bucket_accuracy(times, predicted),
                "within_2x": within_factor(times, predicted),
            })  # fmt: skip
    return found


def _numbers(values: Any) -> list[float | None]:
    return [finite(value) for value in values]


def _ends(value: float, lo: float, hi: float) -> dict[str, float | None]:
    return dict(zip(("value", "lo", "hi"), _numbers((value, lo, hi)), strict=True))
