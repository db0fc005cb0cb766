"""What goes wrong with the sandbox itself, never with a program in it."""

from __future__ import annotations

from harness.core.errors import HarnessError


class SandboxUnavailable(HarnessError):  # noqa: N818  the attempt's status is called so
    """The isolation that is asked for cannot be had here; the message says what to install."""
