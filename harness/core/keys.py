"""Content keys: what makes two attempts the same attempt.

The same key is never paid for twice, across runs; another key is never served an old answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from harness.core.types import Message, Sample

_canonical = msgspec.json.Encoder(order="deterministic")


class _Hash(Protocol):
    def copy(self) -> _Hash: ...
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


def canonical(value: Any) -> bytes:
    """Write a value as JSON with sorted keys, the same bytes on every machine."""
    return _canonical.encode(value)


def sha256_of(value: Any) -> str:
    """Give the hex sha256 of a value's canonical JSON.

    Examples
    --------
    >>> sha256_of({"b": 1, "a": 2}) == sha256_of({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical(value)).hexdigest()


def sample_hash(sample: Sample) -> str:
    """Give the content hash of an item: everything of it, its reference included."""
    return sha256_of(sample)


class AttemptKeys:
    """Makes the keys of one run; the part that all attempts share is hashed once.

    Parameters
    ----------
    shared : dict
        Everything beside the item that an answer depends on: task content, model identity,
        backend mode and endpoint, solver with version and arguments, generation parameters, seed,
        `--no-data`, `--arg`, `--on-long`, limits and tool-set version.
    """

    def __init__(self, shared: dict[str, Any]) -> None:
        self._base: _Hash = hashlib.sha256(canonical(shared))

    def key(self, item_id: str, epoch: int, messages: Sequence[Message], extra: Any = None) -> str:
        """Give the key of one attempt.

        Parameters
        ----------
        item_id : str
            The item.
        epoch : int
            The repeat, from 0.
        messages : sequence of Message
            The rendered template.
        extra : object
            What else this attempt depends on (choices, files, a baseline's reference).

        Returns
        -------
        str
            64 hex digits.
        """
        digest = self._base.copy()
        digest.update(_canonical.encode((item_id, epoch, messages, extra)))
        return digest.hexdigest()


def seed_of(key: str) -> int:
    """Give the random seed of an attempt: 63 bits of its key, so no draw depends on its order."""
    return int(key[:16], 16) >> 1


def unit_of(*parts: object) -> float:
    """Map any parts to a number in [0, 1) by hash; a pure function of them."""
    return units_of(1, *parts)[0]


def units_of(n: int, *parts: object) -> list[float]:
    """Map any parts to n numbers in [0, 1), each from 53 bits of a hash that gives what is needed."""
    digest = hashlib.shake_128("\x1f".join(map(str, parts)).encode()).digest(8 * n)
    return [(int.from_bytes(digest[i : i + 8], "big") >> 11) / 2**53 for i in range(0, 8 * n, 8)]
