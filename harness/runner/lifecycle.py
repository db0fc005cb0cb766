"""Start a run, go on with one, and say how it ended."""

from __future__ import annotations

import contextlib
import gc
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from harness.backends.base import Backend, load
from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.keys import sample_hash
from harness.core.records import (
    SCHEMA,
    RunFinished,
    RunStarted,
    SampleRecord,
    ScoreRecord,
)
from harness.core.status import SCORER_FAULT
from harness.core.types import Score
from harness.runner.config import RunConfig
from harness.runner.environment import environment
from harness.runner.execute import Executor, Todo
from harness.runner.limits import Limits, Meter
from harness.runner.observe import Observer
from harness.runner.plan import Plan, Planned, make_plan, plan_hashes
from harness.runner.summary import Summary, summaries, summarise
from harness.runner.writing import event
from harness.store.care import pack_run
from harness.store.ingest import Ingester, refresh, sync
from harness.store.journal import Journal, read_records
from harness.store.layout import Store, new_run_id
from harness.store.publish import snapshot
from harness.store.queries import StoredAnswer, answers_for_keys


def start(
    config: RunConfig,
    store: Store,
    observer: Observer | None = None,
    backend: Backend | None = None,
) -> Summary:
    """Run a task on a model and keep everything.

    Parameters
    ----------
    config : RunConfig
    store : Store
    observer : Observer, optional
        Told of everything while the run goes.
    backend : Backend, optional
        A loaded model to use again for several tasks; loaded from the SPEC otherwise.

    Returns
    -------
    Summary
        From the store, never from memory.

    Raises
    ------
    UsageError
        The request is wrong; nothing was called.
    HarnessError
        The run had to stop; what was done is kept.
    """
    mine = backend or load(config.model, config.load_options())
    try:
        return carry_out(make_plan(config, mine), store, observer)
    finally:
        if backend is None:
            mine.close()


def carry_out(
    plan: Plan, store: Store, observer: Observer | None = None, meter: Meter | None = None
) -> Summary:
    """Carry out a plan as a new run; see `start`. A meter may count for several runs."""
    observer = observer or Observer()
    run_id = new_run_id()
    if plan.judge:
        plan.judge.open()
    earlier = {} if plan.config.fresh else _earlier_answers(plan, store)
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(run_started(plan, run_id))
        executor = Executor(plan, journal, observer, meter)
        todo = [Todo(planned) for planned in plan.attempts if planned.key not in earlier]
        _drive(executor, store, todo, earlier)
    # Memory: the plan is done with, and the summary is read from the store anyway.
    del plan, executor, todo, earlier
    pack_run(store, run_id)
    return summarise(store, run_id)


def resume(
    store: Store,
    run_id: str,
    observer: Observer | None = None,
    limits: Limits | None = None,
) -> Summary:
    """Go on with what is missing of a run.

    Only attempts without an answer are made; an attempt that ended in a fault of the harness,
    engine or network is made again; an output without a verdict is scored. The run's limits count
    anew from nothing, unless others are given.

    Raises
    ------
    UsageError
        Unknown run, or its task or data are no longer what they were.
    """
    observer = observer or Observer()
    path = store.journal(run_id := find_run(store, run_id))
    before = _Done(read_records(path), run_id)
    config = msgspec.convert(before.started.config, RunConfig)
    backend = load(config.model, config.load_options())
    try:
        plan = make_plan(config, backend)
        _same_plan(plan, before)
        if plan.judge:
            plan.judge.open()
        with Journal(path, run_id) as journal:
            # Read again under the run's lock: another process may have gone on with it meanwhile.
            done = _Done(read_records(path), run_id)
            executor = Executor(plan, journal, observer, Meter(limits or config.limits()))
            todo, unscored = done.missing(plan)
            found = {"missing": len(todo), "unscored": len(unscored)}
            journal.append(event(run_id, "resumed", found))
            done.restore_draws(plan, executor)
            executor.n_cached = done.n_cached
            _drive(executor, store, todo, {}, unscored)
    finally:
        backend.close()
    pack_run(store, run_id)
    return summarise(store, run_id)


