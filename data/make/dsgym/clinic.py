"""clinic.csv: 400 patients of two centres; the treatment is better in each and worse in total."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from stream import Stream
from table import Question, Table, from_csv, rounded, to_csv

if TYPE_CHECKING:
    import pandas as pd

HEAD = ("patient", "centre", "arm", "age", "score", "recovered")
# centre, arm, patients, recovered at least, and of how many more the draw decides
GROUPS = (
    ("north", "treatment", 150, 60, 6), ("north", "control", 50, 14, 3),
    ("south", "treatment", 50, 42, 3), ("south", "control", 150, 111, 6),
)  # fmt: skip


def make(draw: int) -> Mapping[str, bytes]:
    """Make the table: recoveries first, then every patient's age and score, then the order of rows.

    The shares are bound so that no draw turns the paradox round.
    """
    stream = Stream(draw)
    rows: list[tuple[object, ...]] = []
    for centre, arm, n, least, spread in GROUPS:
        n_recovered = least + stream.below(spread)
        for i in range(n):
            age = 30 + stream.below(45) + (10 if centre == "north" else 0)
            # Scores spread more under the treatment, so that equal variances are no way out.
            spread_of_score = 14 if arm == "treatment" else 6
            score = 55 + spread_of_score * stream.normal() + (6 if i < n_recovered else 0)
            missing = stream.below(23) == 0
            shown = "" if missing else f"{score:.1f}"
            rows.append((centre, arm, age, shown, "yes" if i < n_recovered else "no"))
    for i in range(len(rows) - 1, 0, -1):
        j = stream.below(i + 1)
        rows[i], rows[j] = rows[j], rows[i]
    numbered = [(f"T{i:03d}", *row) for i, row in enumerate(rows, 1)]
    return {"clinic.csv": to_csv(HEAD, numbered)}


_CONTEXT = (
    "clinic.csv has one row a patient: patient, centre (north or south), arm (treatment or control), "
    "age, score (at the end, empty where it was not taken) and recovered (yes or no)."
)


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float, *traps: str,
    options: tuple[str, ...] = (),
) -> Question:  # fmt: skip
    return Question(
        name=name, question=question, guideline=guideline, answer_type=kind, level=level,
        minutes=minutes, profile="qrdata", traps=traps, keywords=("Statistics", "Confounding"),
        options=options, context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "C1", "What share of the treated patients recovered in the north, and what share in the south?",
        "a list of two numbers, north first, three decimals each: [0.123, 0.456]",
        "list(float(3))", "easy", 3, "the control arm is counted too",
    ),
    _question(
        "C2", "Pool both centres. By how much is the share of recovered patients higher in the "
        "treatment arm than in the control arm? A negative number means that it is lower.",
        "a number with three decimals", "float(3)", "easy", 3, "the sign is turned round",
    ),
    _question(
        "C3", "Compute the same difference within each centre and average the two, weighted by each "
        "centre's share of all patients.",
        "a number with three decimals", "float(3)", "medium", 6, "the pooled difference",
        "weights of one arm",
    ),
    _question(
        "C4", "Compare how often treated patients and those of the control arm recovered, pooled over "
        "both centres and within each centre. What is true of treated patients?",
        "one letter", "letter", "medium", 5, "one comparison is taken for the other",
        "the arms are swapped",
        options=(
            "They recovered more often pooled, and more often within each centre.",
            "They recovered less often pooled, and more often within each centre.",
            "They recovered more often pooled, and less often within each centre.",
        ),
    ),
    _question(
        "C5", "What is the Mantel-Haenszel odds ratio of recovery, treatment against control, with the "
        "centres as strata?",
        "a number with three decimals", "rel(0.01)", "hard", 10, "the pooled odds ratio",
    ),
    _question(
        "C6", "What is Welch's t of the score, treatment less control, among the patients of the south "
        "whose score was taken?",
        "a number with two decimals", "float(2)", "hard", 6, "equal variances",
        "both centres", "missing scores count as 0",
    ),
    _question(
        "C7", "The pooled comparison of the two arms is taken for valid where the shares of patients "
        "that the two centres treated differ by less than 10 percentage points. Is it valid here?",
        "yes or no", "bool", "medium", 4, "the sizes of the arms are compared",
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with pandas, scipy and statsmodels."""
    import pandas as pd
    from scipy.stats import ttest_ind
    from statsmodels.stats.contingency_tables import StratifiedTable

    d = pd.read_csv(folder / "clinic.csv")
    d["ok"] = (d.recovered == "yes").astype(int)
    rate = d.groupby(["centre", "arm"]).ok.mean().unstack()
    pooled = d.groupby("arm").ok.mean()
    weights = d.centre.value_counts(normalize=True)
    adjusted = ((rate.treatment - rate.control) * weights).sum()
    tables = [
        pd.crosstab(one.arm, one.ok).loc[["treatment", "control"], [1, 0]].to_numpy()
        for _, one in d.groupby("centre")
    ]
    south = d[(d.centre == "south") & d.score.notna()]
    test = ttest_ind(
        south.score[south.arm == "treatment"], south.score[south.arm == "control"], equal_var=False
    )
    helps = float((rate.treatment - rate.control).min())
    treated = (d.arm == "treatment").groupby(d.centre).mean()
    return {
        "C1": f"[{rounded(rate.treatment['north'], 3)}, {rounded(rate.treatment['south'], 3)}]",
        "C2": rounded(float(pooled["treatment"] - pooled["control"]), 3),
        "C3": rounded(float(adjusted), 3),
        "C4": _direction(float(pooled["treatment"] - pooled["control"]), helps),
        "C5": rounded(float(StratifiedTable(tables).oddsratio_pooled), 3),
        "C6": rounded(float(test.statistic), 2),
        "C7": "yes" if abs(treated["north"] - treated["south"]) < 0.1 else "no",
    }


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python and exact fractions."""
    rows = from_csv(folder / "clinic.csv")
    count: dict[tuple[str, str, str], int] = {}
    for r in rows:
        cell = r["centre"], r["arm"], r["recovered"]
        count[cell] = count.get(cell, 0) + 1

    def share(arm: str, *centres: str) -> Fraction:
        yes = sum(count[c, arm, "yes"] for c in centres)
        return Fraction(yes, yes + sum(count[c, arm, "no"] for c in centres))

    both = ("north", "south")
    inside = {c: share("treatment", c) - share("control", c) for c in both}
    pooled = share("treatment", *both) - share("control", *both)
    size = {c: sum(n for (centre, _, _), n in count.items() if centre == c) for c in both}
    adjusted = Fraction(sum(inside[c] * size[c] for c in both)) / len(rows)
    above = sum(
        Fraction(count[c, "treatment", "yes"] * count[c, "control", "no"], size[c]) for c in both
    )
    below = sum(
        Fraction(count[c, "treatment", "no"] * count[c, "control", "yes"], size[c]) for c in both
    )
    treated = [
        Fraction(sum(count[c, "treatment", said] for said in ("yes", "no")), size[c]) for c in both
    ]
    return {
        "C1": f"[{_text(share('treatment', 'north'))}, {_text(share('treatment', 'south'))}]",
        "C2": _text(pooled),
        "C3": _text(adjusted),
        "C4": _direction(float(pooled), float(min(inside.values()))),
        "C5": _text(Fraction(above) / Fraction(below)),
        "C6": rounded(_welch(rows), 2),
        "C7": "yes" if abs(treated[0] - treated[1]) < Fraction(1, 10) else "no",
    }


def _direction(pooled: float, inside: float) -> str:
    """Give the letter of two differences, treatment less control."""
    if pooled > 0:
        return "A" if inside > 0 else "C"
    return "B"


def _text(value: Fraction) -> str:
    return rounded(float(value), 3)


def _welch(rows: list[dict[str, str]]) -> float:
    means, parts = [], []
    for arm in ("treatment", "control"):
        scores = [
            Fraction(r["score"])
            for r in rows
            if r["centre"] == "south" and r["arm"] == arm and r["score"]
        ]
        mean = sum(scores, Fraction(0)) / len(scores)
        means.append(mean)
        parts.append(sum((s - mean) ** 2 for s in scores) / (len(scores) - 1) / len(scores))
    return float(means[0] - means[1]) / math.sqrt(sum(parts))


def _frame(folder: Path) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_csv(folder / "clinic.csv")
    return frame.assign(ok=frame.recovered == "yes", treated=frame.arm == "treatment")


def _both_arms(folder: Path) -> str:
    rate = _frame(folder).groupby("centre").ok.mean()
    return f"[{rounded(float(rate['north']), 3)}, {rounded(float(rate['south']), 3)}]"


def _turned(folder: Path) -> str:
    rate = _frame(folder).groupby("arm").ok.mean()
    return rounded(float(rate["control"] - rate["treatment"]), 3)


def _weights_of_the_treated(folder: Path) -> str:
    d = _frame(folder)
    rate = d.groupby(["centre", "arm"]).ok.mean().unstack()
    weights = d.centre[d.treated].value_counts(normalize=True)
    return rounded(float(((rate.treatment - rate.control) * weights).sum()), 3)


def _letter(folder: Path, swapped: bool) -> str:
    """Answer C4 with the arms swapped, or with the centres' difference for the pooled one."""
    rate = _frame(folder).groupby(["centre", "arm"]).ok.mean().unstack()
    inside = float((rate.treatment - rate.control).min())
    return _direction(float(_turned(folder)), -inside) if swapped else _direction(inside, inside)


