"""Textbook RSA with one thing wrong: its exponents here, its primes in `rsa_primes`, an oracle too."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from string import Template

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families import rsa_primes
from tasks.aicrypto.ctf.families.base import Family, Kind, Made

_FOLDER = "04-RSA"


def _primes(draw: Draw, bits: int, e: int) -> tuple[int, int]:
    """Two primes of half of `bits` each, for which `e` has an inverse."""
    while True:
        p, q = draw.prime(bits // 2), draw.prime(bits // 2)
        if p != q and math.gcd(e, (p - 1) * (q - 1)) == 1:
            return p, q


def _static(main: str, numbers: Sequence[tuple[str, object]]) -> Made:
    output = "".join(f"{name} = {value}\n" for name, value in numbers)
    return Made(public={"main.py": main.encode(), "output.txt": output.encode()})


_SMALL_E = Template('''\
"""Lock one line of a settings file for its owner."""

from math import gcd

from Crypto.Util.number import bytes_to_long, getPrime

from secret import FLAG

E = 3


def new_modulus():
    while True:
        p, q = getPrime(384), getPrime(384)
        if gcd(E, (p - 1) * (q - 1)) == 1 and (p * q).bit_length() == 768:
            return p * q


n = new_modulus()
m = bytes_to_long($line)
print(f"n = {n}")
print(f"e = {E}")
print(f"c = {pow(m, E, n)}")
''')


def _small_e(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    # 33 bytes that begin with "#" are a number between 2^261.1 and 2^261.2: its cube goes beyond a
    # modulus of 768 bits, but not 2^17 times. The flag alone has a cube of at most 720 bits.
    line = flag if level == 1 else f"# {flag}\n"
    p, q = _primes(draw, 768, 3)
    m = int.from_bytes(line.encode(), "big")
    main = _SMALL_E.substitute(line="FLAG" if level == 1 else r'b"# " + FLAG + b"\n"')
    return _static(main, [("n", p * q), ("e", 3), ("c", pow(m, 3, p * q))])


_COMMON_MODULUS = Template('''\
"""One post office, one modulus: every clerk has an exponent of their own."""

from Crypto.Util.number import bytes_to_long, getPrime

from secret import FLAG

n = getPrime(512) * getPrime(512)
m = bytes_to_long(FLAG)
e1 = e2 = $exponent
while e1 == e2:
    e2 = $exponent
print(f"n = {n}")
print(f"e1 = {e1}")
print(f"c1 = {pow(m, e1, n)}")
print(f"e2 = {e2}")
print(f"c2 = {pow(m, e2, n)}")
''')


def _common_modulus(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    factor, exponent = (1, "getPrime(17)") if level == 1 else (2, "2 * getPrime(16)")
    p, q = _primes(draw, 1024, 1)
    e1 = e2 = draw.prime(18 - level)
    while e1 == e2:
        e2 = draw.prime(18 - level)
    n, m, e1, e2 = p * q, int.from_bytes(flag.encode(), "big"), factor * e1, factor * e2
    return _static(
        _COMMON_MODULUS.substitute(exponent=exponent),
        [("n", n), ("e1", e1), ("c1", pow(m, e1, n)), ("e2", e2), ("c2", pow(m, e2, n))],
    )


_WIENER = Template('''\
"""A key for a slow card reader: it has to decrypt quickly."""

from math import gcd

from Crypto.Util.number import bytes_to_long, getPrime, inverse

from secret import FLAG


def new_key():
    while True:
        p, q = getPrime(1024), getPrime(1024)
        d = getPrime($bits)
        if gcd(d, (p - 1) * (q - 1)) == 1 and (p * q).bit_length() == 2048:
            return p * q, inverse(d, (p - 1) * (q - 1))


n, e = new_key()
print(f"n = {n}")
print(f"e = {e}")
print(f"c = {pow(bytes_to_long(FLAG), e, n)}")
''')
_WIENER_BITS = {1: 480, 2: 505}  # the limit, a third of the fourth root of n, is about 510


def _wiener(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    d = draw.prime(_WIENER_BITS[level])
    p, q = _primes(draw, 2048, d)
    n, e = p * q, pow(d, -1, (p - 1) * (q - 1))
    c = pow(int.from_bytes(flag.encode(), "big"), e, n)
    return _static(_WIENER.substitute(bits=_WIENER_BITS[level]), [("n", n), ("e", e), ("c", c)])


_BROADCAST = Template('''\
"""The same letter to everybody on the list, each copy locked with the reader's own key."""

