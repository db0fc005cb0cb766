"""Submissions to a prediction contest: checked, measured against the truth, placed on a board."""

from __future__ import annotations

import csv
import io
import math
import zlib
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Output, Sample, Score
from scorers.board import Direction, place

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
    """

    metric: str
    direction: Direction
    id_column: str
    target_column: str
    noise_floor: float
    public_scores: tuple[float, ...]
    private_scores: tuple[float, ...]


def contest() -> Scorer:
    """Make a scorer for a submission, the text of its CSV file.

    Reads from the sample: ``target[0]``, the truth as CSV; ``metadata["contest"]``, the fields of
    `Contest`. The value is the percentile on the private board divided by 100. An invalid
    submission is worth 0, ``valid`` says how many are not.

    Returns
    -------
    Scorer
        Metrics, for ``public`` and ``private`` each: ``score``, ``percentile`` (0 to 100), ``rank``,
        ``above_median``, ``medal``, ``gold``, and ``to_floor``: (score - median) / (floor - median).
    """

    def score(sample: Sample, output: Output) -> Score:
        if not output.text.strip():
            return Score.no_answer("no submission was written")
        rules = Contest(**sample.metadata["contest"])
        truth = read_column(sample.target[0], rules.id_column, rules.target_column)
        try:
            given = read_submission(output.text, rules, truth)
            measured = {
                name: METRICS[rules.metric](*_columns(part, truth, given))
                for name, part in parts(truth).items()
            }
        except InvalidError as error:
            return Score(
                value=0.0, passed=False, reason=str(error.args[0]),
                explanation=f"invalid: {error.args[1]}", metrics={"valid": 0.0},
            )  # fmt: skip
        metrics = {"valid": 1.0}
        for name, value in measured.items():
            board = rules.public_scores if name == "public" else rules.private_scores
            metrics |= _placed(name, value, board, rules)
        return Score(
            value=metrics["percentile_private"] / 100,
            passed=bool(metrics["above_median_private"]),
            explanation=f"{rules.metric} {measured['public']:.6g} public, "
            f"{measured['private']:.6g} private; rank {metrics['rank_private']:.0f} of "
            f"{len(rules.private_scores)} private",
            metrics=metrics,
        )

    return score


def _placed(name: str, value: float, board: Sequence[float], rules: Contest) -> dict[str, float]:
    found = place(value, board, rules.direction)
    ordered = sorted(board)
    n = len(ordered)
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return {
        f"score_{name}": value,
        f"percentile_{name}": found.percentile,
        f"rank_{name}": float(found.rank),
        f"above_median_{name}": float(found.above_median),
        f"medal_{name}": float(found.medal is not None),
        f"gold_{name}": float(found.medal == "gold"),
        f"to_floor_{name}": (value - median) / (rules.noise_floor - median),
    }


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


def _columns(
    ids: Sequence[str], truth: Mapping[str, float], given: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    return [truth[one] for one in ids], [given[one] for one in ids]


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
