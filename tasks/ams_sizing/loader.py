"""Reading circuits of AMS-SizingBench: own ones with their levels, or upstream's files; no template is run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from harness.core.errors import HarnessError, UsageError
from scorers.spice.calibration import calibration
from scorers.spice.circuit import Circuit, Spec
from scorers.spice.circuits import CIRCUITS
from scorers.spice.score import read_specs

FOM = "fom"
INSTALL = "pip install 'bridge-harness[ams]'"


class Problem(Struct, frozen=True, kw_only=True):
    """A circuit with grids and targets.

    Attributes
    ----------
    circuit : Circuit
    level : str
    specs : tuple of Spec
    gold : dict of str to float, optional
        A sizing that meets them, where one is known.
    rate : float, optional
        The share of random sizings that meet them.
    random_j : dict of str to float
        Mean best J of random searches by budget.
    wish : str
        What the benchmark's file asks for in words.
    why_not : str
        Why it cannot be simulated in this technology.
    """

    circuit: Circuit
    level: str
    specs: tuple[Spec, ...]
    gold: dict[str, float] | None = None
    rate: float | None = None
    random_j: dict[str, float] = {}
    wish: str = ""
    why_not: str = ""

    @property
    def discriminating(self) -> bool:
        """Whether chance does not nearly always meet the targets, and somebody can."""
        return self.gold is not None and self.rate is not None and self.rate < 0.95


def own(technology: str, level: str) -> list[Problem]:
    """Give all circuits at a level."""
    return [_own(circuit, technology, level) for circuit in CIRCUITS.values()]


def _own(circuit: Circuit, technology: str, level: str) -> Problem:
    why = ""
    if technology not in circuit.technologies:
        why = (
            f"{circuit.name} needs parts that tech={technology} lacks (low-threshold or poly resistors): "
            "--arg tech=sky130-full --arg pdk=DIR, or --arg tech=demo"
        )
    try:
        found = calibration("demo" if why else technology, circuit.name).levels[level]
    except KeyError:
        # The full PDK alone can simulate it, and nobody has calibrated it there.
        specs = circuit.upstream if level == "upstream" else ()
        why = (
            why or f"{circuit.name} has no level {level} in tech={technology}: --arg level=upstream"
        )
        return _problem(circuit, level, specs, why_not="" if specs else why)
    return _problem(
        circuit, level, found.specs, gold=found.gold, rate=found.rate, random_j=found.random_j, why_not=why
    )  # fmt: skip


def _problem(circuit: Circuit, level: str, specs: tuple[Spec, ...], **more: Any) -> Problem:
    measured = {metric.name for metric in circuit.metrics}
    lacking = [spec.metric for spec in specs if spec.metric not in measured]
    if lacking and not more.get("why_not"):
        more["why_not"] = f"{circuit.name}: no bench of ours measures {lacking[0]}"
    return Problem(circuit=circuit, level=level, specs=specs, **more)


def of_folder(root: Path) -> tuple[list[Problem], str]:
    """Read upstream's files, with the hash of them all: names, grids and specifications.

    A file is named for its circuit; netlist and bench are ours.

    Raises
    ------
    UsageError
        No file, one that is no YAML, has no specifications or other variables than its circuit.
    HarnessError
        PyYAML is missing.
    """
    files = sorted([*root.glob("*.yaml"), *root.glob("*.yml")])
    if not files:
        raise UsageError(f"{root} holds no circuit of AMS-SizingBench (NAME.yaml)")
    digest = hashlib.sha256()
    problems = []
    for path in files:
        content = path.read_bytes()
        digest.update(content)
        problems.append(_of_file(path, content))
    return problems, digest.hexdigest()


def _of_file(path: Path, content: bytes) -> Problem:
    fields = _fields(path, content)
    circuit = CIRCUITS.get(path.stem)
    if circuit is None:
        raise UsageError(
            f"{path}: there is no circuit {path.stem}; there are {', '.join(CIRCUITS)}"
        )
    named = fields.get("variable")
    if not isinstance(named, dict) or set(named) != set(circuit.variables):
        raise UsageError(f"{path}: variable must name {', '.join(circuit.variables)}")
    try:
        specs = read_specs(str(fields.get("user_specs_metric", "")))
    except ValueError as error:
        raise UsageError(f"{path}: user_specs_metric: {error}") from error
    grids = {name: _grid(path, fields, name) for name in circuit.variables}
    given = msgspec.structs.replace(circuit, variables=grids)
    kept = tuple(spec for spec in specs if spec.metric != FOM)
    return _problem(given, "file", kept, wish=str(fields.get("user_specs", "")))


def _grid(path: Path, fields: Mapping[str, Any], name: str) -> tuple[float, ...]:
    """Give the grid of a variable: its own, else that of all widths, lengths or resistors."""
    key = next((k for k in (f"{name}_values", f"{name[0]}_values") if k in fields), None)
    if key is None:
        raise UsageError(f"{path}: neither {name}_values nor {name[0]}_values is there")
    try:
        # YAML reads 10e3 as a text.
        values = tuple(float(value) for value in fields[key])
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {key} is no list of numbers") from error
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        raise UsageError(f"{path}: {key} must hold numbers above 0")
    return values


def _fields(path: Path, content: bytes) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise HarnessError(f"circuits of AMS-SizingBench need PyYAML: {INSTALL}") from error
    try:
        found = yaml.safe_load(content.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} holds no fields")
    return found
