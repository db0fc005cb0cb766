"""A stream used more than once: known text gives the stream, the stream gives the other text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

_PAGES = 12


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=False))


def _twice(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> bytes:
    """Two messages with the same stream, one of them known or chosen."""
    if "output.txt" not in public:
        tube = connect()
        secret = bytes.fromhex(tube.line())
        return _xor(secret, bytes.fromhex(tube.ask(bytes(len(secret)).hex())))
    output = dict(line.split(" = ") for line in public["output.txt"].decode().splitlines())
    known = re.search(rb'^known = b"(.*)"', public["main.py"], re.MULTILINE)
    if known is None:
        raise ValueError("no known text in main.py")
    stream = _xor(bytes.fromhex(output["known"]), known[1])
    return _xor(bytes.fromhex(output["secret"]), stream)


def _pages(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> bytes:
    """Page i begins in block i of one stream, with a block that is known: so are blocks 0 to 11."""
    if "output.txt" not in public:
        tube = connect()
        pages = [bytes.fromhex(tube.ask("next")) for _ in range(_PAGES)]
    else:
        lines = public["output.txt"].decode().splitlines()
        pages = [bytes.fromhex(line.split(" = ")[1]) for line in lines]
    stream = b"".join(_xor(page[:16], b"log, page %04d: " % i) for i, page in enumerate(pages))
    return b"\n".join(_xor(page, stream[16 * i :]) for i, page in enumerate(pages))


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    read = _pages if b"log, page" in public["main.py"] else _twice
    text = read(public, connect)
    found = re.search(rb"flag\{[0-9a-f]{24}\}", text)
    if found is None:
        raise ValueError(f"no flag in {text!r}")
    return found[0].decode()
