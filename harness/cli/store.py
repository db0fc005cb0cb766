"""`harness store sync|verify|rebuild|compact`: the store's care."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from harness.cli.output import note, print_json
from harness.core.errors import unknown
from harness.store.layout import Store

_WHAT = ("sync", "verify", "rebuild", "compact")


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("store", help=line)(store_care)


def store_care(
    what: Annotated[str, typer.Argument(help=", ".join(_WHAT))],
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Drain all journals, check the store, rebuild it from its journals, or make it small."""
    if what not in _WHAT:
        raise unknown("store verb", what, _WHAT)
    opened = Store.open(store, create=False)
    from harness.store import care
    from harness.store.ingest import sync

    if what == "verify":
        faults = care.verify(opened)
        if json:
            print_json({"faults": faults})
        else:
            for fault in faults:
                print(fault)
            note(f"{len(faults)} faults in {opened.root}")
        return 1 if faults else 0
    report: object
    if what == "sync":
        report = sync(opened, wait=True)
    else:
        report = care.rebuild(opened) if what == "rebuild" else care.compact(opened)
    shown = msgspec.to_builtins(report)
    if json:
        print_json(shown)
    else:
        facts = [f"{k.replace('_', ' ')} {v}" for k, v in shown.items() if v]
        note(f"{what} of {opened.root}: " + (", ".join(map(str, facts)) or "nothing to do"))
    return 0
