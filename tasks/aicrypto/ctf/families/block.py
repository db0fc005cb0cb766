"""Block ciphers: what ECB, CBC and an honest error message give away."""

from __future__ import annotations

from tasks.aicrypto.ctf.draw import Draw
from tasks.aicrypto.ctf.families.base import Family, Kind, Made
from tasks.aicrypto.ctf.families.program import LOOP, dynamic, fill

_FOLDER = "02-Block"

_ECB = (
    '''"""A label printer: every label is locked before it leaves the shop.

Send the text of a label in hex, get the locked label in hex.
"""

import json
import sys
from pathlib import Path

from Crypto.Cipher import AES
from Crypto.Util.Padding import pad

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
KEY = bytes.fromhex(SECRET["key"])
SHOP = bytes.fromhex(SECRET["shop"])  # $shop
FLAG = SECRET["flag"].encode()


def answer(line):
    label = bytes.fromhex(line)
    if len(label) > 256:
        raise ValueError("a label has at most 256 bytes")
    return AES.new(KEY, AES.MODE_ECB).encrypt(pad(SHOP + label + FLAG, 16)).hex()

'''
    + LOOP
)

_PADDING = (
    '''"""A mail room that checks whether parcels are packed well.

The first line is a parcel in hex: 16 bytes of IV, then AES-CBC. Send a parcel, hear how it is.
"""

import json
import secrets
import sys
from pathlib import Path

from Crypto.Cipher import AES
from Crypto.Util.Padding import pad, unpad

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
KEY = bytes.fromhex(SECRET["key"])
TEXT = $text  # $blocks blocks when padded


def answer(line):
    parcel = bytes.fromhex(line)
    if len(parcel) < 32 or len(parcel) % 16:
        raise ValueError("a parcel is an IV and at least one block")
    text = AES.new(KEY, AES.MODE_CBC, parcel[:16]).decrypt(parcel[16:])
    try:
        unpad(text, 16)
    except ValueError:
        return "badly packed"
    return "$good"


iv = secrets.token_bytes(16)
print((iv + AES.new(KEY, AES.MODE_CBC, iv).encrypt(pad(TEXT, 16))).hex(), flush=True)

'''
    + LOOP
)

_FLIP_BYTE = (
    '''"""A library that keeps no list of its readers: the card itself says who may do what.

  card          get a reader's card: 16 bytes of IV, then AES-CBC, in hex
  enter CARD    show a card
"""

import json
import secrets
import sys
from pathlib import Path

from Crypto.Cipher import AES

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
KEY = bytes.fromhex(SECRET["key"])
CARD = b"$card"
assert len(CARD) % 16 == 0


def answer(line):
    word, _, rest = line.partition(" ")
    if word == "card":
        iv = secrets.token_bytes(16)
        return (iv + AES.new(KEY, AES.MODE_CBC, iv).encrypt(CARD)).hex()
    if word != "enter":
        raise ValueError("say card or enter")
    card = bytes.fromhex(rest)
    if len(card) != 16 + len(CARD):
        raise ValueError("this is no card")
    text = AES.new(KEY, AES.MODE_CBC, card[:16]).decrypt(card[16:])
    fields = dict(part.partition(b"=")[::2] for part in text.split(b";"))
    if fields.get(b"keeper") == b"1":
        return SECRET["flag"]
    return "welcome, reader"

'''
    + LOOP
)

_FLIP_ESCAPED = (
    '''"""A library that keeps no list of its readers: the card itself says who may do what.

  card NAME     get a card for a name: 16 bytes of IV, then AES-CBC, in hex
  enter CARD    show a card
"""

import json
import secrets
import sys
from pathlib import Path
from urllib.parse import quote

from Crypto.Cipher import AES
from Crypto.Util.Padding import pad, unpad

SECRET = json.loads(Path(__file__).with_name("secret.json").read_text())
KEY = bytes.fromhex(SECRET["key"])
BEFORE = b"$before"
AFTER = b"$after"


def answer(line):
    word, _, rest = line.partition(" ")
    if word == "card":
        name = quote(rest, safe=" ").encode()  # no separators in names: ";" is %3B, "=" is %3D
        if len(name) > 256:
            raise ValueError("the name is too long")
        iv = secrets.token_bytes(16)
        text = pad(BEFORE + name + AFTER, 16)
        return (iv + AES.new(KEY, AES.MODE_CBC, iv).encrypt(text)).hex()
    if word != "enter":
        raise ValueError("say card or enter")
    card = bytes.fromhex(rest)
    if len(card) < 32 or len(card) % 16:
        raise ValueError("this is no card")
    text = unpad(AES.new(KEY, AES.MODE_CBC, card[:16]).decrypt(card[16:]), 16)
    if not text.startswith(BEFORE[:16]):
        raise ValueError("this is no card of ours")
    fields = dict(part.partition(b"=")[::2] for part in text.split(b";"))
    if fields.get(b"keeper") == b"yes":
        return SECRET["flag"]
    return "welcome, reader"

'''
    + LOOP
)


def _make_ecb(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    shop = b"" if level == 1 else draw.data(draw.below(16))
    note = "empty: there is one shop" if level == 1 else "0 to 15 bytes that say which shop"
    secret = {"flag": flag, "key": draw.data(16).hex(), "shop": shop.hex()}
    return dynamic(fill(_ECB, shop=note), secret)


def _make_padding(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    secret = {"flag": flag, "key": draw.data(16).hex()}
    text, good = 'SECRET["flag"].encode()', "well packed"
    if level == 2:
        secret["box"] = str(draw.between(100, 999))
        text, good = "f\"box={SECRET['box']};{SECRET['flag']}\".encode()", "no such box"
    return dynamic(fill(_PADDING, text=text, blocks=level + 1, good=good), secret)


def _make_flip(draw: Draw, level: int, kind: Kind, flag: str) -> Made:
    secret = {"flag": flag, "key": draw.data(16).hex()}
    number = draw.between(10000, 99999)
    if level == 1:
        # The field lies in the first block, which the IV changes and nothing else.
        return dynamic(fill(_FLIP_BYTE, card=f"keeper=0;no={number};valid=11months"), secret)
    library = draw.choice(("north", "east", "harbour", "museum"))
    # Of two fields of a name the later one counts: what is put behind this one can beat it.
    before = f"library={library}{number};keeper=no;name="
    return dynamic(fill(_FLIP_ESCAPED, before=before, after=";valid=11months"), secret)


FAMILIES: tuple[Family, ...] = (
    Family(
        name="ecb_byte",
        folder=_FOLDER,
        kinds=("dynamic",),
        story="A label printer locks every label together with something of its own. "
        "It prints whatever you send it.",
        sizes={1: {"prefix_bytes": 0, "key_bits": 128}, 2: {"prefix_bytes": 15, "key_bits": 128}},
        make=_make_ecb,
    ),
    Family(
        name="cbc_padding",
        folder=_FOLDER,
        kinds=("dynamic",),
        story="A mail room hands out one locked parcel, and looks over any parcel that you bring. "
        "What is in its own?",
        sizes={1: {"blocks": 2, "key_bits": 128}, 2: {"blocks": 3, "key_bits": 128}},
        make=_make_padding,
    ),
    Family(
        name="cbc_flip",
        folder=_FOLDER,
        kinds=("dynamic",),
        story="A library gives locked cards to its readers and tells its keepers a secret. "
        "You are no keeper.",
        sizes={1: {"changed_bytes": 1, "blocks": 2}, 2: {"changed_bytes": 2, "blocks": 6}},
        make=_make_flip,
    ),
)
