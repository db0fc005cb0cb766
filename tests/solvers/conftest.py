"""An agent's workplace without a sandbox: a calculator that does what a script says."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from harness.core import registry
from harness.core.environment import ToolResult
from harness.core.task import Task
from harness.core.types import Generation, Sample, Tool
from harness.runner.config import make_config
from harness.runner.lifecycle import resume, start
from harness.solvers.tools import SUBMIT_ANSWER, gold_call
from harness.store.journal import read_records
from harness.store.layout import Store

SUM = Tool(
    "sum",
    "Adds the numbers of a line.",
    {"type": "object", "properties": {"numbers": {"type": "string"}}, "required": ["numbers"]},
)


class Calculator:
    """Adds; counts what is open, and does what `act` says instead where it says something."""

    tools = (SUM, SUBMIT_ANSWER)

    def __init__(self, desk, sample, request) -> None:
        self.desk, self.sample, self.request = desk, sample, request
        self.killed = threading.Event()

    def __enter__(self):
        self.desk.enter(self)
        self.desk.open.append(self)
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.desk.open.remove(self)
        self.desk.closed += 1

    def kill(self) -> None:
        self.killed.set()

    def call(self, call, wall_s):
        self.desk.calls.append((self.sample.item_id, call.name, dict(call.arguments)))
        if (result := self.desk.act(self, call, wall_s)) is not None:
            return result
        where = {"level": "full", "uid": 200001}
        if call.name == "submit":
            return ToolResult(text="ok", submitted=call.arguments["answer"], isolation=where)
        total = sum(map(int, call.arguments["numbers"].split()))
        facts = {"cpu_s": 0.25, "peak_bytes": 1 << 20}
        return ToolResult(text=str(total), isolation=where, facts=facts)


class Desk:
    """The task of adding two numbers with the calculator, and every knob that a test turns."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.samples = [
            Sample(item_id=f"i{k}", input=f"{k} {1000 * k}", target=(str(1001 * k),))
            for k in range(6)
        ]
        self.toolset = {"name": "calculator-1", "limits": {"wall_s": 5}}
        self.requests: list = []
        self.open: list[Calculator] = []
        self.closed = 0
        self.calls: list[tuple] = []
        self.enter = lambda calculator: None
        self.act = lambda calculator, call, wall_s: None
        self.with_tools = True

    def environment(self, sample, request):
        self.requests.append((sample.item_id, request))
        return Calculator(self, sample, request)

    def task(self, request) -> Task:
        return Task(
            name="own/desk",
            version="1",
            samples=self.samples,
            prompt="Add {{ input }}.",
            system="Be brief.",
            gold=lambda s: (
                gold_call("sum", numbers=s.input),
                gold_call("submit", answer=s.target[0]),
            ),
            guess=lambda sample, rng: str(-1 - rng.randrange(1000)),
            scorer="exact",
            solver="agent",
            generation=Generation(max_tokens=64),
            environment=self.environment if self.with_tools else None,
            toolset=self.toolset,
        )

    def run(self, model="mock:gold", **options):
        return start(make_config(task="own/desk", model=model, **options), self.store)

    def resume(self, run_id):
        return resume(self.store, run_id)

    def read(self, run_id) -> SimpleNamespace:
        """The records of a run by their kind."""
        found = SimpleNamespace(sample=[], event=[], score=[])
        for record in read_records(self.store.journal(run_id)):
            tag = type(record).__struct_config__.tag
            if hasattr(found, tag):
                getattr(found, tag).append(record)
        return found


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Desk:
    monkeypatch.setattr(registry, "_decorated", {})
    made = Desk(Store.open(tmp_path / "store"))
    registry.task("own/desk", n=6)(made.task)
    return made


@pytest.fixture
def script(tmp_path):
    """Write a script of turns, the same for all items, and give the model's SPEC."""
    import json

    def make(*turns, item_id="*") -> str:
        path = tmp_path / "script.jsonl"
        path.write_text(json.dumps({"item_id": item_id, "turns": turns}) + "\n")
        return f"mock:script?file={path}"

    return make
