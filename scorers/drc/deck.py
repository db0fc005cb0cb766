"""The deck in an answer."""

from __future__ import annotations

import re

LONGEST = 200_000
"""Characters; no deck of a model's is longer."""
_FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)


def extract_deck(text: str) -> str | None:
    r"""Find the deck in an answer: the first fenced block (``ruby`` or bare), else the whole text.

    Parameters
    ----------
    text : str
        What a model said, its reasoning left out.

    Returns
    -------
    str or None
        None where there is nothing, or more than 200,000 characters of it.

    Examples
    --------
    >>> extract_deck("Here:\n```ruby\nsource($input)\n```\nDone.")
    'source($input)\n'
    >>> extract_deck("source($input)")
    'source($input)'
    >>> extract_deck("```python\nprint(1)\n```\n~~~\nreport('x', $output)\n~~~")
    "report('x', $output)\n"
    >>> extract_deck("  \n") is None
    True
    """
    found = next(
        (
            body
            for _, tongue, body in _FENCE.findall(text)
            if tongue.lower() in ("", "ruby", "drc", "rb")
        ),
        None,
    )
    deck = text if found is None else found
    return deck if deck.strip() and len(deck) <= LONGEST else None
