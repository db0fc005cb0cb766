"""The page on the scale: its examples run, and its pictures are what the script draws."""

from __future__ import annotations

import doctest
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guides/irt.md"


def test_every_example_of_the_guide():
    done = doctest.testfile(str(GUIDE), module_relative=False)
    assert done.attempted > 20
    assert done.failed == 0


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("altair")
    path = ROOT / "data/make/irt_pictures.py"
    spec = importlib.util.spec_from_file_location("irt_pictures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_horizons_carries_the_published_doubling_time(script):
    """5.7 months [4.6, 6.8] is what the authors print."""
    text = str(script.horizon_picture().to_dict()["title"]["subtitle"])
    assert "5.7 months [4.6, 6.8]" in text
    assert "5.7 months [4.6, 6.8]" in (ROOT / "docs/img/irt-horizon.svg").read_text()


def test_the_pictures_are_those_the_script_makes(script):
    """By what they show, since fonts and versions move the marks of a drawing."""
    fit, minutes = script.simulated()
    link = script.link_picture(fit, minutes).to_dict()
    note = link["title"]["subtitle"][0]
    assert note in (ROOT / "docs/img/irt-link.svg").read_text()
    for name in ("curves", "link", "abilities", "horizon"):
        text = (ROOT / f"docs/img/irt-{name}.svg").read_text()
        assert "http" not in text.replace("http://www.w3.org/", "")
