"""Inverter and buffer."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY, logic, logic_pulse
from scorers.spice.circuit import W9, Circuit, Curve, Metric, Sizing, Spec
from scorers.spice.netlist import Netlist

LENGTH = 0.15
_WORDS = (
    "DC gain: the largest slope of the transfer curve in dB (sweep of 10 mV). Delay: mean of both edges "
    "at half the supply, input edges of 0.1 ns. Power: mean over a period of {period} ns, without what flows "
    "before the first edge."
)
_CURVE = Curve(x="time", y={"in": "v(in)", "out": "v(out)"}, title="voltage (V)")
_METRICS = (
    Metric(name="dc_gain_db", unit="dB", better=">"),
    Metric(name="average_delay", unit="ps", better="<"),
    Metric(name="dynamic_power", unit="uW", better="<"),
)


def _sources(net: Netlist, period_ns: float) -> None:
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("in", "in", "0", 0.0, pulse=logic_pulse(period_ns))
    net.capacitor("out", "0", 10e-15)


def _inverter(net: Netlist, size: Sizing) -> None:
    net.p("out", "in", "vdd", 20 * size["W_pmos_base"], LENGTH)
    net.n("out", "in", "0", 20 * size["W_nmos_base"], LENGTH)
    _sources(net, 2.0)


def _buffer(net: Netlist, size: Sizing) -> None:
    for stage, (a, y) in enumerate((("in", "mid"), ("mid", "out")), 1):
        net.p(y, a, "vdd", 10 * size[f"W_pmos{stage}_base"], LENGTH)
        net.n(y, a, "0", 10 * size[f"W_nmos{stage}_base"], LENGTH)
    _sources(net, 4.0)


INVERTER = Circuit(
    name="inverter", title="Inverter", kind="logic",
    variables={"W_pmos_base": W9, "W_nmos_base": W9},
    build=_inverter, bench=logic("dc_gain_db", "average_delay", "dynamic_power", inverting=True, period_ns=2.0),
    metrics=_METRICS, curve=_CURVE, words=_WORDS.format(period=2), bench_differs=False,
    upstream=(Spec("dc_gain_db", ">", 20), Spec("average_delay", "<", 50), Spec("dynamic_power", "<", 50)),
)  # fmt: skip
BUFFER = Circuit(
    name="buffer", title="Buffer of two inverters", kind="logic",
    variables={f"W_{kind}mos{stage}_base": W9 for stage in (1, 2) for kind in "pn"},
    build=_buffer, bench=logic("dc_gain_db", "average_delay", "dynamic_power", inverting=False, period_ns=4.0),
    metrics=_METRICS, curve=_CURVE, words=_WORDS.format(period=4), bench_differs=False,
    upstream=(Spec("dc_gain_db", ">", 25), Spec("average_delay", "<", 80), Spec("dynamic_power", "<", 50)),
)  # fmt: skip
