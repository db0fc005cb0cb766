"""Linear congruence x -> a x + c mod m: differences of its numbers are a geometric sequence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING

from sympy import primerange

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_BITS = 128


def parameters(numbers: Sequence[int], m: int | None = None) -> tuple[int, int, int]:
    """Find (a, c, m) from consecutive numbers; three are enough where m is known."""
    steps = [y - x for x, y in pairwise(numbers)]
    if m is None:
        m = 0
        for x, y, z in zip(steps, steps[1:], steps[2:], strict=False):
            m = gcd(m, x * z - y * y)
        # The gcd is a multiple of m, which is known to be a prime of 128 bits.
        for p in primerange(2, 5000):
            while m.bit_length() > _BITS and m % p == 0:
                m //= p
    a = steps[1] * pow(steps[0], -1, m) % m
    return a, (numbers[1] - a * numbers[0]) % m, m


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    known = re.search(r"^M = (\d+)", public["main.py"].decode(), re.MULTILINE)
    m = int(known[1]) if known else None
    if "output.txt" not in public:
        tube = connect()
        numbers = [int(tube.ask("next")) for _ in range(6 if m else 13)]
        a, c, m = parameters(numbers, m)
        return tube.ask(f"guess {(a * numbers[-1] + c) % m}")
    lines = [line.split(" = ") for line in public["output.txt"].decode().splitlines()]
    numbers = [int(value) for name, value in lines if name == "number"]
    a, c, m = parameters(numbers, m)
    first = (a * numbers[-1] + c) % m
    second = (a * first + c) % m
    pad = first.to_bytes(16, "big") + second.to_bytes(16, "big")
    prize = bytes.fromhex(lines[-1][1])
    return bytes(x ^ y for x, y in zip(prize, pad, strict=False)).decode()
