"""`harness audit`: is a task itself sound? No model is called but the judges that are named.

`--json` writes one object a line, one for each task, as `harness score` does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from harness.cli.jobs import pairs, runnable, split
from harness.cli.output import print_table
from harness.core.registry import expand_tasks
from harness.runner.audit import Audit
from harness.runner.audit import audit as examine
from harness.store.layout import DEFAULT, VARIABLE, Store

S = typer.Option  # short, since every line below is one


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("audit", help=line)(audit)


def audit(
    task: Annotated[list[str], S("--task", "-t", help="Task or group; several: a,b or repeated.")],
    data_root: Annotated[str | None, S(help="Folder with the benchmark's own files.")] = None,
    data: Annotated[str | None, S(help="A data set, hub:ID@REV or hub:DIR.")] = None,
    arg: Annotated[
        list[str] | None, S("--arg", help="Switch of the task, k=v; repeatable.")
    ] = None,
    seed: Annotated[int, S(help="Fixes what the task draws, as in a run.")] = 0,
    judge: Annotated[
        list[str] | None, S(help="Model SPEC for tasks that a model judges; several: a,b.")
    ] = None,
    store: Annotated[
        str | None, S(help="Runs of models to look at [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, S("--json", help="Strict JSON on stdout, one object a line.")] = False,
) -> int:
    """Audit tasks; exit code 1 when one of them fails a check, 0 for warnings."""
    names = split(task)
    options: dict[str, Any] = {
        "data_root": data_root, "data": data, "seed": seed, "args": pairs(arg),
        "judge": judge,
    }  # fmt: skip
    entries = runnable(expand_tasks(names), names, data_root or data, options["args"])
    opened = _store(store)
    failed = False
    for entry in entries:
        found = _with_progress(entry.name, opened, options)
        failed = failed or found.verdict == "fail"
        if json:
            print(msgspec.json.encode(found).decode())
        else:
            _show(found)
    return 1 if failed else 0


def _store(path: str | None) -> Store | None:
    """Open the store for reading; the default one may be missing, one that was named may not."""
    if path is None:
        default = Store(Path(os.environ.get(VARIABLE) or DEFAULT))
        return default if default.runs.is_dir() else None
    return Store.open(path, create=False)


def _with_progress(name: str, store: Store | None, options: dict[str, Any]) -> Audit:
    if not sys.stderr.isatty():
        return examine(name, store, **options)
    from rich.console import Console

    with Console(stderr=True).status(name) as status:
        return examine(name, store, lambda check: status.update(f"{name}: {check}"), **options)


def _show(found: Audit) -> None:
    rows = [
        (c.name, c.verdict, None if c.value is None else f"{c.value:.3g}", c.why)
        for c in found.checks
    ]
    print_table(
        f"{found.task}: {found.verdict}", ["check", "verdict", "value", "why"], rows, ["why"]
    )
