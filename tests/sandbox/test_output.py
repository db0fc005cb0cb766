"""What a program printed: both ends kept, nothing that acts on a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox import clip
from harness.sandbox.output import Ends, readable


def test_short_output_stays_whole():
    kept = clip(b"hello\n", 100)
    assert (kept.text, kept.raw, kept.bytes_total, kept.bytes_cut) == ("hello\n", b"hello\n", 6, 0)


def test_both_ends_stay_and_the_gap_is_counted():
    kept = clip(b"A" * 50 + b"B" * 1000 + b"C" * 50, 100)
    assert kept.text == "A" * 50 + "\n[1000 bytes cut]\n" + "C" * 50
    assert kept.raw == b"A" * 50 + b"C" * 50
    assert (kept.bytes_total, kept.bytes_cut) == (1100, 1000)


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 60))
def test_pieces_give_what_the_whole_gives(pieces, cap):
    ends = Ends(cap)
    for piece in pieces:
        ends.add(piece)
    whole = b"".join(pieces)
    kept = ends.clipped()
    assert kept == clip(whole, cap)
    assert kept.bytes_total == len(whole)
    assert len(kept.raw) == min(cap, len(whole))
    head = cap - cap // 2
    expected = whole if len(whole) <= cap else whole[:head] + whole[len(whole) - cap // 2 :]
    assert kept.raw == expected


def test_memory_is_bounded_however_much_comes():
    ends = Ends(1000)
    for _ in range(1000):
        ends.add(b"x" * 10_000)
    assert len(ends._head) + len(ends._tail) <= 1500
    assert ends.total == 10_000_000


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        (b"safe\rdanger", "safe\\rdanger"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"a\x00b", "a\\x00b"),
        ("\u202egpj.exe".encode(), "\\u202egpj.exe"),
        ("\u2066x\u2069\u200b\u2028".encode(), "\\u2066x\\u2069\\u200b\\u2028"),
        (b"\x7f\xc2\x9b31m", "\\x7f\\x9b31m"),
        ("tab\tnewline\n äöü 漢字 🙂 no\u00a0break".encode(), "tab\tnewline\n äöü 漢字 🙂 no\u00a0break"),
    ],
)  # fmt: skip
def test_nothing_acts_on_a_terminal(raw, shown):
    assert readable(raw) == shown


@given(st.binary(max_size=200))
def test_any_bytes_become_text_that_prints_and_can_be_stored(raw):
    text = readable(raw)
    assert all(c in "\n\t" or c.isprintable() or c.isspace() for c in text)
    assert "\x1b" not in text
    text.encode("utf-8")


def test_numbers_are_never_shortened():
    digits = b"3." + b"1" * 500
    assert clip(digits, 1000).text == digits.decode()
