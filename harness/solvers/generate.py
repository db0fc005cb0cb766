"""`generate`: ask once, take what comes."""

from __future__ import annotations

from harness.backends.base import Capability
from harness.solvers.base import Item, Solving


class Generate:
    """Send the prompt and return the answer (request type ``generate_until``)."""

    needs: tuple[Capability, ...] = ("generate",)

    def __call__(self, item: Item) -> Solving:
        """Yield the one request and return its output."""
        return (yield item.ask())
