"""Clouds of points: Chamfer and Hausdorff distance, with and without a search over right angles."""

from __future__ import annotations

from itertools import product
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

Points: TypeAlias = npt.NDArray[np.float64]

_SCREENED, _MEASURED = 512, 2
N_POINTS = 8192
"""Points of a cloud, as upstream takes them."""
Norm = Literal["radius", "cube", "none"]


class Distance(NamedTuple):
    """Chamfer and Hausdorff distance of two clouds, in the units of the clouds (squared for `cd`)."""

    cd: float
    hd: float


def normalised(points: Points, norm: Norm = "radius") -> Points:
    """Move and scale a cloud to a standard size.

    Parameters
    ----------
    points : array, shape (n, 3)
    norm : {"radius", "cube", "none"}
        ``radius``: centred on its mean, its largest distance from there is 1 (Op-CAD). ``cube``: into
        the unit cube around 0.5, the longest side of its box is 1 (ProCAD). ``none``: as it is.

    Returns
    -------
    array, shape (n, 3)

    Raises
    ------
    ValueError
        A cloud without extent, which has no scale.
    """
    if norm == "none":
        return points
    if norm == "cube":
        low, high = points.min(axis=0), points.max(axis=0)
        centre, size = (low + high) / 2, float((high - low).max())
    else:
        centre = points.mean(axis=0)
        size = float(np.linalg.norm(points - centre, axis=1).max())
    if not 0 < size < np.inf:
        raise ValueError("a cloud of one place has no scale")
    moved: Points = (points - centre) / size
    return moved + 0.5 if norm == "cube" else moved


def distance(a: Points, b: Points, *, halved: bool = False) -> Distance:
    """Measure how far two clouds are apart.

    CD = mean of the squared distances from each point of `a` to the nearest of `b`, plus the same the
    other way round (Op-CAD); `halved` gives the mean of the two (ProCAD). HD = the larger of the two
    largest distances.

    Parameters
    ----------
    a, b : array, shape (n, 3) and (m, 3)

    Examples
    --------
    >>> a = np.array([[0.0, 0, 0], [1, 0, 0]]); b = np.array([[0.0, 0, 0], [1, 1, 0]])
    >>> distance(a, b)
    Distance(cd=1.0, hd=1.0)
    >>> distance(a, b, halved=True).cd
    0.5
    """
    there = cKDTree(b).query(a)[0]
    back = cKDTree(a).query(b)[0]
    cd = float((there**2).mean() + (back**2).mean())
    return Distance(cd / 2 if halved else cd, float(max(there.max(), back.max())))


def rotations() -> list[npt.NDArray[np.float64]]:
    """Give the 24 turns that take a cube to itself, the identity first.

    Upstream tries the 64 triples of Euler angles out of 0, 90, 180 and 270 degrees; these are the
    same turns, each once.

    Examples
    --------
    >>> len(rotations())
    24
    """
    found: list[npt.NDArray[np.float64]] = []
    for x, y, z in product(range(4), repeat=3):
        turn = _turn(2, z) @ _turn(1, y) @ _turn(0, x)
        if not any(np.array_equal(turn, known) for known in found):
            found.append(turn)
    return found


def _turn(axis: int, quarters: int) -> npt.NDArray[np.float64]:
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters]
    i, j = (axis + 1) % 3, (axis + 2) % 3
    made = np.eye(3)
    made[i, i] = made[j, j] = cos
    made[i, j], made[j, i] = -sin, sin
    return made


def best_distance(a: Points, b: Points) -> Distance:
    """Measure two clouds after the turn of `a` by right angles that makes CD + HD smallest.

    All 24 turns are tried on 512 points of either cloud; the two that look best, and no turn, are then
    measured whole. A part with symmetries has several turns that differ by the clouds' noise alone.

    Parameters
    ----------
    a, b : array, shape (n, 3) and (m, 3)
        Normalised, so that both are centred.
    """
    trees = cKDTree(a), cKDTree(b)
    few = a[:: max(1, len(a) // _SCREENED)], b[:: max(1, len(b) // _SCREENED)]
    turns = rotations()
    guesses = [sum(_turned(few[0], few[1], trees, turn)) for turn in turns]
    likely = sorted(range(1, len(turns)), key=guesses.__getitem__)[:_MEASURED]
    return min((_turned(a, b, trees, turns[k]) for k in (0, *likely)), key=sum)


def _turned(
    a: Points, b: Points, trees: tuple[cKDTree, cKDTree], turn: npt.NDArray[np.float64]
) -> Distance:
    """Measure points of two clouds from the other's tree: turning `b` back is turning `a`."""
    there, back = trees[1].query(a @ turn.T)[0], trees[0].query(b @ turn)[0]
    cd = float((there**2).mean() + (back**2).mean())
    return Distance(cd, float(max(there.max(), back.max())))
