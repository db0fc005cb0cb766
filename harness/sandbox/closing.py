"""What must be closed at the end, as a context manager."""

from __future__ import annotations

import abc
from types import TracebackType
from typing import Self


class Closing(abc.ABC):
    """Something that leaves nothing behind once it is closed; ``with`` closes it."""

    @abc.abstractmethod
    def close(self) -> None:
        """End it; may be called more than once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
