"""From what was asked to a plan: every attempt with its key, everything checked, nothing called."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct

from harness.backends.base import Backend, require
from harness.core.environment import Environment, EnvironmentRequest
from harness.core.errors import UsageError, unknown
from harness.core.keys import AttemptKeys, sample_hash, seed_of, sha256_of
from harness.core.models import card_of
from harness.core.registry import Entry, find
from harness.core.spec import parse_spec
from harness.core.task import Scorer, Task, build, make_task
from harness.core.types import ChoiceRequest, Generation, Message, Oracle, Sample
from harness.runner.config import RunConfig
from harness.runner.judging import Judges, build_scorer, wants_judge
from harness.runner.prompt import Prompt, Shots
from harness.solvers.base import Item, Solver, Strategy


class Planned(Struct, frozen=True):
    """One attempt to be made: which item, which repeat, and its key."""

    index: int
    epoch: int
    key: str


class Plan:
    """A run, worked out: see `make_plan`."""

    def __init__(
        self, config: RunConfig, task: Task, backend: Backend, samples: Sequence[Sample]
    ) -> None:
        self.config = config
        self.task = task
        self.backend = backend
        self.card = card_of(config.model)
        self.samples = samples
        self.solver_spec = parse_spec(config.solver or task.solver)
        self.solver_entry: Entry = find("solvers", self.solver_spec.name)
        self.solver: Solver = build("solvers", str(self.solver_spec))
        self.scorer_spec = parse_spec(task.scorer)
        self.scorer_entry: Entry = find("scorers", self.scorer_spec.name)
        self.judges = Judges(config.judge) if config.judge and wants_judge(task.scorer) else None
        each = self.judges.each if self.judges else ()
        self.scorer: Scorer = build_scorer(task.scorer, each, config.sandbox)
        self.strategy: Strategy = build("strategies", config.strategy)
        self.works_locally: bool = getattr(self.solver, "works_locally", False)
        for capability in self.solver.needs:
            require(backend, capability, f"solver {self.solver_spec.name!r}")
        if "loglikelihood" in self.solver.needs and task.continuations is None:
            raise UsageError(
                f"solver {self.solver_spec.name!r} compares options, and task {task.name!r} has none; "
                "use --solver generate"
            )
        if getattr(self.solver, "needs_environment", False) and task.environment is None:
            raise UsageError(
                f"solver {self.solver_spec.name!r} works with tools, and task {task.name!r} has "
                "none; use --solver generate"
            )
        if self.strategy.n < 1:
            raise UsageError(f"strategy {config.strategy!r} must draw at least once")
        if hasattr(self.strategy, "choose") and task.bench is None:
            raise UsageError(
                f"strategy {config.strategy!r} runs an item's draws, and task {task.name!r} has "
                "nothing to run them on"
            )
        if self.strategy.n > 1:
            require(backend, "samples", f"strategy {config.strategy!r}")
        self.generation, self.notes = _generation(config, task, backend)
        if "generate" not in self.solver.needs:
            self.notes = []  # nothing is generated, so nothing is limited
        if config.judge and self.judges is None:
            self.notes.append(f"{task.name}: no judge is asked here, so --judge changes nothing")
        self.draws = config.epochs * self.strategy.n
        prompt = Prompt(task)
        system = task.system if config.system is None else config.system
        shots = Shots(task, config, prompt, self.solver)
        head = (Message("system", system),) if system else ()
        self.messages = [
            (*head, *shots.before(sample), *prompt.turns(sample)) for sample in samples
        ]
        self._check_options()
        self.attempts = list(self._attempts())

    def _check_options(self) -> None:
        """Let the backend see what it is to compare; it may refuse an item before the first call."""
        check = getattr(self.backend, "check", None)
        if check is not None and "loglikelihood" in self.solver.needs:
            check(
                ChoiceRequest(
                    item_id=sample.item_id, messages=tuple(messages),
                    continuations=self._continuations(sample),
                )
                for sample, messages in zip(self.samples, self.messages, strict=True)
            )  # fmt: skip

    def _attempts(self) -> Iterator[Planned]:
        keys = AttemptKeys(self.key_parts())
        extras = [self._extra(sample) for sample in self.samples]
        for epoch in range(self.draws):
            # An environment is made for a repeat, and which one a draw belongs to is the strategy's.
            repeat = [self.repeat_of(epoch)] if self._with_tools else []
            for index, sample in enumerate(self.samples):
                extra = [*extras[index], *repeat]
                key = keys.key(sample.item_id, epoch, self.messages[index], extra)
                yield Planned(index, epoch, key)

    def key_parts(self) -> dict[str, object]:
        """Everything beside the item that an answer depends on (see `AttemptKeys`)."""
        parts: dict[str, object] = {
            "task": self.task.content_hash(),
            "model": self.backend.identity,
            "solver": [str(self.solver_spec), self.solver_entry.version],
            "chat_template": self.config.chat_template,
            "generation": self.generation,
            "seed": self.config.seed,
            "no_data": self.config.no_data,
            "args": {k: v for k, v in self.config.args.items() if k not in self.task.scorer_args},
            "on_long": self.config.on_long,
        }
        if self.works_locally:
            # Only here does a tool's output reach the model.
            parts["tools"] = {
                "toolset": self.task.toolset,
                "sandbox": self.config.sandbox,
                "service": "tools" in self.backend.capabilities,
            }
        return parts

    @property
    def _with_tools(self) -> bool:
        return self.works_locally and self.task.environment is not None

    def _extra(self, sample: Sample) -> list[object]:
        """What an answer depends on beside the prompt: whatever else of the item a solver sees.

        For a baseline that is the reference too.
        """
        gold = self.task.gold_turns
        oracle = [list(gold(sample)), sample.correct] if self.backend.is_baseline else None
        seen: list[object] = [sample.input, sample.choices, self._continuations(sample), oracle]
        # The environment is made of the whole item.
        return [*seen, sample_hash(sample)] if self._with_tools else seen

    def _continuations(self, sample: Sample) -> tuple[str, ...]:
        if "loglikelihood" not in self.solver.needs or self.task.continuations is None:
            return ()
        return tuple(self.task.continuations(sample))

    def item(self, planned: Planned) -> Item:
        """Make the attempt as its solver sees it."""
        sample = self.samples[planned.index]
        oracle = None
        if self.backend.is_baseline:
            guess = self.task.guess
            gold = self.task.gold_turns(sample)
            oracle = Oracle(gold, sample.correct, lambda rng: guess(sample, rng))
        return Item(
            sample=msgspec.structs.replace(sample, target=(), correct=(), metadata={}),
            messages=self.messages[planned.index],
            generation=self.generation,
            seed=seed_of(planned.key),
            continuations=self._continuations(sample),
            oracle=oracle,
            environment=self._environment(sample, planned) if self.works_locally else None,
            calls_tools="tools" in self.backend.capabilities,
        )

    def _environment(self, sample: Sample, planned: Planned) -> Callable[[], Environment] | None:
        make = self.task.environment
        if make is None:
            return None
        request = EnvironmentRequest(
            level=self.config.sandbox,
            seed=self.config.seed,
            epoch=self.repeat_of(planned.epoch),
        )
        return functools.partial(make, sample, request)

    def repeat_of(self, epoch: int) -> int:
        """Give the repeat, from 0, that a draw belongs to: a strategy's draws share theirs."""
        return epoch // self.strategy.n

    @property
    def n_planned(self) -> int:
        """Attempts planned."""
        return len(self.attempts)


