"""DiscoveryBench's real rows: read, asked and judged; skipped where the sample is not at hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.backends.base import ModelIdentity
from harness.core import registry
from harness.core.records import ScoreRecord
from harness.core.task import TaskRequest, make_task
from harness.core.types import Output
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.store.journal import read_records
from harness.store.layout import Store

DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "dsgym"


class Literal:
    """A judge for whom a text is one claim, and two are the same where their words are."""

    capabilities = frozenset({"generate"})
    is_baseline = False
    context_length = None
    batch_size = 4

    def __init__(self, spec, options) -> None:
        self.identity = ModelIdentity(backend="literal", name=spec.name)

    def generate(self, requests):
        return [Output(text=self._say(request.messages[-1].content)) for request in requests]

    def _say(self, text: str) -> str:
        inside = re.search(r"BEGIN (\w+)\n(.*)\nEND \1", text, re.DOTALL)[2]
        if "True or False" in text:
            return str(f"# Reference hypothesis\n\n{inside}\n" in text)
        if "# Reference\n" in text:
            same = f"# Reference\n\n{inside}\n" in text
            pair = {"reference": 1 if same else None, "shared": int(same), "relation": int(same)}
            return json.dumps({"pairs": [{"answer": 1, **pair}]})
        return json.dumps(
            {"hypotheses": [{"context": "", "variables": ["all"], "relation": inside}]}
        )

    def describe(self):
        return {"backend": "literal"}

    def close(self) -> None:
        pass


@pytest.fixture
def literal(monkeypatch):
    if not (DATA / "data").is_dir():
        pytest.skip("needs ../shared/upstream/dsgym")
    monkeypatch.setattr(registry, "_decorated", {})
    registry.backend("literal")(Literal)


@pytest.mark.parametrize(("model", "value"), [("mock:gold", 1.0), ("mock:random", 0.0)])
def test_the_twelve_rows_of_the_sample_through_the_loop(literal, tmp_path, model, value):
    config = make_config(
        task="dsgym/discoverybench", model=model, data_root=str(DATA), judge="literal:a"
    )
    store = Store.open(tmp_path / "store")
    run = start(config, store)
    records = list(read_records(store.journal(run.run_id)))
    scores = [r for r in records if isinstance(r, ScoreRecord)]
    assert [(s.value, s.metrics["match"], s.metrics["hms"]) for s in scores] == 12 * [3 * (value,)]
    assert run.metrics["accuracy"].value == value


def test_all_that_a_row_has_stands_in_its_prompt(literal):
    raw = json.loads((DATA / "data/task/discovery/discoverybench_test.json").read_text("utf-8"))
    task = make_task("dsgym/discoverybench", TaskRequest(data_root=DATA))
    assert len(task.samples) == len(raw) == 12
    for sample, row in zip(task.samples, raw, strict=True):
        shown = dict(sample.metadata["sections"])
        assert sample.input == row["question"]
        assert sample.target == (row["answer"],)
        assert shown["CONTEXT"] == row["context"]
        assert shown["COLUMNS"] == row["metadata"]["columns_info"]
        assert shown["DATA FILES"].splitlines() == row["data"]
        assert row["answer"] not in str(shown)
