"""Amplifiers of three stages, each with its own compensation, driving 15 nF and 25 kΩ."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from scorers.spice.benches import SUPPLY
from scorers.spice.circuit import GAIN_CURVE, Circuit, Metric, Sizing, Spec, grid
from scorers.spice.feedback_benches import closed_loop, loop
from scorers.spice.netlist import Netlist

VCM = 0.3
"""Common mode of the inputs: a pair of p-channel transistors is off at half the supply."""
WORDS = (
    "The output drives 15 nF and 25 kOhm. At DC it is fed back to the inverting input, so that the operating "
    "point is a follower's at 0.3 V; at the other input 1 V AC. Gain at 1 Hz; ugbw: the first frequency at "
    "which the gain is 1; power: the supply's at the operating point."
)
BENCH = closed_loop("dc_gain_db", "ugbw", "power_dc", unit="kHz")
METRICS = (
    Metric(name="dc_gain_db", unit="dB", better=">"),
    Metric(name="ugbw", unit="kHz", better=">"),
    Metric(name="power_dc", unit="uW", better="<"),
)


def specs(gain: float, unity: float, power: float) -> tuple[Spec, ...]:
    """Give the three specifications that these circuits share."""
    return Spec("dc_gain_db", ">", gain), Spec("ugbw", ">", unity), Spec("power_dc", "<", power)


def sources(net: Netlist) -> None:
    """Place supply, inputs, loop and load."""
    net.voltage("dd", "vdd", "0", SUPPLY)
    net.voltage("inp", "inp", "0", VCM, ac=1.0)
    loop(net, "out", "inn")
    net.capacitor("out", "0", 15e-9)
    net.resistor("out", "0", 25e3)


class _Units(Struct, frozen=True, kw_only=True):
    """How many units of each kind stand side by side."""

    mirror: int
    pair: int
    sinks: int
    cascodes: int
    diode: int
    stacks: int
    gm2: int
    load2: int
    gm3: int
    bias: float


def _first_two_stages(net: Netlist, size: Sizing, u: _Units, cascode: str = "W_BIAS_N") -> None:
    """Bias, folded first stage from the inputs to ``v1``, second stage from there to ``v2``."""
    wp, wn, wc, length = size["W_BIAS_P"], size["W_BIAS_N"], size[cascode], size["L"]
    net.current("bias", "ib", "0", u.bias)
    for node in ("ib", "vb4", "dm1", "vb3", "v2"):
        net.p(node, "ib", "vdd", wp, length, m=u.mirror)
    net.p("tail", "ib", "vdd", wp, length, m=2 * u.mirror)
    net.n("vb3", "vb3", "0", wn, length, m=u.diode)
    for node, middle in (("vb4", "x1"), ("dm1", "x2")):
        net.n(node, "vb3", middle, wc, length, m=u.stacks)
        net.n(middle, "vb4", "0", wn, length, m=u.stacks)
    net.p("da", "inn", "tail", size["W_GM1"], length, m=u.pair, bulk="tail")
    net.p("db", "inp", "tail", size["W_GM1"], length, m=u.pair, bulk="tail")
    for drain, out in (("da", "von"), ("db", "v1")):
        net.n(drain, "vb4", "0", wn, length, m=u.sinks)
        net.n(out, "vb3", drain, wc, length, m=u.cascodes)
        net.p(out, "von", "vdd", wp, length, m=u.mirror)
    net.p("m2", "v1", "vdd", size["W_GM2"], length, m=u.gm2)
    net.n("m2", "m2", "0", size["W_LOAD2"], length, m=u.load2)
    net.n("v2", "m2", "0", size["W_LOAD2"], length, m=u.load2)
    net.n("out", "v2", "0", size["W_GM3"], length, m=u.gm3)


def _smc(net: Netlist, size: Sizing) -> None:
    units = _Units(
        mirror=8,
        pair=8,
        sinks=64,
        cascodes=32,
        diode=8,
        stacks=32,
        gm2=8,
        load2=8,
        gm3=16,
        bias=20e-6,
    )
    sources(net)
    _first_two_stages(net, size, units)
    net.p("out", "v1", "vdd", size["W_GMF2"], size["L"], m=8)
    net.capacitor("v1", "out", 2e-12)


def _dfcfc(net: Netlist, size: Sizing) -> None:
    units = _Units(
        mirror=4,
        pair=4,
        sinks=32,
        cascodes=32,
        diode=4,
        stacks=16,
        gm2=4,
        load2=4,
        gm3=4,
        bias=10e-6,
    )
    sources(net)
    _first_two_stages(net, size, units, "W_CASC_N")
    net.p("out", "v1", "vdd", size["W_GMF2"], size["L"], m=4)
    # The damping stage has a gain of its own across its capacitor.
    net.n("damp", "v2", "0", size["W_GM4"], size["L"], m=4)
    net.p("damp", "ib", "vdd", size["W_BIAS_P"], size["L"], m=4)
    net.capacitor("v2", "damp", 200e-15)
    net.capacitor("v1", "out", 500e-15)


def _nmcnr(net: Netlist, size: Sizing) -> None:
    units = _Units(
        mirror=7,
        pair=24,
        sinks=32,
        cascodes=16,
        diode=4,
        stacks=16,
        gm2=18,
        load2=7,
        gm3=14,
        bias=19e-6,
    )
    sources(net)
    _first_two_stages(net, size, units)
    net.p("out", "ib", "vdd", size["W_BIAS_P"], size["L"], m=70)
    net.capacitor("v1", "x", 4.8e-12)
    net.capacitor("x", "v2", 5.5e-12)
    net.resistor("x", "out", 9.4e3)


def _circuit(
    name: str,
    title: str,
    variables: Mapping[str, tuple[float, ...]],
    build: object,
    upstream: tuple[Spec, ...],
) -> Circuit:
    return Circuit(
        name=name, title=title, kind="amplifier", variables=variables, build=build,  # type: ignore[arg-type]
        bench=BENCH, curve=GAIN_CURVE, metrics=METRICS, upstream=upstream, words=WORDS,
    )  # fmt: skip


_SIX = (6.0, 8.0, 10.0)
SMC = _circuit(
    "smc", "Three stages, single Miller capacitor",
    {
        "L": grid(1, 4, 0.5),
        **dict.fromkeys(("W_BIAS_P", "W_BIAS_N", "W_LOAD2"), (3.0, 5.0, 7.0, 10.0)),
        **dict.fromkeys(("W_GM1", "W_GM2", "W_GMF2"), (5.0, 10.0, 15.0, 20.0)),
        "W_GM3": (10.0, 20.0, 30.0, 40.0),
    },
    _smc, specs(40, 10, 500),
)  # fmt: skip
DFCFC = _circuit(
    "dfcfc", "Three stages, damping-factor control",
    {
        "L": (0.8, 1.0, 1.5, 2.0), "W_BIAS_P": (2.0, 5.0, 10.0, 15.0, 20.0),
        **dict.fromkeys(("W_BIAS_N", "W_CASC_N", "W_GM1", "W_GM2", "W_GMF2", "W_GM3", "W_GM4", "W_LOAD2"), _SIX),
    },
    _dfcfc, specs(20, 10, 400),
)  # fmt: skip
NMCNR = _circuit(
    "nmcnr", "Three stages, nested Miller capacitors with a nulling resistor",
    {
        "L": grid(1, 4.5, 0.5), "W_BIAS_P": (5.0, 7.0, 9.0, 11.0), "W_BIAS_N": (3.0, 4.0, 5.0, 6.0),
        "W_GM1": (6.0, 9.0, 12.0, 15.0), "W_GM2": (4.0, 5.0, 7.0, 9.0), "W_GM3": (3.0, 4.0, 5.0, 6.0),
        "W_LOAD2": (2.0, 3.0, 4.0, 5.0),
    },
    _nmcnr, specs(18, 10, 600),
)  # fmt: skip
