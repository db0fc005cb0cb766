"""What a family of challenges is: a way to make instances of two levels that one attack breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tasks.aicrypto.ctf.draw import Draw

Kind = Literal["static", "dynamic"]
LEVELS = (1, 2)


class Made(Struct, frozen=True, kw_only=True):
    """The files of one instance.

    Attributes
    ----------
    public : dict of str to bytes
        What the agent sees, by name; no folders.
    server : dict of str to bytes
        What lies beside the server, never shown; ``main.py`` is the program (one process a
        connection, stdin and stdout are the socket). Empty for a static challenge.
    """

    public: dict[str, bytes]
    server: dict[str, bytes] = msgspec.field(default_factory=dict)


class Family(Struct, frozen=True, kw_only=True):
    """A kind of weakness.

    Attributes
    ----------
    name : str
        Also the name of its solution, ``solutions/<name>.py``.
    folder : str
        Upstream's folder for such challenges (``04-RSA``): the category.
    kinds : tuple of Kind
        Whether its instances are files only or have a server; each kind is an item of its own.
    story : str
        What the agent is told beside the files: one or two sentences that give the setting, not
        the attack.
    sizes : dict
        By level, what makes it hard, for statistics: ``{"key_bits": 1024}`` and the like.
    make : callable
        (draw, level, kind, flag) -> `Made`. Every random choice comes from the draw. No public file
        may hold the flag, its bytes or its hex digits.
    """

    name: str
    folder: str
    kinds: tuple[Kind, ...]
    story: str
    sizes: Mapping[int, Mapping[str, Any]]
    make: Callable[[Draw, int, Kind, str], Made]
