"""Submissions to a prediction contest: checked, measured against the truth, placed on a board."""

from __future__ import annotations

import csv
import io
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.board import Direction, Place, place, to_floor, without_perfect

PUBLIC_PERCENT = 30


class InvalidError(Exception):
    """A submission that cannot be measured; the first argument is a short machine word."""


class Contest(Struct, frozen=True, kw_only=True):
    """What a contest's score depends on.

    Attributes
    ----------
    metric : str
        Of `METRICS`.
    direction : {"lower", "higher"}
    id_column, target_column : str
        The only two columns of a submission.
    noise_floor : float
        The score of somebody who knows the noiseless truth.
    public_scores, private_scores : sequence of float
        The two boards.
    digits : int
        Decimals of the boards' scores. A submission's score is rounded to as many before it is
        placed, so that the same predictions as an entry's tie with it.
    """

    metric: str
    direction: Direction
    id_column: str
    target_column: str
    noise_floor: float
    public_scores: tuple[float, ...]
    private_scores: tuple[float, ...]
    digits: int = 5


def contest(perfect: str = "keep") -> Scorer:
    """Make a scorer for a submission, the text of its CSV file.

    Reads from the sample: ``target[0]``, the truth as CSV; ``metadata["contest"]``, the fields of
    `Contest`. The value is the percentile on the private board divided by 100. An invalid
    submission is worth 0 there and in every metric; ``valid`` says how many are not.

    Parameters
    ----------
    perfect : {"keep", "drop"}
        Whether scores that nobody reaches without the truth stay on the boards.

    Returns
    -------
    Scorer
        Metrics, for ``public`` and ``private`` each: ``percentile`` (0 to 100), ``above_median``,
        ``medal``, ``gold``. The last line of the explanation is JSON with what has no meaning as a
        mean over contests, again for both: ``score``, ``rank``, ``n``, ``medal``, ``to_floor``.
    """
    if perfect not in ("keep", "drop"):
        raise ValueError(f"perfect must be keep or drop, not {perfect!r}")

    def score(sample: Sample, output: Output) -> Score:
        if not output.text.strip():
            return Score.no_answer("no submission was written")
        rules = Contest(**sample.metadata["contest"])
        if perfect == "drop":
            rules, _ = honest_boards(rules)
        truth = read_column(sample.target[0], rules.id_column, rules.target_column)
        try:
            given = read_submission(output.text, rules, truth)
            measured = {
                name: round(_measured(rules.metric, part, truth, given), rules.digits)
                for name, part in parts(truth).items()
            }
        except InvalidError as error:
            return Score(
                value=0.0, passed=False, reason=str(error.args[0]),
                explanation=f"invalid: {error.args[1]}",
                metrics={"valid": 0.0} | _metrics("public", None) | _metrics("private", None),
            )  # fmt: skip
        boards = {"public": rules.public_scores, "private": rules.private_scores}
        places = {name: place(measured[name], boards[name], rules.direction) for name in boards}
        way = {name: to_floor(measured[name], boards[name], rules.noise_floor) for name in boards}
        return Score(
            value=places["private"].percentile / 100,
            passed=places["private"].above_median,
            explanation=_explained(rules.metric, measured, places, way),
            metrics={"valid": 1.0}
            | _metrics("public", places["public"])
            | _metrics("private", places["private"]),
        )

    return score


def _explained(
    metric: str,
    scores: Mapping[str, float],
    places: Mapping[str, Place],
    way: Mapping[str, float | None],
) -> str:
    said = (
        f"{name} {metric} {scores[name]}, rank {found.rank} of {found.n}"
        for name, found in places.items()
    )
    facts = {
        name: {
            "score": scores[name],
            "rank": found.rank,
            "n": found.n,
            "medal": found.medal,
            "to_floor": way[name],
        }
        for name, found in places.items()
    }
    return f"{'; '.join(said)}\n{json.dumps(facts)}"


def _metrics(part: str, found: Place | None) -> dict[str, float]:
    """Give what may be averaged over contests; None, an invalid submission, is 0 in all of it.

    A score or a rank is not: 0 would be the best of them, and left out it would flatter.
    """
    return {
        f"percentile_{part}": found.percentile if found else 0.0,
        f"above_median_{part}": float(found is not None and found.above_median),
        f"medal_{part}": float(found is not None and found.medal is not None),
        f"gold_{part}": float(found is not None and found.medal == "gold"),
    }


def _measured(
    metric: str, ids: Sequence[str], truth: Mapping[str, float], given: Mapping[str, float]
) -> float:
    try:
        value = METRICS[metric]([truth[one] for one in ids], [given[one] for one in ids])
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise InvalidError("not_a_number", f"the numbers are too large for {metric}")
    return value


def parts(ids: Mapping[str, object]) -> dict[str, list[str]]:
    """Split ids into the public part and the private one, by their hash alone.

    Examples
    --------
    >>> sizes = {name: len(part) for name, part in parts(dict.fromkeys(map(str, range(2000)))).items()}
    >>> 550 < sizes["public"] < 650, sum(sizes.values())
    (True, 2000)
    """
    split: dict[str, list[str]] = {"public": [], "private": []}
    for one in ids:
        public = zlib.crc32(one.encode()) % 100 < PUBLIC_PERCENT
        split["public" if public else "private"].append(one)
    return split


