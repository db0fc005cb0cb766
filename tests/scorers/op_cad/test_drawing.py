"""Pictures of solids against closed forms, a brute-force renderer and what other libraries read."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cadquery", reason="needs the extra cad and libGL")

import cadquery as cq
from scipy.spatial import Delaunay

from scorers.op_cad.drawn import pictures
from scorers.op_cad.kit import drawing, rasterise, solids

ROOT = Path(__file__).resolve().parents[3]
ABOVE = [(90.0, 0.0)]
RED, BLUE = (250, 0, 0), (0, 0, 250)


def brep(work):
    return base64.b64encode(solids.write(work.val())).decode()


def box(x, y, z, at=(0, 0, 0)):
    return cq.Workplane().box(x, y, z).translate(at)


def bare(work, colour=(120, 120, 120)):
    """Give a mesh without edges, whose lines would count as pixels of it."""
    return drawing.mesh(work.val(), colour)._replace(edges=())


def pixels(png):
    image = pytest.importorskip("PIL.Image", reason="reads PNG back")
    return np.asarray(image.open(io.BytesIO(png)))


def inked(image):
    return (image != 255).any(axis=2)


# --- the rasteriser


@pytest.mark.parametrize(("a", "b", "r"), [(60, 40, 12), (50, 50, 20), (80, 30, 5)])
def test_a_hole_takes_its_share_of_the_pixels(a, b, r):
    plate = box(a, b, 5).faces(">Z").workplane().hole(2 * r)
    seen = inked(rasterise.render([bare(plate)], ABOVE, columns=1))
    rows, columns = np.nonzero(seen)
    whole = (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
    assert (np.ptp(columns) + 1) / (np.ptp(rows) + 1) == pytest.approx(a / b, rel=0.02)
    assert seen.sum() / whole == pytest.approx(1 - math.pi * r**2 / (a * b), abs=0.01)


def test_what_is_nearer_hides_what_is_farther_whatever_comes_first():
    low, high = bare(box(20, 20, 2), RED), bare(box(10, 10, 2, (0, 0, 8)), BLUE)
    for order in ([low, high], [high, low]):
        image = rasterise.render(order, ABOVE, (101, 101), 1)
        assert image[50, 50, 2] > 100 > image[50, 50, 0]
        assert image[50, 10, 0] > 100 > image[50, 10, 2]


def test_pixels_are_those_of_a_brute_force_renderer():
    """Every pixel against every triangle by barycentric coordinates; nothing of it is in the code."""
    rng = np.random.default_rng(5)
    count, size = 60, (96, 72)
    corners = rng.uniform(-1, 1, (count, 3, 3)) * 0.5 + rng.uniform(-2, 2, (count, 1, 3))
    palette = [(k, 255 - k, 0) for k in range(1, 2 * count, 2)]
    meshes = [
        rasterise.Mesh(c, np.array([[0, 1, 2]]), p) for c, p in zip(corners, palette, strict=True)
    ]
    image = rasterise.render(meshes, ABOVE, size, 1)

    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    scale = 0.92 * min(size[0] / (high - low)[0], size[1] / (high - low)[1])
    middle = (low + high) / 2
    differ = 0
    for row in range(size[1]):
        for column in range(size[0]):
            x = (column + 0.5 - size[0] / 2) / scale + middle[0]
            y = (size[1] / 2 - row - 0.5) / scale + middle[1]
            nearest, owner = -math.inf, None
            matrix = np.concatenate([corners[:, :, :2].swapaxes(1, 2), np.ones((count, 1, 3))], 1)
            weights = np.linalg.solve(matrix, np.array([[x], [y], [1.0]]))[:, :, 0]
            for k in np.nonzero((weights >= 0).all(axis=1))[0]:
                z = weights[k] @ corners[k, :, 2]
                if z > nearest:
                    nearest, owner = z, k
            seen = image[row, column].astype(float)
            if owner is None:
                differ += (seen != 255).any()
            else:  # the shade is unknown here, the ratio of red to green is not
                r, g, _ = palette[owner]
                differ += seen[2] != 0 or abs(seen[0] / max(seen[1], 1) - r / g) > 0.03 * (
                    1 + r / g
                )
    assert differ == 0


def test_triangles_that_share_sides_leave_no_gap():
    rng = np.random.default_rng(1)
    flat = np.concatenate([rng.uniform(0, 4, (400, 2)), [[0, 0], [4, 0], [0, 3], [4, 3]]])
    flat[:, 1] = np.minimum(flat[:, 1], 3)
    mesh = rasterise.Mesh(
        np.c_[flat, rng.uniform(0, 0.1, len(flat))],
        Delaunay(flat).simplices.astype(np.int64), (120, 120, 120),
    )  # fmt: skip
    seen = inked(rasterise.render([mesh], ABOVE, columns=1))
    rows, columns = np.nonzero(seen)
    assert seen[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1].all()


def test_an_edge_is_drawn_where_it_is_seen():
    cube = bare(box(20, 20, 20))
    plain = rasterise.render([cube], [(45, 30)], columns=1)

    def with_edge(start, end):
        return rasterise.render(
            [cube._replace(edges=[np.array([start, end])])], [(45, 30)], columns=1
        )

    # The corner towards the camera, its edge up; and the one that the cube hides.
    shown = (with_edge((10.0, 10, -10), (10.0, 10, 10)) != plain).any(axis=2)
    # 20 units, of which cos 45° are seen; the cube's silhouette fixes the scale.
    rows, _ = np.nonzero(inked(plain))
    turn = math.radians(30)
    tall = 20 * (math.cos(math.pi / 4) + math.sin(math.pi / 4) * (math.cos(turn) + math.sin(turn)))
    expected = 20 * math.cos(math.pi / 4) * (np.ptp(rows) + 1) / tall
    assert shown.sum() == pytest.approx(expected, abs=3)
    hidden = with_edge((-10.0, -10, -10), (-10.0, -10, 5))
    assert np.array_equal(hidden, plain)


def test_glass_tints_what_is_behind_it_and_nothing_in_front():
    cube, pane = bare(box(6, 6, 6), RED), (100, 100, 100)

    def middle(height):
        faint = [bare(box(20, 20, 1, (0, 0, height)), pane)]
        return rasterise.render([cube], ABOVE, (101, 101), 1, faint=faint)[50, 50].astype(int)

    red = rasterise.render([cube], ABOVE, (101, 101), 1)[50, 50].astype(int)
    assert (
        middle(-5).tolist() == middle(2.5).tolist() == red.tolist()
    )  # 2.5: its top is the box's own
    over = middle(8)
    assert red[0] > over[0]
    assert over[2] > 0


# Where an arrow along +X and one along +Y point in each view: right (1) or left, up (1) or down, by hand:
# seen from azimuth a, +X points to the right by -sin a and, seen from above, up by -cos a; +Y by cos a, -sin a.
POINTS = [
    ((45, 30), (-1, -1), (1, -1)),
    ((45, 120), (-1, 1), (-1, -1)),
    ((45, 210), (1, 1), (-1, 1)),
    ((45, 300), (1, -1), (1, 1)),
    ((-35.264, 45), (-1, 1), (1, 1)),
    ((-35.264, 225), (1, -1), (-1, -1)),
    ((0, 0), (0, 0), (1, 0)),
    ((0, 90), (-1, 0), (0, 0)),
    ((90, 0), (1, 0), (0, 1)),
]


def test_the_nine_views_are_those_of_the_format():
    assert [view for view, _, _ in POINTS] == list(rasterise.VIEWS)


@pytest.mark.parametrize("number", range(9))
def test_an_arrow_points_to_its_side_in_each_view(number):
    view, *sides = POINTS[number]
    up = (0, 0) if view == (90, 0) else (0, 1)
    for tip, expected in zip([(1, 0, 0), (0, 1, 0), (0, 0, 1)], [*sides, up], strict=True):
        shaft = bare(box(*(20 if t else 2 for t in tip)), BLUE)
        head = bare(box(5, 5, 5, tuple(12 * t for t in tip)), RED)
        # The panel of the whole picture, so that their order is looked at as well.
        image = rasterise.render([shaft, head])
        row, column = divmod(number, 3)
        image = image[240 * row : 240 * (row + 1), 320 * column : 320 * (column + 1)]
        red, any_ = (image[:, :, 2] == 0) & (image[:, :, 0] > 0), inked(image)
        (ry, rx), (ay, ax) = np.nonzero(red), np.nonzero(any_)
        moved = (rx.mean() - (ax.min() + ax.max()) / 2, (ay.min() + ay.max()) / 2 - ry.mean())
        assert [round(float(np.sign(m))) if abs(m) > 6 else 0 for m in moved] == list(expected)


def test_nine_views_take_less_than_half_a_second():
    plate = box(60, 40, 20).edges("|Z").fillet(6).faces(">Z").workplane()
    part = plate.rarray(14, 12, 4, 3).hole(6).faces(">Z").edges("%CIRCLE").chamfer(0.5)
    mesh = drawing.mesh(part.val(), drawing.GREY)
    assert len(mesh.triangles) > 2000
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        rasterise.png(rasterise.render([mesh]))
        seconds.append(time.process_time() - begun)
    assert min(seconds) < 0.5


def test_a_png_is_read_back_by_another_library():
    drawn = rasterise.render([drawing.mesh(box(20, 10, 5).val(), (200, 120, 40))])
    assert drawn.shape == (720, 960, 3)
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) > 4
    assert np.array_equal(pixels(rasterise.png(drawn)), drawn)


# --- solids

PROGRAM = """
import base64, hashlib
import cadquery as cq
from scorers.op_cad.kit import drawing, solids

