"""Vigenère: for each length of the key the best shift of every column, then better by trigrams."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_LENGTHS = range(1, 15)
_FLAG = re.compile(rb"flag\{[0-9a-f]{24}\}")


def _scores(sample: str, size: int) -> Callable[[str], float]:
    """Log-probability of a group of `size` letters, by its share in a sample."""
    counts = Counter(sample[i : i + size] for i in range(len(sample) - size + 1))
    table = {group: log(n + 0.1) for group, n in counts.items()}
    rare = log(0.1)
    return lambda group: table.get(group, rare)


def _shift(text: str, key: list[int]) -> str:
    return "".join(chr((ord(c) - 97 - key[i % len(key)]) % 26 + 97) for i, c in enumerate(text))


def _best_key(cipher: str, length: int, single: Callable[[str], float],
              triple: Callable[[str], float]) -> list[int]:  # fmt: skip
    key = []
    for start in range(length):
        column = cipher[start::length]
        key.append(max(range(26), key=lambda k: sum(map(single, _shift(column, [k])))))

    def total(key: list[int]) -> float:
        text = _shift(cipher, key)
        return sum(triple(text[i : i + 3]) for i in range(len(text) - 2))

    best = total(key)
    for _ in range(3):
        before = best
        for place in range(length):
            tries = [[*key[:place], k, *key[place + 1 :]] for k in range(26)]
            best, key = max((total(other), other) for other in tries)
        if best == before:
            break
    return key


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    lines = public["output.txt"].decode().splitlines()
    output = dict(line.split(" = ") for line in lines)
    cipher, sealed = output["ciphertext"], bytes.fromhex(output["sealed"])
    words = public["words.txt"].decode().split()
    mixed = random.Random(1)
    sample = "".join("the" if mixed.random() < 0.15 else mixed.choice(words) for _ in range(9000))
    single, triple = _scores(sample, 1), _scores(sample, 3)

    def evenness(length: int) -> float:
        """Index of coincidence of the columns: high where the length is right."""
        counts = [Counter(cipher[start::length]) for start in range(length)]
        pairs = sum(n * (n - 1) for count in counts for n in count.values())
        return pairs / sum(count.total() * (count.total() - 1) for count in counts)

    for length in sorted(_LENGTHS, key=evenness, reverse=True):
        text = _shift(cipher, _best_key(cipher, length, single, triple))
        pad = hashlib.shake_256(text.encode()).digest(len(sealed))
        opened = bytes(s ^ p for s, p in zip(sealed, pad, strict=True))
        if _FLAG.fullmatch(opened):
            return opened.decode()
    raise ValueError("no key opens the flag")
