"""Random numbers that any language can rebuild: a linear congruence and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Stream:
    """x <- (1103515245 x + 12345) mod 2^31 from x = draw + 1; a value is x >> 16, of 15 bits.

    Examples
    --------
    >>> stream = Stream(0)
    >>> stream.value()
    16838
    """

    def __init__(self, draw: int) -> None:
        self._x = draw + 1

    def value(self) -> int:
        """Give the next value, 0 to 32767."""
        self._x = (1103515245 * self._x + 12345) % 2**31
        return self._x >> 16

    def unit(self) -> float:
        """Give the next value as a share, 0 <= u < 1."""
        return self.value() / 32768

    def below(self, n: int) -> int:
        """Give the next value modulo n."""
        return self.value() % n

    def choice(self, values: Sequence[T]) -> T:
        """Give one of the values, by the next value modulo their number."""
        return values[self.below(len(values))]

    def normal(self) -> float:
        """Give the sum of twelve units less 6: mean 0, variance 1, nearly normal."""
        return sum(self.value() for _ in range(12)) / 32768 - 6
