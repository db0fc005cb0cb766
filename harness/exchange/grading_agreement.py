"""How far judges and people agree on a run: whole answers, single criteria, item by item.

All numbers are shares of the points possible, so that items and criteria of other worth can be
joined. Where several people graded an answer, their mean is compared; where a judge gave no verdict
(unreadable, or no judge at all), there is no pair.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Literal

import numpy as np
from msgspec import Struct

from harness.core.records import Record, RunStarted, SampleRecord, ScoreRecord
from harness.exchange.grading_record import HUMAN, KIND, Grading, gradings_in
from harness.runner.summary import Metric
from harness.stats.agreement import Correlation, correlation_estimate, krippendorff_alpha
from harness.stats.intervals import Estimate, clustered_mean
from harness.store.ingest import refresh
from harness.store.journal import read_records
from harness.store.layout import Store
from harness.store.publish import snapshot

Scope = Literal["answers", "criteria", "judge", "item", "criterion"]


class Pairs(Struct, frozen=True, kw_only=True):
    """Judge and people on the same things.

    Attributes
    ----------
    scope : {"answers", "criteria", "judge", "item", "criterion"}
        Whole answers; all criteria of all answers; whole answers against one judge of several; what
        belongs to one item (its criteria, or without a rubric its repeats); one criterion.
    name : str
        Of the judge, item or criterion (``ITEM/CRITERION``); else empty.
    n : int
        Pairs.
    pearson, spearman : Metric
        With a bootstrap interval over items, where there are several.
    difference : Metric
        Mean absolute difference, with a t interval over items.
    """

    scope: Scope
    name: str
    n: int
    pearson: Metric
    spearman: Metric
    difference: Metric


class Agreement(Struct, frozen=True, kw_only=True):
    """Judges and people on one run.

    Attributes
    ----------
    run_id : str
    graders : list of str
    n_answers : int
        Answers that people graded.
    n_unpaired : int
        Those of them that have no verdict of a judge or scorer.
    judges : list of str
        Variants of what gave the other verdicts; a scorer's name where it asks no judge.
    pairs : list of Pairs
    people_alpha : float or None
        Krippendorff's alpha (interval scale) between people, over criteria; None where no two graded
        the same, or all numbers are equal.
    """

    run_id: str
    graders: list[str]
    n_answers: int
    n_unpaired: int
    judges: list[str]
    pairs: list[Pairs]
    people_alpha: float | None


class _Answer(Struct, frozen=True):
    """One graded answer with the verdict that it is compared with."""

    item_id: str
    cluster: Hashable
    gradings: list[Grading]
    score: ScoreRecord | None

    def total(self) -> tuple[float, float] | None:
        """Judge's and people's share of all points."""
        if self.score is None or self.score.value is None:
            return None
        return self.score.value, fmean(one.share for one in self.gradings)

    def criteria(self) -> Iterator[tuple[str, float, float]]:
        """Name, judge's and people's share of each criterion that the judge told."""
        first = self.gradings[0]
        for name, possible in first.possible.items():
            judged = self.score.metrics.get(f"criterion:{name}") if self.score else None
            if first.rubric and judged is not None:
                people = fmean(one.points[name] for one in self.gradings)
                yield name, judged / possible, people / possible

    def by_judge(self) -> Iterator[tuple[int, float, float]]:
        """Number, share and people's share for each of several judges."""
        metrics = self.score.metrics if self.score else {}
        possible = metrics.get("points_possible")
        for index in range(len(metrics)):
            points = metrics.get(f"judge:{index}:points")
            if points is not None and possible:
                yield index, points / possible, fmean(one.share for one in self.gradings)


_Pair = tuple[float, float, Hashable]


def agreement(store: Store, run_id: str) -> Agreement | None:
    """Compare the verdicts of a run with what people gave; None where nobody graded it.

    The verdict of an answer is its latest one that is not people's own.

    Parameters
    ----------
    store : Store
    run_id : str
        Whole (see `harness.store.layout.find_run`).
    """
    refresh(store)
    graded = snapshot(store).execute(
        "SELECT 1 FROM events WHERE run_id = $run AND kind = $kind LIMIT 1",
        {"run": run_id, "kind": KIND},
    )
    if graded.fetchone() is None:
        return None
    records = list(read_records(store.journal(run_id)))
    answers = _answers(records)
    if not answers:
        return None
    paired = [answer for answer in answers if answer.total() is not None]
    judges = {a.score.judge_variant or a.score.scorer for a in paired if a.score is not None}
    return Agreement(
        run_id=run_id,
        graders=sorted({one.grader for answer in answers for one in answer.gradings}),
        n_answers=len(answers),
        n_unpaired=len(answers) - len(paired),
        judges=sorted(judges),
        pairs=list(_compared(paired, judges)),
        people_alpha=_people_alpha(answers),
    )


