from __future__ import annotations

import hashlib
import re

import pytest

from harness.core.task import build
from harness.core.types import Output, Sample
from scorers.flag import flag_of

OTHERS = Sample(item_id="ctf-04-RSA-01-x", input="", target=("CTF{a b}\n",))
OWN = Sample(item_id="own-ctf-fermat-1", input="", metadata={"draw": 7})


def score(sample, text, epoch=0):
    return build("scorers", "flag")(sample, Output(text=text, epoch=epoch))


def hmac_sha256(key: bytes, message: bytes) -> str:
    """RFC 2104, written out."""
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in key) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in key) + inner).hexdigest()


@pytest.mark.parametrize(("draw", "item", "epoch"), [(0, "own-ctf-wiener-1", 0), (41, "x", 3)])
def test_an_own_flag_is_the_keyed_hash_of_item_and_repeat(draw, item, epoch):
    digest = hmac_sha256(str(draw).encode(), f"{item}\x1f{epoch}".encode())
    assert flag_of(draw, item, epoch) == f"flag{{{digest[:24]}}}"
    assert re.fullmatch(r"flag\{[0-9a-f]{24}\}", flag_of(draw, item, epoch))


def test_flags_of_draws_items_and_repeats_are_all_different():
    flags = {flag_of(d, i, e) for d in range(20) for i in ("a", "b", "ab") for e in range(20)}
    assert len(flags) == 20 * 3 * 20


@pytest.mark.parametrize("text", ["CTF{a b}", "  CTF{a b}\n\n"])
def test_the_flag_is_right(text):
    verdict = score(OTHERS, text)
    assert (verdict.value, verdict.passed, verdict.answer) == (1.0, True, "CTF{a b}")


@pytest.mark.parametrize(
    "text",
    [
        "ctf{a b}",
        "CTF{ab}",
        "a b",
        "CTF{a b",
        "The flag: CTF{a b}",
        "CTF{a b}\nCTF{a b}",
        "`CTF{a b}`",
    ],
)
def test_nothing_else_is(text):
    verdict = score(OTHERS, text)
    assert (verdict.value, verdict.passed, verdict.status) == (0.0, False, "scored")
    assert "CTF{a b}" not in verdict.explanation


@pytest.mark.parametrize("text", ["", " \n"])
@pytest.mark.parametrize("sample", [OTHERS, OWN])
def test_nothing_handed_in_is_no_answer(sample, text):
    verdict = score(sample, text)
    assert (verdict.value, verdict.status, verdict.reason) == (0.0, "error", "no_answer")


def test_the_flag_of_another_draw_repeat_or_item_is_wrong():
    right = flag_of(7, OWN.item_id, 2)
    assert score(OWN, right, epoch=2).value == 1.0
    assert score(OWN, right, epoch=0).value == 0.0
    for wrong in (flag_of(0, OWN.item_id, 2), flag_of(7, "own-ctf-fermat-2", 2)):
        assert score(OWN, wrong, epoch=2).value == 0.0


def test_without_a_flag_nothing_is_known():
    verdict = score(Sample(item_id="x", input=""), "flag{x}")
    assert (verdict.value, verdict.status, verdict.reason) == (None, "unscored", "no_flag")
