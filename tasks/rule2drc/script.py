"""Rule2DRC, part one: from a design rule in words to a deck, judged by running it.

Paper     arXiv 2605.15669 (ICML 2026)
Source    github.com/snu-mllab/Rule2DRC at 1d011cf (MIT); on a hub as jusjinuk/Rule2DRC, configs tasks
          and testcases: `--data hub:jusjinuk/Rule2DRC@REV`
Own items data/rule2drc: 51 tasks of 17 families with 12 to 16 layouts each (Apache-2.0)
Protocol  one turn, code only; the deck of the first code block is run on every layout
Switches  context=none|docs       docs: a documentation file stands before the prompt
          docs=FILE               that file; none comes with this project
          engine=klayout|regions  the program, or our interpreter of a part of its language
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from harness.core.errors import UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from harness.solvers.environment import EnvironmentRequest
from scorers.drc.scorer import missing_engine
from tasks.rule2drc.bench import DrcBench, make_bench
from tasks.rule2drc.loader import Problem, load
from tasks.rule2drc.prompts import PROMPT, SYSTEM, SYSTEM_DOCS, WITHHELD

OWN = {
    "benchmark": "Rule2DRC-like, own items",
    "license": "Apache-2.0",
    "source": "data/make/rule2drc",
}
UPSTREAM = {
    "benchmark": "Rule2DRC",
    "license": "MIT",
    "source": "github.com/snu-mllab/Rule2DRC",
}
MINUTES = {1: 6.0, 2: 12.0, 3: 20.0}
"""How long an engineer needs for a rule of each level, in minutes: a guess by the authors."""


def to_sample(problem: Problem, docs: str = "", *, no_data: bool = False) -> Sample:
    """Make the item that is asked.

    The layouts are for the scorer alone. With `no_data` the rule is withheld: names are left.
    """
    about = problem.metadata
    rules = [] if no_data else problem.rules
    return Sample(
        item_id=problem.problem_id,
        input=WITHHELD if no_data else problem.text,
        target=(problem.gold,),
        category=about.get("family"),
        cluster_id=about.get("family"),
        metadata={
            "title": problem.title,
            "layers": {name: list(at) for name, at in problem.layers.items()},
            "rules": [{"text": text, "category": category} for text, category in rules],
            "categories": list(problem.categories),
            "docs": docs,
            "layouts": [
                {"name": one.name, "gds": one.gds, "labels": list(one.labels)}
                for one in problem.layouts
            ],
            **{name: about[name] for name in ("family", "level", "dbu", "draw") if name in about},
        },
    )


def gold(sample: Sample) -> str:
    """Say what a perfect model would: the deck in one block."""
    return f"```ruby\n{sample.target[0].rstrip()}\n```"


def guess(sample: Sample, rng: Random) -> str:
    """Guess: a check of the first layer at a length out of the air."""
    about = sample.metadata
    name, (layer, datatype) = next(iter(about["layers"].items()))
    check = rng.choice(("width", "space", "notch", "isolated"))
    length = f"0.{rng.randrange(5, 30):02d}.um"
    lines = [
        "source($input)", f'report("{about["title"]}", $output)', f"{name} = input({layer}, {datatype})",
        *(f'{name}.{check}({length}).output("{category}")' for category in about["categories"]),
    ]  # fmt: skip
    return "```ruby\n" + "\n".join(lines) + "\n```"


def documentation(request: TaskRequest) -> str:
    """Read the documentation that is to stand before the prompt; nothing without it.

    Raises
    ------
    UsageError
        ``context=docs`` without a file, a file without ``context=docs``, one that cannot be read.
    """
    wanted = request.choose("context", ("none", "docs")) == "docs"
    file = request.args.get("docs")
    if wanted and not file:
        raise UsageError("--arg context=docs needs the documentation: --arg docs=FILE")
    if file and not wanted:
        raise UsageError("--arg docs=FILE stands before the prompt only with --arg context=docs")
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise UsageError(f"--arg docs={file}: {why}") from error


def minutes_of(samples: Sequence[Sample]) -> dict[str, float]:
    """Give the minutes of the items whose level is known."""
    return {s.item_id: MINUTES[s.metadata["level"]] for s in samples if "level" in s.metadata}


def version_with(engine: str) -> str:
    """Give the task's version: what our interpreter says is never put beside what KLayout says."""
    return "1" if engine == "klayout" else f"1-{engine}"


def missing(sample: Sample, engine: str) -> str:
    """Say why an item cannot be judged here."""
    del sample
    return missing_engine(engine)


def bench(
    sample: Sample, request: EnvironmentRequest, texts: tuple[str, ...], *, engine: str
) -> DrcBench:
    """Make the bench on which a strategy tries out an item's draws."""
    return make_bench(sample, texts, request, engine)


def script(request: TaskRequest) -> Task:
    """Make the task `rule2drc/script`.

    Raises
    ------
    UsageError
        For data or switches that cannot be read.
    """
    engine = request.choose("engine", ("klayout", "regions"))
    docs = documentation(request)
    loaded = load(request, OWN, UPSTREAM)
    samples = [to_sample(problem, docs, no_data=request.no_data) for problem in loaded.problems]
    minutes = minutes_of(samples)
    info: dict[str, Any] = {
        **loaded.info,
        "dataset_sha256": loaded.sha256,
        "paper": "arXiv 2605.15669",
    }
    if docs:
        info["docs_sha256"] = hashlib.sha256(docs.encode()).hexdigest()
    return Task(
        name="rule2drc/script",
        version=version_with(engine),
        samples=samples,
        prompt=PROMPT,
        system=f"{SYSTEM}\n{SYSTEM_DOCS}" if docs else SYSTEM,
        gold=gold,
        guess=guess,
        scorer=f"drc?engine={engine}",
        metric="success",
        generation=Generation(max_tokens=16384),
        bench=partial(bench, engine=engine),
        missing=partial(missing, engine=engine),
        args=("context", "docs", "engine"),
        data_sets=True,
        human_minutes=minutes,
        human_time_source="a guess by the authors of the items" if minutes else "",
        info=info,
    )
