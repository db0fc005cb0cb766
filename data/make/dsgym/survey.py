"""survey.csv: 500 forms of a survey, some sent in twice, with weights and answers in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path

from stream import Stream
from table import Question, Table, from_csv, pairs, rounded, to_csv

ITEMS = ("q1", "q2", "q3", "q4")
HEAD = ("form", "respondent", "sent", "weight", "channels", *ITEMS)
LIKERT = ("strongly disagree", "disagree", "neither", "agree", "strongly agree")
CHANNELS = ("mail", "phone", "chat", "shop", "app")
N, N_TWICE = 500, 41
START = datetime(2024, 3, 1, 8)  # noqa: DTZ001  the files have no zone


def make(draw: int) -> Mapping[str, bytes]:
    """Make the table: people first, then forms; the last forms are from people who answered before.

    What a hasty reader leaves out makes a difference: the content weigh more, a form that another
    one replaces was filled in at random, and nobody names the app alone, the channel of most.
    """
    stream = Stream(draw)
    people = [f"R{i:03d}" for i in range(1, N - N_TWICE + 1)]
    again = [stream.choice(people) for _ in range(N_TWICE)]
    rows = []
    for i, person in enumerate([*people, *again]):
        mood = stream.normal()
        chosen = [c for c in CHANNELS if stream.below(100) < (55 if c == "app" else 30)]
        if chosen == ["app"]:
            chosen = ["shop", "app"]
        answers = [LIKERT[_step(mood + 0.8 * stream.normal())] for _ in ITEMS]
        if i < len(people) and person in again:
            answers = [stream.choice(LIKERT) for _ in ITEMS]
        # People write as they like.
        answers = [a.title() if stream.below(9) == 0 else a for a in answers]
        weight = f"{0.5 + stream.below(101) / 100 + (0.5 if mood > 0 else 0):.2f}"
        sent = START + timedelta(minutes=37 * i + stream.below(30))
        shown = ";".join(c.upper() if stream.below(11) == 0 else c for c in chosen)
        rows.append((f"F{i + 1:03d}", person, sent.isoformat(sep=" "), weight, shown, *answers))
    for i in range(len(rows) - 1, 0, -1):
        j = stream.below(i + 1)
        rows[i], rows[j] = rows[j], rows[i]
    return {"survey.csv": to_csv(HEAD, rows)}


def _step(x: float) -> int:
    return sum(x > cut for cut in (-1.5, -0.5, 0.2, 1.2))


_CONTEXT = (
    "survey.csv has one row a form: form, respondent, sent, weight (of the form), channels (all that "
    "apply, separated by semicolons; may be empty) and q1 to q4 on a scale of five: strongly disagree, "
    "disagree, neither, agree, strongly agree (1 to 5). Upper and lower case mean nothing. Some people "
    "sent more than one form: only their latest counts, in every question."
)


def _question(
    name: str, question: str, guideline: str, kind: str, level: str, minutes: float, *traps: str
) -> Question:
    return Question(
        name=name, question=question, guideline=guideline, answer_type=kind, level=level,
        minutes=minutes, profile="daeval", traps=traps, keywords=("Survey",), context=_CONTEXT,
    )  # fmt: skip


QUESTIONS = (
    _question(
        "V1", "How many people took part?", "@people[n], a whole number", "pairs(people=int)",
        "easy", 2, "every form counts",
    ),
    _question(
        "V2", "What is the weighted mean of q1, on the scale of 1 to 5?", "@mean[x], two decimals",
        "pairs(mean=float(2))", "medium", 6, "the weights are left out", "every form counts",
    ),
    _question(
        "V3", "Which channel do most people name (not weighted; of several the first in the alphabet)?",
        "@channel[name]", "pairs(channel=label)", "easy", 5, "whole answers are counted",
    ),
    _question(
        "V4", "What is Cronbach's alpha of q1 to q4 (sample variances, not weighted)?",
        "@alpha[x], two decimals", "pairs(alpha=float(2))", "hard", 9,
        "the ratio of variances is turned over", "every form counts",
    ),
    _question(
        "V5", "What percentage of people agree or strongly agree with q2 (not weighted)?",
        "@share[x], in percent with one decimal", "pairs(share=percent(1))", "medium", 5,
        "capital letters are missed", "a share instead of a percentage",
    ),
)  # fmt: skip


def by_pandas(folder: Path) -> dict[str, str]:
    """Answer with pandas."""
    import pandas as pd

    d = pd.read_csv(folder / "survey.csv", parse_dates=["sent"], keep_default_na=False)
    d = d.sort_values("sent").drop_duplicates("respondent", keep="last")
    scale = {word: i for i, word in enumerate(LIKERT, 1)}
    q = d[list(ITEMS)].apply(lambda column: column.str.lower().map(scale))
    weight = d.weight.astype(float)
    named = d.channels.str.lower().str.split(";").explode()
    counts = named[named != ""].value_counts()
    k = len(ITEMS)
    alpha = k / (k - 1) * (1 - q.var().sum() / q.sum(axis=1).var())
    return {
        "V1": pairs(people=str(len(d))),
        "V2": pairs(mean=rounded(float((q.q1 * weight).sum() / weight.sum()), 2)),
        "V3": pairs(channel=str(min(counts[counts == counts.max()].index))),
        "V4": pairs(alpha=rounded(float(alpha), 2)),
        "V5": pairs(share=rounded(100 * float((q.q2 >= 4).mean()), 1)),
    }


def by_hand(folder: Path) -> dict[str, str]:
    """Answer with plain Python and exact fractions."""
    latest: dict[str, dict[str, str]] = {}
    for r in sorted(from_csv(folder / "survey.csv"), key=lambda r: r["sent"]):
        latest[r["respondent"]] = r
    rows = list(latest.values())
    answers = [[LIKERT.index(r[item].lower()) + 1 for item in ITEMS] for r in rows]
    weights = [Fraction(r["weight"]) for r in rows]
    mean = sum(w * a[0] for w, a in zip(weights, answers, strict=True)) / sum(weights)
    named = Counter(c for r in rows for c in r["channels"].lower().split(";") if c)
    parts = sum(_variance([a[i] for a in answers]) for i in range(len(ITEMS)))
    alpha = Fraction(4, 3) * (1 - parts / _variance([sum(a) for a in answers]))
    n_agree = sum(a[1] >= 4 for a in answers)
    return {
        "V1": pairs(people=str(len(rows))),
        "V2": pairs(mean=rounded(float(mean), 2)),
        "V3": pairs(channel=min(named, key=lambda c: (-named[c], c))),
        "V4": pairs(alpha=rounded(float(alpha), 2)),
        "V5": pairs(share=rounded(float(Fraction(100 * n_agree, len(rows))), 1)),
    }


def _variance(values: list[int]) -> Fraction:
    mean = Fraction(sum(values), len(values))
    return sum(((v - mean) ** 2 for v in values), Fraction(0)) / (len(values) - 1)


def _forms(folder: Path, latest: bool = True) -> list[dict[str, str]]:
    rows = sorted(from_csv(folder / "survey.csv"), key=lambda r: r["sent"])
    return list({r["respondent"] if latest else r["form"]: r for r in rows}.values())


def _mean(folder: Path, *, latest: bool = True, weighted: bool = True) -> str:
    """Answer V2 with one rule left out."""
    rows = _forms(folder, latest)
    weights = [Fraction(r["weight"]) if weighted else Fraction(1) for r in rows]
    answers = [LIKERT.index(r["q1"].lower()) + 1 for r in rows]
    total = sum(w * a for w, a in zip(weights, answers, strict=True))
    return pairs(mean=rounded(float(total / sum(weights)), 2))


def _whole_answers(folder: Path) -> str:
    named = Counter(r["channels"].lower() for r in _forms(folder) if r["channels"])
    return pairs(channel=min(named, key=lambda c: (-named[c], c)))


def _alpha(folder: Path, *, latest: bool = True, turned: bool = False) -> str:
    """Answer V4 with one rule changed."""
    rows = _forms(folder, latest)
    answers = [[LIKERT.index(r[item].lower()) + 1 for item in ITEMS] for r in rows]
    parts = sum(_variance([a[i] for a in answers]) for i in range(len(ITEMS)))
    ratio = parts / _variance([sum(a) for a in answers])
    return pairs(alpha=rounded(float(Fraction(4, 3) * (1 - (1 / ratio if turned else ratio))), 2))


def _agreed(folder: Path, *, whole: int, as_written: bool) -> str:
    rows = _forms(folder)
    n = sum((r["q2"] if as_written else r["q2"].lower()) in LIKERT[3:] for r in rows)
    return pairs(share=rounded(float(Fraction(whole * n, len(rows))), 1 if whole == 100 else 3))


WRONG = {
    "V1": {
        "every form counts": lambda folder: pairs(people=str(len(_forms(folder, latest=False))))
    },
    "V2": {
        "the weights are left out": lambda folder: _mean(folder, weighted=False),
        "every form counts": lambda folder: _mean(folder, latest=False),
    },
    "V3": {"whole answers are counted": _whole_answers},
    "V4": {
        "the ratio of variances is turned over": lambda folder: _alpha(folder, turned=True),
        "every form counts": lambda folder: _alpha(folder, latest=False),
    },
    "V5": {
        "capital letters are missed": lambda folder: _agreed(folder, whole=100, as_written=True),
        "a share instead of a percentage": lambda folder: _agreed(
            folder, whole=1, as_written=False
        ),
    },
}

TABLE = Table(
    name="survey", files=("survey.csv",), make=make, questions=QUESTIONS, by_pandas=by_pandas,
    by_hand=by_hand, wrong=WRONG,
)  # fmt: skip
