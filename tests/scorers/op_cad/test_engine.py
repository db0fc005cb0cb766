"""Programs in boxes: each hostile one has its class, and the next program finds all as it was."""

from __future__ import annotations

import ctypes.util

import pytest

pytest.importorskip("cadquery", reason="needs the extra cad and libGL")

from scorers.op_cad import CadEngine, engine_version, missing_engine

BEFORE = "import cadquery as cq\nresult_0 = cq.Workplane().box(40, 30, 10)\n"
GOLD = 'result = result_0.edges("|Z").fillet(2)\n'


@pytest.fixture(scope="module")
def engine():
    made = CadEngine(wall_s=60)
    yield made
    made.close()


def test_an_endless_program_ends_and_the_next_one_finds_all_as_it_was():
    engine = CadEngine(wall_s=3)
    built = engine.build("while True: pass", BEFORE)
    assert built.fault is not None
    assert built.fault.kind == "timeout"
    assert engine.build(GOLD.replace("2)", "1)"), BEFORE).calls[0]["sizes"] == [1.0]
    engine.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("x = bytearray(1 << 34)", "memory"),
        ("import numpy\nnumpy.ctypeslib.ctypes.string_at(0)", "crash"),
        ("import numpy\nnumpy.ctypeslib.ctypes.CDLL(None)._exit(0)", "crash"),
        ("import socket", "forbidden"),
        ("result = (", "syntax"),
        ("pass", "no_result"),
        ("result = result_0.edges('|Z').fillet(30)", "geometry"),
    ],
)
def test_what_a_program_does_has_its_own_class(engine, code, kind):
    built = engine.build(code, BEFORE)
    assert built.fault is not None
    assert built.fault.kind == kind
    assert engine.build(GOLD, BEFORE).fault is None


def test_a_right_program_is_measured_and_the_same_is_not_run_again(engine):
    true = engine.truth(GOLD, BEFORE)
    made = engine.build(GOLD, BEFORE)
    assert engine.build(GOLD, BEFORE) is made
    truth = {"full": true.solids["result"], "before": true.solids["before"]}
    found = engine.measure({"full": made.solids["result"]}, truth, (made.calls, true.calls), n=1024)
    assert found.fault is None
    assert found.figures["region_iou"] == pytest.approx(1.0, abs=1e-9)
    assert found.figures["cf_iou"] == 1.0
    assert found.engines == {"region": "occ", "full": "occ"}
    assert 0 < engine.floor(truth["full"], n=1024) < 0.02


def test_what_is_no_solid_cannot_be_measured(engine):
    true = engine.truth(GOLD, BEFORE)
    found = engine.measure({"full": "bm8gQlJFUA=="}, {"full": true.solids["result"]}, n=64)
    assert found.fault is not None
    assert found.fault.kind == "unmeasurable"


SCAN = """
seen = 0
for line in open('/proc/self/maps'):
    place, mode = line.split()[:2]
    if not mode.startswith('rw') or '[v' in line:
        continue
    low, high = (int(x, 16) for x in place.split('-'))
    with open('/proc/self/mem', 'rb') as memory:
        memory.seek(low)
        try:
            data = memory.read(high - low)
        except OSError:
            continue
    at = data.find(b'marked-')
    while at >= 0:
        # What follows is compared the wrong way round, so that this program does not find itself.
        seen += data[at + 7 : at + 17][::-1] == b'9876543210'
        at = data.find(b'marked-', at + 1)
assert seen == EXPECTED, seen
"""


@pytest.mark.parametrize(("where", "expected"), [("truth", "0"), ("build", "1")])
def test_a_truth_that_was_run_before_is_not_in_the_memory_of_a_program(engine, where, expected):
    # A program that came before may be seen, which shows that the scan would find a truth as well.
    earlier = CadEngine(wall_s=20)
    getattr(earlier, where)(f"text = 'marked-0123456789'\n{GOLD}", BEFORE)
    scan = SCAN.replace("seen == EXPECTED", "(seen > 0) == EXPECTED").replace("EXPECTED", expected)
    found = earlier.build(scan + GOLD, BEFORE)
    earlier.close()
    assert found.fault is None, found.fault


def test_what_is_missing_is_said_with_the_command(monkeypatch):
    assert missing_engine() == ""
    assert "cadquery 2." in engine_version()
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    assert "apt-get install libgl1" in missing_engine()
