"""What the modules of the tables share: a question, its two answers, how numbers are written."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

Answers = Mapping[str, str]


@dataclass(frozen=True)
class Question:
    """One question over a table.

    Parameters
    ----------
    name
        ``O1``; the item is ``own-dsgym-O1``, the answers of the two references go by this name.
    question, guideline
        What is asked, and in which form the answer is to be given.
    answer_type
        See ``scorers/answer_types.py``.
    level
        easy, medium or hard.
    minutes
        A guess of what a person at a computer needs.
    profile
        Whose form it imitates: daeval, qrdata, dabstep or dsbio.
    traps
        What a hasty answer gets wrong.
    keywords, options
        Topics; texts of a choice.
    context
        What a person would be told of the data.
    """

    name: str
    question: str
    guideline: str
    answer_type: str
    level: str
    minutes: float
    profile: str
    traps: tuple[str, ...]
    keywords: tuple[str, ...]
    options: tuple[str, ...] = ()
    context: str = ""


@dataclass(frozen=True)
class Table:
    """A set of files with its questions.

    Parameters
    ----------
    name
        Also the name of the module.
    files
        As they lie below ``/data/own`` in a box.
    make
        draw -> content by file name.
    questions
    by_pandas, by_hand
        Folder with the files -> answer of every question: with pandas and its like, and with plain
        Python alone, so that one fault does not hide in both.
    wrong
        Name of a question -> trap -> folder -> the answer that falls into it.
    """

    name: str
    files: tuple[str, ...]
    make: Callable[[int], Mapping[str, bytes]]
    questions: tuple[Question, ...]
    by_pandas: Callable[[Path], Answers]
    by_hand: Callable[[Path], Answers]
    wrong: Mapping[str, Mapping[str, Callable[[Path], str]]] = field(default_factory=dict)


def to_csv(head: Sequence[str], rows: Iterable[Sequence[object]], mark: str = ",") -> bytes:
    r"""Write a table: header, marks between cells, ``\n`` behind every row; UTF-8."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=mark, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().encode()


def from_csv(path: Path, mark: str = ",", encoding: str = "utf-8") -> list[dict[str, str]]:
    """Read a table as texts, the plain way."""
    with path.open(encoding=encoding, newline="") as file:
        return list(csv.DictReader(file, delimiter=mark))


NEAR_TIES: list[str] = []
"""Numbers that were rounded within 1e-6 of a half: a right answer might be rounded the other way."""


def rounded(value: float | Decimal, digits: int) -> str:
    """Write a number with so many decimals, halves away from zero.

    A binary number is taken to 9 places first, so that a half that the decimal figures give stays
    one after a sum of a thousand terms.

    Examples
    --------
    >>> rounded(2.675, 2), rounded(-0.5, 0)
    ('2.68', '-1')
    """
    exact = value if isinstance(value, Decimal) else Decimal(f"{value:.9f}")
    rest = abs(exact).scaleb(digits) % 1
    # With six places and more the half is nearer than that to everything.
    if digits < 5 and abs(rest - Decimal("0.5")) < Decimal("1e-6").scaleb(digits):
        NEAR_TIES.append(f"{exact} to {digits} places")
    return str(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def pairs(**values: str) -> str:
    """Write ``@name[value]`` pairs, as DAEval wants them."""
    return " ".join(f"@{name}[{value}]" for name, value in values.items())


def write_or_compare(made: Mapping[str, bytes], out: Path, *, check: bool) -> int:
    """Write files below a folder, or with `check` only say which of them are others; an exit code."""
    wrong = []
    for name, content in made.items():
        path = out / name
        if check:
            if not path.is_file() or path.read_bytes() != content:
                wrong.append(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in wrong:
        print(f"{path} is not what the draw gives", file=sys.stderr)
    return 1 if wrong else 0
