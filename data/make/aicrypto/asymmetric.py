"""Ten items on public-key cryptography (label `asymmetric`)."""

from __future__ import annotations

import math

from common import Draft, Maker, Stream, primes
from routes import Point, add_by_search, order_by_steps, power_by_steps


def _a01(s: Stream) -> Draft:
    """RSA keys; again by searching both exponents and multiplying e times."""
    p, q, e, m = 61, 53, 17, 65
    while not s.default:
        p, q = s.shuffled(primes(41, 101))[:2]
        e, m = s.choice((5, 7, 11, 13, 17, 19, 23)), s.between(30, 99)
        if math.gcd(e, (p - 1) * (q - 1)) == 1 and pow(e, -1, (p - 1) * (q - 1)) > math.lcm(
            p - 1, q - 1
        ):
            break
    n, phi, lam = p * q, (p - 1) * (q - 1), math.lcm(p - 1, q - 1)
    a, b = pow(e, -1, phi), pow(e, -1, lam)

    def text(x: int, y: int, c: int) -> str:
        return f"$d_\\varphi = {x}$, $d_\\lambda = {y}$, $c = {c}$"

    def again() -> tuple[str, ...]:
        # lambda is the least exponent that sends every unit to 1: the lcm of all orders
        orders = [order_by_steps(g, r) for r in (p, q) for g in range(1, r)]
        units = sum(x % p > 0 and x % q > 0 for x in range(n))
        x, y = (next(d for d in range(1, n) if e * d % k == 1) for k in (units, math.lcm(*orders)))
        return (text(x, y, power_by_steps(m, e, n)),)

    c = pow(m, e, n)
    return Draft(
        f"RSA with $p = {p}$, $q = {q}$, $e = {e}$. Let $d_\\varphi$ and $d_\\lambda$ be the least "
        "positive private exponents modulo $\\varphi(n)$ and modulo $\\lambda(n)$ (Carmichael), "
        f"and $c$ the textbook encryption of $m = {m}$. Which option gives all three values?",
        (text(a, b, c),),
        {
            "swaps phi and lambda": text(b, a, c),
            "decrypts instead of encrypts": text(a, b, pow(m, a, n)),
            "multiplies instead of raising": text(a, b, m * e % n),
            "uses phi for both": text(a, a, c),
            "takes the negative inverse": text(phi - a, lam - b, c),
            "raises to e - 1": text(a, b, pow(m, e - 1, n)),
        },
        again,
    )


def _a02(s: Stream) -> Draft:
    """Diffie-Hellman; again by stepping, from the other side."""
    p, g, a, b = 23, 5, 6, 15
    while not s.default:
        p, g = s.choice(primes(29, 199)), s.between(2, 19)
        a, b = s.between(4, 25), s.between(4, 25)
        if order_by_steps(g, p) == p - 1 and a != b:
            break
    return Draft(
        f"In a Diffie-Hellman exchange modulo $p = {p}$ with $g = {g}$ the secret exponents are "
        f"${a}$ and ${b}$. What is the shared secret?",
        (str(pow(pow(g, a, p), b, p)),),
        {
            "adds the exponents": str(pow(g, a + b, p)),
            "reduces the exponent modulo p": str(pow(g, a * b % p, p)),
            "takes the first public value": str(pow(g, a, p)),
            "takes the second public value": str(pow(g, b, p)),
            "adds the public values": str((pow(g, a, p) + pow(g, b, p)) % p),
            "multiplies instead of raising": str(pow(g, a, p) * b % p),
        },
        lambda: (str(power_by_steps(power_by_steps(g, b, p), a, p)),),
    )


