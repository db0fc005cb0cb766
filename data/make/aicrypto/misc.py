"""Ten items on hashing, sharing, information theory and the rest (label `misc`)."""

from __future__ import annotations

import base64
import hashlib
import heapq
import itertools
import math
import string
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from common import Draft, Maker, Stream, tenths
from routes import grover_steps, people_exactly


def people(days: int) -> int:
    """Return how many even draws from `days` values make a repeat at least as likely as not.

    Examples
    --------
    >>> people(365), people(65536)
    (23, 302)
    """
    different, count = 1.0, 0
    while different > 0.5:
        different *= 1 - count / days
        count += 1
    return count


def _x01(s: Stream) -> Draft:
    """Birthday bound; again by exact integers."""
    days = 365 if s.default else s.choice((100, 256, 500, 687, 1000, 1024, 4096, 10000, 65536))
    ask = (
        "What is the least number of people for which two share a birthday with probability at "
        "least 1/2 (365 days, all equally likely and independent)?"
        if days == 365
        else f"Hash values are drawn independently and evenly from {days} possible ones. What is the "
        "least number of draws for which two values are equal with probability at least 1/2?"
    )
    return Draft(
        ask,
        (str(people(days)),),
        {
            "asks for a match with one given person": str(
                math.ceil(math.log(2) / -math.log(1 - 1 / days))
            ),
            "takes half of the values": str(math.ceil(days / 2)),
            "takes the square root": str(math.ceil(math.sqrt(days))),
            "asks for certainty": str(days + 1),
            "stops one short": str(people(days) - 1),
            "takes twice the square root": str(math.ceil(2 * math.sqrt(days))),
        },
        lambda: (str(people_exactly(days)),),
    )


def _x02(s: Stream) -> Draft:
    """Shamir's sharing by Lagrange; again by trying every polynomial."""
    p, shares = 31, [(1, 12), (2, 4), (3, 28)]
    if not s.default:
        p = s.choice((17, 19, 23, 29, 31))
        a, b, c = (s.between(1, p - 1) for _ in range(3))
        xs = sorted(s.shuffled(range(1, 8))[:3])
        shares = [(x, (a + b * x + c * x * x) % p) for x in xs]

    def at(x: int, some: list[tuple[int, int]]) -> int:
        total = 0
        for i, y in some:
            others = [j for j, _ in some if j != i]
            total += (
                y * math.prod(x - j for j in others) * pow(math.prod(i - j for j in others), -1, p)
            )
        return total % p

    def again() -> tuple[str, ...]:
        every = itertools.product(range(p), repeat=3)
        return tuple(
            str(a)
            for a, b, c in every
            if all((a + b * x + c * x * x - y) % p == 0 for x, y in shares)
        )

    lead = (at(1, shares) + at(-1, shares) - 2 * at(0, shares)) * pow(2, -1, p) % p
    points = ", ".join(f"$({x}, {y})$" for x, y in shares)
    return Draft(
        f"Shamir's scheme with threshold 3 over GF({p}) gives the shares {points}, written as "
        "$(x, f(x))$. What is the secret $f(0)$?",
        (str(at(0, shares)),),
        {
            "uses two shares only": str(at(0, shares[:2])),
            "takes the next value": str(at(shares[-1][0] + 1, shares)),
            "takes the leading coefficient": str(lead),
            "adds the shares": str(sum(y for _, y in shares) % p),
            "takes f(-1)": str(at(-1, shares)),
            "gets the sign wrong": str(-at(0, shares) % p),
        },
        again,
    )


def _x03(s: Stream) -> Draft:
    """Password entropy; again by integer arithmetic."""
    n, size = (8, 62) if s.default else (s.between(6, 16), s.choice((10, 26, 36, 52, 62, 94)))
    bits = n * math.log2(size)
    return Draft(
        f"A password has {n} characters, each drawn independently and evenly from {size} "
        "characters. What is its entropy in bits, to one decimal?",
        (f"{bits:.1f} bits",),
        {
            "takes 8 bits a character": f"{8 * n}.0 bits",
            "swaps length and alphabet": f"{size * math.log2(n):.1f} bits",
            "multiplies before the logarithm": f"{math.log2(n * size):.1f} bits",
            "takes the natural logarithm": f"{n * math.log(size):.1f} bits",
            "forgets one character": f"{(n - 1) * math.log2(size):.1f} bits",
            "takes the decimal logarithm": f"{n * math.log10(size):.1f} bits",
        },
        lambda: (f"{tenths(size**n)} bits",),
    )


