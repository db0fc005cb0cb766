"""A sum task and a backend that counts its calls, registered in this process only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.backends.base import ModelIdentity, load
from harness.core import registry
from harness.core.records import EventRecord, SampleRecord, ScoreRecord
from harness.core.task import Task
from harness.core.types import Generation, Output, Sample, Score, Usage
from harness.runner.config import make_config
from harness.runner.lifecycle import resume, start
from harness.runner.plan import Plan, make_plan
from harness.store.journal import read_records
from harness.store.layout import Store


def add_samples(n: int) -> list[Sample]:
    """Items a + b whose sums are all different, so that no guess is right by luck."""
    return [
        Sample(item_id=f"i{k:03d}", input=f"{k} + {1000 * k}", target=(str(1001 * k),))
        for k in range(n)
    ]


class House:
    """One task, one backend, and every knob that a test wants to turn."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.samples = add_samples(12)
        self.version = "1"
        self.prompt = "What is {{ input }}?"
        self.system = "Only the number."
        self.scorer = "exact"
        self.solver = "generate"
        self.generation = Generation(max_tokens=32)
        self.gold = lambda sample: sample.target[0]
        self.continuations = None
        self.calls: list[str] = []
        self.batches: list[int] = []
        self.answer = self.solve
        self.capabilities = frozenset({"generate", "samples", "loglikelihood"})
        self.is_baseline = False
        self.context_length = None
        self.batch_size = 4
        self.closed = 0

    def task(self, request) -> Task:
        return Task(
            name="own/add",
            version=self.version,
            samples=self.samples,
            prompt=self.prompt,
            system=self.system,
            gold=self.gold,
            guess=lambda _sample, rng: str(-1 - rng.randrange(1000)),
            scorer=self.scorer,
            solver=self.solver,
            generation=self.generation,
            continuations=self.continuations,
            args=("style",),
        )

    def backend(self, spec, options) -> Counting:
        return Counting(self, spec, options)

    @staticmethod
    def solve(request) -> Output:
        """Add the numbers of the question: an honest model that never sees the reference."""
        numbers = re.findall(r"\d+", request.messages[-1].content)
        return Output(text=str(sum(map(int, numbers))), usage=Usage(5, 1))

    def run(self, model: str = "count:a", task: str = "own/add", **options):
        return start(make_config(task=task, model=model, **options), self.store)

    def resume(self, run_id: str):
        return resume(self.store, run_id)

    def records(self, run_id: str) -> list[SampleRecord]:
        every = read_records(self.store.journal(run_id))
        return [r for r in every if isinstance(r, SampleRecord)]

    def events(self, run_id: str) -> list[EventRecord]:
        every = read_records(self.store.journal(run_id))
        return [r for r in every if isinstance(r, EventRecord)]

    def scores(self, run_id: str) -> list[ScoreRecord]:
        every = read_records(self.store.journal(run_id))
        return [r for r in every if isinstance(r, ScoreRecord)]

    def plan(self, model: str = "count:a", **options) -> Plan:
        config = make_config(task="own/add", model=model, **options)
        return make_plan(config, load(config.model, config.load_options()))

    def planned_keys(self, model: str = "count:a", **options) -> list[str]:
        """Plan only, and give the keys by which the store finds answers: their first 128 bits."""
        return [planned.key[:32] for planned in self.plan(model, **options).attempts]

    def called(self, **options) -> int:
        """Run, and give how many requests the backend saw for it."""
        before = len(self.calls)
        self.run(**options)
        return len(self.calls) - before


class Counting:
    """Keeps the item of every request it was asked."""

    def __init__(self, house: House, spec, options) -> None:
        self._house = house
        self.identity = ModelIdentity(
            backend="count", name=spec.name, revision=spec.revision or "", dtype=options.dtype,
            args=dict(spec.args),
        )  # fmt: skip
        self.capabilities = house.capabilities
        self.is_baseline = house.is_baseline
        self.context_length = house.context_length
        self.batch_size = options.batch_size or house.batch_size

    def generate(self, requests):
        self._house.batches.append(len(requests))
        self._house.calls += [r.item_id for r in requests]
        return [self._house.answer(r) for r in requests]

    def loglikelihood(self, requests):
        self._house.calls += [r.item_id for r in requests]
        return [
            Output(text="", choice_logprobs=tuple(-float(len(c)) for c in r.continuations))
            for r in requests
        ]

    def describe(self):
        return {"backend": "count"}

    def close(self) -> None:
        self._house.closed += 1


def right_by_sign(sample: Sample, output: Output) -> Score:
    """A scorer with a mind of its own: see the names of the outputs it treats specially."""
    if output.text == "explode":
        raise RuntimeError("the judge fell over")
    if output.text == "mumble":
        return Score(value=None, status="unscored", reason="judge_unreadable")
    if output.text == "nothing":
        return None
    right = output.text == sample.target[0]
    return Score(value=float(right), passed=right, answer=output.text, metrics={"length": 2.5})


@pytest.fixture
def house(tmp_path: Path, monkeypatch) -> House:
    monkeypatch.setattr(registry, "_decorated", {})
    made = House(Store.open(tmp_path / "store"))
    registry.task("own/add", n=12)(made.task)
    registry.backend("count")(made.backend)
    registry.scorer("moody")(lambda: right_by_sign)
    return made


@pytest.fixture
def by_item(house: House):
    """Make a backend's answers depend on the item alone: {item_id: text or Output}."""

    def use(special: dict[str, str | Output]) -> None:
        def answer(request):
            given = special.get(request.item_id)
            if given is None:
                return house.solve(request)
            return Output(text=given) if isinstance(given, str) else given

        house.answer = answer

    return use
