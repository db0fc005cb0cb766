"""RSA with primes p and q where ap and bq are near each other for small a and b."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import gcd
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_STEPS = 2**15
_LARGEST = 128


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Factor n by Fermat's method and decrypt."""
    lines = public["output.txt"].decode().splitlines()
    n, e, c = (int(line.split(" = ")[1]) for line in lines)
    p = _factor(n)
    m = pow(c, pow(e, -1, (p - 1) * (n // p - 1)), n)
    return m.to_bytes((m.bit_length() + 7) // 8, "big").decode()


def _factor(n: int) -> int:
    for a, b, steps in _tries():
        # With x = ap + bq and y = ap - bq: x² - y² = 4abn, and x is hardly more than its root.
        product = gmpy2.mpz(4 * a * b * n)
        x = gmpy2.isqrt(product - 1) + 1
        for _ in range(steps):
            y, rest = gmpy2.isqrt_rem(x * x - product)
            if rest == 0 and 1 < (p := gcd(int(x + y), n)) < n:
                return p
            x += 1
    raise ValueError("no factor was found")


def _tries() -> Iterator[tuple[int, int, int]]:
    yield 1, 1, _STEPS
    for b in range(2, _LARGEST):
        for a in range(1, b):
            if gcd(a, b) == 1:
                yield a, b, 8
