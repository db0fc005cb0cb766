"""The questions of DSGym in one form, whatever benchmark they come from.

Upstream's layout below the root: ``data/task/<name>`` holds the questions, ``data/data`` what lies
at ``/data`` inside a box.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from harness.core.errors import UsageError
from tasks.dsgym.types import choice_type, dabstep_type, daeval_type, dsbio_type, qrdata_type
from tasks.readers import read_rows

Text = Annotated[str, Meta(min_length=1)]


class Question(Struct, frozen=True, kw_only=True):
    """A question, ready to be asked.

    Attributes
    ----------
    item_id, question, context : str
    gold : str
        As a perfect model would hand it in; empty answers exist, see `without`.
    files : tuple of str
        Where its data lie inside the box.
    sections : tuple of (str, str)
        Further parts of the prompt, heading and text.
    rule, answer_type : str
        See `scorers.data_answer` and `scorers.answer_types`.
    options : tuple of str
    category : str
    cluster : str
        Questions about the same files hang together.
    facts : dict
        Level, keywords and other things that are worth knowing of an item.
    without : str
        Why it cannot be asked here; empty where it can.
    minutes : float or None
        How long people need.
    """

    item_id: str
    question: str
    context: str = ""
    gold: str
    files: tuple[str, ...]
    sections: tuple[tuple[str, str], ...] = ()
    rule: str
    answer_type: str
    options: tuple[str, ...] = ()
    category: str
    cluster: str
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    without: str = ""
    minutes: float | None = None


class _Row(Struct):
    context: str
    question: Text
    data: list[Text]


class _DAEvalFacts(Struct):
    original_id: int
    keywords: list[str]
    constraints: str
    format: str
    level: str


class _DAEvalRow(_Row, kw_only=True):
    answer: Text
    metadata: _DAEvalFacts


class _QRDataFacts(Struct):
    reference: str
    keywords: list[str]
    question_type: str
    multiple_choices: list[str] = []


class _QRDataRow(_Row, kw_only=True):
    answer: Text
    metadata: _QRDataFacts


class _DABStepRow(Struct):
    task_id: Text
    question: Text
    guidelines: str
    level: str
    answer: str


class _DSBioFacts(Struct):
    domain: str
    paper_title: str = ""


class _DSBioRow(Struct):
    context: str
    question: str | list[str]
    data: list[Text]
    answer: str | list[str] | float
    answer_guideline: str
    metadata: _DSBioFacts


class _DiscoveryFacts(Struct):
    domain: str
    domain_knowledge: str = ""
    workflow_tags: str = ""
    columns_info: str = ""
    dataset_descriptions: str | list[str] = ""


class _DiscoveryRow(_Row, kw_only=True):
    answer: Text
    metadata: _DiscoveryFacts


def daeval(root: Path) -> list[Question]:
    """Read DAEval: closed questions on one table, answered by ``@name[value]`` pairs."""
    path = _file(root, "daeval/daeval.json")
    rows, _ = read_rows(path, _DAEvalRow)
    return [
        Question(
            item_id=f"daeval-{row.metadata.original_id:03d}",
            question=row.question,
            context=row.context,
            gold=" ".join(f"@{name}[{value}]" for name, value in pairs),
            files=tuple(row.data),
            sections=(
                ("CONSTRAINTS", row.metadata.constraints),
                ("ANSWER FORMAT", row.metadata.format),
                ("KEYWORDS", ", ".join(row.metadata.keywords)),
            ),
            rule="list_match",
            answer_type=daeval_type(row.metadata.original_id, pairs),
            category=row.metadata.level,
            cluster=" ".join(row.data),
            facts={"level": row.metadata.level, "keywords": row.metadata.keywords},
        )
        for row in rows
        for pairs in [_daeval_pairs(row, path)]
    ]


def _daeval_pairs(row: _DAEvalRow, path: Path) -> list[tuple[str, str]]:
    try:
        return [(str(name), str(value)) for name, value in ast.literal_eval(row.answer)]
    except (ValueError, SyntaxError, TypeError) as error:
        raise UsageError(
            f"{path}: item {row.metadata.original_id}: field 'answer' is no list of pairs: {error}"
        ) from error


def qrdata(root: Path, *, reference: bool = False) -> list[Question]:
    """Read QRData: statistical and causal questions, a number or a choice.

    With `reference` the textbook passage that a question comes from stands in the prompt, as
    upstream has it.
    """
    rows, _ = read_rows(_file(root, "QRData/qrdata.json"), _QRDataRow)
    questions = []
    for number, row in enumerate(rows):
        facts = row.metadata
        sections = [("KEYWORDS", ", ".join(facts.keywords)), ("QUESTION TYPE", facts.question_type)]
        if facts.multiple_choices:
            sections.append(("CHOICES", "\n".join(facts.multiple_choices)))
        if reference:
            sections.append(("REFERENCE", facts.reference))
        options = tuple(facts.multiple_choices)
        questions.append(
            Question(
                item_id=f"qrdata-{number:03d}",
                question=row.question,
                context=row.context,
                gold=row.answer,
                files=tuple(row.data),
                sections=tuple(sections),
                rule="exact_match",
                answer_type=choice_type(row.answer)
                if options
                else qrdata_type(row.answer, row.question),
                options=_texts(options),
                category=facts.question_type,
                cluster=" ".join(row.data),
                facts={"keywords": facts.keywords},
            )
        )
    return questions


def _texts(options: Sequence[str]) -> tuple[str, ...]:
    """Take the letters off options that are written ``A. text``."""
    lettered = [re.fullmatch(r"\(?[A-Z][.):]\s*(.*)", option, re.DOTALL) for option in options]
    return tuple(found[1] if found else text for found, text in zip(lettered, options, strict=True))


_DABSTEP_FILES = (
    "acquirer_countries.csv", "fees.json", "manual.md", "merchant_category_codes.csv",
    "merchant_data.json", "payments-readme.md", "payments.csv",
)  # fmt: skip
# Of the questions with answers, those that fees and merchants alone decide (recomputed).
_WITHOUT_PAYMENTS = ("1273", "1305", "1464")


def dabstep(root: Path) -> list[Question]:
    """Read DABStep: payments, fees and a manual. The 450 have no public answers, the 10 have."""
    questions = []
    for name, mark in (("dev.jsonl", "dev-"), ("all.jsonl", "")):
        rows, _ = read_rows(_file(root, f"DABStep/{name}"), _DABStepRow)
        for row in rows:
            questions.append(
                Question(
                    item_id=f"dabstep-{mark}{row.task_id}",
                    question=row.question,
                    gold=row.answer,
                    files=tuple(
                        f"/data/dabstep/{file}"
                        for file in _DABSTEP_FILES
                        if file != "payments.csv" or row.task_id not in _WITHOUT_PAYMENTS
                    ),
                    sections=(("GUIDELINES", row.guidelines),),
                    rule="plain",
                    answer_type=dabstep_type(row.answer, row.guidelines),
                    category=row.level,
                    cluster="dabstep",
                    facts={"level": row.level},
                    without="" if row.answer or mark else f"{name} gives no answer to it",
                )
            )
    return questions


def dsbio(root: Path) -> list[Question]:
    """Read DSBio: questions on the data of biology papers."""
    rows, _ = read_rows(_file(root, "dsbio/dsbio.json"), _DSBioRow)
    return [
        Question(
            item_id=f"dsbio-{number:03d}",
            question=row.question if isinstance(row.question, str) else "\n".join(row.question),
            context=row.context,
            gold=str(row.answer),
            files=tuple(row.data),
            sections=(("DOMAIN", row.metadata.domain), ("ANSWER GUIDELINE", row.answer_guideline)),
            rule="exact_match_0",
            answer_type=dsbio_type(row.answer, row.answer_guideline),
            category=row.metadata.domain,
            cluster=row.metadata.paper_title or " ".join(row.data),
        )
        for number, row in enumerate(rows)
    ]


def discoverybench(root: Path) -> list[Question]:
    """Read DiscoveryBench: a hypothesis in words, judged by a model."""
    rows, _ = read_rows(_file(root, "discovery/discoverybench_test.json"), _DiscoveryRow)
    return [
        Question(
            item_id=f"discoverybench-{number:03d}",
            question=row.question,
            context=row.context,
            gold=row.answer,
            files=tuple(row.data),
            sections=(
                ("COLUMNS", row.metadata.columns_info),
                ("DOMAIN KNOWLEDGE", row.metadata.domain_knowledge),
                ("WORKFLOW", row.metadata.workflow_tags),
            ),
            rule="plain",
            answer_type="label",
            category=row.metadata.domain,
            cluster=" ".join(row.data),
        )
        for number, row in enumerate(rows)
    ]


def _file(root: Path, name: str) -> Path:
    path = root / "data" / "task" / name
    if not path.is_file():
        raise UsageError(
            f"no {path}: give --data-root the folder of the upstream repository, with data/task in it"
        )
    return path


def file_hashes(root: Path, files: Sequence[str]) -> dict[str, str]:
    """Give the SHA-256 of each file of a box that is here; what a tool shows depends on them.

    Without them an answer to other data would pass for one to these.
    """
    found = {file: host_file(root, file) for file in files}
    return {
        file: _sha256(path, path.stat().st_mtime_ns)
        for file, path in found.items()
        if path.is_file()
    }


@functools.lru_cache(maxsize=4096)
def _sha256(path: Path, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def host_file(root: Path, path: str) -> Path:
    """Say where a file of a box, ``/data/…``, lies here.

    Raises
    ------
    UsageError
        It would lie outside the root.
    """
    inside = Path(path).relative_to("/data") if path.startswith("/data/") else Path("..")
    if ".." in inside.parts:
        raise UsageError(f"{path!r} does not lie below /data")
    return root / "data" / "data" / inside