def read_column(text: str, id_column: str, target_column: str) -> dict[str, float]:
    """Read two columns of a CSV text that is known to be right: id -> number."""
    rows = csv.DictReader(io.StringIO(text))
    return {row[id_column]: float(row[target_column]) for row in rows}


def read_submission(text: str, rules: Contest, truth: Mapping[str, float]) -> dict[str, float]:
    """Read a submission.

    Raises
    ------
    InvalidError
        ``columns``, ``rows`` (unreadable or of another length), ``twice``, ``unknown_id``,
        ``missing_id``, ``not_a_number``.
    """
    try:
        rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True))
    except csv.Error as error:
        raise InvalidError("rows", f"no CSV: {error}") from error
    wanted = [rules.id_column, rules.target_column]
    if not rows or sorted(rows[0]) != sorted(wanted):
        raise InvalidError("columns", f"the columns must be {', '.join(wanted)} and no others")
    at_id, at_target = rows[0].index(wanted[0]), rows[0].index(wanted[1])
    found: dict[str, float] = {}
    for number, row in enumerate((row for row in rows[1:] if row), 2):
        if len(row) != 2:
            raise InvalidError("rows", f"row {number} has {len(row)} cells")
        name = row[at_id].strip()
        if name not in truth:
            raise InvalidError(
                "unknown_id", f"row {number}: {name[:40]!r} is no id of the test set"
            )
        if name in found:
            raise InvalidError("twice", f"row {number}: {name!r} stands twice")
        found[name] = _number(row[at_target], number)
    if missing := [name for name in truth if name not in found]:
        raise InvalidError("missing_id", f"{len(missing)} ids are missing, {missing[0]!r} first")
    return found


def _number(cell: str, row: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidError("not_a_number", f"row {row}: {cell[:40]!r} is no finite number")
    return value


def rmsle(truth: Sequence[float], given: Sequence[float]) -> float:
    """Root mean squared error of ln(1 + y).

    Raises
    ------
    InvalidError
        ``negative``: a prediction below 0.

    Examples
    --------
    >>> round(rmsle([1, 3], [1, 7]), 6)
    0.490129
    """
    if min(given) < 0:
        raise InvalidError("negative", "a prediction is below 0")
    squares = [(math.log1p(p) - math.log1p(y)) ** 2 for y, p in zip(truth, given, strict=True)]
    return math.sqrt(math.fsum(squares) / len(squares))


def auc(truth: Sequence[float], given: Sequence[float]) -> float:
    """Probability that a positive is given a higher number than a negative, equals count half.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    ordered = sorted(zip(given, truth, strict=True))
    positives = sum(y > 0 for y in truth)
    negatives = len(ordered) - positives
    won, below, at = 0.0, 0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        here = sum(y > 0 for _, y in ordered[at:end])
        won += here * (below + (end - at - here) / 2)
        below += end - at - here
        at = end
    return won / (positives * negatives)


def smape(truth: Sequence[float], given: Sequence[float]) -> float:
    """Symmetric mean absolute percentage error: 100 mean of 2 |p - y| / (|p| + |y|), 0/0 is 0.

    Examples
    --------
    >>> round(smape([2, 0, 4], [4, 0, 4]), 4)
    22.2222
    """
    terms = [
        2 * abs(p - y) / (abs(p) + abs(y)) if p or y else 0.0
        for y, p in zip(truth, given, strict=True)
    ]
    return 100 * math.fsum(terms) / len(terms)


METRICS: dict[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "rmsle": rmsle, "auc": auc, "smape": smape,
}  # fmt: skip
PERFECT = {"rmsle": 0.0, "auc": 1.0, "smape": 0.0}
"""The score of the truth itself, which nobody reaches without it."""


def honest_boards(rules: Contest) -> tuple[Contest, int]:
    """Take the perfect scores off both boards; give how many there were."""
    public, n_public = without_perfect(rules.public_scores, PERFECT[rules.metric])
    private, n_private = without_perfect(rules.private_scores, PERFECT[rules.metric])
    left = msgspec.structs.replace(
        rules, public_scores=tuple(public), private_scores=tuple(private)
    )
    return left, n_public + n_private


def check_contest(rules: Contest, where: str) -> None:
    """Refuse a contest whose score could not be placed.

    Raises
    ------
    UsageError
        An unknown metric or direction, or a flat board.
    """
    if rules.metric not in METRICS:
        raise UsageError(f"{where}: metric {rules.metric!r} is not one of {', '.join(METRICS)}")
    if rules.direction not in ("lower", "higher"):
        raise UsageError(f"{where}: direction must be lower or higher")
    for name, board in (("public", rules.public_scores), ("private", rules.private_scores)):
        if len(set(board)) < 2:
            raise UsageError(
                f"{where}: the {name} board is flat or empty: no place can be told on it"
            )
