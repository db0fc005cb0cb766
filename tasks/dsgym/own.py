"""Own questions in upstream's layout, with a strict type, a level and a guessed time beside each."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from harness.core.resources import data
from tasks.dsgym.rows import Question, Text
from tasks.readers import read_rows

Profile = Literal["daeval", "qrdata", "dabstep", "dsbio"]
RULES: dict[Profile, str] = {
    "daeval": "list_match", "qrdata": "exact_match", "dabstep": "plain", "dsbio": "exact_match_0",
}  # fmt: skip


class _Facts(Struct):
    profile: Profile
    keywords: list[str]
    traps: list[str]
    guideline: str
    options: list[str] = []


class _OwnRow(Struct):
    item_id: Text
    context: str
    question: Text
    answer: str
    data: list[Text]
    answer_type: Text
    level: Literal["easy", "medium", "hard"]
    reference_fn: Text
    human_minutes: float
    metadata: _Facts


def own_root() -> Path:
    """Give the folder of the own items."""
    return data("dsgym")


def own_questions(root: Path | None = None) -> list[Question]:
    """Read own questions.

    Parameters
    ----------
    root : pathlib.Path, optional
        Another draw of them, made by ``data/make/dsgym``.
    """
    root = own_root() if root is None else root
    rows, _ = read_rows(root / "data" / "task" / "own" / "own.json", _OwnRow)
    return [
        Question(
            item_id=row.item_id,
            question=row.question,
            context=row.context,
            gold=row.answer,
            files=tuple(row.data),
            sections=(
                ("ANSWER FORMAT", row.metadata.guideline),
                ("CHOICES", "\n".join(
                    f"{chr(ord('A') + i)}. {text}" for i, text in enumerate(row.metadata.options)
                )),
            ),
            rule=RULES[row.metadata.profile],
            answer_type=row.answer_type,
            options=tuple(row.metadata.options),
            category=row.data[0].split("/")[-1].split(".")[0],
            cluster=row.data[0],
            facts={"level": row.level, "traps": row.metadata.traps, "profile": row.metadata.profile},
            minutes=row.human_minutes,
        )
        for row in rows
    ]  # fmt: skip
