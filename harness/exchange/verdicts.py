"""Judge the outputs of a submission again, where the installed scorer can, and compare."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from msgspec import Struct

from harness.core.errors import HarnessError
from harness.core.records import SampleRecord, ScoreRecord
from harness.core.status import SCORER_FAULT
from harness.core.types import Score
from harness.exchange.rejected import Reasons
from harness.runner.drawing import Draws
from harness.runner.history import History
from harness.runner.judging import wants_judge
from harness.runner.plan import Plan, Planned
from harness.runner.scoring import judge
from harness.runner.writing import output_of
from harness.store.redact import REDACTED, was_cut

_REFUSE = (
    "the score does not follow from the output: refuse it, or ask the sender how it came about"
)
_AGAIN = "ask the sender to finish the run and to export it again"


class Recomputed(Struct, kw_only=True):
    """How far the verdicts of a submission were checked.

    Attributes
    ----------
    n_equal : int
        Verdicts that the installed scorer gave again, the same in value, status, answer and metrics.
    not_recomputed : dict of str to int
        Why others could not be, and how many.
    """

    n_equal: int
    not_recomputed: dict[str, int]


def recompute(plan: Plan, history: History, reasons: Reasons) -> Recomputed:
    """Judge the valid verdict of every attempt again.

    Parameters
    ----------
    plan : Plan
        Of the installed task.
    history : History
        The submission's records.
    reasons : Reasons
        Receives every verdict that came out another, and every output without one.
    """
    n_equal = 0
    left: Counter[str] = Counter()
    cannot = _cannot(plan)
    for planned in plan.attempts:
        record = history.samples.get((plan.samples[planned.index].item_id, planned.epoch))
        if record is None or record.status not in ("unscored", "truncated"):
            continue
        stored = history.scores.get(history.place(record))
        if stored is None:
            if not wants_judge(plan.task.scorer):
                reasons.add("an answer has no score", _place(record), _AGAIN)
            continue
        why = cannot or _cannot_this(plan, record, stored)
        if why is None:
            score = judge(plan.scorer, plan.samples[planned.index], output_of(record, plan))
            if score.reason == SCORER_FAULT:
                why = "the scorer falls over here"
            elif unlike := _unlike(stored, score):
                reasons.add("a score is not what the scorer gives", f"{_place(record)}: {unlike}",
                            _REFUSE)  # fmt: skip
            else:
                n_equal += 1
        if why is not None:
            left[why] += 1
    _choose_again(plan, history, reasons)
    return Recomputed(n_equal=n_equal, not_recomputed=dict(left))


def _cannot(plan: Plan) -> str | None:
    """Say why no verdict of a run can be given again here."""
    if wants_judge(plan.task.scorer):
        return f"the scorer {plan.scorer_spec} may ask a judge"
    state, why = plan.scorer_entry.state()
    return (
        f"the scorer {plan.scorer_spec} is unavailable here: {why}" * (state == "unavailable")
        or None
    )


def _cannot_this(plan: Plan, record: SampleRecord, stored: ScoreRecord) -> str | None:
    """Say why one verdict cannot be given again."""
    there, here = (
        f"{stored.scorer} (version {stored.scorer_version})",
        f"{plan.scorer_spec} (version {plan.scorer_entry.version})",
    )
    if there != here:
        return f"they were given by {there}, here is {here}"
    if any(map(was_cut, (record.output, record.reasoning))):
        return "the output was cut for its length"
    if any(REDACTED in (text or "") for text in (record.output, record.reasoning)):
        return "a secret in the output was redacted"
    return "the scorer fell over there" if stored.reason == SCORER_FAULT else None


def _unlike(stored: ScoreRecord, score: Score) -> str:
    """Name what is not the same in two verdicts; nothing when all is."""
    pairs: dict[str, tuple[Any, Any]] = {
        name: (getattr(stored, name), getattr(score, name))
        for name in ("value", "passed", "status", "reason", "answer", "metrics")
    }
    return ", ".join(
        f"{name} {there!r}, here {here!r}"
        for name, (there, here) in pairs.items()
        if not _is_same(there, here)
    )


def _is_same(there: Any, here: Any) -> bool:
    if isinstance(there, dict) and isinstance(here, dict):
        return there.keys() == here.keys() and all(_is_same(there[k], here[k]) for k in there)
    if isinstance(there, float) and isinstance(here, float | int):
        return math.isclose(there, here, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(there, str) and REDACTED in there:
        return isinstance(here, str)
    return bool(there == here)


class _Kept:
    """Stands where `Draws` wants its journal, and keeps the verdicts."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.records: list[ScoreRecord] = []

    def append(self, record: ScoreRecord) -> int:
        """Keep one."""
        self.records.append(record)
        return 0


def _choose_again(plan: Plan, history: History, reasons: Reasons) -> None:
    """Have the strategy choose again among the draws: it is pure, so it must choose the same."""
    name = plan.config.strategy
    if plan.strategy.n == 1:
        return
    kept = _Kept(history.started.run_id)
    draws = Draws(plan, kept)  # type: ignore[arg-type]  # it only appends
    try:
        for planned in plan.attempts:
            _add(draws, plan, history, planned)
    except HarnessError as error:
        reasons.add("the strategy cannot choose here", f"{name} ({error})", "install what it needs")
        return
    here = {(s.item_id, s.epoch): s for s in kept.records}
    there = {(s.item_id, s.epoch): s for s in history.scores.values()
             if s.scorer.startswith("strategy:")}  # fmt: skip
    for at in sorted(here.keys() | there.keys()):
        one, two = there.get(at), here.get(at)
        same = one is not None and two is not None and all(
            _is_same(getattr(one, k), getattr(two, k)) for k in ("value", "passed", "status", "answer")
        )  # fmt: skip
        if not same:
            where = f"item {at[0]} epoch {at[1]}"
            reasons.add(f"what {name} chose is not what it chooses here", where, _REFUSE)


def _add(draws: Draws, plan: Plan, history: History, planned: Planned) -> None:
    record = history.samples.get((plan.samples[planned.index].item_id, planned.epoch))
    if record is None:
        return
    stored = history.score_of(record)
    if stored is not None:
        score = Score(
            value=stored.value, passed=stored.passed, answer=stored.answer,
            status=stored.status, reason=stored.reason,  # type: ignore[arg-type]
        )  # fmt: skip
        draws.add(planned, record, score)
    elif record.status not in ("unscored", "truncated"):
        draws.add(planned, record, None)


def _place(record: SampleRecord) -> str:
    return f"item {record.item_id} epoch {record.epoch}"
