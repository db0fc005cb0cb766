"""`harness fit`: models and items on one scale (item response theory)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import typer.core

from harness.cli.fit_minutes import horizon, levels_beside, print_link, print_published
from harness.cli.jobs import split
from harness.cli.output import note, print_json, print_table
from harness.cli.plots import check_drawing, draw
from harness.core.errors import StoreError, UsageError
from harness.runner.adaptive_bank import bank_file, write_bank
from harness.runner.fitting import fit_file, fit_store
from harness.runner.human_minutes import read_minutes
from harness.store.fits import FitItem, FitModel, StoredFit, keep_fit
from harness.store.layout import Store

S = typer.Option  # short, since every line below is one

_Z95 = 1.959964
_ENDS = 5


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("fit", help=line, cls=_FitCommand)(fit)


class _FitCommand(typer.core.TyperCommand):
    """Takes ``--bank`` with and without a name, which options of Typer cannot."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a bare ``--bank`` the name that it stands for."""
        return super().parse_args(ctx, named_bank(args))


def named_bank(args: Sequence[str]) -> list[str]:
    """Write out the name of a bank where none was given.

    Examples
    --------
    >>> named_bank(["--bank", "--json"]), named_bank(["--bank", "mine"])
    (['--bank=default', '--json'], ['--bank', 'mine'])
    """
    bare = [
        arg == "--bank" and (following is None or following.startswith("-"))
        for arg, following in zip(args, [*args, None][1:], strict=True)
    ]
    return ["--bank=default" if alone else arg for arg, alone in zip(args, bare, strict=True)]


