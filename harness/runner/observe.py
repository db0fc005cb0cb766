"""What a run tells while it goes: the progress bar listens, the Python API is silent."""

from __future__ import annotations

from harness.core.types import Status


class Observer:
    """Listens to a run; this one says nothing. Methods may be overridden one by one."""

    def started(self, label: str, n_todo: int, n_cached: int) -> None:
        """A run begins: attempts to make and attempts answered by earlier runs."""

    def finished(self, status: Status, value: float | None) -> None:
        """One attempt ended; `value` is what it adds to the denominator, None if it stays out."""

    def note(self, text: str) -> None:
        """Something a person should know."""

    def ended(self) -> None:
        """The run is over, however it ended."""
