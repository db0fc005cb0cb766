"""Proofs, graded by models against a rubric: points for each criterion, several judges, repeats.

Each grading is one JSON object from criterion to integer points; anything else is unreadable and
counts for nothing. The value is the mean over the readable gradings of points / possible; where none
is readable the answer is ``unscored``. Where only some are, the mean is over those and the metric
``n_unreadable`` tells: a judge that writes badly says nothing about the proof.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.rubric import total_of
from harness.core.task import Scorer
from harness.core.types import Message, Output, Sample, Score
from scorers.proof_text import extract_proof
from scorers.reasoning import remove_reasoning
from scorers.rubric_prompt import Criterion, grading_prompt

UNREADABLE = "judge_unreadable"
_MOST_REPEATS = 100


class RubricJudge(Protocol):
    """What the scorer sees of a judge."""

    @property
    def spec(self) -> str:
        """The model SPEC, for the explanation."""
        ...

    def __call__(self, messages: Sequence[Message], seed: int) -> Output:
        """Ask once; raise where no answer comes (a fault of the harness, judged again later)."""
        ...


class Grading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judge's grading of one proof, as it stands in the score's explanation.

    Attributes
    ----------
    judge : str
        Its SPEC.
    repeat : int
        From 0; also the seed that it was asked with.
    points : dict or None
        Points by criterion, as given; None for an answer that could not be read.
    total : int or None
        Their sum, or 0 where a fatal criterion has none.
    unreadable : str or None
        Why the answer could not be read.
    said : str or None
        The head of an answer that could not be read.
    """

    judge: str
    repeat: int
    points: dict[str, int] | None = None
    total: int | None = None
    unreadable: str | None = None
    said: str | None = None


def rubric(judges: Sequence[RubricJudge], repeats: str = "1", solved: str = "0.8") -> Scorer:
    """Make a scorer that lets judges grade a proof by the item's rubric.

    The item's metadata carry `rubric` (criteria as dicts) and, where they say more than its input,
    `statement` and `common_errors`; its target is the reference proof, empty where there is none.

    Parameters
    ----------
    judges : sequence of RubricJudge
        At least one.
    repeats : str
        How often each is asked, with the seeds 0, 1, …
    solved : str
        Share of the possible points from which on a proof counts as solved (our own definition).

    Returns
    -------
    Scorer
        Its metrics, all in points: ``points`` (mean over gradings), ``points_possible``,
        ``criterion:ID``, ``judge:I:points`` (judges count from 0; left out where nothing of a
        judge's could be read), ``spread`` (standard deviation over the gradings, 0 for one);
        and the counts ``n_gradings`` (readable) and ``n_unreadable``. The explanation is JSON:
        `proof` (where it was found), `solved_from`, `possible`, `rubric` and `prompt` (hashes), `gradings`.

    Raises
    ------
    UsageError
        No judge, or an option that cannot be read.
    """
    if not judges:
        raise UsageError("scorer rubric: it needs at least one judge: give --judge SPEC")
    n = _repeats(repeats)
    share = _share(solved)

    def score(sample: Sample, output: Output) -> Score:
        criteria = read_criteria(sample)
        possible = sum(one.points for one in criteria)
        proof, rule = extract_proof(output.text)
        if not proof:
            return _no_proof(criteria, rule)
        messages = grading_prompt(sample, criteria, proof)
        gradings = [
            _ask(judge, messages, repeat, criteria) for judge in judges for repeat in range(n)
        ]
        facts = {
            "proof": rule,
            "solved_from": share,
            "possible": possible,
            "rubric": sha256_of(criteria),
            "prompt": sha256_of(messages),
            "gradings": gradings,
        }
        explanation = msgspec.json.encode(facts).decode()
        readable = [grading for grading in gradings if grading.total is not None]
        n_unreadable = len(gradings) - len(readable)
        if not readable:
            return Score(
                value=None, status="unscored", reason=UNREADABLE, answer=proof,
                explanation=explanation, metrics={"n_unreadable": float(n_unreadable)},
            )  # fmt: skip
        metrics = _metrics(criteria, gradings, n)
        return Score(
            value=metrics["points"] / possible,
            # The mean of whole points may miss a threshold by a rounding error.
            passed=metrics["points"] >= share * possible - 1e-9,
            answer=proof,
            explanation=explanation,
            metrics=metrics,
        )

    return score


def read_criteria(sample: Sample) -> list[Criterion]:
    """Read the rubric that an item carries.

    Raises
    ------
    ValueError
        It has none, or one that is none: a fault of the task's.
    """
    try:
        criteria = msgspec.convert(sample.metadata.get("rubric"), list[Criterion])
    except msgspec.ValidationError as error:
        raise ValueError(
            f"item {sample.item_id!r} has no rubric that can be read: {error}"
        ) from error
    if not criteria:
        raise ValueError(f"item {sample.item_id!r} has an empty rubric")
    return criteria