def brep(work):
    return base64.b64encode(solids.write(work.val())).decode()

def digests(before):
    for _ in range(before):
        drawing.step(brep(cq.Workplane().box(1, 1, 1)))
    part = cq.Workplane().box(40, 30, 10).edges("|Z").fillet(3).faces(">Z").workplane().hole(8)
    other = brep(part.faces(">X").workplane().hole(4))
    part = brep(part)
    told = [drawing.image(part), drawing.cloud(part), drawing.step(part), drawing.drawn(other, part)]
    return [hashlib.sha256(repr(one).encode()).hexdigest() for one in told]
"""


def test_two_processes_give_the_same_bytes():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM + "print(*digests(0))"], cwd=ROOT, capture_output=True,
        text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    here = {}
    exec(PROGRAM, here)
    digests = here["digests"](3)
    assert ran.stdout.split() == digests
    assert len(set(digests)) == 4


def two_apart():
    return cq.Workplane(
        cq.Compound.makeCompound([box(5, 5, 5).val(), box(5, 5, 5, (20, 0, 0)).val()])
    )


def part():
    return box(40, 30, 10).edges("|Z").fillet(3).faces(">Z").workplane().hole(8)


@pytest.mark.parametrize(
    ("made", "volume"),
    [(part, 12_000 - (4 - math.pi) * 9 * 10 - math.pi * 16 * 10), (two_apart, 250.0)],
)
def test_step_is_the_same_text_and_the_same_solid(made, volume, tmp_path):
    texts = {drawing.step(brep(made())) for _ in range(12)}  # the counter gains a digit
    assert len(texts) == 1
    (text,) = texts
    (tmp_path / "a.step").write_text(text)
    again = sum(s.Volume() for s in cq.importers.importStep(str(tmp_path / "a.step")).vals())
    assert again == pytest.approx(volume, rel=1e-10)


def test_step_of_another_solid_is_another_text():
    assert drawing.step(brep(box(1, 1, 1))) != drawing.step(brep(box(1, 1, 2)))


def test_points_lie_on_the_surface_in_single_precision():
    rows = drawing.cloud(brep(box(40, 30, 10)))
    assert (len(rows), {len(row) for row in rows}) == (2048, {3})
    assert all(float(np.float32(value)) == value for value in rows[7])
    on = np.abs(np.abs(np.array(rows)) - [20, 15, 5]) < 1e-5
    assert on.any(axis=1).all()
    # By area: the faces across x, y, z have 300, 400 and 1200 of 1900; five sigma of a share.
    shares = on.mean(axis=0)
    assert shares == pytest.approx(np.array([300, 400, 1200]) / 1900, abs=5 * 0.5 / math.sqrt(2048))
    assert drawing.cloud(brep(box(40, 30, 10)), 16, seed=1) != rows[:16]


def test_an_empty_part_is_a_blank_picture():
    assert not inked(pixels(base64.b64decode(drawing.image(None)))).any()
    assert inked(pixels(base64.b64decode(drawing.image(brep(box(1, 1, 1)))))).any()


def test_a_ball_has_no_edges_and_a_cylinder_no_seam():
    assert drawing.mesh(cq.Workplane().sphere(5).val(), RED).edges == []
    assert len(drawing.mesh(cq.Workplane().circle(5).extrude(3).val(), RED).edges) == 2
    assert len(drawing.mesh(box(1, 2, 3).val(), RED).edges) == 12


def volume(flat):
    """Give a closed mesh's volume by the divergence theorem."""
    corners = np.array([flat["x"], flat["y"], flat["z"]]).T
    a, b, c = (corners[flat[k]] for k in "ijk")
    return (a * np.cross(b, c)).sum() / 6


