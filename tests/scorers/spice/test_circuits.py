"""Circuits against figures that others found, and against closed forms."""

from __future__ import annotations

import math
import shutil

import msgspec
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
# These were simulated with shells that drop `m`, so that every transistor stood alone.
SKY130_WITHOUT_M = {
    "telescopic_ota": {"dc_gain_db": 36.160, "ugbw": 8.3414, "power_dc": 45.275},
    "smc": {"dc_gain_db": 74.70, "ugbw": 371.9, "power_dc": 317.0},
    "azc": {"dc_gain_db": 56.97, "ugbw": 49.77, "power_dc": 106.7},
}
DEMO = {
    "five_trans_ota": {"dc_gain_db": 41.619, "ugbw": 85.01, "power_dc": 69.933},
    "inverter": {"dc_gain_db": 27.127, "average_delay": 18.71, "dynamic_power": 130.9},
    "smc": {"dc_gain_db": 128.25, "ugbw": 629.95, "power_dc": 400.1},
    "folded_cascode_ota_lp": {"stopband_attenuation_db": 26.024, "cutoff_mhz": 0.79795},
    "folded_cascode_ota_hp": {
        "stopband_attenuation_db": 26.059, "cutoff_mhz": 4.574, "passband_gain_db": -14.65,
    },
    "folded_cascode_ota_bandp": {
        "q_factor": 0.42314, "center_freq_mhz": 1.4208, "peak_gain_db": -17.375,
    },
    "bandgap_reference": {"vref": 0.74091, "power_uw": 28.21, "psrr_100hz_db": 47.85},
    "ldo_regulator": {
        "vout": 1.2002, "dropout_mv": 69.08, "line_reg_mv_per_v": 0.1583, "psrr_db": 75.39, "power_uw": 6547,
    },
}  # fmt: skip
GRIDS = [
    81, 6_561, 1_225, 1_225, 96, 576, 729, 6_561, 6_561, 531_441, 8_748, 131_220, 118_098, 114_688, 32_768, 114_688,
    62_500, 8_100, 161_051, 60_480, 7_776, 5_314_410_000, 5_314_410_000, 5_314_410_000,
]  # fmt: skip


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
    assert [circuit.n_points for circuit in CIRCUITS.values()] == GRIDS


def test_the_middle_of_every_grid_is_simulated_and_known_figures_come_out(simulator):
    known = SKY130 if simulator.technology.name == "sky130" else DEMO
    tech = simulator.technology.name
    there = {name: c for name, c in CIRCUITS.items() if tech in c.technologies}
    assert len(there) == (22 if tech == "sky130" else 24)
    for name, circuit in there.items():
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


def test_transistors_side_by_side_carry_so_many_times_the_current(simulator):
    def build(net, size):
        net.voltage("dd", "vdd", "0", 0.9)
        net.voltage("g", "g", "0", 0.9)
        net.n("vdd", "g", "0", 2.0, 0.15, m=int(size["M"]))

    bench = 'op\nlet current = -i(vdd)*1e6\necho "@m current $&current"\n'
    circuit = Circuit(
        name="many", title="", kind="", variables={"M": (1.0, 4.0)}, build=build, bench=bench,
        metrics=(Metric(name="current", unit="uA", better=">"),), upstream=(), words="",
    )  # fmt: skip
    one, four = simulator.simulate(circuit, [{"M": 1.0}, {"M": 4.0}])
    assert four.metrics["current"] == pytest.approx(4 * one.metrics["current"], rel=1e-5)


def test_netlists_with_transistors_side_by_side_are_those_of_the_reference():
    if shutil.which("ngspice") is None or missing("sky130"):
        pytest.skip("needs ngspice and the SKY130 models: harness fetch sky130")
    made = technology("sky130")
    models = made.files["models.spice"].replace(" m=1", "").replace(" m={m}", "")
    alone = msgspec.structs.replace(
        made, sha256="without m", files={**made.files, "models.spice": models}
    )
    simulator = Simulator(alone, workers=1)
    for name, known in SKY130_WITHOUT_M.items():
        (found,) = simulator.simulate(CIRCUITS[name], [CIRCUITS[name].middle])
        for metric, value in known.items():
            assert found.metrics[metric] == pytest.approx(value, rel=1e-3), (name, metric)
    simulator.close()


def test_an_oscillator_too_slow_for_the_first_bench_is_measured_by_the_second(simulator):
    circuit = CIRCUITS["voltage_controlled_osc"]
    # Wide and long: periods over 2.5 ns, eight of which do not fit into 20 ns.
    slow = {**circuit.middle, "L_inv_p_base": 2.0, "L_inv_n_base": 2.0}
    (found,) = simulator.simulate(circuit, [slow])
    assert found.valid
    assert found.metrics["freq_at_max"] < 400


def test_what_a_sizing_does_can_be_drawn(simulator):
    for name in ("five_trans_ota", "buffer"):
        circuit = CIRCUITS[name]
        found = simulator.curve(circuit, circuit.middle)
        x = [row[0] for row in found.curve]
        assert 200 <= len(x) <= 301
        assert x == sorted(x)
        assert all(len(row) == 1 + len(circuit.curve.y) for row in found.curve)
    assert max(row[1] for row in found.curve) == pytest.approx(1.8, abs=0.01)


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