def find_run(store: Store, name: str) -> str:
    """Find a run by its id, the beginning of one, or its random part; ``last`` is the newest.

    Raises
    ------
    UsageError
        No such run, or several.
    """
    run_ids = store.run_ids()
    if name == "last" and run_ids:
        return run_ids[-1]
    matches = [r for r in run_ids if r.startswith(name) or r.endswith(f"-{name}")]
    if len(matches) == 1 or name in matches:
        return name if name in matches else matches[0]
    if matches:
        raise UsageError(f"run {name!r} is ambiguous: {', '.join(matches[:5])}")
    raise unknown("run", name, run_ids, "see `harness list runs`")


def run_started(plan: Plan, run_id: str) -> RunStarted:
    """Make the first record of a run: enough to plan it again after anything."""
    task, backend = plan.task, plan.backend
    hashes = plan_hashes(plan)
    identity = backend.identity
    return RunStarted(
        seq=0,
        ts="",
        run_id=run_id,
        schema=SCHEMA,
        task=task.name,
        task_version=task.version,
        model=plan.config.model,
        is_baseline=backend.is_baseline,
        strategy=plan.config.strategy,
        solver=str(plan.solver_spec),
        scorer=str(plan.scorer_spec),
        metric=task.metric,
        seed=plan.config.seed,
        errors=plan.config.errors,
        config=msgspec.to_builtins(plan.config),
        identity={
            **plan.card.facts(),
            **msgspec.to_builtins(identity),
            **backend.describe(),
            "variant_id": identity.variant_id,
            "model_id": identity.name,
            "is_baseline": backend.is_baseline,
        },
        task_info={
            **task.info,
            "metric": task.metric,
            "generation": msgspec.to_builtins(plan.generation),
            "judge": msgspec.to_builtins(plan.judge.identity) if plan.judge else None,
            **hashes,
        },
        environment=environment(),
        items=[
            {
                "item_id": sample.item_id,
                "cluster_id": sample.cluster_id,
                "category": sample.category,
                "content_sha256": sample_hash(sample),
            }
            for sample in plan.samples
        ],
        epochs=plan.draws,
        n_planned=plan.n_planned,
    )


def _earlier_answers(plan: Plan, store: Store) -> dict[str, StoredAnswer]:
    """Find answers that an earlier run paid for, journals of killed runs included."""
    if not store.run_ids():
        return {}
    # Waiting for another process to finish costs a moment, overlooking its answers costs calls.
    sync(store, wait=True)
    return answers_for_keys(snapshot(store), store, [planned.key for planned in plan.attempts])


class StoppedError(HarnessError):
    """The run was stopped by hand; what is done is kept.

    Attributes
    ----------
    resume : str
        The command that goes on.
    """

    def __init__(self, resume: str) -> None:
        super().__init__(f"stopped; what is done is kept. Go on with: {resume}")
        self.resume = resume


def all_runs(store: Store) -> list[Summary]:
    """Summarise every run of a store, killed and running ones included, oldest first."""
    refresh(store)
    return summaries(store)


def _drive(
    executor: Executor,
    store: Store,
    todo: Sequence[Todo],
    earlier: Mapping[str, StoredAnswer],
    unscored: Sequence[tuple[Planned, SampleRecord]] = (),
) -> None:
    """Make the attempts while the ingester drains the journal.

    However it ends, the journal is flushed and ingested. An error of the run itself is told with
    the command that goes on; trouble with ingesting after it must not hide it.
    """
    plan, journal, observer = executor.plan, executor.journal, executor.observer
    began = time.monotonic()
    for note in plan.notes:
        observer.note(note)
    label = f"{plan.task.name} · {plan.config.model}"
    observer.started(label, len(todo) + len(unscored), len(earlier))
    ingester = Ingester(store)
    ingester.start()
    # The plan stays to the end of the run: the collector need not walk through it again and again.
    gc.freeze()
    resume_command = f"harness resume {journal.run_id} --store {shlex.quote(str(store.root))}"
    try:
        for planned in plan.attempts:
            if planned.key in earlier:
                executor.reuse(planned, earlier[planned.key])
        for planned, record in unscored:
            executor.score_again(planned, record)
        executor.run(todo)
        journal.append(_finished(executor, time.monotonic() - began))
        journal.flush()
    except BaseException as error:
        with contextlib.suppress(HarnessError):
            journal.flush()
            ingester.stop()
            sync(store, wait=True)
        if isinstance(error, KeyboardInterrupt):
            raise StoppedError(resume_command) from error
        if isinstance(error, HarnessError):
            raise HarnessError(
                f"{error}; what is done is kept, go on with: {resume_command}"
            ) from error
        raise
    finally:
        gc.unfreeze()
        observer.ended()
        if plan.judge:
            plan.judge.close()
    ingester.stop()
    if executor.stopped_by:
        made = plan.n_planned - executor.n_not_started
        observer.note(
            f"{label}: {executor.stopped_by}; {made} of {plan.n_planned} attempts are there, go on "
            f"with: {resume_command}"
        )


