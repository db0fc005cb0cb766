"""Ten items on symmetric ciphers and hash functions (label `symmetric`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from common import Draft, Maker, Stream, factor
from routes import count_compressions, lfsr, powers_of_3, run_mode


def _s01(s: Stream) -> Draft:
    """Sizes of AES; again from the table in FIPS 197."""
    ask, size = "rounds", 192
    if not s.default:
        ask, size = s.choice(("rounds", "round keys", "words")), s.choice((128, 192, 256))
    rounds = size // 32 + 6
    value = {"rounds": rounds, "round keys": rounds + 1, "words": 4 * (rounds + 1)}[ask]
    text = {
        "rounds": f"How many rounds does AES with a {size}-bit key have (the last, shorter one "
        "included)?",
        "round keys": f"How many 128-bit round keys does AES with a {size}-bit key use (the one "
        "added before the first round included)?",
        "words": f"How many 32-bit words does the expanded key of AES with a {size}-bit key have?",
    }[ask]
    scale = 4 if ask == "words" else 1
    table = {128: (10, 11, 44), 192: (12, 13, 52), 256: (14, 15, 60)}
    return Draft(
        text,
        (str(value),),
        {
            **{f"takes AES-{k}": str(value + (k - size) // 32 * scale) for k in table},
            "counts the first key addition too": str(value + scale),
            "leaves out the last round": str(value - scale),
            "takes the rounds of DES": str(16 * scale),
        },
        lambda: (str(table[size][("rounds", "round keys", "words").index(ask)]),),
    )


def _s02(s: Stream) -> Draft:
    """Error propagation; again by flipping the bit in an experiment with a toy cipher."""
    mode, n, i = "CBC", 9, 3
    if not s.default:
        mode, n = s.choice(("ECB", "CBC", "CFB", "OFB", "CTR")), s.between(9, 14)
        i = s.between(3, n - 4)

    def again() -> tuple[str, ...]:
        plain = list(range(100, 100 + n))
        crypt = run_mode(mode, 7, plain)
        crypt[i - 1] ^= 1 << 20
        got = run_mode(mode, 7, crypt, decrypt=True)
        return (str(sum(x != y for x, y in zip(plain, got, strict=True))),)

    note = " (full-block feedback)" if mode == "CFB" else ""
    return Draft(
        f"A message of {n} full blocks is encrypted in {mode} mode{note}. On the way one bit of "
        f"ciphertext block {i} (counted from 1) is flipped. How many plaintext blocks differ "
        "from the original after decryption?",
        ("2" if mode in ("CBC", "CFB") else "1",),
        {
            "forgets the chaining": "1",
            "thinks of chaining": "2",
            "adds one more block": "3",
            "expects an error that never ends": str(n - i + 1),
            "counts the blocks before": str(i + 1),
            "takes the whole message": str(n),
            "expects the mode to correct it": "0",
        },
        again,
    )


# Primitive polynomials over GF(2), as bit masks (Lidl and Niederreiter, Finite Fields, table D).
_PRIMITIVE = {4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0b100011101}


def _runs(bits: list[int], symbol: int, length: int) -> int:
    """Count the runs of a symbol with exactly this length, the period closed to a ring."""
    n, want = len(bits), [1 - symbol, *[symbol] * length, 1 - symbol]
    return sum([bits[(i + j) % n] for j in range(length + 2)] == want for i in range(n))


def _s03(s: Stream) -> Draft:
    """Runs in an m-sequence; again by counting them in the output of a register."""
    n, symbol, k = 5, 1, 4
    if not s.default:
        n, symbol = s.between(4, 8), s.below(2)
        k = s.between(2, n)

    def runs(bit: int, length: int) -> int:
        if length >= n - 1:
            return int(length == (n if bit else n - 1))
        return int(2 ** (n - 2 - length))

    return Draft(
        f"How many runs of exactly {k} {'ones' if symbol else 'zeros'} does one period of a binary "
        f"m-sequence of degree {n} have? (The period is closed to a ring; a run is maximal.)",
        (str(runs(symbol, k)),),
        {
            "takes the other symbol": str(runs(1 - symbol, k)),
            "counts windows instead of runs": str(2 ** (n - k)),
            "counts both symbols": str(2 ** max(n - 1 - k, 0)),
            "counts all runs": str(2 ** (n - 1)),
            "counts all runs of the symbol": str(2 ** (n - 2)),
            "takes the next shorter run": str(runs(symbol, k - 1)),
            "halves once too often": str(2 ** max(n - 3 - k, 0)),
        },
        lambda: (str(_runs(lfsr(_PRIMITIVE[n]), symbol, k)),),
    )


def _latex(poly: int) -> str:
    powers = [i for i in range(poly.bit_length() - 1, -1, -1) if poly >> i & 1]
    return " + ".join("1" if i == 0 else "x" if i == 1 else f"x^{{{i}}}" for i in powers)


def _times(x: int, y: int, poly: int) -> int:
    """Multiply two polynomials over GF(2), reduced modulo poly."""
    out, degree = 0, poly.bit_length() - 1
    while y:
        out ^= x if y & 1 else 0
        x <<= 1
        x ^= poly if x >> degree else 0
        y >>= 1
    return out


def _order_of_x(poly: int) -> int:
    """Return the order of x modulo an irreducible polynomial, from the divisors of 2^n - 1."""
    order = (1 << (poly.bit_length() - 1)) - 1
    for p, e in factor(order).items():
        for _ in range(e):
            power = 1
            for bit in f"{order // p:b}":
                power = _times(power, power, poly)
                power = _times(power, 2, poly) if bit == "1" else power
            if power == 1:
                order //= p
    return order


def _s04(s: Stream) -> Draft:
    """Period of an LFSR; again by running it."""
    others = (0b11111, 0b1001001, 0b1010111, 0b100011011, 0b101001101, 0b100011101, 0b1101101)
    poly = 0b10011 if s.default else s.choice((*others, 0b101001, 0b1000011, 0b10001001, 0b111101))
    n, period = poly.bit_length() - 1, _order_of_x(poly)
    return Draft(
        f"A linear feedback shift register has the irreducible feedback polynomial "
        f"${_latex(poly)}$ over GF(2) and starts in a state that is not zero. What is the period "
        "of its output?",
        (str(period),),
        {
            "counts the zero state": str(2**n),
            "takes the polynomial as primitive": str(2**n - 1),
            "takes a third of the longest period": str((2**n - 1) // 3),
            "takes the degree": str(n),
            "takes half": str(2 ** (n - 1)),
            "takes the degree plus one": str(n + 1),
            "leaves out the start state": str(period - 1),
        },
        lambda: (str(len(lfsr(poly))),),
    )


def _s05(s: Stream) -> Draft:
    """Product in the AES field; again by logarithms to the base 03."""
    x, y = (0x57, 0x83) if s.default else (s.between(0x20, 0xFF), s.between(0x20, 0xFF))
    plain = 0
    for i in range(8):
        plain ^= (x << i) if y >> i & 1 else 0

    def again() -> tuple[str, ...]:
        powers = powers_of_3()
        return (f"{powers[(powers.index(x) + powers.index(y)) % 255]:02x}",)

    return Draft(
        "What is the product of the bytes "
        f"{x:02x} and {y:02x} (hexadecimal) in the AES field GF($2^8$) with the polynomial "
        "$x^8 + x^4 + x^3 + x + 1$?",
        (f"{_times(x, y, 0x11B):02x}",),
        {
            "multiplies integers modulo 256": f"{x * y % 256:02x}",
            "adds instead of multiplying": f"{x ^ y:02x}",
            "cuts the product instead of reducing it": f"{plain & 0xFF:02x}",
            "reduces by another polynomial": f"{_times(x, y, 0x11D):02x}",
            "takes the bitwise and": f"{x & y:02x}",
            "multiplies integers modulo 257": f"{x * y % 257 % 256:02x}",
        },
        again,
    )


def _affine(x: int, constant: int = 0x63) -> int:
    """Apply the affine map of the AES S-box: five rotations added up, and a constant."""
    out = constant
    for r in range(5):
        out ^= (x << r | x >> (8 - r)) & 0xFF
    return out


def _s06(s: Stream) -> Draft:
    """Inverse and S-box; again by search, and bit by bit as FIPS 197 writes the map."""
    x = 0x53 if s.default else s.between(2, 0xFF)

    def invert(poly: int) -> int:
        out = 1
        for _ in range(254):
            out = _times(out, x, poly)
        return out

    def both(inverse: int, box: int) -> str:
        return f"inverse {inverse:02x}, S-box {box:02x}"

    def again() -> tuple[str, ...]:
        powers = powers_of_3()
        b = next(y for y in powers if (powers.index(x) + powers.index(y)) % 255 == 0)
        bits = [
            (sum(b >> (i + j) % 8 & 1 for j in (0, 4, 5, 6, 7)) + (0x63 >> i & 1)) % 2
            for i in range(8)
        ]
        return (both(b, sum(bit << i for i, bit in enumerate(bits))),)

    y = invert(0x11B)
    return Draft(
        f"What are the inverse of the byte {x:02x} (hexadecimal) in the AES field GF($2^8$) and "
        f"the value of the AES S-box at {x:02x}?",
        (both(y, _affine(y)),),
        {
            "maps the byte, not its inverse": both(y, _affine(x)),
            "forgets the constant 63": both(y, _affine(y, 0)),
            "reduces by another polynomial": both(invert(0x11D), _affine(invert(0x11D))),
            "swaps the two": both(_affine(y), y),
            "inverts modulo 257": both(pow(x, -1, 257) % 256, _affine(pow(x, -1, 257) % 256)),
        },
        again,
    )


def sha256_blocks(length: int) -> int:
    """Return the number of 64-byte blocks that SHA-256 hashes for a message of `length` bytes.

    Source: FIPS 180-4, 5.1.1: one byte 80, zeros, and eight bytes of length are added.

    Examples
    --------
    >>> [sha256_blocks(n) for n in (55, 56, 119, 120)]
    [1, 2, 2, 3]
    """
    return (length + 9 + 63) // 64


def _s07(s: Stream) -> Draft:
    """SHA-256 blocks; again by counting compressions in a run that hashlib confirms."""
    length = 56 if s.default else 64 * s.between(1, 6) + s.choice((-10, -9, -8, -1, 0, 20, 54))
    blocks = sha256_blocks(length)
    return Draft(
        f"How many 64-byte blocks does SHA-256 process for a message of {length} bytes, padding "
        "included?",
        (str(blocks),),
        {
            "forgets the padding": str(math.ceil(length / 64)),
            "always adds a padding block": str(math.ceil(length / 64) + 1),
            "adds a block for the length": str(blocks + 1),
            "takes blocks of 32 bytes": str(math.ceil((length + 9) / 32)),
            "takes blocks of 16 bytes": str(math.ceil((length + 9) / 16)),
            "counts words of 32 bits": str(math.ceil(length / 4)),
            "takes the blocks of SHA-512": str(math.ceil((length + 17) / 128)),
        },
        lambda: (str(count_compressions(bytes(length))),),
    )


def _s08(s: Stream) -> Draft:
    """Equal blocks under ECB; again by encrypting with a toy cipher."""
    row = "ABAACB"
    if not s.default:
        row = "".join(s.shuffled("AAABBCCDDE"[: s.between(7, 10)]))
    counts = [row.count(x) for x in sorted(set(row))]
    changes = 1 + sum(x != y for x, y in itertools.pairwise(row))
    return Draft(
        f"A message has the blocks {' '.join(row)}, where equal letters stand for equal 16-byte "
        "blocks. It is encrypted with AES in ECB mode without padding. How many different "
        "ciphertext blocks appear?",
        (str(len(counts)),),
        {
            "takes every block as different": str(len(row)),
            "merges neighbours only": str(changes),
            "counts blocks that come once": str(counts.count(1)),
            "counts blocks that come again": str(sum(k > 1 for k in counts)),
            "counts repeats": str(len(row) - len(counts)),
            "counts equal pairs": str(sum(k * (k - 1) // 2 for k in counts)),
        },
        lambda: (str(len(set(run_mode("ECB", 0, [ord(x) for x in row])))),),
    )


_FIVE = "APPLE BREAD CHAIR DREAM EAGLE FLUTE GRASS HONEY JUICE KNIFE LEMON MUSIC OCEAN"


def _s09(s: Stream) -> Draft:
    """Exclusive or; again on whole integers."""
    one, two = ("HELLO", "WORLD") if s.default else s.shuffled(_FIVE.split())[:2]
    pairs = list(zip(one.encode(), two.encode(), strict=True))

    def text(op: Callable[[int, int], int]) -> str:
        return bytes(op(x, y) % 256 for x, y in pairs).hex()

    def again() -> tuple[str, ...]:
        x, y = (int.from_bytes(word.encode(), "big") for word in (one, two))
        return (f"{x ^ y:010x}",)

    return Draft(
        f"What is the exclusive or of the ASCII strings {one} and {two}, byte by byte, in "
        "hexadecimal?",
        (text(lambda x, y: x ^ y),),
        {
            "numbers the letters from 0": text(lambda x, y: (x - 65) ^ (y - 65)),
            "takes or": text(lambda x, y: x | y),
            "takes and": text(lambda x, y: x & y),
            "adds modulo 256": text(lambda x, y: x + y),
            "inverts the result": text(lambda x, y: ~(x ^ y)),
            "turns the second word round": bytes(
                x ^ y for x, y in zip(one.encode(), two.encode()[::-1], strict=True)
            ).hex(),
        },
        again,
    )


def _streams(mode: str) -> bool:
    """Whether a change of one plaintext block comes out of that block unchanged."""
    one, two = run_mode(mode, 7, [1, 2, 3, 4]), run_mode(mode, 7, [1, 2, 3, 4 ^ 9])
    return one[3] ^ two[3] == 9


def _free(mode: str) -> bool:
    """Whether the keystream is the same for two plaintexts of the same length."""
    texts = [1, 2, 3, 4], [5, 6, 7, 8]
    keys = [[p ^ c for p, c in zip(t, run_mode(mode, 7, t), strict=True)] for t in texts]
    return keys[0] == keys[1]


def _recovers(mode: str) -> bool:
    """Whether the last block still decrypts after a ciphertext block was lost."""
    crypt = run_mode(mode, 7, [1, 2, 3, 4, 5])
    return run_mode(mode, 7, crypt[:1] + crypt[2:], decrypt=True)[-1] == 5


def _spreads(mode: str) -> bool:
    """Whether a change of the first plaintext block changes all later ciphertext blocks."""
    one, two = run_mode(mode, 7, [1, 2, 3, 4]), run_mode(mode, 7, [9, 2, 3, 4])
    return all(x != y for x, y in zip(one, two, strict=True))


_MODES: list[tuple[str, tuple[str, ...], Callable[[str], bool]]] = [
    (
        (
            "turn a block cipher into a stream cipher, so that each ciphertext block is the plaintext "
            "block xor a keystream block and no padding is needed"
        ),
        ("CTR", "OFB", "CFB"),
        _streams,
    ),
    (
        "make a keystream that depends on key and initial value only, not on the plaintext",
        ("CTR", "OFB"),
        _free,
    ),
    (
        (
            "recover by themselves when one whole ciphertext block is lost on the way, so that all "
            "blocks after the next one decrypt correctly"
        ),
        ("ECB", "CBC", "CFB"),
        _recovers,
    ),
    (
        (
            "let a change of the first plaintext block change every ciphertext block after it (with "
            "the same key and initial value)"
        ),
        ("CBC", "CFB"),
        _spreads,
    ),
]


def _s10(s: Stream) -> Draft:
    """Modes of operation, several right; again by experiments with a toy cipher."""
    text, right, holds = _MODES[0] if s.default else s.choice(_MODES[1:])
    every = ("ECB", "CBC", "CFB", "OFB", "CTR")
    return Draft(
        f"Which of these modes of operation (CFB with full-block feedback) {text}?",
        right,
        {f"{mode} lacks the property": mode for mode in every if mode not in right},
        lambda: tuple(mode for mode in every if holds(mode)),
        several=True,
    )


ITEMS: dict[str, Maker] = {
    "S01": _s01,
    "S02": _s02,
    "S03": _s03,
    "S04": _s04,
    "S05": _s05,
    "S06": _s06,
    "S07": _s07,
    "S08": _s08,
    "S09": _s09,
    "S10": _s10,
}
"""Item number -> function from a stream to a draft."""
