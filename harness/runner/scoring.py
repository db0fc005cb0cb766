"""Scoring of given outputs, without a model, a run or a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, UsageError, unknown
from harness.core.status import SCORER_FAULT
from harness.core.task import Scorer, make_task
from harness.core.types import Output, Sample, Score
from harness.runner.config import make_config
from harness.runner.judging import build_scorer


class Prediction(Struct):
    """One given output: ``{"item_id": …, "output": …}``."""

    item_id: str
    output: str


class Verdict(Struct, kw_only=True):
    """One scored prediction, as a line of ``harness score``."""

    item_id: str
    value: float | None
    passed: bool | None
    status: str
    answer: str | None
    explanation: str | None
    metrics: dict[str, float]


def score_predictions(
    task: str,
    predictions: Iterable[Mapping[str, Any] | Prediction],
    data_root: str | Path | None = None,
    seed: int = 0,
    args: Mapping[str, str] | None = None,
    data: str | None = None,
) -> list[Score]:
    """Score given outputs of a task's items.

    Parameters
    ----------
    task : str
        Task name.
    predictions : iterable of mapping
        Each with `item_id` and `output` (text).
    data_root : path, optional
        The benchmark's own files, as for a run.
    seed : int
        The seed of the run that made them, for tasks that shuffle options.
    args : mapping, optional
        The task's switches.
    data : str, optional
        A data set instead, as for a run.

    Returns
    -------
    list of Score
        In the order given. A scorer that raises gives status ``error``, reason ``scorer_fault``.

    Raises
    ------
    UsageError
        Unknown task or item, or a prediction without its two fields.

    Examples
    --------
    >>> import harness
    >>> rows = [{"item_id": "own-gsm8k-001", "output": "no idea"}]
    >>> harness.score("gsm8k", rows)[0].reason
    'no_answer'
    """
    config = make_config(
        task=task, model="mock:empty", data_root=data_root, data=data, seed=seed,
        args=dict(args or {}),
    )  # fmt: skip
    made = make_task(task, config.task_request())
    samples = {sample.item_id: sample for sample in made.samples}
    given = []
    for number, row in enumerate(predictions, 1):
        prediction = _prediction(row, number)
        if prediction.item_id not in samples:
            raise unknown(f"item of {task}", prediction.item_id, samples)
        given.append((samples[prediction.item_id], Output(text=prediction.output)))
    scorer: Scorer = build_scorer(made.scorer)
    try:
        return judge_all(scorer, given)
    finally:
        close_scorer(scorer)


def judge_all(scorer: Scorer, given: Sequence[tuple[Sample, Output]]) -> list[Score]:
    """Score outputs in order, as many side by side as the scorer says.

    Raises
    ------
    HarnessError
        As `judge` does.
    """
    at_once: int = getattr(scorer, "at_once", 1)
    if at_once == 1 or len(given) < 2:
        return [judge(scorer, sample, output) for sample, output in given]
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda one: judge(scorer, *one), given))


def close_scorer(scorer: Scorer) -> None:
    """Let a scorer's engine go, if it has one."""
    getattr(scorer, "close", lambda: None)()


def read_predictions(path: Path) -> list[Prediction]:
    """Read predictions from JSONL.

    Raises
    ------
    UsageError
        Missing file, broken JSON, missing field: with file and line.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line, type=Prediction))
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: {error}") from error
    if not rows:
        raise UsageError(f"{path} holds no predictions")
    return rows


def verdict(item_id: str, score: Score) -> Verdict:
    """Join a score with its item for a line of output."""
    return Verdict(
        item_id=item_id,
        value=score.value,
        passed=score.passed,
        status=score.status,
        answer=score.answer,
        explanation=score.explanation,
        metrics=score.metrics,
    )


def _prediction(row: Mapping[str, Any] | Prediction, number: int) -> Prediction:
    if isinstance(row, Prediction):
        return row
    try:
        return msgspec.convert(dict(row), Prediction)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(f"prediction {number}: {error}") from error


def judge(scorer: Scorer, sample: Sample, output: Output) -> Score:
    """Score one output; a scorer that raises is the harness's fault, not a wrong answer.

    Raises
    ------
    HarnessError
        Where no output can be scored at all (the judge's key is refused, an engine is not there).
    """
    try:
        score = scorer(sample, output)
        if not isinstance(score, Score):
            raise TypeError(f"the scorer returned a {type(score).__name__}, no Score")
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001  whatever a scorer raises must stay visible per item
        return Score(
            value=None,
            status="error",
            reason=SCORER_FAULT,
            explanation=f"{type(error).__name__}: {error}",
        )
    return score
