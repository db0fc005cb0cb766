"""Items sorted into clusters: what every module here needs before it can count units."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Clusters = Sequence[Hashable | None]


def cluster_codes(clusters: Clusters | None, n: int) -> Codes:
    """Number the clusters of n items.

    Parameters
    ----------
    clusters : sequence, optional
        The cluster of each item; None (for one item or for all) stands for an item by itself.
    n : int
        Number of items.

    Returns
    -------
    array of int, shape (n,)
        0 ... G - 1 in the order in which clusters appear.

    Raises
    ------
    ValueError
        When there are not n clusters.

    Examples
    --------
    >>> cluster_codes(["a", "b", "a", None, None], 5).tolist()
    [0, 1, 0, 2, 3]
    """
    if clusters is None:
        return np.arange(n)
    if len(clusters) != n:
        raise ValueError(f"{n} items, but {len(clusters)} clusters")
    numbers: dict[Hashable, int] = {}
    # A key no caller can have: None is a cluster of its own each time.
    keys = ((_Alone, i) if c is None else c for i, c in enumerate(clusters))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


class _Alone:
    """Marks the key of an item without a cluster."""


def dense_codes(codes: Codes) -> Codes:
    """Number again after items were left out, so that no number is without an item."""
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)


def check_level(level: float) -> None:
    """Refuse a coverage that is not between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level = {level} is not between 0 and 1")


def check_finite_or_nan(values: Floats) -> None:
    """Refuse infinite scores; NaN stands for a missing one and is let through."""
    if np.isinf(values).any():
        raise ValueError("a score is not finite")
