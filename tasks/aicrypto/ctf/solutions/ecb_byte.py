"""ECB, one unknown byte at a time: two equal blocks show that a guess is right.

A label is made of one block with the guess (the last 15 known bytes and one more) and a filling that
ends the label so that the next unknown byte is the last one of a block. Where the shop's own bytes in
front are unknown, a run of equal blocks shows how many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube

# The flag's own characters first, the rest of ASCII after them.
_LIKELY = bytes(dict.fromkeys(b"0123456789abcdef{}flg" + bytes(range(32, 127))))


def _blocks(answer: str) -> list[str]:
    return [answer[i : i + 32] for i in range(0, len(answer), 32)]


def _front(tube: Tube) -> tuple[int, int]:
    """How many bytes fill up the block of the shop's own bytes, and where the next block is."""
    for fill in range(16):
        # Twice with other bytes, or the shop's last ones could be taken for ours.
        tries = (b"\x02" * fill + b"\x01" * 32, b"\x01" * fill + b"\x02" * 32)
        ends = [_blocks(tube.ask(label.hex())) for label in tries]
        for at in range(2):
            if all(blocks[at] == blocks[at + 1] for blocks in ends):
                return fill, at
    raise ValueError("no equal blocks: this is not ECB")


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    tube = connect()
    fill, at = _front(tube)
    lead = b"\x00" * fill
    known = b""
    while not known.endswith(b"}"):
        gap = b"\x00" * (15 - len(known) % 16)
        before = (b"\x00" * 15 + known)[-15:]
        wanted = _blocks(tube.ask((lead + gap).hex()))[at + len(known) // 16]
        guesses = b"".join(before + bytes([c]) for c in _LIKELY)
        found = None
        # 15 guesses make a label of 240 bytes.
        for start in range(0, len(guesses), 240):
            part = guesses[start : start + 240]
            blocks = _blocks(tube.ask((lead + part).hex()))[at : at + len(part) // 16]
            if wanted in blocks:
                found = _LIKELY[start // 16 + blocks.index(wanted)]
                break
        if found is None:
            raise ValueError(f"no byte fits after {known!r}")
        known += bytes([found])
    return known.decode()
