"""GSM8K: grade-school word problems of several steps, answered by one number.

Paper     Cobbe et al. 2021, "Training Verifiers to Solve Math Word Problems", arXiv 2110.14168
Source    github.com/openai/grade-school-math, test split, 1,319 problems (MIT)
Own items data/gsm8k/own.jsonl, generated problems of our own (Apache-2.0)
Protocol  one turn, no examples, greedy; the final number is compared by value, exactly
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

import msgspec

from harness.core import resources
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from tasks.readers import read_rows, row_error

PROMPT = """\
Question: {{ input }}

Work the problem out step by step. Then close with one last line that holds nothing but the result \
as a number, in this form:
#### number"""

WITHHELD = "(question withheld)"
FINAL_LINE = re.compile(r"^#### *(-?\d[\d,]*(?:\.\d+)?) *$", re.MULTILINE)


class Row(msgspec.Struct):
    """One line of the file; upstream's rows have no `item_id`."""

    question: str
    answer: str
    item_id: str | None = None


def load(path: Path, *, no_data: bool = False) -> tuple[list[Sample], str]:
    """Read the items of a file and its sha256.

    Parameters
    ----------
    path : pathlib.Path
        JSON lines with `question` and `answer`, the latter ending in a line ``#### number``.
    no_data : bool
        Leave the question out.

    Raises
    ------
    UsageError
        For an unreadable file, or an answer without its last line.
    """
    rows, sha256 = read_rows(path, Row)
    samples = []
    for position, row in enumerate(rows):
        results = FINAL_LINE.findall(row.answer)
        if not results:
            why = 'has no line "#### number"'
            raise row_error(path, position, row.item_id, "answer", why)
        samples.append(
            Sample(
                item_id=row.item_id or f"test-{position + 1:04d}",
                input=WITHHELD if no_data else row.question,
                target=(results[-1].replace(",", ""),),
                metadata={"worked_answer": row.answer},
            )
        )
    return samples, sha256


def gold(sample: Sample) -> str:
    """Say what a perfect model would: the worked answer with its last line."""
    worked: str = sample.metadata["worked_answer"]
    return worked


def guess(_sample: Sample, rng: Random) -> str:
    """Guess a whole number below 100."""
    return f"#### {rng.randrange(100)}"


def gsm8k(request: TaskRequest) -> Task:
    """Make the task.

    Parameters
    ----------
    request : TaskRequest
        With `data_root`: the folder that holds upstream's ``test.jsonl``. It has no switches.

    Raises
    ------
    UsageError
        For data that cannot be read.
    """
    upstream = request.data_root is not None
    path = (
        request.data_root / "test.jsonl" if request.data_root else resources.data("gsm8k/own.jsonl")
    )
    samples, sha256 = load(path, no_data=request.no_data)
    _unique(path, samples)
    return Task(
        name="gsm8k",
        version="1",
        samples=samples,
        prompt=PROMPT,
        gold=gold,
        guess=guess,
        scorer="number",
        # A model without a chat template tends to go on with a question of its own.
        generation=Generation(max_tokens=400, stop=("\n\nQuestion:", "\n\nQ:")),
        info={
            "benchmark": "GSM8K" if upstream else "GSM8K-like, own items",
            "license": "MIT" if upstream else "Apache-2.0",
            "source": "github.com/openai/grade-school-math" if upstream else "data/make/gsm8k.py",
            "dataset_sha256": sha256,
            "paper": "arXiv 2110.14168",
        },
    )


def _unique(path: Path, samples: Sequence[Sample]) -> None:
    seen: set[str] = set()
    for position, sample in enumerate(samples):
        if sample.item_id in seen:
            raise row_error(path, position, sample.item_id, "item_id", "is used twice")
        seen.add(sample.item_id)
