"""What `harness run` was asked for, as jobs: one task on one model each, with its store and meter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from harness.backends.base import LoadOptions
from harness.cli.output import note
from harness.core.errors import HarnessError, UsageError
from harness.core.registry import Entry, expand_tasks
from harness.core.task import make_task
from harness.runner.config import RunConfig, make_config
from harness.runner.limits import Limits, Meter


class Job(Struct, frozen=True):
    """One run to make."""

    config: RunConfig
    store: str | None
    meter: Meter


def make_jobs(asked: Mapping[str, Any], meter: Meter | None = None) -> list[Job]:
    """Expand tasks × models.

    Parameters
    ----------
    asked : mapping
        The options of `harness run` by their long names with underscores.
    meter : Meter, optional
        Counts for these jobs; by default one that all of them share, with the limits asked for.

    Raises
    ------
    UsageError
        No task or model, an unknown name, an option that cannot be.
    HarnessError
        A task that cannot run here.
    """
    options = run_options(asked)
    for name, hint in (("task", "NAME[,NAME…]"), ("model", "SPEC")):
        if not options[name]:
            raise UsageError(f"no {name} given: --{name} {hint}, or a suite file with -c FILE")
    store = options.pop("store")
    names = split(options.pop("task"))
    models = options.pop("model")
    upstream = options.get("data_root") or options.get("data")
    tasks = runnable(expand_tasks(names), names, upstream, options.get("args"))
    args = args_by_task(tasks, options)
    configs = [
        make_config(task=t.name, model=m, **{**options, "args": args[t.name]})
        for m in models for t in tasks
    ]  # fmt: skip
    if meter is None:
        meter = Meter(configs[0].limits())
    return [Job(config, store, meter) for config in configs]


def run_options(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Turn options as they are written into the fields of a `RunConfig`, and `store`.

    Raises
    ------
    UsageError
        For a value of a wrong type, naming its key.
    """
    options = dict(asked)
    options["task"] = _texts(options.get("task"), "task")
    options["model"] = list(dict.fromkeys(_texts(options.get("model"), "model")))
    options["ids"] = _ids(options.get("ids"))
    options["args"] = pairs(options.pop("arg", None))
    options["stop"] = tuple(_texts(options.get("stop"), "stop")) or None
    store = options.get("store")
    if store is not None and not isinstance(store, str):
        raise UsageError(f"store must be a text, not {store!r}")
    options["store"] = store
    return options


def grouped(jobs: Iterable[Job]) -> dict[tuple[str, LoadOptions], list[Job]]:
    """Put the jobs together that the same loaded model can do, in the order of their first."""
    groups: dict[tuple[str, LoadOptions], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.config.model, job.config.load_options()), []).append(job)
    return groups


def args_by_task(tasks: Sequence[Entry], options: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Give each of several tasks those of the switches that it knows, and what none of them knows.

    So a group takes a switch that one of its tasks reads; a misspelt one is refused as ever.
    """
    given: dict[str, str] = options["args"]
    if not given or len(tasks) == 1:
        return {task.name: given for task in tasks}
    known = {task.name: _switches(task, options) for task in tasks}
    anywhere = set().union(*known.values())
    return {
        task.name: {k: v for k, v in given.items() if k in known[task.name] or k not in anywhere}
        for task in tasks
    }


def _switches(task: Entry, options: Mapping[str, Any]) -> set[str]:
    where = {name: options.get(name) for name in ("data_root", "data")}
    request = make_config(task=task.name, model="mock:empty", **where).task_request()
    return set(make_task(task.name, request).args)


def limits_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Give those of the options that are limits."""
    return {name: asked[name] for name in Limits.__struct_fields__ if asked.get(name) is not None}


def split(values: Iterable[str]) -> list[str]:
    """Take comma-separated names apart."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _texts(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
        raise UsageError(f"{name} must be a text or a list of texts, not {value!r}")
    return list(values)


def _ids(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    ids = tuple(split(_texts(value, "ids")))
    if not ids:
        # An empty variable in a script must not run, and pay for, everything.
        raise UsageError("--ids names no item: write --ids ID[,ID…]")
    return ids


def pairs(value: Any) -> dict[str, str]:
    """Read switches of a task: repeated k=v, or a table."""
    if isinstance(value, dict):
        if strangers := [k for k, v in value.items() if not isinstance(v, str)]:
            raise UsageError(
                f"arg.{strangers[0]} must be a text: a switch is read as it is written"
            )
        return dict(value)
    found: dict[str, str] = {}
    for text in _texts(value, "arg"):
        key, equals, rest = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--arg {text!r}: write k=v")
        found[key] = rest
    return found


def runnable(
    entries: list[Entry],
    asked: list[str],
    data: str | None,
    args: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Drop a group's tasks that cannot run here, with a line; refuse one asked for by name."""
    kept = []
    for entry in entries:
        state, why = entry.state(args)
        if state != "unavailable" or (entry.needs_data and data):
            kept.append(entry)
        elif entry.name in asked:
            raise HarnessError(f"task {entry.name!r} is unavailable: {why}")
        else:
            note(f"{entry.name} is skipped: {why}")
    if not kept:
        raise HarnessError("nothing to run: every task of the group is unavailable")
    return kept
