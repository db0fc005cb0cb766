"""AICrypto, proofs: problems of cryptography, each proof graded by judges against a rubric.

Paper     arXiv 2507.09580 (ICML 2026)
Source    github.com/wangyu-ovo/aicrypto-agent, 18 of 30 problems and neither rubric nor reference;
          no licence was found, so nothing of it comes with this project: `--data-root DIR` reads a
          copy of your own (see proof_upstream.py)
Own items data/aicrypto/proof/, 12 problems with rubric, reference proof and four graded answers
Protocol  one turn and a fresh context for each problem; the part under "## Proof" is graded;
          points won / points possible
Switches  note=auto|on|off  show an exam's note (data of others only); auto leaves it out where it
                            is itself a problem
          repeats=N         how often each judge is asked
          solved=SHARE      share of the points from which on a proof counts as solved
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from harness.core import resources
from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.spec import Spec
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from scorers.rubric_prompt import Criterion
from tasks.aicrypto.proof_upstream import read_exams

SYSTEM = """\
You are an expert in theoretical cryptography. You write proofs that are complete and rigorous: \
every reduction is spelt out, every probability is computed, every claim has its reason."""

PROMPT = """\
{% if metadata.title %}{{ metadata.title }} ({{ metadata.points }} points)

{% endif %}{{ input }}

Think first, then write the whole proof under a heading "## Proof". Only what stands under that \
heading is graded, and it must be understood without the rest. LaTeX is welcome."""

OWN = {
    "benchmark": "AICrypto proof, own items",
    "license": "Apache-2.0",
    "source": "data/aicrypto/proof",
    "graded": "with a rubric and a reference proof",
}
UPSTREAM = {
    "benchmark": "AICrypto proof",
    "license": "none found: do not pass on",
    "source": "github.com/wangyu-ovo/aicrypto-agent",
    "graded": "without a reference: a judge gives the problem's points as one criterion, whole",
}
# Switches that the scorer reads, and what they are unless somebody says otherwise.
SCORING = {"repeats": "1", "solved": "0.8"}
WITHHELD = "(problem withheld)"
NO_PROOF = """\
Suppose the claim were false. Then there is an efficient adversary against it, which contradicts the \
security of the building blocks. Hence the claim holds."""

Text = Annotated[str, Meta(min_length=1)]
Points = Annotated[int, Meta(ge=0)]


class Graded(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer with the points that a judge should give.

    Attributes
    ----------
    points : dict
        By criterion, before a fatal criterion takes all.
    why : str
        What is right and what is missing.
    text : str
        The proof; left out for the reference and for the empty answer.
    """

    points: dict[str, Points]
    why: Text
    text: str = ""


class Answers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The four graded answers of a problem."""

    reference: Graded
    half: Graded
    wrong: Graded
    empty: Graded


class Problem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One problem, as its file has it."""

    id: Annotated[str, Meta(pattern=r"^\w+$")]
    label: Text
    title: Text
    statement: Text
    points: Annotated[int, Meta(ge=1)]
    rubric: Annotated[list[Criterion], Meta(min_length=1)]
    reference: Text
    common_errors: list[Text]
    answers: Answers

    @property
    def item_id(self) -> str:
        """Its stable name among all items."""
        return f"own-proof-{self.id}"

    def graded(self) -> dict[str, tuple[str, dict[str, int]]]:
        """Give the four answers by kind: the proof and its points by criterion."""
        texts = {
            "reference": self.reference,
            "half": self.answers.half.text,
            "wrong": self.answers.wrong.text,
            "empty": "",
        }
        return {
            kind: (text.strip(), getattr(self.answers, kind).points) for kind, text in texts.items()
        }


def read_problem(path: Path) -> Problem:
    """Read one problem and check what types cannot say.

    Raises
    ------
    UsageError
        Naming file and field.
    """
    try:
        problem = msgspec.toml.decode(path.read_bytes(), type=Problem)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {' '.join(str(error).replace('`', '').split())}") from error
    if faults := _faults(problem):
        field, why = faults[0]
        raise UsageError(f"{path}: field {field!r}: {why}")
    return problem


def read_problems(folder: Path) -> list[Problem]:
    """Read all problems of a folder, in the order of their files' names.

    Raises
    ------
    UsageError
        There is none, one cannot be read, or an id is used twice.
    """
    problems: dict[str, Problem] = {}
    for path in sorted(folder.glob("*.toml")):
        problem = read_problem(path)
        if problem.id in problems:
            raise UsageError(f"{path}: field 'id': {problem.id!r} is used twice")
        problems[problem.id] = problem
    if not problems:
        raise UsageError(f"no problems in {folder}: it holds no *.toml")
    return list(problems.values())


