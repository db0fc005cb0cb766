"""MT19937: undo the tempering, fill the gaps by the recurrence, clone the generator.

The recurrence joins four words, x[k+624] = x[k+397] ^ f(top bit of x[k], rest of x[k+1]). Where one
word of the two outer ones is missing, the other three give it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_N, _MIDDLE = 624, 397
_TOP, _LOW = 0x80000000, 0x7FFFFFFF


def untemper(output: int) -> int:
    """Give the word of the state from which an output was made."""

    def undo(value: int, shift: int, mask: int) -> int:
        """Solve value = x ^ (x shifted & mask); a negative shift is one to the right."""
        x = value
        # Every round makes at least |shift| more bits right.
        for _ in range(32 // abs(shift)):
            moved = x << shift if shift > 0 else x >> -shift
            x = value ^ (moved & mask)
        return x

    y = undo(output, -18, 0xFFFFFFFF)
    y = undo(y, 15, 0xEFC60000)
    y = undo(y, 7, 0x9D2C5680)
    return undo(y, -11, 0xFFFFFFFF)


def _fill(words: dict[int, int]) -> None:
    """Find missing words, until no relation gives one more."""
    more = True
    while more:
        more = False
        for k in range(max(words) - _N + 1):
            high, low = words.get(k), words.get(k + 1)
            middle, last = words.get(k + _MIDDLE), words.get(k + _N)
            if high is None or low is None or (middle is None) == (last is None):
                continue
            y = (high & _TOP) | (low & _LOW)
            f = (y >> 1) ^ (0x9908B0DF if y & 1 else 0)
            if middle is None and last is not None:
                words[k + _MIDDLE] = last ^ f
            elif middle is not None:
                words[k + _N] = middle ^ f
            more = True


def following(outputs: Mapping[int, int], position: int) -> random.Random:
    """Give a generator whose next 32 bits are the output number `position`.

    `outputs` are those known, by number. There must be 624 words in a row among those that follow.
    """
    words = {at: untemper(output) for at, output in outputs.items()}
    _fill(words)
    row, start = 0, None
    for at in range(position):
        row = row + 1 if at in words else 0
        if row >= _N:
            start = at - _N + 1
    if start is None:
        raise ValueError("too few words of the state are known")
    clone = random.Random()
    state = tuple(words[at] for at in range(start, start + _N))
    clone.setstate((3, (*state, _N), None))
    for _ in range(position - start - _N):
        clone.getrandbits(32)
    return clone


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    gaps = b"rng.random()" in public["main.py"]

    def place(ticket: int) -> int:
        """Give the number of the output that a ticket shows."""
        return ticket // 3 * 5 + ticket % 3 if gaps else ticket

    count = 900 if gaps else 624
    if "output.txt" not in public:
        tube = connect()
        outputs = {place(i): int(tube.ask("next")) for i in range(count)}
        return tube.ask(f"guess {following(outputs, place(count)).getrandbits(32)}")
    lines = [line.split(" = ") for line in public["output.txt"].decode().splitlines()]
    outputs = {place(i): int(value) for i, (_, value) in enumerate(lines[:-1])}
    clone = following(outputs, place(count))
    coming = [clone.getrandbits(32) for _ in range(16)]
    shown = [coming[place(i) - place(count)] for i in range(count, count + 8)]
    pad = b"".join(number.to_bytes(4, "big") for number in shown)
    prize = bytes.fromhex(lines[-1][1])
    return bytes(x ^ y for x, y in zip(prize, pad, strict=False)).decode()
