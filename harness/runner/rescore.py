"""Score stored outputs again: no model is loaded or called, and every earlier verdict stays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.backends.base import Capability, ModelIdentity
from harness.core.errors import HarnessError, UsageError
from harness.core.records import RunFinished, SampleRecord, ScoreRecord
from harness.core.status import effective_status, error_kind_of, is_open
from harness.runner.adaptive import reopen_adaptive
from harness.runner.config import RunConfig
from harness.runner.execute import Executor
from harness.runner.history import History
from harness.runner.judging import join_judges
from harness.runner.observe import Observer
from harness.runner.plan import Plan, Planned, make_plan
from harness.runner.scoring import close_scorer
from harness.runner.summary import Metric, Summary, headline_of, summarise
from harness.runner.writing import event
from harness.store.care import pack_run
from harness.store.ingest import sync
from harness.store.journal import Journal, read_records
from harness.store.layout import Store, find_run


class Judged(Struct, frozen=True, kw_only=True):
    """Which scorer gave the verdicts, and what the run's headline was under it.

    `versions` are all that the valid verdicts carry: several when a run was resumed under a newer
    scorer.
    """

    scorer: str
    versions: tuple[str, ...]
    judge: str | None
    metric: str
    headline: Metric


class Rescored(Struct, frozen=True, kw_only=True):
    """What scoring again came to.

    Attributes
    ----------
    run_id : str
    before, after : Judged
    n_rescored : int
        Outputs that were judged again; attempts without an output (errors, refusals, timeouts)
        have nothing to judge and stay as they are.
    changed : list of str
        Items whose verdict is another now, ``item_id`` or ``item_id#epoch`` from the second repeat on.
    summary : Summary
        The run as it is now.
    """

    run_id: str
    before: Judged
    after: Judged
    n_rescored: int
    changed: list[str]
    summary: Summary


class _Stored:
    """Stands where a plan wants its model: all that is asked was answered before."""

    capabilities: frozenset[Capability] = frozenset(
        {"generate", "samples", "token_logprobs", "next_token_full", "loglikelihood"}
    )
    is_baseline = False
    batch_size = 1
    context_length: int | None = None
    identity = ModelIdentity(backend="stored", name="stored", revision="", dtype="")

    def generate(self, requests: object) -> Any:
        """Refuse: nothing is to be called."""
        raise HarnessError("scoring again calls no model")

    loglikelihood = generate

    def describe(self) -> dict[str, Any]:
        """Give nothing: the run says what its model was."""
        return {}

    def close(self) -> None:
        """Do nothing."""


def rescore(
    store: Store,
    name: str,
    judge: str | Sequence[str] | None = None,
    observer: Observer | None = None,
) -> Rescored:
    """Judge the outputs of a run again, with the scorer as it is now.

    Parameters
    ----------
    store : Store
    name : str
        The run (see `harness.store.layout.find_run`).
    judge : str or sequence of str, optional
        Model SPECs of other judges than the run had.
    observer : Observer, optional

    Raises
    ------
    UsageError
        Unknown run, or its task or data are no longer what they were.
    """
    observer = observer or Observer()
    run_id = find_run(store, name)
    path = store.journal(run_id)
    config = msgspec.convert(History(read_records(path), run_id).started.config, RunConfig)
    asked = join_judges([judge] if isinstance(judge, str) else judge or ())
    if asked is not None:
        config = msgspec.structs.replace(config, judge=asked)
    plan = make_plan(config, _Stored())
    if asked is not None and plan.judges is None:
        raise UsageError(f"{plan.task.name}: its scorer {plan.task.scorer!r} asks no judge")
    with Journal(path, run_id) as journal:
        # Read under the run's lock: nobody else writes to it meanwhile.
        history = History(read_records(path), run_id)
        history.check_items(plan)
        sync(store, wait=True)
        metric, headline = headline_of(summarise(store, run_id))
        before = _judged(history, plan, metric, headline)
        if plan.judges:
            plan.judges.open()
        n_rescored = _judge_again(plan, journal, history, observer)
        if config.adaptive:
            _estimate_again(plan, journal, path)
    sync(store, wait=True)
    pack_run(store, run_id)
    later = History(read_records(path), run_id)
    summary = summarise(store, run_id)
    metric, headline = headline_of(summary)
    return Rescored(
        run_id=run_id,
        before=before,
        after=_judged(later, plan, metric, headline),
        n_rescored=n_rescored,
        changed=_changed(plan, history, later),
        summary=summary,
    )


def _estimate_again(plan: Plan, journal: Journal, path: Path) -> None:
    """Let an adaptive run's estimate follow its new verdicts."""
    records = list(read_records(path))
    adaptive, batch = reopen_adaptive(plan, records, {})
    adaptive.take_in(History(records, journal.run_id), batch)
    adaptive.keep_outcome(journal)