def counts(png):
    """Count yellow and red pixels, told by what a shade leaves alone: the ratios of the colours."""
    image = pixels(png).astype(float)
    red, green, blue = (image[:, :, k] for k in range(3))
    bright = red > 100
    yellow = bright & (blue < 0.4 * red) & (green > 0.6 * red)
    return int(yellow.sum()), int((bright & (green < 0.5 * red)).sum())


def test_what_is_missing_is_yellow_and_what_is_too_much_red():
    truth, ours = box(20, 20, 20), box(20, 20, 20, (6, 0, 0))
    found = drawing.drawn(brep(ours), brep(truth))
    yellow, red = counts(base64.b64decode(found["difference"]))
    assert yellow > 2000 < red
    assert set(found["mesh"]) == {"prediction", "missing", "surplus"}
    for name, low in (("missing", -10), ("surplus", 10)):
        one = found["mesh"][name]
        assert (min(one["x"]), max(one["x"])) == (low, low + 6)
        assert volume(one) == pytest.approx(6 * 20 * 20, rel=1e-9)
    assert volume(found["mesh"]["prediction"]) == pytest.approx(8000, rel=1e-9)
    # The other way round they change places.
    turned = drawing.drawn(brep(truth), brep(ours))["mesh"]
    assert (min(turned["missing"]["x"]), min(turned["surplus"]["x"])) == (10, -10)


