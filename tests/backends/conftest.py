"""A fake server, and a run of a small task against it."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import pytest

from harness.backends.base import LoadOptions, load
from harness.core import registry
from harness.core.task import Task
from harness.core.types import GenerateRequest, Generation, Message, Sample
from harness.runner.config import make_config
from harness.runner.lifecycle import resume, start
from harness.store.journal import read_records
from harness.store.layout import Store

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


def _fake_server():
    path = Path(__file__).parents[1] / "fixtures" / "fake_server.py"
    spec = importlib.util.spec_from_file_location("fake_server", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FakeServer()


@pytest.fixture
def server(monkeypatch):
    for name in (*KEYS, "GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    made = _fake_server()
    # A short poll: shutting down waits for it.
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.release.set()
    made.shutdown()
    made.server_close()
    thread.join()


class Bench:
    """Models against the fake server, with a clock that nobody waits for."""

    def __init__(self, server, store: Store) -> None:
        self.server = server
        self.store = store
        self.slept: list[float] = []
        self.samples = [
            Sample(item_id=f"item-{k}", input=f"item-{k}: 2 + 2?", target=("4",)) for k in range(20)
        ]
        self._made = []

    def spec(self, kind: str = "openai", more: str = "") -> str:
        path = "/v1" if kind in ("openai", "vllm") else ""
        return f"{kind}:m1?base_url={self.server.url}{path}{more}"

    def model(self, kind: str = "openai", more: str = "", **options):
        made = load(self.spec(kind, more), LoadOptions(**options))
        made.caller.sleep = self.slept.append
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()

    @staticmethod
    def request(
        item: str = "item-a", text: str = "2 + 2?", messages=None, tools=(), turn=0, **generation
    ):
        messages = messages or (Message("system", "Be brief."), Message("user", f"{item}: {text}"))
        return GenerateRequest(
            item_id=item, messages=messages, generation=Generation(**generation), seed=7,
            tools=tools, turn=turn,
        )  # fmt: skip

    def ask(self, *plan: str, kind: str = "openai", more: str = "", **generation):
        self.server.plan = {"*": list(plan)}
        return self.model(kind, more).generate([self.request(**generation)])[0]

    def run(self, more: str = "", kind: str = "openai", **options):
        config = make_config(task="own/two", model=self.spec(kind, more), **options)
        model = self.model(kind, more, **_load_options(config))
        return start(config, self.store, backend=model)

    def resume(self, run_id: str):
        return resume(self.store, run_id)

    def records(self, kind: type):
        (run_id,) = self.store.run_ids()
        return [r for r in read_records(self.store.journal(run_id)) if isinstance(r, kind)]


def _load_options(config):
    options = config.load_options()
    return {name: getattr(options, name) for name in options.__struct_fields__}


@pytest.fixture
def bench(server, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_decorated", {})
    made = Bench(server, Store.open(tmp_path / "store"))
    registry.task("own/two")(
        lambda request: Task(
            name="own/two", version="1", samples=made.samples, prompt="{{ input }}",
            gold=lambda sample: sample.target[0], guess=lambda _s, rng: str(rng.randrange(9)),
            scorer="exact", solver="generate", generation=Generation(max_tokens=32),
            continuations=lambda sample: (" 4", " 5"),
        )
    )  # fmt: skip
    yield made
    made.close()
