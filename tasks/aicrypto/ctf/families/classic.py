"""Classic ciphers: shift and affine, Vigenère, substitution of the alphabet."""

from __future__ import annotations

from math import gcd

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families.base import Family, Kind, Made
from tasks.aicrypto.ctf.families.program import fill, static
from tasks.aicrypto.ctf.families.text import letters, word_list

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_FOLDER = "01-Classic"

# A flag has digits and braces, a classic cipher letters only: so the message itself is the password.
_FRAME = '''"""$title"""

import hashlib
import json
from pathlib import Path

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())


def encipher(message):
$encipher


def seal(flag, message):
    """Lock the flag: whoever has read the message can open it."""
    pad = hashlib.shake_256(message.encode()).digest(len(flag))
    return bytes(f ^ p for f, p in zip(flag.encode(), pad)).hex()


message = SECRET["message"]  # $length letters, a to z$words
assert len(message) == $length and set(message) <= set(ALPHABET)
print("ciphertext =", encipher(message))
print("sealed =", seal(SECRET["flag"], message))
'''

_SHIFT = """    shift = SECRET["shift"]
    return "".join(ALPHABET[(ALPHABET.index(c) + shift) % 26] for c in message)"""

_AFFINE = """    a, b = SECRET["a"], SECRET["b"]
    return "".join(ALPHABET[(a * ALPHABET.index(c) + b) % 26] for c in message)"""

_VIGENERE = """    key = SECRET["key"]  # $low to $high letters
    assert $low <= len(key) <= $high
    shifts = [ALPHABET.index(c) for c in key]
    return "".join(
        ALPHABET[(ALPHABET.index(c) + shifts[i % len(shifts)]) % 26] for i, c in enumerate(message)
    )"""

_SUBSTITUTION = """    key = SECRET["key"]  # the letters of the alphabet in another order
    assert sorted(key) == list(ALPHABET)
    return "".join(key[ALPHABET.index(c)] for c in message)"""

_AFFINE_SIZES = {1: {"letters": 120, "keys": 25}, 2: {"letters": 60, "keys": 286}}
_VIGENERE_SIZES = {
    1: {"letters": 300, "key_low": 4, "key_high": 7},
    2: {"letters": 300, "key_low": 8, "key_high": 11},
}
_SUBSTITUTION_SIZES = {1: {"letters": 800}, 2: {"letters": 500}}


def _make_affine(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    size = _AFFINE_SIZES[level]
    secret: dict[str, str | int] = {"flag": flag, "message": letters(draw, size["letters"])}
    if level == 1:
        title, encipher = "The gate of the old town: a shifted alphabet.", _SHIFT
        secret["shift"] = draw.between(1, 25)
    else:
        title, encipher = "The gate of the new town: a stretched and shifted alphabet.", _AFFINE
        secret["a"] = draw.choice([a for a in range(2, 26) if gcd(a, 26) == 1])
        secret["b"] = draw.below(26)
    program = fill(_FRAME, title=title, encipher=encipher, length=size["letters"], words="")
    return static(program, secret)


def _make_vigenere(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    size = _VIGENERE_SIZES[level]
    low, high = size["key_low"], size["key_high"]
    key = "".join(draw.choice(_ALPHABET) for _ in range(draw.between(low, high)))
    secret = {"flag": flag, "message": letters(draw, size["letters"]), "key": key}
    program = fill(
        _FRAME,
        title="The customs office: a key word, over and over again.",
        encipher=fill(_VIGENERE, low=low, high=high).decode(),
        length=size["letters"],
        words=", in words of words.txt",
    )
    return static(program, secret, words_txt=word_list())


def _make_substitution(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    size = _SUBSTITUTION_SIZES[level]
    key = "".join(draw.shuffled(_ALPHABET))
    secret = {"flag": flag, "message": letters(draw, size["letters"]), "key": key}
    program = fill(
        _FRAME,
        title="The lighthouse: every letter stands for another one.",
        encipher=_SUBSTITUTION,
        length=size["letters"],
        words=", in words of words.txt",
    )
    return static(program, secret, words_txt=word_list())


FAMILIES: tuple[Family, ...] = (
    Family(
        name="caesar_affine",
        folder=_FOLDER,
        kinds=("static",),
        story="The town's gate opens to whoever can read the message of the day. "
        "You have the program of the gatekeeper and today's output.",
        sizes=_AFFINE_SIZES,
        make=_make_affine,
    ),
    Family(
        name="vigenere",
        folder=_FOLDER,
        kinds=("static",),
        story="A customs office enciphers its reports and locks the day's flag with the report "
        "itself. You have its program, the words it uses and one output.",
        sizes=_VIGENERE_SIZES,
        make=_make_vigenere,
    ),
    Family(
        name="substitution",
        folder=_FOLDER,
        kinds=("static",),
        story="A lighthouse keeper writes in an alphabet of his own and locks the day's flag with "
        "what he wrote. You have his program, the words he uses and one output.",
        sizes=_SUBSTITUTION_SIZES,
        make=_make_substitution,
    ),
)
