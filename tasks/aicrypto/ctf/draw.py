"""The random numbers of a challenge: one integer fixes every choice, on every machine and version."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

from scorers.flag import flag_of

T = TypeVar("T")

__all__ = ["Draw", "flag_of"]


class Draw:
    """Random numbers of one instance of a challenge.

    Only `getrandbits` of a generator seeded with an integer is used: Python keeps that sequence the
    same in every version, `shuffle`, `choice` and `randrange` it may change.

    Parameters
    ----------
    *parts : object
        What names the instance (item, draw, repeat, attempt at it); hashed together.

    Examples
    --------
    >>> Draw("own-ctf-wiener-1", 0).bits(64) == Draw("own-ctf-wiener-1", 0).bits(64)
    True
    """

    def __init__(self, *parts: object) -> None:
        digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))

    def bits(self, n: int) -> int:
        """Give an even choice among the integers of at most `n` bits."""
        return self._random.getrandbits(n) if n else 0

    def below(self, n: int) -> int:
        """Give an even choice from 0 to n - 1, by rejection and so without bias."""
        bits = n.bit_length()
        while (value := self._random.getrandbits(bits)) >= n:
            pass
        return value

    def between(self, low: int, high: int) -> int:
        """Give an even choice from low to high, both included."""
        return low + self.below(high - low + 1)

    def data(self, n: int) -> bytes:
        """Give `n` bytes."""
        return self.bits(8 * n).to_bytes(n, "big")

    def choice(self, values: Sequence[T]) -> T:
        """Give one of the values."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Give the values in random order (Fisher-Yates)."""
        out = list(values)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out

    def prime(self, bits: int) -> int:
        """Give a prime of exactly `bits` bits, its two highest bits set.

        So the product of two such primes has exactly twice the bits. The first prime from a random
        odd number on; prime by 25 rounds of Miller and Rabin.
        """
        import gmpy2

        while True:
            p = self.bits(bits) | 1 | (3 << (bits - 2))
            while not gmpy2.is_prime(p):
                p += 2
            if p.bit_length() == bits:
                return p
