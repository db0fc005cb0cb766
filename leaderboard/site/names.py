"""File names for whatever runs, models and tasks are called."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 60


def file_name(name: str) -> str:
    """Give a name that any file system takes: readable, and another one for every other name.

    Parameters
    ----------
    name : str
        Anything; runs and submissions of others name themselves.

    Returns
    -------
    str
        Lower-case letters, digits, single dots and dashes, then eight digits of the name's sha256:
        also names that differ in case only stay apart.

    Examples
    --------
    >>> file_name("../../etc/passwd")
    'etc-passwd-3754d6cb'
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", name.casefold())
    plain = re.sub(r"\.{2,}", ".", plain)[:_LONGEST].strip(".-")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