def test_a_forgotten_cavity_is_seen_through_the_truth():
    truth = box(20, 20, 20).cut(box(8, 8, 8))
    found = drawing.drawn(brep(box(20, 20, 20)), brep(truth))
    assert set(found["mesh"]) == {"prediction", "surplus"}
    assert volume(found["mesh"]["surplus"]) == pytest.approx(512, rel=1e-9)
    image = pixels(base64.b64decode(found["difference"])).astype(int)
    assert (image[:, :, 0] - image[:, :, 1] > 40).sum() > 2000


def test_the_same_solid_has_no_difference():
    found = drawing.drawn(brep(part()), brep(part()))
    assert set(found) == {"prediction", "truth", "difference", "mesh"}
    assert found["prediction"] == found["truth"]
    assert counts(base64.b64decode(found["difference"])) == (0, 0)
    faint, truth = (pixels(base64.b64decode(found[name])) for name in ("difference", "truth"))
    assert np.array_equal(inked(faint), inked(truth))
    assert faint[inked(truth)].mean() > truth[inked(truth)].mean() + 40
    assert set(found["mesh"]) == {"prediction"}


def test_pictures_of_one_verdict_have_one_scale():
    found = drawing.drawn(brep(box(10, 10, 10)), brep(box(20, 20, 20)))
    seen = [inked(pixels(base64.b64decode(found[name]))).sum() for name in ("prediction", "truth")]
    assert seen[1] / seen[0] == pytest.approx(4, rel=0.05)


