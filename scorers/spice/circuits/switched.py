"""The switched-capacitor sample and hold with its two-stage amplifier."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY
from scorers.spice.circuit import Circuit, Curve, Metric, Sizing, Spec
from scorers.spice.feedback_benches import closed_loop, hold, loop
from scorers.spice.netlist import Netlist

_HELD = 1.0
_PERIOD_US = 1.0
_EDGE_NS = 1.0
_WORDS = (
    "A two-stage amplifier, measured twice. Alone: at DC a follower at 0.9 V, open at AC, load 2 pF: gain at 1 Hz, "
    "first frequency of gain 1, phase margin at the last one, power at the operating point. As a flip-around sample "
    "and hold at 1 MHz with an input of 1.0 V, 2 pF sampled, transmission gates of W_sw and L_sw: what the output is "
    "off at the end of the third hold phase."
)


def _amplifier(
    net: Netlist, size: Sizing, nodes: str, inverting: str, plus: str, out: str, supply: str
) -> None:
    """Two stages with 2 pF across the second; the gate on the mirror's diode side inverts."""
    w1, w2, length = size["W_op1_base"], size["W_op2_base"], size["L_op_base"]
    d1, d2, tail, bias = (f"{nodes}{name}" for name in ("d1", "d2", "tail", "bias"))
    net.n(d1, inverting, tail, w1, length, m=4)
    net.n(d2, plus, tail, w1, length, m=4)
    net.n(tail, bias, "0", w1, 2 * length, m=4)
    net.p(d1, d1, supply, w2, length, m=4, bulk=supply)
    net.p(d2, d1, supply, w2, length, m=4, bulk=supply)
    net.p(out, d2, supply, 4 * w2, length, m=4, bulk=supply)
    net.n(out, bias, "0", 2 * w1, 2 * length, m=2)
    net.n(bias, bias, "0", w1, 4 * length)
    net.resistor(supply, bias, 18e3)
    net.capacitor(d2, out, 2e-12)
    net.capacitor(out, "0", 2e-12)


def _switch(net: Netlist, size: Sizing, a: str, b: str, on: str, off: str) -> None:
    net.n(a, on, b, size["W_sw_base"], size["L_sw_base"], m=2)
    net.p(a, off, b, size["W_sw_base"], size["L_sw_base"], m=2, bulk="hdd")


def _clocks(net: Netlist) -> None:
    half, edge = _PERIOD_US / 2, f"{_EDGE_NS:g}n"
    high = f"{half * 1000 - _EDGE_NS:g}n {_PERIOD_US:g}u"
    for name, start, end in (("sample", SUPPLY, 0.0), ("keep", 0.0, SUPPLY)):
        net.voltage(
            name, name, "0", start, pulse=f"pulse({start} {end} {half:g}u {edge} {edge} {high})"
        )


def _switched(net: Netlist, size: Sizing) -> None:
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("inp", "inp", "0", 0.9, ac=1.0)
    _amplifier(net, size, "a", "inn", "inp", "out", "vdd")
    loop(net, "out", "inn")
    # The second copy has a supply of its own, so that its current is not counted.
    net.voltage("hdd", "hdd", "0", SUPPLY)
    net.voltage("half", "half", "0", SUPPLY / 2)
    net.voltage("held", "hin", "0", _HELD)
    _amplifier(net, size, "h", "hx", "half", "hout", "hdd")
    _clocks(net)
    net.capacitor("top", "hx", 2e-12)
    _switch(net, size, "hin", "top", "sample", "keep")
    _switch(net, size, "hx", "hout", "sample", "keep")
    _switch(net, size, "top", "hout", "keep", "sample")


_WIDTHS = (2.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
_LENGTHS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0)
SWITCHED_CAPACITOR = Circuit(
    name="switched_capacitor", title="Sample and hold with a two-stage amplifier", kind="switched",
    variables={
        **dict.fromkeys(("W_op1_base", "W_op2_base", "W_sw_base"), _WIDTHS),
        **dict.fromkeys(("L_op_base", "L_sw_base"), _LENGTHS),
    },
    build=_switched, curve=Curve(x="time", y={"sample": "v(sample)", "out": "v(hout)"}, title="voltage (V)"),
    bench=closed_loop("ota_gain_db", "ugbw_mhz", "power_uw", unit="MHz", margin="phase_margin_deg")
    + hold("hold_error_mv", _HELD, _PERIOD_US),
    metrics=(
        Metric(name="ota_gain_db", unit="dB", better=">"),
        Metric(name="power_uw", unit="uW", better="<"),
        Metric(name="phase_margin_deg", unit="deg", better=">"),
        Metric(name="ugbw_mhz", unit="MHz", better=">"),
        Metric(name="hold_error_mv", unit="mV", better="<"),
    ),
    upstream=(
        Spec("gain_db", ">", 15), Spec("thd_db", "<", -25), Spec("power_uw", "<", 1500),
        Spec("phase_margin_deg", ">", 50), Spec("ugbw_mhz", ">", 100),
    ),
    words=_WORDS,
)  # fmt: skip
