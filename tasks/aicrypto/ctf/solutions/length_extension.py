"""Length extension: a tag H(key, text) is the state of the hash, from which anyone may go on.

Own cores of MD5 (RFC 1321), SHA-1 and SHA-256 (FIPS 180-4), for those of libraries start anew.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from math import sin
from typing import TYPE_CHECKING

from gmpy2 import iroot
from sympy import primerange

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_ALL = 0xFFFFFFFF
_MD5_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_MD5_ADDED = [int(abs(sin(i + 1)) * 2**32) for i in range(64)]
_SHA256_ADDED = [int(iroot(p << 96, 3)[0]) & _ALL for p in primerange(312)]


def _left(x: int, n: int) -> int:
    return ((x << n) | (x >> (32 - n))) & _ALL


def _right(x: int, n: int) -> int:
    return _left(x, 32 - n)


def _md5(state: list[int], block: bytes) -> list[int]:
    words = struct.unpack("<16I", block)
    a, b, c, d = state
    for i in range(64):
        if i < 16:
            f, k = (b & c) | (~b & d), i
        elif i < 32:
            f, k = (d & b) | (~d & c), (5 * i + 1) % 16
        elif i < 48:
            f, k = b ^ c ^ d, (3 * i + 5) % 16
        else:
            f, k = c ^ (b | (~d & _ALL)), 7 * i % 16
        turned = _left((a + f + _MD5_ADDED[i] + words[k]) & _ALL, _MD5_SHIFTS[i // 16][i % 4])
        a, b, c, d = d, (b + turned) & _ALL, b, c
    return [(x + y) & _ALL for x, y in zip(state, (a, b, c, d), strict=True)]


def _sha1(state: list[int], block: bytes) -> list[int]:
    words = list(struct.unpack(">16I", block))
    for i in range(16, 80):
        words.append(_left(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1))
    a, b, c, d, e = state
    for i, word in enumerate(words):
        if i < 20:
            f, k = (b & c) | (~b & d), 0x5A827999
        elif i < 40:
            f, k = b ^ c ^ d, 0x6ED9EBA1
        elif i < 60:
            f, k = (b & c) | (b & d) | (c & d), 0x8F1BBCDC
        else:
            f, k = b ^ c ^ d, 0xCA62C1D6
        a, b, c, d, e = (_left(a, 5) + f + e + k + word) & _ALL, a, _left(b, 30), c, d
    return [(x + y) & _ALL for x, y in zip(state, (a, b, c, d, e), strict=True)]


def _sha256(state: list[int], block: bytes) -> list[int]:
    words = list(struct.unpack(">16I", block))
    for i in range(16, 64):
        x, y = words[i - 15], words[i - 2]
        low = _right(x, 7) ^ _right(x, 18) ^ (x >> 3)
        high = _right(y, 17) ^ _right(y, 19) ^ (y >> 10)
        words.append((words[i - 16] + low + words[i - 7] + high) & _ALL)
    a, b, c, d, e, f, g, h = state
    for word, added in zip(words, _SHA256_ADDED, strict=True):
        sum1 = _right(e, 6) ^ _right(e, 11) ^ _right(e, 25)
        one = (h + sum1 + ((e & f) ^ (~e & g)) + added + word) & _ALL
        sum0 = _right(a, 2) ^ _right(a, 13) ^ _right(a, 22)
        two = sum0 + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = (one + two) & _ALL, a, b, c, (d + one) & _ALL, e, f, g
    return [(x + y) & _ALL for x, y in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


_CORES = {"md5": (_md5, "<"), "sha1": (_sha1, ">"), "sha256": (_sha256, ">")}


def extend(name: str, tag: str, length: int, suffix: bytes) -> tuple[bytes, str]:
    """Give the padding that the hash put behind `length` bytes, and the tag with `suffix` after it.

    Parameters
    ----------
    name : str
        md5, sha1 or sha256.
    tag : str
        Hex digits.
    length : int
        Bytes of key and text together.
    suffix : bytes
        What is put behind the padding.
    """
    core, order = _CORES[name]

    def padding(n: int) -> bytes:
        return b"\x80" + bytes((55 - n) % 64) + struct.pack(order + "Q", 8 * n)

    glue = padding(length)
    state = list(struct.unpack(f"{order}{len(tag) // 8}I", bytes.fromhex(tag)))
    rest = suffix + padding(length + len(glue) + len(suffix))
    for start in range(0, len(rest), 64):
        state = core(state, rest[start : start + 64])
    return glue, struct.pack(f"{order}{len(state)}I", *state).hex()


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    found = re.search(r"hashlib\.(md5|sha1|sha256)\(", public["main.py"].decode())
    if found is None:
        raise ValueError("no hash in main.py")
    tube = connect()
    guest, tag = tube.line().split()
    text, suffix = bytes.fromhex(guest), b"&role=master"
    for key in range(8, 33):
        glue, new = extend(found[1], tag, key + len(text), suffix)
        answer = tube.ask(f"{(text + glue + suffix).hex()} {new}")
        if re.fullmatch(r"flag\{[0-9a-f]{24}\}", answer):
            return answer
    raise ValueError("no length of the key fits")
