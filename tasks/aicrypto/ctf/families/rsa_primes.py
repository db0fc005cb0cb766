"""RSA whose primes were chosen badly: near each other, in a simple ratio, or used twice."""

from __future__ import annotations

import math
from string import Template

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families.base import Family, Kind, Made

E = 65537
"""The public exponent wherever it is not what is wrong."""

_FERMAT = Template('''\
"""Make a key of 2,048 bits and lock a message with it."""

from secrets import randbelow, randbits

from Crypto.Util.number import bytes_to_long, getPrime
from gmpy2 import gcd, next_prime

from secret import FLAG

E = 65537


def new_modulus():
    """Looking for primes takes long: the second is looked for where the first one helps."""
    while True:
        p = getPrime(1024)
$second
        if gcd(E, (p - 1) * (q - 1)) == 1 and (p * q).bit_length() == 2048:
            return p * q


n = new_modulus()
print(f"n = {n}")
print(f"e = {E}")
print(f"c = {pow(bytes_to_long(FLAG), E, n)}")
''')
_NEAR = "        q = int(next_prime(p + randbits(520)))"
_RATIO = """\
        b = 50 + randbelow(50)
        a = b - 1 - randbelow(b // 3)
        if gcd(a, b) != 1:
            continue
        q = int(next_prime(p * a // b + randbits(500)))"""


def _second_prime(draw: Draw, level: int, p: int) -> int:
    import gmpy2

    if level == 1:
        return int(gmpy2.next_prime(p + draw.bits(520)))
    while True:
        b = 50 + draw.below(50)
        a = b - 1 - draw.below(b // 3)
        if math.gcd(a, b) == 1:
            return int(gmpy2.next_prime(p * a // b + draw.bits(500)))


def _fermat(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    while True:
        p = draw.prime(1024)
        q = _second_prime(draw, level, p)
        if math.gcd(E, (p - 1) * (q - 1)) == 1 and (p * q).bit_length() == 2048:
            break
    c = pow(int.from_bytes(flag.encode(), "big"), E, p * q)
    main = _FERMAT.substitute(second={1: _NEAR, 2: _RATIO}[level])
    output = f"n = {p * q}\ne = {E}\nc = {c}\n"
    return Made(public={"main.py": main.encode(), "output.txt": output.encode()})


_SHARED_PRIME = Template('''\
"""First start of a series of meters: every meter gets a key, and a first message with it."""

from secrets import SystemRandom, randbits, token_hex

from gmpy2 import next_prime

from secret import FLAG

METERS = $meters
E = 65537


def new_prime():
    while True:
        p = int(next_prime(randbits(512) | 3 << 510))
        if p % E != 1:
            return p


# The last meter was started in the cold: half of its key it has from the first.
keys = [(new_prime(), new_prime()) for _ in range(METERS - 1)]
keys.append((keys[0][0], new_prime()))
$messages
pairs = list(zip(keys, messages))
SystemRandom().shuffle(pairs)
print(f"e = {E}")
for (p, q), message in pairs:
    print(f"n = {p * q}")
    print(f"c = {pow(int.from_bytes(message, 'big'), E, p * q)}")
''')
_METERS = {1: 30, 2: 200}
_MESSAGES = {
    1: "messages = [FLAG] * METERS",
    2: "messages = [token_hex(15).encode() for _ in range(METERS - 1)] + [FLAG]",
}


def _new_prime(draw: Draw) -> int:
    while (p := draw.prime(512)) % E == 1:
        pass
    return p


def _shared_prime(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    meters, text = _METERS[level], flag.encode()
    keys = [(_new_prime(draw), _new_prime(draw)) for _ in range(meters - 1)]
    keys.append((keys[0][0], _new_prime(draw)))
    messages = [text] * meters
    if level == 2:
        messages[:-1] = [draw.data(15).hex().encode() for _ in range(meters - 1)]
    lines = [f"e = {E}"]
    for (p, q), message in draw.shuffled(list(zip(keys, messages, strict=True))):
        c = pow(int.from_bytes(message, "big"), E, p * q)
        lines += [f"n = {p * q}", f"c = {c}"]
    main = _SHARED_PRIME.substitute(meters=meters, messages=_MESSAGES[level])
    output = "\n".join(lines) + "\n"
    return Made(public={"main.py": main.encode(), "output.txt": output.encode()})


FERMAT: tuple[Family, ...] = (
    Family(
        name="fermat",
        folder="04-RSA",
        kinds=("static",),
        story="A key was made in a hurry on an old machine, and one message was locked with it.",
        sizes={
            1: {"modulus_bits": 2048, "gap_bits": 520, "largest_ratio_term": 1},
            2: {"modulus_bits": 2048, "gap_bits": 500, "largest_ratio_term": 99},
        },
        make=_fermat,
    ),
)
"""The family of primes that lie near each other or near a simple ratio."""

SHARED_PRIME: tuple[Family, ...] = (
    Family(
        name="shared_prime",
        folder="04-RSA",
        kinds=("static",),
        story="A works put a series of electricity meters into service; the log of the day is kept.",
        sizes={level: {"modulus_bits": 1024, "moduli": count} for level, count in _METERS.items()},
        make=_shared_prime,
    ),
)
"""The family of keys of which two have a prime in common."""
