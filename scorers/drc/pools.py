"""Best of N: what a way of choosing among candidates is worth, over pools of candidates drawn once.

Upstream draws 60 candidates and looks at pools of 10, 15 and 20, three of each, that do not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

SIZES = (10, 15, 20)
POOLS = 3


class PoolFigures(Struct, frozen=True, kw_only=True):
    """Means over the items for one size of pool, with the standard deviation over the pools.

    Attributes
    ----------
    n : int
        Candidates in a pool.
    oracle, compile, chosen, random, first : (float, float)
        Mean and population standard deviation of: a success is among them (pass@N); one compiles; the
        chosen one is a success (BoN); a candidate at random is; candidate 0 is.
    """

    n: int
    oracle: tuple[float, float]
    compile: tuple[float, float]
    chosen: tuple[float, float]
    random: tuple[float, float]
    first: tuple[float, float]


def best(scores: Sequence[float | None]) -> int | None:
    """Give the index of the highest score, the lowest of equal ones; None where one is missing.

    Examples
    --------
    >>> best([0.5, 1.0, 1.0]), best([1.0, None])
    (1, None)
    """
    known = [score for score in scores if score is not None]
    return scores.index(max(known)) if known and len(known) == len(scores) else None


def pool_figures(
    success: Sequence[Sequence[bool]],
    compiled: Sequence[Sequence[bool]],
    scores: Sequence[Sequence[float | None]],
    n: int,
    pools: int = POOLS,
) -> PoolFigures:
    """Give the figures of one size of pool.

    Parameters
    ----------
    success, compiled, scores : sequence of sequence, shape (items, candidates)
        Of each candidate of each item, in the order drawn; at least ``n * pools`` of them. Where a
        pool lacks a score nothing is chosen there, which counts as 0.
    n, pools : int

    Raises
    ------
    ValueError
        There are fewer candidates, or no items.

    Examples
    --------
    >>> planted = [i in (3, 12, 25) for i in range(60)]
    >>> pool_figures([planted], [planted], [[float(x) for x in planted]], 20).oracle[0]
    0.6666666666666666
    """
    if not success or any(len(row) < n * pools for row in (*success, *compiled, *scores)):
        raise ValueError(f"{pools} pools of {n} need {n * pools} candidates of every item")
    found: dict[str, list[float]] = {
        k: [] for k in ("oracle", "compile", "chosen", "random", "first")
    }
    for pool in range(pools):
        part = slice(pool * n, (pool + 1) * n)
        right = np.array([row[part] for row in success], dtype=float)
        runs = np.array([row[part] for row in compiled], dtype=float)
        picks = [best(row[part]) for row in scores]
        chosen = [0.0 if k is None else row[k] for row, k in zip(right, picks, strict=True)]
        found["oracle"].append(right.max(axis=1).mean())
        found["compile"].append(runs.max(axis=1).mean())
        found["chosen"].append(float(np.mean(chosen)))
        found["random"].append(right.mean())
        found["first"].append(right[:, 0].mean())
    spread = {name: (float(np.mean(v)), float(np.std(v))) for name, v in found.items()}
    return PoolFigures(n=n, **spread)
