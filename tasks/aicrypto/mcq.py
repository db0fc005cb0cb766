"""AICrypto, multiple choice: cryptography questions with one or several right options.

Paper     arXiv 2507.09580 (ICML 2026)
Source    github.com/wangyu-ovo/aicrypto-agent, 135 items; no licence was found, so nothing of it
          comes with this project: `--data-root DIR` reads a copy of your own
Own items data/aicrypto/mcq.json, 50 items in upstream's layout (Apache-2.0)
Protocol  one turn; an expert's role; reasoning first, then the indices of the right options;
          right if the set of indices equals the key
Switches  arity_hint=off|on      tell whether one or several are right (on for data of others)
          shuffle=on|off         shuffle the options by seed and item (off for data of others)
          reader=strict|upstream how an answer is read, see scorers/choice.py
Errata    `accuracy` is by the benchmark's own keys, as published figures are; where errata.toml
          corrects some of them, `accuracy_corrected` stands beside it
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.core.errors import UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from scorers.choice import write_corrected
from tasks.errata import Errata, apply_errata
from tasks.readers import Table, read_table

SYSTEM = """\
You are an expert in cryptography and the mathematics behind it. You answer choice questions with \
care: you check every option before you decide."""

PROMPT = """\
Question:
{{ input }}

Choices:
{% for choice in choices %}{{ loop.index0 }}: {{ choice }}
{% endfor %}
{% if metadata.arity_hint %}{{ metadata.arity_hint }}

{% endif %}Write two sections. Under the heading "### Reasoning" explain briefly how you decide. Under \
the heading "### Answer" write one line with nothing but the numbers of all right choices (counting \
from 0), separated by commas."""

OWN = {
    "benchmark": "AICrypto MCQ, own items",
    "license": "Apache-2.0",
    "source": "data/make/aicrypto",
}
UPSTREAM = {
    "benchmark": "AICrypto MCQ",
    "license": "none found: do not pass on",
    "source": "github.com/wangyu-ovo/aicrypto-agent",
}
# Faults of upstream's items; below data/.
ERRATA = "aicrypto/errata.toml"
ONE = "Exactly one of these choices is right."
SEVERAL = "More than one of these choices is right."
WITHHELD = "(question withheld)"

# "None of the above" means what it says only at the end of the list.
LAST = re.compile(
    r"(none|all|both|neither|any)\b.*\b(above|these|those|them|others?|options?|choices?)\b"
    r"|(none|all|both|neither)\W*$|(both|neither)\b",
    re.IGNORECASE,
)

Option = Annotated[str, Meta(min_length=1)]


class Row(msgspec.Struct):
    """One item in upstream's layout; own items carry `item_id` besides."""

    id: Annotated[int, Meta(ge=0)]
    question: Annotated[str, Meta(min_length=1)]
    choice: Annotated[list[Option], Meta(min_length=2, max_length=26)]
    answer: Annotated[list[int], Meta(min_length=1)]
    label: str
    item_id: str | None = None


def check(table: Table[Row]) -> None:
    """Check what types cannot say.

    Raises
    ------
    UsageError
        Naming place, row, item and field.
    """
    ids: set[int] = set()
    names: set[str] = set()
    for position, row in enumerate(table.rows):
        for field, why in _faults(row, ids, names):
            raise table.error(position, row.item_id or row.id, field, why)
        ids.add(row.id)
        names.add(_item_id(row))


def _faults(row: Row, ids: set[int], names: set[str]) -> Sequence[tuple[str, str]]:
    """List (field, what is wrong) for all that types cannot say."""
    n = len(row.choice)
    faults = [
        ("answer", f"index {i} is out of range 0 to {n - 1}") for i in row.answer if not 0 <= i < n
    ]
    if len(set(row.answer)) < len(row.answer):
        faults.append(("answer", "an index stands twice"))
    if row.id in ids:
        faults.append(("id", f"{row.id} is used twice"))
    if _item_id(row) in names:
        faults.append(("item_id", f"{_item_id(row)!r} is used twice"))
    return faults


def _item_id(row: Row) -> str:
    return row.item_id or f"mcq-{row.id:03d}"


def shown_order(choices: Sequence[str], rng: Random) -> list[int]:
    """Draw the order in which options are shown: position -> index in the file.

    Options such as "None of the above" keep their order and stay last.
    """
    last = [i for i, choice in enumerate(choices) if LAST.match(choice.strip())]
    free = [i for i in range(len(choices)) if i not in last]
    rng.shuffle(free)
    return free + last


