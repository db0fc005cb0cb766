"""causal.csv: 1,000 units of a linear model whose graph is known, so the effect is known too."""

from __future__ import annotations

import math
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
    "alone. severity acts on dose and on outcome. dose acts on outcome, partly through uptake. visits goes "
    "together with dose and with outcome; which leads to which is not known, but no cause is missing from "
    "the table."
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
        "column names separated by commas", "set(label)", "hard", 6,
        "the mediator is adjusted for", "the instrument is adjusted for",
        "the collider is adjusted for",
    ),
    _question(
        "K3", "How do dose and visits hang together? What was drawn by lot tells.", "one letter",
        "letter", "hard", 8, "what correlates is read backwards",
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
        "K3": _direction(float(d.dose.corr(d.visits)), float(d.assigned.corr(d.visits))),
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
    lot, visits = column["assigned"], column["visits"]
    ratio = _cov(lot, y) / _cov(lot, x)
    by_dose, by_lot = (
        float(_cov(a, visits)) / math.sqrt(_cov(a, a) * _cov(visits, visits)) for a in (x, lot)
    )
    return {
        "K1": rounded(float(effect), 1),
        "K2": ", ".join(sorted(common)),
        "K3": _direction(by_dose, by_lot),
        "K4": rounded(float(ratio), 2),
    }


def _direction(by_dose: float, by_lot: float) -> str:
    """Give the letter of two correlations of visits; without a tie they are within 1 / sqrt(N).

    What leads to dose is independent of the lot that acts on dose alone; what dose leads to is not.
    """
    none = 4 / math.sqrt(N)
    if abs(by_dose) < none:
        return "C"
    return "A" if abs(by_lot) > none else "B"


def _acts(cause: str, effect: str, without: set[str]) -> bool:
    """Tell whether a way of arrows leads from cause to effect that passes none of `without`."""
    causes = set(GRAPH.get(effect, ())) - without
    return cause in causes or any(_acts(cause, between, without) for between in causes)


def _cov(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    n = len(x)
    products = sum(a * b for a, b in zip(x, y, strict=True))
    return Fraction(products - Fraction(sum(x) * sum(y)) / n)


def _slope(folder: Path, digits: int, *adjusted: str) -> str:
    """Regress outcome on dose and on what is adjusted for."""
    import numpy as np
    import pandas as pd

    d = pd.read_csv(folder / "causal.csv")
    design = np.column_stack([np.ones(len(d)), d.dose, *(d[name] for name in adjusted)])
    fit = np.linalg.lstsq(design, d.outcome.to_numpy(), rcond=None)[0]
    return rounded(float(fit[1]), digits)


def _backwards(folder: Path) -> str:
    """Answer K3 as if whatever goes together with dose led to it."""
    rows = from_csv(folder / "causal.csv")
    dose, visits = ([Fraction(r[name]) for r in rows] for name in ("dose", "visits"))
    tie = float(_cov(dose, visits)) / math.sqrt(_cov(dose, dose) * _cov(visits, visits))
    return _direction(tie, 0)


WRONG = {
    "K1": {
        "nothing is adjusted for": lambda folder: _slope(folder, 1),
        "the mediator is adjusted for": lambda folder: _slope(folder, 1, "severity", "uptake"),
        "the collider is adjusted for": lambda folder: _slope(folder, 1, "severity", "visits"),
    },
    "K2": {
        "the mediator is adjusted for": lambda _: ", ".join(sorted({*GRAPH["outcome"]} - {"dose"})),
        "the instrument is adjusted for": lambda _: ", ".join(sorted(GRAPH["dose"])),
        "the collider is adjusted for": lambda folder: f"{by_hand(folder)['K2']}, visits",
    },
    "K3": {"what correlates is read backwards": _backwards},
    "K4": {"ordinary least squares": lambda folder: _slope(folder, 2)},
}

TABLE = Table(
    name="causal", files=("causal.csv",), make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
