"""RSA with e = 3 and a short message: the cube exceeds the modulus not at all, or a few times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_WRAPS = 2**17


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Take the root of c + kn for every k until it is whole."""
    lines = public["output.txt"].decode().splitlines()
    n, e, c = (int(line.split(" = ")[1]) for line in lines)
    power = gmpy2.mpz(c)
    for _ in range(_WRAPS):
        root, exact = gmpy2.iroot(power, e)
        if exact:
            text = int(root).to_bytes((int(root).bit_length() + 7) // 8, "big").decode()
            return text[text.index("flag{") : text.index("}") + 1]
        power += n
    raise ValueError("no power of the message was found")
