"""`harness import submission|grading F`: others' results and people's grades in, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.grading import import_forms
from harness.cli.output import note, print_json, print_summaries
from harness.store.layout import Store

if TYPE_CHECKING:
    from harness.exchange.submission_import import Imported


def register(app: typer.Typer, line: str) -> None:
    """Add the group of verbs to the application."""
    group = typer.Typer()
    group.command("submission")(submission)
    group.command("grading")(grading)
    app.add_typer(group, name="import", help=line)


def submission(
    file: Annotated[Path, typer.Argument(help="What `harness export submission` wrote.")],
    data_root: Annotated[
        str | None,
        typer.Option(help="Your copy of the benchmark's files, where the run used them."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="The data set that the run used, hub:ID@REV or hub:DIR.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Where results go [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Check a run that somebody sent and keep it, marked as imported; or say why not."""
    from harness.exchange.rejected import RejectedError
    from harness.exchange.submission_import import import_submission

    try:
        found = import_submission(file, Store.open(store), data_root, data)
    except RejectedError as refused:
        if json:
            print_json({"outcome": "rejected", "file": str(file), "reasons": refused.reasons})
        for reason in refused.reasons:
            note(f"harness: {reason}")
        note(f"harness: {file} is refused ({len(refused.reasons)}): nothing was imported")
        return 1
    if json:
        print_json(found)
    else:
        _print(found, file)
    return 0


def grading(
    files: Annotated[
        list[Path], typer.Argument(help="Tables of `harness export grading`, filled in.")
    ],
    as_verdict: Annotated[
        bool,
        typer.Option(
            "--as-verdict",
            help="Let people's mean be the verdict; the judge's stays in the history.",
        ),
    ] = False,
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Check what people gave and keep it beside the verdicts; tell how far they agree."""
    return import_forms(files, as_verdict, store, json)


def _print(found: Imported, file: Path) -> None:
    if found.scores is None:
        note(f"run {found.run_id} of {file} is in the store already: nothing to do")
        return
    print_summaries([found.summary])
    note(f"imported from {found.submitter}; {found.scores.n_equal} scores were given again here")
    for why, n in found.scores.not_recomputed.items():
        note(f"{n} scores could not be checked: {why}")