def read_grading(text: str, criteria: Sequence[Criterion]) -> dict[str, int]:
    """Read a judge's answer: exactly one JSON object, with integer points for each criterion.

    Text around the object is tolerated, an empty ``{}`` too; a second object is not, since nobody can
    tell which counts.

    Parameters
    ----------
    text : str
        The judge's answer; its reasoning is removed first.
    criteria : sequence of Criterion

    Raises
    ------
    ValueError
        Saying what is wrong: no object or several, a criterion missing, unknown or twice, points
        that are no integer or out of range.

    Examples
    --------
    >>> rubric = [Criterion(id="idea", points=3, criterion="The idea.")]
    >>> read_grading('Fine. {"idea": 2}', rubric)
    {'idea': 2}
    >>> read_grading('{"idea": 11}', rubric)
    Traceback (most recent call last):
        ...
    ValueError: 'idea' has 11 of 3 points
    """
    found = _objects(remove_reasoning(text))
    if len(found) != 1:
        raise ValueError(f"{len(found) or 'no'} JSON objects instead of one")
    keys = [key for key, _ in found[0]]
    given = dict(found[0])
    if len(given) < len(keys):
        raise ValueError("a criterion stands twice")
    known = {one.id for one in criteria}
    if given.keys() != known:
        missing, strange = sorted(known - given.keys()), sorted(given.keys() - known)
        raise ValueError(f"criteria missing: {missing}, unknown: {strange}")
    points: dict[str, int] = {}
    for one in criteria:
        value = given[one.id]
        if type(value) is not int:  # True and 2.0 are no points either
            raise ValueError(f"{one.id!r} has no integer points")
        if not 0 <= value <= one.points:
            raise ValueError(f"{one.id!r} has {value} of {one.points} points")
        points[one.id] = value
    return points


def _ask(
    judge: RubricJudge, messages: list[Message], repeat: int, criteria: Sequence[Criterion]
) -> Grading:
    said = judge(messages, repeat).text
    try:
        points = read_grading(said, criteria)
    except ValueError as error:
        return Grading(judge=judge.spec, repeat=repeat, unreadable=str(error), said=said[:300])
    total = total_of(points, criteria)
    return Grading(judge=judge.spec, repeat=repeat, points=points, total=total)


def _objects(text: str) -> list[list[tuple[str, Any]]]:
    """Find the JSON objects of a text, each as its pairs, so that no key hides another."""
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    found: list[list[tuple[str, Any]]] = []
    start = text.find("{")
    while start >= 0:
        end = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
            if value:  # an empty one is LaTeX or the empty set, and no grading
                found.append(value)
        except (ValueError, RecursionError):
            pass  # a brace of prose or of LaTeX
        start = text.find("{", end)
    return found


class _Pairs(list[tuple[str, Any]]):
    """An object inside JSON, told apart from an array."""


def _metrics(
    criteria: Sequence[Criterion], gradings: Sequence[Grading], repeats: int
) -> dict[str, float]:
    readable = [one for one in gradings if one.points is not None]
    totals = [float(one.total or 0) for one in readable]
    metrics = {
        "points": statistics.fmean(totals),
        "points_possible": float(sum(one.points for one in criteria)),
        "spread": statistics.pstdev(totals),
        "n_gradings": float(len(readable)),
        "n_unreadable": float(len(gradings) - len(readable)),
    }
    for one in criteria:
        given = [grading.points[one.id] for grading in readable if grading.points is not None]
        metrics[f"criterion:{one.id}"] = statistics.fmean(given)
    for index in range(len(gradings) // repeats):
        own = gradings[index * repeats : (index + 1) * repeats]
        if of_judge := [float(grading.total) for grading in own if grading.total is not None]:
            metrics[f"judge:{index}:points"] = statistics.fmean(of_judge)
    return metrics


def _no_proof(criteria: Sequence[Criterion], rule: str) -> Score:
    """Score an answer without a proof: wrong, and with its possible points, for a run's rate."""
    made = Score.no_answer(f"there is no proof: {rule} stands nothing")
    metrics = {"points": 0.0, "points_possible": float(sum(one.points for one in criteria))}
    metrics |= {f"criterion:{one.id}": 0.0 for one in criteria}
    return msgspec.structs.replace(made, metrics=metrics)


def _repeats(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_REPEATS):
        raise UsageError(
            f"scorer rubric: repeats={text} is not a whole number from 1 to {_MOST_REPEATS}"
        )
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise UsageError(f"scorer rubric: solved={text} is not a share above 0 and up to 1")
    return value