from secrets import token_hex

from Crypto.Util.number import bytes_to_long, getPrime

from secret import FLAG

E = $e
READERS = $e


def new_prime():
    while (p := getPrime(512)) % E == 1:
        pass
    return p


def new_modulus():
    while (n := new_prime() * new_prime()).bit_length() != 1024:
        pass
    return n


letter = FLAG + b" " + token_hex(50).encode()
m = bytes_to_long(letter[:100])
print(f"e = {E}")
for i in range(READERS):
    n = new_modulus()
    print(f"n{i} = {n}")
    print(f"c{i} = {pow(m, E, n)}")
''')
_LETTER_BYTES = 100


def _broadcast(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    e = {1: 3, 2: 5}[level]
    letter = f"{flag} {draw.data(50).hex()}".encode()[:_LETTER_BYTES]
    m = int.from_bytes(letter, "big")
    numbers = [("e", e)]
    for i in range(e):
        p, q = _primes(draw, 1024, e)
        numbers += [(f"n{i}", p * q), (f"c{i}", pow(m, e, p * q))]
    return _static(_BROADCAST.substitute(e=e), numbers)


_LSB = '''\
"""A sorting desk: send a locked number, and it tells which of two trays the open one goes to."""

import json
import sys
from pathlib import Path

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
P, Q = SECRET["p"], SECRET["q"]
FLAG = SECRET["flag"].encode()
N = P * Q
E = 65537
D = pow(E, -1, (P - 1) * (Q - 1))


def tray(line):
    try:
        c = int(line)
    except ValueError:
        return "error: send one whole number a line"
    if not 0 <= c < N:
        return "error: the number must lie between 0 and n - 1"
    return str(pow(c, D, N) % 2)


print(f"n = {N}", flush=True)
print(f"e = {E}", flush=True)
print(f"c = {pow(int.from_bytes(FLAG, 'big'), E, N)}", flush=True)
for line in sys.stdin.buffer:
    print(tray(line.decode(errors="replace")), flush=True)
'''
_LSB_BITS = {1: 256, 2: 512}


def _lsb(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    p, q = _primes(draw, _LSB_BITS[level], rsa_primes.E)
    secret = json.dumps({"flag": flag, "p": p, "q": q}) + "\n"
    main = _LSB.encode()
    return Made(public={"main.py": main}, server={"main.py": main, "secret.json": secret.encode()})


_LSB_SIZES: Mapping[int, Mapping[str, int]] = {
    level: {"modulus_bits": bits, "queries": bits} for level, bits in _LSB_BITS.items()
}

FAMILIES: tuple[Family, ...] = (
    Family(
        name="rsa_small_e",
        folder=_FOLDER,
        kinds=("static",),
        story="A settings tool locks single lines of its file with RSA. One such line was found.",
        sizes={
            1: {"modulus_bits": 768, "exponent": 3, "wraps": 0},
            2: {"modulus_bits": 768, "exponent": 3, "wraps": 2**17},
        },
        make=_small_e,
    ),
    Family(
        name="common_modulus",
        folder=_FOLDER,
        kinds=("static",),
        story="A post office locked one note twice, once for each of two clerks.",
        sizes={
            1: {"modulus_bits": 1024, "exponent_gcd": 1},
            2: {"modulus_bits": 1024, "exponent_gcd": 2},
        },
        make=_common_modulus,
    ),
    *rsa_primes.FERMAT,
    Family(
        name="wiener",
        folder=_FOLDER,
        kinds=("static",),
        story="The key was made for a card reader with little power; the reader itself is lost.",
        sizes={
            level: {"modulus_bits": 2048, "private_bits": bits}
            for level, bits in _WIENER_BITS.items()
        },
        make=_wiener,
    ),
    *rsa_primes.SHARED_PRIME,
    Family(
        name="broadcast",
        folder=_FOLDER,
        kinds=("static",),
        story="A circular letter went out, locked for each of its readers. All copies were kept.",
        sizes={
            level: {"modulus_bits": 1024, "exponent": e, "letter_bytes": _LETTER_BYTES}
            for level, e in {1: 3, 2: 5}.items()
        },
        make=_broadcast,
    ),
    Family(
        name="rsa_lsb",
        folder=_FOLDER,
        kinds=("dynamic",),
        story="The desk sorts locked numbers into two trays, and it greets you with one of them.",
        sizes=_LSB_SIZES,
        make=_lsb,
    ),
)