def test_without_a_prediction_all_is_missing():
    found = drawing.drawn(None, brep(box(20, 20, 20)))
    assert set(found) == {"truth", "difference", "mesh"}
    yellow, red = counts(base64.b64decode(found["difference"]))
    assert yellow > 2000
    assert red == 0
    assert volume(found["mesh"]["missing"]) == pytest.approx(8000, rel=1e-9)


def _fails(_self, *_others):
    raise RuntimeError("BRepAlgoAPI_Cut")


@pytest.mark.parametrize(
    "cut", [_fails, lambda self, _other: self], ids=["it raises", "its result contradicts itself"]
)
def test_a_kernel_that_fails_leaves_the_difference_out(cut, monkeypatch):
    monkeypatch.setattr(cq.Shape, "cut", cut)
    found = drawing.drawn(brep(box(20, 20, 10)), brep(box(20, 20, 20)))
    assert set(found) == {"prediction", "truth", "mesh"}
    assert set(found["mesh"]) == {"prediction"}
    made = pictures(found)
    assert [picture.name for picture in made] == ["Prediction", "Truth", "3-D"]
    assert "not known" in made[-1].caption


def test_coordinates_have_four_significant_digits():
    sized = box(0.0123456, 1.23456, 123.456)
    flat = drawing.drawn(brep(sized), brep(sized))["mesh"]["prediction"]
    found = [sorted(set(flat[axis])) for axis in "xyz"]
    assert found == [[-0.006173, 0.006173], [-0.6173, 0.6173], [-61.73, 61.73]]


# --- pictures of a verdict


def test_pictures_say_what_their_colours_are():
    found = drawing.drawn(brep(box(20, 20, 20, (6, 0, 0))), brep(box(20, 20, 20)))
    made = {picture.name: picture for picture in pictures(found)}
    assert list(made) == ["Prediction", "Truth", "Difference", "3-D"]
    assert [made[name].media_type for name in made] == [
        *["image/png"] * 3, "application/vnd.plotly.v1+json"
    ]  # fmt: skip
    for word in ("Grey", "Yellow: missing", "Red: too much"):
        assert word in made["Difference"].caption
        assert word in made["3-D"].caption
    assert pixels(made["Truth"].data).shape == (480, 640, 3)


def test_the_view_that_is_turned_is_a_figure_of_plotly():
    graphs = pytest.importorskip("plotly.graph_objects", reason="validates the figure")
    found = drawing.drawn(brep(box(20, 20, 20, (6, 0, 0))), brep(box(20, 20, 20)))
    data = pictures(found)[-1].data
    assert b", " not in data  # compact
    told = json.loads(data)
    figure = graphs.Figure(told)  # refuses a field or value that it does not know
    assert [(t.type, t.name, t.color) for t in figure.data] == [
        ("mesh3d", "prediction", "#c8d0da"), ("mesh3d", "missing", "#f5c31e"),
        ("mesh3d", "surplus", "#dc322d"),
    ]  # fmt: skip
    assert figure.data[0].opacity < 1 == figure.data[1].opacity
    assert told["layout"]["scene"] == {"aspectmode": "data"}
    assert "template" not in told["layout"]
