"""Levels drawn from random sizings: as hard as they say on sizings of another seed."""

from __future__ import annotations

import random
import runpy
import shutil
from pathlib import Path

import pytest

import harness
from scorers.spice import CIRCUITS, Simulator, is_met, technology
from scorers.spice.calibration import LEVELS, calibrate, calibration, level_specs
from scorers.spice.circuit import Circuit, Metric, Spec

# What was measured with 600 points by the authors of the specification: 50 % quantiles and targets of level 2.
DEMO_P50 = {
    "inverter": {"dc_gain_db": 27.1, "average_delay": 19.1, "dynamic_power": 130},
    "telescopic_ota": {"dc_gain_db": 66.0, "ugbw": 50.8},
    "smc": {"dc_gain_db": 123, "ugbw": 519, "power_dc": 407},
    "3_stage_ring_osc": {"frequency_mhz": 2833, "power_uw": 486},
    "folded_cascode_ota_lp": {"stopband_attenuation_db": 24.8, "cutoff_mhz": 0.70},
    "ldo_regulator": {"dropout_mv": 85, "line_reg_mv_per_v": 0.211, "psrr_db": 72.3, "power_uw": 6574},
}  # fmt: skip
UPSTREAM_RATES = {
    "nand_gate": 153, "xor_gate": 115, "diode_load_amp": 2, "dfcfc": 600, "fdgb": 281, "iac": 248, "nmcnr": 0, "smc": 566,
    "3_stage_ring_osc": 63, "voltage_controlled_osc": 45, "bandgap_reference": 158, "folded_cascode_ota_lp": 366,
    "folded_cascode_ota_hp": 30, "folded_cascode_ota_bandp": 27, "five_trans_ota": 0, "current_mirror_ota": 0,
}  # fmt: skip


@pytest.mark.parametrize("technology_name", ["demo", "sky130"])
def test_every_circuit_has_levels_that_grow_harder(technology_name):
    for name, circuit in CIRCUITS.items():
        if technology_name not in circuit.technologies:
            continue
        found = calibration(technology_name, name)
        assert list(found.levels) == list(LEVELS)
        easy, middle, hard = (found.levels[level] for level in "123")
        assert 0.1 <= easy.rate <= 0.3
        assert hard.rate <= middle.rate <= easy.rate
        assert middle.rate <= 0.12
        for soft, strict in ((easy, middle), (middle, hard)):
            for a, b in zip(soft.specs, strict.specs, strict=True):
                assert a.metric == b.metric
                assert b.target >= a.target if a.op == ">" else b.target <= a.target
        assert all(found.levels[level].gold for level in "123")


def test_quantiles_are_those_that_others_measured():
    for name, known in DEMO_P50.items():
        for metric, value in known.items():
            assert calibration("demo", name).quantiles[metric][1] == pytest.approx(value, rel=0.15)


def test_upstreams_targets_are_met_as_often_as_others_measured():
    for name, of_600 in UPSTREAM_RATES.items():
        rate, expected = calibration("demo", name).levels["upstream"].rate, of_600 / 600
        # Two samples of 600: four standard errors of their difference.
        error = (2 * max(expected, 0.005) * (1 - min(expected, 0.995)) / 600) ** 0.5
        assert abs(rate - expected) <= 4 * error, name


def test_an_item_that_chance_always_solves_is_marked():
    sure = calibration("sky130", "five_trans_ota").levels["upstream"]
    assert (sure.rate, sure.discriminating) == (1.0, False)
    assert calibration("sky130", "five_trans_ota").levels["2"].discriminating


def test_levels_are_as_hard_on_another_seed():
    if shutil.which("ngspice") is None:
        pytest.skip("needs the program ngspice: apt-get install ngspice")
    made = runpy.run_path(str(Path(harness.__file__).parents[1] / "data/make/ams_sizing.py"))
    simulator = Simulator(technology("demo"))
    met = dict.fromkeys("123", 0)
    names = ("smc", "folded_cascode_ota_hp", "telescopic_ota")
    for name in names:
        circuit = CIRCUITS[name]
        found = simulator.simulate(circuit, made["sizings"](circuit, 150, seed=1))
        for level in "123":
            specs = calibration("demo", name).levels[level].specs
            met[level] += sum(is_met(specs, one.metrics if one.valid else None) for one in found)
        gold = [calibration("demo", name).levels[level].gold for level in "123"]
        for level, one in zip("123", simulator.simulate(circuit, gold), strict=True):
            assert is_met(calibration("demo", name).levels[level].specs, one.metrics)
    simulator.close()
    shares = {level: n / (150 * len(names)) for level, n in met.items()}
    assert 0.14 <= shares["1"] <= 0.26
    assert 0.02 <= shares["2"] <= 0.10
    assert shares["3"] <= 0.03


def test_a_levels_share_is_that_of_independent_figures():
    # Two independent uniform figures, both at quantile q: met by (1 - q)^2 of all points.
    rng = random.Random(0)
    points = [({"x": k}, {"a": rng.random(), "b": rng.random()}) for k in range(4000)]
    circuit = Circuit(
        name="two", title="", kind="", variables={"x": (1.0,)}, build=lambda net, size: None, bench="",
        metrics=(
            Metric(name="a", unit="", better=">"), Metric(name="b", unit="", better="<"),
        ),
        upstream=(Spec("a", ">", 0.5),), words="",
    )  # fmt: skip
    found = level_specs(circuit, [metrics for _, metrics in points], len(points))
    for level, share in (("1", 0.20), ("2", 0.05), ("3", 0.01)):
        a, b = found[level]
        assert a.target == pytest.approx(1 - share**0.5, abs=0.03)
        assert b.target == pytest.approx(share**0.5, abs=0.03)
    made = calibrate(circuit, points, "")
    assert made.levels["upstream"].rate == pytest.approx(0.5, abs=0.03)
    # The best of n uniform values has mean n/(n+1); J = tanh((m - t) / t).
    best = made.levels["upstream"].random_j
    assert best["10"] < best["30"] < best["100"]


def test_a_figure_that_hardly_changes_has_no_target():
    points = [{"a": 1.0 + 1e-3 * k, "b": float(k)} for k in range(20)]
    circuit = Circuit(
        name="flat", title="", kind="", variables={"x": (1.0,)}, build=lambda net, size: None, bench="",
        metrics=(
            Metric(name="a", unit="", better=">"), Metric(name="b", unit="", better=">"),
        ),
        upstream=(), words="",
    )  # fmt: skip
    assert {spec.metric for spec in level_specs(circuit, points, 20)["1"]} == {"b"}
