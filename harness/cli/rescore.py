"""`harness rescore RUN`: the stored outputs judged again; no model is called."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.output import ProgressBar, first_of, note, percent, print_json, print_table
from harness.runner.rescore import Judged, Rescored
from harness.runner.rescore import rescore as rescore_run
from harness.store.layout import Store


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("rescore", help=line)(rescore)


def rescore(
    run: Annotated[str, typer.Argument(help="Run id (see `harness list runs`), or `last`.")],
    judge: Annotated[
        list[str] | None, typer.Option(help="Another judge: model SPEC; several: a,b.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Judge a run's outputs with the scorer as it is now; earlier verdicts are kept beside.

    Exit code 1 when the run has something open afterwards, as for `run`.
    """
    done = rescore_run(Store.open(store, create=False), run, judge, ProgressBar())
    if json:
        print_json(done)
    else:
        _print(done)
    return 0 if done.summary.status == "done" else 1


def _print(done: Rescored) -> None:
    rows = [_row("before", done.before), _row("now", done.after)]
    print_table("", ["", "scorer", "judge", f"{done.after.metric} % [95 %]"], rows)
    note(
        f"{done.n_rescored} outputs judged again, {len(done.changed)} verdicts changed"
        + (f": {first_of(done.changed)}" if done.changed else "")
        + "; both are in the store (harness show sample RUN ITEM)"
    )


def _row(when: str, judged: Judged) -> list[str]:
    versions = ", ".join(judged.versions) or "no verdict yet"
    return [when, f"{judged.scorer} (version {versions})", judged.judge or "–",
            percent(judged.headline)]  # fmt: skip
