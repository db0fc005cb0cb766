"""Where an agent works: the tools of one attempt, as a task supplies them and a solver uses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec
from msgspec import Struct

from harness.core.types import Sample, Tool, ToolCall

SandboxLevel = Literal["auto", "full", "userns", "unshare", "limits", "container"]
CallStatus = Literal[
    "ok", "error", "timeout", "memory", "crash", "output_limit", "denied", "harness"
]  # fmt: skip


class EnvironmentRequest(Struct, frozen=True, kw_only=True):
    """What an environment is made for.

    Attributes
    ----------
    level : SandboxLevel
        The isolation asked for (`--sandbox`).
    seed : int
        The run's seed, for anything that is drawn: flags, ports, instances.
    epoch : int
        The repeat, from 0; all draws of a strategy for one repeat face the same instance.
    """

    level: SandboxLevel = "auto"
    seed: int = 0
    epoch: int = 0


class ToolResult(Struct, frozen=True, kw_only=True):
    """What came of one call.

    Attributes
    ----------
    text : str
        What the model is shown; the solver cuts it in the middle where it is long.
    submitted : str or None
        Not None ends the attempt: this text is what the scorer judges.
    status : CallStatus
        How the program ended. ``harness`` is no fault of the model: the attempt ends, is tried
        again, and stays out of the denominator. After any other the model may go on.
    reason : str or None
        A short machine word for a status other than ``ok``.
    fatal : bool
        The attempt ends here with this status, whoever might want to go on.
    isolation : mapping or None
        What was in force, JSON-ready; its ``level`` is shown with the score.
    facts : mapping
        JSON-ready; ``cpu_s`` and ``peak_bytes`` where they were measured, exit code, bytes cut, …
    """

    text: str
    submitted: str | None = None
    status: CallStatus = "ok"
    reason: str | None = None
    fatal: bool = False
    isolation: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Environment(Protocol):
    """The tools of one attempt and what lies behind them; made, entered and left once.

    Entering may start boxes and servers; leaving ends them, whatever happened. A `HarnessError` on
    the way (no isolation, an engine that is missing) makes the attempt ``unavailable`` with its
    message; anything else raised is a fault of the harness. Used by one thread at a time, not
    always the same one; `kill` comes from any thread.

    An environment may also have ``finish(submitted: str | None) -> str | None``: asked once at the
    end, it gives the text to be scored, such as a file that the model was to write. And it may have
    ``facts``, a mapping: what it counted, JSON-ready, for the attempt's summary.
    """

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call."""
        ...

    def __enter__(self) -> Self:
        """Start what is needed."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End everything that was started."""
        ...

    def call(self, call: ToolCall, wall_s: float) -> ToolResult:
        """Carry out a call of one of the tools, its arguments checked, within `wall_s` seconds."""
        ...

    def kill(self) -> None:
        """End at once whatever runs: a call under way returns, later ones are refused."""
        ...


EnvironmentFactory = Callable[[Sample, EnvironmentRequest], Environment]