def _judge_again(plan: Plan, journal: Journal, history: History, observer: Observer) -> int:
    executor = Executor(plan, journal, observer)
    again, kept = _outputs(plan, history)
    executor.n_left_open = sum(is_open(r.status, r.error_kind) for _, r in kept)
    observer.started(f"{plan.task.name} · scoring again", len(again), 0)
    journal.append(event(journal.run_id, "rescored", _scorer_facts(plan, len(again))))
    try:
        for planned, record in kept:
            executor.restore(planned, record, None)
        for planned, record in again:
            old = history.scores.get(history.place(record))
            executor.score_again(planned, record, None if old is None else old.seq)
        executor.run(())
        if history.finished is not None:
            journal.append(_finished(executor, plan, history))
    finally:
        observer.ended()
        close_scorer(plan.scorer)
        if plan.judges:
            plan.judges.close()
    if executor.stopped_by:
        observer.note(f"{executor.stopped_by}; {executor.n_not_started} outputs keep their verdict")
    return len(again) - executor.n_not_started


def _outputs(
    plan: Plan, history: History
) -> tuple[list[tuple[Planned, SampleRecord]], list[tuple[Planned, SampleRecord]]]:
    """Give the attempts with an output to judge, and the others that were made."""
    again: list[tuple[Planned, SampleRecord]] = []
    kept: list[tuple[Planned, SampleRecord]] = []
    for planned in plan.attempts:
        record = history.samples.get((plan.samples[planned.index].item_id, planned.epoch))
        if record is not None:
            judged = record.status in ("unscored", "truncated")
            (again if judged else kept).append((planned, record))
    return again, kept


def _finished(executor: Executor, plan: Plan, history: History) -> RunFinished:
    """Say how the run ends now: a scorer's fault may be mended, or be new."""
    assert history.finished is not None
    # An adaptive run asks what it asks; what is open of it shows in its estimate.
    whole = plan.config.adaptive or len(history.samples) == plan.n_planned
    whole = whole and not executor.n_not_started
    status = "done" if whole and not executor.n_left_open else "partial"
    return msgspec.structs.replace(history.finished, status=status)


def _scorer_facts(plan: Plan, n: int) -> dict[str, object]:
    return {
        "scorer": str(plan.scorer_spec),
        "version": plan.scorer_entry.version,
        "judge": plan.judges.variant_id if plan.judges else None,
        "outputs": n,
    }


def _judged(history: History, plan: Plan, metric: str, headline: Metric) -> Judged:
    valid = _valid(plan, history)
    judges = sorted({s.judge_variant for s in valid.values() if s.judge_variant})
    return Judged(
        scorer=", ".join(sorted({s.scorer for s in valid.values()})) or str(plan.scorer_spec),
        versions=tuple(sorted({s.scorer_version for s in valid.values()})),
        judge=", ".join(judges) or None,
        metric=metric,
        headline=headline,
    )


def _valid(plan: Plan, history: History) -> dict[tuple[str, int], ScoreRecord]:
    """Give the valid verdict of each item and repeat that has one."""
    found = {}
    for planned in plan.attempts:
        at = (plan.samples[planned.index].item_id, planned.epoch)
        record = history.samples.get(at)
        score = history.scores.get(history.place(record)) if record else None
        if score is not None:
            found[at] = score
    return found


def _changed(plan: Plan, before: History, after: History) -> list[str]:
    old, new = _valid(plan, before), _valid(plan, after)

    def verdict(score: ScoreRecord | None) -> tuple[object, ...] | None:
        if score is None:
            return None
        status = effective_status("unscored", score.status)
        return score.value, status, error_kind_of(score.reason)

    return [
        item_id if epoch == 0 else f"{item_id}#{epoch}"
        for item_id, epoch in new
        if verdict(old.get((item_id, epoch))) != verdict(new[item_id, epoch])
    ]
