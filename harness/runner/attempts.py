"""An attempt under way: a solver's generator, moved on step by step and closed whatever happens."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

import msgspec
from msgspec import Struct, field

from harness.core.environment import Environment
from harness.core.errors import HarnessError
from harness.core.types import ChoiceRequest, GenerateRequest, Output, Request, Usage
from harness.runner.plan import Plan, Planned
from harness.runner.pool import Calls
from harness.runner.writing import failed
from harness.solvers.base import Solving

CLOSE_SECONDS = 10.0  # for what runs when a run is stopped


class Todo(Struct):
    """An attempt to be made: its plan and its number (1, then 2 after a fault, …)."""

    planned: Planned
    attempt: int = 1


class Active(Struct, eq=False):
    """An attempt that has begun.

    Attributes
    ----------
    todo : Todo
    solving : Solving
    request : Request or None
        What it asked for last.
    outputs : list of Output
        The model's answers so far.
    environments : list of Environment
        What the solver was given to work with.
    stopped : bool
        It is to end, and may open nothing any more.
    """

    todo: Todo
    solving: Solving | None = None
    request: Request | None = None
    outputs: list[Output] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    stopped: bool = False


def begin(plan: Plan, todo: Todo) -> Active:
    """Begin an attempt; nothing of it runs before it is moved on."""
    active = Active(todo)
    active.solving = _solving(plan, active)
    return active


def _solving(plan: Plan, active: Active) -> Solving:
    # A generator around it, so that whatever goes wrong on the way to the first request is met in
    # `move` too.
    sample = plan.samples[active.todo.planned.index]
    if plan.task.missing is not None and (why := plan.task.missing(sample)):
        return Output(text="", finish_reason="skipped", error=why)
    item = plan.item(active.todo.planned)
    if item.environment is not None:
        item = msgspec.structs.replace(item, environment=_watched(item.environment, active))
    return (yield from plan.solver(item))


def _watched(make: Callable[[], Environment], active: Active) -> Callable[[], Environment]:
    """Keep hold of what a solver works with, to end it when the run is stopped."""

    def made() -> Environment:
        environment = make()
        active.environments.append(environment)
        if active.stopped:
            environment.kill()
        return environment

    return made


def move(active: Active) -> Request | Output:
    """Move an attempt on to its next request or its end, with the latest answer if there is one.

    Touches nothing but the attempt, so it may be called in a thread.

    Raises
    ------
    HarnessError
        What would meet every attempt alike.
    """
    solving = active.solving
    assert solving is not None
    try:
        request = solving.send(active.outputs[-1]) if active.outputs else next(solving)
        if isinstance(request, GenerateRequest | ChoiceRequest):
            return request
        close(active)
        raise TypeError(f"the solver asked for a {type(request).__name__}")
    except StopIteration as done:
        answer = done.value
        if not isinstance(answer, Output):
            error = TypeError(f"the solver returned a {type(answer).__name__}, no Output")
            answer = failed(error, "harness")
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001  a fault of the harness must stay visible per item
        answer = failed(error, "harness")
    if active.outputs and answer is not active.outputs[0]:
        # A copy: the output of the last turn stays what that turn was.
        answer = msgspec.structs.replace(
            answer,
            usage=_total([o.usage for o in active.outputs]),
            latency_s=sum(o.latency_s or 0.0 for o in active.outputs),
        )
    return answer


def take(active: Active, answer: Future[Output]) -> None:
    """Give an attempt its answer; where there is none the attempt is closed, and the error raised."""
    try:
        active.outputs.append(answer.result())
    except BaseException:
        close(active)
        raise


def close(active: Active) -> None:
    """Close an attempt's generator, so that its ``finally`` runs."""
    # Whatever a solver does at its end must not hide why the run stops.
    with contextlib.suppress(Exception):
        if active.solving is not None:
            active.solving.close()


def close_all(actives: Iterable[Active], steps: Calls[Active, Request | Output]) -> None:
    """End attempts of which some may be running in threads just now.

    Their environments are killed first, so that calls of tools return; then every generator is
    closed. One that still runs after `CLOSE_SECONDS` is left to its thread and to the sandbox's
    own clean-up at the end of the process.
    """
    actives = list(actives)
    for active in actives:
        active.stopped = True
        for environment in active.environments:
            with contextlib.suppress(Exception):
                environment.kill()
    steps.drop(CLOSE_SECONDS)
    for active in actives:
        close(active)


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _total(usages: Sequence[Usage]) -> Usage:
    """Add up the calls of one attempt; what one of them does not say is not known of the sum."""
    columns = [[getattr(usage, name) for usage in usages] for name in Usage.__struct_fields__]
    return Usage(*(None if None in column else sum(column) for column in columns))
