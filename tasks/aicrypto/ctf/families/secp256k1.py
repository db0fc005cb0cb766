"""ECDSA on the curve secp256k1 (SEC 2, section 2.4.1), also as a text for the programs of challenges.

`SOURCE` is put into those programs, so that what made a challenge is what the challenge shows.
"""

from __future__ import annotations

import inspect
from hashlib import sha256

P = 2**256 - 2**32 - 977
"""The field's prime."""
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of the base point."""
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
"""The base point."""


def _double(point: tuple[int, int, int]) -> tuple[int, int, int]:
    """2A for a point of y² = x³ + 7; x is X / Z² and y is Y / Z³."""
    x, y, z = point
    s, m = 4 * x * y * y % P, 3 * x * x % P
    new = (m * m - 2 * s) % P
    return new, (m * (s - new) - 8 * y**4) % P, 2 * y * z % P


def _add(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
    """A + B for A ≠ ±B; Z = 0 stands for the point at infinity."""
    if a[2] == 0:
        return b
    za, zb = a[2] * a[2] % P, b[2] * b[2] % P
    u, s = a[0] * zb % P, a[1] * zb * b[2] % P
    h, r = (b[0] * za - u) % P, (b[1] * za * a[2] - s) % P
    hh = h * h % P
    x = (r * r - hh * h - 2 * u * hh) % P
    return x, (r * (u * hh - x) - s * hh * h) % P, a[2] * b[2] * h % P


def _powers() -> list[tuple[int, int, int]]:
    powers = [(*G, 1)]
    for _ in range(255):
        powers.append(_double(powers[-1]))
    return powers


_POWERS = _powers()


def times_base(k: int) -> tuple[int, int]:
    """Give kG for 0 < k < N.

    Parameters
    ----------
    k : int

    Returns
    -------
    tuple of int
        x and y.
    """
    point = (0, 1, 0)
    for i in range(k.bit_length()):
        if k >> i & 1:
            point = _add(point, _POWERS[i])
    inverse = pow(point[2], -1, P)
    return point[0] * inverse**2 % P, point[1] * inverse**3 % P


def sign(message: bytes, d: int, k: int) -> tuple[int, int]:
    """Sign with the private key d and the nonce k.

    Parameters
    ----------
    message : bytes
    d, k : int
        Both from 1 to N - 1.

    Returns
    -------
    tuple of int
        r and s.
    """
    r = times_base(k)[0] % N
    z = int.from_bytes(sha256(message).digest(), "big")
    return r, pow(k, -1, N) * (z + r * d) % N


_CONSTANTS = f"""\
# The curve secp256k1
P = 2**256 - 2**32 - 977
N = 0x{N:X}
G = (
    0x{G[0]:X},
    0x{G[1]:X},
)
"""
SOURCE = "\n\n".join(
    [
        _CONSTANTS,
        *(inspect.getsource(function) for function in (_double, _add, _powers)),
        "_POWERS = _powers()\n",
        *(inspect.getsource(function) for function in (times_base, sign)),
    ]
)
"""The constants and functions above; it needs ``sha256`` of hashlib."""
