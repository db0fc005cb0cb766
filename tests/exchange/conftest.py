"""A store with runs, the file of one of them, and a forger who writes such files with care."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.exchange.container import MANIFEST, write_container
from harness.exchange.submission import export_submission
from harness.runner.config import make_config
from harness.runner.lifecycle import start
from harness.store.layout import Store

MODEL = "mock:noisy?accuracy=0.6"


class Forgery:
    """A submission taken apart: change what you like, and write it with hashes that fit."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as file:
            raw = {name: file.read(name) for name in file.namelist()}
        self.manifest: dict[str, Any] = json.loads(raw.pop(MANIFEST))
        self.tables = {name: pq.read_table(io.BytesIO(one)) for name, one in raw.items()}
        self.rows = {name: table.to_pylist() for name, table in self.tables.items()}

    def members(self) -> dict[str, bytes]:
        """Write the members; the manifest's hashes, lengths and numbers of rows are right."""
        made = {}
        for name, rows in self.rows.items():
            file = io.BytesIO()
            schema = self.tables[name].schema
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), file, compression="zstd")
            made[name] = file.getvalue()
            self.manifest["members"][name] = {
                "sha256": hashlib.sha256(made[name]).hexdigest(),
                "bytes": len(made[name]),
                "rows": len(rows),
            }
        return made | {MANIFEST: json.dumps(self.manifest).encode()}

    def write(self, path: Path) -> Path:
        write_container(path, self.members())
        return path


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> tuple[Store, dict[str, str]]:
    """A store of runs of several kinds, by name."""
    store = Store.open(tmp_path_factory.mktemp("sender") / "store")
    asked = {
        "whole": {"task": "aicrypto/mcq", "model": MODEL, "limit": 12},
        "partial": {
            "task": "gsm8k", "limit": 10, "epochs": 2,
            "model": "mock:noisy?accuracy=0.5&fail=0.1&truncate=0.15&refuse=0.15",
        },
        "chosen": {"task": "aicrypto/mcq", "model": MODEL, "limit": 6, "solver": "choose",
                   "fewshot": 2},
    }  # fmt: skip
    return store, {name: start(make_config(**a), store).run_id for name, a in asked.items()}


@pytest.fixture(scope="session")
def sent(runs, tmp_path_factory) -> dict[str, Path]:
    """The file of each run."""
    store, run_ids = runs
    folder = tmp_path_factory.mktemp("sent")
    for name, run_id in run_ids.items():
        export_submission(store, run_id, folder / f"{name}.zip", submitter="Ada")
    return {name: folder / f"{name}.zip" for name in run_ids}


@pytest.fixture
def mine(tmp_path: Path) -> Store:
    """The store of whoever gets the file."""
    return Store.open(tmp_path / "mine")


@pytest.fixture
def forge(sent, tmp_path) -> Callable[..., Path]:
    """Change a submission and write it with hashes that fit."""

    def make(change: Callable[[Forgery], object], name: str = "whole") -> Path:
        forgery = Forgery(sent[name])
        change(forgery)
        return forgery.write(tmp_path / "forged.zip")

    return make


@pytest.fixture
def taken_apart(sent) -> Callable[..., Forgery]:
    return lambda name="whole": Forgery(sent[name])
