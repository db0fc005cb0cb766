"""Shift and affine cipher: all 312 keys, the likeliest text first, until one opens the flag."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

# Letters of English from the commonest to the rarest.
_ORDER = "etaoinshrdlucmfwygpbvkxqjz"
_FLAG = re.compile(rb"flag\{[0-9a-f]{24}\}")


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    lines = public["output.txt"].decode().splitlines()
    output = dict(line.split(" = ") for line in lines)
    sealed = bytes.fromhex(output["sealed"])
    texts = []
    for a in (a for a in range(26) if gcd(a, 26) == 1):
        inverse = pow(a, -1, 26)
        for b in range(26):
            numbers = [(ord(c) - 97 - b) * inverse % 26 for c in output["ciphertext"]]
            texts.append("".join(chr(97 + n) for n in numbers))
    for text in sorted(texts, key=lambda text: sum(map(_ORDER.index, text))):
        pad = hashlib.shake_256(text.encode()).digest(len(sealed))
        opened = bytes(s ^ p for s, p in zip(sealed, pad, strict=True))
        if _FLAG.fullmatch(opened):
            return opened.decode()
    raise ValueError("no key opens the flag")