def _pooled_odds(folder: Path) -> str:
    d = _frame(folder)
    odds = d.groupby("arm").ok.sum() / (~d.ok).groupby(d.arm).sum()
    return rounded(float(odds["treatment"] / odds["control"]), 3)


def _t(folder: Path, *, south: bool = True, equal: bool = False, zero: bool = False) -> str:
    """Answer C6 with one rule changed."""
    from scipy.stats import ttest_ind

    d = _frame(folder)
    d = d[d.centre == "south"] if south else d
    score = d.score.fillna(0) if zero else d.score
    test = ttest_ind(score[d.treated], score[~d.treated], equal_var=equal, nan_policy="omit")
    return rounded(float(test.statistic), 2)


def _sizes_of_arms(folder: Path) -> str:
    share = float(_frame(folder).treated.mean())
    return "yes" if abs(share - (1 - share)) < 0.1 else "no"


WRONG = {
    "C1": {"the control arm is counted too": _both_arms},
    "C2": {"the sign is turned round": _turned},
    "C3": {
        "the pooled difference": lambda folder: by_hand(folder)["C2"],
        "weights of one arm": _weights_of_the_treated,
    },
    "C4": {
        "one comparison is taken for the other": lambda folder: _letter(folder, swapped=False),
        "the arms are swapped": lambda folder: _letter(folder, swapped=True),
    },
    "C5": {"the pooled odds ratio": _pooled_odds},
    "C6": {
        "equal variances": lambda folder: _t(folder, equal=True),
        "both centres": lambda folder: _t(folder, south=False),
        "missing scores count as 0": lambda folder: _t(folder, zero=True),
    },
    "C7": {"the sizes of the arms are compared": _sizes_of_arms},
}

TABLE = Table(
    name="clinic", files=("clinic.csv",), make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
