"""What `harness fit` prints of human minutes: horizons, the link, its sensitivity, published figures."""

from __future__ import annotations

from typing import Any

from harness.cli.output import first_of, note, print_table
from harness.store.fits import FitModel

_VALUES = ("value", "lo", "hi")


def horizon(model: FitModel) -> str:
    """Write a model's 50 % horizon with its interval, in minutes."""
    ends = {"value": model.horizon50_min, "lo": model.lo, "hi": model.hi}
    return _ends(ends, 1 if (model.horizon50_min or 0) >= 1 else 3)


def levels_beside(model: FitModel, link: dict[str, Any]) -> str:
    """Write a model's 50 % horizon at every level of the link: how far the level moves it."""
    return " / ".join(_minutes(by_model.get(model.model)) for by_model in link["h50"].values())


def print_link(link: dict[str, Any]) -> None:
    """Write the link, what rests on it, and what moves it.

    Parameters
    ----------
    link : dict
        As the store keeps it.
    """
    through = "theta" if "shared_models" in link else "b"
    print(
        f"human minutes: log minutes = {_or_dash(link['intercept'])} + {_or_dash(link['slope'])} {through} "
        f"(link {link['level']}, {link['n_anchors']} anchors, R² {_or_dash(link['r2'])}, "
        f"spread {_or_dash(link['tau'], 2)} log-minutes)"
    )
    for one in link["tests"]:
        print(
            f"  tested on {one['n']} items of {one['group']}, which are no anchors: "
            f"{100 * one['bucket_accuracy']:.1f} % in the right bucket (to 15, 60, 240 minutes, above), "
            f"{one['within_2x']} within a factor of 2"
        )
    if "doubling" in link:
        _print_growth(link)
    elif "shared_models" not in link:
        note("no release dates (--release-dates F): no doubling time")
    for text in link["notes"]:
        note(text)


def _print_growth(link: dict[str, Any]) -> None:
    months, best = link["doubling"], link["best"]
    print(f"longest horizon of a dated model: {best['model']}, {_ends(best, 0)} minutes at 50 %")
    print(f"doubling time at the frontier: {_ends(months, 2)} months")
    print_table(
        "how far the level of the link moves them",
        ["link", "longest horizon, minutes", "doubling time, months"],
        [
            (f"{level}{' (used)' * (level == link['level'])}",
             _or_dash(one["best"], 0), _or_dash(one["doubling"], 2))
            for level, one in link["sensitivity"].items()
        ],
    )  # fmt: skip
    if names := link["undated_models"]:
        note(
            f"{len(names)} models have no release date, so they are not in the frontier: "
            f"{first_of(names)}"
        )
    if others := link["dates_of_others"]:
        note(f"{len(others)} release dates are of models that are not here: {first_of(others)}")


def print_published(link: dict[str, Any]) -> None:
    """Write our figures beside published ones, where the answers are those they were made from."""
    known = link.get("published")
    if known is None:
        return
    print_table(
        f"the same answers, fitted by others: {known['source']}",
        ["figure", "here", "published"],
        [
            (one["name"], _figure(one["ours"]), _figure(one["published"]))
            for one in known["figures"]
        ],
        fold=["figure"],
    )
    print(f"here: {known['ours']}")
    print(f"published: {known['method']}")


def _figure(one: dict[str, float | None] | None) -> str:
    if one is None or one["value"] is None:
        return "–"
    digits = 0 if one["value"] >= 10 else 3 if one["value"] < 1 else 2
    return _ends(one, digits) if one.get("lo") is not None else _or_dash(one["value"], digits)


def _or_dash(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _minutes(value: float | None) -> str:
    return _or_dash(value, 1 if (value or 0) < 100 else 0) if (value or 1) >= 1 else f"{value:.2f}"


def _ends(one: dict[str, float | None], digits: int) -> str:
    """Write a value with its interval; an end that is not known, or without bound, as a dash."""
    value, lo, hi = (_or_dash(one[name], digits) for name in _VALUES)
    return f"{value} [{lo}, {hi}]"
