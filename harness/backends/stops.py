"""Stop strings, enforced by us in one place for every backend."""

from __future__ import annotations

from collections.abc import Sequence


def cut(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    r"""Cut a text at the earliest stop string.

    The search is in the decoded text, so a stop string split over tokens is found too. An empty
    stop string means nothing and is passed over.

    Parameters
    ----------
    text : str
    stop : sequence of str

    Returns
    -------
    (str, bool)
        The text before the earliest stop string, and whether there was one.

    Examples
    --------
    >>> cut("4. Question: 3+3?", ["\n\n", "Question:"])
    ('4. ', True)
    >>> cut("4.", ["\n"])
    ('4.', False)
    """
    positions = [at for s in stop if s and (at := text.find(s)) >= 0]
    return (text[: min(positions)], True) if positions else (text, False)
