"""The page Horizon over a stored fit of BRIDGE's answers: the figures measured before this code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from harness.cli.main import main
from harness.store import Store, snapshot
from leaderboard.rows.horizon import population
from leaderboard.rows.scale import fit_choices, scale

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = ROOT.parent / "shared" / "upstream" / "irt" / "bridge"


@pytest.fixture(scope="module")
def bridge_store(tmp_path_factory) -> Store:
    if not (BRIDGE / "all_a_pyirt.jsonl").exists():
        pytest.skip("needs ../shared/upstream/irt/bridge")
    root = tmp_path_factory.mktemp("bridge") / "store"
    code = main([
        "fit", "--responses", str(BRIDGE / "all_a_pyirt.jsonl"), "--human-minutes",
        str(BRIDGE / "items.csv"), "--anchors", "source=metr", "--store", str(root), "--json",
    ])  # fmt: skip
    assert code == 0
    return Store.open(root)


def newest(store: Store) -> str:
    return fit_choices(snapshot(store))[0].fit_id


def test_the_figures_are_those_measured_before(bridge_store):
    """118 minutes; 5.83 months [5.2, 6.5]; the levels move them to 5.5 and 5.3 to 6.3 months."""
    found = population(snapshot(bridge_store), newest(bridge_store))
    basis = found.basis
    assert found.kind == "fitted"
    assert (basis.n_population, basis.n_dated, basis.n_anchors) == (176, 36, 170)
    assert basis.best_minutes == pytest.approx(118, abs=1)
    assert (basis.best_lo, basis.best_hi) == (pytest.approx(67, abs=8), pytest.approx(178, abs=12))
    assert basis.months == pytest.approx(5.83, abs=0.02)
    assert (basis.months_lo, basis.months_hi) == pytest.approx((5.2, 6.5), abs=0.1)
    levels = {row.link_level: row for row in found.levels}
    assert list(levels) == ["ols", "weighted", "joint"]
    assert levels["weighted"].months == pytest.approx(5.5, abs=0.1)
    assert 5.3 <= levels["joint"].months <= 6.3
    assert len([m for m in found.models if m.released is None]) == 140


def test_the_scale_has_its_items_and_marks(bridge_store):
    found = scale(snapshot(bridge_store), newest(bridge_store))
    assert (len(found.items), len(found.models), found.is_bridge) == (1019, 176, True)
    assert sum("prior_only" in item.flags for item in found.items) == 165
    assert sum(item.minutes_known is not None for item in found.items) == 170


@pytest.mark.parametrize("name", ["scale", "horizon"])
def test_pages_at_full_size(bridge_store, monkeypatch, name):
    monkeypatch.setenv("HARNESS_STORE", os.fspath(bridge_store.root))
    app = AppTest.from_file(str(ROOT / "leaderboard/script/app.py"), default_timeout=60)
    app._page_hash = calc_hash(name)
    app.run()
    assert not app.exception
    captions = [caption.value for caption in app.caption]
    assert any("arXiv 2602.07267" in said and "CC BY 4.0" in said for said in captions)
    if name == "horizon":
        basis = next(f.value for f in app.dataframe if "n_anchors" in f.value)
        assert list(basis["origin"]) == ["published answers, fitted here", "published figures"]
        assert "5.83 months [5.16, 6.48]" in "".join(m.value for m in app.markdown)
