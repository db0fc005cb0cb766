"""How a person's grading stands in a run's journal: an event of its own, and a verdict if asked for.

A grading is no verdict: the run's numbers stay the judge's. Where people are to have the last word,
a verdict of the scorer ``human`` takes the place of the judge's, which stays in the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.records import SCHEMA, EventRecord, Record, SampleRecord, ScoreRecord
from harness.core.spec import parse_spec

KIND = "human_grading"
HUMAN = "human"
_SOLVED = 0.8  # share of a rubric's points from which on an answer counts as solved (our own)
Place = tuple[str, int, int, str]


class Grading(Struct, frozen=True, kw_only=True):
    """What one person gave one answer.

    Attributes
    ----------
    grader : str
    content : str
        Of the form that it was given on (`harness.exchange.grading.Form.content`).
    points, possible : dict of str to int
        By criterion.
    total : int
        What the points come to: 0 where a fatal criterion has none.
    rubric : bool
        Whether the item has one; else the only criterion is the whole.
    comments : dict of str to str
        By criterion, where there is one.
    """

    grader: str
    content: str
    points: dict[str, int]
    possible: dict[str, int]
    total: int
    rubric: bool
    comments: dict[str, str] = {}

    def is_sound(self) -> bool:
        """Tell whether its points can be points: a run may have come from elsewhere."""
        return (
            bool(self.points)
            and self.points.keys() == self.possible.keys()
            and all(0 <= n <= self.possible[name] for name, n in self.points.items())
            and all(n > 0 for n in self.possible.values())
            and 0 <= self.total <= sum(self.points.values())
        )

    @property
    def share(self) -> float:
        """What the points come to, of those possible."""
        return self.total / sum(self.possible.values())


def gradings_in(records: Iterable[Record]) -> dict[Place, Grading]:
    """Give the valid gradings of a journal by item, repeat, attempt and grader: the latest of each."""
    found: dict[Place, Grading] = {}
    for record in records:
        if not isinstance(record, EventRecord) or record.kind != KIND:
            continue
        try:
            grading = msgspec.convert(record.data, Grading)
        except msgspec.ValidationError:
            continue
        if grading.is_sound() and None not in (record.item_id, record.epoch, record.attempt):
            place = (record.item_id, record.epoch, record.attempt, grading.grader)
            found[place] = grading  # type: ignore[index]  # none of them is None
    return found


def solved_from(scorer: str) -> float:
    """Read the share of the points from which on an answer counts as solved in a run.

    Parameters
    ----------
    scorer : str
        The run's scorer SPEC. One that names no share, or none that can be one (a run may have come
        from elsewhere), means 0.8.

    Examples
    --------
    >>> solved_from("rubric?repeats=1&solved=0.5"), solved_from("number")
    (0.5, 0.8)
    """
    try:
        share = float(parse_spec(scorer).args.get("solved", _SOLVED))
    except (UsageError, ValueError):
        return _SOLVED
    return share if 0 < share <= 1 else _SOLVED


def human_verdict(
    record: SampleRecord,
    metric: str,
    gradings: Sequence[Grading],
    old: ScoreRecord | None,
    solved: float = _SOLVED,
) -> ScoreRecord:
    """Make the verdict that people came to: the mean of what each of them gave.

    Parameters
    ----------
    record : SampleRecord
        The attempt.
    metric : str
        The run's headline.
    gradings : sequence of Grading
        On the same criteria; at least one.
    old : ScoreRecord or None
        The verdict whose place it takes.
    solved : float
        Share of a rubric's points from which on the answer counts as solved (see `solved_from`).
    """
    ordered = sorted(gradings, key=lambda one: one.grader)
    value = fmean(one.share for one in ordered)
    first = ordered[0]
    metrics: dict[str, float] = {}
    if first.rubric:
        metrics["points"] = fmean(one.total for one in ordered)
        metrics["points_possible"] = float(sum(first.possible.values()))
        for name in first.points:
            metrics[f"criterion:{name}"] = fmean(one.points[name] for one in ordered)
    said = "; ".join(
        f"{one.grader}: {one.total} of {sum(one.possible.values())}" for one in ordered
    )
    return ScoreRecord(
        seq=0, ts="", run_id=record.run_id, schema=SCHEMA, item_id=record.item_id,
        epoch=record.epoch, attempt=record.attempt, scorer=HUMAN, scorer_version="1",
        metric=metric, status="scored", value=value,
        # The mean of whole points may miss the threshold by a rounding error.
        passed=value >= solved - 1e-9 if first.rubric else value == 1.0,
        answer=old.answer if old else None, explanation=f"graded by people: {said}",
        judge_variant="+".join(f"{HUMAN}:{one.grader}" for one in ordered), metrics=metrics,
        replaces=old.seq if old else None,
    )  # fmt: skip


def is_same_verdict(one: ScoreRecord | None, two: ScoreRecord) -> bool:
    """Tell whether a verdict says what another one says."""
    names = ("scorer", "judge_variant", "value", "passed", "metrics", "explanation")
    return one is not None and all(getattr(one, name) == getattr(two, name) for name in names)
