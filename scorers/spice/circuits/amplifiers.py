"""Single transistors with a load."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY, common_source
from scorers.spice.circuit import GAIN_CURVE, Circuit, Metric, Sizing, Spec
from scorers.spice.netlist import Netlist

_WIDTHS, _LENGTHS = (2.0, 5.0, 10.0, 20.0, 30.0, 50.0), (0.5, 1.0, 2.0, 3.0)
_WORDS = (
    "The gate is at 0.6 V. Gain at 1 Hz; bandwidth where it has fallen by 3.0103 dB; power at the operating "
    "point; swing: the smaller of the output voltage and what is left of the supply above it."
)
_METRICS = (
    Metric(name="gain_db", unit="dB", better=">"),
    Metric(name="bandwidth_mhz", unit="MHz", better=">"),
    Metric(name="power_uw", unit="uW", better="<"),
    Metric(name="output_swing_v", unit="V", better=">"),
)
_BENCH = common_source("gain_db", "bandwidth_mhz", "power_uw", "output_swing_v")


def _common(net: Netlist, size: Sizing) -> None:
    net.n("out", "in", "0", size["W_input"], size["L_input"])
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("in", "in", "0", 0.6, ac=1.0)
    net.capacitor("out", "0", 10e-15)


def _resistive(net: Netlist, size: Sizing) -> None:
    _common(net, size)
    net.resistor("vdd", "out", size["R_load"])


def _diode(net: Netlist, size: Sizing) -> None:
    _common(net, size)
    net.p("out", "out", "vdd", size["W_load"], size["L_load"])


def _specs(gain: float, bandwidth: float, power: float, swing: float) -> tuple[Spec, ...]:
    return (
        Spec("gain_db", ">", gain), Spec("bandwidth_mhz", ">", bandwidth),
        Spec("power_uw", "<", power), Spec("output_swing_v", ">", swing),
    )  # fmt: skip


RESISTIVE_LOAD_AMP = Circuit(
    name="resistive_load_amp", title="Common source with a resistor", kind="amplifier",
    variables={"W_input": _WIDTHS, "L_input": _LENGTHS, "R_load": (10e3, 20e3, 50e3, 100e3)},
    build=_resistive, bench=_BENCH, curve=GAIN_CURVE, metrics=_METRICS, words=_WORDS, bench_differs=False,
    upstream=_specs(15, 200, 20, 0.4),
)  # fmt: skip
DIODE_LOAD_AMP = Circuit(
    name="diode_load_amp", title="Common source with a diode load", kind="amplifier",
    variables={
        "W_input": _WIDTHS, "L_input": _LENGTHS, "W_load": (1.0, 2.0, 5.0, 10.0, 15.0, 20.0),
        "L_load": _LENGTHS,
    },
    build=_diode, bench=_BENCH, curve=GAIN_CURVE, metrics=_METRICS, words=_WORDS, bench_differs=False,
    upstream=_specs(7, 200, 10, 0.5),
)  # fmt: skip
