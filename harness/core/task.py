"""What a benchmark is: items, a prompt, how they are solved and scored, and what gold would say."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from harness.core.environment import EnvironmentFactory, EnvironmentRequest
from harness.core.errors import UsageError
from harness.core.keys import sha256_of
from harness.core.registry import Kind, find
from harness.core.spec import only, parse_spec
from harness.core.types import Generation, Message, Output, Sample, Score, text_of


class TaskRequest(Struct, frozen=True, kw_only=True):
    """How a task is asked for.

    Attributes
    ----------
    data_root : pathlib.Path or None
        Folder in the benchmark's upstream layout; None means own items.
    data : str or None
        A data set instead, ``hub:ID@REV`` or ``hub:DIR`` (see `harness.core.hub`).
    seed : int
        The run's seed, for anything the task draws (order of options, instances).
    args : dict
        The task's own switches (`--arg k=v`).
    no_data : bool
        Leave out what the question rests on (ablation).
    """

    data_root: Path | None = None
    data: str | None = None
    seed: int = 0
    args: dict[str, str] = msgspec.field(default_factory=dict)
    no_data: bool = False

    def choose(self, key: str, allowed: Sequence[str]) -> str:
        """Read one switch; the first allowed value is the default.

        Raises
        ------
        UsageError
            For a value that is not allowed.
        """
        value = self.args.get(key, allowed[0])
        if value not in allowed:
            raise UsageError(f"--arg {key}={value} is not one of {', '.join(allowed)}")
        return value


class Task(Struct, frozen=True, kw_only=True):
    """A benchmark, ready to run.

    Attributes
    ----------
    name, version : str
        Identity; the version changes whenever prompts, items or meaning change.
    samples : sequence of Sample
        The items, in a fixed order.
    prompt : str
        Jinja template of the user turn; sees the sample's fields (`input`, `choices`, `metadata`).
    system : str
        System turn, empty for none.
    solver, scorer : str
        SPECs of the defaults.
    metric : str
        Name of the headline metric.
    generation : Generation
        Default generation parameters.
    gold : callable
        Sample -> what a perfect model would say: a text, or one turn after the other. Where it
        would call a tool the turn is a message with `tool_calls`, in no protocol's words: the
        solver writes it as its protocol wants it.
    gold_value : callable or None
        Sample -> what `gold` scores, where that is not 1; `harness audit` compares.
    guess : callable
        (Sample, Random) -> a well-formed answer at random; for baselines.
    continuations : callable or None
        Sample -> the texts whose log-probability `choose` compares; None: not a choice task.
    shots : sequence of Sample or None
        Where worked examples (`--fewshot`) are drawn from; None: from the items themselves, never
        the one that is asked.
    environment : callable or None
        (Sample, EnvironmentRequest) -> the tools that an agent works with. It sees the whole item,
        the reference too, of which nothing may reach the tools; what it reads beside the item (a
        data file) belongs into `toolset` or the item's metadata by its hash.
    bench : callable or None
        (Sample, EnvironmentRequest, texts) -> where a strategy that runs an item's draws tries them
        out; see `harness.solvers.selection.Bench`.
    missing : callable or None
        Sample -> why it cannot be asked or judged here, with the command that mends it; empty where
        it can. Such an attempt is ``unavailable`` and no model is called.
    toolset : dict
        What a tool's output depends on beside the arguments: version of the tools, limits, library
        versions. JSON-ready; part of the key of every attempt that uses the environment.
    withholds : str
        What `--no-data` leaves out of the environment, where it is not the prompt that changes: "the
        data files". Empty: the prompt changes.
    args : tuple of str
        Names of the `--arg` switches it reads; any other is refused.
    scorer_args : tuple of str
        Those of them that change nothing but how answers are judged: no part of an attempt's key, so
        that stored answers are judged by another value and no model is asked again.
    data_sets : bool
        It reads its rows from `request.data` where that is given; else `--data` is refused.
    human_minutes : mapping of str to float
        How long people need, in minutes, by item; items that nobody timed are left out. Part of no
        key: stating a time makes no stored answer stale.
    human_time_source : str
        Where these minutes come from: a study, a time budget of the benchmark; a guess is called one.
    info : dict
        `benchmark`, `license`, `source`, `dataset_sha256` and what else a reader should know.
    """

    name: str
    version: str
    samples: Sequence[Sample]
    prompt: str
    gold: Callable[[Sample], str | Sequence[str | Message]]
    guess: Callable[[Sample, Random], str]
    scorer: str
    metric: str = "accuracy"
    solver: str = "generate"
    system: str = ""
    generation: Generation = Generation()
    continuations: Callable[[Sample], Sequence[str]] | None = None
    gold_value: Callable[[Sample], float] | None = None
    shots: Sequence[Sample] | None = None
    environment: EnvironmentFactory | None = None
    bench: Callable[[Sample, EnvironmentRequest, tuple[str, ...]], Any] | None = None
    missing: Callable[[Sample], str] | None = None
    toolset: dict[str, Any] = msgspec.field(default_factory=dict)
    withholds: str = ""
    args: tuple[str, ...] = ()
    scorer_args: tuple[str, ...] = ()
    data_sets: bool = False
    human_minutes: Mapping[str, float] = msgspec.field(default_factory=dict)
    human_time_source: str = ""
    info: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse human minutes that are none, or come from nowhere.

        Raises
        ------
        ValueError
        """
        wrong = [item for item, m in self.human_minutes.items() if not 0 < m < math.inf]
        if wrong:
            raise ValueError(f"task {self.name}: human minutes of {wrong[:3]} are not positive")
        if self.human_minutes and not self.human_time_source:
            raise ValueError(
                f"task {self.name} has human minutes: say in human_time_source where they are from, "
                "or that they are a guess"
            )

    def content_hash(self) -> str:
        """Hash what a model is asked beside the items themselves (those are in their own keys).

        The scorer is left out on purpose: a new scorer judges stored outputs again for nothing.
        """
        return sha256_of([self.name, self.version, self.prompt, self.system])

    def gold_turns(self, sample: Sample) -> tuple[str | Message, ...]:
        """Give gold turn by turn."""
        gold = self.gold(sample)
        return (gold,) if isinstance(gold, str) else tuple(gold)

    def gold_texts(self, sample: Sample) -> tuple[str, ...]:
        """Give gold as texts, turn by turn; of a turn that calls a tool, what it hands over."""
        return tuple(map(_handed_over, self.gold_turns(sample)))


