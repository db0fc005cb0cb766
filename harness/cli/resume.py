"""`harness resume RUN`: only what is missing is called."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.output import ProgressBar, note, print_json, print_summaries
from harness.runner.lifecycle import StoppedError
from harness.runner.lifecycle import resume as resume_run
from harness.runner.limits import Limits
from harness.store.layout import Store


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("resume", help=line)(resume)


def resume(
    run: Annotated[str, typer.Argument(help="Run id (see `harness list runs`).")],
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="Stop at so many US dollars.")] = None,
    max_time: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option(help="Stop at so many tokens, in and out.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Go on with a run; exit code 1 when anything planned stayed open.

    Limits count anew from nothing: those given here, else those that the run began with.
    """
    limits = Limits(max_cost=max_cost, max_time=max_time, max_total_tokens=max_total_tokens)
    limits.check()
    given = None if limits == Limits() else limits
    try:
        summary = resume_run(Store.open(store, create=False), run, ProgressBar(), given)
    except StoppedError as stop:
        note(f"harness: stopped; what is done is kept. Go on with: {stop.resume}")
        return 1
    if json:
        print_json({"schema": 1, "runs": [summary]})
    else:
        print_summaries([summary])
    return 0 if summary.status == "done" else 1
