"""Pictures of layouts: well-formed, bounded, and nothing of a deck is markup in them."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from scorers.drc.picture import picture
from scorers.drc.results import LayoutRun, Marker

A = (1, 0)
EVIL = "<script>alert(1)</script>&\x00\u202e"


def drawn(gds, run, label=(1,), categories=("W",), layers=None):
    made = picture(gds, run, label, categories, layers or {"a": (1, 0)})
    return made, ET.fromstring(made.data.decode())


def test_shapes_and_violations_are_drawn_to_scale(gds):
    pair = Marker(category="W", kind="edge_pair", points=(((0, 0), (0, 2)), ((1, 0), (1, 2))))
    run = LayoutRun(index=3, status="ok", counts={"W": 1}, markers=(pair,))
    made, svg = drawn(gds({A: [(0, 0, 1000, 2000)]}), run)
    assert made.name == "Layout 3: right"
    assert made.caption == "W: found, violated in truth"
    paths = [p.get("d") for p in svg.iter("{http://www.w3.org/2000/svg}path")]
    first = [tuple(map(float, xy.split(","))) for xy in paths[0][1:-2].split(" L")]
    width = max(x for x, _ in first) - min(x for x, _ in first)
    height = max(y for _, y in first) - min(y for _, y in first)
    assert height == pytest.approx(2 * width, rel=1e-3)
    assert "violation of W" in "".join(svg.itertext())


@pytest.mark.parametrize(
    ("run", "label", "title"),
    [
        (LayoutRun(index=0, status="ok", counts={"W": 1}), (0,), "wrong"),
        (LayoutRun(index=0, status="ok", counts={}), (1,), "wrong"),
        (LayoutRun(index=0, status="error"), (0,), "wrong"),
        (LayoutRun(index=0, status="ok", counts={}), (0,), "right"),
    ],
)
def test_the_title_says_whether_the_deck_was_right(gds, run, label, title):
    made, _ = drawn(gds({A: [(0, 0, 9, 9)]}), run, label)
    assert made.name.endswith(title)


def test_whatever_a_deck_wrote_is_no_markup(gds):
    marker = Marker(category=EVIL, kind="polygon", points=(((0, 0), (1, 0), (0, 1)),))
    run = LayoutRun(index=0, status="ok", counts={EVIL: 1}, markers=(marker,))
    made, svg = drawn(gds({A: [(0, 0, 9, 9)]}), run, (1,), (EVIL,), {EVIL: (1, 0)})
    assert b"<script" not in made.data
    assert "\x00" not in made.caption
    assert not [e for e in svg.iter() if "script" in e.tag]


def test_empty_broken_and_large_layouts_have_a_picture_too(gds):
    run = LayoutRun(index=0, status="ok")
    drawn(gds({}), run)
    assert "cannot be read" in "".join(drawn(b"no layout", run)[1].itertext())
    many = [(20 * k, 0, 20 * k + 10, 10) for k in range(3000)]
    assert len(drawn(gds({A: many}), run)[0].data) < 100_000