def _handed_over(turn: str | Message) -> str:
    if isinstance(turn, str):
        return turn
    if not turn.tool_calls or not isinstance(turn.tool_calls[-1].arguments, dict):
        return text_of(turn)
    return str(["", *turn.tool_calls[-1].arguments.values()][-1])


class Scorer(Protocol):
    """A pure function (or an engine behind one) from an output to a verdict.

    One with an engine may have ``at_once``, how many outputs it judges side by side (it is then
    called from so many threads), and ``close()``, called when there is nothing more to judge: after
    it the next output starts the engine again.
    """

    def __call__(self, sample: Sample, output: Output) -> Score:
        """Judge one output; anything raised is the harness's fault, not a wrong answer."""
        ...


def build(kind: Kind, text: str) -> Any:
    """Make the solver, scorer or strategy that a SPEC ``name?k=v`` names.

    The factory behind the name receives the options as keyword strings.

    Raises
    ------
    UsageError
        Unknown name or option, an option that is missing or has a value that cannot be read.
    """
    spec = parse_spec(text)
    factory = find(kind, spec.name).load()
    known = set(inspect.signature(factory).parameters)
    only(spec.args, known, f"{spec.name!r}")
    try:
        return factory(**spec.args)
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot make {text!r}: {error}") from error


def make_task(name: str, request: TaskRequest) -> Task:
    """Make a task by name.

    Raises
    ------
    UsageError
        Unknown name, unknown `--arg`, unreadable data, a data set for a task that reads none.
    """
    entry = find("tasks", name)
    task: Task = entry.load()(request)
    if request.data is not None and not task.data_sets:
        raise UsageError(f"task {name!r} reads no data sets: leave --data out")
    only(request.args, set(task.args), f"task {name!r} (--arg)")
    return task
