"""How far the judges of a run agree with one another, and each with its own repeats."""

from __future__ import annotations

from msgspec import Struct

from harness.core.records import RunStarted, SampleRecord, ScoreRecord
from harness.exchange.grading_record import HUMAN
from harness.stats.ratings import RaterAgreement, alpha_of_all, judges_ratings, pairwise_agreement
from harness.store.journal import read_records
from harness.store.layout import Store


class JudgePair(Struct, frozen=True, kw_only=True):
    """Two judges, or two repeats of one.

    Attributes
    ----------
    a, b : str
        The judge's SPEC, with the number of the repeat where it was asked more than once.
    agreement : RaterAgreement
        Over shares of the points possible, answer by answer.
    """

    a: str
    b: str
    agreement: RaterAgreement


class JudgesAgreement(Struct, frozen=True, kw_only=True):
    """All gradings of a run beside one another.

    Attributes
    ----------
    pairs : list of JudgePair
    alpha : float or None
        Krippendorff's alpha (interval scale) of all of them.
    """

    pairs: list[JudgePair]
    alpha: float | None


def judges_agreement(store: Store, run_id: str) -> JudgesAgreement | None:
    """Compare the gradings behind a run's verdicts; None where no answer was graded twice.

    Parameters
    ----------
    store : Store
    run_id : str
        Whole (see `harness.store.layout.find_run`).
    """
    metric = ""
    latest: dict[tuple[str, int], int] = {}
    told: dict[tuple[str, int, int], str | None] = {}
    for record in read_records(store.journal(run_id)):
        if isinstance(record, RunStarted):
            metric = record.metric
        elif isinstance(record, SampleRecord):
            latest[record.item_id, record.epoch] = record.attempt
        elif isinstance(record, ScoreRecord) and record.metric == metric and record.scorer != HUMAN:
            told[record.item_id, record.epoch, record.attempt] = record.explanation
    ratings = judges_ratings(
        text
        for (item_id, epoch, attempt), text in told.items()
        if latest[item_id, epoch] == attempt
    )
    if len(ratings) < 2:
        return None
    repeated = any(repeat for _, repeat in ratings)
    names = [f"{spec} ({repeat + 1})" if repeated else spec for spec, repeat in ratings]
    rows = list(ratings.values())
    pairs = [
        JudgePair(a=names[i], b=names[j], agreement=found)
        for (i, j), found in pairwise_agreement(rows).items()
    ]
    return JudgesAgreement(pairs=pairs, alpha=alpha_of_all(rows))
