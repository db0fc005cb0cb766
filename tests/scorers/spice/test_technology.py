"""Technologies: what is missing is said with its command, and what is left out changes nothing."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from scorers.spice.technology import missing, pruned, technology

MODELS = """* head
.subckt fet d g s b
.model fet__model.0 nmos
+ lmin = 1.0e-07 lmax = 5.0e-07 wmin = 1.0e-06 wmax = 2.0e-06
* a comment inside
+ vth0 = 1
.model fet__model.1 nmos
+ lmin = 1.0e-07 lmax = 5.0e-07 wmin = 2.0e-06 wmax = 4.0e-06
+ vth0 = 2
.ends
"""


def test_the_own_cards_need_no_file():
    assert missing("demo") == ""
    assert technology("demo").files["models.spice"].count(".model mod nmos level=1") == 2


def test_what_is_missing_is_said_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    assert "harness fetch sky130" in missing("sky130")
    assert "--arg pdk=DIR" in missing("sky130-full")
    assert "lacks lod.spice" in missing("sky130", tmp_path)
    with pytest.raises(UsageError, match="harness fetch"):
        technology("sky130")
    with pytest.raises(UsageError, match="tech=tsmc is not one of"):
        missing("tsmc")


def test_only_bins_that_a_size_falls_into_are_kept():
    from scorers.spice.technology import _kept_bins

    assert _kept_bins(MODELS, [(1.5, 0.15), (3.0, 0.15)]) == MODELS
    small = _kept_bins(MODELS, [(1.5, 0.15)])
    assert "vth0 = 1" in small
    assert "vth0 = 2" not in small
    assert small.endswith(".ends\n")
    # A size on the border of two bins needs both.
    assert _kept_bins(MODELS, [(2.0, 0.5)]) == MODELS


def test_the_models_are_named_by_their_content():
    demo = technology("demo")
    assert demo.sha256 == technology("demo").sha256
    if missing("sky130"):
        pytest.skip(missing("sky130"))
    sky = technology("sky130")
    assert sky.sha256 != demo.sha256
    few = pruned(sky, {("nch", 16.8, 0.15), ("pch", 33.6, 0.15)})
    assert few.sha256 == sky.sha256
    assert sum(map(len, few.files.values())) < 0.5 * sum(map(len, sky.files.values()))
