"""Gates of two inputs."""

from __future__ import annotations

from scorers.spice.benches import GATE_PULSE, SUPPLY, gate
from scorers.spice.circuit import Circuit, Curve, Metric, Sizing, Spec
from scorers.spice.netlist import Netlist

_VARIABLES = {
    "W_pmos": (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0),
    "W_nmos": (0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5),
    "L_pmos": (0.15, 0.18, 0.2, 0.25, 0.3),
    "L_nmos": (0.15, 0.18, 0.2, 0.25, 0.3),
}
_WORDS = (
    "Input a is high; input b rises at 5 ns and falls at 15 ns, in 0.1 ns each. Delay: mean of both from b's "
    "crossing of half the supply to that of the output. Energy: the supply's charge from 4 to 24 ns without "
    "leakage, times the supply, half of it. Noise margins are taken where the transfer curve has a slope of "
    "one. Under sky130 no model of a transistor of 0.35 um width is there: such a point cannot be simulated."
)
_CURVE = Curve(x="time", y={"b": "v(b)", "y": "v(y)"}, title="voltage (V)")


def _sources(net: Netlist) -> None:
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("a", "a", "0", SUPPLY)
    net.voltage("b", "b", "0", 0.0, pulse=GATE_PULSE)
    net.capacitor("y", "0", 10e-15)


def _nand(net: Netlist, size: Sizing) -> None:
    p, n = (size["W_pmos"], size["L_pmos"]), (size["W_nmos"], size["L_nmos"])
    net.p("y", "a", "vdd", *p)
    net.p("y", "b", "vdd", *p)
    net.n("y", "a", "m", *n)
    net.n("m", "b", "0", *n)
    _sources(net)


def _xor(net: Netlist, size: Sizing) -> None:
    wp, lp, wn, ln = size["W_pmos"], size["L_pmos"], size["W_nmos"], size["L_nmos"]
    for source, inverted in (("a", "an"), ("b", "bn")):
        net.p(inverted, source, "vdd", wp, lp)
        net.n(inverted, source, "0", wn, ln)
    # b chooses between a and its inverse, each through a pair.
    net.p("a", "bn", "t", 2 * wp, lp)
    net.n("a", "b", "t", 2 * wn, ln)
    net.p("an", "b", "t", 2 * wp, lp)
    net.n("an", "bn", "t", 2 * wn, ln)
    net.p("y", "t", "vdd", 3 * wp, lp)
    net.n("y", "t", "0", 3 * wn, ln)
    _sources(net)


NAND = Circuit(
    name="nand_gate", title="NAND of two inputs", kind="logic", variables=_VARIABLES, curve=_CURVE, build=_nand,
    bench=gate("avg_delay_ps", "energy_per_transition_fj", "noise_margin_high", "noise_margin_low"),
    metrics=(
        Metric(name="avg_delay_ps", unit="ps", better="<"),
        Metric(name="energy_per_transition_fj", unit="fJ", better="<"),
        Metric(name="noise_margin_high", unit="V", better=">"),
        Metric(name="noise_margin_low", unit="V", better=">"),
    ),
    upstream=(
        Spec("avg_delay_ps", "<", 200), Spec("energy_per_transition_fj", "<", 25),
        Spec("noise_margin_high", ">", 0.3), Spec("noise_margin_low", ">", 0.3),
    ),
    words=_WORDS,
)  # fmt: skip
XOR = Circuit(
    name="xor_gate", title="XOR of two inputs", kind="logic", variables=_VARIABLES, curve=_CURVE, build=_xor,
    bench=gate("delay", "energy", "noise_margin_high", "noise_margin_low", power="power_total_uw"),
    metrics=(
        Metric(name="delay", unit="ps", better="<"),
        Metric(name="power_total_uw", unit="uW", better="<"),
        Metric(name="energy", unit="fJ", better="<"),
        Metric(name="noise_margin_high", unit="V", better=">"),
        Metric(name="noise_margin_low", unit="V", better=">"),
    ),
    upstream=(
        Spec("delay", "<", 8000), Spec("power_total_uw", "<", 5), Spec("energy", "<", 40),
        Spec("noise_margin_high", ">", 0.3), Spec("noise_margin_low", ">", 0.3),
    ),
    words=_WORDS,
)  # fmt: skip
