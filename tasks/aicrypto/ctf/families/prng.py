"""Random number generators that are none for secrets: linear congruence, its high bits, MT19937."""

from __future__ import annotations

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families.base import Family, Kind, Made
from tasks.aicrypto.ctf.families.program import LOOP, SERVER_IMPORTS, dynamic, fill, static

_FOLDER = "03-Stream-PRNG-Hash"

_LCG_CLASS = """

class Generator:
    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (A * self.state + C) % M
        return self.state
"""

_LCG_HEAD = """import json$imports
from pathlib import Path

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
$modulus
A = SECRET["a"]
C = SECRET["c"]
"""

_LCG_STATIC = (
    '"""A lottery publishes its past numbers and locks a prize with the next ones."""\n\n'
    + _LCG_HEAD
    + _LCG_CLASS
    + """

generator = Generator(SECRET["start"])
for _ in range($outputs):
    print("number =", generator.next())
flag = SECRET["flag"].encode()
pad = b"".join(generator.next().to_bytes(16, "big") for _ in range(2))
print("prize =", bytes(f ^ p for f, p in zip(flag, pad)).hex())
"""
)

_LCG_DYNAMIC = (
    '''"""A lottery with a machine of its own: every guest gets a freshly started one.

  next           the machine's next number; $outputs at most
  guess NUMBER   what comes next? One guess.
"""

'''
    + _LCG_HEAD
    + _LCG_CLASS
    + """

generator = Generator(secrets.randbelow(M))
shown = 0


def answer(line):
    global shown
    word, _, rest = line.partition(" ")
    if word == "next":
        if shown == $outputs:
            raise ValueError("the machine has shown enough, guess")
        shown += 1
        return generator.next()
    if word != "guess":
        raise ValueError("say next or guess")
    if int(rest) == generator.next():
        return SECRET["flag"]
    print("wrong, good-bye", flush=True)
    sys.exit()

"""
    + LOOP
)

_TRUNCATED = '''"""A lottery publishes the high bits of its numbers and locks a prize with the next ones."""

import json
from pathlib import Path

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
A = $a
C = $c
M = 2**64
SHOWN = $shown  # bits of 64


class Generator:
    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (A * self.state + C) % M
        return self.state >> (64 - SHOWN)


generator = Generator(SECRET["start"])
for _ in range($outputs):
    print("number =", generator.next())
flag = SECRET["flag"].encode()
pad = b"".join(generator.next().to_bytes(SHOWN // 8, "big") for _ in range(240 // SHOWN + 1))
print("prize =", bytes(f ^ p for f, p in zip(flag, pad)).hex())
'''

_TICKETS = {
    1: '''
def tickets(rng):
    """The numbers of the tickets, one after another."""
    while True:
        yield rng.getrandbits(32)
''',
    2: '''
def tickets(rng):
    """The numbers of the tickets: after every third one the clerk rests for a random time."""
    while True:
        for _ in range(3):
            yield rng.getrandbits(32)
        rng.random()  # not shown; it takes two outputs of 32 bits from the generator
''',
}

_MT_STATIC = '''"""A theatre numbers its tickets at random and locks a prize with the numbers after the last."""

import json
import random
from itertools import islice
from pathlib import Path

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())


$tickets


source = tickets(random.Random(SECRET["seed"]))  # a seed of 256 bits
for number in islice(source, $outputs):
    print("ticket =", number)
flag = SECRET["flag"].encode()
pad = b"".join(number.to_bytes(4, "big") for number in islice(source, 8))
print("prize =", bytes(f ^ p for f, p in zip(flag, pad)).hex())
'''

_MT_DYNAMIC = (
    '''"""A theatre numbers its tickets at random; every counter starts anew with a seed of its own.

  next           the next ticket; $outputs at most
  guess NUMBER   which number has the next ticket? One guess.
"""

import json
import random
import secrets
import sys
from pathlib import Path

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())


$tickets


source = tickets(random.Random(secrets.randbits(256)))
sold = 0


def answer(line):
    global sold
    word, _, rest = line.partition(" ")
    if word == "next":
        if sold == $outputs:
            raise ValueError("sold out, guess")
        sold += 1
        return next(source)
    if word != "guess":
        raise ValueError("say next or guess")
    if int(rest) == next(source):
        return SECRET["flag"]
    print("wrong, good-bye", flush=True)
    sys.exit()

'''
    + LOOP
)

_LCG_SIZES = {1: {"outputs": 6, "modulus_bits": 128}, 2: {"outputs": 13, "modulus_bits": 128}}
_TRUNCATED_SIZES = {1: {"outputs": 8, "shown_bits": 32}, 2: {"outputs": 8, "shown_bits": 24}}
_MT_SIZES = {1: {"outputs": 624, "hidden": 0}, 2: {"outputs": 900, "hidden": 600}}


def _make_lcg(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    m = draw.prime(128)
    secret = {"flag": flag, "a": draw.between(2, m - 1), "c": draw.between(1, m - 1)}
    if level == 1:
        modulus = f"M = {m}"
    else:
        secret["m"] = m
        modulus = 'M = SECRET["m"]  # a prime of 128 bits'
    outputs = _LCG_SIZES[level]["outputs"]
    if kind == "static":
        secret["start"] = draw.below(m)
        program = fill(_LCG_STATIC, imports="", modulus=modulus, outputs=outputs)
        return static(program, secret)
    program = fill(_LCG_DYNAMIC, imports=SERVER_IMPORTS, modulus=modulus, outputs=outputs)
    return dynamic(program, secret)


def _make_truncated(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    size = _TRUNCATED_SIZES[level]
    # Full period: a is 1 modulo 4 and c is odd (theorem of Hull and Dobell).
    a, c = 4 * draw.bits(62) + 1, 2 * draw.bits(63) + 1
    program = fill(_TRUNCATED, a=a, c=c, shown=size["shown_bits"], outputs=size["outputs"])
    return static(program, {"flag": flag, "start": draw.bits(64)})


def _make_mt(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    parts = {"tickets": _TICKETS[level].strip("\n"), "outputs": _MT_SIZES[level]["outputs"]}
    if kind == "static":
        return static(fill(_MT_STATIC, **parts), {"flag": flag, "seed": draw.bits(256)})
    return dynamic(fill(_MT_DYNAMIC, **parts), {"flag": flag})


LCG = Family(
    name="lcg",
    folder=_FOLDER,
    kinds=("static", "dynamic"),
    story="A lottery draws its numbers with a formula. Whoever knows the next one gets the prize.",
    sizes=_LCG_SIZES,
    make=_make_lcg,
)

LCG_TRUNCATED = Family(
    name="lcg_truncated",
    folder=_FOLDER,
    kinds=("static",),
    story="A lottery draws its numbers with a formula and shows a part of each. The prize is locked "
    "with the numbers to come.",
    sizes=_TRUNCATED_SIZES,
    make=_make_truncated,
)

MT19937 = Family(
    name="mt19937",
    folder=_FOLDER,
    kinds=("static", "dynamic"),
    story="A theatre numbers its tickets with Python's own random numbers. Whoever knows the "
    "numbers to come gets the prize.",
    sizes=_MT_SIZES,
    make=_make_mt,
)
