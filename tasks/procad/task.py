"""ProCAD: a description of a part that may leave sizes open or give two; ask, then write the program.

Paper     arXiv 2602.03045 (ICML 2026)
Source    github.com/BoYuanVisionary/Pro-CAD at 03887678; its data cannot be had, `--data-root DIR` reads a
          procad.jsonl with its fields
Own items data/op_cad/procad.jsonl: 84 clean, 124 underspecified and 125 contradictory prompts (Apache-2.0)
Protocol  arm=ask: the solver `clarify` (questions, a user's answers, the prompt anew, the program).
          arm=direct: the program from the prompt as it is
Switches  arm=ask|direct             prompts=all|clean|unclear
"""

from __future__ import annotations

import json
from random import Random
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.resources import data
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample, Tool, ToolCall
from harness.solvers.clarify import CODER
from harness.solvers.environment import EnvironmentRequest, ToolResult
from scorers.op_cad.engine import missing_engine
from scorers.op_cad.procad import record_of
from scorers.op_cad.questions import NOTHING
from tasks.readers import read_rows

OWN = {"benchmark": "ProCAD-like, own items", "license": "Apache-2.0", "source": "data/make/op_cad"}
UPSTREAM = {"benchmark": "ProCAD", "license": "Apache-2.0 by its README",
            "source": "github.com/BoYuanVisionary/Pro-CAD"}  # fmt: skip


_LIMIT, _SHARE = 1e-3, 0.05
"""A part is the one that was meant when it differs by less of its volume, and of what any open size changes."""


class Slot(Struct, kw_only=True):
    """An open size: by how much another value changes the part, as a share of its volume."""

    slot_id: str
    symdiff: float


class Row(Struct, kw_only=True):
    """An item, by upstream's names; `slots` are ours."""

    uid: str
    config_name: str
    ambiguity_types: list[str]
    k: int
    original_prompt: str
    ground_truth_code: str
    misleading_description: str
    questions_to_ask: list[str]
    answer_to_questions: list[str]
    slots: list[Slot] = []
    group_id: str = ""


class User:
    """The environment: a user who knows the open sizes of one item and nothing else."""

    tools: tuple[Tool, ...] = ()

    def __init__(self, sample: Sample) -> None:
        # With `--no-data` the user is as silent as the description.
        self._record = record_of(sample.metadata) if sample.metadata["answers_given"] else None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""

    def call(self, call: ToolCall, wall_s: float) -> ToolResult:
        """Refuse: there are no tools."""
        return ToolResult(text="There are no tools.", status="denied", reason="bad_call")

    def kill(self) -> None:
        """Do nothing: nothing runs."""

    def answer(self, question: str) -> str:
        """Answer from the record, or say that there is nothing to add."""
        return self._record.answer(question) if self._record else NOTHING


def environment(sample: Sample, request: EnvironmentRequest) -> User:
    """Make the user of an item."""
    del request
    return User(sample)


def missing(sample: Sample) -> str:
    """Say why an item cannot be judged here."""
    del sample
    return missing_engine()


def procad(request: TaskRequest) -> Task:
    """Make the task `procad`.

    Raises
    ------
    UsageError
        For data or switches that cannot be read.
    """
    arm = request.choose("arm", ("ask", "direct"))
    wanted = request.choose("prompts", ("all", "clean", "unclear"))
    root = request.data_root
    path = (root if root is not None else data("op_cad")) / "procad.jsonl"
    rows, digest = read_rows(path, Row)
    least: dict[str, float] = {}
    for row in rows:
        if len(row.questions_to_ask) != len(row.answer_to_questions):
            raise UsageError(f"{path}: {row.uid} has not one answer for each question")
        for slot in row.slots:
            least[row.group_id] = min(least.get(row.group_id, 1.0), slot.symdiff)
    kept = [row for row in rows if wanted == "all" or (wanted == "clean") == (row.k == 0)]
    info = {**(OWN if root is None else UPSTREAM), "dataset_sha256": digest, "arm": arm}
    return Task(
        name="procad",
        version="1",
        samples=[
            to_sample(row, arm, least.get(row.group_id, 1.0), no_data=request.no_data)
            for row in kept
        ],
        prompt="{{ input }}",
        system=CODER,
        gold=gold_asking if arm == "ask" else gold_direct,
        guess=guess,
        scorer="procad",
        metric="correct",
        solver="clarify" if arm == "ask" else "generate",
        generation=Generation(max_tokens=8192),
        environment=environment if arm == "ask" else None,
        missing=missing,
        toolset={"name": "procad-user-1"} if arm == "ask" else {},
        args=("arm", "prompts"),
        info=info,
    )


def to_sample(row: Row, arm: str, least: float, *, no_data: bool = False) -> Sample:
    """Make the item that is asked: the description as it is, never what was meant.

    `least` is what the smallest open size of the part changes, as a share of its volume.
    """
    return Sample(
        item_id=row.uid,
        input="(the description is withheld)" if no_data else row.misleading_description,
        target=(row.ground_truth_code,),
        category=row.config_name,
        cluster_id=row.group_id or None,
        metadata={
            "truth": row.ground_truth_code, "original": row.original_prompt, "arm": arm,
            "k": row.k, "types": row.ambiguity_types, "limit": min(_LIMIT, _SHARE * least),
            "questions": row.questions_to_ask, "answers": row.answer_to_questions,
            "answers_given": not no_data,
        },
    )  # fmt: skip


def gold_direct(sample: Sample) -> str:
    """Say what a perfect coder would who knew what was meant."""
    return f"```python\n{sample.target[0].rstrip()}\n```"


def gold_asking(sample: Sample) -> tuple[str, ...]:
    """Give the needed questions, the description as it was meant, and the program."""
    about = sample.metadata
    clear = json.dumps({"is_misleading": False, "standardized_prompt": about["original"]})
    if not about["questions"]:
        return clear, gold_direct(sample)
    asked: dict[str, Any] = {"is_misleading": True, "questions": about["questions"]}
    return json.dumps(asked), clear, gold_direct(sample)


def guess(sample: Sample, rng: Random) -> str:
    """Guess: a box."""
    del sample
    sides = tuple(rng.randrange(10, 120) for _ in range(3))
    return f"```python\nimport cadquery as cq\nr = cq.Workplane('XY').box{sides}\n```"
