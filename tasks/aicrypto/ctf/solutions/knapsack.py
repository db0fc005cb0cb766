"""A knapsack of low density: the lattice of Coster, Joux, LaMacchia, Odlyzko, Schnorr and Stern.

Computational Complexity 2, 1992.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Unpack every sum by itself and put the bits together."""
    lines = public["output.txt"].decode().splitlines()
    weights, sums = (json.loads(line.split(" = ")[1]) for line in lines)
    bits = "".join(_unpack(weights, total) for total in sums)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").decode()


def _unpack(weights: Sequence[int], total: int) -> str:
    """Give which weights make up the total, as a text of 0 and 1."""
    from fpylll import BKZ, LLL, IntegerMatrix

    # With bits x, the vector 2x - 1, 0 is in the lattice: all its entries are 1 or -1, then 0.
    n, heavy = len(weights), 1 << 20
    rows = [[2 * (i == j) for j in range(n)] + [heavy * w] for i, w in enumerate(weights)]
    rows.append([1] * n + [heavy * total])
    basis = IntegerMatrix.from_matrix(rows)
    LLL.reduction(basis)
    for block in (0, 10, 20, 30):
        if block:
            BKZ.reduction(basis, BKZ.Param(block))
        for row in basis:
            for sign in (1, -1):
                bits = [(1 + sign * row[i]) // 2 for i in range(n)]
                if set(bits) <= {0, 1} and _sum(weights, bits) == total:
                    return "".join(map(str, bits))
    raise ValueError("no short vector is a solution")


def _sum(weights: Sequence[int], bits: Sequence[int]) -> int:
    return sum(w * bit for w, bit in zip(weights, bits, strict=True))
