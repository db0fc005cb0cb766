"""One message to e readers under the exponent e: Håstad's attack, the remainder theorem and a root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find m to the e itself, which is less than the product of the moduli."""
    lines = public["output.txt"].decode().splitlines()
    e, *rest = (int(line.split(" = ")[1]) for line in lines)
    moduli, ciphers = rest[::2], rest[1::2]
    product, power = prod(moduli), 0
    for n, c in zip(moduli, ciphers, strict=True):
        others = product // n
        power += c * others * pow(others, -1, n)
    root, exact = gmpy2.iroot(gmpy2.mpz(power % product), e)
    if not exact:
        raise ValueError("the message is too long for so few readers")
    text = int(root).to_bytes((int(root).bit_length() + 7) // 8, "big").decode()
    return text[: text.index("}") + 1]