def _finished(executor: Executor, seconds: float) -> RunFinished:
    return RunFinished(
        seq=0,
        ts="",
        run_id=executor.journal.run_id,
        schema=SCHEMA,
        status="partial" if executor.n_left_open or executor.n_not_started else "done",
        seconds=round(seconds, 3),
        cached=executor.n_cached,
    )


class _Done:
    """What a run's journal says is done."""

    def __init__(self, records: Iterable[Any], run_id: str) -> None:
        self.samples: dict[tuple[str, int], SampleRecord] = {}
        self.scores: dict[tuple[str, int, int, str], ScoreRecord] = {}
        self.n_cached = 0
        started = None
        for record in records:
            if isinstance(record, RunStarted):
                started = record
            elif isinstance(record, SampleRecord):
                self.samples[record.item_id, record.epoch] = record
                self.n_cached += record.reused_from is not None
            elif isinstance(record, ScoreRecord):
                key = (record.item_id, record.epoch, record.attempt, record.metric)
                self.scores[key] = record
        if started is None:
            raise UsageError(f"run {run_id} ended before its plan was written: start it anew")
        self.started = started

    def score_of(self, record: SampleRecord) -> ScoreRecord | None:
        key = (record.item_id, record.epoch, record.attempt, self.started.metric)
        score = self.scores.get(key)
        return None if score is None or score.reason == SCORER_FAULT else score

    def missing(self, plan: Plan) -> tuple[list[Todo], list[tuple[Planned, SampleRecord]]]:
        """Give the attempts to make and the outputs to score."""
        todo: list[Todo] = []
        unscored: list[tuple[Planned, SampleRecord]] = []
        for planned in plan.attempts:
            record = self.samples.get((plan.samples[planned.index].item_id, planned.epoch))
            if record is None:
                todo.append(Todo(planned))
            elif record.status == "unavailable" or (
                record.status == "error" and record.error_kind != "model"
            ):
                todo.append(Todo(planned, record.attempt + 1))
            elif record.status in ("unscored", "truncated") and self.score_of(record) is None:
                unscored.append((planned, record))
        return todo, unscored

    def restore_draws(self, plan: Plan, executor: Executor) -> None:
        """Hand a strategy the draws that are there, for items that it has not chosen for yet."""
        n = plan.strategy.n
        chosen = {
            (score.item_id, score.epoch)
            for score in self.scores.values()
            if score.metric == plan.config.strategy and score.reason != SCORER_FAULT
        }
        for planned in plan.attempts if n > 1 else ():
            item_id = plan.samples[planned.index].item_id
            record = self.samples.get((item_id, planned.epoch))
            if record is None or (item_id, planned.epoch - planned.epoch % n) in chosen:
                continue
            score = self.score_of(record)
            if score is not None:
                executor.restore(planned, record, Score(
                    value=score.value, passed=score.passed, answer=score.answer,
                    status=score.status, reason=score.reason,  # type: ignore[arg-type]
                ))  # fmt: skip
            elif record.status not in ("unscored", "truncated"):
                executor.restore(planned, record, None)


def _same_plan(plan: Plan, done: _Done) -> None:
    """Refuse to go on when the task or its data changed since the run began."""
    before = {item["item_id"]: item["content_sha256"] for item in done.started.items}
    now = {sample.item_id: sample_hash(sample) for sample in plan.samples}
    if done.started.task_version != plan.task.version or before != now:
        changed = sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))
        raise UsageError(
            f"run {done.started.run_id} cannot go on: {plan.task.name} or its data changed "
            f"({len(changed)} items, e.g. {', '.join(changed[:3]) or 'its version'}); start a new run"
        )
    for planned in plan.attempts:
        record = done.samples.get((plan.samples[planned.index].item_id, planned.epoch))
        if record is not None and record.key != planned.key:
            raise UsageError(
                f"run {done.started.run_id} cannot go on: its model, prompt or parameters are not "
                "what they were; start a new run"
            )
