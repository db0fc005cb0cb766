"""Names of models and items inside running text."""

from __future__ import annotations

_SIGNS = "\\`*_{}[]<>()#+-!|$:~"


def plain(text: str) -> str:
    r"""Keep a text from being read as markup: names come from others.

    Examples
    --------
    >>> print(plain("a_b [c]"))
    a\_b \[c\]
    """
    return "".join(f"\\{sign}" if sign in _SIGNS else sign for sign in text)
