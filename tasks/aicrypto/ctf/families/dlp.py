"""Discrete logarithms in groups that are too smooth, or left for a smaller one; `ecdsa` joins in."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from string import Template

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families import ecdsa
from tasks.aicrypto.ctf.families.base import Family, Kind, Made

_FOLDER = "05-DLP"

_SMOOTH = Template('''\
"""Hide a number in an exponent, modulo a prime made for the purpose."""

from math import prod

from Crypto.Util.number import bytes_to_long, getPrime, isPrime

from secret import FLAG

SIZES = $sizes


def new_group():
    """A prime of 256 bits and an element that generates all of its group."""
    p, factors = 0, set()
    while p.bit_length() != 256 or len(factors) != len(SIZES) or not isPrime(p):
        factors = {getPrime(size) for size in SIZES}
        p = 2 * prod(factors) + 1
    g = 2
    while any(pow(g, (p - 1) // f, p) == 1 for f in {2, *factors}):
        g += 1
    return p, g


p, g = new_group()
print(f"p = {p}")
print(f"g = {g}")
print(f"h = {pow(g, bytes_to_long(FLAG), p)}")
''')
# As (how many, bits each); their product has 255 bits with a chance of about a third.
_SMOOTH_SIZES = {1: ((13, 20),), 2: ((10, 24), (1, 19))}


def _small_primes(draw: Draw, sizes: Sequence[int]) -> list[int]:
    """Different primes of the given numbers of bits."""
    import gmpy2

    primes: list[int] = []
    while len(set(primes)) != len(sizes):
        primes = []
        for bits in sizes:
            prime = 0
            while prime.bit_length() != bits:
                prime = int(gmpy2.next_prime(1 << bits - 1 | draw.bits(bits - 1)))
            primes.append(prime)
    return primes


def _smooth_group(draw: Draw, sizes: Sequence[int]) -> tuple[int, int]:
    import gmpy2

    while True:
        factors = _small_primes(draw, sizes)
        p = 2 * math.prod(factors) + 1
        if p.bit_length() == 256 and gmpy2.is_prime(p):
            break
    g = 2
    while any(pow(g, (p - 1) // f, p) == 1 for f in (2, *factors)):
        g += 1
    return p, g


def _smooth(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    parts = _SMOOTH_SIZES[level]
    p, g = _smooth_group(draw, [bits for count, bits in parts for _ in range(count)])
    h = pow(g, int.from_bytes(flag.encode(), "big"), p)
    sizes = " + ".join(f"[{bits}] * {count}" for count, bits in parts)
    return Made(
        public={
            "main.py": _SMOOTH.substitute(sizes=sizes).encode(),
            "output.txt": f"p = {p}\ng = {g}\nh = {h}\n".encode(),
        }
    )


_SUBGROUP = Template('''\
"""A key server: agrees on a key with everybody, always with the same number of its own."""

import json
import sys
from hashlib import sha256
$imports
SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
P, Q, G, X = (SECRET[name] for name in "pqgx")
FLAG = SECRET["flag"].encode()


def agree(line):
    try:
        y = int(line)
    except ValueError:
        return "error: send one whole number a line"
$reply


mask = sha256(str(X).encode()).digest()
print(f"p = {P}", flush=True)
print(f"q = {Q}", flush=True)
print(f"g = {G}", flush=True)
print(f"h = {pow(G, X, P)}", flush=True)
print(f"box = {bytes(a ^ b for a, b in zip(FLAG, mask)).hex()}", flush=True)
for line in sys.stdin.buffer:
    print(agree(line.decode(errors="replace")), flush=True)
''')
_SUBGROUP_IMPORTS = {
    1: "from pathlib import Path\n",
    2: "from hmac import digest\nfrom pathlib import Path\n",
}
_REPLY = {
    1: """\
    return str(pow(y, X, P))""",
    2: """\
    if not 1 < y < P - 1:
        return "error: the number must lie between 1 and p - 1"
    # The key stays here; that the server has it, this shows.
    key = sha256(str(pow(y, X, P)).encode()).digest()
    return digest(key, b"ready", "sha256").hex()""",
}
_SUBGROUP_SIZES = {1: [16] * 11, 2: [12] * 15}
_SUBGROUP_BITS = 512
_KEY_BITS = 160


def _subgroup_parameters(draw: Draw, sizes: Sequence[int]) -> tuple[int, int, int]:
    """A prime p, a prime divisor q of p - 1 and an element of order q.

    The rest of p - 1 is 2 and primes of the given sizes, together more than `_KEY_BITS` bits.
    """
    import gmpy2

    q = draw.prime(_SUBGROUP_BITS - 1 - int(sum(sizes) - 0.44 * len(sizes)))
    p = 0
    while p.bit_length() != _SUBGROUP_BITS or not gmpy2.is_prime(p):
        p = 2 * q * math.prod(_small_primes(draw, sizes)) + 1
    g = 1
    while g == 1:
        g = pow(2 + draw.below(p - 3), (p - 1) // q, p)
    return p, q, g


def _subgroup(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    p, q, g = _subgroup_parameters(draw, _SUBGROUP_SIZES[level])
    x = 1 << _KEY_BITS - 1 | draw.bits(_KEY_BITS - 1)
    main = _SUBGROUP.substitute(imports=_SUBGROUP_IMPORTS[level], reply=_REPLY[level]).encode()
    secret = json.dumps({"flag": flag, "p": p, "q": q, "g": g, "x": x}) + "\n"
    return Made(public={"main.py": main}, server={"main.py": main, "secret.json": secret.encode()})


FAMILIES: tuple[Family, ...] = (
    Family(
        name="dlp_smooth",
        folder=_FOLDER,
        kinds=("static",),
        story="A number was hidden in an exponent, modulo a prime that was built for it.",
        sizes={
            level: {"prime_bits": 256, "factor_bits": max(bits for _, bits in parts)}
            for level, parts in _SMOOTH_SIZES.items()
        },
        make=_smooth,
    ),
    Family(
        name="dlp_subgroup",
        folder=_FOLDER,
        kinds=("dynamic",),
        story="A key server agrees on a key with whoever asks. Its own number opens the box.",
        sizes={
            level: {
                "prime_bits": _SUBGROUP_BITS,
                "key_bits": _KEY_BITS,
                "factor_bits": sizes[0],
                "queries": len(sizes),
            }
            for level, sizes in _SUBGROUP_SIZES.items()
        },
        make=_subgroup,
    ),
    *ecdsa.FAMILIES,
)
