"""AMS-SizingBench: choose transistor sizes so that simulated figures meet every specification.

Paper     "AutoSizer" with AMS-SizingBench, ICML 2026
Source    github.com/yuxi120407/AutoSizer (no licence): names, grids and targets are facts and are
          carried over, every netlist and bench is our own
Protocol  one_shot: one design. loop: designs up to a budget, all results shown. space: the model
          reduces the search space and an optimiser works in it (AutoSizer)
Switches  tech=sky130|demo|sky130-full   models of the transistors (harness fetch sky130)
          pdk=DIR                        a folder to take the models from
          level=2|1|3|upstream|all       targets: met by 5, 20, 1 % of random designs; upstream's own
          budget=10|30|100               simulations of loop and space
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from harness.core.errors import UsageError
from harness.core.task import Task, TaskRequest
from harness.core.types import Generation, Sample
from harness.solvers.environment import EnvironmentRequest
from scorers.spice.calibration import LEVELS
from scorers.spice.ngspice import missing_program, ngspice_version, readable_netlist
from scorers.spice.technology import NAMES, technology
from scorers.spice.technology import missing as missing_models
from tasks.ams_sizing.bench import Bench
from tasks.ams_sizing.loader import Problem, of_folder, own

VERSION = "1"
BUDGETS = ("10", "30", "100")
OWN = {"benchmark": "AMS-SizingBench", "license": "Apache-2.0 (netlists, benches, levels)",
       "source": "scorers/spice/circuits"}  # fmt: skip
UPSTREAM = {"benchmark": "AMS-SizingBench", "license": "none stated",
            "source": "github.com/yuxi120407/AutoSizer"}  # fmt: skip
SYSTEM = """\
You are an analogue designer. You choose sizes for a given circuit such that its simulation meets every \
specification, and you reply with JSON and nothing else."""
PROMPT = """\
Circuit: {{ metadata.title }}{% if metadata.wish %}
{{ metadata.wish }}{% endif %}

Netlist as it is simulated, 1.8 V supply unless it says otherwise; nch and pch are transistors (drain gate \
source bulk, w and l in um, m side by side), braces hold variables:
{{ input }}

Variables, each with the values that it may take (W and L in um, R in ohm, C in pF):
{% for name, grid in metadata.variables.items() %}{{ name }}: {{ grid | join(", ") }}
{% endfor %}
Specifications, all to be met:
{% for spec in metadata.specs %}{{ spec[0] }} {{ spec[1] }} {{ spec[2] }}{% if metadata.units[spec[0]] %} \
{{ metadata.units[spec[0]] }}{% endif %}
{% endfor %}
{{ metadata.form }}"""
WITHHELD = "(netlist and bench are withheld)"
ONE = 'Reply with one JSON object: a value for every variable, {"NAME": number}.'


def to_sample(problem: Problem, tech: str, budget: int, *, no_data: bool = False) -> Sample:
    """Make the item that is asked; with `no_data` netlist and bench are withheld."""
    circuit = problem.circuit
    netlist = readable_netlist(circuit)
    specs = [[spec.metric, spec.op, spec.target] for spec in problem.specs]
    return Sample(
        item_id=f"{circuit.name}/{tech}/{problem.level}",
        input=WITHHELD if no_data else f"{netlist}\n\nBench: {circuit.words}",
        target=(json.dumps(problem.gold),) if problem.gold else (),
        category=circuit.kind,
        cluster_id=circuit.name,
        metadata={
            "circuit": circuit.name, "title": circuit.title, "technology": tech, "level": problem.level,
            "netlist": "" if no_data else netlist, "words": "" if no_data else circuit.words,
            "form": ONE if budget == 1 else f"You have {budget} simulations in all.",
            "wish": problem.wish,
            "variables": {name: list(grid) for name, grid in circuit.variables.items()},
            "specs": specs, "units": {metric.name: metric.unit for metric in circuit.metrics},
            "budget": budget, "random_rate": problem.rate, "random_j": problem.random_j,
            "discriminating": problem.discriminating, "bench_differs": circuit.bench_differs,
            "circuit_version": circuit.version, "why_not": problem.why_not,
        },
    )  # fmt: skip


def gold(sample: Sample) -> str:
    """Give the best sizing that calibration found; nothing where none is known."""
    return sample.target[0] if sample.target else ""


def gold_value(sample: Sample) -> float:
    """Give what gold scores: 0 where no sizing is known to meet the targets."""
    return float(bool(sample.target))


def gold_space(sample: Sample) -> tuple[str, ...]:
    """Give gold in AutoSizer's words: a note, then a space in which all is fixed."""
    fixed = json.loads(gold(sample) or "{}")
    return (
        '{"topology": "known"}',
        json.dumps({"variables_to_optimize": {}, "variables_fixed": fixed}),
    )


