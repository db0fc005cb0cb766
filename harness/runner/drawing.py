"""The draws of an item, collected until all are there and the strategy can choose one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from harness.core.records import SCHEMA, SampleRecord, ScoreRecord
from harness.core.status import (
    SCORER_FAULT,
    effective_status,
    error_kind_of,
    is_open,
    value_counted,
)
from harness.core.types import Score
from harness.runner.plan import Plan, Planned
from harness.runner.selecting import Selection
from harness.runner.writing import event
from harness.solvers.base import Candidate
from harness.store.journal import Journal


class _Draw(Struct):
    """One of the outputs that a strategy chooses from, and what choosing it would be worth."""

    candidate: Candidate
    attempt: int
    value: float | None
    passed: bool | None


class Draws:
    """Collects the draws of a plan's items and journals what its strategy chose.

    Parameters
    ----------
    plan : Plan
        Its strategy says how many draws an item has; with one there is nothing to choose.
    journal : Journal
        Receives the verdicts.
    """

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self.plan = plan
        self.journal = journal
        self._draws: dict[tuple[int, int], dict[int, _Draw]] = {}
        self._selection = Selection(plan) if hasattr(plan.strategy, "choose") else None

    def add(self, planned: Planned, record: SampleRecord, score: Score | None) -> bool:
        """Take a draw; with the last one of its item let the strategy choose.

        A draw that fell to a fault of the harness is not there: `resume` makes it again, and the
        strategy chooses then.

        Returns
        -------
        bool
            Whether the strategy itself failed, so that the item stays open.
        """
        n = self.plan.strategy.n
        if n == 1:
            return False
        status = effective_status(record.status, score.status if score else None)
        kind = error_kind_of(score.reason) if score else record.error_kind
        if is_open(status, kind):
            return False
        repeat, draw = divmod(planned.epoch, n)
        draws = self._draws.setdefault((planned.index, repeat), {})
        draws[draw] = _Draw(
            Candidate(
                text=record.output, answer=score.answer if score else None, status=record.status
            ),
            record.attempt,
            value_counted(status, kind, score.value if score else None, self.plan.config.errors),
            score.passed if score else False,
        )
        if len(draws) < n:
            return False
        del self._draws[planned.index, repeat]
        return self._choose(planned, repeat, [draws[i] for i in range(n)])

    def _choose(self, planned: Planned, repeat: int, draws: Sequence[_Draw]) -> bool:
        name = self.plan.config.strategy
        verdict = ScoreRecord(
            seq=0, ts="", run_id=self.journal.run_id, schema=SCHEMA,
            item_id=self.plan.samples[planned.index].item_id,
            epoch=repeat * self.plan.strategy.n, attempt=draws[0].attempt,
            scorer=f"strategy:{name}", scorer_version="1", metric=name, status="error",
            value=None, reason=SCORER_FAULT,
        )  # fmt: skip
        failed = True
        try:
            chosen, facts = self._pick(planned, draws)
            if chosen not in range(len(draws)):
                raise ValueError(f"it chose {chosen!r} of {len(draws)} draws")
        except Exception as error:  # noqa: BLE001  whatever a strategy raises must stay visible
            verdict.explanation = f"{type(error).__name__}: {error}"
        else:
            failed = False
            picked = draws[chosen]
            verdict.status = "unscored" if picked.value is None else "scored"
            verdict.value, verdict.passed, verdict.reason = picked.value, picked.passed, None
            verdict.answer = picked.candidate.answer
            verdict.explanation = f"draw {chosen} of {len(draws)}"
        seq = self.journal.append(verdict)
        if not failed and facts:
            about = {"score": seq, "facts": {"chosen": chosen, **facts}}
            made = event(self.journal.run_id, "judged", about)
            made.item_id, made.epoch, made.attempt = verdict.item_id, verdict.epoch, verdict.attempt
            self.journal.append(made)
        return failed

    def _pick(self, planned: Planned, draws: Sequence[_Draw]) -> tuple[int, dict[str, Any]]:
        """Let the strategy choose, and say what its choice rests on where it ran and asked."""
        candidates = [draw.candidate for draw in draws]
        if self._selection is None:
            return self.plan.strategy(candidates), {}
        return self._selection(planned, [candidate.text for candidate in candidates])

    def close(self) -> None:
        """Let go of whoever a strategy asks."""
        if self._selection is not None:
            self._selection.close()
