"""What `harness fetch` knows of data sets, against copies of their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.fetching.get import get, is_whole
from harness.fetching.sources import sources

UPSTREAM = Path(__file__).resolve().parents[3] / "shared" / "upstream"


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("gsm8k", "gsm8k"),
        ("humaneval", "fuzzeval/human-eval"),
        ("bridge", "irt/bridge"),
        ("sky130", "sky130"),
    ],
)
def test_a_copy_on_this_disk_has_the_hashes_of_the_list(name, below, tmp_path, monkeypatch):
    if not (UPSTREAM / below).is_dir():
        pytest.skip(f"needs ../shared/upstream/{below}")
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    assert get(sources()[name], UPSTREAM / below, lambda *step: None)
    assert is_whole(sources()[name])
