"""RSA with a small private exponent: Wiener's continued fraction (IEEE Trans. Inf. Th. 36, 1990)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the private exponent and decrypt."""
    lines = public["output.txt"].decode().splitlines()
    n, e, c = (int(line.split(" = ")[1]) for line in lines)
    d, _, _ = _attack(e, n)
    m = pow(c, d, n)
    return m.to_bytes((m.bit_length() + 7) // 8, "big").decode()


def _attack(e: int, n: int) -> tuple[int, int, int]:
    """Give d, p and q, p < q: k/d with ed - 1 = k φ(n) is a convergent of e/n."""
    for k, d in _convergents(e, n):
        if k == 0 or (e * d - 1) % k:
            continue
        total = n + 1 - (e * d - 1) // k  # p + q
        square = total * total - 4 * n
        if square >= 0 and gmpy2.is_square(square):
            root = int(gmpy2.isqrt(square))
            return d, (total - root) // 2, (total + root) // 2
    raise ValueError("the private exponent is not small")


def _convergents(a: int, b: int) -> Iterator[tuple[int, int]]:
    h0, h1, k0, k1 = 0, 1, 1, 0
    while b:
        term = a // b
        a, b = b, a % b
        h0, h1 = h1, term * h1 + h0
        k0, k1 = k1, term * k1 + k0
        yield h1, k1
