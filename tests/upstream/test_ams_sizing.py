"""AMS-SizingBench: three of the benchmark's own circuit files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.task import TaskRequest, make_task
from scorers.spice import CIRCUITS

pytest.importorskip("yaml")


DATA = Path(__file__).resolve().parents[3] / "shared" / "upstream" / "ams_sizingbench"


def test_upstreams_files_give_grids_and_targets():
    if not DATA.is_dir():
        pytest.skip("needs ../shared/upstream/ams_sizingbench")
    request = TaskRequest(args={"tech": "demo"}, data_root=DATA)
    made = make_task("ams_sizing/one_shot", request)
    found = {sample.metadata["circuit"]: sample.metadata for sample in made.samples}
    assert set(found) == {"buffer", "five_trans_ota", "resistive_load_amp"}
    for name, about in found.items():
        known = CIRCUITS[name]
        assert {n: tuple(grid) for n, grid in about["variables"].items()} == dict(known.variables)
        assert [tuple(s) for s in about["specs"]] == [
            (s.metric, s.op, s.target) for s in known.upstream
        ]
    assert "five transistor OTA" in found["five_trans_ota"]["wish"]
