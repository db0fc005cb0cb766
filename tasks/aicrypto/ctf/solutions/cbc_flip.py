"""CBC without a tag: what is changed in one block of a card changes the text of the next alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.aicrypto.ctf.solutions.tube import Tube


def _forged(tube: Tube, program: str) -> bytes:
    """Give a card that reads as a keeper's."""
    before = re.search(r'^BEFORE = b"(.*)"', program, re.MULTILINE)
    if before is None:
        # "keeper=0" in the first block, which the IV changes without any harm.
        card = bytearray.fromhex(tube.ask("card"))
        card[len("keeper=")] ^= ord("0") ^ ord("1")
        return bytes(card)
    # Up to the end of a block, one block that will be spoilt, then the field with "a" for separators.
    lead = -len(before[1]) % 16 + 16
    card = bytearray.fromhex(tube.ask("card " + "a" * lead + "akeeperayes"))
    field = 16 + len(before[1]) + lead
    card[field - 16] ^= ord("a") ^ ord(";")
    card[field - 16 + len("akeeper")] ^= ord("a") ^ ord("=")
    return bytes(card)


def solve(public: Mapping[str, bytes], connect: Callable[[], Tube]) -> str:
    """Find the flag."""
    tube = connect()
    program = public["main.py"].decode()
    # The spoilt block may hold a separator or spoil the check of the first block: then once more.
    for _ in range(8):
        answer = tube.ask("enter " + _forged(tube, program).hex())
        if re.fullmatch(r"flag\{[0-9a-f]{24}\}", answer):
            return answer
    raise ValueError(f"the keeper's card did not open: {answer}")