def guess(sample: Sample, rng: Random) -> str:
    """Guess a design."""
    return json.dumps(
        {name: rng.choice(grid) for name, grid in sample.metadata["variables"].items()}
    )


def missing(sample: Sample, *, tech: str, pdk: Path | None) -> str:
    """Say why an item cannot be judged here."""
    return missing_program() or missing_models(tech, pdk) or str(sample.metadata["why_not"])


def environment(
    sample: Sample, request: EnvironmentRequest, *, tech: str, pdk: Path | None
) -> Bench:
    """Make the bench of an attempt."""
    return Bench(sample, request, tech=tech, pdk=pdk)


def one_shot(request: TaskRequest) -> Task:
    """Make the task `ams_sizing/one_shot`: one design, simulated once.

    Raises
    ------
    UsageError
        For data or switches that cannot be read.
    """
    return _task(request, "one_shot", 1)


def loop(request: TaskRequest) -> Task:
    """Make the task `ams_sizing/loop`: designs up to a budget, with all results shown.

    Raises
    ------
    UsageError
        For data or switches that cannot be read.
    """
    return _task(request, "loop", int(request.choose("budget", BUDGETS)), solver="sizing_loop")


def space(request: TaskRequest) -> Task:
    """Make the task `ams_sizing/space`: the model reduces the search space, an optimiser searches it.

    Raises
    ------
    UsageError
        For data or switches that cannot be read.
    """
    budget = int(request.choose("budget", BUDGETS))
    return _task(request, "space", budget, solver="autosizer", gold=gold_space)


def _task(request: TaskRequest, protocol: str, budget: int, **more: Any) -> Task:
    tech = request.choose("tech", NAMES)
    level = request.choose("level", ("2", "1", "3", "upstream", "all"))
    pdk = Path(request.args["pdk"]).expanduser().resolve() if request.args.get("pdk") else None
    info: dict[str, Any] = dict(OWN)
    if request.data_root is not None:
        if "level" in request.args:
            raise UsageError("--arg level and --data-root: the files bring their own targets")
        problems, digest = of_folder(request.data_root)
        info = {**UPSTREAM, "dataset_sha256": digest}
    else:
        problems = [p for name in (LEVELS if level == "all" else (level,)) for p in own(tech, name)]
    samples = [to_sample(problem, tech, budget, no_data=request.no_data) for problem in problems]
    used = [f"tech={tech}", *([f"pdk={pdk}"] if pdk else [])]
    return Task(
        name=f"ams_sizing/{protocol}",
        version=_version(tech, pdk),
        samples=samples,
        prompt=PROMPT,
        system=SYSTEM,
        gold=more.pop("gold", gold),
        gold_value=gold_value,
        guess=guess,
        scorer="sizing?" + "&".join(used),
        metric="success",
        generation=Generation(max_tokens=8192),
        missing=partial(missing, tech=tech, pdk=pdk),
        environment=partial(environment, tech=tech, pdk=pdk) if budget > 1 else None,
        toolset=_toolset(tech, budget),
        args=("tech", "pdk", "level", *(["budget"] if budget > 1 else [])),
        info={**info, "paper": "AutoSizer, ICML 2026", "technology": tech},
        **more,
    )


def _version(tech: str, pdk: Path | None) -> str:
    """Give the version: figures of other models are those of other items."""
    if missing_models(tech, pdk):
        return f"{VERSION}-{tech}"
    return f"{VERSION}-{tech}-{technology(tech, pdk).sha256[:8]}"


def _toolset(tech: str, budget: int) -> dict[str, Any]:
    version = "missing" if missing_program() else ngspice_version()
    return {"name": "ams-sizing-bench-1", "tech": tech, "ngspice": version} if budget > 1 else {}