def _a03(s: Stream) -> Draft:
    """ElGamal; again from a table of powers, confirmed by decrypting."""
    p, g, x, k, m = 467, 2, 127, 213, 331
    while not s.default:
        p, g = s.choice(primes(211, 499)), s.between(2, 11)
        x, k, m = s.between(50, 200), s.between(50, 200), s.between(50, 200)
        if order_by_steps(g, p) == p - 1 and x != k:
            break
    y, c1 = pow(g, x, p), pow(g, k, p)

    def text(public: int, one: int, two: int) -> str:
        return f"$y = {public}$, $(c_1, c_2) = ({one}, {two % p})$"

    def again() -> tuple[str, ...]:
        powers = [power_by_steps(g, 0, p)]
        while len(powers) < p - 1:
            powers.append(powers[-1] * g % p)
        one = powers[k]
        mask = powers[powers.index(one) * powers.index(powers[x]) % (p - 1)]
        two = next(c for c in range(p) if c * power_by_steps(one, p - 1 - x, p) % p == m)
        return (text(powers[x], one, two),) if two == m * mask % p else ()

    return Draft(
        f"ElGamal encryption modulo $p = {p}$ with $g = {g}$: the private key is $x = {x}$, the "
        f"message $m = {m}$ is encrypted with the random exponent $k = {k}$. What are the public "
        "key $y$ and the ciphertext $(c_1, c_2)$?",
        (text(y, c1, m * pow(y, k, p)),),
        {
            "adds the mask": text(y, c1, m + pow(y, k, p)),
            "forgets to raise the public key": text(y, c1, m * y),
            "swaps x and k": text(c1, y, m * pow(y, k, p)),
            "masks with the first part": text(y, c1, m * c1),
            "divides by the mask": text(y, c1, m * pow(y, -k, p)),
            "multiplies instead of raising": text(g * x % p, g * k % p, m * g * x * k),
        },
        again,
    )


def _add(one: Point, two: Point, a: int, p: int) -> Point:
    """Add two points of y^2 = x^3 + ax + b by the chord and tangent formulas."""
    if one is None or two is None:
        return two if one is None else one
    if one[0] == two[0] and (one[1] + two[1]) % p == 0:
        return None
    if one == two:
        m = (3 * one[0] ** 2 + a) * pow(2 * one[1], -1, p)
    else:
        m = (two[1] - one[1]) * pow(two[0] - one[0], -1, p)
    x = (m * m - one[0] - two[0]) % p
    return x, (m * (one[0] - x) - one[1]) % p


def _linear(a: int) -> str:
    return "x" if a == 1 else f"{a}x"


def _curve(s: Stream, low: int, high: int) -> tuple[int, int, int]:
    """Return p, a, b of a random curve without singular point."""
    while True:
        p = s.choice(primes(low, high))
        a, b = s.between(1, p - 1), s.between(1, p - 1)
        if (4 * a**3 + 27 * b * b) % p:
            return p, a, b


def _multiples(g: Point, a: int, p: int) -> list[Point]:
    """Return G, 2G, ... up to the point at infinity."""
    out = [g]
    while out[-1] is not None:
        out.append(_add(out[-1], g, a, p))
    return out


def _a04(s: Stream) -> Draft:
    """Order of a point and 3G; again by lines found by search."""
    p, a, b, g = 17, 2, 2, (5, 1)
    while not s.default:
        p, a, b = _curve(s, 11, 23)
        g = s.choice(
            [(x, y) for x in range(p) for y in range(p) if (y * y - x**3 - a * x - b) % p == 0]
        )
        if len(_multiples(g, a, p)) >= 7:
            break
    points = _multiples(g, a, p)
    order = len(points)

    def text(n: int, point: Point) -> str:
        return f"order {n}, $3G = ({point[0]}, {point[1]})$" if point else f"order {n}"

    def minus(point: Point) -> Point:
        return (point[0], -point[1] % p) if point else None

    def again() -> tuple[str, ...]:
        found: list[Point] = [g]
        while found[-1] is not None:
            found.append(add_by_search(found[-1], g, a, b, p))
        return (text(len(found), found[2]),)

    return Draft(
        f"On the elliptic curve $y^2 = x^3 + {_linear(a)} + {b}$ over GF({p}), what are the order of the "
        f"point $G = ({g[0]}, {g[1]})$ and the point $3G$?",
        (text(order, points[2]),),
        {
            "forgets the point at infinity": text(order - 1, points[2]),
            "counts the point at infinity twice": text(order + 1, points[2]),
            "forgets to reflect": text(order, minus(points[2])),
            "stops at 2G": text(order, points[1]),
            "doubles twice": text(order, points[3]),
            "multiplies the coordinates": text(order, (3 * g[0] % p, 3 * g[1] % p)),
        },
        again,
    )


