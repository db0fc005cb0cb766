"""Ten items on classical ciphers (label `classic`)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

from common import Draft, Maker, Stream, phi, tenths

ABC = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORDS = (
    "ALGORITHM BLACKSMITH CARAVAN DIPLOMAT ELEPHANT FOUNTAIN GARDENER HARBOUR ISLAND JOURNEY "
    "KINGDOM LANTERN MOUNTAIN NOTEBOOK ORCHARD PASSPORT QUARTER RAILWAY SATELLITE TELEGRAM"
)
_FOUR = "BOAT CALM DUSK FERN GLOW HAWK IRON LAMP MOON NEST PLUM SAND"
_KEYS = "BRICK CLOUD FROST GRAPE HOUSE LIGHT MONEY NORTH PLANT QUEST STORM TIGER"
_PHRASES = (
    "SENDMOREWATERNOW WAITBEHINDTHEMILL THECARGOISONBOARD BURNTHELETTERATONCE "
    "RETURNBYTHEOLDROAD KEEPTHELANTERNLIT OURFRIENDISLATE HIDETHEMAPTONIGHT"
)
_REPEATING = (
    "TENNESSEE BOOKKEEPER COMMITTEE ASSESSMENT BANANAS CARAVANS POSSESSION SUCCESS ADDRESSEES "
    "COFFEEROOM"
)


def _numbers(text: str) -> list[int]:
    return [ABC.index(letter) for letter in text]


def _letters(numbers: list[int]) -> str:
    return "".join(ABC[n % 26] for n in numbers)


def _c01(s: Stream) -> Draft:
    """Caesar; again by a rotated alphabet."""
    word, k = ("CRYPTOGRAPHY", 7) if s.default else (s.choice(_WORDS.split()), s.between(3, 23))
    xs = _numbers(word)
    return Draft(
        f"A Caesar cipher moves every letter $k = {k}$ places forward in the alphabet A to Z and "
        f"wraps around after Z. What is the encryption of {word}?",
        (_letters([x + k for x in xs]),),
        {
            "decrypts instead of encrypts": _letters([x - k for x in xs]),
            "counts the letter itself as the first place": _letters([x + k - 1 for x in xs]),
            "starts the alphabet at 1 on one side only": _letters([x + k + 1 for x in xs]),
            "mirrors the alphabet": _letters([k - x for x in xs]),
            "does not wrap": _letters([x + k if x + k < 26 else x for x in xs]),
        },
        lambda: (word.translate(str.maketrans(ABC, ABC[k:] + ABC[:k])),),
    )


def _c02(s: Stream) -> Draft:
    """Vigenère; again by looking up the square of rotated alphabets."""
    text, key = (
        ("ATTACKATDAWN", "LEMON")
        if s.default
        else (s.choice(_PHRASES.split()), s.choice(_KEYS.split()))
    )
    xs, ks = _numbers(text), _numbers(key)
    pairs = list(zip(xs, itertools.cycle(ks), strict=False))
    square = [ABC[i:] + ABC[:i] for i in range(26)]
    return Draft(
        f"A Vigenère cipher (A = 0, ..., Z = 25, key letters added) uses the key {key}, repeated "
        f"as often as needed. What is the encryption of {text}?",
        (_letters([x + k for x, k in pairs]),),
        {
            "decrypts instead of encrypts": _letters([x - k for x, k in pairs]),
            "takes key minus text (Beaufort)": _letters([k - x for x, k in pairs]),
            "counts A as 1": _letters([x + k + 1 for x, k in pairs]),
            "goes on with the text as key (autokey)": _letters(
                [x + k for x, k in zip(xs, ks + xs, strict=False)]
            ),
            "starts at the second key letter": _letters(
                [x + k for x, k in zip(xs, itertools.cycle(ks[1:] + ks[:1]), strict=False)]
            ),
        },
        lambda: ("".join(square[k][x] for x, k in pairs),),
    )


def _c03(s: Stream) -> Draft:
    """Affine cipher; again by a table that is filled by stepping, without a product."""
    if s.default:
        word, a, b = "AFFINE", 5, 8
    else:
        word, a, b = (
            s.choice(_WORDS.split()),
            s.choice((3, 5, 7, 9, 11, 15, 17, 19)),
            s.between(2, 24),
        )
    xs = _numbers(word)
    back = pow(a, -1, 26)

    def again() -> tuple[str, ...]:
        table, position = {}, b
        for letter in ABC:
            table[letter] = ABC[position]
            position = (position + a) % 26
        return ("".join(table[letter] for letter in word),)

    return Draft(
        f"An affine cipher maps the letter number $x$ (A = 0, ..., Z = 25) to ${a}x + {b}$ modulo "
        f"26. What is the encryption of {word}?",
        (_letters([a * x + b for x in xs]),),
        {
            "swaps multiplier and shift": _letters([b * x + a for x in xs]),
            "adds before it multiplies": _letters([a * (x + b) for x in xs]),
            "decrypts instead of encrypts": _letters([back * (x - b) for x in xs]),
            "counts A as 1": _letters([a * (x + 1) + b - 1 for x in xs]),
            "only shifts": _letters([x + b for x in xs]),
            "forgets the shift": _letters([a * x for x in xs]),
        },
        again,
    )


def _c04(s: Stream) -> Draft:
    """Inverse multiplier; again by trying all 26."""
    a = 5 if s.default else s.choice((3, 7, 9, 11, 15, 17, 19, 21, 23))
    inverse = pow(a, -1, 26)
    return Draft(
        f"Letters are encrypted by $x \\mapsto {a}x + b$ modulo 26. By which multiplier between 1 "
        f"and 25 must $y - b$ be multiplied modulo 26 to decrypt?",
        (str(inverse),),
        {
            "takes the multiplier itself": str(a),
            "takes the negative": str(26 - a),
            "gets the sign of Euclid's coefficient wrong": str(26 - inverse),
            "inverts modulo 13 only": str(pow(a, -1, 13)) if a != 13 else "13",
            "divides 26 and rounds": str(26 // a),
            "inverts modulo 25": str(pow(a, -1, 25)) if a % 5 else "25",
            "inverts modulo 27": str(pow(a, -1, 27)) if a % 3 else "27",
            "squares": str(a * a % 26),
        },
        lambda: tuple(str(y) for y in range(26) if a * y % 26 == 1),
    )


def affine_keys(n: int) -> int:
    """Return the number of affine ciphers on an alphabet of n letters, n times phi(n).

    Examples
    --------
    >>> affine_keys(26), affine_keys(29)
    (312, 812)
    """
    return n * phi(n)


def _c05(s: Stream) -> Draft:
    """Key count of the affine cipher; again by testing every multiplier for a bijection."""
    n = 26 if s.default else s.choice((24, 27, 28, 29, 30, 31, 32, 33, 35, 36, 37, 38, 40))
    units = phi(n)
    return Draft(
        f"An alphabet has {n} letters. How many keys $(a, b)$ with $0 \\le a, b < {n}$ make "
        f"$x \\mapsto ax + b$ modulo {n} a cipher that can be decrypted? (The identity counts.)",
        (str(affine_keys(n)),),
        {
            "takes every multiplier": str(n * n),
            "takes every multiplier but 0": str(n * (n - 1)),
            "leaves out the shift 0": str(units * (n - 1)),
            "leaves out the identity": str(n * units - 1),
            "forgets the shift": str(units),
            "takes units for the shift too": str(units * units),
        },
        lambda: (str(sum(n for a in range(n) if len({a * x % n for x in range(n)}) == n)),),
    )


def _rail(i: int, rails: int) -> int:
    """Return the rail on which the letter at position i comes to lie."""
    return min(i % (2 * rails - 2), -i % (2 * rails - 2))


def _zigzag(text: str, rails: int) -> list[int]:
    """Return the positions of the text in the order in which a rail fence reads them."""
    return sorted(range(len(text)), key=lambda i: (_rail(i, rails), i))


def _c06(s: Stream) -> Draft:
    """Rail fence; again by walking up and down over lists."""
    text, rails = (
        ("MEETATTHEBRIDGE", 3) if s.default else (s.choice(_PHRASES.split()), s.between(3, 5))
    )
    order = _zigzag(text, rails)

    def again() -> tuple[str, ...]:
        rows: list[list[str]] = [[] for _ in range(rails)]
        row, step = 0, 1
        for letter in text:
            rows[row].append(letter)
            if not 0 <= row + step < rails:
                step = -step
            row += step
        return ("".join("".join(r) for r in rows),)

    return Draft(
        f"A rail fence cipher writes the text in a zigzag over {rails} rails, starting at the top, "
        f"and reads the rails from top to bottom. What is the encryption of {text}?",
        ("".join(text[i] for i in order),),
        {
            "writes columns, no zigzag": "".join(text[i::rails] for i in range(rails)),
            "uses one rail too few": "".join(text[i] for i in _zigzag(text, rails - 1)),
            "uses one rail too many": "".join(text[i] for i in _zigzag(text, rails + 1)),
            "decrypts instead of encrypts": "".join(text[order.index(i)] for i in range(len(text))),
            "reads the rails from bottom to top": "".join(
                text[i] for i in sorted(order, key=lambda i: (-_rail(i, rails), i))
            ),
        },
        again,
    )


def _c07(s: Stream) -> Draft:
    """Key size of a substitution; again by integer arithmetic on the factorial."""
    n = 26 if s.default else s.choice([k for k in range(18, 41) if k != 26])
    bits = sum(math.log2(k) for k in range(2, n + 1))
    return Draft(
        f"The key of a simple substitution cipher is a permutation of an alphabet of {n} letters. "
        "How large is the key space in bits, to one decimal?",
        (f"{bits:.1f} bits",),
        {
            "lets letters repeat": f"{n * math.log2(n):.1f} bits",
            "takes the natural logarithm": f"{bits * math.log(2):.1f} bits",
            "takes the decimal logarithm": f"{bits * math.log10(2):.1f} bits",
            "forgets one letter of the alphabet": f"{bits - math.log2(n):.1f} bits",
            "counts pairs of letters only": f"{math.log2(n * (n - 1) / 2):.1f} bits",
            "takes one bit a letter": f"{n:.1f} bits",
        },
        lambda: (f"{tenths(math.factorial(n))} bits",),
    )


def _c08(s: Stream) -> Draft:
    """Hill cipher; again by searching the pair of letters that decrypts to the text."""
    word, (a, b, c, d) = "HELP", (3, 3, 2, 5)
    if not s.default:
        word = s.choice(_FOUR.split())
        while True:
            a, b, c, d = (s.between(1, 15) for _ in range(4))
            if b != c and math.gcd(a * d - b * c, 26) == 1:
                break
    inverse = pow(a * d - b * c, -1, 26)

    def apply(m: tuple[int, int, int, int], text: str = word, offset: int = 0) -> str:
        out: list[int] = []
        for x, y in zip(*[iter(n + offset for n in _numbers(text))] * 2, strict=True):
            out += [m[0] * x + m[1] * y - offset, m[2] * x + m[3] * y - offset]
        return _letters(out)

    back = (inverse * d, -inverse * b, -inverse * c, inverse * a)
    crypt = apply((a, b, c, d))
    swapped = "".join(word[i] for i in (1, 0, 3, 2))
    halves = "".join(word[i] for i in (0, 2, 1, 3))

    def again() -> tuple[str, ...]:
        two = ["".join(pair) for pair in itertools.product(ABC, repeat=2)]
        parts = [[t for t in two if apply(back, t) == word[i : i + 2]] for i in (0, 2)]
        return tuple(x + y for x, y in itertools.product(*parts))

    return Draft(
        "A Hill cipher (A = 0, ..., Z = 25) multiplies each pair of letters, written as a column "
        f"vector, by $\\begin{{pmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{pmatrix}}$ modulo 26. "
        f"What is the encryption of {word}?",
        (crypt,),
        {
            "multiplies row vectors": apply((a, c, b, d)),
            "decrypts instead of encrypts": apply(back),
            "counts A as 1": apply((a, b, c, d), offset=1),
            "swaps the letters of each pair": apply((a, b, c, d), swapped),
            "pairs letters of the two halves": apply((a, b, c, d), halves),
            "swaps the two rows": apply((c, d, a, b)),
        },
        again,
    )


def _c09(s: Stream) -> Draft:
    """Index of coincidence; again by looking at every pair of places."""
    word = "MISSISSIPPI" if s.default else s.choice(_REPEATING.split())
    counts, n = Counter(word), len(word)
    same = sum(k * (k - 1) for k in counts.values())

    def again() -> tuple[str, ...]:
        pairs = [x == y for x, y in itertools.combinations(word, 2)]
        return (str(Fraction(sum(pairs), len(pairs))),)

    return Draft(
        f"What is the index of coincidence of {word}, that is the probability that two letters "
        "taken from different places of the word are equal (not normalised)?",
        (str(Fraction(same, n * (n - 1))),),
        {
            "draws with replacement": str(Fraction(sum(k * k for k in counts.values()), n * n)),
            "divides by the square of the length": str(Fraction(same, n * n)),
            "counts each pair once above and twice below": str(Fraction(same, 2 * n * (n - 1))),
            "counts distinct letters": str(Fraction(len(counts), n)),
            "takes the commonest letter": str(Fraction(max(counts.values()), n)),
        },
        again,
    )


def _c10(s: Stream) -> Draft:
    """Columnar transposition; again by sorting single places."""
    text, key = (
        ("ATTACKATDAWN", "ZEBRA")
        if s.default
        else (s.choice(_PHRASES.split()), s.choice(_KEYS.split()))
    )
    width = len(key)
    order = sorted(range(width), key=lambda i: key[i])
    rank = [order.index(i) for i in range(width)]

    def read(columns: list[int], plain: str = text) -> str:
        return "".join(plain[i::width] for i in columns)

    return Draft(
        f"A columnar transposition writes the text in rows under the key {key} (the last row stays "
        "incomplete, no padding) and reads the columns top to bottom in the alphabetical order of "
        f"their key letters. What is the encryption of {text}?",
        (read(order),),
        {
            "reads the columns from left to right": read(list(range(width))),
            "reads in reverse alphabetical order": read(order[::-1]),
            "takes the rank of a column for its place": read(rank),
            "fills the last row with X": read(order, text + "X" * (-len(text) % width)),
            "reads the columns from bottom to top": "".join(text[i::width][::-1] for i in order),
        },
        lambda: ("".join(text[i] for i in sorted(range(len(text)), key=lambda i: key[i % width])),),
    )


ITEMS: dict[str, Maker] = {
    "C01": _c01,
    "C02": _c02,
    "C03": _c03,
    "C04": _c04,
    "C05": _c05,
    "C06": _c06,
    "C07": _c07,
    "C08": _c08,
    "C09": _c09,
    "C10": _c10,
}
"""Item number -> function from a stream to a draft."""
