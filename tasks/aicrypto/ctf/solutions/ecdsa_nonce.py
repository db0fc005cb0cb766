"""ECDSA with a nonce used twice, or with 40 nonces that are a byte short.

The second is the hidden number problem of Boneh and Venkatesan, as Howgrave-Graham and Smart put it
for signatures (Designs, Codes and Cryptography 23, 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_NONCE_BITS = 248
_ORDER = b"open the vault"

_Signature = tuple[int, int, int]
"""The message's hash, r and s."""


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the private key; open the box with it, or sign the order that may not be signed."""
    if "output.txt" in public:
        _, box, *rows = public["output.txt"].decode().splitlines()
        signatures = []
        for message, numbers in (row.split(" = ") for row in rows):
            signatures.append(_signature(message, numbers))
        mask = sha256(str(_private_key(signatures)).encode()).digest()
        locked = bytes.fromhex(box.split(" = ")[1])
        return bytes(a ^ b for a, b in zip(locked, mask, strict=False)).decode()
    tube = connect()
    tube.line()
    messages = [f"message {i}" for i in range(40)]
    tube.send_all([f"sign {message}" for message in messages])
    signatures = [_signature(message, tube.line()) for message in messages]
    d = _private_key(signatures)
    # A nonce that is known now serves once more, so no point has to be computed.
    z, r, s = signatures[0]
    k = pow(s, -1, _N) * (z + r * d) % _N
    s = pow(k, -1, _N) * (_hash(_ORDER) + r * d) % _N
    return tube.ask(f"order {r:x} {s:x}")


def _hash(message: bytes) -> int:
    return int.from_bytes(sha256(message).digest(), "big")


def _signature(message: str, numbers: str) -> _Signature:
    r, s = (int(number, 16) for number in numbers.split())
    return _hash(message.encode()), r, s


def _private_key(signatures: Sequence[_Signature]) -> int:
    seen: dict[int, _Signature] = {}
    for signature in signatures:
        before = seen.setdefault(signature[1], signature)
        if before != signature:
            return _same_nonce(before, signature)[0]
    return _short_nonces(signatures)


def _same_nonce(one: _Signature, other: _Signature) -> tuple[int, int]:
    """Give the private key and the nonce of two signatures with one nonce."""
    (z1, r, s1), (z2, _, s2) = one, other
    k = (z1 - z2) * pow(s1 - s2, -1, _N) % _N
    return (s1 * k - z1) * pow(r, -1, _N) % _N, k


def _short_nonces(signatures: Sequence[_Signature]) -> int:
    # k = t d + u modulo N for every signature, and k - 2^247 has at most 247 bits.
    ts = [pow(s, -1, _N) * r % _N for _, r, s in signatures]
    us = [pow(s, -1, _N) * z % _N for z, _, s in signatures]
    for d in _candidates(ts, us):
        if all((t * d + u) % _N <= 2**_NONCE_BITS for t, u in zip(ts, us, strict=True)):
            return d
    raise ValueError("the lattice's short vectors do not hold the key")


def _candidates(ts: Sequence[int], us: Sequence[int]) -> Iterator[int]:
    """Give what the last column but one says of d, from ever better reduced bases."""
    from fpylll import BKZ, LLL, IntegerMatrix

    scale = 1 << 256 - _NONCE_BITS + 1  # makes all coordinates of the wanted vector as long as N
    count, middle = len(ts), 1 << _NONCE_BITS - 1
    rows = [[scale * _N * (i == j) for j in range(count + 2)] for i in range(count)]
    rows.append([*(scale * t for t in ts), 1, 0])
    rows.append([*(scale * ((u - middle) % _N) for u in us), 0, _N])
    basis = IntegerMatrix.from_matrix(rows)
    LLL.reduction(basis)
    for block in (0, 15, 25, 30):
        if block:
            BKZ.reduction(basis, BKZ.Param(block))
        for row in basis:
            yield row[count] % _N
            yield -row[count] % _N
