"""Solve, score and journal the attempts of a plan, in batches."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError
from harness.core.records import SampleRecord
from harness.core.status import effective_status, error_kind_of, is_open, value_counted
from harness.core.types import (
    ErrorKind,
    GenerateRequest,
    Output,
    Request,
    Score,
    Status,
    Work,
)
from harness.runner.attempts import Active, Todo, begin, close, close_all, cores, move, take
from harness.runner.drawing import Draws
from harness.runner.judging import Call
from harness.runner.limits import Meter
from harness.runner.observe import Observer
from harness.runner.plan import Plan, Planned
from harness.runner.pool import Calls, wait_for_one
from harness.runner.scoring import judge
from harness.runner.writing import (
    event,
    failed,
    output_of,
    reused_record,
    sample_record,
    score_events,
    score_record,
    transcript,
)
from harness.store.journal import Journal
from harness.store.queries import StoredAnswer

__all__ = ["FAULTS_IN_A_ROW", "RETRIES", "Executor", "Todo"]

RETRIES = 2  # further attempts after a fault of harness, engine or network
FAULTS_IN_A_ROW = 50  # so many and the run stops: something is broken for all of them


class _ToScore(Struct):
    """An output that waits for its verdict; `replaces` is the verdict that it takes the place of."""

    planned: Planned
    record: SampleRecord
    replaces: int | None = None


class Executor:
    """Runs what is left of a plan.

    Parameters
    ----------
    plan : Plan
    journal : Journal
        Receives every attempt the moment it ends.
    observer : Observer
    meter : Meter, optional
        Shared by the runs of a command; by default the run's own limits count for it alone.
    """

    def __init__(
        self, plan: Plan, journal: Journal, observer: Observer, meter: Meter | None = None
    ) -> None:
        self.plan = plan
        self.journal = journal
        self.observer = observer
        self.meter = meter or Meter(plan.config.limits())
        self.meter.begin()
        self.stopped_by: str | None = None  # the limit that was reached
        self.n_not_started = 0
        self.n_cached = 0
        self.n_left_open = 0  # attempts that ended by no fault of the model
        # What each attempt counts with, by item; for whoever wants to know while the run goes.
        self.counted: dict[int, float | None] | None = None
        self._faults_in_a_row = 0
        self._draws = Draws(plan, journal)
        at_once: int = getattr(plan.scorer, "at_once", 1)
        self._n_verdicts = plan.judges.max_connections if plan.judges else at_once
        self._scoring = self._verdicts()

    def run(self, todo: Iterable[Todo]) -> None:
        """Make the attempts in plan order, as many at once as the backend likes.

        Raises
        ------
        HarnessError
            When everything fails in a row: the run stops, what is done is kept.
        """
        waiting = deque(todo)
        # A plug-in may not know the attribute: one call at a time, in batches.
        limit: int = getattr(self.plan.backend, "max_connections", 1)
        try:
            if self.plan.works_locally:
                self._run_with_tools(waiting, limit)
            elif limit > 1:
                self._run_side_by_side(waiting, limit)
            else:
                self._run_in_batches(waiting)
            while self._scoring is not None and self._scoring.n_under_way:
                self._take_scored()
        except (HarnessError, KeyboardInterrupt):
            # Verdicts that are here are paid for: keep them before the run stops.
            with contextlib.suppress(HarnessError):
                self._take_scored(block=False)
            raise
        finally:
            self._draws.close()
            if self._scoring is not None:
                self._scoring.stop()
                self._scoring = self._verdicts()  # an adaptive run comes again
            self._keep_observed()

    def _verdicts(self) -> Calls[_ToScore, tuple[Score, list[Call]]] | None:
        return Calls(self._verdict, self._n_verdicts) if self._n_verdicts > 1 else None

    def _run_in_batches(self, waiting: deque[Todo]) -> None:
        active: list[Active] = []
        try:
            while waiting or active:
                while self._may_start(waiting) and len(active) < self.plan.backend.batch_size:
                    one = begin(self.plan, waiting.popleft())
                    if self._goes_on(one, move(one), waiting):
                        active.append(one)
                if active:
                    active = self._step(active, waiting)
                self._take_scored(block=False)
        finally:
            for one in active:
                close(one)

    def _run_side_by_side(self, waiting: deque[Todo], limit: int) -> None:
        """Keep single requests under way in threads; solve, score and journal here as they end."""
        calls = Calls(self._call_one, limit)
        try:
            while waiting or calls.n_under_way:
                while self._may_start(waiting) and calls.free:
                    one = begin(self.plan, waiting.popleft())
                    if self._goes_on(one, move(one), waiting):
                        calls.start(one)
                if calls.n_under_way:
                    wait_for_one(calls, self._scoring)
                    for one, answer in calls.ended(block=False):
                        take(one, answer)
                        if self._goes_on(one, move(one), waiting):
                            calls.start(one)
                self._take_scored(block=False)
        except (HarnessError, KeyboardInterrupt):
            # Answers that are here are paid for: keep them before the run stops.
            for one, answer in calls.ended(block=False):
                with contextlib.suppress(HarnessError):
                    take(one, answer)
                    if self._goes_on(one, move(one), waiting):
                        close(one)
            raise
        finally:
            for one in calls.arguments:
                close(one)
            calls.stop()

    def _run_with_tools(self, waiting: deque[Todo], limit: int) -> None:
        """Move attempts on in threads, a core each, since they run tools; ask the model beside it.

        A model that takes one batch at a time is asked when no attempt moves any more, or when half
        of them wait for it: so batches are large, and one slow tool holds up few.
        """
        steps = Calls(move, cores())
        calls = Calls(self._call_one, limit) if limit > 1 else None
        most = limit if calls else self.plan.backend.batch_size
        open_: dict[int, Active] = {}
        asking: list[Active] = []
        try:
            while waiting or open_:
                while len(open_) < most and self._may_start(waiting):
                    one = begin(self.plan, waiting.popleft())
                    open_[id(one)] = one
                    steps.start(one)
                if asking and (not steps.n_under_way or 2 * len(asking) >= len(open_)):
                    asking = self._ask_batch(asking, steps)
                elif open_:
                    wait_for_one(steps, calls, self._scoring)
                for one, moved in steps.ended(block=False):
                    if not self._goes_on(one, moved.result(), waiting):
                        del open_[id(one)]
                    elif calls:
                        calls.start(one)
                    else:
                        asking.append(one)
                for one, answer in calls.ended(block=False) if calls else ():
                    take(one, answer)
                    steps.start(one)
                self._take_scored(block=False)
        except (HarnessError, KeyboardInterrupt):
            # Attempts that have ended are paid for: keep them before the run stops.
            for one, moved in steps.ended(block=False):
                with contextlib.suppress(HarnessError):
                    if not self._goes_on(one, moved.result(), waiting):
                        del open_[id(one)]
            raise
        finally:
            close_all(open_.values(), steps)
            steps.stop()
            if calls:
                calls.stop()

    def _ask_batch(
        self, asking: list[Active], steps: Calls[Active, Request | Output]
    ) -> list[Active]:
        """Answer the requests of the first kind found; give the attempts that wait still."""
        kind = type(asking[0].request)
        batch = [one for one in asking if type(one.request) is kind]
        outputs = self._call([one.request for one in batch if one.request is not None])
        for one, output in zip(batch, outputs, strict=True):
            one.outputs.append(output)
            steps.start(one)
        return [one for one in asking if type(one.request) is not kind]

    def _call_one(self, one: Active) -> Output:
        assert one.request is not None
        return self._call([one.request])[0]

    def _may_start(self, waiting: deque[Todo]) -> bool:
        """Tell whether there is more to start; at a limit what waits is left for `resume`."""
        if waiting and (reached := self.meter.reached()):
            self.stopped_by = reached
            self.n_not_started += len(waiting)
            waiting.clear()
        return bool(waiting)

    def _keep_observed(self) -> None:
        """Journal what a server was seen to do beside answering: names it gave, retries."""
        observed: dict[str, int] = getattr(self.plan.backend, "observed", dict)()
        if observed:
            with contextlib.suppress(HarnessError):  # must not hide why the run stops
                self.journal.append(event(self.journal.run_id, "backend", observed))

    def reuse(self, planned: Planned, answer: StoredAnswer) -> None:
        """Take an answer of an earlier run: journaled again, marked with the run that paid."""
        self.n_cached += 1
        sample = self.plan.samples[planned.index]
        record = reused_record(self.journal.run_id, planned, sample, answer)
        if record.status in ("unscored", "truncated") and self._may_not_judge():
            self.journal.append(record)
        else:
            self._write(Todo(planned), record)

    def restore(self, planned: Planned, record: SampleRecord, score: Score | None) -> None:
        """Remember a draw that an earlier part of the run made, for the strategy to choose from."""
        self._draws.add(planned, record, score)

    def score_again(
        self, planned: Planned, record: SampleRecord, replaces: int | None = None
    ) -> None:
        """Score an output that is stored already.

        Parameters
        ----------
        planned : Planned
        record : SampleRecord
        replaces : int, optional
            `seq` of the verdict that the new one takes the place of.
        """
        if not self._may_not_judge():
            self._score(_ToScore(planned, record, replaces))

    def _may_not_judge(self) -> bool:
        """Tell whether a limit forbids to judge what is there already; `resume` judges it later."""
        reached = self.meter.reached() if self.plan.judges else None
        if reached:
            self.stopped_by = reached
            self.n_not_started += 1
        return reached is not None

    def _goes_on(self, one: Active, moved: Request | Output, waiting: deque[Todo]) -> bool:
        """Tell whether an attempt asks for more; one that ended is stored."""
        if isinstance(moved, Output):
            self._end(one.todo, moved, waiting, one.outputs)
            return False
        one.request = moved
        return True

    def _step(self, active: list[Active], waiting: deque[Todo]) -> list[Active]:
        """Answer the requests of the first kind found and move their attempts on."""
        kind = type(active[0].request)
        batch = [a for a in active if type(a.request) is kind]
        outputs = self._call([a.request for a in batch if a.request is not None])
        answered = {id(a): output for a, output in zip(batch, outputs, strict=True)}
        still: list[Active] = []
        for one in active:
            output = answered.get(id(one))
            if output is not None:
                one.outputs.append(output)
            if output is None or self._goes_on(one, move(one), waiting):
                still.append(one)
        return still

    def _call(self, requests: Sequence[Request]) -> list[Output]:
        began = time.perf_counter()
        backend = self.plan.backend
        try:
            if isinstance(requests[0], GenerateRequest):
                outputs = backend.generate(requests)  # type: ignore[arg-type]
            else:
                outputs = backend.loglikelihood(requests)  # type: ignore[arg-type]
            if len(outputs) != len(requests):
                raise ValueError(f"{len(outputs)} outputs for {len(requests)} requests")
        except HarnessError:
            raise
        except Exception as error:  # noqa: BLE001  a fault of the harness must stay visible per item
            outputs = [failed(error, "harness") for _ in requests]
        share = (time.perf_counter() - began) / len(requests)
        for output in outputs:
            if output.latency_s is None:
                output.latency_s = share
        return outputs

    def _end(
        self, todo: Todo, output: Output, waiting: deque[Todo], calls: Sequence[Output]
    ) -> None:
        planned = todo.planned
        sample = self.plan.samples[planned.index]
        messages = self.plan.messages[planned.index]
        record = sample_record(self.journal.run_id, planned, sample, output, messages, todo.attempt)
        usage = (record.tokens_in, record.tokens_out, record.tokens_reasoning)
        record.cost_usd = self.plan.card.cost(*usage)
        if record.tokens_in is not None or record.status not in ("unavailable", "error"):
            self._count(record.tokens_in, record.tokens_out, record.cost_usd)
        fault = record.status == "error" and record.error_kind != "model"
        if not fault:
            self._faults_in_a_row = 0
        elif todo.attempt % (RETRIES + 1) == 1:
            # Retries come one after the other at the end: they say nothing about the other items.
            self._faults_in_a_row += 1
        if fault and todo.attempt % (RETRIES + 1):
            self._keep(record, calls, output.work)
            waiting.append(Todo(planned, todo.attempt + 1))
        else:
            self._write(todo, record, calls, output.work)
        if self._faults_in_a_row >= FAULTS_IN_A_ROW:
            raise HarnessError(f"stopped after {FAULTS_IN_A_ROW} faults in a row: {record.error}")

    def _keep(self, record: SampleRecord, calls: Sequence[Output], work: Work | None) -> None:
        """Journal an attempt and, where it took several turns or tools, what happened in each."""
        self.journal.append(record)
        if len(calls) > 1 or work or any(output.tool_calls for output in calls):
            for made in transcript(record, calls, work):
                self.journal.append(made)

    def _write(
        self,
        todo: Todo,
        record: SampleRecord,
        calls: Sequence[Output] = (),
        work: Work | None = None,
    ) -> None:
        self._keep(record, calls, work)
        if record.status in ("unscored", "truncated"):
            self._score(_ToScore(todo.planned, record))
        else:
            self._tell(todo.planned, record.status, record.error_kind, None)
            self.n_left_open += self._draws.add(todo.planned, record, None)

    def _score(self, one: _ToScore) -> None:
        """Have an output judged: at once, or beside others where the judge answers many at once."""
        if self._scoring is None:
            self._scored(one, *self._verdict(one))
            return
        while not self._scoring.free:
            self._take_scored()
        self._scoring.start(one)

    def _verdict(self, one: _ToScore) -> tuple[Score, list[Call]]:
        sample = self.plan.samples[one.planned.index]
        score = judge(self.plan.scorer, sample, output_of(one.record, self.plan))
        return score, self.plan.judges.take_calls() if self.plan.judges else []

    def _take_scored(self, *, block: bool = True) -> None:
        """Keep the verdicts that have come, waiting for one at least unless told not to."""
        if self._scoring is not None and self._scoring.n_under_way:
            for one, verdict in self._scoring.ended(block=block):
                self._scored(one, *verdict.result())

    def _scored(self, one: _ToScore, score: Score, calls: Sequence[Call]) -> None:
        record = one.record
        seq = self.journal.append(score_record(self.plan, record, score, one.replaces))
        for made in score_events(record, score, seq):
            self.journal.append(made)
        for call in calls:
            used = msgspec.to_builtins(call)
            self.journal.append(event(self.journal.run_id, "judge_call", used, about=record))
            self._count(call.tokens_in, call.tokens_out, call.cost_usd)
        status = effective_status(record.status, score.status)
        self._tell(one.planned, status, error_kind_of(score.reason), score.value)
        self.n_left_open += self._draws.add(one.planned, record, score)

    def _count(self, tokens_in: int | None, tokens_out: int | None, cost: float | None) -> None:
        if warning := self.meter.add(tokens_in, tokens_out, cost):
            self.observer.note(warning)

    def _tell(
        self, planned: Planned, status: Status, kind: ErrorKind | None, value: float | None
    ) -> None:
        self.n_left_open += is_open(status, kind)
        counted = value_counted(status, kind, value, self.plan.config.errors)
        if self.counted is not None:
            self.counted[planned.index] = counted
        self.observer.finished(status, counted)
