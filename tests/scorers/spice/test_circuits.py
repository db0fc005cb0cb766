"""Circuits against figures that others found, and against closed forms."""

from __future__ import annotations

import math
import shutil

import pytest

from scorers.spice import CIRCUITS, Simulator, technology
from scorers.spice.circuit import Circuit, Metric
from scorers.spice.technology import missing

# One sizing each, the middle of all grids, simulated with the whole library of the foundry.
SKY130 = {
    "five_trans_ota": {"dc_gain_db": 18.01931, "ugbw": 21.32281, "power_dc": 57.53192},
    "inverter": {"dc_gain_db": 23.819, "average_delay": 18.416, "dynamic_power": 65.83},
    "buffer": {"dc_gain_db": 38.569, "average_delay": 45.31, "dynamic_power": 69.78},
    "3_stage_ring_osc": {"frequency_mhz": 3904.9, "power_uw": 410.7},
}
DEMO = {
    "five_trans_ota": {"dc_gain_db": 41.619, "ugbw": 85.01, "power_dc": 69.933},
    "inverter": {"dc_gain_db": 27.127, "average_delay": 18.71, "dynamic_power": 130.9},
}
GRIDS = {
    "inverter": 81, "buffer": 6_561, "nand_gate": 1_225, "xor_gate": 1_225, "resistive_load_amp": 96, "diode_load_amp": 576,
    "five_trans_ota": 729, "current_mirror_ota": 6_561, "3_stage_ring_osc": 62_500,
}  # fmt: skip


@pytest.fixture(scope="module", params=["sky130", "demo"])
def simulator(request):
    if shutil.which("ngspice") is None:
        pytest.skip("needs the program ngspice: apt-get install ngspice")
    if why := missing(request.param):
        pytest.skip(why)
    made = Simulator(technology(request.param))
    yield made
    made.close()


def test_grids_have_the_sizes_that_the_benchmark_states():
    assert {name: circuit.n_points for name, circuit in CIRCUITS.items()} == GRIDS


def test_the_middle_of_every_grid_is_simulated_and_known_figures_come_out(simulator):
    known = SKY130 if simulator.technology.name == "sky130" else DEMO
    for name, circuit in CIRCUITS.items():
        (found,) = simulator.simulate(circuit, [circuit.middle])
        assert found.valid, (name, found.reason)
        for metric, value in known.get(name, {}).items():
            assert found.metrics[metric] == pytest.approx(value, rel=2e-3), (name, metric)


def test_the_amplifier_of_five_transistors_has_all_digits_with_and_without_pruned_models():
    if shutil.which("ngspice") is None or missing("sky130"):
        pytest.skip("needs ngspice and the SKY130 models: harness fetch sky130")
    circuit = CIRCUITS["five_trans_ota"]
    for prune in (True, False):
        simulator = Simulator(technology("sky130"), workers=1, prune=prune)
        (found,) = simulator.simulate(circuit, [circuit.middle])
        simulator.close()
        # ngspice prints six digits.
        assert found.metrics == {"dc_gain_db": 18.0193, "ugbw": 21.3228, "power_dc": 57.5319}


def test_a_resistor_and_a_capacitor_are_those_of_the_textbook(simulator):
    def build(net, size):
        net.voltage("in", "in", "0", 0.0, ac=1.0)
        net.resistor("in", "out", size["R"])
        net.capacitor("out", "0", 1e-9)

    corner = 1 / (2 * math.pi * 1e3 * 1e-9)
    assert corner == pytest.approx(159_155, abs=0.5)
    bench = f'ac lin 1 {corner} {corner}\nlet there = db(v(out))\necho "@m there $&there"\n'
    circuit = Circuit(
        name="rc", title="", kind="", variables={"R": (1e3,)}, build=build, bench=bench,
        metrics=(Metric(name="there", unit="dB", better=">"),), upstream=(), words="",
    )  # fmt: skip
    (found,) = simulator.simulate(circuit, [{"R": 1e3}])
    assert found.metrics["there"] == pytest.approx(-3.0103, abs=1e-4)


def test_a_common_source_stage_is_that_of_the_square_law():
    if shutil.which("ngspice") is None:
        pytest.skip("needs the program ngspice: apt-get install ngspice")
    simulator = Simulator(technology("demo"), workers=1)
    circuit = CIRCUITS["resistive_load_amp"]
    assert circuit.middle == {"W_input": 20.0, "L_input": 2.0, "R_load": 50e3}
    (found,) = simulator.simulate(circuit, [circuit.middle])
    simulator.close()
    # vto 0.5, kp 120u, lambda 0.04/2: Id = kp/2 W/L 0.1^2 (1 + lambda Vds), Vds = 1.8 - 50k Id.
    kp, lam, load, over = 120e-6, 0.02, 50e3, 0.1
    flat = kp / 2 * 10 * over**2
    current = flat * (1 + lam * 1.8) / (1 + flat * lam * load)
    conductance = flat * lam + 1 / load
    gain = 20 * math.log10(2 * current / over / conductance)
    assert found.metrics["gain_db"] == pytest.approx(gain, abs=2e-3)
    assert found.metrics["power_uw"] == pytest.approx(1.8e6 * current, rel=1e-4)
    assert found.metrics["output_swing_v"] == pytest.approx(load * current, rel=1e-4)


def test_a_transistor_narrower_than_any_model_is_no_figure(simulator):
    circuit = CIRCUITS["nand_gate"]
    (found,) = simulator.simulate(circuit, [{**circuit.middle, "W_nmos": 0.35}])
    if simulator.technology.name == "demo":
        assert found.valid
    else:
        assert (found.status, found.metrics) == ("failed", {})
        assert "could not find a valid modelname" in found.reason


def test_a_gate_with_wider_transistors_is_faster_and_takes_more(simulator):
    for name, delay, energy in (
        ("nand_gate", "avg_delay_ps", "energy_per_transition_fj"), ("xor_gate", "delay", "energy"),
    ):  # fmt: skip
        circuit = CIRCUITS[name]
        small = {**circuit.middle, "W_pmos": 1.0, "W_nmos": 0.5}
        large = {**circuit.middle, "W_pmos": 4.0, "W_nmos": 2.0}
        one, other = simulator.simulate(circuit, [small, large])
        assert other.metrics[delay] < one.metrics[delay]
        assert other.metrics[energy] > one.metrics[energy]
