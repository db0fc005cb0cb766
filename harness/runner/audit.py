"""Is a task itself sound? Every check that needs no model, and what stored runs tell besides.

Where a model judges the answers, it is asked what it gives gold, nothing, and a few constant texts.

Chance is tested exactly and one-sided: a baseline warns when guessing among the options would do as
well with a probability below 1 %, divided by the number of baselines of which the best is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from harness.core.errors import UsageError
from harness.runner import audit_answers as answers
from harness.runner import audit_items as items
from harness.runner.audit_store import Stored, no_data_scores, shortcuts, solved
from harness.runner.audit_subject import Check, Subject, Verdict
from harness.runner.config import make_config
from harness.store.layout import Store

__all__ = ["CHECKS", "Audit", "Check", "audit"]

CHECKS: tuple[Callable[[Subject], Check], ...] = (
    items.items,
    items.references,
    items.known_faults,
    answers.gold,
    answers.gold_path,
    answers.empty_answer,
    answers.constant_answer,
    answers.frequent_answer,
    answers.option_length,
    answers.letter_balance,
    items.duplicates,
    items.near_duplicates,
    items.templates,
    items.no_data,
    items.leaks,
    items.fewshot,
)
_OF_STORE = (no_data_scores, shortcuts, solved)


class Audit(Struct, frozen=True):
    """What an audit found, in the form of ``harness audit --json``.

    Attributes
    ----------
    task : str
    verdict : {"ok", "warn", "fail"}
        The worst of the checks'.
    checks : tuple of Check
        Always all of them, in the same order; one that does not apply says so.
    """

    task: str
    verdict: Verdict
    checks: tuple[Check, ...]


def audit(
    task: str,
    store: Store | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Audit:
    """Check a task.

    Parameters
    ----------
    task : str
        Task name.
    store : Store, optional
        Where runs of models lie; without one, what needs them is skipped.
    progress : callable, optional
        Told the name of each check before it begins.
    **options
        What a run would read its items with: `data_root`, `seed`, `args`, and `judge`, model SPECs
        for a scorer that asks one (see `RunConfig`).

    Returns
    -------
    Audit

    Raises
    ------
    UsageError
        Unknown task, or data that the task itself refuses.

    Examples
    --------
    >>> audit("gsm8k").checks[3].why
    'gold of all 60 items scores right'
    """
    subject = Subject(make_config(task=task, model="mock:gold", **options))
    if not subject.samples:
        raise UsageError(f"task {task!r} has no items to audit")
    checks = []
    try:
        for check in CHECKS:
            if progress:
                progress(check.__name__)
            checks.append(_guarded(check.__name__, partial(check, subject)))
    finally:
        subject.close()
    if progress:
        progress("store")
    stored = Stored(subject, store)
    checks += [check(subject, stored) for check in _OF_STORE]
    verdicts = {check.verdict for check in checks}
    worst: Verdict = "fail" if "fail" in verdicts else "warn" if "warn" in verdicts else "ok"
    return Audit(task, worst, tuple(checks))


def _guarded(name: str, make: Callable[[], Check]) -> Check:
    """Make a check; whatever a broken task raises in it is what the audit is to report."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001  a task's gold, prompt or scorer may raise anything
        why = f"the task breaks it: {type(error).__name__}: {' '.join(str(error).split())}"
        return Check(name=name, verdict="fail", value=None, why=why)
