"""The three-stage amplifier with impedance-adapting compensation and cascoded mirrors."""

from __future__ import annotations

from scorers.spice.circuit import GAIN_CURVE, Circuit, Sizing
from scorers.spice.circuits.three_stage import BENCH, METRICS, WORDS, sources, specs
from scorers.spice.netlist import Netlist

_UNIT = 184
"""Transistors side by side in a mirror's branch of one unit."""


def _bias(net: Netlist, size: Sizing) -> None:
    wn, length = size["W_BIAS_N"], size["L"]
    net.current("bias", "ib", "0", 47e-6)
    for node in ("ib", "vb4", "dm1", "vb3"):
        _cascoded(net, size, node, "ib")
    net.n("vb3", "vb3", "0", wn, length, m=23)
    for node, middle in (("vb4", "x1"), ("dm1", "x2"), ("vb2", "x3")):
        net.n(node, "vb3", middle, wn, length, m=92)
        net.n(middle, "vb4", "0", wn, length, m=92)
    net.p("vb2", "vb2", "vdd", size["W_BIAS_P"], length, m=46)
    # Without it the bias, which feeds itself, stays off.
    net.resistor("vb2", "0", 2e6)


def _cascoded(net: Netlist, size: Sizing, node: str, gate: str, units: int = 1) -> None:
    """Feed a node from a mirror of two p-channel transistors in series."""
    width, length = size["W_BIAS_P"], size["L"]
    net.p(f"c_{node}", gate, "vdd", width, length, m=units * _UNIT)
    net.p(node, "vb2", f"c_{node}", width, length, m=units * _UNIT)


def _iac(net: Netlist, size: Sizing) -> None:
    wn, length = size["W_BIAS_N"], size["L"]
    sources(net)
    _bias(net, size)
    _cascoded(net, size, "tail", "ib", units=2)
    for drain, out, into in (("da", "von", "inn"), ("db", "v1", "inp")):
        net.p(drain, into, "tail", size["W_GM1"], length, m=11, bulk="tail")
        net.n(drain, "vb4", "0", wn, length, m=_UNIT)
        net.n(out, "vb3", drain, wn, length, m=_UNIT)
        _cascoded(net, size, out, "von")
    net.p("n", "v1", "vdd", size["W_GM2"], length, m=43)
    net.n("n", "vb3", "w", wn, length, m=4 * _UNIT)
    net.n("w", "n", "0", size["W_LOAD2"], length, m=33)
    net.n("w", "vb4", "0", size["W_LOAD3"], length, m=50)
    net.n("q", "n", "0", size["W_LOAD2"], length, m=33)
    net.p("c_q", "ib", "vdd", size["W_BIAS_P"], length, m=4 * _UNIT)
    net.p("q", "vb2", "c_q", size["W_GMT"], length, m=7)
    net.n("out", "q", "0", 2.0, length, m=11)
    net.p("out", "v1", "vdd", 10.0, length, m=9)
    net.capacitor("v1", "out", 1.3e-12)
    net.capacitor("q", "r", 45e-12)
    net.resistor("r", "0", 40e3)


IAC = Circuit(
    name="iac", title="Three stages, impedance-adapting compensation", kind="amplifier",
    variables={
        "L": (0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0), "W_BIAS_P": (1.5, 2.5, 4.0, 6.0),
        "W_BIAS_N": (3.0, 5.0, 7.0, 10.0), "W_LOAD2": (6.0, 9.0, 12.0, 16.0),
        "W_LOAD3": (6.0, 10.0, 14.0, 18.0), "W_GM1": (7.0, 11.0, 15.0, 20.0),
        "W_GM2": (6.0, 10.0, 14.0, 18.0), "W_GMT": (4.0, 6.0, 8.0, 11.0),
    },
    build=_iac, bench=BENCH, curve=GAIN_CURVE, metrics=METRICS, upstream=specs(30, 50, 1000), words=WORDS,
)  # fmt: skip