def _faults(problem: Problem) -> list[tuple[str, str]]:
    """List (field, what is wrong) for all that types cannot say."""
    ids = [one.id for one in problem.rubric]
    most = {one.id: one.points for one in problem.rubric}
    faults = [("rubric.id", f"{i!r} is used twice") for i in sorted(set(ids)) if ids.count(i) > 1]
    faults += [
        (f"rubric.{one.id}", "needs at least 1 point and a criterion in words")
        for one in problem.rubric
        if one.points < 1 or not one.criterion.strip()
    ]
    if sum(most.values()) != problem.points and not faults:
        total = sum(most.values())
        faults.append(("rubric", f"its points sum to {total}, the problem has {problem.points}"))
    none = dict.fromkeys(most, 0)
    fixed = {"reference": most, "empty": none}
    for kind in msgspec.structs.fields(Answers):
        answer: Graded = getattr(problem.answers, kind.name)
        where = f"answers.{kind.name}"
        if answer.points.keys() != most.keys():
            faults.append((f"{where}.points", f"must name the criteria {', '.join(most)}"))
            continue
        beyond = [i for i, points in answer.points.items() if points > most[i]]
        faults += [(f"{where}.points.{i}", f"{answer.points[i]} of {most[i]}") for i in beyond]
        if kind.name in fixed and answer.points != fixed[kind.name] and not beyond:
            faults.append((f"{where}.points", f"must be {fixed[kind.name]}"))
        if (kind.name in fixed) == bool(answer.text.strip()):
            faults.append((f"{where}.text", "belongs to half and wrong, and to no other answer"))
    return faults


def to_sample(problem: Problem, *, no_data: bool = False) -> Sample:
    """Make the item that is asked; the judge sees the statement even with `no_data`."""
    statement = problem.statement.strip()
    graded = problem.graded()
    return Sample(
        item_id=problem.item_id,
        input=WITHHELD if no_data else statement,
        target=(graded["reference"][0],),
        category=problem.label,
        metadata={
            "title": "" if no_data else problem.title,
            "points": problem.points,
            "statement": statement,
            "rubric": msgspec.to_builtins(problem.rubric),
            "common_errors": problem.common_errors,
            "wrong_proof": graded["wrong"][0],
        },
    )


def gold(sample: Sample) -> str:
    """Say what a perfect model would: the reference proof in the form asked for.

    Of upstream's problems no reference is known; then gold says nothing and scores 0.
    """
    return answer_of(sample.target[0]) if sample.target else ""


def gold_value(sample: Sample) -> float:
    """Give what `gold` scores."""
    return 1.0 if sample.target else 0.0


def guess(sample: Sample, rng: Random) -> str:
    """Give a well-formed wrong proof; there is nothing to draw."""
    del rng
    return answer_of(sample.metadata.get("wrong_proof", NO_PROOF))


def answer_of(proof: str) -> str:
    """Write a proof in the form that is asked for."""
    return f"## Proof\n{proof}"


def proof(request: TaskRequest) -> Task:
    """Make the task.

    Parameters
    ----------
    request : TaskRequest
        With `data_root`: a folder in upstream's layout. Switches: `note`, `repeats`, `solved` (see
        the top of this file).

    Raises
    ------
    UsageError
        For data that cannot be read, or a switch with an unknown value.
    """
    note = request.choose("note", ("auto", "on", "off"))
    options = {key: request.args.get(key, value) for key, value in SCORING.items()}
    samples, info = _items(request, note)
    return Task(
        name="aicrypto/proof",
        version="1",
        samples=samples,
        prompt=PROMPT,
        system=SYSTEM,
        gold=gold,
        gold_value=gold_value,
        guess=guess,
        scorer=str(Spec("rubric", options)),
        metric="points_share",
        generation=Generation(max_tokens=4096),
        args=("note", *SCORING),
        scorer_args=tuple(SCORING),
        info={
            **info,
            "paper": "arXiv 2507.09580",
            "points_possible": sum(sample.metadata["points"] for sample in samples),
            "solved_from": options["solved"],
        },
    )


def _items(request: TaskRequest, note: str) -> tuple[Sequence[Sample], dict[str, Any]]:
    """Read the items, and say where they are from."""
    if request.data_root is not None:
        exams = read_exams(request.data_root, note, WITHHELD if request.no_data else None)
        return exams.samples, {**UPSTREAM, "dataset_sha256": exams.sha256, "notes": exams.notes}
    folder = resources.data("aicrypto/proof")
    problems = read_problems(folder)
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.toml"))}
    hashes = {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}
    samples = [to_sample(problem, no_data=request.no_data) for problem in problems]
    return samples, {**OWN, "dataset_sha256": sha256_of(hashes)}
