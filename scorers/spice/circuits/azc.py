"""The three-stage amplifier whose middle stage carries active zeros."""

from __future__ import annotations

from scorers.spice.circuit import GAIN_CURVE, Circuit, Sizing
from scorers.spice.circuits.three_stage import BENCH, METRICS, WORDS, sources, specs
from scorers.spice.netlist import Netlist


def _first_stage(net: Netlist, size: Sizing) -> None:
    """Folded, with cascodes whose gates an own transistor holds (fed through 35 kΩ)."""
    length, bias, load = size["L"], size["W_BIAS"], size["W_LOAD"]
    net.current("bias", "ib", "0", 1e-6)
    net.p("ib", "ib", "vdd", bias, length, m=4)
    net.p("tail", "ib", "vdd", bias, length, m=8)
    net.p("feed", "ib", "vdd", bias, length, m=24)
    net.p("nb", "ib", "vdd", bias, length, m=4)
    net.n("nb", "nb", "0", 2 * bias, length, m=4)
    net.p("da", "inn", "tail", size["W_GM1"], length, m=4, bulk="tail")
    net.p("db", "inp", "tail", size["W_GM1"], length, m=4, bulk="tail")
    for drain, out, gate in (("da", "von", "ga"), ("db", "v1", "gb")):
        net.n(drain, "nb", "0", 7 * bias, length, m=4)
        net.n(out, gate, drain, load, length, m=4)
        net.n(gate, drain, "0", load, length, m=4)
        net.resistor("feed", gate, 35e3)
        net.p(out, "von", "vdd", bias, length, m=4)


def _azc(net: Netlist, size: Sizing) -> None:
    length, zero = size["L"], size["W_AZC23"]
    sources(net)
    _first_stage(net, size)
    net.p("v2", "v1", "vdd", size["W_GM2"], length, m=4)
    net.n("v2", "gz", "0", zero, length, m=16)
    net.resistor("v2", "gz", 350e3)
    net.capacitor("gz", "0", 404e-15)
    net.n("pz", "v2", "0", size["W_AZC1"], length, m=4)
    net.p("pz", "pz", "vdd", zero, length, m=4)
    net.p("z", "pz", "vdd", zero, length, m=8)
    net.n("z", "gy", "0", zero, length, m=12)
    net.resistor("z", "gy", 40e3)
    net.capacitor("gy", "0", 310e-15)
    net.n("og", "z", "0", zero, length, m=4)
    net.p("og", "ib", "vdd", size["W_BIAS"], length, m=8)
    net.n("out", "og", "0", size["W_GMFOUT"], length, m=4)
    net.p("out", "v1", "vdd", size["W_GMFOUT"], length, m=4)
    net.capacitor("db", "out", 810e-15)


_THREE = (10.0, 20.0, 40.0)
_BROAD = (40.0, 80.0, 120.0)
AZC = Circuit(
    name="azc", title="Three stages, active-zero compensation", kind="amplifier",
    variables={
        "L": (0.5, 1.0, 1.5, 2.0), "W_BIAS": (5.0, 10.0, 20.0), "W_AZC1": _THREE, "W_AZC23": _THREE,
        "W_LOAD": (20.0, 40.0, 80.0), "W_GM1": _BROAD, "W_GM2": _BROAD, "W_GMFOUT": _BROAD,
    },
    build=_azc, bench=BENCH, curve=GAIN_CURVE, metrics=METRICS, upstream=specs(45, 60, 120), words=WORDS,
)  # fmt: skip
