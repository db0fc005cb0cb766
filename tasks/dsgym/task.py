"""DSGym: data questions answered by running code, and prediction contests.

Paper     arXiv 2601.16344 (ICML 2026)
Source    github.com/fannie1208/DSGym; MIT is said of the code, nothing of the questions that it took
          from other benchmarks, so nothing of it comes with this project: `--data-root DIR` reads a
          copy of your own
Own items data/dsgym: 46 questions over generated tables, three contests (Apache-2.0)
Protocol  turns with a Python that keeps its state, up to 15; the answer between <answer> tags, or
          for a contest the file submission.csv
Switches  turns=N                   replies of the model, 15
          profile=both|upstream|strict  how an answer is judged, see scorers/data_answer.py
          reference=hidden|shown    the textbook reference of QRData, shown by upstream
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from harness.core.errors import HarnessError, UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from harness.solvers.environment import Environment, EnvironmentRequest
from scorers.data_answer import EMPTY
from tasks.dsgym import rows
from tasks.dsgym.kernel import Kernel
from tasks.dsgym.own import own_questions, own_root
from tasks.dsgym.rows import Question, file_hashes, host_file

if TYPE_CHECKING:
    from harness.sandbox import Limits

SYSTEM = """\
You are a data scientist. You answer questions about data by writing and running Python, step by \
step: look at the data before you trust them, check what you compute, and answer only what you have \
computed. Reason briefly in <reasoning> tags before every step."""

INSTRUCTIONS = """\
Work with the files in place; there is no network and nothing can be installed. When you know the \
answer, hand it in: nothing but the answer, exactly in the form that is asked for."""

PACKAGES = ("numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "networkx", "pyarrow")
CELL_S = 600.0
"""Seconds of one cell, upstream's limit."""
TOTAL_S = 3600.0
UPSTREAM = {
    "license": "MIT is said of the code; the questions are other benchmarks'",
    "source": "github.com/fannie1208/DSGym",
    "paper": "arXiv 2601.16344",
}
OWN = {"license": "Apache-2.0", "source": "data/make/dsgym", "paper": "arXiv 2601.16344"}


PROMPT = """\
# QUESTION
{{ input }}{% for heading, text in metadata.sections %}

# {{ heading }}
{{ text }}{% endfor %}"""


def to_sample(question: Question, root: Path) -> Sample:
    """Make the item that is asked."""
    sections = [
        ("CONTEXT", question.context),
        *question.sections,
        ("DATA FILES", "\n".join(question.files)),
        ("INSTRUCTIONS", INSTRUCTIONS),
    ]
    return Sample(
        item_id=question.item_id,
        input=question.question,
        # An empty answer is written so that it can be told from none.
        target=(question.gold or EMPTY,),
        category=question.category,
        cluster_id=question.cluster,
        metadata={
            "sections": [[heading, text] for heading, text in sections if text],
            "rule": question.rule,
            "answer_type": question.answer_type,
            "options": list(question.options),
            "files": list(question.files),
            "files_sha256": file_hashes(root, question.files),
            "without": question.without,
            **question.facts,
        },
    )


def environment(
    sample: Sample,
    request: EnvironmentRequest,
    *,
    root: Path,
    no_data: bool,
    submission: bool = False,
) -> Environment:
    """Make the place where an item is worked on; of a contest the truth is nowhere in it.

    Raises
    ------
    HarnessError
        The item cannot be asked here, and why.
    """
    if sample.metadata["without"]:
        raise HarnessError(f"{sample.item_id}: {sample.metadata['without']}")
    data = {file: host_file(root, file) for file in sample.metadata["files"]}
    return Kernel(
        level=request.level, limits=limits(), data=data, withheld=no_data, submission=submission
    )


