"""DiscoveryBench as DSGym has it: find a hypothesis in data; a judge compares it with the authors'.

Source    allenai/discoverybench, by way of github.com/fannie1208/DSGym; nothing of it comes with this
          project: `--data-root DIR` reads a copy of your own
Protocol  as the other questions (tasks/dsgym/task.py); the answer is a hypothesis in words
Switches  turns=N             replies of the model, 15
          run_last=on|off     whether code of the last reply is run (upstream: off)
          metric=match|hms    which figure is the value, see scorers/discovery.py
"""

from __future__ import annotations

from functools import partial
from random import Random

import msgspec

from harness.core.errors import UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from tasks.dsgym import rows
from tasks.dsgym.task import (
    PROMPT,
    SYSTEM,
    UPSTREAM,
    agent,
    environment,
    gold,
    to_sample,
    toolset,
)

ANSWER_FORM = """\
A hypothesis in one to three sentences: the cases it holds for, the variables, and the relation between \
them, with the direction and the figures that you found."""


def guess(sample: Sample, rng: Random) -> str:
    """Say of what is asked that it rises, falls or does not change: a claim that anyone could make."""
    del sample
    return f"The relation is {rng.choice(('positive', 'negative', 'absent'))}."


def discoverybench(request: TaskRequest) -> Task:
    """Make DiscoveryBench: 239 questions whose answer is a hypothesis.

    Raises
    ------
    UsageError
        No `--data-root`, or a switch that cannot be read.
    """
    if request.data_root is None:
        raise UsageError(
            "dsgym/discoverybench needs --data-root: a copy of the upstream repository"
        )
    root = request.data_root
    metric = request.choose("metric", ("match", "hms"))
    run_last = request.choose("run_last", ("on", "off")) == "on"
    questions = [
        msgspec.structs.replace(one, sections=(*one.sections, ("ANSWER FORM", ANSWER_FORM)))
        for one in rows.discoverybench(root)
    ]
    return Task(
        name="dsgym/discoverybench",
        version="1",
        samples=[to_sample(question, root) for question in questions],
        prompt=PROMPT,
        system=SYSTEM,
        gold=gold,
        guess=guess,
        solver=agent(request, run_last=run_last),
        scorer=f"discovery?metric={metric}",
        generation=Generation(max_tokens=1524),
        environment=partial(environment, root=root, no_data=request.no_data),
        toolset=toolset(),
        withholds="the data files: their folders are empty",
        args=("turns", "run_last", "metric"),
        scorer_args=("metric",),
        info={"benchmark": "DSGym discoverybench", **UPSTREAM},
    )
