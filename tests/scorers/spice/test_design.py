"""A sizing is every variable with a number of its grid; anything else is refused with its reason."""

from __future__ import annotations

import json
import math

import pytest

from scorers.spice.design import DesignError, read_design
from scorers.spice.netlist import Netlist, number

GRID = {"W": (0.84, 1.05, 100.0), "L": (0.15, 1.0)}
RIGHT = {"W": 1.05, "L": 0.15}


def test_a_right_one_is_read_alone_and_in_a_fence():
    text = json.dumps(RIGHT)
    assert read_design(text, GRID) == RIGHT
    assert read_design(f"Here it is:\n```json\n{text}\n```\nDone.", GRID) == RIGHT
    assert read_design({"L": 1, "W": 1.05 * (1 + 1e-10)}, GRID) == {"W": 1.05, "L": 1.0}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"W": 1.05}, "'L' missing"),
        ({**RIGHT, "X": 1}, "'X' is no variable"),
        ({"w": 1.05, "L": 0.15}, "'W' missing; 'w' is no variable"),
        ({**RIGHT, "W": "1.05"}, "no number"),
        ({**RIGHT, "W": True}, "no number"),
        ({**RIGHT, "W": None}, "no number"),
        ({**RIGHT, "W": [1.05]}, "no number"),
        ({**RIGHT, "W": math.nan}, "no number"),
        ({**RIGHT, "W": math.inf}, "no number"),
        ({**RIGHT, "W": 1.06}, "not on its grid"),
        ({**RIGHT, "W": 100.1}, "not on its grid"),
        ({**RIGHT, "W": -1.05}, "not on its grid"),
        ({**RIGHT, "L\n.include /etc/passwd": 1}, "is no variable"),
        ("[1, 2]", "no object"),
        ("W = 1.05", "no JSON object"),
        ('{"W": 1.05, "W": 0.84, "L": 0.15}', "stands twice"),
        ('{"W": NaN, "L": 0.15}', "no number"),
        ("[" * 100_000, "no JSON object"),
        ("", "no JSON object"),
    ],
)
def test_what_is_no_sizing_is_refused(answer, why):
    with pytest.raises(DesignError, match=why):
        read_design(answer, GRID)


def test_only_numbers_and_plain_names_get_into_a_netlist():
    net = Netlist()
    with pytest.raises(ValueError, match="no name"):
        net.resistor("a\n.shell", "0", 1.0)
    for bad in (math.nan, math.inf, True):
        with pytest.raises(ValueError, match="no number"):
            number(bad)
    with pytest.raises(ValueError, match="transistor"):
        net.n("d", "g", "s", -1.0, 0.15)


def test_a_wide_transistor_is_several_side_by_side():
    net = Netlist()
    net.n("d", "g", "s", 100.0, 0.15)
    net.n("d", "g", "s", 100.1, 0.15)
    net.p("d", "g", "s", 1000.0, 0.5, m=2)
    assert [line.split(" ", 5)[5] for line in net.text().splitlines()] == [
        "nch w=100 l=0.15 m=1", "nch w=50.05 l=0.15 m=2", "pch w=100 l=0.5 m=20",
    ]  # fmt: skip
