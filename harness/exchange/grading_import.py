"""What people graded into a store: checked whole, then written to the journals of the runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from harness.core.errors import StoreError, UsageError
from harness.core.rubric import total_of
from harness.core.status import effective_status, error_kind_of, is_open
from harness.exchange.grading import Form, forms_of
from harness.exchange.grading_agreement import Agreement, agreement
from harness.exchange.grading_record import (
    KIND,
    Grading,
    Place,
    gradings_in,
    human_verdict,
    is_same_verdict,
    solved_from,
)
from harness.exchange.grading_table import Row, read_tables
from harness.exchange.rejected import Reasons
from harness.runner.history import History
from harness.runner.writing import event
from harness.store.care import pack_run
from harness.store.ingest import sync
from harness.store.journal import Journal, read_records
from harness.store.layout import Store

_ANEW = "write the form anew with `harness export grading` and grade that"
_FILL = "give each criterion of an answer whole points in range, once a grader"


class Graded(Struct, frozen=True, kw_only=True):
    """What importing came to for one run.

    Attributes
    ----------
    run_id : str
    graders : list of str
        Whose gradings were in the files.
    n_new, n_changed, n_unchanged : int
        Answers graded by one person each: for the first time, otherwise than before, as before.
    n_verdicts : int
        Verdicts that people's took the place of.
    agreement : Agreement or None
        Between judges and people, all gradings that the run has now.
    """

    run_id: str
    graders: list[str]
    n_new: int
    n_changed: int
    n_unchanged: int
    n_verdicts: int
    agreement: Agreement | None


class _Given(Struct, frozen=True):
    """A whole grading from the files, with the form that it was given on."""

    form: Form
    grading: Grading

    @property
    def place(self) -> Place:
        record = self.form.record
        return (record.item_id, record.epoch, record.attempt, self.grading.grader)


def import_grading(store: Store, paths: Sequence[Path], as_verdict: bool = False) -> list[Graded]:
    """Check filled tables and keep what people gave, or refuse them with every reason.

    Parameters
    ----------
    store : Store
        It has the runs.
    paths : sequence of Path
        Several graders may be in one file or in several.
    as_verdict : bool
        Let the mean of all that graded an answer be its verdict; the judge's stays in the history.

    Returns
    -------
    list of Graded
        A run each, in the order of the files.

    Raises
    ------
    UsageError
        A file that is no such table or holds no grading; a run whose verdicts cannot be people's.
    RejectedError
        Something in the tables is not right; the store is as it was.
    StoreError
        A run is being written by another process.
    """
    reasons = Reasons()
    rows = read_tables(paths, reasons)
    given = _checked(store, rows, reasons)
    reasons.stop()
    if not given:
        raise UsageError(
            f"{', '.join(map(str, paths))}: no grading in it; fill in points and grader"
        )
    if as_verdict:
        for run_id in given:
            _check_verdicts(store, run_id)
    with ExitStack() as stack:
        # All runs are held before the first is written to.
        journals = {
            run_id: stack.enter_context(Journal(store.journal(run_id), run_id)) for run_id in given
        }
        counts = {
            run_id: _keep(store, journals[run_id], ones, as_verdict)
            for run_id, ones in given.items()
        }
    sync(store, wait=True)
    for run_id in given:
        pack_run(store, run_id)
    return [
        Graded(
            run_id=run_id, graders=sorted({one.grading.grader for one in ones}),
            n_new=counts[run_id]["new"], n_changed=counts[run_id]["changed"],
            n_unchanged=counts[run_id]["unchanged"], n_verdicts=counts[run_id]["verdicts"],
            agreement=agreement(store, run_id),
        )
        for run_id, ones in given.items()
    ]  # fmt: skip


def _checked(store: Store, rows: Sequence[Row], reasons: Reasons) -> dict[str, list[_Given]]:
    by_run: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_run[row.run].append(row)
    known = set(store.run_ids())
    given: dict[str, list[_Given]] = {}
    for run_id, its_rows in by_run.items():
        if run_id in known:
            history = History(read_records(store.journal(run_id)), run_id)
            forms = {(f.record.item_id, f.record.epoch): f for f in forms_of(history)}
            given[run_id] = list(_gradings(its_rows, forms, reasons))
        else:
            where = f"{its_rows[0].where} ({run_id[:60]!r})"
            reasons.add("a run is not in this store", where, "name its store with --store DIR")
    return {run_id: ones for run_id, ones in given.items() if ones}


def _gradings(
    rows: Sequence[Row], forms: dict[tuple[str, int], Form], reasons: Reasons
) -> Iterator[_Given]:
    """Join the rows of one run to gradings; whatever is wrong with one is told."""
    groups: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for row in rows:
        form = forms.get((row.item_id, row.epoch))
        if _is_row_of(row, form, reasons):
            groups[row.item_id, row.epoch, row.grader].append(row)
    for (item_id, epoch, grader), own in groups.items():
        form = forms[item_id, epoch]
        begun = [row for row in own if row.points is not None or row.comment]
        if not begun:
            continue  # a name that was drawn down over answers that nobody graded
        if not grader:
            reasons.add("points or a comment without a grader", begun[0].where, "write the name")
            continue
        points = {row.criterion_id: row.points for row in own if row.points is not None}
        if missing := [one.id for one in form.criteria if one.id not in points]:
            where = f"{own[0].where}: {item_id} by {grader} lacks {', '.join(missing)}"
            reasons.add("an answer is graded in part", where, _FILL)
            continue
        comments = {row.criterion_id: row.comment for row in own if row.comment}
        yield _Given(form, Grading(
            grader=grader, content=form.content, points=points,
            possible={one.id: one.points for one in form.criteria},
            total=total_of(points, form.criteria), rubric=form.has_rubric, comments=comments,
        ))  # fmt: skip
    _check_twice(groups, reasons)


def _is_row_of(row: Row, form: Form | None, reasons: Reasons) -> bool:
    """Check a row against the answer that it says it is about."""
    if form is None:
        where = f"{row.where} (item {row.item_id[:60]!r}, epoch {row.epoch})"
        reasons.add("the run has no such answer", where, _ANEW)
        return False
    if row.attempt != form.record.attempt:
        reasons.add("the attempt is another", f"{row.where} (attempt {row.attempt})", _ANEW)
        return False
    if row.content != form.content:
        where = f"{row.where} (item {row.item_id})"
        reasons.add("the row is for another answer or rubric than is stored", where, _ANEW)
        return False
    one = next((one for one in form.criteria if one.id == row.criterion_id), None)
    if one is None:
        where = f"{row.where} ({row.criterion_id[:60]!r} of item {row.item_id})"
        reasons.add("the rubric has no such criterion", where, _ANEW)
        return False
    if row.points_possible != one.points:
        where = f"{row.where} ({row.points_possible} of {one.points})"
        reasons.add("points_possible was changed", where, _FILL)
        return False
    if row.points is not None and row.points > one.points:
        where = f"{row.where} ({row.points} of {one.points})"
        reasons.add("more points than possible", where, _FILL)
        return False
    return True


def _check_twice(groups: dict[tuple[str, int, str], list[Row]], reasons: Reasons) -> None:
    for (_, _, grader), own in groups.items():
        seen: dict[str, str] = {}
        for row in own:
            if row.criterion_id in seen:
                where = f"{row.where} and {seen[row.criterion_id]}"
                by = f" by {grader}" if grader else ""
                reasons.add(f"a criterion of an answer is graded twice{by}", where, _FILL)
            seen[row.criterion_id] = row.where


def _check_verdicts(store: Store, run_id: str) -> None:
    """Refuse runs whose number is made of their verdicts in a way that people's would not enter."""
    started = History(read_records(store.journal(run_id)), run_id).started
    why = None
    if started.config.get("adaptive"):
        why = "its items were chosen by the verdicts that it had"
    elif started.strategy != "sample":
        why = f"its strategy {started.strategy} chose by the verdicts that it had"
    if why:
        raise UsageError(f"run {run_id}: {why}; import without --as-verdict")


