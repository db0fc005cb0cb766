"""An oracle for the lowest bit of what a ciphertext decrypts to: one bit of m/n a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Ask for 2^i m for every i: as n is odd, the lowest bit is the i-th binary digit of m/n."""
    tube = connect()
    n, e, c = (int(tube.line().split(" = ")[1]) for _ in range(3))
    count = n.bit_length()
    tube.send_all([str(c * pow(2, i * e, n) % n) for i in range(1, count + 1)])
    digits = int("".join(tube.line() for _ in range(count)), 2)
    m = -(-digits * n >> count)  # digits / 2^count is less than m/n by less than 1/n
    return m.to_bytes((m.bit_length() + 7) // 8, "big").decode()
