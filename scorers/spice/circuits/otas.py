"""Amplifiers of one stage with differential inputs."""

from __future__ import annotations

from scorers.spice.benches import SUPPLY, open_loop
from scorers.spice.circuit import GAIN_CURVE, W9, Circuit, Metric, Sizing, Spec
from scorers.spice.netlist import Netlist

LENGTH = 0.15
WORDS = (
    "Both inputs at {vcm} V, driven with +0.5 and -0.5 V AC. Gain at 1 Hz; ugbw: the first frequency at which "
    "the gain is 1; power: the supply's at the operating point; load {load}."
)
METRICS = (
    Metric(name="dc_gain_db", unit="dB", better=">"),
    Metric(name="ugbw", unit="MHz", better=">"),
    Metric(name="power_dc", unit="uW", better="<"),
)
_BENCH = open_loop("dc_gain_db", "ugbw", "power_dc")


def specs(gain: float, unity: float, power: float) -> tuple[Spec, ...]:
    """Give the three specifications that these circuits share."""
    return Spec("dc_gain_db", ">", gain), Spec("ugbw", ">", unity), Spec("power_dc", "<", power)


def inputs(net: Netlist, vcm: float) -> None:
    """Place the supply and both inputs."""
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("inp", "inp", "0", vcm, ac=0.5)
    net.voltage("inn", "inn", "0", vcm, ac=-0.5)


def _tail(net: Netlist, width: float) -> None:
    """A mirror of 20 µA into the node ``s``."""
    net.current("bias", "vdd", "id", 20e-6)
    net.n("id", "id", "0", width, LENGTH)
    net.n("s", "id", "0", width, LENGTH)


def _five(net: Netlist, size: Sizing) -> None:
    inputs(net, 0.9)
    _tail(net, 10 * size["W_tail_base"])
    net.n("out", "inn", "s", 10 * size["W_diff_base"], LENGTH)
    net.n("a", "inp", "s", 10 * size["W_diff_base"], LENGTH)
    net.p("out", "a", "vdd", 20 * size["W_load_base"], LENGTH)
    net.p("a", "a", "vdd", 20 * size["W_load_base"], LENGTH)
    net.capacitor("out", "0", 1e-12)


def _current_mirror(net: Netlist, size: Sizing) -> None:
    inputs(net, 0.9)
    _tail(net, 4 * size["W_tail_base"])
    pair, mirror, sink = 8 * size["W_diff_base"], size["W_mirror_base"], 16 * size["W_casc_base"]
    net.n("a", "inn", "s", pair, LENGTH)
    net.n("b", "inp", "s", pair, LENGTH)
    net.p("a", "a", "vdd", 6 * mirror, LENGTH)
    net.p("b", "b", "vdd", 6 * mirror, LENGTH)
    net.p("out", "b", "vdd", 12 * mirror, LENGTH)
    net.p("c", "a", "vdd", 12 * mirror, LENGTH)
    net.n("c", "c", "0", sink, LENGTH)
    net.n("out", "c", "0", sink, LENGTH)
    net.capacitor("out", "0", 1e-12)


FIVE_TRANSISTORS = Circuit(
    name="five_trans_ota", title="Amplifier of five transistors", kind="amplifier",
    variables={"W_tail_base": W9, "W_diff_base": W9, "W_load_base": W9},
    build=_five, bench=_BENCH, curve=GAIN_CURVE, metrics=METRICS, bench_differs=False, upstream=specs(15, 10, 65),
    words=WORDS.format(vcm=0.9, load="1 pF"),
)  # fmt: skip
CURRENT_MIRROR = Circuit(
    name="current_mirror_ota", title="Amplifier with current mirrors", kind="amplifier",
    variables={"W_tail_base": W9, "W_diff_base": W9, "W_mirror_base": W9, "W_casc_base": W9},
    build=_current_mirror, bench=_BENCH, curve=GAIN_CURVE, metrics=METRICS, upstream=specs(15, 10, 65),
    words=WORDS.format(vcm=0.9, load="1 pF"),
)  # fmt: skip
