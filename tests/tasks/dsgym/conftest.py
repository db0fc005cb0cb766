"""A small copy of the upstream layout with questions of our own, and a scripted model on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.records import EventRecord, SampleRecord, ScoreRecord
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.store.journal import read_records
from harness.store.layout import Store

SHOP = "item,price\npen,1.20\nink,3.40\nnib,0.50\n"


class Layout:
    """A folder as ``--data-root`` takes it, and runs of scripted models on it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.store = Store.open(folder / "store")
        self.rows: list[dict] = []
        self.put("daeval/shop.csv", SHOP)

    def put(self, name: str, content: str | bytes) -> None:
        path = self.root / "data" / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def ask(self, answer, data="/data/daeval/shop.csv", question="How much in all?") -> str:
        """Add a question of DAEval's form; its item id is given back."""
        number = len(self.rows)
        facts = {"original_id": 900 + number, "keywords": ["sum"], "constraints": "Two decimals.",
                 "format": "@total[value]", "level": "easy"}  # fmt: skip
        self.rows.append({"context": "", "question": question, "answer": str(answer), "data": [data],
                          "metadata": facts})  # fmt: skip
        path = self.root / "data" / "task" / "daeval" / "daeval.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.rows), encoding="utf-8")
        return f"daeval-{900 + number:03d}"

    def play(self, turns: dict[str, list[str]], **options):
        """Run a script; give (samples, scores, tool calls) by item."""
        script = self.root / f"script-{len(self.store.run_ids())}.jsonl"
        lines = [json.dumps({"item_id": item, "turns": said}) for item, said in turns.items()]
        script.write_text("\n".join(lines), encoding="utf-8")
        config = make_config(
            task="dsgym/daeval", model=f"mock:script?file={script}", data_root=str(self.root),
            ids=tuple(turns), **options,
        )  # fmt: skip
        run = start(config, self.store)
        records = list(read_records(self.store.journal(run.run_id)))
        samples = {r.item_id: r for r in records if isinstance(r, SampleRecord)}
        scores = {r.item_id: r for r in records if isinstance(r, ScoreRecord)}
        calls: dict[str, list[dict]] = {item: [] for item in turns}
        for record in records:
            if isinstance(record, EventRecord) and record.kind == "tool_call":
                calls[record.item_id].append(record.data)
        return samples, scores, calls


@pytest.fixture
def layout(tmp_path) -> Layout:
    return Layout(tmp_path)