def _answers(records: Sequence[Record]) -> list[_Answer]:
    """Join gradings of the latest attempts with the verdicts of judges and scorers."""
    run = next(record for record in records if isinstance(record, RunStarted))
    latest = {(r.item_id, r.epoch): r.attempt for r in records if isinstance(r, SampleRecord)}
    scores = {
        (r.item_id, r.epoch, r.attempt): r
        for r in records
        if isinstance(r, ScoreRecord) and r.metric == run.metric and r.scorer != HUMAN
    }
    clusters = {item["item_id"]: item["cluster_id"] or item["item_id"] for item in run.items}
    by_answer: dict[tuple[str, int, int], list[Grading]] = {}
    for (item_id, epoch, attempt, _), grading in gradings_in(records).items():
        if latest.get((item_id, epoch)) == attempt and item_id in clusters:
            by_answer.setdefault((item_id, epoch, attempt), []).append(grading)
    order = {item_id: place for place, item_id in enumerate(clusters)}
    answers = []
    for place in sorted(by_answer, key=lambda at: (order[at[0]], at[1])):
        gradings = by_answer[place]
        # An older form with other criteria says nothing beside a newer one.
        same = [one for one in gradings if one.content == gradings[-1].content]
        score = scores.get(place)
        judged = score if score is not None and score.status == "scored" else None
        answers.append(_Answer(place[0], clusters[place[0]], same, judged))
    return answers


def _compared(answers: Sequence[_Answer], judges: set[str]) -> Iterator[Pairs]:
    totals = [(*_sure(answer), answer.cluster) for answer in answers]
    yield _pairs("answers", "", totals)
    rows = [(a, *found) for a in answers for found in a.criteria()]
    if rows:
        yield _pairs("criteria", "", [(x, y, a.cluster) for a, _, x, y in rows])
    yield from _by_judge(answers, judges)
    items = dict.fromkeys(answer.item_id for answer in answers)
    for item in items:
        own = [(x, y, None) for a, _, x, y in rows if a.item_id == item]
        own = own or [(*_sure(a), None) for a in answers if a.item_id == item]
        yield _pairs("item", item, own, one_cluster=True)
    named = dict.fromkeys((a.item_id, name) for a, name, _, _ in rows)
    for item, criterion in named:
        own = [(x, y, None) for a, name, x, y in rows if (a.item_id, name) == (item, criterion)]
        yield _pairs("criterion", f"{item}/{criterion}", own, one_cluster=True)


def _by_judge(answers: Sequence[_Answer], judges: set[str]) -> Iterator[Pairs]:
    """Compare each judge of several by itself, where one panel gave all verdicts."""
    rows = [(a, *found) for a in answers for found in a.by_judge()]
    names = next(iter(judges)).split("+") if len(judges) == 1 else []
    for index in sorted({index for _, index, _, _ in rows}) if len(names) > 1 else ():
        own = [(x, y, a.cluster) for a, found, x, y in rows if found == index]
        yield _pairs("judge", f"{index + 1}: {names[index]}", own)


def _pairs(scope: Scope, name: str, found: Sequence[_Pair], *, one_cluster: bool = False) -> Pairs:
    judge, people = [x for x, _, _ in found], [y for _, y, _ in found]
    # Repeats and criteria of one item are no independent items: no interval comes from them alone.
    clusters = ["one"] * len(found) if one_cluster else [cluster for _, _, cluster in found]

    def correlated(kind: Correlation) -> Metric:
        return _metric(correlation_estimate(judge, people, kind, clusters))

    gaps = [abs(x - y) for x, y in zip(judge, people, strict=True)]
    return Pairs(
        scope=scope, name=name, n=len(found), pearson=correlated("pearson"),
        spearman=correlated("spearman"), difference=_metric(clustered_mean(gaps, clusters)),
    )  # fmt: skip


def _metric(found: Estimate) -> Metric:
    return Metric(found.value, found.lo, found.hi, found.method)


def _sure(answer: _Answer) -> tuple[float, float]:
    total = answer.total()
    assert total is not None
    return total


def _people_alpha(answers: Iterable[_Answer]) -> float | None:
    """Agreement between people: raters are graders, units are the criteria of answers."""
    units = [(answer, name) for answer in answers for name in answer.gradings[0].possible]
    graders = sorted({one.grader for answer, _ in units for one in answer.gradings})
    ratings = np.full((len(graders), len(units)), np.nan)
    for column, (answer, name) in enumerate(units):
        for one in answer.gradings:
            ratings[graders.index(one.grader), column] = one.points[name] / one.possible[name]
    return krippendorff_alpha(ratings, "interval")
