"""`harness score`: given outputs in, verdicts out, one JSON object a line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from harness.cli.jobs import pairs
from harness.cli.output import note, percent
from harness.core.status import SCORER_FAULT
from harness.runner.scoring import read_predictions, score_predictions, verdict


def register(app: typer.Typer, line: str) -> None:
    """Add the verb to the application."""
    app.command("score", help=line)(score)


def score(
    task: Annotated[str, typer.Option("--task", "-t", help="Task name.")],
    predictions: Annotated[Path, typer.Option(help='JSONL: {"item_id": …, "output": …} a line.')],
    data_root: Annotated[str | None, typer.Option(help="The benchmark's own files.")] = None,
    data: Annotated[str | None, typer.Option(help="A data set, hub:ID@REV or hub:DIR.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the run that made the outputs.")] = 0,
    arg: Annotated[list[str] | None, typer.Option("--arg", help="Switch of the task, k=v.")] = None,
) -> int:
    """Score predictions; one strict JSON object a line on stdout, the total on stderr."""
    from harness.runner.summary import Metric
    from harness.stats.intervals import estimate

    rows = read_predictions(predictions)
    scores = score_predictions(task, rows, data_root, seed, pairs(arg or []), data)
    for row, one in zip(rows, scores, strict=True):
        print(msgspec.json.encode(verdict(row.item_id, one)).decode())
    values = [s.value for s in scores if s.value is not None]
    if values:
        total = estimate(values, None)
        shown = percent(Metric(total.value, total.lo, total.hi, total.method))
        unread = sum(s.status == "error" for s in scores)
        note(f"{task}: {shown} % of {len(values)} counted, {len(scores)} given, {unread} unparsed")
    faults = [s for s in scores if s.reason == SCORER_FAULT]
    if faults:
        note(f"{task}: the scorer failed on {len(faults)} of them: {faults[0].explanation}")
    return 1 if faults else 0
