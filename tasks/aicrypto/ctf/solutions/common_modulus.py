"""One message under one modulus and two exponents: their greatest common divisor is an exponent too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Combine the two as Bézout says; the power that is left is shorter than the modulus."""
    lines = public["output.txt"].decode().splitlines()
    n, e1, c1, e2, c2 = (int(line.split(" = ")[1]) for line in lines)
    divisor, s, t = (int(x) for x in gmpy2.gcdext(e1, e2))
    power = pow(c1, s, n) * pow(c2, t, n) % n
    root, exact = gmpy2.iroot(gmpy2.mpz(power), divisor)
    if not exact:
        raise ValueError("the message's power is longer than the modulus")
    return int(root).to_bytes((int(root).bit_length() + 7) // 8, "big").decode()
