"""Op-CAD: the next operation of a part, or the whole part, as a CadQuery program judged by its solid.

Paper     Bai, Gu, Xie, "Op-CAD", PMLR v306 bai26a
Source    github.com/Baiyixue01/op-cad (MIT); `--data-root DIR` reads its folder
Own items data/op_cad/sequences.jsonl: 84 parts of 12 families, 420 steps (Apache-2.0)
Protocol  step: code so far and an instruction; the new solid and the model after it are compared.
          sequence: all instructions at once; the finished part is compared
Switches  mode=plain|cop      cop: the code so far carries each step's instruction (step)
          inputs=text+code    what is shown: text, code, image, points, step, joined by + (step)
          points=128          rows of a point cloud
          op=all|extrude|revolve|chamfer_fillet   steps of one kind (step)
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from harness.core.errors import UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, ImagePart, Message, Sample, TextPart
from scorers.op_cad.engine import missing_engine
from tasks.op_cad.loader import OPS, Loaded, Part, Step, load
from tasks.op_cad.modalities import States, shown_text
from tasks.op_cad.prompts import SYSTEM, part_prompt, step_prompt

INPUTS = ("text", "code", "image", "points", "step")
OWN = {"benchmark": "Op-CAD-like, own items", "license": "Apache-2.0", "source": "data/make/op_cad"}
UPSTREAM = {"benchmark": "Op-CAD", "license": "MIT", "source": "github.com/Baiyixue01/op-cad"}
PAPER = "PMLR v306 bai26a"


def step(request: TaskRequest) -> Task:
    """Make the task `op_cad/step`: one operation after given code.

    Raises
    ------
    UsageError
        For data or switches that cannot be read.
    """
    cop = request.choose("mode", ("plain", "cop")) == "cop"
    op = request.choose("op", ("all", *OPS))
    inputs = _inputs(request)
    count = _count(request)
    loaded = load(request)
    chosen = [(part, one) for part in loaded.parts for one in part.steps if op in ("all", one.op)]
    states = States() if {"image", "points", "step"} & set(inputs) else None
    samples = [
        _step_sample(part, one, loaded, states, inputs=inputs, count=count, cop=cop,
                     no_data=request.no_data)
        for part, one in chosen
    ]  # fmt: skip
    if states is not None:
        states.close()
    return _task(
        "step", samples, loaded, _step_guess, ("mode", "inputs", "points", "op"), max_tokens=4096
    )


def sequence(request: TaskRequest) -> Task:
    """Make the task `op_cad/sequence`: a whole part from all its instructions.

    Raises
    ------
    UsageError
        For data that cannot be read.
    """
    loaded = load(request)
    if not loaded.own:
        raise UsageError(
            "op_cad/sequence has own items only: upstream's folder holds no whole scripts"
        )
    samples = [_part_sample(part, no_data=request.no_data) for part in loaded.parts]
    return _task("sequence", samples, loaded, _part_guess, (), max_tokens=8192)


def _task(
    protocol: str, samples: list[Sample], loaded: Loaded, guess: Callable[[Sample, Random], str],
    args: tuple[str, ...], *, max_tokens: int,
) -> Task:  # fmt: skip
    info: dict[str, Any] = {**(OWN if loaded.own else UPSTREAM), "dataset_sha256": loaded.sha256}
    return Task(
        name=f"op_cad/{protocol}",
        version="1",
        samples=samples,
        prompt="{{ input }}",
        system=SYSTEM,
        gold=gold,
        gold_value=lambda sample: float(bool(sample.target)),
        guess=guess,
        scorer="op_cad",
        metric="correct",
        generation=Generation(max_tokens=max_tokens),
        missing=lambda sample: missing_engine() or str(sample.metadata["why_not"]),
        args=args,
        info={**info, "paper": PAPER},
    )


def gold(sample: Sample) -> str:
    """Say what a perfect model would: the true code in one block."""
    return f"```python\n{sample.target[0].rstrip()}\n```" if sample.target else ""


def _step_sample(
    part: Part, one: Step, loaded: Loaded, states: States | None, *, inputs: tuple[str, ...],
    count: int, cop: bool, no_data: bool,
) -> Sample:  # fmt: skip
    shown, image, why = "", "", ""
    if states is not None:
        shown, why = shown_text(states, one, inputs, count)
        image = states.image(one) if "image" in inputs and not why else ""
    text = step_prompt(one, cop=cop, shown=shown, code="code" in inputs, no_data=no_data)
    asked: Any = text
    if image:
        asked = (
            Message("system", SYSTEM),
            Message("user", (TextPart(text), ImagePart(f"data:image/png;base64,{image}"))),
        )
    about = {
        "protocol": "step", "op": one.op, "before": one.before, "truth": one.truth,
        "truth_files": one.truth_files, "truth_calls": one.truth_calls,
        "root": str(loaded.root) if one.truth_files else "", "step": one.number,
        "n_steps": len(part.steps), "family": part.family, "why_not": why,
    }  # fmt: skip
    return Sample(
        item_id=one.group_index, input=asked, target=(one.truth,) if one.truth else (),
        category=one.op, cluster_id=part.group_id, metadata=about,
    )  # fmt: skip


def _part_sample(part: Part, *, no_data: bool) -> Sample:
    changes = [abs(one.change) for one in part.steps if one.change is not None]
    return Sample(
        item_id=part.group_id,
        input=part_prompt(part, no_data=no_data),
        target=(part.script,),
        category=part.family,
        cluster_id=part.family,
        metadata={
            "protocol": "sequence", "op": "sequence", "before": "", "truth": part.script,
            "least_change": min(changes), "n_steps": len(part.steps), "family": part.family, "why_not": "",
        },
    )  # fmt: skip


def _step_guess(sample: Sample, rng: Random) -> str:
    """Guess: a box somewhere, joined to the model."""
    about = sample.metadata
    sides = [rng.randrange(2, 60) for _ in range(3)]
    last = f"result_{about['step'] - 1}.union(shape)" if about["before"] else "shape"
    head = "" if about["before"] else "import cadquery as cq\n"
    return f"```python\n{head}#shape\nshape = cq.Workplane('XY').box{tuple(sides)}\n#bool\nresult = {last}\n```"


def _part_guess(sample: Sample, rng: Random) -> str:
    """Guess: a box."""
    del sample
    sides = tuple(rng.randrange(10, 120) for _ in range(3))
    return f"```python\nimport cadquery as cq\nresult = cq.Workplane('XY').box{sides}\n```"


def _inputs(request: TaskRequest) -> tuple[str, ...]:
    given = tuple(request.args.get("inputs", "text+code").split("+"))
    if len(set(given)) != len(given) or not set(given) <= set(INPUTS) or "text" not in given:
        raise UsageError(
            f"--arg inputs={'+'.join(given)}: text and any of {', '.join(INPUTS[1:])}, joined by +"
        )
    return given


def _count(request: TaskRequest) -> int:
    given = request.args.get("points", "128")
    if not given.isdigit() or not 1 <= int(given) <= 2048:
        raise UsageError(f"--arg points={given} must be 1 to 2048")
    return int(given)
