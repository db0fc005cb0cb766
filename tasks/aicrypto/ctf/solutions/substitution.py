"""Substitution of the alphabet: swaps that make trigrams likelier, then swaps that make words.

The second part settles the rare letters, on which a few trigrams say little.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PAIRS = list(combinations(range(26), 2))
_RESTARTS = 40
_FLAG = re.compile(rb"flag\{[0-9a-f]{24}\}")
_Score = Callable[[list[str]], float]


def _climb(key: list[str], score: _Score) -> float:
    """Swap two letters of the key (in place) as long as that is better; give the score."""
    best, before = score(key), float("-inf")
    while best > before:
        before = best
        for i, j in _PAIRS:
            key[i], key[j] = key[j], key[i]
            if (now := score(key)) > best:
                best = now
            else:
                key[i], key[j] = key[j], key[i]
    return best


def _trigrams(cipher: str, words: Sequence[str], mixed: random.Random) -> _Score:
    sample = "".join("the" if mixed.random() < 0.15 else mixed.choice(words) for _ in range(20000))
    counts = Counter(sample[i : i + 3] for i in range(len(sample) - 2))
    table = {group: log(n + 0.1) - log(0.1) for group, n in counts.items()}
    found = Counter(cipher[i : i + 3] for i in range(len(cipher) - 2))
    groups = [(*map(_LETTERS.index, group), n) for group, n in found.items()]
    get = table.get
    return lambda key: sum(n * get(key[a] + key[b] + key[c], 0.0) for a, b, c, n in groups)


def _covered(cipher: str, words: Sequence[str]) -> _Score:
    """Letters of the text that words cover, if it is cut in the best way."""
    known, longest = set(words), max(map(len, words))

    def score(key: list[str]) -> float:
        text = cipher.translate(str.maketrans(_LETTERS, "".join(key)))
        best = [0] * (len(text) + 1)
        for end in range(1, len(text) + 1):
            best[end] = best[end - 1]
            for start in range(max(0, end - longest), end):
                if best[start] + end - start > best[end] and text[start:end] in known:
                    best[end] = best[start] + end - start
        return best[-1]

    return score


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    lines = public["output.txt"].decode().splitlines()
    output = dict(line.split(" = ") for line in lines)
    cipher, sealed = output["ciphertext"], bytes.fromhex(output["sealed"])
    words = public["words.txt"].decode().split()
    mixed = random.Random(1)
    likely, covered = _trigrams(cipher, words, mixed), _covered(cipher, words)

    def opened(key: list[str]) -> bytes:
        text = cipher.translate(str.maketrans(_LETTERS, "".join(key)))
        pad = hashlib.shake_256(text.encode()).digest(len(sealed))
        return bytes(s ^ p for s, p in zip(sealed, pad, strict=True))

    best, key = float("-inf"), list(_LETTERS)
    for _ in range(_RESTARTS):
        start = mixed.sample(_LETTERS, 26)
        score = _climb(start, likely)
        if score <= best:
            continue
        best, key = score, start[:]
        # A text most of which is words has but a few letters wrong, if any.
        if not _FLAG.fullmatch(opened(key)) and covered(key) > 0.6 * len(cipher):
            _climb(key, covered)
        if _FLAG.fullmatch(opened(key)):
            return opened(key).decode()
    raise ValueError("no key opens the flag")
