"""GSM8K: grade-school word problems of several steps, answered by one number.

Paper     Cobbe et al. 2021, "Training Verifiers to Solve Math Word Problems", arXiv 2110.14168
Source    github.com/openai/grade-school-math, test split, 1,319 problems (MIT); on a hub as
          openai/gsm8k, config main: `--data hub:openai/gsm8k@REV?config=main&split=test`
Own items data/gsm8k/own.jsonl, generated problems of our own (Apache-2.0)
Protocol  one turn, no examples, greedy; the final number is compared by value, exactly
"""

from __future__ import annotations

import re
from random import Random

import msgspec

from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from tasks.readers import Table, read_table

PROMPT = """\
Question: {{ input }}

Work the problem out step by step. Then close with one last line that holds nothing but the result \
as a number, in this form:
#### number"""

OWN = {
    "benchmark": "GSM8K-like, own items",
    "license": "Apache-2.0",
    "source": "data/make/gsm8k.py",
}
UPSTREAM = {
    "benchmark": "GSM8K",
    "license": "MIT",
    "source": "github.com/openai/grade-school-math",
}
WITHHELD = "(question withheld)"
FINAL_LINE = re.compile(r"^#### *(-?\d[\d,]*(?:\.\d+)?) *$", re.MULTILINE)


class Row(msgspec.Struct):
    """One line of the file; upstream's rows have neither `item_id` nor `cluster_id`."""

    question: str
    answer: str
    item_id: str | None = None
    cluster_id: str | None = None


def to_samples(table: Table[Row], *, no_data: bool = False) -> list[Sample]:
    """Make the items that are asked.

    Parameters
    ----------
    table : Table
        Rows with `question` and `answer`, the latter ending in a line ``#### number``. A row
        without `item_id` is named by its split and number.
    no_data : bool
        Leave the question out.

    Raises
    ------
    UsageError
        For an answer without its last line, or an `item_id` that is used twice.
    """
    samples: dict[str, Sample] = {}
    for position, row in enumerate(table.rows):
        results = FINAL_LINE.findall(row.answer)
        if not results:
            raise table.error(position, row.item_id, "answer", 'has no line "#### number"')
        item_id = row.item_id or f"{table.split}-{position + 1:04d}"
        if item_id in samples:
            raise table.error(position, item_id, "item_id", "is used twice")
        samples[item_id] = Sample(
            item_id=item_id,
            input=WITHHELD if no_data else row.question,
            target=(results[-1].replace(",", ""),),
            cluster_id=row.cluster_id,
            metadata={"worked_answer": row.answer},
        )
    return list(samples.values())


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
        With `data_root`: the folder that holds upstream's ``test.jsonl``; with `data`: a data set
        with upstream's columns. It has no switches.

    Raises
    ------
    UsageError
        For data that cannot be read.
    """
    table = read_table(request, Row, "gsm8k/own.jsonl", lambda root: root / "test.jsonl")
    return Task(
        name="gsm8k",
        version="1",
        samples=to_samples(table, no_data=request.no_data),
        prompt=PROMPT,
        gold=gold,
        guess=guess,
        scorer="number",
        # A model without a chat template tends to go on with a question of its own.
        generation=Generation(max_tokens=400, stop=("\n\nQuestion:", "\n\nQ:")),
        data_sets=True,
        info={**table.info(OWN, UPSTREAM), "paper": "arXiv 2110.14168"},
    )