def _x04(s: Stream) -> Draft:
    """Lamport key; again by making one."""
    n = 256 if s.default else s.choice((128, 160, 192, 224, 256, 384, 512))
    ask = "private key" if s.default else s.choice(("private key", "signature"))
    whole = 2 * n * n // 8
    size = whole if ask == "private key" else whole // 2

    def again() -> tuple[str, ...]:
        key = [
            [hashlib.shake_128(bytes([b, i % 256])).digest(n // 8) for b in (0, 1)]
            for i in range(n)
        ]
        bits = [i % 3 % 2 for i in range(n)]
        parts = (
            list(itertools.chain(*key))
            if ask == "private key"
            else [key[i][b] for i, b in enumerate(bits)]
        )
        return (f"{len(b''.join(parts)):,} bytes",)

    return Draft(
        f"Lamport's one-time signature signs {n}-bit hash values; every secret string has {n} bits "
        f"as well. How many bytes does the {ask} have?",
        (f"{size:,} bytes",),
        {
            "mixes up private key and signature": f"{3 * whole // 2 - size:,} bytes",
            "gives bits as bytes": f"{8 * size:,} bytes",
            "counts the public key as well": f"{2 * whole:,} bytes",
            "counts strings": f"{size * 8 // n:,} bytes",
            "takes two strings in all": f"{2 * n // 8:,} bytes",
        },
        again,
    )


def _x05(s: Stream) -> Draft:
    """Merkle proof; again by making one and checking it."""
    depth = 10 if s.default else s.choice((4, 5, 6, 7, 8, 9, 11, 12))
    leaves = 2**depth

    def again() -> tuple[str, ...]:
        def node(x: bytes) -> bytes:
            return hashlib.sha256(x).digest()

        row = [node(i.to_bytes(2, "big")) for i in range(leaves)]
        at, proof, first = leaves // 3, [], row[leaves // 3]
        while len(row) > 1:
            proof.append((at % 2, row[at ^ 1]))
            row, at = [node(x + y) for x, y in zip(row[::2], row[1::2], strict=True)], at // 2
        for side, other in proof:
            first = node(other + first if side else first + other)
        return (str(len(proof)),) if first == row[0] else ()

    return Draft(
        f"A Merkle tree is a complete binary tree over {leaves:,} leaves. How many hash values must "
        "a proof contain that a given leaf belongs to a known root (leaf and root not counted)?",
        (str(depth),),
        {
            "counts the root": str(depth + 1),
            "leaves out the sibling of the leaf": str(depth - 1),
            "takes both children of every node": str(2 * depth),
            "takes all inner nodes": str(leaves - 1),
            "takes all other leaves and nodes": str(2 * leaves - 1),
            "takes the square root": str(math.isqrt(leaves)),
        },
        again,
    )


_STANDARD = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"


def _x06(s: Stream) -> Draft:
    """Base64 by groups of six bits; again by the standard library."""
    words = "cat sun map owl fog jar pin oak tea box salt iron moon lamp wolf"
    word = "key" if s.default else s.choice(words.split())

    def encode(text: str, alphabet: str = _STANDARD) -> str:
        bits = "".join(f"{byte:08b}" for byte in text.encode())
        bits += "0" * (-len(bits) % 6)
        out = "".join(alphabet[int(bits[i : i + 6], 2)] for i in range(0, len(bits), 6))
        return out + "=" * (-len(out) % 4)

    lower_first = string.ascii_lowercase + string.ascii_uppercase + string.digits + "+/"
    digits_first = string.digits + string.ascii_uppercase + string.ascii_lowercase + "+/"
    return Draft(
        f'What is the Base64 encoding of the ASCII text "{word}"?',
        (encode(word),),
        {
            "takes lower case first": encode(word, lower_first),
            "takes digits first": encode(word, digits_first),
            "encodes in hexadecimal": word.encode().hex(),
            "encodes in Base32": base64.b32encode(word.encode()).decode(),
            "takes the word in capitals": encode(word.upper()),
            "reads the word from the right": encode(word[::-1]),
        },
        lambda: (base64.b64encode(word.encode()).decode(),),
    )


def _x07(s: Stream) -> Draft:
    """Unicity distance; again by searching the length whose redundancy is nearest to the key."""
    bits, rest = Fraction("88.4"), Fraction("3.2")
    what = "a simple substitution on 26 letters ($\\log_2 26! \\approx 88.4$ bits)"
    while not s.default:
        what, bits = s.choice(
            (
                ("a simple substitution on 26 letters ($\\log_2 26! \\approx 88.4$ bits)", bits),
                ("a cipher with 56-bit keys", Fraction(56)),
                ("a cipher with 80-bit keys", Fraction(80)),
                ("a cipher with 128-bit keys", Fraction(128)),
                ("Playfair ($\\log_2 (25!/25) \\approx 79.0$ bits)", Fraction(79)),
            )
        )
        rest = Fraction(s.between(28, 37), 10)
        if abs(bits / rest - bits // rest - Fraction(1, 2)) > Fraction(1, 10):
            break
    value = round(bits / rest)
    per_letter = Fraction("4.7")

    def again() -> tuple[str, ...]:
        return (f"{min(range(1000), key=lambda n: abs(bits - n * rest))} letters",)

    return Draft(
        f"The plaintext language has a redundancy of {float(rest)} bits a letter (4.7 bits less the "
        f"entropy of a letter). What is the unicity distance of {what}, to the nearest letter?",
        (f"{value} letters",),
        {
            "divides by 4.7": f"{round(bits / per_letter)} letters",
            "divides by the entropy of a letter": f"{round(bits / (per_letter - rest))} letters",
            "multiplies": f"{round(bits * rest)} letters",
            "takes one bit a letter": f"{round(bits)} letters",
            "halves": f"{round(bits / rest / 2)} letters",
            "doubles": f"{round(2 * bits / rest)} letters",
        },
        again,
    )


def _x08(s: Stream) -> Draft:
    """Grover; again from the growth of the step count in a simulation."""
    n = 128 if s.default else s.choice((64, 80, 96, 112, 160, 192, 224, 256))
    target = "key of a block cipher" if s.default or s.below(2) else "preimage of a hash function"

    def again() -> tuple[str, ...]:
        # four more bits must multiply the steps by 2^(4 * slope)
        slope = round(math.log2(grover_steps(16) / grover_steps(12)) * 25) / 100
        return (f"$2^{{{round(n * slope)}}}$",)

    length = f"{n}-bit {target}" if "key" in target else f"{target} with {n}-bit output"
    return Draft(
        f"About how many evaluations does Grover's algorithm need to find a {length}?",
        (f"$2^{{{n // 2}}}$",),
        {
            "searches classically": f"$2^{{{n}}}$",
            "takes the classical mean": f"$2^{{{n - 1}}}$",
            "takes quantum collision search": f"$2^{{{n // 3}}}$",
            "takes the square root twice": f"$2^{{{n // 4}}}$",
            "expects a polynomial algorithm": f"${n}^2$",
        },
        again,
    )


_DYADIC = (
    (4, 4, 8, 8, 8, 8),
    (2, 4, 8, 8),
    (2, 8, 8, 8, 8),
    (2, 4, 8, 16, 16),
    (4, 4, 4, 8, 8),
    (2, 8, 8, 8, 16, 16),
    (4, 4, 4, 8, 16, 16),
)


def _x09(s: Stream) -> Draft:
    """Shannon entropy; again as the mean code length of a Huffman code (all powers of 1/2)."""
    parts = (2, 4, 4) if s.default else s.choice(_DYADIC)
    entropy = sum(math.log2(k) / k for k in parts)

    def again() -> tuple[str, ...]:
        heap, mean = [Fraction(1, k) for k in parts], Fraction(0)
        heapq.heapify(heap)
        while len(heap) > 1:
            both = heapq.heappop(heap) + heapq.heappop(heap)
            mean += both
            heapq.heappush(heap, both)
        return (f"{float(mean):.6g} bits",)

    def text(x: float) -> str:
        return f"{round(x, 3):g} bit" + ("" if x == 1 else "s")

    listed = ", ".join(f"1/{k}" for k in parts)
    return Draft(
        f"A source emits symbols with the probabilities {listed}. What is its Shannon entropy?",
        (f"{entropy:.6g} bits",),
        {
            "takes equal probabilities": text(math.log2(len(parts))),
            "takes the min-entropy": text(math.log2(min(parts))),
            "takes the natural logarithm": text(entropy * math.log(2)),
            "takes the collision entropy": text(-math.log2(sum(1 / k**2 for k in parts))),
            "does not weigh": text(sum(math.log2(k) for k in parts) / len(parts)),
            "adds without weights": text(sum(math.log2(k) for k in parts)),
        },
        again,
    )


# A commitment is its description and, in toy size, a function of message and randomness with the
# ranges of both. Groups: 2 and 3 generate the subgroup of order q = 11 modulo 23; n = 33, e = 3 is
# an RSA key, 4 a square and 32 a non-square of Jacobi symbol 1 modulo 33; n = 15 for Paillier.
Commit = tuple[str, Callable[[int, int], object], range | list[int], range | list[int]]
_UNITS33 = [x for x in range(33) if math.gcd(x, 33) == 1]
_HIDING: tuple[Commit, ...] = (
    (
        "Pedersen: $g^m h^r$ in a group of prime order $q$, $r$ uniform in $\\mathbb{Z}_q$, $h \\ne 1$",
        lambda m, r: pow(2, m, 23) * pow(3, r, 23) % 23,
        range(11),
        range(11),
    ),
    (
        (
            "$v^m r^e \\bmod n$ with $m < e$, where $(n, e)$ is an RSA key and $r$ uniform in "
            "$\\mathbb{Z}_n^*$"
        ),
        lambda m, r: pow(7, m, 33) * pow(r, 3, 33) % 33,
        range(3),
        _UNITS33,
    ),
    (
        (
            "for a bit $m$: $y^m r^2 \\bmod n$ with a fixed square $y$ and $r$ uniform in "
            "$\\mathbb{Z}_n^*$"
        ),
        lambda m, r: pow(4, m, 33) * r * r % 33,
        range(2),
        _UNITS33,
    ),
    (
        "$m + r \\bmod q$ with $r$ uniform in $\\mathbb{Z}_q$ (which binds to nothing)",
        lambda m, r: (m + r) % 11,
        range(11),
        range(11),
    ),
)
_SHOWING: tuple[Commit, ...] = (
    (
        "ElGamal: $(g^r, g^m h^r)$ in a group of prime order $q$, $r$ uniform in $\\mathbb{Z}_q$",
        lambda m, r: (pow(2, r, 23), pow(2, m, 23) * pow(3, r, 23) % 23),
        range(11),
        range(11),
    ),
    (
        "$g^m$ in a group of prime order $q$, without randomness",
        lambda m, _: pow(2, m, 23),
        range(11),
        range(11),
    ),
    (
        (
            "for a bit $m$: $y^m r^2 \\bmod n$ with a fixed non-square $y$ of Jacobi symbol 1 and $r$ "
            "uniform in $\\mathbb{Z}_n^*$ (Goldwasser-Micali)"
        ),
        lambda m, r: pow(32, m, 33) * r * r % 33,
        range(2),
        _UNITS33,
    ),
    (
        "$(1 + n)^m r^n \\bmod n^2$ with $r$ uniform in $\\mathbb{Z}_n^*$ (Paillier)",
        lambda m, r: (1 + 15 * m) * pow(r, 15, 225) % 225,
        range(15),
        [1, 2, 4, 7, 8, 11, 13, 14],
    ),
    (
        (
            "the pair $(f(r), m \\oplus b(r))$ for a bit $m$, with a one-way permutation $f$ and its "
            "hard-core bit $b$"
        ),
        lambda m, r: (pow(r, 3, 33), m ^ r & 1),
        range(2),
        range(33),
    ),
)


def _x10(s: Stream) -> Draft:
    """Perfectly hiding commitments, several right; again by listing them in toy groups."""
    right, wrong = list(_HIDING[:2]), list(_SHOWING[:3])
    if not s.default:
        count = s.between(2, 3)
        right, wrong = s.shuffled(_HIDING)[:count], s.shuffled(_SHOWING)[: 5 - count]

    def hides(commit: Commit) -> bool:
        _, f, messages, coins = commit
        counts = [Counter(f(m, r) for r in coins) for m in messages]
        return all(count == counts[0] for count in counts)

    return Draft(
        "Which of these ways to commit to $m$ are perfectly hiding, that is, the commitment has the "
        "same distribution for every $m$?",
        tuple(c[0] for c in right),
        {f"shows m to unlimited computing: {c[0]}": c[0] for c in wrong},
        lambda: tuple(c[0] for c in (*right, *wrong) if hides(c)),
        several=True,
    )


ITEMS: dict[str, Maker] = {
    "X01": _x01,
    "X02": _x02,
    "X03": _x03,
    "X04": _x04,
    "X05": _x05,
    "X06": _x06,
    "X07": _x07,
    "X08": _x08,
    "X09": _x09,
    "X10": _x10,
}
"""Item number -> function from a stream to a draft."""