def make_plan(config: RunConfig, backend: Backend) -> Plan:
    """Expand task x samples x epochs into keys; check everything before the first call.

    Parameters
    ----------
    config : RunConfig
    backend : Backend
        The loaded model.

    Raises
    ------
    UsageError
        Unknown names, unreadable data, a missing capability, a generation length that leaves no
        room for the prompt.
    """
    task = make_task(config.task, config.task_request())
    return Plan(config, task, backend, select(task, config))


def select(task: Task, config: RunConfig) -> Sequence[Sample]:
    """Choose the items: all, `ids`, the `first` N, or a seeded sample of `limit` by item hash.

    The sample is stable when data grow: an item leaves it only for a new one whose hash is smaller.

    Raises
    ------
    UsageError
        Duplicate item ids in the data, an unknown id, or no item at all.
    """
    by_id = {sample.item_id: sample for sample in task.samples}
    if len(by_id) != len(task.samples):
        seen: set[str] = set()
        twice = next(s.item_id for s in task.samples if s.item_id in seen or seen.add(s.item_id))  # type: ignore[func-returns-value]
        raise UsageError(f"task {task.name!r}: item id {twice!r} stands twice in its data")
    samples: Sequence[Sample] = task.samples
    if config.ids:
        for item_id in config.ids:
            if item_id not in by_id:
                raise unknown(f"item of {task.name}", item_id, by_id)
        wanted = set(config.ids)
        samples = [s for s in samples if s.item_id in wanted]
    if config.first is not None:
        samples = samples[: config.first]
    if config.limit is not None and config.limit < len(samples):
        ranked = sorted(samples, key=lambda s: _rank(config.seed, task.name, s.item_id))
        kept = {s.item_id for s in ranked[: config.limit]}
        samples = [s for s in samples if s.item_id in kept]
    if not samples:
        raise UsageError(f"task {task.name!r} has no items to run")
    return samples


def _rank(seed: int, task: str, item_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\x1f{task}\x1f{item_id}".encode()).digest()


def _generation(config: RunConfig, task: Task, backend: Backend) -> tuple[Generation, list[str]]:
    """Join the task's generation parameters with what was asked, within the model's context."""
    asked = {
        name: value
        for name in ("max_tokens", "temperature", "top_p", "stop")
        if (value := getattr(config, name)) is not None
    }
    generation = msgspec.structs.replace(task.generation, **asked)
    notes: list[str] = []
    context = backend.context_length
    if context is not None and generation.max_tokens >= context:
        if context < 2:
            raise UsageError(f"{config.model} holds {context} tokens in all: no room for an answer")
        if config.max_tokens is not None:
            raise UsageError(
                f"--max-tokens {config.max_tokens} leaves no room for a prompt: "
                f"{config.model} holds {context} tokens in all"
            )
        generation = msgspec.structs.replace(generation, max_tokens=context // 2)
        notes.append(
            f"{task.name}: answers are limited to {context // 2} tokens instead of "
            f"{task.generation.max_tokens}, since {config.model} holds {context} in all"
        )
    return generation, notes


def plan_hashes(plan: Plan) -> dict[str, str]:
    """Hashes that say what was run: data as planned, prompt, scorer."""
    return {
        "items_sha256": sha256_of(plan.samples),
        "prompt_sha256": sha256_of([plan.task.prompt, plan.task.system]),
        "scorer_sha256": sha256_of([str(plan.scorer_spec), plan.scorer_entry.version]),
    }
