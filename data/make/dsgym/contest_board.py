"""The boards of the own contests: 120 reference programs each, from a constant to boosted trees.

They are programs, not people: a place among them says how much more than routine a submission is.
Scores are rounded to five decimals, which the last bits of a sum do not reach. Which of two equally
good splits a tree takes is another matter: with scikit-learn 1.6 instead of 1.9, 25 of the 360 scores
of draw 0 move, by 1.1 % at most. So the manifest says with which version the boards were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from contest_table import Cell, Contest, Drawn, ids
from stream import Stream

from scorers.contest import METRICS, parts

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]

N_PROGRAMS = 120
DIGITS = 5
MISTAKES = ("not turned back", "one row late", "sorted apart", "turned over", "coarse", "capped")


@dataclass(frozen=True)
class Program:
    """A reference program.

    Parameters
    ----------
    family
        constant, line (of the logarithm; logistic for a class), plain line (of the target as it is),
        tree, forest or boosting.
    columns
        Positions of the columns it looks at.
    depth, size
        Of the trees, and how many there are. For a constant, `size` is the percentile.
    percent
        Of the rows it learns from.
    mistake
        Made on the way out, one of `MISTAKES`.
    """

    family: str
    columns: tuple[int, ...] = ()
    depth: int = 0
    size: int = 0
    percent: int = 100
    mistake: str = ""

    def name(self, inputs: Sequence[str]) -> str:
        """Say what it does, for the board's file."""
        if self.family == "constant":
            return f"constant, percentile {self.size}"
        used = [inputs[at] for at in self.columns]
        said = [self.family, used[0] if len(used) == 1 else f"first {len(used)} columns"]
        said += [f"depth {self.depth}"] * (self.depth > 0)
        said += [f"{self.size} trees"] * (self.size > 0)
        said += [f"{self.percent} % of the rows"] * (self.percent < 100)
        said += [self.mistake] * bool(self.mistake)
        return ", ".join(said)


def programs(n_columns: int, *, of_class: bool) -> list[Program]:
    """List the reference programs of a contest with so many columns, for a class or a number."""
    every = tuple(range(n_columns))
    # The likelihood of a class is never on a logarithm's scale.
    mistakes = MISTAKES[1:] if of_class else MISTAKES
    growing = [every[:k] for k in range(2, n_columns + 1)]
    listed = chain(
        (Program("constant", size=at) for at in (10, 25, 40, 50, 60, 75, 90)),
        (Program("line", (at,)) for at in every),
        (Program("tree", (at,), depth=3) for at in every),
        (Program("line", columns) for columns in growing),
        (Program("plain line", columns) for columns in growing),
        (Program("tree", every, depth) for depth in range(1, 11)),
        (Program("forest", every, depth, size) for depth in range(2, 11, 2) for size in (10, 30)),
        (
            Program("boosting", every, depth, size)
            for depth in range(1, 5)
            for size in (5, 10, 20, 50, 100)
        ),
        (Program("line", every, mistake=mistake) for mistake in mistakes),
        (Program("boosting", every, 3, 20, mistake=mistake) for mistake in mistakes),
        _on_few_rows(every),
    )
    return list(islice(listed, N_PROGRAMS))


def _on_few_rows(every: tuple[int, ...]) -> Iterator[Program]:
    for percent in (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50):
        yield Program("line", every, percent=percent)
        yield Program("tree", every, 4, percent=percent)
        yield Program("boosting", every, 2, 30, percent)
        yield Program("boosting", every, 4, 30, percent)