def _keep(store: Store, journal: Journal, given: Sequence[_Given], verdict: bool) -> Counter[str]:
    """Write what is new of a run; give how many of each kind there were."""
    run_id, path = journal.run_id, store.journal(journal.run_id)
    # Read under the run's lock: nobody else writes to it meanwhile.
    history = History(read_records(path), run_id)
    before = gradings_in(read_records(path))
    counts: Counter[str] = Counter()
    for one in given:
        record = one.form.record
        if history.samples[record.item_id, record.epoch].attempt != record.attempt:
            raise StoreError(f"run {run_id} went on meanwhile: {_ANEW}")
    for one in given:
        old = before.get(one.place)
        kind = "new" if old is None else "unchanged" if old == one.grading else "changed"
        counts[kind] += 1
        if kind != "unchanged":
            data = msgspec.to_builtins(one.grading)
            journal.append(event(run_id, KIND, data, about=one.form.record))
    if verdict:
        counts["verdicts"] = _give_verdicts(journal, history, given)
    return counts


def _give_verdicts(journal: Journal, history: History, given: Sequence[_Given]) -> int:
    n = 0
    every = gradings_in(read_records(journal.path))
    started = history.started
    solved = solved_from(started.scorer)
    for form in {one.place[:3]: one.form for one in given}.values():
        record = form.record
        of_answer = [
            grading for place, grading in every.items()
            if place[:3] == (record.item_id, record.epoch, record.attempt)
            and grading.content == form.content
        ]  # fmt: skip
        old = history.scores.get(history.place(record))
        made = human_verdict(record, started.metric, of_answer, old, solved)
        if not is_same_verdict(old, made):
            journal.append(made)
            n += 1
    if n and history.finished is not None:
        _end_again(journal, history)
    return n


def _end_again(journal: Journal, history: History) -> None:
    """Say how the run ends now: what a judge left open may have a verdict."""
    assert history.finished is not None
    now = History(read_records(journal.path), journal.run_id)
    left = now.started.n_planned - len(now.samples)
    for record in now.samples.values():
        score = now.scores.get(now.place(record))
        kind = error_kind_of(score.reason) if score else record.error_kind
        left += is_open(effective_status(record.status, score.status if score else None), kind)
    status = "partial" if left else "done"
    if status != history.finished.status:
        journal.append(msgspec.structs.replace(history.finished, status=status))
