"""causal.csv: 1,000 units of a linear model whose graph is known, so the effect is known too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from stream import Stream
from table import Question, Table, from_csv, rounded, to_csv

HEAD = ("assigned", "severity", "dose", "uptake", "outcome", "visits")
# Effect -> its causes with their weights. Total effect of dose: 0.5 + 0.7 x 1.0 = 1.2.
GRAPH: Mapping[str, Mapping[str, float]] = {
    "dose": {"assigned": 0.8, "severity": 0.9},
    "uptake": {"dose": 0.7},
    "outcome": {"dose": 0.5, "uptake": 1.0, "severity": 1.2},
    "visits": {"dose": 0.6, "outcome": 0.6},
}
NOISE = {
    "assigned": 1.0,
    "severity": 1.0,
    "dose": 0.8,
    "uptake": 0.4,
    "outcome": 0.4,
    "visits": 0.8,
}
N = 1000


def make(draw: int) -> Mapping[str, bytes]:
    """Make the table: causes before effects, in the order of the columns."""
    stream = Stream(draw)
    rows = []
    for _ in range(N):
        unit: dict[str, float] = {}
        for name in HEAD:
            causes = GRAPH.get(name, {})
            unit[name] = NOISE[name] * stream.normal() + sum(w * unit[c] for c, w in causes.items())
        rows.append([f"{unit[name]:.4f}" for name in HEAD])
    return {"causal.csv": to_csv(HEAD, rows)}


_CONTEXT = (
    "causal.csv has one row a unit; all relations are linear. assigned was drawn by lot and acts on dose "
    "alone. severity acts on dose and on outcome. dose acts on outcome, partly through uptake. dose and "
    "outcome both lead to visits. Nothing else acts on anything."
)


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float, *traps: str,
    options: tuple[str, ...] = (),
) -> Question:  # fmt: skip
    return Question(
        name=name, question=question, guideline=guideline, answer_type=kind, level=level,
        minutes=minutes, profile="qrdata", traps=traps, keywords=("Causality",), options=options,
        context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "K1", "By how much does outcome change in all when dose is raised by 1 (the total effect)?",
        "a number with one decimal", "float(1)", "hard", 10, "nothing is adjusted for",
        "the mediator is adjusted for", "the collider is adjusted for",
    ),
    _question(
        "K2", "Which columns have to be adjusted for, to estimate that total effect by a regression of "
        "outcome on dose? Name the smallest set.",
        "column names separated by commas", "set(label)", "medium", 6,
        "the mediator is adjusted for", "the instrument is adjusted for",
    ),
    _question(
        "K3", "How do dose and visits hang together?", "one letter", "letter", "easy", 3,
        "what correlates is read backwards",
        options=("dose leads to visits", "visits lead to dose", "neither leads to the other"),
    ),
    _question(
        "K4", "Estimate the effect of dose on outcome by two-stage least squares with assigned as the "
        "instrument.",
        "a number with two decimals", "float(2)", "hard", 8, "ordinary least squares",
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with numpy, pandas and networkx."""
    import networkx as nx
    import numpy as np
    import pandas as pd

    d = pd.read_csv(folder / "causal.csv")
    design = np.column_stack([np.ones(len(d)), d.dose, d.severity])
    fit = np.linalg.lstsq(design, d.outcome.to_numpy(), rcond=None)[0]
    graph = nx.DiGraph((cause, effect) for effect, causes in GRAPH.items() for cause in causes)
    without = graph.copy()
    without.remove_node("dose")
    common = [c for c in graph.predecessors("dose") if nx.has_path(without, c, "outcome")]
    stage = np.polyval(np.polyfit(d.assigned, d.dose, 1), d.assigned)
    return {
        "K1": rounded(float(fit[1]), 1),
        "K2": ", ".join(sorted(common)),
        "K3": "A" if graph.has_edge("dose", "visits") else "B",
        "K4": rounded(float(np.polyfit(stage, d.outcome, 1)[0]), 2),
    }


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python: normal equations, and the ratio of two covariances."""
    rows = from_csv(folder / "causal.csv")
    column = {name: [Fraction(r[name]) for r in rows] for name in HEAD}
    x, c, y = (column[name] for name in ("dose", "severity", "outcome"))
    xx, cc, xc = _cov(x, x), _cov(c, c), _cov(x, c)
    xy, cy = _cov(x, y), _cov(c, y)
    effect = (xy * cc - cy * xc) / (xx * cc - xc * xc)
    common = [cause for cause in GRAPH["dose"] if _acts(cause, "outcome", {"dose"})]
    ratio = _cov(column["assigned"], y) / _cov(column["assigned"], x)
    return {
        "K1": rounded(float(effect), 1),
        "K2": ", ".join(sorted(common)),
        "K3": "A" if "dose" in GRAPH["visits"] else "B",
        "K4": rounded(float(ratio), 2),
    }


def _acts(cause: str, effect: str, without: set[str]) -> bool:
    """Tell whether a way of arrows leads from cause to effect that passes none of `without`."""
    causes = set(GRAPH.get(effect, ())) - without
    return cause in causes or any(_acts(cause, between, without) for between in causes)


def _cov(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    n = len(x)
    products = sum(a * b for a, b in zip(x, y, strict=True))
    return Fraction(products - Fraction(sum(x) * sum(y)) / n)


def _slope(folder: Path) -> str:
    rows = from_csv(folder / "causal.csv")
    x, y = ([Fraction(r[name]) for r in rows] for name in ("dose", "outcome"))
    return rounded(float(_cov(x, y) / _cov(x, x)), 2)


WRONG = {
    "K1": {"nothing is adjusted for": _slope, "the mediator is adjusted for": lambda _: "0.5"},
    "K2": {
        "the mediator is adjusted for": lambda _: "severity, uptake",
        "the instrument is adjusted for": lambda _: "severity, assigned",
    },
    "K3": {"what correlates is read backwards": lambda _: "B"},
    "K4": {"ordinary least squares": _slope},
}

TABLE = Table(
    name="causal", files=("causal.csv",), make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
