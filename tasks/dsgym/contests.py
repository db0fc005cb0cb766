"""Prediction contests: train on what is given, predict what is withheld, be placed on a board.

Layout below the root, as upstream has it: ``data/task/dspredict/*.json`` (or ``own_predict``) tells of the
contests, ``data/data/<name>`` holds what a model may see, ``data/DSPredict_Offline_Leaderboard`` the
boards. Besides, for a contest that can be scored here: ``data/truth/<name>.csv`` and, in the contest's
metadata, `metric`, `direction`, `id_column`, `target_column` and `noise_floor`.
"""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Message, Sample
from harness.solvers.tools import gold_call
from scorers.contest import Contest, check_contest, honest_boards
from tasks.dsgym.kernel import SUBMISSION
from tasks.dsgym.own import own_root
from tasks.dsgym.rows import Text, file_hashes
from tasks.dsgym.task import OWN, UPSTREAM, agent, environment, toolset
from tasks.readers import read_rows

FILES = ("train.csv", "test.csv", "sample_submission.csv")
BOARD = {"board": "120 reference programs, no people"}
SYSTEM = """\
You are a data scientist in a prediction contest. You write and run Python, step by step: look at the \
data, hold a part of the training rows back, and compare models on it before you predict. Reason \
briefly in <reasoning> tags before every step."""

INSTRUCTIONS = f"""\
Write your predictions for the rows of test.csv into the file {SUBMISSION} in the working folder, with \
exactly the columns of sample_submission.csv and every id once. You may write it again: the last one \
counts. End with the answer when you are done. There is no network and nothing can be installed."""


class _Board(Struct):
    public_scores: list[float]
    private_scores: list[float]


class _ContestRow(Struct):
    challenge_name: Text
    docker_challenge_path: Text
    competition_description: str
    evaluation_metric: str
    dataset_description: str
    metadata: dict[str, Any] | str


def read_contests(root: Path, folder: str) -> list[Sample]:
    """Read the contests of a folder of ``data/task``.

    Raises
    ------
    UsageError
        No contest is there, a file cannot be read, or a contest that can be scored has a flat board.
    """
    paths = sorted((root / "data" / "task" / folder).glob("*.json"))
    if not paths:
        raise UsageError(f"no {root}/data/task/{folder}/*.json: give --data-root another folder")
    boards = _boards(root)
    return [
        _sample(row, root, boards, path)
        for path in paths
        for row in read_rows(path, _ContestRow)[0]
    ]


def _boards(root: Path) -> dict[str, _Board]:
    boards: dict[str, _Board] = {}
    for path in sorted((root / "data" / "DSPredict_Offline_Leaderboard").glob("*.json")):
        try:
            boards |= msgspec.json.decode(path.read_bytes(), type=dict[str, _Board])
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}: {error}") from error
    return boards


def _sample(row: _ContestRow, root: Path, boards: dict[str, _Board], path: Path) -> Sample:
    name = row.challenge_name
    answers = f"data/truth/{name}.csv"
    truth, without, rules = "", "", None
    # Files are named as below the root: the message is stored with the attempt.
    try:
        rules = _rules(row, boards.get(name))
        truth = (root / answers).read_text(encoding="utf-8")
    except OSError:
        without = f"{answers} is missing: without the truth nothing can be scored"
    except msgspec.ValidationError as error:
        without = f"{path.relative_to(root)}, {name}: {error}: without it nothing can be scored"
    if rules is not None:
        check_contest(rules, f"{path}, {name}")
    files = [f"{row.docker_challenge_path}/{file}" for file in FILES]
    return Sample(
        item_id=name,
        input=_prompt(row),
        target=(truth,),
        category=path.stem,
        metadata={
            "contest": None if rules is None else msgspec.to_builtins(rules),
            "files": files,
            "files_sha256": file_hashes(root, files),
            "without": without,
        },
    )


def _rules(row: _ContestRow, board: _Board | None) -> Contest:
    facts = row.metadata
    if isinstance(facts, str):  # upstream writes a Python dictionary in some rows
        try:
            facts = dict(ast.literal_eval(facts))
        except (ValueError, SyntaxError, TypeError):
            facts = {}
    scores = {} if board is None else msgspec.to_builtins(board)
    return msgspec.convert({**facts, **scores}, Contest)


def _prompt(row: _ContestRow) -> str:
    parts = (
        ("CONTEST", row.competition_description or row.challenge_name),
        ("METRIC", row.evaluation_metric),
        ("DATA", row.dataset_description),
        ("DATA FILES", "\n".join(f"{row.docker_challenge_path}/{file}" for file in FILES)),
        ("INSTRUCTIONS", INSTRUCTIONS),
    )
    return "\n\n".join(f"# {heading}\n{text}" for heading, text in parts if text)


def gold(sample: Sample) -> list[str | Message]:
    """Hand in the truth, which only a baseline can."""
    code = f"with open({SUBMISSION!r}, 'w') as file:\n    file.write({sample.target[0]!r})"
    return [gold_call("python", code=code), gold_call("answer", answer="done")]


def guess(sample: Sample, rng: Random) -> str:
    """End without a submission: a guess of thousands of numbers is no text that one would say."""
    del sample, rng
    return "I have no idea."


def _count_perfect(samples: list[Sample], *, drop: bool) -> int:
    """Count the perfect scores on all boards; a board that is flat without them is refused."""
    n_perfect = 0
    for sample in samples:
        if sample.metadata["contest"] is None:
            continue
        rules, n = honest_boards(Contest(**sample.metadata["contest"]))
        n_perfect += n
        if drop:
            check_contest(rules, f"{sample.item_id} without perfect scores")
    return n_perfect


def _task(name: str, root: Path, request: TaskRequest) -> Task:
    own = name == "own_predict"
    perfect = request.choose("perfect", ("keep", "drop"))
    samples = read_contests(root, name)
    n_perfect = _count_perfect(samples, drop=perfect == "drop")
    said = {
        "perfect_scores": f"{n_perfect} on the boards, {'kept' if perfect == 'keep' else 'left out'}"
    }
    return Task(
        name=f"dsgym/{name}",
        version="1",
        samples=samples,
        prompt="{{ input }}",
        system=SYSTEM,
        gold=gold,
        guess=guess,
        solver=agent(request),
        scorer=f"contest?perfect={perfect}",
        metric="percentile",
        generation=Generation(max_tokens=1524),
        environment=partial(environment, root=root, no_data=request.no_data, submission=True),
        toolset=toolset(),
        withholds="the data files: their folders are empty",
        args=("turns", "perfect"),
        scorer_args=("perfect",),
        info={"benchmark": f"DSGym {name}", **(OWN | BOARD if own else UPSTREAM), **said},
    )


def own_predict(request: TaskRequest) -> Task:
    """Make the own contests: three, with boards of reference programs."""
    return _task("own_predict", request.data_root or own_root(), request)


def dspredict(request: TaskRequest) -> Task:
    """Make upstream's contests; they need their data, the truth and the rules of the score."""
    if request.data_root is None:
        raise UsageError("dsgym/dspredict needs --data-root: a copy of the upstream repository")
    return _task("dspredict", request.data_root, request)
