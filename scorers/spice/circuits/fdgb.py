"""The fully differential amplifier with gain boosting."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY, open_loop
from scorers.spice.circuit import GAIN_CURVE, Circuit, Metric, Sizing, Spec
from scorers.spice.netlist import Netlist

_WORDS = (
    "Fully differential, inputs at 0.9 V with +0.5 and -0.5 V AC; each output drives 5 pF and 100 kOhm to 0.9 V, out "
    "is their difference. Ideal loops hold the mean of the outputs at 0.9 V and those of the boosters at 0.35 V (gates "
    "of the p cascodes) and 1.35 V (gates of the n cascodes). Gain at 1 Hz; ugbw: the first frequency at which the "
    "gain is 1; power: the supply's at the operating point."
)


def _bias(net: Netlist, size: Sizing) -> None:
    length = size["L"]
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("inp", "inp", "0", 0.9, ac=0.5)
    net.voltage("inn", "inn", "0", 0.9, ac=-0.5)
    net.current("bias", "ib", "0", 10e-6)
    net.p("ib", "ib", "vdd", size["W_BIAS_P"], length, m=4)
    net.p("nb", "ib", "vdd", size["W_BIAS_P"], length, m=4)
    net.n("nb", "nb", "0", size["W_BIAS_N"], length, m=4)


def _held(net: Netlist, node: str, from_node: str, first: str, second: str, mean: float) -> None:
    """Hold the mean of two nodes by an ideal loop of gain 5 around a bias voltage, ``from_node``."""
    net.line(f"b{node} {node} 0 v=v({from_node})+5*((v({first})+v({second}))/2-{mean})")


def _main_path(net: Netlist, size: Sizing) -> None:
    length = size["L"]
    net.n("tail", "nb", "0", size["W_TAIL"], length, m=4)
    for into, a, out, top in (("inp", "a1", "om", "t1"), ("inn", "a2", "op", "t2")):
        side = a[1]
        net.n(a, into, "tail", size["W_GM1"], length, m=8)
        net.n(out, f"gn{side}", a, size["W_CASC_N"], length, m=8)
        net.p(out, f"gp{side}", top, size["W_CASC_P"], length, m=16)
        net.p(top, "gc", "vdd", size["W_CURR_P"], length, m=8)
        net.capacitor(out, "0", 5e-12)
        net.resistor(out, "half", 100e3)
    net.voltage("half", "half", "0", 0.9)
    _held(net, "gc", "ib", "om", "op", 0.9)


def _boosters(net: Netlist, size: Sizing) -> None:
    """Each pair looks at the sources of the cascodes and drives their gates."""
    length, gm = size["L"], size["W_AUX_GM"]
    load, tail = size["W_AUX_LOAD"], size["W_AUX_TAIL"]
    net.n("ta", "nb", "0", tail, length, m=2)
    net.p("tb", "ib", "vdd", tail, length, m=2)
    for side in "12":
        # Of the p cascodes: n-channel pair, p-channel loads.
        net.n(f"gp{side}", f"t{side}", "ta", gm, length, m=2)
        net.p(f"gp{side}", "la", "vdd", load, length, m=2)
        # Of the n cascodes: p-channel pair, n-channel loads.
        net.p(f"gn{side}", f"a{side}", "tb", gm, length, m=4)
        net.n(f"gn{side}", "lb", "0", load, length, m=2)
    _held(net, "la", "ib", "gp1", "gp2", 0.35)
    _held(net, "lb", "nb", "gn1", "gn2", 1.35)


def _fdgb(net: Netlist, size: Sizing) -> None:
    _bias(net, size)
    _main_path(net, size)
    _boosters(net, size)
    net.line("eout out 0 op om 1")


_THREE = (1.0, 1.5, 2.0)
_VARIABLES = (
    "L", "W_GM1", "W_CASC_N", "W_CASC_P", "W_CURR_P", "W_TAIL", "W_AUX_GM", "W_AUX_LOAD", "W_AUX_TAIL",
)  # fmt: skip
FDGB = Circuit(
    name="fdgb", title="Fully differential amplifier with gain boosting", kind="amplifier",
    variables={
        **dict.fromkeys(_VARIABLES, _THREE), "W_BIAS_P": (0.5, 1.0, 1.5), "W_BIAS_N": (1.0, 1.5),
    },
    build=_fdgb, bench=open_loop("dc_gain_db", "ugbw", "power_dc"), curve=GAIN_CURVE,
    metrics=(
        Metric(name="dc_gain_db", unit="dB", better=">"),
        Metric(name="ugbw", unit="MHz", better=">"),
        Metric(name="power_dc", unit="uW", better="<"),
    ),
    upstream=(Spec("dc_gain_db", ">", 20), Spec("ugbw", ">", 1), Spec("power_dc", "<", 200)),
    words=_WORDS,
)  # fmt: skip
