"""Pictures of solids: shares of pixels, who hides whom, the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cadquery")
pytest.importorskip("trimesh")

import cadquery as cq
import numpy as np

from scorers.op_cad.kit import shown, solids, views
from scorers.op_cad.pictured import pictures

ABOVE = [(90.0, 0.0)]
ROOT = Path(__file__).resolve().parents[3]


def brep(work):
    return base64.b64encode(solids.write(work.val())).decode()


def box(x, y, z, colour, at=(0, 0, 0)):
    return shown._mesh(cq.Workplane("XY").box(x, y, z).translate(at).val(), colour)._replace(
        lines=()
    )


def test_a_hole_takes_its_share_of_the_pixels():
    a, b, r = 60.0, 40.0, 12.0
    plate = cq.Workplane("XY").box(a, b, 5).faces(">Z").workplane().hole(2 * r)
    mesh = shown._mesh(plate.val(), (100, 100, 100))._replace(lines=())
    full = shown._mesh(cq.Workplane("XY").box(a, b, 5).val(), (100, 100, 100))._replace(lines=())
    counts = [
        int((views.render([m], ABOVE, (900, 900), 1) != 255).all(axis=2).sum())
        for m in (mesh, full)
    ]
    assert counts[0] / counts[1] == pytest.approx(1 - math.pi * r**2 / (a * b), abs=0.01)


def test_what_is_nearer_hides_what_is_farther_whatever_comes_first():
    low, high = box(20, 20, 2, (250, 0, 0)), box(10, 10, 2, (0, 0, 250), (0, 0, 8))
    for order in ([low, high], [high, low]):
        image = views.render(order, ABOVE, (101, 101), 1)
        assert image[50, 50, 2] > 100 > image[50, 50, 0]
        assert (image[:, :, 0] > 100).any()


def test_each_view_looks_from_where_it_says():
    # A long arm along +X, a short one along +Y, a mast along +Z.
    part = [
        box(30, 2, 2, (9, 9, 9), (15, 0, 0)),
        box(2, 12, 2, (9, 9, 9), (0, 6, 0)),
        box(2, 2, 20, (9, 9, 9), (0, 0, 10)),
    ]

    def extent(view):
        rows, columns = np.nonzero((views.render(part, [view], (200, 200), 1) != 255).any(axis=2))
        return columns.min(), columns.max(), rows.min(), rows.max()

    left, right, top, bottom = extent((90.0, 0.0))
    assert right - left > 1.8 * (bottom - top)  # +X to the right, +Y up
    left, right, top, bottom = extent((0.0, 0.0))  # from +X: +Y to the right, +Z up
    assert (bottom - top) > 1.3 * (right - left)
    left, right, top, bottom = extent((0.0, 90.0))  # from +Y: the long arm to the left
    assert (right - left) > 1.3 * (bottom - top)


def test_a_png_is_read_back_by_another_library():
    image = pytest.importorskip("matplotlib.image")
    drawn = views.render([box(20, 10, 5, (200, 120, 40))])
    assert drawn.shape == (720, 960, 3)
    read = image.imread(io.BytesIO(views.png(drawn)), format="png")
    assert np.array_equal((read[:, :, :3] * 255).round().astype(np.uint8), drawn)


PROGRAM = """
import base64, hashlib, sys
import cadquery as cq
from scorers.op_cad.kit import shown, solids
part = cq.Workplane("XY").box(40, 30, 10).edges("|Z").fillet(3).faces(">Z").workplane().hole(8)
brep = base64.b64encode(solids.write(part.val())).decode()
told = [shown.image(brep), shown.cloud(brep), shown.step(brep)]
print([hashlib.sha256(repr(one).encode()).hexdigest() for one in told])
"""


def test_two_processes_give_the_same_bytes():
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(said) == 1


def test_step_text_is_the_same_twice_and_holds_the_same_solid(tmp_path):
    part = cq.Workplane("XY").box(40, 30, 10).edges("|Z").fillet(3)
    first, second = (shown.step(brep(part)) for _ in range(2))
    assert hashlib.sha256(first.encode()).digest() == hashlib.sha256(second.encode()).digest()
    (tmp_path / "a.step").write_text(first)
    again = cq.importers.importStep(str(tmp_path / "a.step"))
    assert again.val().Volume() == pytest.approx(part.val().Volume(), abs=1e-10 * 12000)


def test_points_lie_on_the_surface():
    rows = np.array(shown.cloud(brep(cq.Workplane("XY").box(40, 30, 10)), 500))
    assert rows.shape == (500, 3)
    off = np.abs(np.abs(rows) - [20, 15, 5]).min(axis=1)
    assert off.max() < 1e-5


def test_what_is_missing_is_yellow_and_what_is_too_much_red():
    truth = cq.Workplane("XY").box(20, 20, 20)
    ours = cq.Workplane("XY").box(20, 20, 20).translate((6, 0, 0))
    found = shown.drawn(brep(ours), brep(truth))
    made = {picture.name: picture for picture in pictures(found)}
    assert list(made) == ["Prediction", "Truth", "Difference", "In three dimensions"]
    image = pytest.importorskip("matplotlib.image")
    pixels = image.imread(io.BytesIO(made["Difference"].data), format="png")[:, :, :3]
    yellow = (
        (pixels[:, :, 0] > 0.4)
        & (pixels[:, :, 2] < 0.35 * pixels[:, :, 0])
        & (pixels[:, :, 1] > 0.6 * pixels[:, :, 0])
    )
    red = (pixels[:, :, 0] > 0.4) & (pixels[:, :, 1] < 0.5 * pixels[:, :, 0])
    assert yellow.sum() > 1000 < red.sum()
    missing, surplus = found["meshes"]["missing"], found["meshes"]["surplus"]
    assert (min(missing["x"]), max(missing["x"])) == (-10.0, -4.0)
    assert (min(surplus["x"]), max(surplus["x"])) == (10.0, 16.0)


def test_the_same_solid_has_no_difference():
    part = brep(cq.Workplane("XY").box(20, 20, 20))
    found = shown.drawn(part, part)
    assert set(found["meshes"]) == {"prediction", "truth"}
    assert "missing" not in found["meshes"]
