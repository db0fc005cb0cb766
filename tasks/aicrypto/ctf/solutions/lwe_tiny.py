"""Learning with errors in few dimensions: Kannan's embedding, then the secret from exact equations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_ERROR = 3


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the errors as a short vector, subtract them, solve, and open the box."""
    lines = public["output.txt"].decode().splitlines()
    q, a, b, box = (line.split(" = ")[1] for line in lines)
    secret = _secret(int(q), json.loads(a), json.loads(b))
    mask = sha256(str(secret).encode()).digest()
    return bytes(x ^ y for x, y in zip(bytes.fromhex(box), mask, strict=False)).decode()


def _secret(q: int, a: Sequence[Sequence[int]], b: Sequence[int]) -> list[int]:
    for errors in _short_vectors(q, a, b):
        exact = [(x - error) % q for x, error in zip(b, errors, strict=True)]
        secret = _solve(q, [[*row, x] for row, x in zip(a, exact, strict=True)])
        if secret is not None:
            return secret
    raise ValueError("no short vector is the errors")


def _short_vectors(q: int, a: Sequence[Sequence[int]], b: Sequence[int]) -> Iterator[list[int]]:
    """Give vectors with entries as small as the errors, of the lattice of A's columns, q and b."""
    from fpylll import BKZ, LLL, IntegerMatrix

    rows = len(b)
    vectors = [[*column, 0] for column in zip(*a, strict=True)]
    vectors += [[q * (i == j) for j in range(rows + 1)] for i in range(rows)]
    vectors.append([*b, 1])
    basis = IntegerMatrix.from_matrix(vectors)
    LLL.reduction(basis)  # the vectors depend on each other: the first ones become 0
    for block in (0, 20, 30):
        if block:
            BKZ.reduction(basis, BKZ.Param(block))
        for row in basis:
            if abs(row[rows]) == 1 and all(abs(row[i]) <= _ERROR for i in range(rows)):
                yield [row[i] * row[rows] for i in range(rows)]


def _solve(q: int, table: list[list[int]]) -> list[int] | None:
    """Solve linear equations modulo a prime, each given as its factors and its right side."""
    n = len(table[0]) - 1
    for column in range(n):
        pivot = next((i for i in range(column, len(table)) if table[i][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        inverse = pow(table[column][column], -1, q)
        table[column] = [x * inverse % q for x in table[column]]
        for i, row in enumerate(table):
            if i != column and row[column]:
                table[i] = [
                    (x - row[column] * y) % q for x, y in zip(row, table[column], strict=True)
                ]
    if any(row[n] for row in table[n:]):
        return None
    return [row[n] for row in table[:n]]
