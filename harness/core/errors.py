"""The errors that a person is meant to read: one line each, with what, where and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HarnessError(Exception):
    """Something could not be done; the command line prints the message and exits with `exit_code`."""

    exit_code = 1


class UsageError(HarnessError):
    """The request itself is wrong (unknown name, bad option, broken data file): exit code 2."""

    exit_code = 2


class MissingPackageError(HarnessError):
    """A backend or scorer needs a package or program that is not installed.

    Parameters
    ----------
    what : str
        What cannot be used, e.g. ``"backend hf"``.
    package : str
        The missing package or program.
    install : str
        The command that would install it.
    """

    def __init__(self, what: str, package: str, install: str) -> None:
        super().__init__(
            f"{what} needs {package}, which is not installed; install it with: {install}"
        )


class StoreError(HarnessError):
    """The store cannot be read or written (read-only folder, full disk, newer version)."""


def unknown(kind: str, name: str, known: Iterable[str], more: str = "") -> UsageError:
    """Make the error for a name that does not exist, with the nearest ones that do.

    Parameters
    ----------
    kind : str
        What was looked up: ``"task"``, ``"model"``, …
    name : str
        The name that was asked for.
    known : iterable of str
        The names that exist.
    more : str
        A closing hint, such as the command that lists all names.

    Examples
    --------
    >>> print(unknown("task", "gsm8", ["gsm8k", "aicrypto/mcq"], "see `harness list tasks`"))
    unknown task 'gsm8': did you mean 'gsm8k'? (see `harness list tasks`)
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        hint = "did you mean " + " or ".join(repr(n) for n in near) + "?"
    elif names:
        hint = "there are " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    else:
        hint = "there are none"
    return UsageError(f"unknown {kind} {name!r}: {hint}" + (f" ({more})" if more else ""))
