"""Why a file of others' results is not taken: every reason at once, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.errors import HarnessError

_SHOWN = 3


class RejectedError(HarnessError):
    """A file was read and refused; nothing of it was kept. Exit code 1.

    Attributes
    ----------
    reasons : tuple of str
        One line each: what, where, what to do.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


class Reasons:
    """Collects reasons; the same thing wrong in many places is one of them.

    Examples
    --------
    >>> found = Reasons()
    >>> for item in ("a", "b", "c", "d"):
    ...     found.add("the key is another", f"item {item}", "send the file again")
    >>> found.lines()
    ['the key is another: item a, item b, item c, … (4 in all); send the file again']
    """

    def __init__(self) -> None:
        self._where: dict[tuple[str, str], list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._where)

    def add(self, what: str, where: str, remedy: str) -> None:
        """Note that something is wrong somewhere, and what would mend it."""
        self._where.setdefault((what, remedy), []).append(where)

    def lines(self) -> list[str]:
        """Write each reason as one line, with the first places where it was met."""
        return [
            " ".join(f"{what}: {_some(where)}; {remedy}".split())
            for (what, remedy), where in self._where.items()
        ]

    def stop(self) -> None:
        """Refuse the file if anything was found.

        Raises
        ------
        RejectedError
        """
        if self:
            raise RejectedError(self.lines())


def _some(where: Sequence[str]) -> str:
    shown = ", ".join(where[:_SHOWN])
    return shown if len(where) <= _SHOWN else f"{shown}, … ({len(where)} in all)"
