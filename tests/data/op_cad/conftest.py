"""The maker as a package, and what it wrote."""

from __future__ import annotations

import importlib
import json
import sys
from types import SimpleNamespace

import pytest

from harness.core.resources import data

MODULES = (
    "closed", "code", "draft", "draw", "kernel", "procad", "prompts", "records", "rows", "text",
    "upstream",
)  # fmt: skip


@pytest.fixture(scope="session")
def maker():
    pytest.importorskip("cadquery", reason="needs the extra cad and libGL")
    sys.path.insert(0, str(data("make")))
    try:
        yield SimpleNamespace(
            **{name: importlib.import_module(f"op_cad.{name}") for name in MODULES},
            main=importlib.import_module("op_cad.__main__"),
        )
    finally:
        sys.path.remove(str(data("make")))
        for name in [name for name in sys.modules if name.partition(".")[0] == "op_cad"]:
            del sys.modules[name]


def _read(name):
    return [json.loads(line) for line in (data("op_cad") / name).read_text().splitlines()]


@pytest.fixture(scope="session")
def sequences():
    return _read("sequences.jsonl")


@pytest.fixture(scope="session")
def unclear():
    return _read("procad.jsonl")


@pytest.fixture(scope="session")
def sample(sequences):
    """One sequence of each family, of all lengths from 2 to 8."""
    chosen = {}
    for k, family in enumerate(sorted({row["family"] for row in sequences})):
        length = 2 + k % 7
        chosen[family] = next(
            row for row in sequences if row["family"] == family and len(row["steps"]) == length
        )
    return list(chosen.values())
