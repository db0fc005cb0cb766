"""Slow but plain second routes: what a key is checked against.

Everything here works by listing, stepping or experiment, so that it shares no formula with the label
modules.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math

from common import euclid, factor, primes

Point = tuple[int, int] | None
"""A point of an elliptic curve; None is the point at infinity."""

_BLOCK = 64


def _round(half: int, key: int) -> int:
    data = half.to_bytes(4, "big") + bytes([key])
    return int.from_bytes(hashlib.sha256(data).digest()[:4], "big")


def _toy(block: int, keys: tuple[int, ...] = (1, 2, 3, 4)) -> int:
    """Encrypt a 64-bit block (four Feistel rounds); with the keys reversed it decrypts."""
    left, right = block >> 32, block & 0xFFFFFFFF
    for key in keys:
        left, right = right, left ^ _round(right, key)
    return right << 32 | left


def run_mode(mode: str, iv: int, blocks: list[int], decrypt: bool = False) -> list[int]:
    """Run a mode of operation over the toy cipher.

    Parameters
    ----------
    mode
        ECB, CBC, CFB (full block), OFB or CTR.
    iv
        Initial value or first counter, 64 bits.
    blocks
        Blocks of 64 bits.
    decrypt
        Whether to decrypt.
    """
    out: list[int] = []
    last = iv
    for i, x in enumerate(blocks):
        if mode == "ECB":
            y = _toy(x, (4, 3, 2, 1)) if decrypt else _toy(x)
        elif mode == "CBC":
            y = _toy(x, (4, 3, 2, 1)) ^ last if decrypt else _toy(x ^ last)
            last = x if decrypt else y
        elif mode == "CFB":
            y = x ^ _toy(last)
            last = x if decrypt else y
        elif mode == "OFB":
            last = _toy(last)
            y = x ^ last
        else:
            y = x ^ _toy((iv + i) % 2**_BLOCK)
        out.append(y)
    return out


def lfsr(poly: int) -> list[int]:
    """Return one period of the top bits of a Galois register that starts at 1."""
    out: list[int] = []
    degree, state = poly.bit_length() - 1, 1
    while not out or state != 1:
        out.append(state >> (degree - 1))
        state <<= 1
        state ^= poly if state >> degree else 0
    return out


def powers_of_3() -> list[int]:
    """Return the powers of 03 in the AES field; 3x is x xor 2x."""
    out = [1]
    while len(out) < 255:
        x = out[-1]
        out.append(x ^ (x << 1) ^ (0x11B if x & 0x80 else 0))
    return out


def _frac(prime: int, root: int) -> int:
    """Return the first 32 bits of the fraction of a square or cube root, by integer search."""
    low, high = 0, prime << 32
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (mid, high) if mid**root <= prime << (32 * root) else (low, mid)
    return low & 0xFFFFFFFF


_ROUND_KEYS = [_frac(p, 3) for p in primes(2, 311)]


_START = [_frac(p, 2) for p in primes(2, 19)]


def count_compressions(message: bytes) -> int:
    """Hash a message by hand and count the compressions; hashlib must give the same digest.

    Parameters
    ----------
    message
        Any bytes.

    Raises
    ------
    AssertionError
        If the digest is not that of `hashlib`.
    """

    def turn(x: int, n: int) -> int:
        return (x >> n | x << (32 - n)) & 0xFFFFFFFF

    data = bytearray(message + b"\x80")
    while len(data) % 64 != 56:
        data.append(0)
    data += (8 * len(message)).to_bytes(8, "big")
    state, count = list(_START), 0
    while data:
        w = [int.from_bytes(data[i : i + 4], "big") for i in range(0, 64, 4)]
        for i in range(16, 64):
            low = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3
            high = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10
            w.append((w[i - 16] + low + w[i - 7] + high) & 0xFFFFFFFF)
        a, b, c, d, e, f, g, h = state
        for k, x in zip(_ROUND_KEYS, w, strict=True):
            one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + k + x
            two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c)
            a, b, c, d, e, f, g, h = one + two & 0xFFFFFFFF, a, b, c, d + one & 0xFFFFFFFF, e, f, g
        state = [x + y & 0xFFFFFFFF for x, y in zip(state, (a, b, c, d, e, f, g, h), strict=True)]
        del data[:64]
        count += 1
    digest = b"".join(x.to_bytes(4, "big") for x in state)
    if digest != hashlib.sha256(message).digest():
        raise AssertionError(f"own SHA-256 of {len(message)} bytes differs from hashlib")
    return count


def power_by_steps(base: int, count: int, modulus: int) -> int:
    """Return a power by stepping, the slow second route to `pow`."""
    out = 1
    for _ in range(count):
        out = out * base % modulus
    return out


def order_by_steps(g: int, modulus: int) -> int:
    """Return the multiplicative order of g by stepping."""
    power, out = g % modulus, 1
    while power != 1:
        power, out = power * g % modulus, out + 1
    return out


def add_by_search(one: Point, two: Point, a: int, b: int, p: int) -> Point:
    """Add two points by trying all lines: three points in line add up to infinity.

    A line y = mx + c meets the curve in x1, x2, x3 exactly if x^3 + ax + b - (mx + c)^2 is the
    product of the three (x - xi), compared here at every x.
    """
    if one is None or two is None:
        return two if one is None else one
    if one[0] == two[0] and (one[1] + two[1]) % p == 0:
        return None
    for m in range(p):
        c = (one[1] - m * one[0]) % p
        if (m * two[0] + c - two[1]) % p:
            continue
        for x in range(p):
            if all(
                (t**3 + a * t + b - (m * t + c) ** 2 - (t - one[0]) * (t - two[0]) * (t - x)) % p
                == 0
                for t in range(p)
            ):
                return x, -(m * x + c) % p
    raise AssertionError("no line through the points")


Vector = tuple[int, int]


def _mod2(x: int, y: int) -> int:
    """Return x modulo y for polynomials over GF(2) given as bit masks."""
    while x.bit_length() >= y.bit_length():
        x ^= y << x.bit_length() - y.bit_length()
    return x


@functools.cache
def list_polynomials(n: int) -> tuple[int, int]:
    """Return the numbers of irreducible and of primitive polynomials of degree n, by listing."""
    irreducible = [
        f
        for f in range(2**n, 2 ** (n + 1))
        if all(_mod2(f, d) for d in range(2, 2 ** (n // 2 + 1)))
    ]
    primitive = 0
    for f in irreducible:
        power, order = 2, 1
        while power != 1:
            power, order = _mod2(power << 1, f), order + 1
        primitive += order == 2**n - 1
    return len(irreducible), primitive


def passes_by_orders(n: int, base: int) -> bool:
    """Whether n passes the Miller-Rabin test, from orders.

    It does if the order of the base modulo each prime power of n divides n - 1, and the same power
    of two divides each of these orders.
    """
    if math.gcd(n, base) > 1:
        return False
    twos = set()
    for p, e in factor(n).items():
        order = order_by_steps(base, p**e)
        if (n - 1) % order:
            return False
        twos.add(order & -order)
    return len(twos) == 1


def shortest_by_listing(u: Vector, v: Vector) -> int:
    """Return the least squared norm by listing: every k with the least y for x = kg."""
    g, det = math.gcd(u[0], v[0]), abs(u[0] * v[1] - u[1] * v[0])
    x, y = euclid(u[0], v[0])
    height, step = x * u[1] + y * v[1], det // g
    best, k = step**2, 1
    while (k * g) ** 2 <= best:
        rest = k * height % step
        best = min(best, (k * g) ** 2 + min(rest, step - rest) ** 2)
        k += 1
    return best


def people_exactly(days: int) -> int:
    """Return how many even draws make a repeat at least as likely as not.

    By bisection over exact integers: days! / (days - k)! against days**k.
    """
    low, high = 1, days + 1
    while low < high:
        k = (low + high) // 2
        low, high = (low, k) if 2 * math.perm(days, k) <= days**k else (k + 1, high)
    return low


def grover_steps(bits: int) -> int:
    """Return after how many Grover steps the marked one of 2**bits items is likeliest.

    The state stays in a plane; the two amplitudes are followed step by step (oracle, then
    reflection about the mean).
    """
    n = 2**bits
    marked = other = 1 / math.sqrt(n)
    for step in itertools.count():
        mean = (-marked + (n - 1) * other) / n
        following = 2 * mean + marked
        if following < marked:
            return step
        marked, other = following, 2 * mean - other
    raise AssertionError("unreachable")
