"""What points are given for: a criterion, and how the points of a rubric add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct


class Criterion(Struct, frozen=True, kw_only=True):
    """One line of a rubric.

    Attributes
    ----------
    id : str
        Its name in a grading and in the metrics.
    points : int
        The most it can bring.
    criterion : str
        What must be there, and what brings a part of the points.
    fatal : bool
        Without a point here the whole answer has none.
    """

    id: str
    points: int
    criterion: str
    fatal: bool = False


def total_of(points: Mapping[str, int], criteria: Iterable[Criterion]) -> int:
    """Add points up; a fatal criterion without a point takes all others with it.

    Examples
    --------
    >>> rubric = [Criterion(id="a", points=4, criterion="A.", fatal=True),
    ...           Criterion(id="b", points=2, criterion="B.")]
    >>> total_of({"a": 1, "b": 2}, rubric), total_of({"a": 0, "b": 2}, rubric)
    (3, 0)
    """
    criteria = tuple(criteria)
    if any(one.fatal and points[one.id] == 0 for one in criteria):
        return 0
    return sum(points[one.id] for one in criteria)
