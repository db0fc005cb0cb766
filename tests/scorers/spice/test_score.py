"""Specifications, margins, J and the figure of merit, by hand."""

from __future__ import annotations

import math

import pytest

from scorers.spice.circuit import Spec
from scorers.spice.score import (
    best_so_far,
    figure_of_merit,
    first_hit,
    is_met,
    margin,
    objective,
    read_specs,
)

TWO = read_specs("gain > 15 AND power < 65")


def test_j_is_that_of_its_formula():
    assert objective(TWO, {"gain": 18, "power": 70}) == pytest.approx(-5 / 65)
    expected = math.tanh(3 / 15) + math.tanh(5 / 65)
    assert objective(TWO, {"gain": 18, "power": 60}) == pytest.approx(expected)
    assert round(expected, 6) == 0.274147
    assert objective(TWO, {"gain": 18}) == -1000
    assert objective(TWO, None) == -1000
    assert objective(TWO, {"gain": -1e9, "power": 60}) == -10


def test_a_limit_itself_is_not_met():
    assert not is_met(TWO, {"gain": 15, "power": 60})
    assert is_met(TWO, {"gain": 15.0001, "power": 64.9})


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        (Spec("x", ">", -15), -10, 1 / 3), (Spec("x", "<", -25), -30, 0.2), (Spec("x", ">", 0), 2, 2.0),
        (Spec("x", "<", 0), 2, -2.0),
    ],
)  # fmt: skip
def test_margins_of_negative_targets_and_of_zero(spec, value, expected):
    assert margin(spec, {"x": value}) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("specs", "metrics", "expected"),
    [
        ("gain > 15", {"gain": 30}, 2.0),
        ("power < 65", {"power": 32.5}, 2.0),
        ("peak > -15", {"peak": -10}, 1.5),
        ("thd < -25", {"thd": -50}, 2.0),
        ("a > 2 AND b < 4", {"a": 3, "b": 2}, 3.0),
        ("offset < 0", {"offset": 7}, 1.0),
    ],
)
def test_the_figure_of_merit_has_its_signs_right(specs, metrics, expected):
    assert figure_of_merit(read_specs(specs), metrics) == pytest.approx(expected)


def test_upstreams_figure_of_the_amplifier():
    specs = read_specs("dc_gain_db > 15 AND ugbw > 10 AND power_dc < 65")
    metrics = {"dc_gain_db": 18.01931, "ugbw": 21.32281, "power_dc": 57.53192}
    assert figure_of_merit(specs, metrics) == pytest.approx(2.89398, abs=1e-5)


def test_specifications_are_read_with_their_signs_or_refused():
    assert read_specs("thd_db < -25 and x > 1e-3") == (
        Spec("thd_db", "<", -25),
        Spec("x", ">", 1e-3),
    )
    for bad in ("gain", "gain > high", "gain = 3", ""):
        with pytest.raises(ValueError, match="no specification"):
            read_specs(bad)


def test_the_first_hit_and_the_best_so_far():
    tried = [
        None,
        {"gain": 18, "power": 70},
        {"gain": 18, "power": 60},
        {"gain": 15.1, "power": 64},
    ]
    assert first_hit(TWO, tried) == 3
    assert first_hit(TWO, tried[:2]) is None
    curve = best_so_far(TWO, tried)
    assert curve[0] == -1000
    assert curve == sorted(curve)
    assert curve[-1] == pytest.approx(0.274147, abs=1e-6)
