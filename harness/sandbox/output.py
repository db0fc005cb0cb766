"""What a program printed: kept up to a cap with both ends, and shown so that it can do no harm."""

from __future__ import annotations

import unicodedata

import msgspec


class Clipped(msgspec.Struct, frozen=True):
    """Output of one stream.

    Attributes
    ----------
    text : str
        For people and models: control characters escaped, ``[N bytes cut]`` where bytes are missing.
    raw : bytes
        The bytes that were kept, head and tail.
    bytes_total, bytes_cut : int
        How many the program wrote, and how many of them were not kept.
    """

    text: str
    raw: bytes
    bytes_total: int
    bytes_cut: int


class Ends:
    """Takes bytes as they come and keeps the first and the last of them, in bounded memory.

    Parameters
    ----------
    cap : int
        Bytes kept at most.
    """

    def __init__(self, cap: int) -> None:
        self._head_cap = cap - cap // 2
        self._tail_cap = cap // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total += len(data)
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_cap:
            self._trim()

    def clipped(self) -> Clipped:
        """Give what was kept."""
        self._trim()
        head, tail = bytes(self._head), bytes(self._tail)
        cut = self.total - len(head) - len(tail)
        if not cut:
            return Clipped(readable(head + tail), head + tail, self.total, 0)
        text = f"{readable(head)}\n[{cut} bytes cut]\n{readable(tail)}"
        return Clipped(text, head + tail, self.total, cut)

    def _trim(self) -> None:
        if len(self._tail) > self._tail_cap:
            del self._tail[: len(self._tail) - self._tail_cap]


def clip(raw: bytes, cap: int) -> Clipped:
    r"""Keep head and tail of `raw`.

    Parameters
    ----------
    raw : bytes
        What was printed.
    cap : int
        Bytes kept at most.

    Examples
    --------
    >>> clip(b"0123456789", 4).text.splitlines()
    ['01', '[6 bytes cut]', '89']
    >>> clip(b"red \x1b[31m", 100).text
    'red \\x1b[31m'
    """
    ends = Ends(cap)
    ends.add(raw)
    return ends.clipped()


def readable(raw: bytes) -> str:
    r"""Decode UTF-8 so that nothing acts on a terminal, a page or a reader's eye.

    Bytes that are no UTF-8, control characters except newline and tab, and marks that change the
    direction of writing become escapes.

    Examples
    --------
    >>> readable(b"a\tb\r\xff")
    'a\tb\\r\\xff'
    """
    text = raw.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in "\n\t" or character.isprintable():
        return character
    # Cc controls, Cf invisible and bidirectional marks, Zl and Zp line separators; other spaces stay.
    if unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")
