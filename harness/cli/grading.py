"""Grading by people on the command line: `harness export grading`, `harness import grading`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.output import note, print_json, print_table
from harness.core.errors import StoreError, UsageError
from harness.store.layout import Store

if TYPE_CHECKING:
    from harness.exchange.grading_agreement import Agreement
    from harness.exchange.grading_import import Graded
    from harness.exchange.judges_agreement import JudgesAgreement
    from harness.runner.summary import Metric

_HEADINGS = {
    "answers": "whole answers", "criteria": "all criteria", "judge": "judge",
}  # fmt: skip


def export_forms(
    run: str | None, form: str | None, out: Path | None, with_model: bool, store: str | None,
    json: bool,
) -> int:  # fmt: skip
    """Write the forms of a run's answers: a table to fill in, and what to read beside it."""
    from harness.exchange.grading import export_grading

    if run is None or form is not None:
        raise UsageError("say which run, and no format: harness export grading RUN --out DIR")
    try:
        made = export_grading(Store.open(store, create=False), run, out, with_model)
    except OSError as error:
        raise StoreError(f"cannot write {out or 'the forms'}: {error.strerror}") from error
    if json:
        print_json(made)
    there = ["--store", store] if store else []
    command = shlex.join(["harness", "import", "grading", made.table, *there])
    note(f"{made.answers} answers with {made.rows} criteria to grade: fill in {made.table} beside "
         f"{made.page}, then: {command}")  # fmt: skip
    return 0


def import_forms(files: Sequence[Path], as_verdict: bool, store: str | None, json: bool) -> int:
    """Check what people filled in and keep it, or say why not."""
    from harness.exchange.grading_import import import_grading
    from harness.exchange.rejected import RejectedError

    try:
        found = import_grading(Store.open(store, create=False), files, as_verdict)
    except RejectedError as refused:
        if json:
            print_json(
                {"outcome": "rejected", "files": list(map(str, files)), "reasons": refused.reasons}
            )
        for reason in refused.reasons:
            note(f"harness: {reason}")
        note(f"harness: refused ({len(refused.reasons)}): nothing was imported")
        return 2
    if json:
        print_json({"outcome": "imported", "runs": found})
        return 0
    for one in found:
        note(_said(one))
        if one.agreement is not None and _is_new(one):
            print_agreement(one.agreement)
    return 0


def print_agreement(found: Agreement) -> None:
    """Write how far judges and people agree over all answers; single items are for JSON."""
    rows = [
        (" ".join(filter(None, [_HEADINGS[one.scope], one.name])), one.n, _number(one.pearson),
         _number(one.spearman), _number(one.difference))
        for one in found.pairs if one.scope not in ("item", "criterion")
    ]  # fmt: skip
    columns = ["judges and people", "pairs", "Pearson [95 %]", "Spearman [95 %]",
               "mean difference [95 %]"]  # fmt: skip
    print_table("", columns, rows, fold=columns[:1])
    facts = [
        f"{found.n_answers} answers graded by {', '.join(found.graders)}",
        f"compared with what {', '.join(found.judges)} gave" if found.judges
        else "judged by nobody else",
        *([f"{found.n_unpaired} have no verdict to compare with"] if found.n_unpaired else []),
        *([f"between people Krippendorff's alpha {found.people_alpha:.3f}"]
          if found.people_alpha is not None else []),
    ]  # fmt: skip
    print("; ".join(facts) + "; all in shares of the points possible; "
          "by item and criterion with --json\n")  # fmt: skip


def print_judges(found: JudgesAgreement) -> None:
    """Write how far the judges of a run agree with one another."""
    rows = [
        (one.a, one.b, one.agreement.n, *map(_plain, (one.agreement.pearson, one.agreement.spearman,
         one.agreement.mean_abs_difference)))
        for one in found.pairs
    ]  # fmt: skip
    columns = ["judge", "and judge", "answers", "Pearson", "Spearman", "mean difference"]
    print_table("", columns, rows, fold=columns[:2])
    print(
        f"between judges Krippendorff's alpha {_plain(found.alpha)}; in shares of the points possible\n"
    )


def _is_new(one: Graded) -> bool:
    return bool(one.n_new + one.n_changed + one.n_verdicts)


def _said(one: Graded) -> str:
    if not _is_new(one):
        n = one.n_unchanged
        return f"run {one.run_id}: all {n} gradings are in the store already: nothing to do"
    parts = [
        *([f"{one.n_new} gradings kept"] if one.n_new else []),
        *([f"{one.n_changed} changed (the old ones stay in the history)"] if one.n_changed else []),
        *([f"{one.n_unchanged} were there already"] if one.n_unchanged else []),
        *([f"{one.n_verdicts} verdicts are people's now"] if one.n_verdicts else []),
    ]
    return f"run {one.run_id}: {', '.join(parts)}, by {', '.join(one.graders)}"


def _number(metric: Metric) -> str:
    if metric.value is None:
        return "–"
    if metric.lo is None or metric.hi is None:
        return f"{metric.value:.3f}"
    return f"{metric.value:.3f} [{metric.lo:.3f}, {metric.hi:.3f}]"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
