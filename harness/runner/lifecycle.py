"""Start a run, go on with one, and say how it ended."""

from __future__ import annotations

import contextlib
import gc
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from harness.backends.base import Backend, load
from harness.core.errors import HarnessError, UsageError
from harness.core.keys import sample_hash
from harness.core.records import (
    SCHEMA,
    RunFinished,
    RunStarted,
    SampleRecord,
)
from harness.runner.adaptive import AdaptiveRun, reopen_adaptive
from harness.runner.adaptive_bank import task_bank
from harness.runner.attempts import Todo
from harness.runner.config import RunConfig
from harness.runner.environment import environment
from harness.runner.execute import Executor
from harness.runner.history import History
from harness.runner.limits import Limits, Meter
from harness.runner.observe import Observer
from harness.runner.plan import Plan, Planned, make_plan, plan_hashes
from harness.runner.scoring import close_scorer
from harness.runner.summary import Summary, summaries, summarise
from harness.runner.writing import event
from harness.store.care import pack_run
from harness.store.ingest import Ingester, refresh, sync
from harness.store.journal import Journal, read_records
from harness.store.layout import Store, find_run, new_run_id
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
    bank = task_bank(plan, store) if plan.config.adaptive else None
    if plan.judges:
        plan.judges.open()
    earlier = {} if plan.config.fresh else _earlier_answers(plan, store)
    with Journal(store.journal(run_id), run_id) as journal:
        journal.append(run_started(plan, run_id))
        executor = Executor(plan, journal, observer, meter)
        if bank is None:
            todo = [Todo(planned) for planned in plan.attempts if planned.key not in earlier]
            work = _all(executor, todo, earlier)
        else:
            plan.notes.extend(bank.notes(plan.task.name))
            work = _chosen(executor, AdaptiveRun(plan, bank, earlier))
        _drive(executor, store, work)
    # Memory: the plan is done with, and ingesting what is left needs room.
    del plan, executor, work, earlier
    return _publish(store, run_id)


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
    before = History(read_records(path), run_id)
    if sender := before.started.environment.get("submitter"):
        raise UsageError(
            f"run {run_id} was imported from {sender}: only who made it can go on with it"
        )
    config = msgspec.convert(before.started.config, RunConfig)
    backend = load(config.model, config.load_options())
    try:
        plan = make_plan(config, backend)
        before.check_items(plan)
        before.check_keys(plan)
        if plan.judges:
            plan.judges.open()
        with Journal(path, run_id) as journal:
            # Read again under the run's lock: another process may have gone on with it meanwhile.
            done = History(read_records(path), run_id)
            executor = Executor(plan, journal, observer, Meter(limits or config.limits()))
            todo, unscored = done.missing(plan)
            executor.n_cached = done.n_cached
            if config.adaptive:
                earlier = {} if config.fresh else _earlier_answers(plan, store)
                adaptive, batch = reopen_adaptive(plan, read_records(path), earlier)
                journal.append(event(run_id, "resumed", {}))
                most = adaptive.n_most - len(done.samples)
                work = _Work(partial(adaptive.go_on, executor, done, batch), most, 0)
            else:
                found = {"missing": len(todo), "unscored": len(unscored)}
                journal.append(event(run_id, "resumed", found))
                for planned, record, score in done.draws_to_choose_from(plan):
                    executor.restore(planned, record, score)
                work = _all(executor, todo, {}, unscored)
            _drive(executor, store, work)
    finally:
        backend.close()
    return _publish(store, run_id)


def run_started(plan: Plan, run_id: str) -> RunStarted:
    """Make the first record of a run: enough to plan it again after anything."""
    task, backend = plan.task, plan.backend
    hashes = plan_hashes(plan)
    identity = backend.identity
    worth = {s.item_id: s.metadata["points"] for s in plan.samples if "points" in s.metadata}
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
            **({"human_time_source": task.human_time_source} if task.human_minutes else {}),
            "metric": task.metric,
            "generation": msgspec.to_builtins(plan.generation),
            "judge": _judges_of(plan),
            **({"toolset": task.toolset} if plan.works_locally else {}),
            **({"points": worth} if worth else {}),
            **hashes,
        },
        environment=environment(),
        items=[
            {
                "item_id": sample.item_id,
                "cluster_id": sample.cluster_id,
                "category": sample.category,
                "human_minutes": task.human_minutes.get(sample.item_id),
                "content_sha256": sample_hash(sample),
            }
            for sample in plan.samples
        ],
        epochs=plan.draws,
        n_planned=plan.n_planned,
    )


def _judges_of(plan: Plan) -> Any:
    """Give the identity of the judge, a list of them where there are several."""
    found = msgspec.to_builtins(plan.judges.identities) if plan.judges else [None]
    return found[0] if len(found) == 1 else found


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


class _Work(NamedTuple):
    """What a run does, and what the progress bar is told: attempts to make, answers that are there."""

    do: Callable[[], None]
    n_todo: int
    n_cached: int


def _all(
    executor: Executor,
    todo: Sequence[Todo],
    earlier: Mapping[str, StoredAnswer],
    unscored: Sequence[tuple[Planned, SampleRecord]] = (),
) -> _Work:
    """Take what is there, score what is not scored, and make every attempt that is missing."""

    def do() -> None:
        for planned in executor.plan.attempts:
            if planned.key in earlier:
                executor.reuse(planned, earlier[planned.key])
        for planned, record in unscored:
            executor.score_again(planned, record)
        executor.run(todo)

    return _Work(do, len(todo) + len(unscored), len(earlier))


def _chosen(executor: Executor, adaptive: AdaptiveRun) -> _Work:
    """Make the attempts that tell most, one batch after the other."""
    adaptive.begin(executor.journal)
    return _Work(partial(adaptive.run, executor), adaptive.n_most, 0)


def _drive(executor: Executor, store: Store, work: _Work) -> None:
    """Make the attempts while the ingester drains the journal.

    Afterwards the journal is flushed and what is left of it waits for `_publish`. When the run has to
    stop it is ingested at once, and the error is told with the command that goes on; trouble with
    ingesting after it must not hide it.
    """
    plan, journal, observer = executor.plan, executor.journal, executor.observer
    began = time.monotonic()
    for note in plan.notes:
        observer.note(note)
    label = f"{plan.task.name} · {plan.config.model}"
    observer.started(label, work.n_todo, work.n_cached)
    ingester = Ingester(store)
    ingester.start()
    # The plan stays to the end of the run: the collector need not walk through it again and again.
    gc.freeze()
    resume_command = f"harness resume {journal.run_id} --store {shlex.quote(str(store.root))}"
    try:
        work.do()
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
        close_scorer(plan.scorer)
        if plan.judges:
            plan.judges.close()
    ingester.halt()
    if executor.stopped_by:
        made = f"{plan.n_planned - executor.n_not_started} of {plan.n_planned} attempts are there"
        if plan.config.adaptive:
            made = "the items asked so far are kept"
        observer.note(f"{label}: {executor.stopped_by}; {made}, go on with: {resume_command}")


def _publish(store: Store, run_id: str) -> Summary:
    """Ingest what is left of a run and read what it came to, from the store and never from memory."""
    sync(store, wait=True)
    pack_run(store, run_id)
    return summarise(store, run_id)


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