class Runner:
    """Runs programs on one draw of a contest.

    Parameters
    ----------
    contest
    drawn
    """

    def __init__(self, contest: Contest, drawn: Drawn) -> None:
        self._of_class = contest.metric == "auc"
        self._ids = list(drawn.test)
        self._target = np.array(drawn.target)
        rows = [*drawn.train, *drawn.test.values()]
        n_train = len(drawn.train)
        columns = [[row[at] for row in rows] for at in range(len(drawn.inputs))]
        self._codes = [_codes(column, n_train) for column in columns]
        self._scaled = [_scaled(column, n_train) for column in columns]
        self._order = np.array([int(one) for one in ids(Stream(7), n_train, first=0)])

    def predict(self, program: Program) -> dict[str, float]:
        """Give what a program submits, by id."""
        values = self._values(program)
        if program.mistake == "one row late":
            values = np.roll(values, 1)
        elif program.mistake == "sorted apart":
            values = np.sort(values)
        elif program.mistake == "turned over":
            values = float(values.min() + values.max()) - values
        elif program.mistake == "coarse":
            step = 0.5 if self._of_class else float(np.median(self._target))
            values = np.round(values / step) * step
        elif program.mistake == "capped":
            values = np.minimum(values, float(np.median(values)))
        if not self._of_class:
            values = np.maximum(values, 0.0)
        return dict(zip(self._ids, map(float, values), strict=True))

    def _values(self, program: Program) -> Numbers:
        if program.family == "constant":
            return np.full(len(self._ids), np.percentile(self._target, program.size))
        encoded = self._scaled if "line" in program.family else self._codes
        matrix = np.column_stack([encoded[at] for at in program.columns])
        n_train = len(self._target)
        chosen = np.sort(self._order[: max(20, n_train * program.percent // 100)])
        logged = not self._of_class and program.family != "plain line"
        target = np.log1p(self._target) if logged else self._target
        model = _model(program, of_class=self._of_class)
        model.fit(matrix[chosen], target[chosen])
        if hasattr(model, "predict_proba"):
            found: Numbers = model.predict_proba(matrix[n_train:])[:, 1]
        else:
            found = model.predict(matrix[n_train:])
        if program.mistake == "not turned back":
            return found
        return np.expm1(found) if logged else found


def _model(program: Program, *, of_class: bool) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.tree import DecisionTreeRegressor

    if program.family == "line" and of_class:
        return LogisticRegression(tol=1e-8, max_iter=2000)
    if "line" in program.family:
        return Ridge(alpha=1.0)
    if program.family == "tree":
        return DecisionTreeRegressor(max_depth=program.depth, random_state=0)
    if program.family == "forest":
        return RandomForestRegressor(program.size, max_depth=program.depth, random_state=0)
    return GradientBoostingRegressor(
        n_estimators=program.size, max_depth=program.depth, learning_rate=0.2, random_state=0
    )


def _codes(column: Sequence[Cell], n_train: int) -> Numbers:
    """Encode a column for trees: words by their rank, numbers as they are."""
    words = _words(column)
    if words:
        return np.array([[float(words.index(str(cell)))] for cell in column])
    return _numbers(column, n_train)


def _scaled(column: Sequence[Cell], n_train: int) -> Numbers:
    """Encode a column for lines: a word a column of zeros and ones, numbers in standard units."""
    words = _words(column)
    if words:
        return np.array([[float(cell == word) for word in words] for cell in column])
    values = _numbers(column, n_train)
    spread = float(values[:n_train].std())
    return (values - float(values[:n_train].mean())) / (spread or 1.0)


def _words(column: Sequence[Cell]) -> list[str]:
    """Give the different words of a column, none if it holds numbers; energy's gap is a word."""
    found = {cell for cell in column if isinstance(cell, str)}
    return sorted(found) if found - {""} else []


def _numbers(column: Sequence[Cell], n_train: int) -> Numbers:
    values = np.array([np.nan if cell == "" else float(cell) for cell in column])
    values[np.isnan(values)] = np.nanmedian(values[:n_train])
    return values.reshape(-1, 1)


def measure(contest: Contest, drawn: Drawn, given: dict[str, float]) -> dict[str, float]:
    """Give the public and the private score of a submission."""
    return {
        part: round(
            METRICS[contest.metric](
                [float(drawn.truth[one]) for one in names], [given[one] for one in names]
            ),
            DIGITS,
        )
        for part, names in parts(drawn.truth).items()
    }


def board(contest: Contest, drawn: Drawn) -> dict[str, object]:
    """Make the board of a contest in upstream's form, with its direction and the programs.

    Returns
    -------
    dict
        Scores of both parts, the best first; means and medians; ``programs``: name -> both scores.
    """
    runner = Runner(contest, drawn)
    listed = programs(len(drawn.inputs), of_class=contest.metric == "auc")
    found = {
        program.name(drawn.inputs): measure(contest, drawn, runner.predict(program))
        for program in listed
    }
    made: dict[str, object] = {}
    for part in ("public", "private"):
        scores = sorted(
            (score[part] for score in found.values()), reverse=contest.direction == "higher"
        )
        made |= {
            f"{part}_scores": scores,
            f"{part}_mean": round(sum(scores) / len(scores), DIGITS),
            f"{part}_median": round((scores[59] + scores[60]) / 2, DIGITS),
        }
    return {
        **made,
        "total_submissions": len(found),
        "direction": contest.direction,
        "label": "reference programs",
        "programs": {name: [score["public"], score["private"]] for name, score in found.items()},
    }
