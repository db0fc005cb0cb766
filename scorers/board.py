"""Where a score would stand on a contest's leaderboard: rank, percentile, median, medal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Direction = Literal["lower", "higher"]
Medal = Literal["gold", "silver", "bronze"]


class Place(Struct, frozen=True):
    """A place on a board.

    Attributes
    ----------
    rank : int
        1 + the number of scores that are strictly better: equals share the best place.
    n : int
        Scores on the board.
    percentile : float
        100 (worse + equal / 2) / n, from 0 to 100.
    above_median : bool
        Strictly better than the board's median.
    medal : str or None
        ``gold``, ``silver``, ``bronze``.
    """

    rank: int
    n: int
    percentile: float
    above_median: bool
    medal: Medal | None


def place(score: float, board: Sequence[float], direction: Direction) -> Place:
    """Find the place of a score on a board.

    Parameters
    ----------
    score : float
    board : sequence of float
        In any order.
    direction : {"lower", "higher"}
        Which scores are better. It has to be said: on a flat board, or one whose best entries are
        cheated, it cannot be seen.

    Raises
    ------
    ValueError
        For an empty board, one whose scores are all equal, or a score that is not finite.

    Examples
    --------
    >>> place(0.2, [0.1, 0.2, 0.2, 0.3, 0.5], "lower")
    Place(rank=2, n=5, percentile=60.0, above_median=False, medal='silver')
    """
    if not math.isfinite(score) or not all(map(math.isfinite, board)):
        raise ValueError("a score is not finite")
    if not board or min(board) == max(board):
        raise ValueError("a board without two different scores says nothing of a place on it")
    sign = 1 if direction == "higher" else -1
    better = sum(sign * other > sign * score for other in board)
    equal = sum(other == score for other in board)
    n = len(board)
    return Place(
        rank=better + 1,
        n=n,
        percentile=100 * (n - better - equal / 2) / n,
        above_median=sign * score > sign * statistics.median(board),
        medal=medal(better + 1, n + 1),
    )


def to_floor(score: float, board: Sequence[float], floor: float) -> float | None:
    """Give the share of the way from a board's median to the best score that can be had honestly.

    (score - median) / (floor - median); None where the median is the floor.

    Examples
    --------
    >>> to_floor(2.0, [1.0, 3.0, 5.0], 1.0), to_floor(2.0, [1.0, 3.0, 5.0], 3.0)
    (0.5, None)
    """
    median = statistics.median(board)
    return None if floor == median else (score - median) / (floor - median)


def medal(rank: int, n: int) -> Medal | None:
    """Give the medal of a rank among `n` entries, by Kaggle's rules.

    Up to 99 entries gold goes to 10 %, silver to 20 %, bronze to 40 %; up to 249 to 10, 20 % and
    40 %; up to 999 to 10 + 0.2 %, 50 and 100; above to 10 + 0.2 %, 5 % and 10 %; shares are rounded
    up.

    Examples
    --------
    >>> [medal(rank, 98) for rank in (10, 20, 40, 41)]
    ['gold', 'silver', 'bronze', None]
    """
    if n < 100:
        ends = (_share(n, 10), _share(n, 20), _share(n, 40))
    elif n < 250:
        ends = (10, _share(n, 20), _share(n, 40))
    elif n < 1000:
        ends = (10 + _share(n, 0.2), 50, 100)
    else:
        ends = (10 + _share(n, 0.2), _share(n, 5), _share(n, 10))
    kinds: tuple[Medal, ...] = ("gold", "silver", "bronze")
    return next((kind for kind, end in zip(kinds, ends, strict=True) if rank <= end), None)


def _share(n: int, percent: float) -> int:
    # In tenths of a percent, so that nothing is rounded on the way up.
    return -(-n * round(10 * percent) // 1000)


def without_perfect(board: Sequence[float], perfect: float) -> tuple[list[float], int]:
    """Leave out scores that nobody reaches without the answers; give how many there were.

    Examples
    --------
    >>> without_perfect([1.0, 1.0, 0.8], 1.0)
    ([0.8], 2)
    """
    kept = [score for score in board if score != perfect]
    return kept, len(board) - len(kept)