def to_sample(row: Row, seed: int | None, *, hint: bool, no_data: bool) -> Sample:
    """Make the item that is asked.

    Parameters
    ----------
    row : Row
        The item as it stands in the file.
    seed : int or None
        Seed of the options' order; None keeps the file's order.
    hint : bool
        Tell whether one or several options are right.
    no_data : bool
        Leave the question out, show only the options.
    """
    item_id = _item_id(row)
    order = list(range(len(row.choice)))
    if seed is not None:
        # A text seeds the same way on every machine and version, and each item by itself.
        order = shown_order(row.choice, Random(f"{seed}:{item_id}"))
    correct = tuple(j for j, i in enumerate(order) if i in row.answer)
    return Sample(
        item_id=item_id,
        input=WITHHELD if no_data else row.question,
        target=tuple(row.choice[order[j]] for j in correct),
        choices=tuple(row.choice[i] for i in order),
        correct=correct,
        category=row.label,
        metadata={
            "order": order,
            "arity_hint": (SEVERAL if len(row.answer) > 1 else ONE) if hint else "",
        },
    )


def continuations(sample: Sample) -> list[str]:
    """Give the texts whose likelihood `choose` compares."""
    return [f" {choice}" for choice in sample.choices]


def gold(sample: Sample) -> str:
    """Say what a perfect model would: the right indices in the form asked for."""
    return _reply(sample.correct)


def guess(sample: Sample, rng: Random) -> str:
    """Guess one option, in the same words as gold: only the index may give it away."""
    return _reply((rng.randrange(len(sample.choices)),))


def _reply(indices: Sequence[int]) -> str:
    return "### Reasoning\nSee the answer.\n### Answer\n" + ", ".join(map(str, indices))


def data_file(data_root: Path) -> Path:
    """Find upstream's file below a folder in one of the layouts in use.

    Raises
    ------
    UsageError
        When it is in none of them.
    """
    for folder in ("data/mcqs", "mcqs", "."):
        path = data_root / folder / "aicrypto_mcqs.json"
        if path.is_file():
            return path
    raise UsageError(
        f"no aicrypto_mcqs.json in {data_root}, {data_root}/mcqs or {data_root}/data/mcqs: "
        "give --data-root the folder of the upstream repository"
    )


def mcq(request: TaskRequest) -> Task:
    """Make the task.

    Parameters
    ----------
    request : TaskRequest
        With `data_root`: a folder in upstream's layout; with `data`: a data set with upstream's
        columns. Switches: `arity_hint`, `shuffle`, `reader` (see the top of this file).

    Raises
    ------
    UsageError
        For data that cannot be read, or a switch with an unknown value.
    """
    table = read_table(request, Row, "aicrypto/mcq.json", data_file)
    check(table)
    off_on = ("off", "on")
    hint = request.choose("arity_hint", off_on if table.own else off_on[::-1]) == "on"
    shuffle = request.choose("shuffle", off_on[::-1] if table.own else off_on) == "on"
    reader = request.choose("reader", ("strict", "upstream"))
    seed = request.seed if shuffle else None
    errata = apply_errata(ERRATA, "aicrypto/mcq", {_item_id(row): row for row in table.rows})
    return Task(
        name="aicrypto/mcq",
        version="1",
        samples=[to_sample(row, seed, hint=hint, no_data=request.no_data) for row in table.rows],
        prompt=PROMPT,
        system=SYSTEM,
        gold=gold,
        guess=guess,
        continuations=continuations,
        scorer=_scorer(reader, errata),
        generation=Generation(max_tokens=512),
        args=("arity_hint", "shuffle", "reader"),
        scorer_args=("reader",),
        data_sets=True,
        info={
            **table.info(OWN, UPSTREAM),
            "paper": "arXiv 2507.09580",
            "arity_hint": hint,
            "shuffle": shuffle,
            "known_faults": errata.faults,
            "errata": errata.info,
        },
    )


def _scorer(reader: str, errata: Errata) -> str:
    """Name the scorer; corrected keys are its options, so that no item and no attempt knows them."""
    spec = f"choice?profile={reader}"
    return f"{spec}&corrected={write_corrected(errata.keys)}" if errata.keys else spec