def agent(request: TaskRequest, *, run_last: bool = True) -> str:
    """Give the SPEC of the solver, with as many replies as the switch ``turns`` says.

    Raises
    ------
    UsageError
        For a number of replies that is none.
    """
    turns = request.args.get("turns", "15")
    if not turns.isdecimal() or int(turns) < 1:
        raise UsageError(f"--arg turns={turns} is no number of replies")
    last = "true" if run_last else "false"
    return f"agent?protocol=tags&max_turns={turns}&wall_s={TOTAL_S:g}&run_last={last}"


def limits() -> Limits:
    """Give the limits of a box: upstream's 600 s a cell and 2 GB."""
    import msgspec

    from harness.sandbox import LIMITS

    return msgspec.structs.replace(LIMITS["cell"], wall_s=CELL_S, cpu_s=TOTAL_S)


def toolset() -> dict[str, Any]:
    """Say what a cell's output depends on: the libraries' versions and the limits."""
    import msgspec

    found = {"name": "dsgym-1", "python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return {**found, "limits": msgspec.to_builtins(limits())}


def gold(sample: Sample) -> str:
    """Say what a perfect model would hand in."""
    return sample.target[0]


def guess(sample: Sample, rng: Random) -> str:
    """Guess: one of the options, else a small number; pairs keep their names."""
    from scorers.answer_types import read_type

    kind = read_type(sample.metadata["answer_type"])
    if kind.name == "pairs":
        return " ".join(f"@{name}[{rng.randrange(100)}]" for name, _ in kind.fields)
    options: Sequence[str] = sample.metadata["options"]
    if options:
        at = rng.randrange(len(options))
        return chr(ord("A") + at) if kind.name == "letter" else options[at]
    return str(rng.randrange(100))


def _task(
    name: str, questions: Sequence[Question], root: Path, request: TaskRequest, *switches: str
) -> Task:
    profile = request.choose("profile", ("both", "upstream", "strict"))
    own = name in OWN_NAMES
    lead = "strict" if own else "upstream"
    minutes = {q.item_id: q.minutes for q in questions if q.minutes is not None}
    return Task(
        name=f"dsgym/{name}",
        version="1",
        samples=[to_sample(question, root) for question in questions],
        prompt=PROMPT,
        system=SYSTEM,
        gold=gold,
        guess=guess,
        solver=agent(request, run_last=profile != "upstream"),
        scorer=f"data_answer?profile={profile}&headline={lead}",
        generation=Generation(max_tokens=1524),
        environment=partial(environment, root=root, no_data=request.no_data),
        toolset=toolset(),
        withholds="the data files: their folders are empty",
        args=("profile", "turns", *switches),
        scorer_args=("profile",),
        human_minutes=minutes,
        human_time_source="a guess by the authors of the items" if minutes else "",
        info={"benchmark": f"DSGym {name}", **(OWN if own else UPSTREAM)},
    )


OWN_NAMES = ("own",)


def _root(name: str, request: TaskRequest) -> Path:
    if request.data_root is None:
        raise UsageError(f"dsgym/{name} needs --data-root: a copy of the upstream repository")
    return request.data_root


def daeval(request: TaskRequest) -> Task:
    """Make DAEval: 181 closed questions on tables."""
    root = _root("daeval", request)
    return _task("daeval", rows.daeval(root), root, request)


def qrdata(request: TaskRequest) -> Task:
    """Make QRData: 251 statistical and causal questions."""
    root = _root("qrdata", request)
    shown = request.choose("reference", ("hidden", "shown")) == "shown"
    return _task("qrdata", rows.qrdata(root, reference=shown), root, request, "reference")


def dabstep(request: TaskRequest) -> Task:
    """Make DABStep: 450 questions on payments without public answers, and 10 with."""
    root = _root("dabstep", request)
    return _task("dabstep", rows.dabstep(root), root, request)


def dsbio(request: TaskRequest) -> Task:
    """Make DSBio: 90 questions on the data of biology papers."""
    root = _root("dsbio", request)
    return _task("dsbio", rows.dsbio(root), root, request)


def own(request: TaskRequest) -> Task:
    """Make the own questions: 46 over generated tables."""
    root = request.data_root or own_root()
    return _task("own", own_questions(root), root, request)
