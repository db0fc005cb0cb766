"""How results are written: tables for people, strict JSON for machines, progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.types import Status
from harness.runner.observe import Observer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from harness.runner.beside import Beside
    from harness.runner.summary import Metric, Summary


def print_json(value: Any) -> None:
    """Write strict JSON on stdout, indented; NaN cannot occur (scores are checked when made)."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    fold: Sequence[str] = (),
) -> None:
    """Write a table on stdout; columns whose cells are all numbers are set to the right.

    Parameters
    ----------
    title : str
        Above the table; empty for none.
    columns : sequence of str
        Headings.
    rows : sequence of sequences
        Cells; None is left empty.
    fold : sequence of str
        Columns that give way in a narrow terminal; all of them when none is named.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        right = bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        keep = bool(fold) and name not in fold
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=keep)
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console = Console(soft_wrap=False)
    if not console.is_terminal:
        # A pipe has no width: give long rows the room they need instead of folding them.
        console = Console(width=400)
    console.print(table)


def note(text: str) -> None:
    """Say something beside the data, on stderr."""
    print(text, file=sys.stderr)


def first_of(names: Sequence[str], n: int = 5) -> str:
    """Write the first few of many names.

    Examples
    --------
    >>> first_of(["a", "b", "c"], n=2)
    'a, b, … (3 in all)'
    """
    if len(names) <= n:
        return ", ".join(names)
    return f"{', '.join(names[:n])}, … ({len(names)} in all)"


def percent(metric: Metric) -> str:
    """Write a metric as a percentage with its interval, one decimal.

    The ends of a share's interval are cut at 0 and 100 here, for display only.

    Examples
    --------
    >>> from harness.runner.summary import Metric
    >>> percent(Metric(0.5, 0.4038, 0.5962, "wilson"))
    '50.0 [40.4, 59.6]'
    >>> percent(Metric(0.975, 0.9465, 1.0035, "t"))
    '97.5 [94.7, 100.0]'
    """
    if metric.value is None:
        return "–"
    if metric.lo is None or metric.hi is None:
        return f"{100 * metric.value:.1f}"
    lo, hi = metric.lo, metric.hi
    if 0 <= metric.value <= 1:
        lo, hi = max(lo, 0.0), min(hi, 1.0)
    return f"{100 * metric.value:.1f} [{100 * lo:.1f}, {100 * hi:.1f}]"


def print_summaries(summaries: Sequence[Summary]) -> None:
    """Write runs as a table: score with interval, what it rests on, and every other status."""
    names = {next(iter(s.metrics), "") for s in summaries}
    shared = names.pop() if len(names) == 1 else ""
    priced = any(s.usage["cost_usd"] for s in summaries)
    rows = []
    for s in summaries:
        name, headline = next(iter(s.metrics.items()), ("", None))
        score = percent(headline) if headline else "–"
        rows.append([
            s.task,
            "\n".join(filter(None, [s.model + _mark(s), _others(s)])),
            score if shared else f"{name} {score}",
            f"{s.n_counted} of {s.n_planned}",
            *([_dollars(s.usage["cost_usd"])] if priced else []),
            s.status,
            short_id(s.run_id),
        ])  # fmt: skip
    columns = ["task", "model", f"{shared or 'score'} % [95 %]", "counted"]
    columns += [*(["cost USD"] if priced else []), "status", "run"]
    print_table("", columns, rows, fold=["task", "model"])


def print_beside(rows: Sequence[Beside]) -> None:
    """Write what others have published for the same tasks beside what was measured here."""
    if not rows:
        return
    cells = []
    for row in rows:
        others = [f"{100 * f.value:.1f} {f.who} ({f.condition})" for f in row.published]
        here = f"– ({row.why})" if row.why or row.here is None else percent(row.here)
        cells.append([row.task, row.model, row.metric, here, row.n_counted, "\n".join(others)])
    columns = ["task", "model", "metric", "here % [95 %]", "counted", "published by others %"]
    print_table("Beside published figures", columns, cells, fold=["model", columns[-1]])
    if any(not row.same_items for row in rows):
        note("the published figures are for the benchmark's own items; here other items were asked")


def short_id(run_id: str) -> str:
    """Give the random part of a run id, which every verb accepts for the whole."""
    return run_id.rpartition("-")[2]


def _dollars(cost: float | None) -> str:
    return "–" if cost is None else f"{cost:.4g}"


def _mark(summary: Summary) -> str:
    """Say of a model that it is no contender (baselines, our own test model), or not run here."""
    marks = [
        *(["baseline"] if summary.is_baseline else []),
        *(["test model"] if summary.is_test_model else []),
        *([f"imported from {summary.submitter}"] if summary.imported else []),
        *([f"{summary.unchecked} scores unchecked"] if summary.unchecked else []),
        *([f"{summary.by_people} verdicts by people"] if summary.by_people else []),
    ]
    return f" ({', '.join(marks)})" if marks else ""


def _others(summary: Summary) -> str:
    """List what is not simply scored; nothing when every attempt is."""
    parts = [f"{k.replace('_', ' ')} {v}" for k, v in summary.counts.items() if v]
    if summary.unparsed:
        parts.append(f"unparsed {summary.unparsed}")
    if summary.open:
        parts.append(f"open {summary.open}")
    if parts:
        parts.insert(0, f"scored {summary.n_scored}")
    if corrected := summary.metrics.get("accuracy_corrected"):
        parts.append(f"by corrected keys {percent(corrected)}")
    if summary.cached:
        parts.append(f"reused {summary.cached}")
    if summary.errors == "exclude":
        parts.append("the model's errors left out")
    if summary.adaptive:
        parts.append(summary.adaptive.line())
    return ", ".join(parts)


class ProgressBar(Observer):
    """A bar with rate, time left, running score and its interval; silent when not a terminal."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._n = 0
        self._sum = 0.0
        self._shares = True

    def started(self, label: str, n_todo: int, n_cached: int) -> None:
        """Show the bar."""
        self._n, self._sum, self._shares = 0, 0.0, True
        if n_cached:
            note(f"{label}: {n_cached} answers reused from earlier runs (--fresh calls anew)")
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(), TextColumn("{task.fields[score]}"),
            console=Console(stderr=True), refresh_per_second=5,
        )  # fmt: skip
        self._task = self._bar.add_task(label, total=n_todo + n_cached, rate="", score="")
        self._bar.start()

    def finished(self, status: Status, value: float | None) -> None:
        """Move the bar on."""
        if value is not None:
            self._n += 1
            self._sum += value
            self._shares = self._shares and value in (0.0, 1.0)
        if self._bar is None or self._task is None:
            return
        speed = self._bar.tasks[self._task].speed
        self._bar.update(
            self._task,
            advance=1,
            rate=f"{speed:.1f}/s" if speed else "",
            score=self._score(),
        )

    def note(self, text: str) -> None:
        """Say it on stderr."""
        note(text)

    def ended(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _score(self) -> str:
        if self._n == 0:
            return ""
        from harness.stats.intervals import wilson

        mean = self._sum / self._n
        if not self._shares:
            return f"mean {mean:.4g}"  # no share of anything, so no interval of one
        interval = wilson(round(self._sum), self._n)
        low, high = interval.lo or 0.0, interval.hi or 1.0
        return f"{100 * mean:.1f} % [{100 * low:.0f}, {100 * high:.0f}]"
