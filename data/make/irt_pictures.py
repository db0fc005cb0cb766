"""Draw the pictures of docs/guides/irt.md: simulated answers, and BRIDGE's published table.

    .venv/bin/python -P data/make/irt_pictures.py

Writes docs/img/irt-*.svg; the same pictures each time. Needs the extra `board`.
"""

from __future__ import annotations

import csv
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import irt
from irt.trend import bootstrap, trend
from leaderboard.charts.horizon import HorizonRow, TrendRow, horizon_plot
from leaderboard.charts.link import BandRow, LinkRow, link_plot
from leaderboard.charts.saving import save
from leaderboard.charts.scale import AbilityRow, ItemRow, MinutesLink, ability_plot, item_curves

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "data/published"
NAMED = [
    ItemRow(item="easy: b −1.5, a 1.5", a=1.5, b=-1.5),
    ItemRow(item="hard: b 1.5, a 1.5", a=1.5, b=1.5),
    ItemRow(item="says little: b 0, a 0.4", a=0.4, b=0.0),
]


def simulated() -> tuple[irt.Fit, dict[str, float]]:
    """Give a fit of thirty models on two hundred items, and minutes of ninety: log h = 2.5 + 1.5 b."""
    rng = np.random.default_rng(20261201)
    theta, b = rng.normal(size=30), 1.3 * rng.normal(size=200)
    a = np.exp(0.4 * rng.normal(size=200))
    right = rng.random((30, 200)) < 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    rows = [
        {"model": f"model {j:02d}", "item": f"item {i:03d}", "k": int(right[j, i])}
        for j in range(30)
        for i in range(200)
    ]
    minutes = np.exp(2.5 + 1.5 * b[:90] + rng.normal(size=90))
    return irt.fit(rows, "joint"), {f"item {i:03d}": float(m) for i, m in enumerate(minutes)}


def link_picture(fit: irt.Fit, minutes: dict[str, float]) -> Any:
    """Draw difficulty and human time with the link's band."""
    link = irt.fit_link(fit, minutes)
    place = {item: row for row, item in enumerate(fit.items.item)}
    rows = [
        LinkRow(item=item, b=float(fit.items.b[place[item]]), minutes=m)
        for item, m in minutes.items()
    ]
    grid = np.linspace(min(row.b for row in rows), max(row.b for row in rows), 40)
    found = link.predict(grid)
    band = [
        BandRow(b=float(b), minutes=float(m), lo=float(lo), hi=float(hi))
        for b, m, lo, hi in zip(grid, found.median, found.lo, found.hi, strict=True)
    ]
    return link_plot(rows, band, notes=[f"Simulated: 90 items with minutes, R² {link.r2:.2f}."])


def ability_picture(fit: irt.Fit, minutes: dict[str, float]) -> Any:
    """Draw abilities with the second axis in minutes."""
    link = irt.fit_link(fit, minutes)
    rows = [
        AbilityRow(label=str(name), theta=t, lo=t - 1.96 * se, hi=t + 1.96 * se)
        for name, t, se in zip(fit.models.model, fit.models.theta, fit.models.se, strict=True)
    ][:12]
    line = MinutesLink(intercept=link.alpha, slope=link.beta)
    return ability_plot(rows, link=line, title="Ability (twelve simulated models)")


def horizon_picture() -> Any:
    """Draw the published horizons of BRIDGE's 36 dated models, and the growth of the frontier."""
    with (PUBLISHED / "bridge_link.csv").open(encoding="utf-8", newline="") as stream:
        line = next(csv.DictReader(stream))
    with (PUBLISHED / "bridge.csv").open(encoding="utf-8", newline="") as stream:
        models = list(csv.DictReader(stream))
    logs = [
        float(line["intercept"]) + float(line["slope"]) * float(row["ability"]) for row in models
    ]
    days = [date.fromisoformat(row["release_date"]) for row in models]
    found = trend([row["model"] for row in models], logs, days)
    lo, hi = (math.log(2) / slope for slope in reversed(bootstrap(found)))
    rows = [
        HorizonRow(label=row["model"], released=day, minutes=math.exp(y), kind="published")
        for row, day, y in zip(models, days, logs, strict=True)
    ]
    growth = TrendRow(
        frontier=[str(name) for name in found.model], months=found.doubling, lo=lo, hi=hi,
        kind="published",
    )  # fmt: skip
    note = "BRIDGE (arXiv 2602.07267, CC BY 4.0): published abilities and link, 36 models."
    return horizon_plot(rows, growth, notes=[note], title="Horizon against release date")


def main() -> None:
    """Write the pictures."""
    fit, minutes = simulated()
    pictures = {
        "curves": item_curves(NAMED, highlight=[row.item for row in NAMED], title="Three items"),
        "link": link_picture(fit, minutes),
        "abilities": ability_picture(fit, minutes),
        "horizon": horizon_picture(),
    }
    for name, chart in pictures.items():
        print(save(chart, ROOT / f"docs/img/irt-{name}.svg").relative_to(ROOT))


if __name__ == "__main__":
    main()