def _a05(s: Stream) -> Draft:
    """Points of a curve; again by trying all pairs (x, y)."""
    p, a, b = (23, 1, 1) if s.default else _curve(s, 19, 53)
    squares = [pow(x**3 + a * x + b, (p - 1) // 2, p) for x in range(p)]
    n = 1 + sum(1 if q == 0 else 2 if q == 1 else 0 for q in squares)

    def again() -> tuple[str, ...]:
        pairs = [(x, y) for x in range(p) for y in range(p) if (y * y - x**3 - a * x - b) % p == 0]
        return (str(len(pairs) + 1),)

    return Draft(
        f"How many points does the elliptic curve $y^2 = x^3 + {_linear(a)} + {b}$ have over GF({p}), the "
        "point at infinity included?",
        (str(n),),
        {
            "forgets the point at infinity": str(n - 1),
            "takes the middle of Hasse's interval": str(p + 1),
            "gets the sign of the trace wrong": str(2 * (p + 1) - n),
            "counts x only": str(sum(q in (0, 1) for q in squares)),
            "takes two y for every x": str(2 * p + 1),
            "takes one y for every x": str(p),
        },
        again,
    )


def _a06(s: Stream) -> Draft:
    """Square roots modulo pq, several right; again by squaring every residue."""
    p, q, root, shown = 7, 11, 10, 4
    if not s.default:
        p, q = s.shuffled(primes(7, 43))[:2]
        root, shown = s.choice([x for x in range(2, p * q) if x % p and x % q]), s.between(2, 3)
    n = p * q
    square = root * root % n
    ends = (
        [i * root * q * pow(q, -1, p) for i in (1, -1)],
        [i * root * p * pow(p, -1, q) for i in (1, -1)],
    )
    roots = sorted((x + y) % n for x in ends[0] for y in ends[1])
    right = tuple(sorted(s.shuffled(roots)[:shown]))
    near = [x for x in range(1, n) if x not in roots]
    wrong = {
        "is a root modulo one prime only": [x for x in near if (x * x - square) % p == 0],
        "is a root modulo the other prime only": [x for x in near if (x * x - square) % q == 0],
        "is a root of the negative or of a neighbour": [
            x for x in near if (x * x - square) % n in (1, n - 1)
        ],
        "takes the square itself": [x for x in (square, n - square) if x in near],
    }
    pool = {name: str(s.choice(values)) for name, values in wrong.items() if values}
    return Draft(
        f"Which of these numbers are square roots of {square} modulo {n} (${n} = {p} \\cdot {q}$)?",
        tuple(map(str, right)),
        pool,
        lambda: tuple(
            str(x)
            for x in range(n)
            if x * x % n == square and str(x) in {*map(str, right), *pool.values()}
        ),
        several=True,
    )


def _a07(s: Stream) -> Draft:
    """DSA signature; again by searching s and verifying with the public key."""
    p, q, g, x, k, z = 59, 29, 3, 7, 10, 26
    while not s.default:
        p, q = s.choice([(p, q) for q in primes(17, 53) for p in primes(59, 230) if p % q == 1])
        g = pow(s.between(2, 12), (p - 1) // q, p)
        x, k, z = s.between(3, q - 2), s.between(3, q - 2), s.between(3, q - 2)
        r = pow(g, k, p) % q
        if g > 1 and r and (z + x * r) % q:
            break
    r = pow(g, k, p) % q
    inverse = pow(k, -1, q)

    def text(one: int, two: int) -> str:
        return f"$({one}, {two})$"

    def again() -> tuple[str, ...]:
        one = power_by_steps(g, k, p) % q
        y, found = power_by_steps(g, x, p), []
        for t in range(1, q):
            w = next(i for i in range(1, q) if i * t % q == 1)
            point = power_by_steps(g, z * w % q, p) * power_by_steps(y, one * w % q, p) % p
            if point == power_by_steps(g, k, p) and point % q == one:
                found.append(text(one, t))
        return tuple(found)

    return Draft(
        f"DSA with $p = {p}$, $q = {q}$, $g = {g}$ and private key $x = {x}$ signs the hash value "
        f"$z = {z}$ with the nonce $k = {k}$. What is the signature $(r, s)$?",
        (text(r, inverse * (z + x * r) % q),),
        {
            "multiplies by k instead of its inverse": text(r, k * (z + x * r) % q),
            "subtracts": text(r, inverse * (z - x * r) % q),
            "swaps r and s": text(inverse * (z + x * r) % q, r),
            "does not reduce r modulo q": text(pow(g, k, p), inverse * (z + x * pow(g, k, p)) % q),
            "forgets k": text(r, (z + x * r) % q),
            "forgets the key": text(r, inverse * (z + r) % q),
        },
        again,
    )


def _convergents(e: int, n: int) -> list[tuple[int, int]]:
    """Return the convergents (numerator, denominator) of e / n."""
    out, last, now, x, y = [], (0, 1), (1, 0), e, n
    while y:
        last, now = now, (x // y * now[0] + last[0], x // y * now[1] + last[1])
        out.append(now)
        x, y = y, x % y
    return out


def _wiener(e: int, n: int) -> int:
    """Return the first denominator d that gives a totient whose primes are integers; else 0."""
    for k, d in _convergents(e, n):
        if k and (e * d - 1) % k == 0:
            total = n + 1 - (e * d - 1) // k
            if (
                total > 0
                and total**2 >= 4 * n
                and math.isqrt(total**2 - 4 * n) ** 2 == total**2 - 4 * n
            ):
                return d
    return 0


def _a08(s: Stream) -> Draft:
    """Wiener's attack; again by factoring n."""
    e, n = 17993, 90581
    while not s.default:
        p, q = s.shuffled(primes(700, 1300))[:2]
        d, n = s.choice((5, 7, 9)), p * q
        phi = (p - 1) * (q - 1)
        if math.gcd(d, phi) == 1:
            e = pow(d, -1, phi)
            if e > n // 10 and _wiener(e, n) == d:
                break
    d = _wiener(e, n)
    list_d = [y for _, y in _convergents(e, n) if y > d]

    def again() -> tuple[str, ...]:
        p = next(x for x in range(2, n) if n % x == 0)
        return (str(pow(e, -1, (p - 1) * (n // p - 1))),)

    return Draft(
        f"An RSA key has $n = {n}$, $e = {e}$ and a very small private exponent (modulo "
        "$\\varphi(n)$). Which private exponent does Wiener's attack find among the convergents of "
        "$e / n$?",
        (str(d),),
        {
            "takes the next denominator": str(list_d[0]),
            "takes the denominator after that": str(list_d[1]),
            "adds two": str(d + 2),
            "inverts e modulo n": str(pow(e, -1, n)),
            "multiplies by the numerator plus one": str(d * (e * d // n + 2)),
            "takes n divided by e plus one": str(n // e + 1),
        },
        again,
    )


def _a09(s: Stream) -> Draft:
    """Paillier; again with (1 + n)^m = 1 + mn and by decrypting."""
    n, m, r = 15, 2, 2
    while not s.default:
        n = s.choice((33, 35, 51, 65, 77, 85, 87, 91, 95))
        m, r = s.between(3, 14), s.between(2, 14)
        if math.gcd(r, n) == 1 and r != m:
            break
    g, n2 = n + 1, n * n

    def again() -> tuple[str, ...]:
        c = (1 + m * n) * power_by_steps(r, n, n2) % n2
        p = next(x for x in range(2, n) if n % x == 0)
        lam = math.lcm(p - 1, n // p - 1)
        share = [(power_by_steps(x, lam, n2) - 1) // n for x in (c, g)]
        plain = [x for x in range(n) if (share[1] * x - share[0]) % n == 0]
        return (str(c),) if plain == [m] else ()

    return Draft(
        f"Paillier encryption with $n = {n}$ and $g = {g}$: what is the ciphertext of $m = {m}$ "
        f"with the random value $r = {r}$?",
        (str(pow(g, m, n2) * pow(r, n, n2) % n2),),
        {
            "reduces modulo n": str(pow(g, m, n) * pow(r, n, n) % n),
            "forgets the random value": str(pow(g, m, n2)),
            "adds the two powers": str((pow(g, m, n2) + pow(r, n, n2)) % n2),
            "swaps m and r": str(pow(g, r, n2) * pow(m, n, n2) % n2),
            "raises r to m": str(pow(g, m, n2) * pow(r, m, n2) % n2),
            "takes the random part alone": str(pow(r, n, n2)),
        },
        again,
    )


_BROKEN = (
    "RSA",
    "ECDH",
    "DSA",
    "ECDSA",
    "Ed25519",
    "X25519",
    "ElGamal encryption over $\\mathbb{F}_p^*$",
    "Paillier encryption",
    "Schnorr signatures",
    "finite-field Diffie-Hellman",
    "Rabin encryption",
)
_SAFE = (
    "AES-256",
    "ML-KEM (a lattice scheme)",
    "SHA3-256",
    "HMAC-SHA-256",
    "ML-DSA (a lattice scheme)",
    "SLH-DSA (hash-based signatures)",
    "Classic McEliece",
    "ChaCha20",
    "XMSS (hash-based signatures)",
)
# The problem that each scheme rests on; Shor's algorithm solves the first two.
_RESTS_ON = {
    "factoring": "RSA, Paillier, Rabin",
    "discrete logarithm": "ECDH, DSA, ECDSA, Ed25519, X25519, ElGamal, Schnorr, finite-field",
    "lattice": "ML-KEM, ML-DSA",
    "decoding": "Classic",
    "unstructured search": "AES-256, SHA3-256, HMAC-SHA-256, SLH-DSA, ChaCha20, XMSS",
}


def _a10(s: Stream) -> Draft:
    """Schemes broken by Shor, several right; again from the problem each scheme rests on."""
    right, wrong = list(_BROKEN[:3]), list(_SAFE[:2])
    if not s.default:
        count = s.between(2, 4)
        right, wrong = s.shuffled(_BROKEN)[:count], s.shuffled(_SAFE)[: 5 - count]

    def again() -> tuple[str, ...]:
        problem = {x: k for k, names in _RESTS_ON.items() for x in names.split(", ")}
        shor = ("factoring", "discrete logarithm")
        return tuple(x for x in (*right, *wrong) if problem[x.split()[0]] in shor)

    return Draft(
        "Which of these schemes does Shor's algorithm break in polynomial time on a large, "
        "error-corrected quantum computer?",
        tuple(right),
        {f"thinks that Shor's algorithm breaks {x}": x for x in wrong},
        again,
        several=True,
    )


ITEMS: dict[str, Maker] = {
    "A01": _a01,
    "A02": _a02,
    "A03": _a03,
    "A04": _a04,
    "A05": _a05,
    "A06": _a06,
    "A07": _a07,
    "A08": _a08,
    "A09": _a09,
    "A10": _a10,
}
"""Item number -> function from a stream to a draft."""
