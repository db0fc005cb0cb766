"""Checks that read a store: what models made of the items. Baselines are left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Any

import msgspec

from harness.runner.audit_subject import (
    FREE_CHANCE,
    LEVEL,
    Check,
    Subject,
    Verdict,
    share,
    some,
    tail,
)
from harness.store import queries
from harness.store.ingest import refresh
from harness.store.layout import Store
from harness.store.publish import snapshot

MODELS = 3
# Items that all models solve, or none, cannot tell models apart: warn when they are the majority.
IDLE = 0.5

Values = dict[str, dict[str, float]]  # model -> item -> mean score


class Stored:
    """Mean score of every item by every model in a store, with and without data.

    Parameters
    ----------
    subject : Subject
        Only runs of its task and version count, and of them only its items.
    store : Store or None
        None: nothing is stored.
    """

    def __init__(self, subject: Subject, store: Store | None) -> None:
        self.full: Values = {}
        self.bare: Values = {}
        self.is_there = store is not None
        if store is None or not store.run_ids():
            return
        refresh(store)
        con = snapshot(store)
        known = {sample.item_id for sample in subject.samples}
        found: dict[bool, dict[str, dict[str, list[float]]]] = {False: {}, True: {}}
        for run in queries.run_rows(con):
            if run.is_baseline or (run.task, run.version) != (
                subject.task.name, subject.task.version,
            ):  # fmt: skip
                continue
            config = msgspec.json.decode(run.config)
            if _asked(config, subject) != _asked({"args": subject.config.args}, subject):
                continue
            model = found[bool(config.get("no_data"))].setdefault(
                run.variant or run.model, defaultdict(list)
            )
            for item, _, value, _ in queries.item_values(con, run.run_id, run.metric):
                if item in known:
                    model[item].append(value)
        self.full, self.bare = _means(found[False]), _means(found[True])


def solved(_subject: Subject, stored: Stored) -> Check:
    """Shares of the items that all stored models solve, and none."""
    if not stored.is_there:
        why = "skipped: there is no store"
        return Check(name="solved", verdict="ok", value=None, why=why)
    if len(stored.full) < MODELS:
        why = f"skipped: the store holds {len(stored.full)} models, {MODELS} are needed"
        return Check(name="solved", verdict="ok", value=None, why=why)
    n_models: dict[str, int] = defaultdict(int)
    n_right: dict[str, int] = defaultdict(int)
    for values in stored.full.values():
        for item, value in values.items():
            n_models[item] += 1
            n_right[item] += value >= 0.5
    tried = [item for item, n in n_models.items() if n >= MODELS]
    if not tried:
        why = f"skipped: no item was answered by {MODELS} models"
        return Check(name="solved", verdict="ok", value=None, why=why)
    by_all = [item for item in tried if n_right[item] == n_models[item]]
    by_none = [item for item in tried if n_right[item] == 0]
    idle = (len(by_all) + len(by_none)) / len(tried)
    why = f"of {len(stored.full)} models all solve {_named(by_all, len(tried))}, "
    why += f"none solves {_named(by_none, len(tried))}"
    return Check(name="solved", verdict="warn" if idle > IDLE else "ok", value=idle, why=why)


def no_data_scores(subject: Subject, stored: Stored) -> Check:
    """What stored models score without the data, beside what they score with it."""
    # Of the same items only: a run may have asked a part of them.
    both = {
        model: common
        for model in stored.bare
        if (common := stored.bare[model].keys() & stored.full.get(model, {}).keys())
    }
    if not both:
        why = "skipped: no model has runs with and without --no-data in a store"
        return Check(name="no_data_scores", verdict="ok", value=None, why=why)
    chance = _chance(subject)
    shown, above, best = [], [], 0.0
    for model, common in both.items():
        values = stored.bare[model]
        bare = mean(values[item] for item in common)
        full = mean(stored.full[model][item] for item in common)
        best = max(best, bare)
        lost = f", {100 * (1 - bare / full):.1f} % of it lost" if full else ""
        shown.append(f"{model} {100 * bare:.1f} % (with the data {100 * full:.1f} %{lost})")
        # Partial credit counts as its sum, rounded down.
        odds = tail(int(sum(values.values()) + 1e-9), len(values), chance) * len(both)
        if odds < LEVEL:
            above.append(model)
    why = f"without the data: {some(shown)}"
    if above:
        why += f"; above {100 * chance:.1f} %, which guessing explains: {some(above)}"
    verdict: Verdict = "warn" if above else "ok"
    return Check(name="no_data_scores", verdict=verdict, value=best, why=why)


def shortcuts(subject: Subject, stored: Stored) -> Check:
    """Items that most models solve without the data: their text gives them away.

    An item is named when at least three models, and three of five, solve it without the data.
    """
    if len(stored.bare) < MODELS:
        why = (
            f"skipped: the store holds --no-data runs of {len(stored.bare)} models, {MODELS} needed"
        )
        return Check(name="shortcuts", verdict="ok", value=None, why=why)
    answers: dict[str, list[bool]] = defaultdict(list)
    for values in stored.bare.values():
        for item, value in values.items():
            answers[item].append(value >= 0.5)
    tried = {item: right for item, right in answers.items() if len(right) >= MODELS}
    if not tried:
        why = f"skipped: no item was answered without the data by {MODELS} models"
        return Check(name="shortcuts", verdict="ok", value=None, why=why)
    given_away = [item for item, right in tried.items() if sum(right) >= _most(len(right))]
    lucky = mean(tail(_most(len(right)), len(right), _chance(subject)) for right in tried.values())
    surprising = tail(len(given_away), len(tried), lucky) < LEVEL
    why = (
        f"of {len(stored.bare)} models most solve without the data {_named(given_away, len(tried))}"
    )
    why += f"; guessing explains {100 * lucky:.1f} %"
    verdict: Verdict = "warn" if given_away and surprising else "ok"
    return Check(name="shortcuts", verdict=verdict, value=len(given_away) / len(tried), why=why)


def _most(n: int) -> int:
    """Three of five, and never fewer than three."""
    return max(MODELS, -(-3 * n // 5))


def _asked(config: Mapping[str, Any], subject: Subject) -> dict[str, str]:
    """Give the switches that a model could notice: runs with others answered other questions."""
    args = config.get("args") or {}
    return {k: v for k, v in args.items() if k not in subject.task.scorer_args}


def _chance(subject: Subject) -> float:
    if subject.single:
        return mean(1 / len(sample.choices) for sample in subject.single)
    return FREE_CHANCE


def _means(found: dict[str, dict[str, list[float]]]) -> Values:
    return {
        model: {item: mean(values) for item, values in items.items()}
        for model, items in found.items()
        if items
    }


def _named(items: Iterable[str], n: int) -> str:
    listed = sorted(items)
    return share(len(listed), n) + (f": {some(listed)}" if listed else "")
