"""`harness show task|run|sample`: one thing whole."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from harness.cli.output import print_json, print_summaries, print_table
from harness.core.errors import UsageError, unknown
from harness.core.registry import find
from harness.core.task import TaskRequest, make_task
from harness.core.types import Sample
from harness.runner.config import make_config
from harness.store.layout import Store

_WHAT = ("task", "run", "sample")


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("show", help=line)(show)


def show(
    what: Annotated[str, typer.Argument(help="task, run or sample.")],
    name: Annotated[str, typer.Argument(help="Task name, or run id (`last`: the newest).")],
    item: Annotated[str | None, typer.Argument(help="For sample: the item id.")] = None,
    epoch: Annotated[int, typer.Option(help="For sample: which repeat.")] = 0,
    data_root: Annotated[str | None, typer.Option(help="For task: its own files.")] = None,
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Show one task, run or sample."""
    if what not in _WHAT:
        raise unknown("show", what, _WHAT)
    if what == "task":
        _show_task(name, data_root, json)
    elif what == "run":
        _show_run(name, store, json)
    else:
        if item is None:
            raise UsageError("show sample needs RUN and ITEM: harness show sample RUN ITEM")
        _show_sample(name, item, epoch, store, json)
    return 0


def _show_task(name: str, data_root: str | None, json: bool) -> None:
    entry = find("tasks", name)
    config = make_config(task=name, model="mock:empty", data_root=data_root)
    request: TaskRequest = config.task_request()
    task = make_task(name, request)
    first: Sample = task.samples[0]
    shown: dict[str, Any] = {
        "name": task.name,
        "version": task.version,
        "group": entry.group,
        "summary": entry.summary,
        "n": len(task.samples),
        "solver": task.solver,
        "scorer": task.scorer,
        "metric": task.metric,
        "generation": msgspec.to_builtins(task.generation),
        "args": list(task.args),
        **task.info,
        "system": task.system,
        "prompt": task.prompt,
        "first_item": msgspec.to_builtins(first),
        "gold_of_first": task.gold(first),
    }
    _print_one(shown, json)


def _show_run(name: str, store: str | None, json: bool) -> None:
    from harness.runner.inspect import started
    from harness.runner.summary import summarise
    from harness.store.ingest import refresh
    from harness.store.layout import find_run

    opened = Store.open(store, create=False)
    run_id = find_run(opened, name)
    refresh(opened)
    summary = summarise(opened, run_id)
    record = msgspec.to_builtins(started(opened, run_id))
    record["items"] = [item["item_id"] for item in record["items"]]
    if json:
        print_json({"summary": summary, "started": record})
        return
    print_summaries([summary])
    rows = [(metric, m.value, m.lo, m.hi, m.method) for metric, m in summary.metrics.items()]
    print_table("", ["metric", "value", "lo", "hi", "method"], rows)
    record.pop("items")
    _print_one(record, json=False)


def _show_sample(name: str, item: str, epoch: int, store: str | None, json: bool) -> None:
    from harness.runner.inspect import whole_sample
    from harness.store.layout import find_run

    opened = Store.open(store, create=False)
    _print_one(whole_sample(opened, find_run(opened, name), item, epoch), json)


def _print_one(shown: dict[str, Any], json: bool) -> None:
    """Write a record: short values on a line, long texts under a heading."""
    if json:
        print_json(shown)
        return
    for key, value in shown.items():
        if isinstance(value, str) and ("\n" in value or len(value) > 100):
            print(f"── {key} " + "─" * max(0, 70 - len(key)))
            print(value)
            print("─" * 74)
        elif isinstance(value, dict | list | tuple):
            print(f"{key}: {msgspec.json.encode(value).decode()}")
        else:
            print(f"{key}: {'–' if value is None else value}")
