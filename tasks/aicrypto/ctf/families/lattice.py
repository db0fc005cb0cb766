"""Short vectors: a knapsack of low density, and learning with errors in few dimensions."""

from __future__ import annotations

import math
from hashlib import sha256
from string import Template

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families.base import Family, Kind, Made

_FOLDER = "06-Lattice"

_KNAPSACK = Template('''\
"""The knapsack of Merkle and Hellman: easy to unpack for whoever has r and q."""

from math import gcd
from secrets import randbelow, randbits

from secret import FLAG

N = $n
BITS = $bits


def new_weights():
    """Give the public weights; each secret one is more than all before it together."""
    secret, total = [], 0
    for _ in range(N):
        secret.append(total + 1 + randbits(BITS - N))
        total += secret[-1]
    q = total + 1 + randbelow(total)
    r = 0
    while gcd(r, q) != 1:
        r = 2 + randbelow(q - 2)
    return [r * weight % q for weight in secret]


weights = new_weights()
bits = "".join(f"{byte:08b}" for byte in FLAG)
blocks = [bits[i : i + N] for i in range(0, len(bits), N)]
sums = [sum(w for w, bit in zip(weights, block) if bit == "1") for block in blocks]
print(f"weights = {weights}")
print(f"sums = {sums}")
''')
_KNAPSACK_SIZES = {1: (40, 100), 2: (60, 180)}


def _weights(draw: Draw, n: int, bits: int) -> list[int]:
    secret: list[int] = []
    total = 0
    for _ in range(n):
        secret.append(total + 1 + draw.bits(bits - n))
        total += secret[-1]
    q = total + 1 + draw.below(total)
    r = 0
    while math.gcd(r, q) != 1:
        r = 2 + draw.below(q - 2)
    return [r * weight % q for weight in secret]


def _knapsack(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    n, size = _KNAPSACK_SIZES[level]
    weights = _weights(draw, n, size)
    bits = "".join(f"{byte:08b}" for byte in flag.encode())
    sums = [
        sum(weight for weight, bit in zip(weights, bits[i : i + n], strict=False) if bit == "1")
        for i in range(0, len(bits), n)
    ]
    return Made(
        public={
            "main.py": _KNAPSACK.substitute(n=n, bits=size).encode(),
            "output.txt": f"weights = {weights}\nsums = {sums}\n".encode(),
        }
    )


_LWE = Template('''\
"""Learning with errors: every row of numbers gives away one sum of the secret, but not quite."""

from hashlib import sha256
from secrets import randbelow

from secret import FLAG

N = $n
ROWS = $rows
Q = $q

secret = [randbelow(Q) for _ in range(N)]
A = [[randbelow(Q) for _ in range(N)] for _ in range(ROWS)]
b = [(sum(x * y for x, y in zip(row, secret)) + randbelow(7) - 3) % Q for row in A]
mask = sha256(str(secret).encode()).digest()
print(f"q = {Q}")
print(f"A = {A}")
print(f"b = {b}")
print(f"box = {bytes(x ^ y for x, y in zip(FLAG, mask)).hex()}")
''')
_LWE_SIZES = {1: (12, 40, 3329), 2: (24, 64, 7681)}


def _lwe(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    n, rows, q = _LWE_SIZES[level]
    secret = [draw.below(q) for _ in range(n)]
    a = [[draw.below(q) for _ in range(n)] for _ in range(rows)]
    b = [
        (sum(x * y for x, y in zip(row, secret, strict=True)) + draw.between(-3, 3)) % q
        for row in a
    ]
    mask = sha256(str(secret).encode()).digest()
    box = bytes(x ^ y for x, y in zip(flag.encode(), mask, strict=False)).hex()
    return Made(
        public={
            "main.py": _LWE.substitute(n=n, rows=rows, q=q).encode(),
            "output.txt": f"q = {q}\nA = {a}\nb = {b}\nbox = {box}\n".encode(),
        }
    )


FAMILIES: tuple[Family, ...] = (
    Family(
        name="knapsack",
        folder=_FOLDER,
        kinds=("static",),
        story="Somebody revived a cipher of 1978 that packs bits into sums, and used it once.",
        sizes={
            level: {"dimension": n, "weight_bits": bits}
            for level, (n, bits) in _KNAPSACK_SIZES.items()
        },
        make=_knapsack,
    ),
    Family(
        name="lwe_tiny",
        folder=_FOLDER,
        kinds=("static",),
        story="A sensor reports sums of its secret numbers, each a little off. The log is complete.",
        sizes={
            level: {"dimension": n, "samples": rows, "modulus": q}
            for level, (n, rows, q) in _LWE_SIZES.items()
        },
        make=_lwe,
    ),
)
