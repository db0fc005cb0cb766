"""`harness list`: what there is. Reads catalogues only; nothing heavy is imported."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from harness.cli.output import print_json, print_table
from harness.core.errors import unknown
from harness.core.models import Card, all_cards
from harness.core.registry import Kind, entries, listing
from harness.core.resources import fetched
from harness.fetching.sources import sources

_WHAT = (*get_args(Kind), "models", "runs")
BASELINES = {
    "mock:gold": "baseline: what a perfect model would say",
    "mock:empty": "baseline: says nothing",
    "mock:constant?text=C": "baseline: always the same text",
    "mock:random": "baseline: a well-formed guess",
    "mock:noisy?accuracy=0.6": "baseline: right with that probability",
    "mock:script?file=F.jsonl": "replies from a file",
}


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
    rows = model_rows() if what == "models" else listing(what)  # type: ignore[arg-type]
    if json:
        print_json(rows)
        return 0
    if what == "models":
        rows = _shown(rows)
    columns = list(rows[0]) if rows else ["name"]
    print_table("", columns, [[row[c] for c in columns] for row in rows])
    return 0


def model_rows() -> list[dict[str, Any]]:
    """List the models that have a card, then the baselines, as `list models --json` prints them."""
    rows = [_model(name, card) for name, card in all_cards().items()]
    return rows + [_model(name, Card(note=note)) for name, note in BASELINES.items()]


def _model(name: str, card: Card) -> dict[str, Any]:
    state, why = _state(name)
    facts = card.facts()
    columns = ("family", "params", "release_date", "context", "price_in", "price_out",
               "price_reasoning", "price_date", "license")  # fmt: skip
    return {
        "name": name,
        **{column: facts.get(column) for column in columns},
        "state": state,
        "why": why,
        "summary": "; ".join(filter(None, (card.note, card.source_weights))),
        "baseline": name in BASELINES,
    }


def _state(name: str) -> tuple[str, str]:
    backend, _, model = name.partition(":")
    if backend not in (known := entries("backends")):
        return "unavailable", f"there is no backend {backend!r} here"
    state, why = known[backend].state()
    # transformers reads a form of its own, which `fetch` makes beside the file that it brings.
    kind = "transformers" if backend == "hf" else "models"
    if state != "unavailable" and model in sources() and fetched(model, kind) is None:
        return "unavailable", f"not here yet: harness fetch {model}"
    return state, why


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make the rows of the table: one column of prices, licence by its own spelling."""
    shown = []
    for row in rows:
        prices = [row["price_in"], row["price_out"]]
        per_million = " / ".join("–" if p is None else f"{p:g}" for p in prices)
        shown.append({
            "name": row["name"], "family": row["family"],
            "params": f"{row['params']:,}" if row["params"] else None,
            "released": row["release_date"],
            "context": row["context"],
            "USD per 1M in / out": f"{per_million} ({row['price_date']})"
            if row["price_date"] else None,
            "licence": row["license"], "state": row["state"],
            "why": row["why"] or row["summary"],
        })  # fmt: skip
    return shown


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
