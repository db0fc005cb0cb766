"""An adaptive run: the next items are chosen by what is known from those before.

Every attempt is an ordinary one, with an ordinary key, made and journaled by the run's executor; this
module only says which come next, and keeps in the journal what they told:

``adaptive_bank``   once, before the first attempt: the items' parameters and costs as they were then, so
                    that `resume` goes on with the same bank whatever the store has become
``adaptive_batch``  the items of a batch, before they are asked
``adaptive``        what the run has come to (`Outcome`), before and after every batch
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.errors import HarnessError, UsageError
from harness.core.records import EventRecord, Record
from harness.core.status import effective_status, error_kind_of, is_open, value_counted
from harness.runner.adaptive_bank import TaskBank
from harness.runner.adaptive_outcome import Outcome
from harness.runner.config import RunConfig
from harness.runner.execute import Executor, Todo
from harness.runner.history import History
from harness.runner.plan import Plan, Planned
from harness.runner.writing import event
from harness.store.journal import Journal
from harness.store.queries import StoredAnswer

if TYPE_CHECKING:
    import irt

USUAL_SE = 0.2  # where neither an error nor a number of items was asked for
_LEVEL = 0.95
_STOPPED = {"se": "se", "max_items": "max_items", "no items left": "exhausted", None: None}
_NO_CATEGORY = ""


class AdaptiveRun:
    """Chooses the items of one run, batch by batch, and keeps what they told.

    Parameters
    ----------
    plan : Plan
    found : TaskBank
    earlier : mapping of key to StoredAnswer
        Answers that an earlier run paid for.
    free : collection of str, optional
        Items that are asked first since they cost nothing: those of `earlier`, unless the run began
        with others.
    """

    def __init__(
        self,
        plan: Plan,
        found: TaskBank,
        earlier: Mapping[str, StoredAnswer],
        free: Collection[str] | None = None,
    ) -> None:
        import irt

        self.plan, self.found = plan, found
        self._earlier = earlier
        self._planned = {_item_id(plan, p): p for p in plan.attempts}
        self._asked: set[str] = set()
        if free is None:
            free = [item_id for item_id, p in self._planned.items() if p.key in earlier]
        self._free = list(free)
        self._session = irt.cat(
            _grouped(found.bank), _rules(plan.config, found.bank),
            free={self._key(item_id) for item_id in free},
        )  # fmt: skip

    @property
    def n_most(self) -> int:
        """Items asked at the most."""
        n_bank = len(self.found.bank)
        return min(n_bank, self.plan.config.max_items or n_bank)

    def begin(self, journal: Journal) -> None:
        """Keep the bank in the journal."""
        found = self.found
        data = {
            "name": found.name, "bank": found.bank.to_dict(), "n_task": found.n_task,
            "outside": found.outside, "changed": found.changed, "free": self._free,
        }  # fmt: skip
        journal.append(event(journal.run_id, "adaptive_bank", data))

    def run(self, executor: Executor) -> None:
        """Ask batch after batch until a rule stops it, or a limit of the command.

        Raises
        ------
        HarnessError
            When the run has to stop; what is done is kept.
        """
        while batch := self._session.next_batch():
            ids = [str(key[2]) for key in batch]  # type: ignore[index]
            executor.journal.append(
                event(executor.journal.run_id, "adaptive_batch", {"items": ids})
            )
            self._ask(executor, [Todo(self._planned[item_id]) for item_id in ids])
            if executor.stopped_by:
                break
        if not self._asked:
            self.keep_outcome(executor.journal)

    def go_on(self, executor: Executor, before: History, batch: Sequence[str]) -> None:
        """Take up a run where it stopped: what was asked and is missing first, then the rest.

        Parameters
        ----------
        executor : Executor
        before : History
            What the journal says.
        batch : sequence of str
            The items of the last batch that was asked.
        """
        asked = {item_id for item_id, _ in before.samples} | set(batch)
        todo, unscored = before.missing(self.plan)
        order = {item_id: place for place, item_id in enumerate(batch)}
        again = sorted(
            (one for one in todo if _item_id(self.plan, one.planned) in asked),
            key=lambda one: order.get(_item_id(self.plan, one.planned), -1),
        )
        waiting = [*(one.planned for one in again), *(planned for planned, _ in unscored)]
        open_now = {_item_id(self.plan, planned) for planned in waiting}
        for item_id, value in self._values(before).items():
            if item_id not in open_now:
                self._asked.add(item_id)
                self._record(item_id, value)
        self._ask(executor, again, unscored)
        if not executor.stopped_by:
            self.run(executor)

    def take_in(self, before: History, batch: Collection[str]) -> None:
        """Take in what the journal says, to tell what it comes to; nothing is asked."""
        self._asked.update(batch)
        for item_id, value in self._values(before).items():
            self._asked.add(item_id)
            self._record(item_id, value)

    def keep_outcome(self, journal: Journal) -> None:
        """Journal what the run has come to."""
        journal.append(event(journal.run_id, "adaptive", msgspec.to_builtins(self.outcome())))

    def outcome(self) -> Outcome:
        """Say what the run has come to."""
        r, config = self._session.result(_LEVEL), self.plan.config
        known = r.n_items > 0
        return Outcome(
            bank=self.found.name, data_hash=self.found.bank.data_hash, theta=r.theta, se=r.se,
            score=r.score if known else None, lo=r.score_lo if known else None,
            hi=r.score_hi if known else None, level=_LEVEL,
            observed=r.observed if known else None, n_asked=len(self._asked),
            n_answered=r.n_items, n_bank=r.n_bank, n_task=self.found.n_task,
            n_outside=len(self.found.outside) + len(self.found.changed),
            n_saved=r.n_bank - len(self._asked), target_se=_target(config),
            max_items=config.max_items, stopped=_STOPPED[r.stopped],
        )  # fmt: skip

    def _ask(
        self, executor: Executor, todo: list[Todo], unscored: Iterable[tuple[Planned, Any]] = ()
    ) -> None:
        """Have items answered, from the store where the answer is there, and take the answers in."""
        unscored = list(unscored)
        planned = [*(one.planned for one in todo), *(p for p, _ in unscored)]
        self._asked.update(_item_id(self.plan, p) for p in planned)
        # Before they are asked: after a kill it is known how many are open.
        self.keep_outcome(executor.journal)
        executor.counted = {}
        calls = []
        for one in todo:
            answer = self._earlier.get(one.planned.key)
            if answer is None:
                calls.append(one)
            else:
                executor.reuse(one.planned, answer)
        for place, record in unscored:
            executor.score_again(place, record)
        executor.run(calls)
        for one_planned in planned:
            # What a limit kept from being asked stays open: the batch is still out.
            if one_planned.index in executor.counted:
                self._record(_item_id(self.plan, one_planned), executor.counted[one_planned.index])
        self.keep_outcome(executor.journal)

    def _record(self, item_id: str, value: float | None) -> None:
        """Take an answer in; one without a value is lost: predicted, and not asked again."""
        import irt

        key = self._key(item_id)
        if key not in self.found.bank.place:
            return
        try:
            self._session.record(key, 0.0 if value is None else value, int(value is not None))
        except irt.DataError as error:
            raise HarnessError(f"the score of {item_id} is no share of 1: {error}") from None

    def _values(self, before: History) -> dict[str, float | None]:
        """Give what each answered item counts with."""
        found: dict[str, float | None] = {}
        for (item_id, _), record in before.samples.items():
            score = before.scores.get(before.place(record))
            status = effective_status(record.status, score.status if score else None)
            kind = error_kind_of(score.reason) if score else record.error_kind
            value = score.value if score else None
            found[item_id] = (
                None
                if is_open(status, kind)
                else value_counted(status, kind, value, self.plan.config.errors)
            )
        return found

    def _key(self, item_id: str) -> tuple[str, str, str]:
        return (self.plan.task.name, self.plan.task.version, item_id)


def reopen_adaptive(
    plan: Plan, records: Iterable[Record], earlier: Mapping[str, StoredAnswer]
) -> tuple[AdaptiveRun, list[str]]:
    """Make the run of a journal anew.

    Parameters
    ----------
    plan : Plan
    records : iterable of Record
    earlier : mapping of key to StoredAnswer
        Answers of other runs.

    Returns
    -------
    AdaptiveRun
        With the bank that it began with.
    list of str
        The items of the last batch that was asked.

    Raises
    ------
    UsageError
        The journal ends before the bank was written.
    """
    import irt

    bank, batch = None, []
    for record in records:
        if isinstance(record, EventRecord):
            if record.kind == "adaptive_bank":
                bank = record.data
            elif record.kind == "adaptive_batch":
                batch = list(record.data["items"])
    if bank is None:
        raise UsageError("the run ended before its item bank was written: start it anew")
    outside, changed = tuple(bank["outside"]), tuple(bank["changed"])
    found = TaskBank(
        bank["name"], irt.Bank.from_dict(bank["bank"]), bank["n_task"], outside, changed
    )
    return AdaptiveRun(plan, found, earlier, bank["free"]), batch


def _target(config: RunConfig) -> float | None:
    return USUAL_SE if config.se is None and config.max_items is None else config.se


def _rules(config: RunConfig, bank: irt.Bank) -> irt.CatRules:
    """Stop as asked for; keep the categories' shares in the bank where there are several."""
    import irt

    counts = Counter(group or _NO_CATEGORY for group in bank.group)
    return irt.CatRules(
        se=_target(config), max_items=config.max_items,
        shares={k: float(n) for k, n in counts.items()} if len(counts) > 1 else None,
        widen=bank.widen, seed=config.seed & (2**63 - 1),  # numpy's seeds are not negative
    )  # fmt: skip


def _grouped(bank: irt.Bank) -> irt.Bank:
    """Put items without a category into one of their own: without a share they were never asked."""
    import dataclasses

    return dataclasses.replace(bank, group=tuple(group or _NO_CATEGORY for group in bank.group))


def _item_id(plan: Plan, planned: Planned) -> str:
    return plan.samples[planned.index].item_id
