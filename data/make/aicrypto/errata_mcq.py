"""Work out the keys of three items of AICrypto that errata.toml corrects.

Each check takes a record (question, choice, answer, ...) and gives the positions of the options that
are right. It reads the numbers of the question and of the options from the record, so that nothing of
the record stands here, and counts by brute force.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

STAGES = (4, 5, 7)
"""Lengths of the registers that are tried; all of their maximum-length sequences are made."""


def congruences(record: Mapping[str, Any]) -> list[int]:
    r"""Find the least positive solution of the congruences by trying all numbers.

    Examples
    --------
    >>> question = r"$x \equiv 1 \pmod{2}$, $x \equiv 2 \pmod{3}$"
    >>> congruences({"question": question, "choice": ["1", "5", "11"]})
    [1]
    """
    pairs = [
        (int(rest), int(modulus))
        for rest, modulus in re.findall(
            r"x\s*&?\s*\\equiv\s*(\d+)\s*\\pmod\{(\d+)\}", record["question"]
        )
    ]
    product = math.prod(modulus for _, modulus in pairs)
    least = next(x for x in range(1, product + 1) if all(x % m == r for r, m in pairs))
    return options_that_say(least, record)


def ones_runs(record: Mapping[str, Any]) -> list[int]:
    """Count the runs of exactly n - 1 ones in a period of every maximum-length sequence.

    Examples
    --------
    >>> ones_runs({"choice": ["1", "0", "n"]})
    [1]
    """
    counts = {runs_of_ones(bits, n - 1) for n in STAGES for bits in maximum_length_sequences(n)}
    (count,) = counts  # the same for all of them, or the question has no answer
    return options_that_say(count, record)


def generators(record: Mapping[str, Any]) -> list[int]:
    r"""Count the generators of the units modulo n by the order of each, and again as phi(phi(n)).

    Examples
    --------
    >>> generators({"question": r"$\mathbb{Z}_{7}^*$", "choice": ["3", "None of the above"]})
    [1]
    """
    (found,) = set(re.findall(r"\\mathbb\{Z\}_\{(\d+)\}", record["question"]))
    n = int(found)
    units = [x for x in range(1, n) if math.gcd(x, n) == 1]
    count = sum(order(x, n) == len(units) for x in units)
    if count != phi(phi(n)):
        raise ArithmeticError(f"two counts of the generators modulo {n} disagree")
    return options_that_say(count, record)


def options_that_say(value: int, record: Mapping[str, Any]) -> list[int]:
    """Give the options that are this number; where there is none, "None of the above"."""
    texts = [re.sub(r"[\s$]", "", option) for option in record["choice"]]
    found = [i for i, text in enumerate(texts) if text.isdecimal() and int(text) == value]
    return found or [i for i, text in enumerate(texts) if text.lower() == "noneoftheabove"]


def maximum_length_sequences(n: int) -> Iterator[list[int]]:
    """Give one period of each linear recurrence of degree n over GF(2) whose period is 2**n - 1.

    The last stage is always tapped: only then does every state come back.

    Examples
    --------
    >>> [len(bits) for bits in maximum_length_sequences(4)]
    [15, 15]
    """
    for taps in range(1, 1 << n, 2):
        state, bits = 1, []
        for _ in range((1 << n) - 1):
            bits.append(state & 1)
            state = state >> 1 | (state & taps).bit_count() % 2 << (n - 1)
            if state == 1:
                break
        if len(bits) == (1 << n) - 1:
            yield bits


def runs_of_ones(bits: list[int], length: int) -> int:
    """Count the runs of ones of exactly this length in a periodic sequence.

    Examples
    --------
    >>> runs_of_ones([1, 0, 1, 1, 0, 1], 2)
    2
    """
    start = bits.index(0)
    turned = "".join(map(str, bits[start:] + bits[:start]))
    return [len(run) for run in turned.split("0")].count(length)


def order(x: int, n: int) -> int:
    """Return the multiplicative order of a unit by stepping.

    Examples
    --------
    >>> order(3, 7)
    6
    """
    power, steps = x % n, 1
    while power != 1:
        power, steps = power * x % n, steps + 1
    return steps


def phi(n: int) -> int:
    """Return Euler's totient by counting.

    Examples
    --------
    >>> phi(243)
    162
    """
    return sum(math.gcd(x, n) == 1 for x in range(1, n + 1))
