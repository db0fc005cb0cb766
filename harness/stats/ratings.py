"""How far judges agree who give points: models among each other, their repeats, and people.

Correlation tells whether two raters order the answers alike, the mean absolute difference how far
apart their points are, Krippendorff's alpha (interval scale) both at once, for any number of raters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from harness.stats.agreement import correlation, krippendorff_alpha

Floats = NDArray[np.float64]
Ratings = Sequence[float | None]


class RaterAgreement(Struct, frozen=True, kw_only=True):
    """How far two raters agree on the answers that both have rated.

    Attributes
    ----------
    n : int
        Number of answers.
    pearson, spearman : float or None
        None where not defined: fewer than two answers, or a rater whose ratings are all equal.
    mean_abs_difference : float or None
        In the unit of the ratings; None without an answer.
    alpha : float or None
        Krippendorff's, on the interval scale; None where not defined.
    """

    n: int
    pearson: float | None
    spearman: float | None
    mean_abs_difference: float | None
    alpha: float | None


def rater_agreement(a: Ratings, b: Ratings) -> RaterAgreement:
    """Compare two raters, answer by answer.

    Parameters
    ----------
    a, b : sequence of float or None, shape (n_answers,)
        What each gave; None or NaN where it gave nothing. Only answers that both rated count.
        Points of items with unlike totals belong divided by these first.

    Raises
    ------
    ValueError
        Unequal lengths, or an infinite rating.

    Examples
    --------
    >>> both = rater_agreement([1, 2, 3, 4, None], [2, 4, 6, 9, 1])
    >>> both.n, both.spearman, both.mean_abs_difference
    (4, 1.0, 2.75)
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} ratings of one rater, but {len(b)} of the other")
    table = _table([a, b])
    x, y = table[:, ~np.isnan(table).any(axis=0)]
    return RaterAgreement(
        n=len(x),
        pearson=correlation(x.tolist(), y.tolist(), "pearson"),
        spearman=correlation(x.tolist(), y.tolist(), "spearman"),
        mean_abs_difference=float(np.abs(x - y).mean()) if len(x) else None,
        alpha=krippendorff_alpha(np.array([x, y]), "interval"),
    )


def pairwise_agreement(ratings: Sequence[Ratings]) -> dict[tuple[int, int], RaterAgreement]:
    """Compare each rater with each other one.

    Parameters
    ----------
    ratings : sequence, shape (n_raters, n_answers)
        As for `rater_agreement`; repeats of one judge are raters of their own.

    Returns
    -------
    dict
        By the two raters' positions, the lower one first.
    """
    n = len(ratings)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    return {(i, j): rater_agreement(ratings[i], ratings[j]) for i, j in pairs}


def alpha_of_all(ratings: Sequence[Ratings]) -> float | None:
    """Krippendorff's alpha of all raters at once, on the interval scale; see `krippendorff_alpha`.

    Parameters
    ----------
    ratings : sequence, shape (n_raters, n_answers)
        None or NaN where a rater gave nothing.
    """
    return krippendorff_alpha(_table(ratings), "interval")


class _Grading(Struct):
    judge: str
    repeat: int
    total: int | None = None


class _Told(Struct):
    possible: int
    gradings: list[_Grading]


def judges_ratings(explanations: Iterable[str | None]) -> dict[tuple[str, int], list[float | None]]:
    """Read from scores' explanations what each judge gave, repeat by repeat.

    Parameters
    ----------
    explanations : iterable of str
        As the scorer ``rubric`` writes them, JSON with `possible` and `gradings`; what is something
        else (an answer without a proof, a person's verdict) is passed over.

    Returns
    -------
    dict
        By judge's SPEC and repeat: points / possible of each answer, in the order given; None where
        the judge could not be read or was not asked. Ready for `pairwise_agreement`.

    Examples
    --------
    >>> told = '{"possible": 8, "gradings": [{"judge": "hf:tiny", "repeat": 0, "total": 6}]}'
    >>> judges_ratings([told])
    {('hf:tiny', 0): [0.75]}
    """
    answers = [told for text in explanations if text and (told := _told(text)) is not None]
    ratings: dict[tuple[str, int], list[float | None]] = {}
    for at, told in enumerate(answers):
        for one in told.gradings:
            row = ratings.setdefault((one.judge, one.repeat), [None] * len(answers))
            row[at] = None if one.total is None else one.total / told.possible
    return ratings


def _told(text: str) -> _Told | None:
    try:
        return msgspec.json.decode(text, type=_Told)
    except msgspec.DecodeError:
        return None


def _table(ratings: Sequence[Ratings]) -> Floats:
    table = np.array(ratings, dtype=np.float64)
    if np.isinf(table).any():
        raise ValueError("a rating is not finite")
    return table
