"""Hypotheses in words, judged by models: the same as the reference or not, and how much of it.

Two figures of DiscoveryBench as DSGym takes them, asked in our own words: ``match``, a judge's True or
False; and ``hms``, the score of matching hypotheses, for which both texts are taken apart into claims
(context, variables, relation). A judge that cannot be read says nothing about the answer: where no verdict
is readable the answer is ``unscored``, and where any step towards its hms is not, that judge gives none.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.task import Scorer
from harness.core.types import Message, Output, Sample, Score, prompt_text
from scorers.data_answer import EMPTY
from scorers.discovery_prompt import (
    Pair,
    SubHypothesis,
    match_prompt,
    read_match,
    read_same,
    read_split,
    same_prompt,
    split_prompt,
)

UNREADABLE = "judge_unreadable"
METRICS = ("match", "hms")


class DiscoveryJudge(Protocol):
    """What the scorer sees of a judge."""

    @property
    def spec(self) -> str:
        """The model SPEC, for the explanation."""
        ...

    def __call__(self, messages: Sequence[Message], seed: int) -> Output:
        """Ask once; raise where no answer comes (a fault of the harness, judged again later)."""
        ...


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judge's verdicts on one answer, as they stand in the score's explanation.

    Attributes
    ----------
    judge : str
        Its SPEC.
    match : float or None
        1 or 0; None for an answer that could not be read.
    hms : float or None
        Between 0 and 1; None where a step could not be read.
    reference, answer : tuple of SubHypothesis
        The claims of both, as far as they could be read.
    pairs : tuple of Pair
    unreadable : dict
        Step -> why it could not be read, and the head of what was said.
    """

    judge: str
    match: float | None = None
    hms: float | None = None
    reference: tuple[SubHypothesis, ...] = ()
    answer: tuple[SubHypothesis, ...] = ()
    pairs: tuple[Pair, ...] = ()
    unreadable: dict[str, str] = {}


def discovery(judges: Sequence[DiscoveryJudge], metric: str = "match") -> Scorer:
    """Make a scorer that lets judges compare a hypothesis with the reference.

    Reads the sample's `input` (the question) and ``target[0]`` (the reference hypothesis). Each judge is
    asked four times: same or not, the claims of the reference, those of the answer, and which belong
    together; without a claim in the answer the last is spared.

    Parameters
    ----------
    judges : sequence of DiscoveryJudge
        At least one.
    metric : {"match", "hms"}
        Which of the two is the value.

    Returns
    -------
    Scorer
        Its metrics: ``match`` and ``hms``, means over the judges that could be read, left out where
        there is none; ``n_unreadable_match`` and ``n_unreadable_hms``, counts of judges. The
        explanation is JSON: `note` (what could not be read), `verdicts`. An answer counts as solved
        where more than half of the judges say True.

    Raises
    ------
    UsageError
        No judge, or another metric.
    """
    if not judges:
        raise UsageError("scorer discovery: it needs at least one judge: give --judge SPEC")
    if metric not in METRICS:
        raise UsageError(f"scorer discovery: metric={metric} is not one of {', '.join(METRICS)}")

    def score(sample: Sample, output: Output) -> Score:
        answer = output.text.strip()
        if answer in ("", EMPTY):
            return Score.no_answer("no hypothesis was handed in")
        verdicts = [_ask(judge, sample, answer) for judge in judges]
        metrics: dict[str, float] = {}
        for name in METRICS:
            readable = [v for one in verdicts if (v := getattr(one, name)) is not None]
            if readable:
                metrics[name] = statistics.fmean(readable)
            metrics[f"n_unreadable_{name}"] = float(len(verdicts) - len(readable))
        facts = {"note": _note(verdicts), "verdicts": verdicts}
        explanation = msgspec.json.encode(facts).decode()
        if metric not in metrics:
            return Score(
                value=None, status="unscored", reason=UNREADABLE, answer=answer,
                explanation=explanation, metrics=metrics,
            )  # fmt: skip
        return Score(
            value=metrics[metric],
            passed=metrics["match"] > 0.5 if "match" in metrics else None,
            answer=answer,
            explanation=explanation,
            metrics=metrics,
        )

    return score


def hms_of(
    reference: Sequence[SubHypothesis], answer: Sequence[SubHypothesis], pairs: Sequence[Pair]
) -> float:
    """Compute the score of matching hypotheses.

    Share of the reference's contexts that the answer has, times the mean over the answer's claims of
    context (1 or 0) × F1 of the variables × relation (1, 0.5 or 0).

    Parameters
    ----------
    reference, answer : sequence of SubHypothesis
        The reference has at least one.
    pairs : sequence of Pair
        One for each of the answer's.

    Returns
    -------
    float
        Between 0 and 1; 0 for an answer without a claim.

    Examples
    --------
    >>> one = SubHypothesis(context="", variables=("age", "fare"), relation="rises with")
    >>> half = SubHypothesis(context="women", variables=("age",), relation="rises")
    >>> hms_of([one, half], [half], [Pair(answer=1, reference=1, shared=1, relation=0.5)])
    0.16666666666666666
    """
    if not pairs:
        return 0.0
    points = []
    for pair in pairs:
        if pair.reference is None:
            points.append(0.0)
            continue
        here, there = answer[pair.answer - 1], reference[pair.reference - 1]
        f1 = 2 * pair.shared / (len(here.variables) + len(there.variables))
        points.append(f1 * pair.relation)
    recall = sum(pair.reference is not None for pair in pairs) / len(reference)
    return recall * statistics.fmean(points)


def _ask(judge: DiscoveryJudge, sample: Sample, answer: str) -> Verdict:
    gold = sample.target[0]
    unreadable: dict[str, str] = {}
    match: float | None = None
    question = sample.input if isinstance(sample.input, str) else prompt_text(sample.input)
    said = judge(same_prompt(question, gold, answer), 0).text
    try:
        match = float(read_same(said))
    except ValueError as error:
        unreadable["match"] = f"{error}: {said[:300]!r}"
    ours: tuple[SubHypothesis, ...] = ()
    theirs: tuple[SubHypothesis, ...] = ()
    pairs: tuple[Pair, ...] = ()
    hms: float | None = None
    step = "reference"
    try:
        said = judge(split_prompt(gold), 0).text
        ours = read_split(said)
        if not ours:
            raise ValueError("no hypothesis")
        step = "answer"
        said = judge(split_prompt(answer), 0).text
        theirs = read_split(said)
        step = "pairs"
        if theirs:
            said = judge(match_prompt(ours, theirs), 0).text
            pairs = read_match(said, ours, theirs)
        hms = hms_of(ours, theirs, pairs)
    except ValueError as error:
        unreadable[step] = f"{error}: {said[:300]!r}"
    return Verdict(
        judge=judge.spec, match=match, hms=hms, reference=ours, answer=theirs, pairs=pairs,
        unreadable=unreadable,
    )  # fmt: skip


def _note(verdicts: Sequence[Verdict]) -> str:
    """Say in words what could not be read."""
    parts = [
        f"{one.judge}: {', '.join(one.unreadable)} could not be read"
        + (", so it gives no hms" if one.hms is None else "")
        for one in verdicts
        if one.unreadable
    ]
    return "; ".join(parts) or "all could be read"
