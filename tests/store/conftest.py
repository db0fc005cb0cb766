"""Builders of records and runs; every expected value stands in the test that uses them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.records import RunFinished, RunStarted, SampleRecord, ScoreRecord
from harness.store import Journal, Store, new_run_id


class Build:
    """Makes records whose fields a test need not care about."""

    @staticmethod
    def key(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def started(run_id: str, items=("i0",), **changes) -> RunStarted:
        fields = {
            "seq": 0, "ts": "", "run_id": run_id, "schema": 1, "task": "demo/add",
            "task_version": "1", "model": "mock:gold", "is_baseline": True, "strategy": "single",
            "solver": "generate", "scorer": "exact", "metric": "accuracy", "seed": 7,
            "errors": "wrong", "config": {"limit": None},
            "identity": {
                "variant_id": "v1", "model_id": "m1", "backend": "mock", "name": "gold",
                "revision": None, "dtype": None, "quantisation": None, "is_baseline": True,
            },
            "task_info": {
                "benchmark": "demo", "license": "CC0-1.0", "source": "own", "metric": "accuracy",
                "dataset_sha256": "d", "prompt_sha256": "p", "scorer_sha256": "s",
                "higher_is_better": True,
            },
            "environment": {"git_commit": "abc", "dirty": False},
            "items": [
                {"item_id": i, "cluster_id": f"c-{i}", "category": "easy", "content_sha256": "0"}
                for i in items
            ],
            "epochs": 1, "n_planned": len(items),
        }  # fmt: skip
        return RunStarted(**(fields | changes))

    @classmethod
    def sample(cls, run_id: str, item_id: str = "i0", **changes) -> SampleRecord:
        fields = {
            "seq": 0, "ts": "", "run_id": run_id, "schema": 1, "item_id": item_id, "epoch": 0,
            "attempt": 0, "key": cls.key(f"{run_id}/{item_id}/{changes.get('epoch', 0)}"),
            "status": "unscored", "prompt": f"what is {item_id}?", "output": f"it is {item_id}",
            "finish_reason": "stop", "tokens_in": 10, "tokens_out": 5, "latency_ms": 1.5,
        }  # fmt: skip
        return SampleRecord(**(fields | changes))

    @staticmethod
    def score(
        run_id: str, item_id: str = "i0", value: float | None = 1.0, **changes
    ) -> ScoreRecord:
        fields = {
            "seq": 0, "ts": "", "run_id": run_id, "schema": 1, "item_id": item_id, "epoch": 0,
            "attempt": 0, "scorer": "exact", "scorer_version": "1", "metric": "accuracy",
            "status": "scored", "value": value,
            "passed": None if value is None else value >= 1, "answer": "4",
        }  # fmt: skip
        return ScoreRecord(**(fields | changes))

    @staticmethod
    def finished(run_id: str, **changes) -> RunFinished:
        fields = {
            "seq": 0, "ts": "", "run_id": run_id, "schema": 1, "status": "done", "seconds": 2.5,
        }  # fmt: skip
        return RunFinished(**(fields | changes))

    def run(
        self, store: Store, values=(1.0, 0.0, 1.0), run_id: str | None = None, **changes
    ) -> str:
        """Write a finished run with one scored item a value."""
        run_id = run_id or new_run_id()
        items = [f"i{n}" for n in range(len(values))]
        with Journal(store.journal(run_id), run_id) as journal:
            journal.append(self.started(run_id, items, **changes))
            for item, value in zip(items, values, strict=True):
                journal.append(self.sample(run_id, item))
                journal.append(self.score(run_id, item, value))
            journal.append(self.finished(run_id))
        return run_id


@pytest.fixture(scope="session")
def build() -> Build:
    return Build()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def python() -> Callable[..., subprocess.Popen]:
    """Start our own interpreter on a piece of code; whatever still runs is killed at the end."""
    started: list[subprocess.Popen] = []

    def start(code: str, *args: object) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
