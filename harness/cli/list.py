"""`harness list`: what there is. Reads catalogues only; nothing heavy is imported."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from harness.cli.output import print_json, print_table
from harness.core.errors import unknown
from harness.core.registry import Kind, entries, listing

_WHAT = (*get_args(Kind), "models", "runs")


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("list", help=line)(list_what)


def list_what(
    what: Annotated[str, typer.Argument(help=", ".join(_WHAT))],
    store: Annotated[str | None, typer.Option(help="For runs: the store.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """List one kind of thing."""
    if what not in _WHAT:
        raise unknown("list", what, _WHAT)
    if what == "runs":
        return _runs(store, json)
    rows = _models() if what == "models" else listing(what)  # type: ignore[arg-type]
    if json:
        print_json(rows)
        return 0
    columns = list(rows[0]) if rows else ["name"]
    print_table("", columns, [[row[c] for c in columns] for row in rows])
    return 0


def _models() -> list[dict[str, Any]]:
    """List the models that are known by name: those that come along."""
    backends = entries("backends")
    rows = []
    for name, backend, summary in (
        ("hf:tiny", "hf", "own test model, 1,000,576 parameters; shows no reasoning"),
        ("mock:gold", "mock", "baseline: what a perfect model would say"),
        ("mock:empty", "mock", "baseline: says nothing"),
        ("mock:constant?text=C", "mock", "baseline: always the same text"),
        ("mock:random", "mock", "baseline: a well-formed guess"),
        ("mock:noisy?accuracy=0.6", "mock", "baseline: right with that probability"),
        ("mock:script?file=F.jsonl", "mock", "replies from a file"),
    ):
        state, why = backends[backend].state()
        rows.append({"name": name, "state": state, "why": why, "summary": summary})
    return rows


def _runs(store: str | None, json: bool) -> int:
    from harness.cli.output import print_summaries
    from harness.runner.lifecycle import all_runs
    from harness.store.layout import Store

    summaries = all_runs(Store.open(store, create=False))
    if json:
        print_json(summaries)
    else:
        print_summaries(summaries)
    return 0
