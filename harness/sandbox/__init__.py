"""Running what a model wrote: in a box that shows it nothing and ends with it."""

from harness.sandbox.box import Box
from harness.sandbox.cgroup import Counters
from harness.sandbox.channel import Fault
from harness.sandbox.driver import Driver, Job
from harness.sandbox.errors import SandboxUnavailable
from harness.sandbox.forkpool import ForkPool
from harness.sandbox.jobs import JobResult
from harness.sandbox.levels import LEVELS, Isolation, Level, reach
from harness.sandbox.limits import LIMITS, Limits
from harness.sandbox.network import Death, Network, Service
from harness.sandbox.output import Clipped, clip
from harness.sandbox.process import BoxProcess
from harness.sandbox.run import Result, run
from harness.sandbox.slots import sweep
from harness.sandbox.warm import WarmWorkers
from harness.sandbox.worker import Reply, Worker

__all__ = [
    "LEVELS", "LIMITS", "Box", "BoxProcess", "Clipped", "Counters", "Death", "Driver", "Fault", "ForkPool",
    "Isolation", "Job", "JobResult", "Level", "Limits", "Network", "Reply", "Result",
    "SandboxUnavailable", "Service", "WarmWorkers", "Worker", "clip", "reach", "run", "sweep",
]  # fmt: skip
