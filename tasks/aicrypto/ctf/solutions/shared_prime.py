"""Many RSA keys of which two have a prime in common: greatest common divisors by a product tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the keys that are factored, and among their messages the one that is a flag."""
    lines = public["output.txt"].decode().splitlines()
    e, *rest = (int(line.split(" = ")[1]) for line in lines)
    moduli, ciphers = rest[::2], rest[1::2]
    for n, c, p in zip(moduli, ciphers, _common(moduli), strict=True):
        if p == 1:
            continue
        m = pow(c, pow(e, -1, (p - 1) * (n // p - 1)), n)
        text = m.to_bytes((m.bit_length() + 7) // 8, "big").decode()
        if text.startswith("flag{"):
            return text
    raise ValueError("no two keys have a prime in common")


def _common(moduli: Sequence[int]) -> list[int]:
    """Give each modulus' greatest common divisor with the product of the others.

    Bernstein's batch method: the product modulo n², divided by n, is the others' product modulo n.
    """
    levels = [[gmpy2.mpz(n) for n in moduli]]
    while len(levels[-1]) > 1:
        row = levels[-1]
        levels.append([row[i] * row[i + 1] for i in range(0, len(row) - 1, 2)])
        if len(row) % 2:
            levels[-1].append(row[-1])
    rests = levels.pop()
    while levels:
        rests = [rests[i // 2] % (n * n) for i, n in enumerate(levels.pop())]
    return [int(gmpy2.gcd(r // n, n)) for r, n in zip(rests, moduli, strict=True)]
