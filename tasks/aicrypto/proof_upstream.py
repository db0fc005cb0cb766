r"""Upstream's exams: `exam1/problem1.tex` …, with neither rubric nor reference proof.

Each file is a LaTeX fragment with one heading, ``\paragraph{Problem k (P points)}`` or (one file)
``**Problem k (P points)**``. Upstream asks an exam's problems in one conversation; here each stands
alone, so it brings along what it rests on: definitions that stand before the heading of an earlier
problem, and the text of any problem that it names ("the family of Problem 3").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.types import Sample

FOLDERS = ("data/proof_problems", "data/Proof", "proof_problems", "Proof", ".")
WHOLE = (
    "The proof as a whole. All points only for a complete and correct proof; a part of them for what "
    "is proved in full and counts towards the claim; none where the main idea is wrong or missing."
)

_HEADING = re.compile(
    r"(?:\\paragraph\*?\{|\*\*)[ \t]*Problem[ \t~]+(?P<number>\d+)[ \t]*"
    r"(?:\([ \t]*(?P<points>\d+)[ \t]*(?:points?|pts?\.?)[ \t]*\))?[ \t]*[.:]?[ \t]*(?:\}|\*\*)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\bProblem[ \t~]+(\d+)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


class Fragment(Struct, frozen=True, kw_only=True):
    """One problem's file.

    Attributes
    ----------
    number, points : int
        As its heading says.
    before, text : str
        What stands before the heading (definitions), and the problem with its heading.
    """

    number: int
    points: int
    before: str
    text: str


class Exams(Struct, frozen=True, kw_only=True):
    """All that was read.

    Attributes
    ----------
    samples : list of Sample
    sha256 : str
        Of all files' names and hashes.
    notes : dict
        Exam -> what became of its note.
    """

    samples: list[Sample]
    sha256: str
    notes: dict[str, str]


def read_exams(root: Path, note: str, instead: str | None = None) -> Exams:
    """Read the exams below a folder in one of upstream's layouts.

    Parameters
    ----------
    root : pathlib.Path
    note : {"auto", "on", "off"}
        Whether a problem shows its exam's note. ``auto``: unless the note is itself a problem,
        which upstream's exam 2 then shows beside every other problem.
    instead : str, optional
        What is asked instead of the problem (`--no-data`).

    Raises
    ------
    UsageError
        No exam there, or a file that is no problem, naming it.
    """
    folders = _exam_folders(root)
    hashes: dict[str, str] = {}
    notes: dict[str, str] = {}
    samples = []
    for folder in folders:
        problems: dict[int, Fragment] = {}
        for path in sorted(folder.glob("problem*.tex"), key=_numbers):
            problem = _read_problem(path, hashes)
            if problem.number in problems:
                raise UsageError(f"{path}: problem {problem.number} stands in another file, too")
            problems[problem.number] = problem
        shown, notes[folder.name] = _note(folder / "Note.md", note, hashes)
        for problem in problems.values():
            samples.append(_sample(folder.name, problem, problems, shown, instead))
    return Exams(samples=samples, sha256=sha256_of(hashes), notes=notes)


def read_fragment(text: str, where: object) -> Fragment:
    r"""Read one problem.

    Parameters
    ----------
    text : str
    where : object
        The file's name, for errors.

    Raises
    ------
    UsageError
        No heading, several, or one without points.

    Examples
    --------
    >>> read_fragment("Definitions.\n\\paragraph{Problem 2 (18 points)} Show it.", "x.tex").points
    18
    """
    headings = list(_HEADING.finditer(text))
    if not headings:
        raise UsageError(f"{where}: no heading \\paragraph{{Problem k (P points)}}")
    if len(headings) > 1:
        raise UsageError(
            f"{where}: {len(headings)} headings of problems, and one belongs in a file"
        )
    heading = headings[0]
    points = int(heading["points"] or 0)
    if points < 1:
        raise UsageError(
            f"{where}: its heading says no points: write (18 points) behind the number"
        )
    before, body = text[: heading.start()].strip(), text[heading.start() :].strip()
    if not text[heading.end() :].strip():
        raise UsageError(f"{where}: nothing stands after its heading")
    return Fragment(number=int(heading["number"]), points=points, before=before, text=body)


def _exam_folders(root: Path) -> list[Path]:
    for name in FOLDERS:
        found = [path.parent for path in (root / name).glob("exam*/problem*.tex")]
        if found:
            return sorted(set(found), key=_numbers)
    raise UsageError(
        f"no exam1/problem1.tex in {root}/data/proof_problems, {root}/data/Proof or {root}: "
        "give --data-root the folder of the upstream repository"
    )


def _numbers(path: Path) -> tuple[list[int], str]:
    return [int(number) for number in _NUMBER.findall(path.name)], path.name


def _read_problem(path: Path, hashes: dict[str, str]) -> Fragment:
    problem = read_fragment(_read(path, hashes), path)
    if [problem.number] != _numbers(path)[0]:
        raise UsageError(f"{path}: its heading says problem {problem.number}")
    return problem


def _read(path: Path, hashes: dict[str, str]) -> str:
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise UsageError(f"{path} is empty")
    hashes[f"{path.parent.name}/{path.name}"] = hashlib.sha256(raw).hexdigest()
    return text


def _note(path: Path, wanted: str, hashes: dict[str, str]) -> tuple[str, str]:
    """Give the note to show, or none, and what became of it."""
    if not path.is_file():
        return "", "there is none"
    text = _read(path, hashes)
    if wanted == "off":
        return "", "left out"
    if wanted == "auto" and _HEADING.search(text):
        return "", "left out: it is itself a problem"
    return text.strip(), "shown with every problem"


def _sample(
    exam: str,
    problem: Fragment,
    problems: Mapping[int, Fragment],
    note: str,
    instead: str | None,
) -> Sample:
    asked = "\n\n".join(_asked(problem, problems, note))
    whole = {"id": "whole", "points": problem.points, "criterion": WHOLE}
    return Sample(
        item_id=f"proof-{exam}-{problem.number}",
        input=asked if instead is None else instead,
        category=exam,
        metadata={
            "title": "",
            "points": problem.points,
            "statement": asked,
            "rubric": [whole],
            "common_errors": [],
        },
    )


def _asked(problem: Fragment, problems: Mapping[int, Fragment], note: str) -> list[str]:
    """Give a problem with all that it rests on, in the order in which it is read."""
    parts = [note] if note else []
    earlier = [one for number, one in problems.items() if number < problem.number]
    parts += [one.before for one in earlier if one.before]
    named = {int(number) for number in _NAMED.findall(problem.text)} - {problem.number}
    parts += [
        f"(For reference only, not to be proved here.) {problems[number].text}"
        for number in sorted(named & problems.keys())
    ]
    return [*parts, *filter(None, [problem.before]), problem.text]
