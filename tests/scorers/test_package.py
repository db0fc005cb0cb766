from __future__ import annotations

import subprocess
import sys

import pytest

import scorers
from harness.core.registry import entries


def test_public_names():
    assert scorers.__all__ == ["SCORERS", "extract_number", "read_choice", "remove_reasoning"]
    assert all(getattr(scorers, name) is not None for name in scorers.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = scorers.nothing


def test_every_scorer_of_the_catalogue_loads():
    known = entries("scorers")
    for entry in scorers.SCORERS:
        assert callable(entry.load())
        assert known[entry.name] is entry


def test_the_catalogue_is_read_without_the_scorers():
    code = (
        "import sys, scorers.catalogue; print([m for m in sys.modules if m.startswith('scorers.')])"
    )
    out = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "['scorers.catalogue']"
