"""ECDSA whose nonces come twice, or are a byte too short; files only or with a signing server."""

from __future__ import annotations

import json
from hashlib import sha256
from string import Template

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families import secp256k1
from tasks.aicrypto.ctf.families.base import Family, Kind, Made

# What is wrong, as the programs have it: level 1 goes round a list, level 2 saves a byte.
_NONCES = {
    1: """\
# Made beforehand, so that signing is quick.
NONCES = [1 + randbelow(N - 1) for _ in range(7)]


def nonce(i):
    return NONCES[i % 7]
""",
    2: """\
def nonce(i):
    return 1 + int.from_bytes(token_bytes(31), "big")
""",
}
_IMPORTS = {1: "from secrets import randbelow", 2: "from secrets import randbelow, token_bytes"}
_SERVER_IMPORTS = {1: "from secrets import randbelow", 2: "from secrets import token_bytes"}

_STATIC = Template('''\
"""Sign the day's orders, and lock a message under the signing key."""

from hashlib import sha256
$imports

from secret import FLAG

$curve

$nonces

d = 1 + randbelow(N - 1)
mask = sha256(str(d).encode()).digest()
x, y = times_base(d)
print(f"public = {x:x} {y:x}")
print(f"box = {bytes(a ^ b for a, b in zip(FLAG, mask)).hex()}")
for i in range($count):
    r, s = sign(f"order {i}".encode(), d, nonce(i))
    print(f"order {i} = {r:x} {s:x}")
''')
_COUNT = {1: 8, 2: 40}

_SERVER = Template('''\
"""A notary: signs whatever you send, but for the one order that opens the vault."""

import json
import sys
from hashlib import sha256
from pathlib import Path
$imports

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
D = SECRET["d"]
FLAG = SECRET["flag"]
ORDER = b"open the vault"

$curve

$nonces

def is_signed(message, r, s):
    if not (0 < r < N and 0 < s < N):
        return False
    z = int.from_bytes(sha256(message).digest(), "big")
    # The point (z/s) G + (r/s) Q, for the public key Q = dG.
    k = pow(s, -1, N) * (z + r * D) % N
    return k != 0 and times_base(k)[0] % N == r


def answer(line, i):
    verb, _, rest = line.partition(b" ")
    if verb == b"sign" and rest:
        if rest == ORDER:
            return "error: only the owner may order that"
        r, s = sign(rest, D, nonce(i))
        return f"{r:x} {s:x}"
    if verb == b"order":
        try:
            r, s = (int(word, 16) for word in rest.decode().split())
        except ValueError:
            return "error: send order R S, both in hex"
        return FLAG if is_signed(ORDER, r, s) else "error: that is not a signature of the order"
    return "error: send sign TEXT, or order R S"


x, y = times_base(D)
print(f"public = {x:x} {y:x}", flush=True)
for i, line in enumerate(sys.stdin.buffer):
    print(answer(line.rstrip(b"\\r\\n"), i), flush=True)
''')


def _nonces(draw: Draw, level: int) -> list[int]:
    if level == 2:
        return [1 + draw.bits(248) for _ in range(_COUNT[level])]
    seven = [1 + draw.below(secp256k1.N - 1) for _ in range(7)]
    return [seven[i % 7] for i in range(_COUNT[level])]


def _make(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    d = 1 + draw.below(secp256k1.N - 1)
    if kind == "dynamic":
        main = _SERVER.substitute(
            imports=_SERVER_IMPORTS[level], curve=secp256k1.SOURCE, nonces=_NONCES[level]
        ).encode()
        secret = json.dumps({"flag": flag, "d": d}) + "\n"
        return Made(
            public={"main.py": main}, server={"main.py": main, "secret.json": secret.encode()}
        )
    mask = sha256(str(d).encode()).digest()
    x, y = secp256k1.times_base(d)
    box = bytes(a ^ b for a, b in zip(flag.encode(), mask, strict=False))
    lines = [f"public = {x:x} {y:x}", f"box = {box.hex()}"]
    for i, nonce in enumerate(_nonces(draw, level)):
        r, s = secp256k1.sign(f"order {i}".encode(), d, nonce)
        lines.append(f"order {i} = {r:x} {s:x}")
    main = _STATIC.substitute(
        imports=_IMPORTS[level],
        curve=secp256k1.SOURCE,
        nonces=_NONCES[level],
        count=_COUNT[level],
    ).encode()
    output = "\n".join(lines) + "\n"
    return Made(public={"main.py": main, "output.txt": output.encode()})


FAMILIES: tuple[Family, ...] = (
    Family(
        name="ecdsa_nonce",
        folder="07-ECC",
        kinds=("static", "dynamic"),
        story="A notary's office signs orders with ECDSA. What only its key opens is worth having.",
        sizes={
            1: {"curve_bits": 256, "signatures": _COUNT[1], "nonce_bits": 256},
            2: {"curve_bits": 256, "signatures": _COUNT[2], "nonce_bits": 248},
        },
        make=_make,
    ),
)
