"""High bits of a linear congruence: the states are a lattice point near to what is shown.

With t_i = s_i - (a^(i-1) + ... + 1) c the states obey t_i = a^i t_0 mod m: the points of the lattice
of (1, a, a^2, ...) and m times the unit vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fpylll import CVP, LLL, IntegerMatrix

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_M = 2**64


def first_state(shown: Sequence[int], a: int, c: int, hidden: int) -> int:
    """Find the state behind the first number, of which `hidden` low bits are missing."""
    n = len(shown)
    offsets = [0]
    for _ in range(n - 1):
        offsets.append((a * offsets[-1] + c) % _M)
    rows = [[pow(a, i, _M) for i in range(n)]]
    rows += [[_M if i == j else 0 for j in range(n)] for i in range(1, n)]
    basis = IntegerMatrix.from_matrix(rows)
    LLL.reduction(basis)
    middle = 1 << (hidden - 1)
    target = [(y << hidden) + middle - o for y, o in zip(shown, offsets, strict=True)]
    state = int(CVP.closest_vector(basis, target)[0]) % _M
    again, check = state, []
    for _ in shown:
        check.append(again >> hidden)
        again = (a * again + c) % _M
    if check != list(shown):
        raise ValueError("the nearest lattice point does not give the numbers")
    return state


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    values = dict(re.findall(r"^([AC]|SHOWN) = (\d+)", public["main.py"].decode(), re.MULTILINE))
    a, c, bits = int(values["A"]), int(values["C"]), int(values["SHOWN"])
    lines = [line.split(" = ") for line in public["output.txt"].decode().splitlines()]
    numbers = [int(value) for name, value in lines if name == "number"]
    prize = bytes.fromhex(lines[-1][1])
    state, pad = first_state(numbers, a, c, 64 - bits), b""
    for i in range(len(numbers) + 240 // bits + 1):
        if i >= len(numbers):
            pad += (state >> (64 - bits)).to_bytes(bits // 8, "big")
        state = (a * state + c) % _M
    return bytes(x ^ y for x, y in zip(prize, pad, strict=False)).decode()