def fit(
    responses: Annotated[
        Path | None, S(help="Fit this file instead of the store: .jsonl, .csv or .parquet.")
    ] = None,
    task: Annotated[list[str] | None, S("--task", "-t", help="Only these tasks; a,b.")] = None,
    model: Annotated[list[str] | None, S("--model", "-m", help="Only these models.")] = None,
    baselines: Annotated[bool, S("--baselines", help="Take mocks in as models.")] = False,
    method: Annotated[str, S(help="auto, joint, mml, …: auto is mml for short tests.")] = "auto",
    scores: Annotated[str, S(help="counts, or fractional: scores between 0 and 1.")] = "counts",
    model_kind: Annotated[
        str, S("--model-kind", help="Model of an item: 2pl, 3pl (guessing), grm (k of n points).")
    ] = "2pl",
    choices: Annotated[int | None, S(help="Options of an item, for --model-kind 3pl.")] = None,
    largest_block: Annotated[
        bool, S("--largest-block", help="Without a common scale: fit the largest part.")
    ] = False,
    human_minutes: Annotated[
        Path | None, S(help="Minutes of items (item, human_minutes): .csv, .jsonl or .parquet.")
    ] = None,
    anchors: Annotated[
        str | None, S(help="Only these rows of it are anchors: COLUMN=VALUE.")
    ] = None,
    release_dates: Annotated[
        Path | None, S(help="Release dates of models (model, release_date), the same forms.")
    ] = None,
    link: Annotated[str, S(help="How minutes follow difficulty: ols, weighted, joint.")] = "ols",
    plots: Annotated[Path | None, S(help="Folder for the pictures: PNG and SVG.")] = None,
    bank: Annotated[
        str | None, S(metavar="[NAME]", help="Keep the items as a bank for adaptive runs.")
    ] = None,
    out: Annotated[
        Path | None, S(help="Folder for models.parquet, items.parquet and fit.json.")
    ] = None,
    store: Annotated[
        str | None,
        S(help="The store [$HARNESS_STORE, ./results]; with --responses it keeps the fit."),
    ] = None,
    json: Annotated[bool, S("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Fit models and items on one scale; exit code 1 when it has not converged."""
    options: dict[str, Any] = {
        "method": method, "scores": scores, "largest_block": largest_block, "bank": bank,
        "model_kind": model_kind, "choices": choices,
    }  # fmt: skip
    chosen: dict[str, Any] = {
        "tasks": split(task or ()), "models": split(model or ()), "baselines": baselines,
    }  # fmt: skip
    if responses is not None and any(chosen.values()):
        raise UsageError("--task, --model and --baselines choose from the store, not from a file")
    if human_minutes is None and (
        anchors is not None or (responses is not None and (release_dates or link != "ols"))
    ):
        raise UsageError("--anchors, --link and --release-dates need --human-minutes")
    options["minutes"] = read_minutes(human_minutes, release_dates, anchors, link)
    if bank is not None and responses is not None and store is None and out is None:
        raise UsageError("--bank with --responses needs a place for it: --store DIR or --out DIR")
    if plots is not None:
        check_drawing()
    for folder in (out, plots):
        if folder is not None:
            _make_folder(folder)
    if responses is None:
        opened = _writable(store)
        found = _with_spinner(lambda: fit_store(opened, **chosen, **options))
    else:
        file, keep = responses, None if store is None else Store.open(store)
        found = _with_spinner(lambda: fit_file(file, **options))
        if keep is not None:
            keep_fit(keep, found)
            if found.bank is not None:
                write_bank(found.bank, bank_file(keep, found.bank.bank.name))
    if out is not None:
        write_fit(found, out)
        if found.bank is not None:
            write_bank(found.bank, out / "bank.json")
    if plots is not None:
        for path in draw(found, plots):
            note(f"drew {path}")
    if json:
        print_json(machine_form(found))
    else:
        print_fit(found)
    return 0 if found.fit.converged else 1


def _writable(path: str | None) -> Store:
    """Open a store that is there, and find out before the fit whether it can be written."""
    Store.open(path, create=False)
    return Store.open(path)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make folder {out}: {error.strerror}") from error


def _with_spinner(work: Callable[[], StoredFit]) -> StoredFit:
    if not sys.stderr.isatty():
        return work()
    from rich.console import Console

    with Console(stderr=True).status("fitting"):
        return work()


def machine_form(found: StoredFit) -> dict[str, Any]:
    """Give a fit as ``harness fit --json`` prints it.

    Returns
    -------
    dict
        `flags` names the items by flag: those of a store as [task, version, item]. `models` and
        `items` count what was fitted and what was left out.
    """
    row = found.fit
    flags: dict[str, list[Any]] = {"prior_only": [], "suspect_key": []}
    for item in found.items:
        for flag in item.flags:
            flags.setdefault(flag, []).append(_identity(item))
    return {
        "fit_id": row.fit_id, "method": row.method, "n_models": row.n_models,
        "n_items": row.n_items, "n_cells": row.n_cells, "converged": row.converged,
        "log_loss": row.log_loss, "link": row.link, "not_linked": row.verdict.get("not_linked"),
        "doubling_months": (row.link or {}).get("doubling"), "flags": flags,
        "seconds": row.seconds,
        "models": {
            "fitted": row.n_models,
            "left_out": len(row.verdict["models_left_out"]),
            "baselines": sum("baseline" in model.flags for model in found.models),
        },
        "items": {
            "fitted": row.n_items,
            "left_out": len(row.verdict["items_left_out"]),
            **{flag: len(marked) for flag, marked in flags.items()},
        },
        "bank": None if found.bank is None else msgspec.structs.asdict(found.bank.bank),
        "scores": row.scores, "data_hash": row.data_hash, "verdict": row.verdict["text"],
    }  # fmt: skip


def _identity(item: FitItem) -> Any:
    return item.item_id if item.task_id is None else [item.task_id, item.version, item.item_id]


def write_fit(found: StoredFit, out: Path) -> None:
    """Write ``models.parquet``, ``items.parquet`` and ``fit.json`` into a folder.

    Raises
    ------
    StoreError
        When they cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for name, rows in (("models", found.models), ("items", found.items)):
            table = pa.Table.from_pylist([msgspec.structs.asdict(row) for row in rows])
            pq.write_table(table, out / f"{name}.parquet")
        text = msgspec.json.format(msgspec.json.encode(found.fit), indent=2)
        (out / "fit.json").write_bytes(text + b"\n")
    except OSError as error:
        raise StoreError(f"cannot write to {out}: {error.strerror or error}") from error


def print_fit(found: StoredFit) -> None:
    """Write a fit for people: verdict, abilities, and the items worth a look."""
    row = found.fit
    print(row.verdict["text"])
    print()
    print_table(
        f"{row.n_models} models, {row.method}; ability: {row.gauge}",
        ["model", "ability [95 %]", *_headings(row.link), "items answered"],
        [(_named(m), _ability(m), *_in_minutes(m, row.link), m.n_items) for m in found.models],
        fold=["model"],
    )
    print_table(
        f"{row.n_items} items; {row.parameterisation}",
        ["", "item", "b ± SE", "a", "models", "flags"],
        [_item_row(which, item) for which, item in _worth_a_look(found.items)],
        fold=["item"],
    )
    if row.link is not None:
        print_link(row.link)
        print_published(row.link)
    elif reason := row.verdict.get("not_linked"):
        note(reason)
    if found.bank is not None:
        note(f"bank {found.bank.bank.name}: {found.bank.bank.n_items} items, for `harness run "
             "--adaptive`")  # fmt: skip
    note(f"{row.fit_id}: {row.n_cells} cells in {row.seconds:.2f} s")


def _headings(link: dict[str, Any] | None) -> list[str]:
    if link is None:
        return []
    return ["H50 minutes [95 %]", f"H50 by link: {' / '.join(link['h50'])}"]


def _in_minutes(model: FitModel, link: dict[str, Any] | None) -> list[str]:
    return [] if link is None else [horizon(model), levels_beside(model, link)]


def _named(model: FitModel) -> str:
    return f"{model.model} (baseline)" if "baseline" in model.flags else model.model


def _ability(model: FitModel) -> str:
    if model.theta is None or model.se is None:
        return "–" if model.theta is None else f"{model.theta:+.2f}"
    half = _Z95 * model.se
    return f"{model.theta:+.2f} [{model.theta - half:+.2f}, {model.theta + half:+.2f}]"


def _worth_a_look(items: list[FitItem]) -> list[tuple[str, FitItem]]:
    """Give the easiest and hardest items that were placed by answers, and the most suspect keys."""
    placed = sorted(
        (i for i in items if i.b is not None and "prior_only" not in i.flags),
        key=lambda i: (i.b, i.task_id or "", i.item_id),
    )
    hardest = placed[_ENDS:][-_ENDS:]
    suspect = sorted((i for i in items if "suspect_key" in i.flags), key=lambda i: i.slope_z or 0.0)
    return [
        *(("easiest", i) for i in placed[:_ENDS]),
        *(("hardest", i) for i in hardest),
        *(("most suspect key", i) for i in suspect[:_ENDS]),
    ]


def _item_row(which: str, item: FitItem) -> tuple[object, ...]:
    name = item.item_id if item.task_id is None else f"{item.task_id}/{item.item_id}"
    b = "–" if item.b is None else f"{item.b:+.2f}"
    b += "" if item.se_b is None else f" ± {item.se_b:.2f}"
    a = "–" if item.a is None else f"{item.a:.2f}"
    return which, name, b, a, item.n_models, ", ".join(item.flags)
