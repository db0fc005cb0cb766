"""`harness compare A B`: two runs or models, paired by item."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.output import first_of, note, percent, print_json, print_table
from harness.runner.compare import Compared, Comparison
from harness.runner.compare import compare as compare_runs
from harness.runner.summary import Metric
from harness.store.layout import Store

_SIDE = "Run id, `last`, model SPEC, or MODEL@TASK."


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("compare", help=line)(compare)


def compare(
    a: Annotated[str, typer.Argument(help=_SIDE)],
    b: Annotated[str, typer.Argument(help=_SIDE)],
    allow_different: Annotated[
        bool, typer.Option(help="Compare unlike runs (prompt, task version, scorer), and say so.")
    ] = False,
    store: Annotated[
        str | None, typer.Option(help="The store [$HARNESS_STORE, ./results].")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Strict JSON on stdout.")] = False,
) -> int:
    """Compare A with B on the items that both answered: the difference is A − B."""
    found = compare_runs(Store.open(store, create=False), a, b, allow_different=allow_different)
    if json:
        print_json(found)
    else:
        _print(found)
    return 0


def _print(found: Compared) -> None:
    several = len(found.tasks) > 1
    rows = [_row(one, several) for one in found.tasks]
    if several:
        middle = [_signed(found.diff, found.lo, found.hi), _p(found.p, found.test)]
        rows.append(["all tasks, each the same weight", "", "", *middle, "", str(found.n), "", ""])
    columns = ["task", "A %", "B %", "A − B points [95 %]", "p"]
    columns += ["p (Holm)", "items", "A better / worse", "would find"]
    print_table(f"A {found.a}   B {found.b}", columns, rows, fold=["task"])
    for one in found.tasks:
        head = f"{one.task}: " if several else ""
        if one.unlike:
            note(f"{head}NOT ALIKE, compared all the same: {'; '.join(one.unlike)}")
        if one.only_a or one.only_b:
            note(f"{head}left out: {one.only_a} items only in A, {one.only_b} only in B")
        if one.notes:
            note(f"{head}{'; '.join(one.notes)}")
        for what, items in (("A better on", one.flips.gained), ("A worse on", one.flips.lost)):
            if items:
                note(f"{head}{what} {first_of(items)}")


def _row(one: Comparison, several: bool) -> list[str]:
    return [
        one.task,
        percent(Metric(one.mean_a, None, None, "")),
        percent(Metric(one.mean_b, None, None, "")),
        _signed(one.diff, one.lo, one.hi),
        _p(one.p, one.test),
        f"{one.p_adj:.3g}" if several and one.p_adj is not None else "–",
        str(one.n) if one.n_clusters == one.n else f"{one.n} in {one.n_clusters} clusters",
        f"{len(one.flips.gained)} / {len(one.flips.lost)}",
        "–" if one.mde is None else f"≥ {100 * one.mde:.1f} points",
    ]


def _signed(value: float | None, lo: float | None, hi: float | None) -> str:
    if value is None:
        return "–"
    ends = ""
    if lo is not None and hi is not None:
        if -1 <= value <= 1:  # of shares: cut here, for display only
            lo, hi = max(lo, -1.0), min(hi, 1.0)
        ends = f" [{100 * lo:+.1f}, {100 * hi:+.1f}]"
    return f"{100 * value:+.1f}{ends}"


def _p(p: float | None, test: str) -> str:
    return "–" if p is None else f"{p:.3g} ({test})"
