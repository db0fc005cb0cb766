"""Rule2DRC, part two: choosing one of several decks for a rule, without labels.

Paper     arXiv 2605.15669 (ICML 2026)
Own items data/rule2drc/pools.jsonl: a pool of ten decks for each own task of part one (Apache-2.0)
Protocol  plain: the model sees all decks and replies with the index of one. With
          `--solver select?by=split_tester` (or generated_tests, codemonkey, s_star, llm_judge) it is
          asked what that way of choosing asks, and the answer is the index that comes of it
Switches  candidates=FILE         pools of your own: lines of {pool_id, problem_id, candidates, success?}
          context=none|docs       docs: a documentation file stands before every question
          docs=FILE               that file
          engine=klayout|regions  the program, or our interpreter of a part of its language
"""

from __future__ import annotations

from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.resources import data
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from harness.solvers.environment import EnvironmentRequest
from tasks.readers import read_rows
from tasks.rule2drc.bench import SCRIPT_S, DrcBench, make_bench
from tasks.rule2drc.loader import load
from tasks.rule2drc.script import (
    OWN,
    UPSTREAM,
    documentation,
    minutes_of,
    missing,
    to_sample,
    version_with,
)

SYSTEM = """\
You are an engineer for physical verification. You examine DRC decks for KLayout, and you reply with \
the number of one deck and nothing else."""

PROMPT = """\
{% if metadata.docs %}<documentation>
{{ metadata.docs }}
</documentation>

{% endif %}Decks were written for this task. Choose one that is right.

Task: {{ metadata.title }}
{{ input }}

Layers, as name = (layer, datatype):
{% for name, at in metadata.layers.items() %}{{ name }} = ({{ at[0] }}, {{ at[1] }})
{% endfor %}
{% if metadata.rules %}Rules, each with the category that its violations are reported under:
{% for rule in metadata.rules %}{{ rule.text }} -> output category "{{ rule.category }}"
{% endfor %}{% endif %}
{% for deck in metadata.candidates %}Deck {{ loop.index0 }}:
```ruby
{{ deck }}
```

{% endfor %}A deck is right when every category is reported on exactly those layouts that violate its \
rule. Reply with its number alone: 0 to {{ metadata.candidates | length - 1 }}."""


class PoolRow(Struct, kw_only=True):
    """A pool: decks for one problem in the order drawn, and which of them are right, where known."""

    pool_id: str
    problem_id: str
    candidates: list[str]
    success: list[int] = []


def read_pools(path: Path) -> tuple[list[PoolRow], str]:
    """Read pools, with the file's hash.

    Raises
    ------
    UsageError
        A pool without candidates, or with another number of successes.
    """
    rows, digest = read_rows(path, PoolRow)
    for row in rows:
        if not row.candidates:
            raise UsageError(f"{path}: the pool {row.pool_id!r} has no candidates")
        if row.success and (
            len(row.success) != len(row.candidates) or not set(row.success) <= {0, 1}
        ):
            raise UsageError(
                f"{path}: success of pool {row.pool_id!r} must be a 0 or 1 for each candidate"
            )
    return rows, digest


def gold(sample: Sample) -> str:
    """Give the lowest right index; empty where none is known to be right."""
    success = sample.metadata["success"]
    return str(success.index(1)) if 1 in success else ""


def gold_value(sample: Sample) -> float:
    """Give what gold scores: 0 where no candidate is known to be right."""
    return float(any(sample.metadata["success"]))


def guess(sample: Sample, rng: Random) -> str:
    """Guess an index."""
    return str(rng.randrange(len(sample.metadata["candidates"])))


def environment(sample: Sample, request: EnvironmentRequest, *, engine: str) -> DrcBench:
    """Make the bench on which the candidates are run."""
    return make_bench(sample, sample.metadata["candidates"], request, engine)


def toolset(engine: str) -> dict[str, Any]:
    """Say what the bench depends on beside the layouts."""
    found: dict[str, Any] = {"name": "rule2drc-bench-1", "engine": engine, "script_s": SCRIPT_S}
    try:
        found["klayout"] = version("klayout")
    except PackageNotFoundError:
        found["klayout"] = "missing"
    return found


def select(request: TaskRequest) -> Task:
    """Make the task `rule2drc/select`.

    Raises
    ------
    UsageError
        For data, pools or switches that cannot be read, or pools for unknown problems.
    """
    engine = request.choose("engine", ("klayout", "regions"))
    docs = documentation(request)
    loaded = load(request, OWN, UPSTREAM)
    problems = {problem.problem_id: problem for problem in loaded.problems}
    file = request.args.get("candidates")
    if file is None and not loaded.own:
        raise UsageError("rule2drc/select has pools for own items only: give --arg candidates=FILE")
    path = Path(file) if file else data("rule2drc") / "pools.jsonl"
    pools, digest = read_pools(path)
    samples = []
    for pool in pools:
        if pool.problem_id not in problems:
            raise UsageError(
                f"{path}: pool {pool.pool_id!r} is of the unknown task {pool.problem_id!r}"
            )
        asked = to_sample(problems[pool.problem_id], docs, no_data=request.no_data)
        about = {"candidates": pool.candidates, "success": pool.success, "problem": pool.problem_id}
        samples.append(
            msgspec.structs.replace(
                asked, item_id=pool.pool_id, metadata={**asked.metadata, **about}
            )
        )
    minutes = minutes_of(samples)
    return Task(
        name="rule2drc/select",
        version=version_with(engine),
        samples=samples,
        prompt=PROMPT,
        system=SYSTEM,
        gold=gold,
        gold_value=gold_value,
        guess=guess,
        scorer=f"drc_choice?engine={engine}",
        metric="success",
        generation=Generation(max_tokens=16384),
        environment=partial(environment, engine=engine),
        missing=partial(missing, engine=engine),
        toolset=toolset(engine),
        args=("candidates", "context", "docs", "engine"),
        human_minutes=minutes,
        human_time_source="a guess by the authors of the items" if minutes else "",
        info={**loaded.info, "dataset_sha256": loaded.sha256, "pools_sha256": digest,
              "paper": "arXiv 2605.15669"},
    )  # fmt: skip
