"""Forms for people who grade: what a model wrote, and the criteria that it is to be graded by.

A form is a table to fill in (CSV, a row a criterion of each answer) and a document to read beside it
(HTML: statement, answer, reference, rubric). Neither shows what judges gave, nor who the model was.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, UsageError
from harness.core.keys import sample_hash, sha256_of
from harness.core.records import RunStarted, SampleRecord
from harness.core.rubric import Criterion
from harness.core.task import make_task
from harness.core.types import Sample, text_of
from harness.exchange.grading_page import Shown, write_page
from harness.runner.config import RunConfig
from harness.runner.history import History
from harness.store.journal import read_records
from harness.store.layout import Store, find_run

COLUMNS = (
    "run", "item_id", "epoch", "attempt", "criterion_id", "criterion", "points_possible", "points",
    "grader", "comment", "content",
)  # fmt: skip
WHOLE = "whole"
# Office programs take the wide signs for the narrow ones.
_FORMULA = "=+-@\t\r\n'＝＋－＠"
_NUMBER = re.compile(r"[\d\s.,:/%eE+-]+|true|false", re.IGNORECASE)
_DATE = re.compile(
    r"(?=.*\d)\d*[-/. ]?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-/. ]?\d*",
    re.IGNORECASE,
)


class Form(Struct, frozen=True, kw_only=True):
    """One answer that people can grade.

    Attributes
    ----------
    record : SampleRecord
    sample : Sample
    criteria : tuple of Criterion
        The item's rubric; where it has none, ``whole`` with one point.
    has_rubric : bool
    """

    record: SampleRecord
    sample: Sample
    criteria: tuple[Criterion, ...]
    has_rubric: bool

    @property
    def content(self) -> str:
        """A content id of the answer, where it stands and the criteria.

        A letter leads, so that no office program takes it for a number.
        """
        r = self.record
        place = [r.run_id, r.item_id, r.epoch, r.attempt]
        return "h" + sha256_of([place, r.output, self.criteria])[:24]

    @property
    def possible(self) -> int:
        """What all criteria are worth together."""
        return sum(one.points for one in self.criteria)


class Forms(Struct, frozen=True, kw_only=True):
    """What `export_grading` wrote: the table, the document, and how much is to be graded."""

    run_id: str
    table: str
    page: str
    answers: int
    rows: int


def export_grading(
    store: Store, name: str, out: Path | None = None, with_model: bool = False
) -> Forms:
    """Write the forms of a run's answers.

    Parameters
    ----------
    store : Store
    name : str
        The run (see `harness.store.layout.find_run`).
    out : Path, optional
        A folder, or the table's file (``….csv``; the document then lies beside it). By default the
        working folder.
    with_model : bool
        Name the model in the document; people who know it may grade the name.

    Raises
    ------
    UsageError
        No such run, one without an answer, one whose task or data are no longer what they were, or
        a table that is there already: somebody may have filled it in.
    """
    run_id = find_run(store, name)
    history = History(read_records(store.journal(run_id)), run_id)
    forms = list(forms_of(history))
    if not forms:
        raise UsageError(f"run {run_id} has no answer that could be graded")
    table = _table_path(run_id, out)
    page = table.with_suffix(".html")
    rows = [row for form in forms for row in _rows(form)]
    shown = [_shown(form) for form in forms]
    if not table.exists():
        table.parent.mkdir(parents=True, exist_ok=True)
        write_page(page, history.started, shown, history.started.model if with_model else None)
    try:
        with table.open("x", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    except FileExistsError as error:
        raise UsageError(
            f"{table} is there already and may have been filled in: move it, or choose another --out"
        ) from error
    return Forms(
        run_id=run_id, table=str(table), page=str(page), answers=len(forms), rows=len(rows)
    )


def forms_of(history: History) -> Iterator[Form]:
    """Give the answers of a run that can be graded, by item and repeat.

    Raises
    ------
    UsageError
        Its task or data are no longer what they were, or a rubric cannot be read.
    """
    samples = _samples(history.started)
    order = {item["item_id"]: place for place, item in enumerate(history.started.items)}
    records = [r for r in history.samples.values() if r.item_id in order and is_answer(r)]
    for record in sorted(records, key=lambda r: (order[r.item_id], r.epoch)):
        sample = samples[record.item_id]
        rubric = sample.metadata.get("rubric")
        criteria = _whole() if rubric is None else _criteria(sample, rubric)
        yield Form(
            record=record, sample=sample, criteria=criteria, has_rubric=rubric is not None
        )  # fmt: skip


def is_answer(record: SampleRecord) -> bool:
    """Tell whether an attempt ended with something to grade."""
    return record.status in ("unscored", "truncated") and bool(record.output.strip())


def guarded(text: str) -> str:
    """Write a text so that no office program runs it, or makes a number or a date of it.

    Examples
    --------
    >>> guarded("=1+1"), guarded("007"), guarded("MAR1"), guarded("it's")
    ("'=1+1", "'007", "'MAR1", "it's")
    """
    risky = text.startswith(tuple(_FORMULA)) or _NUMBER.fullmatch(text) or _DATE.fullmatch(text)
    return f"'{text}" if risky else text


def unguarded(text: str) -> str:
    """Read what `guarded` wrote."""
    return text.removeprefix("'")


def _table_path(run_id: str, out: Path | None) -> Path:
    if out is not None and out.suffix.lower() == ".csv" and not out.is_dir():
        return out
    if out is not None and out.suffix and not out.is_dir():
        raise UsageError(f"--out {out}: name a folder, or a file that ends in .csv")
    return (out or Path()) / f"grading-{run_id}.csv"


def _rows(form: Form) -> Iterator[dict[str, Any]]:
    record = form.record
    for one in form.criteria:
        yield {
            "run": guarded(record.run_id), "item_id": guarded(record.item_id),
            "epoch": record.epoch, "attempt": record.attempt, "criterion_id": guarded(one.id),
            "criterion": guarded(one.criterion), "points_possible": one.points,
            "content": form.content,
        }  # fmt: skip


def _samples(started: RunStarted) -> dict[str, Sample]:
    """Give the items of a run from its task as it is installed here, unchanged since it ran."""
    config = msgspec.convert(started.config, RunConfig)
    try:
        task = make_task(config.task, config.task_request())
    except HarnessError as error:
        raise UsageError(f"run {started.run_id}: its items cannot be read: {error}") from error
    samples = {sample.item_id: sample for sample in task.samples}
    for item in started.items:
        sample = samples.get(item["item_id"])
        if sample is None or sample_hash(sample) != item["content_sha256"]:
            raise UsageError(
                f"run {started.run_id} cannot be graded: item {item['item_id']!r} of {config.task} is "
                "no longer what it was when it was asked"
            )
    return samples


def _whole() -> tuple[Criterion, ...]:
    return (Criterion(id=WHOLE, points=1, criterion="The answer is right as a whole."),)


def _criteria(sample: Sample, rubric: object) -> tuple[Criterion, ...]:
    try:
        criteria = msgspec.convert(rubric, tuple[Criterion, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"item {sample.item_id!r}: its rubric cannot be read: {error}") from error
    ids = [one.id for one in criteria]
    if not ids or len({*ids}) < len(ids) or any(one.points < 1 for one in criteria):
        raise UsageError(
            f"item {sample.item_id!r}: its rubric is empty, names a criterion twice, or gives none a "
            "point"
        )
    return criteria


def _shown(form: Form) -> Shown:
    sample, record = form.sample, form.record
    stated = sample.metadata.get("statement")
    if not isinstance(stated, str):
        turns = sample.input
        stated = turns if isinstance(turns, str) else "\n\n".join(map(text_of, turns))
    return Shown(
        item_id=record.item_id, epoch=record.epoch, attempt=record.attempt, content=form.content,
        category=sample.category or "", statement=stated, choices=sample.choices,
        answer=record.output, cut=record.status == "truncated",
        reference="\n\n".join(sample.target) or _right_options(sample),
        common_errors=_texts(sample.metadata.get("common_errors")),
        criteria=[(one.id, one.points, one.criterion, one.fatal) for one in form.criteria],
    )  # fmt: skip


def _right_options(sample: Sample) -> str:
    return "\n".join(sample.choices[i] for i in sample.correct)


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    return [str(one) for one in value] if isinstance(value, list | tuple) else []
