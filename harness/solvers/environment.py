"""What an agent works with: the protocol that tasks implement, under the name tasks import it by.

The records live in `harness.core.environment`, since `Task` holds the factory and core imports
nothing. `harness.solvers.tools.Workbench` is an environment of generic tools in the sandbox.
"""

from __future__ import annotations

from harness.core.environment import (
    CallStatus,
    Environment,
    EnvironmentFactory,
    EnvironmentRequest,
    SandboxLevel,
    ToolResult,
)

__all__ = [
    "CallStatus", "Environment", "EnvironmentFactory", "EnvironmentRequest", "SandboxLevel",
    "ToolResult",
]  # fmt: skip
