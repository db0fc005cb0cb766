"""A discrete logarithm modulo p where p - 1 has small factors only: Pohlig and Hellman."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import isqrt
from typing import TYPE_CHECKING

import gmpy2

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the exponent, which is the text."""
    lines = public["output.txt"].decode().splitlines()
    p, g, h = (int(line.split(" = ")[1]) for line in lines)
    x = _logarithm(g, h, p)
    return x.to_bytes((x.bit_length() + 7) // 8, "big").decode()


def _logarithm(g: int, h: int, p: int) -> int:
    """Give x with g^x = h modulo p, for a g that generates the whole group."""
    x = 0
    done = 1  # x is right modulo this
    for prime, power in Counter(_factors(p - 1)).items():
        cofactor = (p - 1) // prime**power
        base, value = pow(g, cofactor, p), pow(h, cofactor, p)
        part = _prime_power(base, value, prime, power, p)
        x += done * ((part - x) * pow(done, -1, prime**power) % prime**power)
        done *= prime**power
    return x


def _factors(n: int) -> list[int]:
    """Give the prime factors, none of which may be large: Pollard's rho."""
    if n == 1:
        return []
    if gmpy2.is_prime(n):
        return [n]
    if n % 2 == 0:
        return [2, *_factors(n // 2)]
    c, divisor = 0, n
    while divisor == n:  # all its factors at once: with another c they come one after another
        c, x, y, divisor = c + 1, gmpy2.mpz(2), gmpy2.mpz(2), 1
        while divisor == 1:
            x = (x * x + c) % n
            y = (y * y + c) % n
            y = (y * y + c) % n
            divisor = int(gmpy2.gcd(x - y, n))
    return _factors(divisor) + _factors(n // divisor)


def _prime_power(g: int, h: int, prime: int, power: int, p: int) -> int:
    """Give the logarithm in a group of order prime^power, one digit to the base `prime` a time."""
    root = pow(g, prime ** (power - 1), p)
    x = 0
    for i in range(power):
        rest = pow(h * pow(g, -x, p), prime ** (power - 1 - i), p)
        x += prime**i * _baby_steps(root, rest, prime, p)
    return x


def _baby_steps(g: int, h: int, order: int, p: int) -> int:
    steps = isqrt(order) + 1
    base, modulus, element = gmpy2.mpz(g), gmpy2.mpz(p), gmpy2.mpz(1)
    table = {}
    for i in range(steps):
        table[element] = i
        element = element * base % modulus
    giant, element = gmpy2.invert(element, modulus), gmpy2.mpz(h)
    for i in range(steps):
        if element in table:
            return i * steps + table[element]
        element = element * giant % modulus
    raise ValueError("no logarithm")
