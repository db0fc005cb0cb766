"""Layouts drawn for a test, and the engines where they are."""

from __future__ import annotations

import shutil

import pytest

db = pytest.importorskip("klayout.db", reason="needs the extra drc")

A, B = (1, 0), (2, 0)
HEAD = 'source($input)\nreport("test", $output)\na = input(1, 0)\nb = input(2, 0)\n'


@pytest.fixture(scope="session")
def gds():
    """Make a layout of boxes: {layer: [(left, bottom, right, top), …]}; a list of points is a polygon."""

    def made(shapes, dbu=0.001, tops=1):
        layout = db.Layout()
        layout.dbu = dbu
        cells = [layout.create_cell(f"TOP{k}") for k in range(tops)]
        for layer, drawn in shapes.items():
            index = layout.layer(*layer)
            for one in drawn:
                points = isinstance(one[0], tuple)
                shape = db.Polygon([db.Point(*p) for p in one]) if points else db.Box(*one)
                cells[0].shapes(index).insert(shape)
        options = db.SaveLayoutOptions()
        options.format = "GDS2"
        options.gds2_write_timestamps = False
        return layout.write_bytes(options)

    return made


@pytest.fixture(scope="module")
def klayout():
    """The program in a box, one engine for a file of tests."""
    if shutil.which("klayout") is None:
        pytest.skip("needs the program klayout: apt-get install klayout")
    from scorers.drc.klayout import KlayoutEngine

    engine = KlayoutEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def regions():
    """Our interpreter in a box, which is let go with the file that uses it: others count boxes."""
    from scorers.drc.regions import RegionsEngine

    engine = RegionsEngine()
    yield engine
    engine.close()
