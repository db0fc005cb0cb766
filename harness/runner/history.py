"""What the journal of a run says is done: its latest attempts, their verdicts, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.core.errors import UsageError
from harness.core.keys import sample_hash
from harness.core.records import Record, RunFinished, RunStarted, SampleRecord, ScoreRecord
from harness.core.status import SCORER_FAULT, is_open
from harness.core.types import Score
from harness.runner.attempts import Todo
from harness.runner.plan import Plan, Planned

Place = tuple[str, int, int, str]


class History:
    """The records of one run, the latest of each kind by what they are about.

    Parameters
    ----------
    records : iterable of Record
        The run's journal, in order.
    run_id : str

    Attributes
    ----------
    started : RunStarted
    finished : RunFinished or None
        The last end that was written; None while the run goes, or after a kill.
    samples : dict
        ``(item_id, epoch)`` to the latest attempt.
    scores : dict
        ``(item_id, epoch, attempt, metric)`` to the latest verdict.
    n_cached : int
        Attempts that earlier runs paid for.

    Raises
    ------
    UsageError
        The journal ends before the plan was written.
    """

    def __init__(self, records: Iterable[Record], run_id: str) -> None:
        self.samples: dict[tuple[str, int], SampleRecord] = {}
        self.scores: dict[Place, ScoreRecord] = {}
        self.finished: RunFinished | None = None
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
            elif isinstance(record, RunFinished):
                self.finished = record
        if started is None:
            raise UsageError(f"run {run_id} ended before its plan was written: start it anew")
        self.started = started

    def place(self, record: SampleRecord) -> Place:
        """Give the key of an attempt's headline verdict in `scores`."""
        return (record.item_id, record.epoch, record.attempt, self.started.metric)

    def score_of(self, record: SampleRecord) -> ScoreRecord | None:
        """Give the valid headline verdict; None where the scorer failed or could not work.

        It is asked again then.
        """
        score = self.scores.get(self.place(record))
        if score is None or score.reason == SCORER_FAULT or score.status == "unavailable":
            return None
        return score

    def missing(self, plan: Plan) -> tuple[list[Todo], list[tuple[Planned, SampleRecord]]]:
        """Give the attempts to make and the outputs to score."""
        todo: list[Todo] = []
        unscored: list[tuple[Planned, SampleRecord]] = []
        for planned in plan.attempts:
            record = self.samples.get((plan.samples[planned.index].item_id, planned.epoch))
            if record is None:
                todo.append(Todo(planned))
            elif is_open(record.status, record.error_kind):
                todo.append(Todo(planned, record.attempt + 1))
            elif record.status in ("unscored", "truncated") and self.score_of(record) is None:
                unscored.append((planned, record))
        return todo, unscored

    def draws_to_choose_from(
        self, plan: Plan
    ) -> Iterator[tuple[Planned, SampleRecord, Score | None]]:
        """Give the draws that are there of items for which the strategy has not chosen yet."""
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
                yield planned, record, Score(
                    value=score.value, passed=score.passed, answer=score.answer,
                    status=score.status, reason=score.reason,  # type: ignore[arg-type]
                )  # fmt: skip
            elif record.status not in ("unscored", "truncated"):
                yield planned, record, None

    def check_items(self, plan: Plan) -> None:
        """Refuse a plan whose task or items are not what they were when the run began.

        Raises
        ------
        UsageError
        """
        before = {item["item_id"]: item["content_sha256"] for item in self.started.items}
        now = {sample.item_id: sample_hash(sample) for sample in plan.samples}
        if self.started.task_version != plan.task.version or before != now:
            changed = sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))
            what = f"{len(changed)} items, e.g. {', '.join(changed[:3]) or 'its version'}"
            raise UsageError(
                f"run {self.started.run_id} cannot go on: {plan.task.name} or its data changed "
                f"({what}); start a new run"
            )

    def check_keys(self, plan: Plan) -> None:
        """Refuse a plan whose attempts are other attempts than those that were made.

        Raises
        ------
        UsageError
        """
        for planned in plan.attempts:
            record = self.samples.get((plan.samples[planned.index].item_id, planned.epoch))
            if record is not None and record.key != planned.key:
                raise UsageError(
                    f"run {self.started.run_id} cannot go on: its model, prompt or parameters are "
                    "not what they were; start a new run"
                )
