"""Layouts are read strictly, and written as a text that a model can go by."""

from __future__ import annotations

import pytest

from scorers.drc.layout import BadLayoutError, as_text, read_layout

A, B = (1, 0), (2, 0)


def test_a_layout_is_flattened_and_the_largest_comes_first(gds):
    data = gds({A: [(0, 0, 100, 100), (0, 0, 1000, 200)], B: [[(0, 0), (0, 50), (50, 0)]]})
    layout = read_layout(data)
    assert layout.dbu == 0.001
    assert layout.box == (0.0, 0.0, 1.0, 0.2)
    assert [len(layout.layers[key]) for key in (A, B)] == [2, 1]
    assert max(x for x, _ in layout.layers[A][0].hull) == 1.0


@pytest.mark.parametrize(
    ("make", "options", "why"),
    [
        (lambda g: b"GDS? no", {}, "the.gds cannot be read"),
        (lambda g: b"", {}, "the.gds cannot be read"),
        (lambda g: g({A: [(0, 0, 9, 9)]}, tops=2), {}, "has 2 top cells"),
        (lambda g: g({}, tops=0), {}, "has 0 top cells"),
        (lambda g: g({A: [(0, 0, 9, 9)]}, dbu=0.005), {"dbu": 0.001}, "0.005 µm, not 0.001"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(gds, make, options, why):
    with pytest.raises(BadLayoutError, match=why):
        read_layout(make(gds), "the.gds", **options)


def test_the_text_has_the_decimals_that_the_database_unit_needs(gds):
    assert "(0.139,0.000)" in as_text(gds({A: [(0, 0, 139, 10)]}))
    assert "(0.1395,0.0000)" in as_text(gds({A: [(0, 0, 279, 10)]}, dbu=0.0005))
    assert "layer 1/0 (metal):" in as_text(gds({A: [(0, 0, 9, 9)]}), {A: "metal"})
    assert as_text(gds({}, tops=1)) == "an empty layout"


def test_a_large_layout_is_cut_and_says_so(gds):
    many = [(20 * k, 0, 20 * k + 10, 10) for k in range(40)]
    text = as_text(gds({(n, 0): many for n in range(1, 36)}))
    assert text.count("polygon (") <= 64  # 256 vertices of boxes
    assert "8 further polygons are left out" in text
    assert "3 further layers are left out" in text
