"""Ten items on the mathematics behind cryptography (label `math`)."""

from __future__ import annotations

import functools
import math

from common import Draft, Maker, Stream, euclid, factor, phi, primes
from routes import (
    Vector,
    list_polynomials,
    order_by_steps,
    passes_by_orders,
    power_by_steps,
    shortest_by_listing,
)


def _m01(s: Stream) -> Draft:
    """Remainder theorem; again by trying all numbers."""
    rests, moduli = (1, 3, 6), (4, 9, 11)
    while not s.default:
        moduli = (s.between(4, 13), s.between(4, 13), s.between(4, 13))
        rests = (
            s.between(1, moduli[0] - 1),
            s.between(1, moduli[1] - 1),
            s.between(1, moduli[2] - 1),
        )
        if math.lcm(*moduli) == math.prod(moduli):
            break
    pairs = list(zip(rests, moduli, strict=True))
    system = [f"$x \\equiv {r} \\pmod{{{m}}}$" for r, m in pairs]

    def solve(some: list[Vector], inverse: bool = True) -> int:
        n = math.prod(m for _, m in some)
        return sum(r * n // m * (pow(n // m, -1, m) if inverse else 1) for r, m in some) % n

    n = math.prod(moduli)
    return Draft(
        f"What is the least non-negative integer $x$ with {', '.join(system)}?",
        (str(solve(pairs)),),
        {
            "solves the first two only": str(solve(pairs[:2])),
            "solves the last two only": str(solve(pairs[1:])),
            "solves the outer two only": str(solve(pairs[::2])),
            "forgets the inverses": str(solve(pairs, inverse=False)),
            "takes the negative": str(n - solve(pairs)),
        },
        lambda: tuple(str(x) for x in range(n) if all(x % m == r for r, m in pairs)),
    )


def _m02(s: Stream) -> Draft:
    """Modular inverse by Euclid; again by pow()."""
    a, n = 17, 3120
    while not s.default:
        a, n = s.between(11, 199), s.between(1000, 5000)
        if math.gcd(a, n) == 1:
            break
    x, y = euclid(a, n)
    return Draft(
        f"What is the inverse of {a} modulo {n}, as a number from 1 to {n - 1}?",
        (str(x % n),),
        {
            "gets the sign wrong": str(-x % n),
            "takes the other coefficient": str(abs(y)),
            "uses Fermat for a modulus that is not prime": str(pow(a, n - 2, n)),
            "divides and rounds": str(n // a),
            "takes the negative of the number": str(n - a),
            "inverts the modulus": str(pow(n, -1, a)),
        },
        lambda: (str(pow(a, -1, n)),),
    )


def _m03(s: Stream) -> Draft:
    """Euler's totient; again by counting."""
    n = 720
    while not s.default:
        n = s.between(200, 1500)
        if len(factor(n)) >= 2 and max(factor(n).values()) >= 2:
            break
    powers = factor(n)
    return Draft(
        f"What is $\\varphi({n})$ (Euler's totient)?",
        (str(phi(n)),),
        {
            "takes p^k - 1 for every prime power": str(
                math.prod(p**k - 1 for p, k in powers.items())
            ),
            "takes n as prime": str(n - 1),
            "forgets the exponents": str(math.prod(p - 1 for p in powers)),
            "takes k(p - 1) for every prime power": str(
                math.prod(k * (p - 1) for p, k in powers.items())
            ),
            "counts divisors": str(math.prod(k + 1 for k in powers.values())),
            "counts numbers that share a factor": str(n - phi(n)),
        },
        lambda: (str(sum(math.gcd(x, n) == 1 for x in range(n))),),
    )


def jacobi(a: int, n: int) -> int:
    """Return the Jacobi symbol (a/n) for odd n by the law of reciprocity.

    Examples
    --------
    >>> jacobi(1001, 9907)
    -1
    """
    a, sign = a % n, 1
    while a:
        while a % 2 == 0:
            a //= 2
            sign = -sign if n % 8 in (3, 5) else sign
        a, n = n, a
        sign = -sign if a % 4 == n % 4 == 3 else sign
        a %= n
    return sign if n == 1 else 0


def _m04(s: Stream) -> Draft:
    """Jacobi symbol and what it proves; again by listing squares modulo each prime factor."""
    a, n = 1001, 9907
    if not s.default:
        p, q = s.shuffled(primes(23, 97))[:2]
        n = p * q if s.below(2) else s.choice(primes(1000, 9999))
        a = s.between(100, 999)
    prime = factor(n).get(n) == 1
    square, not_square, open_, shared = (
        f"$1$, which proves that {a} is a square modulo {n}",
        f"$-1$, which proves that {a} is not a square modulo {n}",
        f"$1$, which leaves open whether {a} is a square modulo {n}",
        f"$0$, because {a} and {n} have a common factor",
    )
    right = {1: square if prime else open_, -1: not_square, 0: shared}[jacobi(a, n)]
    every = {
        "expects a square": square,
        "expects no square": not_square,
        "takes every 1 as open": open_,
        "finds a common factor": shared,
        "takes every -1 as open": f"$-1$, which leaves open whether {a} is a square modulo {n}",
    }

    def again() -> tuple[str, ...]:
        symbol = 1
        for p, e in factor(n).items():
            squares = {x * x % p for x in range(1, p)}
            symbol *= (0 if a % p == 0 else 1 if a % p in squares else -1) ** e
        if symbol == 1:
            return (square if len(factor(n)) == 1 else open_,)
        return (not_square if symbol else shared,)

    kind = "is prime" if prime else "is not prime"
    return Draft(
        f"What is the Jacobi symbol $\\left(\\frac{{{a}}}{{{n}}}\\right)$, and what does its value "
        f"alone say, if you know that {n} {kind}?",
        (right,),
        every,
        again,
    )


def _m05(s: Stream) -> Draft:
    """Multiplicative order from the divisors of p - 1; again by stepping."""
    g, p = (3, 43) if s.default else (s.between(2, 12), s.choice(primes(29, 199)))
    order = next(d for d in range(1, p) if (p - 1) % d == 0 and pow(g, d, p) == 1)

    return Draft(
        f"What is the multiplicative order of {g} modulo {p}?",
        (str(order),),
        {
            "takes the group order": str(p - 1),
            "takes the modulus": str(p),
            "takes squares only": str((p - 1) // 2),
            "takes the largest odd part": str((p - 1) // (p - 1 & 1 - p)),
            "halves once too often": str(max(order // 2, 2)),
            "doubles": str(2 * order),
            "stops one step early": str(order - 1),
        },
        lambda: (str(order_by_steps(g, p)),),
    )


def _m06(s: Stream) -> Draft:
    """Number of generators; again by the order of every unit."""
    n = 243 if s.default else s.choice((25, 27, 49, 50, 54, 81, 98, 121, 125, 162, 169, 242, 250))
    group = phi(n)

    def again() -> tuple[str, ...]:
        units = [g for g in range(n) if math.gcd(g, n) == 1]
        return (str(sum(order_by_steps(g, n) == len(units) for g in units)),)

    return Draft(
        f"How many generators does the group of units $(\\mathbb{{Z}}/{n}\\mathbb{{Z}})^*$ have?",
        (str(phi(group)),),
        {
            "takes all units": str(group),
            "takes n as prime": str(phi(n - 1)),
            "takes every second unit": str(group // 2),
            "takes the generators modulo the prime": str(phi(max(factor(n)) - 1)),
            "thinks that the group is not cyclic": "0",
            "leaves out the generator 1 of the exponents": str(phi(group) - 1),
        },
        again,
    )


def _m07(s: Stream) -> Draft:
    """Power modulo a prime with Fermat; again by stepping."""
    a, e, p = 7, 222, 11
    if not s.default:
        a, e, p = s.between(3, 10), s.between(100, 999), s.choice(primes(13, 47))
    value = pow(a, e % (p - 1), p)

    return Draft(
        f"What is ${a}^{{{e}}} \\bmod {p}$?",
        (str(value),),
        {
            "reduces the exponent modulo p": str(pow(a, e % p, p)),
            "multiplies instead of raising": str(a * e % p),
            "gets the sign wrong": str(-value % p),
            "takes every power as 1": "1",
            "goes one step too far": str(value * a % p),
            "stops one step early": str(pow(a, e - 1, p)),
            "swaps base and exponent": str(pow(e, a, p)),
        },
        lambda: (str(power_by_steps(a, e, p)),),
    )


def _m08(s: Stream) -> Draft:
    """Irreducible and primitive polynomials by formula; again by listing all."""
    n = 6 if s.default else s.choice((4, 8, 9, 10))
    # Moebius inversion: the sum of d times the number of degree d over all d | n is 2^n
    squarefree = [d for d in range(1, n + 1) if n % d == 0 and set(factor(d).values()) <= {1}]
    irreducible = sum((-1) ** len(factor(d)) * 2 ** (n // d) for d in squarefree) // n
    primitive = phi(2**n - 1) // n

    def text(x: int, y: int) -> str:
        return f"{x} irreducible, {y} primitive"

    return Draft(
        f"How many polynomials of degree {n} over GF(2) are irreducible, and how many of these are "
        "primitive?",
        (text(irreducible, primitive),),
        {
            "takes all as primitive": text(irreducible, irreducible),
            "swaps the two": text(primitive, irreducible),
            "forgets the subfields": text((2**n - 2) // n, primitive),
            "forgets to divide by the degree": text(n * irreducible, n * primitive),
            "leaves out one primitive polynomial": text(irreducible, primitive - 1),
            "halves the primitive ones": text(irreducible, primitive // 2),
        },
        lambda: (text(*list_polynomials(n)),),
    )


def _passes(n: int, base: int) -> bool:
    """Whether odd n passes the Miller-Rabin test to a base."""
    d = (n - 1) // (n - 1 & 1 - n)
    x = pow(base, d, n)
    while d < n - 1:
        if x == n - 1 or (x == 1 and d % 2):
            return True
        x, d = x * x % n, 2 * d
    return False


@functools.cache
def _pseudoprimes(base: int) -> tuple[tuple[int, ...], int, int]:
    """Return three strong pseudoprimes, the least Fermat one, and the least by the second route."""
    odd = [n for n in range(9, 6000, 2) if max(factor(n)) < n and n % 2]
    odd = [n for n in odd if math.gcd(n, base) == 1 and pow(base, n - 1, n) == 1]
    strong = tuple(n for n in odd if _passes(n, base))[:3]
    return strong, odd[0], next(n for n in odd if passes_by_orders(n, base))


def _m09(s: Stream) -> Draft:
    """Least strong pseudoprime; again from the orders modulo the prime powers."""
    base = 2 if s.default else s.choice((3, 5, 6, 7, 10, 11, 12, 13))
    strong, fermat, again = _pseudoprimes(base)
    return Draft(
        f"What is the least odd composite number, prime to {base}, that passes the Miller-Rabin "
        f"test to the base {base} (the least strong pseudoprime to this base)?",
        (str(strong[0]),),
        {
            "takes the Fermat test": str(fermat),
            "takes the least Carmichael number": "561",
            "takes the second": str(strong[1]),
            "takes the third": str(strong[2]),
            "takes the least Fermat pseudoprime to base 2": "341",
            "takes the second Carmichael number": "1105",
        },
        lambda: (str(again),),
    )


def _norm(v: Vector) -> int:
    return v[0] ** 2 + v[1] ** 2


def _reduce(u: Vector, v: Vector, steps: int = 99) -> tuple[Vector, Vector]:
    """Return a Lagrange-Gauss reduced basis, the shorter vector first."""
    for _ in range(steps):
        u, v = sorted((u, v), key=_norm)
        k = (2 * (u[0] * v[0] + u[1] * v[1]) + _norm(u)) // (2 * _norm(u))
        if k == 0:
            break
        v = v[0] - k * u[0], v[1] - k * u[1]
    return (u, v) if _norm(u) <= _norm(v) else (v, u)


def _m10(s: Stream) -> Draft:
    """Shortest vector by reduction; again by listing the lattice in Hermite form."""
    u, v = (201, 37), (1648, 297)
    while not s.default:
        short = [(s.between(-40, 40), s.between(-40, 40)) for _ in range(2)]
        a, b, c = s.between(3, 9), s.between(3, 9), s.between(3, 9)
        first, second = (a * b + 1, a), (c * (a * b + 1) + b, c * a + 1)
        u, v = (
            (i * short[0][0] + j * short[1][0], i * short[0][1] + j * short[1][1])
            for i, j in (first, second)
        )
        if abs(short[0][0] * short[1][1] - short[0][1] * short[1][0]) > 200 and u[0] and v[0]:
            break
    one, two = _reduce(u, v)
    return Draft(
        f"A lattice in the plane has the basis $({u[0]}, {u[1]})$, $({v[0]}, {v[1]})$. What is the "
        "squared Euclidean length of its shortest non-zero vector?",
        (str(_norm(one)),),
        {
            "takes the second shortest direction": str(_norm(two)),
            "takes the determinant": str(abs(u[0] * v[1] - u[1] * v[0])),
            "takes the shorter basis vector": str(min(_norm(u), _norm(v))),
            "stops after one step": str(_norm(_reduce(u, v, 1)[0])),
            "subtracts the basis vectors": str(_norm((u[0] - v[0], u[1] - v[1]))),
        },
        lambda: (str(shortest_by_listing(u, v)),),
    )


ITEMS: dict[str, Maker] = {
    "M01": _m01,
    "M02": _m02,
    "M03": _m03,
    "M04": _m04,
    "M05": _m05,
    "M06": _m06,
    "M07": _m07,
    "M08": _m08,
    "M09": _m09,
    "M10": _m10,
}
"""Item number -> function from a stream to a draft."""
